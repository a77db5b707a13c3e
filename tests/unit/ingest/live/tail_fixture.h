// A temporary folder with logs, and a tailer over it; the test decides its clock, commits and kills. The
// committed bytes are the evidence, assembled here by offsets alone, independent of the tailer's code. One
// thread.
#pragma once

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <boost/test/unit_test.hpp>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "ingest/live/tailer.h"

namespace culprit::ingest::testing {

class TailFolderFixture {
 public:
  explicit TailFolderFixture(std::string pattern = "*.log", const char* below = "/tmp") : pattern_(pattern) {
    std::string name = std::string(below) + "/culprit-tail-XXXXXX";
    BOOST_REQUIRE(::mkdtemp(name.data()) != nullptr);
    folder = name;
    start();
  }
  TailFolderFixture(const TailFolderFixture&) = delete;
  TailFolderFixture& operator=(const TailFolderFixture&) = delete;
  ~TailFolderFixture() {
    tailer.reset();
    std::filesystem::remove_all(folder);
  }

  std::string at(const std::string& name) const { return folder + "/" + name; }
  void append(const std::string& name, const std::string& bytes) const {
    std::ofstream(at(name), std::ios::binary | std::ios::app) << bytes;
  }
  void rename(const std::string& from, const std::string& to) const {
    std::filesystem::rename(at(from), at(to));
  }
  void remove(const std::string& name) const { std::filesystem::remove(at(name)); }
  void truncate(const std::string& name) const { std::filesystem::resize_file(at(name), 0); }
  void copy(const std::string& from, const std::string& to) const {
    std::filesystem::copy_file(at(from), at(to), std::filesystem::copy_options::overwrite_existing);
  }
  // With the system's own program, as logrotate does.
  void compress(const std::string& name, const std::string& with = "gzip -f") const {
    BOOST_REQUIRE_EQUAL(std::system((with + " '" + at(name) + "'").c_str()), 0);
  }

  // One round; its result is committed unless `commit` is false. `after` is the elapsed time.
  TailOutcome round(TimeNs after = kNsPerSecond, bool commit = true, size_t budget = 8 << 20) {
    now_mono += after;
    TailRound round;
    // The times of files are the system's and are compared with this one; no test waits for it.
    round.now = std::chrono::system_clock::now().time_since_epoch() / std::chrono::nanoseconds(1);
    round.now_mono = now_mono;
    round.budget_bytes = budget;
    round.watched = std::exchange(watched, {});
    round.changed = std::exchange(changed, {});
    TailOutcome outcome = tailer->round(round);
    for (const Problem& problem : outcome.problems) problems.push_back(problem);
    if (watches)
      for (const std::string& path : outcome.watch) watched.push_back(path);
    if (commit) keep(outcome.batch);
    return outcome;
  }
  // Rounds until no more bytes arrive.
  void settle(size_t budget = 8 << 20) {
    for (int quiet = 0, i = 0; quiet < 3 && i < 100'000; ++i) {
      const TailOutcome outcome = round(1100 * kNsPerMs, true, budget);
      quiet = outcome.more || !outcome.batch.pieces.empty() ? 0 : quiet + 1;
    }
  }
  // kill -9: uncommitted results are lost.
  void restart() {
    tailer.reset();
    start();
  }

  std::string evidence(const std::string& name) const {
    std::string all;
    for (const auto& [id, stream] : streams)
      if (stream.state.info.path == at(name)) all += stream.bytes;
    return all;
  }
  size_t sources() const { return streams.size(); }
  size_t gaps(const std::string& name) const {
    size_t n = 0;
    for (const auto& [id, stream] : streams)
      if (stream.state.info.path == at(name)) n += stream.gaps.size();
    return n;
  }
  uint64_t gap_bytes(const std::string& name) const {
    uint64_t n = 0;
    for (const auto& [id, stream] : streams)
      for (const Gap& gap : stream.gaps) n += stream.state.info.path == at(name) ? gap.bytes : 0;
    return n;
  }

  std::string folder;
  std::unique_ptr<Tailer> tailer;
  TimeNs now_mono = 1000 * kNsPerSecond;
  bool watches = false;  // grants every requested watch
  std::vector<std::string> watched, changed;
  std::vector<Problem> problems;
  TailOptions options;

  struct Stream {
    StreamState state;
    std::string bytes;
    std::vector<Gap> gaps;
  };
  std::map<StreamId, Stream> streams;

 private:
  void start() {
    TailOptions fresh = options;
    fresh.glob = folder + "/" + pattern_;
    fresh.allocate = [this] { return next_id_++; };
    fresh.job_of = [](const std::string&) { return "job"; };
    std::vector<StreamState> known;
    for (const auto& [id, stream] : streams) known.push_back(stream.state);
    auto made = Tailer::make(fresh, known);
    BOOST_REQUIRE(made.has_value());
    tailer = std::move(*made);
  }
  void keep(const PieceBatch& batch) {
    for (const StreamInfo& info : batch.opened) {
      BOOST_REQUIRE(!streams.contains(info.id));
      streams[info.id].state.info = info;
    }
    for (const Piece& piece : batch.pieces) {
      BOOST_REQUIRE(streams.contains(piece.stream));
      Stream& stream = streams[piece.stream];
      BOOST_REQUIRE_EQUAL(piece.offset, stream.bytes.size());
      BOOST_REQUIRE_LE(piece.bytes.size(), size_t{256} << 10);
      stream.bytes += piece.bytes;
      if (piece.gap) stream.gaps.push_back(*piece.gap);
      advance(stream.state, piece);
    }
  }

  std::string pattern_;
  StreamId next_id_ = 0;
};

}  // namespace culprit::ingest::testing
