// Writes a job's lines to files, in every layout of formats.md section 2, and records the positions of the
// lines that the fault caused. Memory: its buffers only. One thread.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/status.h"
#include "sim/batch.h"

namespace culprit::sim {

struct Mark {
  uint32_t file;
  Role role;
  bool continues;  // continuation line of a multi-line record
  bool error_word;
  uint64_t line;
};

class Sink {
 public:
  Sink(const Site& site, const Run& run, std::string folder);

  // Sorts the batch by time, writes it and clears it.
  Status write(Batch& batch);
  // Flushes all buffers, and writes job.toml if the site has one.
  Status finish();

  uint64_t bytes() const { return bytes_; }
  const std::vector<Mark>& marks() const { return marks_; }
  const std::string& path(uint32_t file) const { return files_[file].path; }

 private:
  struct File {
    std::string path;  // below the folder
    std::string buffer;
    uint64_t lines = 0;
    bool opened = false;
    TimeNs last_ns = kNoTime;  // time of its last line, for the file's modification time
  };
  enum class Stamp : uint8_t { kNone, kSyslog, kJournal };
  // Outputs of one writer: `file` for its lines; `errors` for its standard error, if separate.
  struct Slot {
    int32_t file = -1, errors = -1, plog = -1, plog_errors = -1;  // -1: none
    Stamp stamp = Stamp::kNone;
    std::string prefix;
    std::string error_prefix;
  };

  int32_t file(const std::string& path);
  void lay_out();
  void lay_out_host(uint32_t host);
  void lay_out_streams(uint32_t host, uint32_t local, Slot& slot);
  void lay_out_kernel(uint32_t host, Slot& slot);
  Slot& slot(uint32_t host, uint32_t slot);
  void put(const Record& record, std::string_view text);
  void put_prefix(const Slot& slot, const Record& record, std::string& out) const;
  Status flush(File& file);

  const Site& site_;
  const Run& run_;
  std::string folder_;
  std::vector<File> files_;
  std::vector<Slot> slots_;
  std::vector<std::pair<TimeNs, uint32_t>> order_;
  std::vector<Mark> marks_;
  uint64_t bytes_ = 0, buffered_ = 0;
};

// Whether the line has a word by which a person (or grep) searches for failures.
bool has_error_word(std::string_view line);

}  // namespace culprit::sim
