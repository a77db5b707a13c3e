// The batches of a job's lines on a host as a few bytes: what JobLog reads of them, and no more. Each line
// has its form, writer and time; the texts go along only of lines of which the engine reads them: the first
// ones of a form, those in tracebacks and launchers' lists, those in which a rule was found, and now and then
// the last ones that told of progress. An engine that is fed with what an Expander gives answers as one that
// is fed with the batches themselves (tests/bench/condense), but for one thing: whether a number that no word
// names counts up is found out on each host, and not once for the job.
//
// A Condenser and its Expander are a session: forms, writers and rules are told once, and each line says only
// what could not be foretold from those before. So blocks are worth something in order and from the first
// one only; core/wire.h numbers them. Both are pure, for one thread each, and hold as much as the job has
// forms and writers, within base/limits.h; a Condenser also what was added since its last flush.
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

namespace culprit::logs {

// A rule by what it is called on any host: by its id, and a hash of all that decides when it fires.
struct RuleName {
  std::string id;
  uint64_t hash = 0;
};

struct CondenseCounts {
  uint64_t lines = 0, bytes = 0;  // taken; bytes of their sources
  uint64_t texts = 0, text_bytes = 0;
  uint64_t folded = 0;   // lines of forms or writers beyond limits::kForms and kWriters
  uint64_t dropped = 0;  // lines, of sources beyond limits::kLiveSources or more than a block can hold
};

class Condenser {
 public:
  Condenser();
  ~Condenser();

  // By the numbers that batches tell from now on.
  void set_rules(std::vector<RuleName> rules);
  // A batch as a LineParser made it, before an engine had it. Sources are any small numbers.
  void add(const LogBatch& batch, TimeNs now);
  // Whether a flush would tell nothing.
  bool empty(TimeNs now) const;
  // Whether something was added that should not wait: a fault that a rule knows, words of failure never seen
  // before. All else may: the longer a block, the fewer bytes.
  bool urgent() const;
  // Whether more should not be added before the next flush.
  bool full() const;
  // Appends what was added since the last flush.
  void flush(TimeNs now, PackedWriter& out);
  const CondenseCounts& counts() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// A batch as a host's condenser had it; its texts are views into the block.
struct Expanded {
  LogBatch batch;
  TimeNs now = kNoTime;  // when the last of its lines were added
};

class Expander {
 public:
  using FindRule = std::function<std::optional<uint32_t>(const RuleName&)>;  // the number that it has here

  explicit Expander(FindRule find);
  ~Expander();

  // Other rules are in use from now on.
  void set_rules(FindRule find);
  // What one flush appended. After an error nothing more can be read of this session.
  Result<std::vector<Expanded>> expand(PackedReader& in);
  // Hits that were left out, and the ids of their rules, a few: rules that this side does not have.
  uint64_t unknown_hits() const;
  const std::vector<std::string>& unknown_rules() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace culprit::logs
