// Condenses the jobs of this host for a collector; the counterpart of LiveJobs on a host with engines.
// JobForwarder ingests stored batches in the store's order and writes blocks of condensed inputs
// (core/wire/inputs.h): a session for each job, and marks of the position reached in each source. Blocks and
// their marks become durable together. After any end the forwarder continues behind the marks with new
// sessions and skips bytes before a mark, so no input is lost or sent twice.
//
// JobForwarder makes no decision about a job, not even its end; it forwards facts about processes, lines and
// files.
//
// One thread at a time: the uplink's worker. No clock, file or socket; time is an argument (wall clock).
// Batches are borrowed for the call.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/limits.h"
#include "base/time.h"
#include "core/rules/run.h"
#include "model/piece.h"

namespace culprit::app {

struct JobForwarderOptions {
  std::string host;                       // name of this daemon
  std::optional<uint32_t> uid;            // uid of this daemon, whose own messages may name hosts
  std::vector<std::string> roots;         // fixed folders of the [[log]] globs
  std::string pods = {};                  // see LiveOptions
  std::shared_ptr<rules::Ruleset> rules;  // null: none
  Zone zone;                              // zone for times without one
  // Parser threads: with 2, a second thread parses long queued texts ahead.
  unsigned threads = 1;
  TimeNs ended_after_ns = 600 * kNsPerSecond;
  size_t jobs_max = limits::kLiveJobs;
  size_t part_bytes = 1 << 20;  // size of blocks in a frame before the next frame begins
  // Size at which a new session begins. A collector that dropped the first blocks of a session cannot read
  // the rest. A new session costs some kilobytes; 16 MiB hold about half a GB of logs.
  uint64_t session_bytes = 16 << 20;
  TimeNs session_ns = 24 * 3600 * kNsPerSecond;
  uint64_t evidence_epoch = 0;             // epoch of the spool that holds the pieces
  std::function<StreamId()> allocate;      // allocates streams of the condensed spool
  std::function<uint64_t()> draw_session;  // random numbers
  // See LiveOptions.
  std::function<std::optional<bool>(const std::string& job)> alive = {};
  std::function<void(const std::string& job, const StreamInfo&, const Piece&)> seen = {};
  std::function<std::set<uint32_t>(const std::string& job)> users_of = {};
  // See DumpReading.
  std::function<void(std::string_view path)> reading = {};
  std::function<bool(std::string_view path)> left_out = {};
};

struct JobForwarderCounts {
  uint64_t lines = 0, bytes = 0;  // condensed lines; bytes of the lines' sources
  uint64_t blocks = 0, block_bytes = 0;
  uint64_t blocks_refused = 0;                    // blocks that the condensed spool rejected
  uint64_t bytes_refused = 0;                     // bytes of jobs beyond the limit: kept as evidence only
  uint64_t broken_trace_lines = 0;                // kept as evidence only
  uint64_t dropped_lines = 0, dropped_notes = 0;  // lines and notes beyond the capacity of a block
};

class JobForwarder {
 public:
  explicit JobForwarder(JobForwarderOptions options);
  ~JobForwarder();

  // Restores the marks from the condensed spool at a start, before any batch.
  void resume(const std::vector<StreamState>& known, TimeNs now);
  // Frames of evidence up to this sequence need no replay.
  uint64_t resume_behind() const;

  // Ingests the batch's pieces from `first` on until full(). Returns the index of the next piece. `sequence`:
  // a frame of evidence that ends before every byte of the batch.
  struct Progress {
    size_t first = 0;
    uint64_t sequence = 0;
    std::shared_ptr<const PieceBatch> next = nullptr;  // see LiveJobs::ingest
  };
  size_t ingest(const PieceBatch& batch, const Progress& taking, TimeNs now);
  // Does what depends on time alone: checks processes, forgets old jobs.
  void tick(TimeNs now);

  // A collector's request for records of these steps: the job's next block contains the records.
  void answer(const std::string& job, const std::vector<int64_t>& steps);

  bool empty(TimeNs now) const;  // whether a flush would write nothing
  bool full() const;             // flush before the next ingest
  bool urgent() const;           // the collector should be informed at once
  bool hurries() const;          // the collector should be informed within seconds
  // Data since the last flush, each batch for one frame, in this order. `sequence`: all ingested data is in
  // frames up to this one.
  std::vector<PieceBatch> flush(uint64_t sequence, TimeNs now);

  // Drops marks of sources whose evidence is gone; the next flush writes the change.
  void keep_only(const std::set<StreamId>& known);
  // The spool rejected a batch of the last flush for good: the batch's content is lost and not sent again.
  void refused(const PieceBatch& part);
  // Ends all sessions; later data starts new ones.
  void renew();
  void reload_rules(std::shared_ptr<rules::Ruleset> rules);
  void set_ended_after(TimeNs ns);

  std::vector<std::string> jobs() const;  // ids of jobs with recent data
  size_t streams() const;
  const JobForwarderCounts& counts() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace culprit::app
