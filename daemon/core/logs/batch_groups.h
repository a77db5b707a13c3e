// The forms and writers of the current batch in the job's numbers, and its lines counted by both. The counts
// join those of the job once per batch. Owned by JobEvents; refers to the job's writers and templates. One
// thread; pure.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/logs/batch.h"
#include "core/logs/job_templates.h"
#include "core/logs/job_writers.h"
#include "core/logs/writer_records.h"

namespace culprit::logs {

class BatchGroups {
 public:
  // Lines of one form and writer.
  struct Group {
    FormLines lines;
    uint32_t record = 0;   // of the writer, in its source
    uint16_t room = 0;     // places that the template still accepts
    bool sampled = false;  // the template needs no further text of this writer
  };

  BatchGroups(JobWriters& writers, JobTemplates& templates) : writers_(writers), templates_(templates) {}

  // Starts a batch. `records`: of its source. `trimmed`: some of the batch's groups have no lines left.
  void open(const LogBatch& batch, WriterRecords& records, bool trimmed);
  Group& operator[](uint32_t group) { return groups_[group]; }
  size_t size() const { return groups_.size(); }
  // Adds the counts of all groups to the templates.
  void count() const;
  // Counts the lines for the host `owner` of their source.
  void count_owned(const std::string& owner) const;
  // Changes the forms of the batch's lines, and clears `relabels`.
  void relabel(LogBatch& batch, std::vector<Relabel>& relabels);
  // See JobLog::last_forms.
  const std::vector<uint32_t>& forms() const { return forms_; }

 private:
  static constexpr uint32_t kNone = 0xffffffff;

  struct Writer {
    uint32_t id = kNone;
    uint32_t record = 0;  // in its source
  };

  uint32_t open_form(const LogBatch& batch, uint32_t local);

  JobWriters& writers_;
  JobTemplates& templates_;
  std::vector<Group> groups_;
  std::vector<uint32_t> forms_;        // by the batch's form number: the job's form
  std::vector<uint32_t> local_forms_;  // index of a job's form in forms_, if present
};

}  // namespace culprit::logs
