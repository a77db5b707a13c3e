// Condenses the log batches of one host to a few bytes, with only the fields that JobLog reads. Each line
// keeps its form, writer and time. Text is sent only for lines whose text the engine reads: first lines of a
// form, lines in tracebacks and launchers' lists, lines that match a rule, and sometimes the latest progress
// lines. An engine behind an Expander reports the same as one that gets the batches directly
// (tests/bench/condense). One exception: unnamed counters are detected per host, not per job.
//
// A Condenser and its Expander form a session. Forms, writers and rules are sent once; a line contains only
// what earlier lines do not predict. So an Expander must read all blocks in order from the first;
// core/wire/inputs.h numbers them. Both are pure; one thread each. Memory grows with the job's forms and
// writers, within base/limits.h, and in a Condenser with the data since its last flush.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "core/logs/batch.h"
#include "core/logs/packed.h"
#include "core/wire/form_shapes.h"

namespace culprit::wire {

// Identifies a rule on all hosts: its id, and a hash of everything that decides when it fires.
struct RuleName {
  std::string id;
  uint64_t hash = 0;
};

struct CondenseCounts {
  uint64_t lines = 0, bytes = 0;  // added so far; bytes of their sources
  uint64_t texts = 0, text_bytes = 0;
  uint64_t folded = 0;   // lines of forms or writers beyond limits::kForms and kWriters
  uint64_t dropped = 0;  // lines of sources beyond limits::kLiveSources, or beyond the size of a block
};

class LineCondenser {
 public:
  LineCondenser();
  ~LineCondenser();

  // Names of the rules by their index in later batches.
  void set_rules(std::vector<RuleName> rules);
  // A batch from a LineParser, before an engine changes it. Sources are any small numbers.
  void add(const logs::LogBatch& batch, TimeNs now);
  // Whether a flush would have no content.
  bool empty(TimeNs now) const;
  // Whether new content should be sent soon: a fault known to a rule, or new words of failure. Other content
  // may wait: longer blocks compress better.
  bool urgent() const;
  // Whether to flush before further input.
  bool full() const;
  // Appends the content since the last flush.
  void flush(TimeNs now, PackedWriter& out);
  const CondenseCounts& counts() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// A batch as the host's Condenser received it; its texts are views into the block.
struct Expanded {
  logs::LogBatch batch;
  TimeNs now = kNoTime;  // when its last line was added
};

class LineExpander {
 public:
  // Returns the rule's index on the receiver's side.
  using FindRule = std::function<std::optional<uint32_t>(const RuleName&)>;

  // `shapes` is borrowed; null: the expander uses its own.
  explicit LineExpander(FindRule find, FormShapes* shapes = nullptr);
  ~LineExpander();

  // Sets the rule lookup for later blocks.
  void set_rules(FindRule find);
  // Reads the content of one flush. After an error the rest of the session is invalid.
  Result<std::vector<Expanded>> expand(PackedReader& in);
  // Counts hits of rules that the receiver lacks, and lists some of their ids.
  uint64_t unknown_hits() const;
  const std::vector<std::string>& unknown_rules() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace culprit::wire
