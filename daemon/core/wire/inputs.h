// Serialises a job's inputs from a host's agent to an engine elsewhere. Lines are condensed
// (core/wire/condense.h). Communication records become summaries by rank and step
// (core/detect/comm/step_summary.h). Metric names become numbers (core/wire/loop.h). Other inputs are
// unchanged. Each input has its time. A block contains the inputs between two flushes. The blocks of a writer
// form a session with a random number; they are numbered from 0, and a reader must read all of them in order.
// Numbers are little-endian; the version comes first. Unknown kinds of notes are skipped and counted.
//
// Pure; one thread per object. A reader's input is untrusted: reading a block of at most limits::kWireBytes
// needs at most 128 MB. A session needs as much memory as base/limits.h allows for forms, writers and
// sources.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "core/detect/comm/trace.h"
#include "core/engine.h"
#include "core/rules/ruleset.h"
#include "core/wire/condense.h"
#include "core/wire/loop.h"

namespace culprit::wire {

class InputWriter {
 public:
  explicit InputWriter(uint64_t session);

  // Rules by their index in later batches; null: none.
  void set_rules(const rules::Ruleset* rules);
  // Takes the inputs of Engine::step in the same order, and before the engine, which modifies batches.
  // Sources are numbered in the order of SourceOpened. RuleOverran is skipped, since it concerns only the
  // local engine.
  void add(const core::Input& input, TimeNs now);
  // Called periodically: detects ranks that wait inside operations, for the other hosts.
  void tick(TimeNs now);
  // Adds the requested records of these steps to the next block, if they are still stored.
  void answer(const std::vector<int64_t>& steps);
  // The job ended on this host.
  void ends(bool failed, TimeNs now);
  // Whether processes of the job are on this host.
  void alive(bool alive, TimeNs now);

  bool empty(TimeNs now) const;  // whether a flush would have no content
  // Whether content should be sent soon: a fault, new words of failure, the job's end. Other content may wait
  // a minute or more: longer blocks compress better.
  bool urgent() const { return condenser_.urgent() || notes_after_ > 0 || stalled_ || hurries_; }
  bool full() const;  // whether to flush before further input
  // Whether the block can declare one more source; if not, lines of a new source need a flush first.
  bool has_room_for_source() const;
  // The next block.
  std::string flush(TimeNs now);
  const CondenseCounts& counts() const { return condenser_.counts(); }
  // Heartbeats and similar notes dropped because the block was full.
  uint64_t dropped_notes() const {
    return dropped_notes_ + loop_.dropped() + (comm_ ? comm_->condenser.dropped() : 0);
  }

 private:
  void note(uint8_t kind, TimeNs now, std::string_view body);
  void add_comm(const core::CommInput& input, TimeNs now);
  void note_comm(TimeNs now);
  void add_rows(std::span<const MetricRow> rows, TimeNs now);
  void note_loop(TimeNs now);
  bool has_room_for_note() const;

  // State of a host whose processes write records.
  struct Comm {
    comm::StepSummarizer condenser;
    comm::CommTrace trace;
    std::string host;
    TimeNs came_ns = kNoTime;
    std::vector<CommRecord> open_records;  // reported as inside an operation
    Comm();
  };
  std::unique_ptr<Comm> comm_;
  bool stalled_ = false;  // ranks wait inside operations, since the last flush

  LoopPacker loop_;
  core::NonLogRead non_log_;  // since the last flush

  uint64_t session_, block_ = 0;
  LineCondenser condenser_;
  PackedWriter before_, after_;  // notes before and after the block's lines
  bool hurries_ = false;         // the block has a dump, which indicates a hang
  uint64_t notes_before_ = 0, notes_after_ = 0, dropped_notes_ = 0;
};

// Receiver of a reader's inputs. Called in order, only during read().
class InputSink {
 public:
  virtual ~InputSink() = default;
  // Returns the receiver's number of the source.
  virtual SourceId open(SourceInfo info, TimeNs now) = 0;
  // Receives all inputs but SourceOpened, with the receiver's numbers of sources. A batch is borrowed for the
  // call.
  virtual void on_input(core::Input input, TimeNs now) = 0;
  virtual void ends(bool failed, TimeNs now) = 0;
  virtual void alive(bool alive, TimeNs now) = 0;
};

// Finds the rules of `rules` by name; `rules` must outlive the result.
LineExpander::FindRule rule_finder(const rules::Ruleset* rules);

class InputReader {
 public:
  // `shapes`: see LineExpander.
  explicit InputReader(LineExpander::FindRule find, FormShapes* shapes = nullptr)
      : expander_(std::move(find), shapes) {}

  // Sets the rules for later blocks.
  void set_rules(LineExpander::FindRule find) { expander_.set_rules(std::move(find)); }
  // Reads the next block completely or not at all. After an error the session has ended; a new session needs
  // a new reader.
  Status read(std::string_view block, InputSink& sink);
  uint64_t session() const { return session_; }
  uint64_t blocks() const { return next_; }  // number of blocks read
  // One sentence for each kind of input that could not be used.
  std::vector<std::string> troubles() const;

  // Session and number of a block, to choose its reader.
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

  LineExpander expander_;
  uint64_t session_ = 0, next_ = 0;
  bool broken_ = false;
  std::vector<SourceId> sources_;  // the receiver's numbers
  uint64_t unknown_notes_ = 0;
  LoopUnpacker loop_;
  std::vector<comm::RankStreams> streams_;          // of the session
  size_t streams_reported_ = 0;                     // including the current block
  size_t ranks_reported_ = 0, notes_reported_ = 0;  // in the current block
  size_t flight_ranks_ = 0;                         // ranks that further dumps may have
};

}  // namespace culprit::wire
