// The state of one check(), shared by the format readers. Each file is read once, in order, against all its
// checksums. Used within core/checkpoint. One thread; lives for one check.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/read_budget.h"
#include "core/checkpoint/check.h"
#include "core/checkpoint/json_scan.h"
#include "core/checkpoint/zip.h"

namespace culprit::checkpoint {

class Checker {
 public:
  Checker(const Found& of, const Tree& below, ByteSource& from, const CheckOptions& how)
      : found(of), tree(below), source(from), options(how) {}

  Checked run();

  void report(Fault fault, const std::string& file, std::string text);
  // Reports a missing file, or one that is not a regular file.
  const Entry* need(const std::string& path, std::string_view why = "is missing");

  // Calls `read` with a memory budget in proportion to the bytes that it reads (ReadBudget); reports the file
  // if `read` exceeds the budget.
  void within_budget(const Entry& file, const std::function<void()>& read);

  // ---- files
  std::vector<Range> check_torch(const Entry& file);  // returns its checksums
  void check_safetensors(const Entry& file);
  void check_json(const Entry& file);
  // ---- folders
  void check_dcp(const std::string& folder);
  void check_ranks(const std::string& folder);
  void check_index(const Entry& index);  // checks shards by their tensor names
  void check_integrity(const Entry& manifest);

  // Bytes of a file, for the current reader within its budget.
  Extent extent(const Entry& file, uint64_t begin, uint64_t size);
  Extent extent(const Entry& file) { return extent(file, 0, file.size); }
  // The whole text of a small file; a problem is reported.
  std::optional<std::string> text_of(const Entry& file, size_t max);
  // Reads the whole file against the ranges, which this sorts, and against the digest of an earlier check.
  void read_bytes(const Entry& file, std::vector<Range> ranges);

  const Found& found;
  const Tree& tree;
  ByteSource& source;
  const CheckOptions& options;
  Checked out;

 private:
  std::vector<Range> check_file(const Entry& file);
  std::vector<Range> ranges_of(const Entry& file);  // check_file within its budget
  void check_legacy(const Entry& file);
  void check_known();
  void check_format();
  void check_megatron(const std::string& folder);
  void check_deepspeed(const std::string& folder);
  void check_universal();
  void check_trainer();
  void check_lightning();
  void check_orbax();
  void check_orbax_time(const Entry& file);
  void check_orbax_json(const Entry& file);
  void check_ocdbt(const Entry& manifest);
  void check_snapshot();
  void check_snapshot(const Entry& index);
  bool has_below(std::string_view suffix) const;

  std::set<std::string, std::less<>> wrong_;   // files with a problem: their bytes are not read
  std::set<std::string, std::less<>> read_;    // files whose bytes were read
  std::map<std::string, std::string> sha256_;  // from a manifest, by file
  std::string chunk_;
  ReadBudget* budget_ = nullptr;  // of the current reader
};

}  // namespace culprit::checkpoint
