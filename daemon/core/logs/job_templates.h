// The forms and templates of a job's events: counts by template and writer, and a bounded number of places
// and first texts. Owned by JobLog. Memory grows with forms, templates and writers, up to limits; the drops
// count the rest. One thread; pure.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/flat_map.h"
#include "core/logs/job_log.h"
#include "core/logs/quoted_texts.h"

namespace culprit::logs {

// Events of one form by one writer.
struct FormLines {
  uint32_t writer = 0, form = 0;
  uint64_t count = 0;
  TimeNs first_ns = kNoTime, last_ns = kNoTime;
  bool untimed = false;  // the group's first event has no time
};

class JobTemplates {
 public:
  using FormStats = JobLog::FormStats;

  // The form of a message: an index into forms().
  uint32_t form_id(uint64_t hash, std::string_view message);
  // See JobLog::add_pool_form.
  void add_pool_form(uint64_t hash, std::string_view form);
  void mark_alarm(uint32_t form) { forms_[form].alarm = true; }
  // Notes the level and shape of a form's lines in a batch.
  void add_shape(uint32_t form, const FormSeen& seen);
  // Whether `form` stands for all forms beyond the limit.
  bool is_folded(uint32_t form) const { return form == folded_; }

  void count(const FormLines& lines);
  // The counts of a job exceed the core's cache. Prefetch the data for count(): first the slot with the
  // location of the counts, then the counts.
  void prefetch_slot(const FormLines& lines) const;
  void prefetch_counts(const FormLines& lines) const;
  // The place of an event, kept within limits.
  void add_place(uint32_t form, const LogPlace& place);
  // Its text, kept within limits. `text_line`: line of the text; the place of a traceback is its first line.
  // Returns whether the form needs no further text of this writer.
  bool add_sample(uint32_t form, const LogPlace& place, std::string_view text, uint64_t text_line);
  // Number of further places that the template of `form` accepts.
  uint16_t room(uint32_t form) const;
  // Settles the templates. `quoted`: texts that are no evidence. Repeatable.
  void settle(const std::vector<QuotedLines>& quoted);

  const FormStats& form(uint32_t form) const { return forms_[form]; }
  TemplateStats& of_form(uint32_t form) { return templates_[forms_[form].cluster]; }
  const std::vector<FormStats>& forms() const { return forms_; }
  const std::vector<TemplateStats>& all() const { return templates_; }  // by cluster
  const std::vector<ClusterId>& clusters() const { return clusters_; }  // with events; set by settle()
  const Miner& miner() const { return miner_; }
  uint64_t events() const { return events_; }  // counted
  Drops drops() const;

 private:
  uint32_t new_form(uint64_t hash, std::string text);
  GroupStats* group(uint32_t writer, ClusterId cluster);
  void merge_templates();
  void regroup();

  static constexpr uint32_t kNone = 0xffffffff;

  Miner miner_;
  std::vector<FormStats> forms_;
  FlatMap<uint32_t> form_ids_{4096};
  std::vector<TemplateStats> templates_;
  FlatMap<uint32_t> group_ids_{4096};  // (writer, cluster) -> index into the template's groups
  std::vector<ClusterId> clusters_;
  uint32_t folded_ = kNone;
  uint64_t events_ = 0;
  size_t places_ = 0, form_bytes_ = 0, sample_bytes_ = 0;
  Drops drops_;
};

}  // namespace culprit::logs
