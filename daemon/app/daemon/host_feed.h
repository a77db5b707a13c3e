// The jobs of this host on their way to a collector's engines: what LiveJobs is to engines that run here. It
// takes what the store gets, in the same order, and gives blocks of condensed inputs (core/wire.h), a session
// for each job, together with marks: how far each source is in them. A job's block and the marks of what is
// in it become durable as one, so after any end the feed goes on behind the marks, with new sessions, and
// nothing is told twice or left out: what a mark covers is passed over when it is given again.
//
// It decides nothing of a job, not even its end: it says what its processes, its lines and its files say.
//
// One thread at a time calls everything here: the uplink's worker. No clock, file or socket; time is an
// argument (wall clock). Batches are borrowed for the call.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/limits.h"
#include "base/time.h"
#include "core/rules/run.h"
#include "model/piece.h"

namespace culprit::app {

struct FeedOptions {
  std::string host;                       // this daemon's
  std::optional<uint32_t> uid;            // this daemon's: what it sends itself may name hosts
  std::vector<std::string> roots;         // fixed folders of the [[log]] globs
  std::shared_ptr<rules::Ruleset> rules;  // null: none
  Zone zone;                              // of times that name none
  TimeNs ended_after_ns = 600 * kNsPerSecond;
  size_t jobs_max = limits::kLiveJobs;
  size_t part_bytes = 1 << 20;  // of blocks in a frame, beyond which the next begins another
  // A session goes on in another one then: a collector that has dropped its first blocks can read none of the
  // rest. Beginning anew costs some kilobytes; 16 MiB are of half a GB of logs.
  uint64_t session_bytes = 16 << 20;
  TimeNs session_ns = 24 * 3600 * kNsPerSecond;
  uint64_t evidence_epoch = 0;             // of the spool whose pieces come
  std::function<StreamId()> allocate;      // of the condensed spool
  std::function<uint64_t()> draw_session;  // random numbers
  // As LiveOptions has them.
  std::function<std::optional<bool>(const std::string& job)> alive = {};
  std::function<void(const std::string& job, const StreamInfo&, const Piece&)> seen = {};
};

struct FeedCounts {
  uint64_t lines = 0, bytes = 0;  // condensed; bytes of their sources
  uint64_t blocks = 0, block_bytes = 0;
  uint64_t blocks_refused = 0;                    // by the condensed spool
  uint64_t bytes_refused = 0;                     // of jobs beyond the bound: evidence only
  uint64_t broken_trace_lines = 0;                // evidence only
  uint64_t dropped_lines = 0, dropped_notes = 0;  // more than a block holds
};

class HostFeed {
 public:
  explicit HostFeed(FeedOptions options);
  ~HostFeed();

  // What the condensed spool tells at a start, before anything is taken.
  void resume(const std::vector<StreamState>& known, TimeNs now);
  // Frames of evidence up to this one need not be given again.
  uint64_t resume_behind() const;

  // The batch's pieces from `first` on, until full(): which is the next. `sequence`: a frame of evidence
  // before whose end no byte of the batch stands.
  struct Taking {
    size_t first = 0;
    uint64_t sequence = 0;
  };
  size_t take(const PieceBatch& batch, const Taking& taking, TimeNs now);
  // What depends on time alone: whether processes live, who is to be forgotten.
  void tick(TimeNs now);

  // Somebody asks for records of these steps of a job: they go with its next block.
  void answer(const std::string& job, const std::vector<int64_t>& steps);

  bool empty(TimeNs now) const;  // a flush would tell nothing
  bool full() const;             // flush before more is taken
  bool urgent() const;           // a collector should know now
  bool hurries() const;          // within seconds
  // What was taken since the last flush, each batch for one frame, in this order. `sequence`: all that was
  // taken stands in frames up to it.
  std::vector<PieceBatch> flush(uint64_t sequence, TimeNs now);

  // The sources that the evidence still knows: marks of others end with the next flush.
  void keep_only(const std::set<StreamId>& known);
  // A batch of the last flush was not kept, and never will be: what was in it is lost, and told no more.
  void refused(const PieceBatch& part);
  // Sessions end, and what follows begins others.
  void renew();
  void reload_rules(std::shared_ptr<rules::Ruleset> rules);
  void set_ended_after(TimeNs ns);

  std::vector<std::string> jobs() const;  // that something came of lately
  size_t streams() const;
  const FeedCounts& counts() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace culprit::app
