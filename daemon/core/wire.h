// A job's inputs on their way from a host's agent to an engine elsewhere: the lines condensed
// (core/logs/condense.h), records of communication as vectors of ranks and steps
// (core/detect/comm/vectors.h), metrics with names as numbers (core/wire_loop.h), all else as it is, each
// with its time. What was added between two flushes is a block; the blocks of a writer are a session with a
// random number, numbered from 0, and a reader takes them in order from the first one only. Everything is
// little-endian; the version stands in front, and notes of a kind that the reader does not know are passed
// over and counted.
//
// Pure; one thread each. A reader is for bytes of strangers: a block of at most limits::kWireBytes makes it
// hold at most 128 MB for the call, and the session what base/limits.h allows for forms, writers and sources.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "core/detect/comm/trace.h"
#include "core/engine.h"
#include "core/logs/condense.h"
#include "core/rules/ruleset.h"
#include "core/wire_loop.h"

namespace culprit::core {

class InputWriter {
 public:
  explicit InputWriter(uint64_t session);

  // The rules whose numbers stand in the batches from now on; null: none.
  void set_rules(const rules::Ruleset* rules);
  // As Engine::step takes it, in the same order, and before an engine does: that changes batches. Sources
  // are numbered in the order of their SourceOpened. What the shell measured of its own engine (RuleOverran)
  // is no other's, and is left out.
  void add(const Input& input, TimeNs now);
  // Now and then: whether ranks stand still inside of operations, which others should know.
  void tick(TimeNs now);
  // Records of these steps are asked for: they stand in the next block, as far as they are kept.
  void answer(const std::vector<int64_t>& steps);
  // The job is over on this host.
  void ends(bool failed, TimeNs now);
  // Whether processes of the job are on this host.
  void alive(bool alive, TimeNs now);

  bool empty(TimeNs now) const;  // a flush would tell nothing
  // Something should not wait: a fault, new words of failure, an end. All else may wait for a minute or more:
  // the longer a block, the fewer bytes.
  bool urgent() const { return condenser_.urgent() || notes_after_ > 0 || stands_ || hurries_; }
  bool full() const;  // flush before more is added
  // A block holds one more, beside its lines; where not, lines of it cannot be told before the next flush.
  bool has_room_for_source() const;
  // The next block.
  std::string flush(TimeNs now);
  const logs::CondenseCounts& counts() const { return condenser_.counts(); }
  // Heartbeats and the like, more than a block holds.
  uint64_t dropped_notes() const {
    return dropped_notes_ + loop_.dropped() + (comm_ ? comm_->condenser.dropped() : 0);
  }

 private:
  void note(uint8_t kind, TimeNs now, std::string_view body);
  void take_comm(const CommInput& input, TimeNs now);
  void note_comm(TimeNs now);
  void take_rows(std::span<const MetricRow> rows, TimeNs now);
  void note_loop(TimeNs now);
  bool has_room_for_note() const;

  // Of a host whose processes write records.
  struct Comm {
    comm::Condenser condenser;
    comm::CommTrace trace;
    std::string host;
    TimeNs came_ns = kNoTime;
    std::vector<CommRecord> stands;  // that were told to be inside of an operation
    Comm();
  };
  std::unique_ptr<Comm> comm_;
  bool stands_ = false;  // since the last flush

  LoopPacker loop_;
  ReadBeside beside_;  // since the last flush

  uint64_t session_, block_ = 0;
  logs::Condenser condenser_;
  PackedWriter before_, after_;  // notes before and after the block's lines
  bool hurries_ = false;         // a dump: what it tells of is a hang
  uint64_t notes_before_ = 0, notes_after_ = 0, dropped_notes_ = 0;
};

// Who takes what a reader reads. Called in order, during read() alone.
class InputSink {
 public:
  virtual ~InputSink() = default;
  // The number that the source has here.
  virtual SourceId open(SourceInfo info, TimeNs now) = 0;
  // All but SourceOpened; sources by their numbers here. A batch is borrowed for the call.
  virtual void take(Input input, TimeNs now) = 0;
  virtual void ends(bool failed, TimeNs now) = 0;
  virtual void alive(bool alive, TimeNs now) = 0;
};

// The rules of `rules` by their names; it must outlive what it gives.
logs::Expander::FindRule rule_finder(const rules::Ruleset* rules);

class InputReader {
 public:
  explicit InputReader(logs::Expander::FindRule find) : expander_(std::move(find)) {}

  // For what comes from now on.
  void set_rules(logs::Expander::FindRule find) { expander_.set_rules(std::move(find)); }
  // The next block, whole or not at all. After an error the session is over; a new one needs a new reader.
  Status read(std::string_view block, InputSink& sink);
  uint64_t session() const { return session_; }
  uint64_t blocks() const { return next_; }  // read so far
  // What could not be used, a sentence each.
  std::vector<std::string> troubles() const;

  // Session and number of a block, to tell which reader it is for.
  struct BlockId {
    uint64_t session = 0, number = 0;
  };
  static Result<BlockId> id_of(std::string_view block);

 private:
  struct Note;
  bool read_notes(PackedReader& in, std::vector<Note>& out);
  bool read_comm(PackedReader& body, TimeNs now, std::vector<Note>& out);
  bool read_loop(uint8_t kind, PackedReader& body, TimeNs now, std::vector<Note>& out);
  void apply(Note& note, InputSink& sink);

  logs::Expander expander_;
  uint64_t session_ = 0, next_ = 0;
  bool broken_ = false;
  std::vector<SourceId> sources_;  // their numbers here
  uint64_t unknown_notes_ = 0;
  LoopUnpacker loop_;
  std::vector<comm::RankStreams> streams_;  // of the session
  size_t streams_told_ = 0;                 // with those of the block that is read
  size_t ranks_told_ = 0, notes_told_ = 0;  // of that block
  size_t flight_ranks_ = 0;                 // that its dumps may still hold
};

}  // namespace culprit::core
