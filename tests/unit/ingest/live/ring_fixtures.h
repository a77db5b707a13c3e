// Common helpers of the tests of rings: a temporary folder, a reader with a store that keeps everything, and
// numbered records. The test process is a producer too, so its reader does not see the lock of ring.h (a
// process never sees its own lock); tests of the lock fork.
#pragma once

#include "culprit/ring.h"

#include <sys/wait.h>

#include <boost/test/unit_test.hpp>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include "ingest/live/ring_reader.h"

namespace culprit::ingest::testing {

class RingFolder {
 public:
  RingFolder() {
    char name[] = "/tmp/culprit-rings-XXXXXX";
    BOOST_REQUIRE(mkdtemp(name) != nullptr);
    path_ = name;
  }
  ~RingFolder() { std::filesystem::remove_all(path_); }
  const std::string& path() const { return path_; }
  size_t files() const {
    size_t n = 0;
    for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator(path_)) ++n;
    return n;
  }

 private:
  std::string path_;
};

inline culprit_ring* make_ring(const std::string& folder, uint32_t capacity, const char* job = "j1") {
  const culprit_ring_options options{sizeof options, folder.c_str(), job, 5, 1, capacity};
  char error[200] = "";
  culprit_ring* ring = culprit_ring_create(&options, error, sizeof error);
  BOOST_REQUIRE_MESSAGE(ring != nullptr, error);
  return ring;
}

inline int push(culprit_ring* ring, uint64_t number) {
  culprit_record record = culprit_record_of(CULPRIT_ALL_REDUCE, CULPRIT_DP);
  record.seq = number;
  record.bytes = ~number;
  return culprit_ring_push(ring, &record);
}

inline std::vector<uint64_t> numbers(uint64_t from, uint64_t to) {
  std::vector<uint64_t> all(to - from);
  std::iota(all.begin(), all.end(), from);
  return all;
}

// A reader and a store. The bytes of a source are stored, and its pieces must be consecutive.
class RingHost {
 public:
  explicit RingHost(const std::string& folder) {
    options.folder = folder;
    options.allocate = [this] { return next_id_++; };
  }

  struct Retained {
    StreamState state;
    std::vector<uint64_t> seqs;
    std::vector<std::pair<uint64_t, uint64_t>> gaps;  // missing records, and the record after them
    uint64_t torn = 0;                                // records that differ from the pushed ones
    uint64_t missing() const {
      uint64_t n = 0;
      for (const auto& [records, at] : gaps) n += records;
      return n;
    }
  };

  void start() {
    std::vector<StreamState> known;
    for (const auto& [id, retained] : streams) known.push_back(retained.state);
    reader = std::make_unique<RingReader>(options, known);
  }

  // A round `after_ns` later; its result is stored.
  RingReader::RingRead round(TimeNs after_ns = 300 * kNsPerMs, size_t budget = 1 << 20) {
    if (!reader) start();
    now += after_ns;
    RingReader::RingRead out = reader->round({1'763'700'000 * kNsPerSecond + now, now, budget});
    for (const StreamInfo& info : out.batch.opened) {
      BOOST_REQUIRE(!streams.contains(info.id));
      streams[info.id].state.info = info;
    }
    for (const Piece& piece : out.batch.pieces) keep(piece);
    for (const Error& problem : out.problems) problems.push_back(problem.text);
    return out;
  }

  void commit() {
    for (const auto& [id, retained] : streams) reader->committed(id, retained.state.size);
  }

  void rounds(int n) {
    for (int i = 0; i < n; ++i) {
      round();
      commit();
    }
  }

  const Retained& only() const {
    BOOST_REQUIRE_EQUAL(streams.size(), 1u);
    return streams.begin()->second;
  }

  RingOptions options;
  std::unique_ptr<RingReader> reader;
  std::map<StreamId, Retained> streams;
  std::vector<std::string> problems;
  TimeNs now = 1000 * kNsPerSecond;

 private:
  void keep(const Piece& piece) {
    BOOST_REQUIRE(streams.contains(piece.stream));
    Retained& retained = streams[piece.stream];
    BOOST_REQUIRE_EQUAL(piece.offset, retained.state.size);
    BOOST_REQUIRE_EQUAL(piece.bytes.size() % 64, 0u);
    BOOST_REQUIRE_LE(piece.bytes.size(), limits::kPieceBytes);
    BOOST_REQUIRE(!retained.state.ended);
    if (piece.gap) {
      retained.gaps.emplace_back(piece.gap->records, piece.offset / 64);
      BOOST_REQUIRE(!piece.gap->reason.empty());
    }
    for (size_t at = 0; at < piece.bytes.size(); at += 64) {
      culprit_record record;
      memcpy(&record, piece.bytes.data() + at, sizeof record);
      retained.seqs.push_back(record.seq);
      retained.torn += record.op != CULPRIT_ALL_REDUCE || record.bytes != ~record.seq;
    }
    retained.state.size += piece.bytes.size();
    if (piece.place) retained.state.place = piece.place;
    retained.state.ended = piece.ends;
  }

  StreamId next_id_ = 7;
};

// Runs `work` in a child that then exits without closing, and waits for the child.
inline void in_child(const std::function<void()>& work) {
  const pid_t child = fork();
  BOOST_REQUIRE(child >= 0);
  if (child == 0) {
    work();
    _exit(0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  BOOST_REQUIRE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

// A child that performs a step on request, and dies by kill -9.
class Child {
 public:
  explicit Child(std::function<void(int step)> work) {
    BOOST_REQUIRE(pipe(to_) == 0 && pipe(from_) == 0);
    pid_ = fork();
    BOOST_REQUIRE(pid_ >= 0);
    if (pid_ != 0) return;
    char c;
    for (int step = 0; ::read(to_[0], &c, 1) == 1; ++step) {
      work(step);
      if (::write(from_[1], &c, 1) != 1) break;
    }
    _exit(0);
  }
  ~Child() {
    kill();
    for (const int fd : {to_[0], to_[1], from_[0], from_[1]}) close(fd);
  }
  void step() {
    char c = 's';
    BOOST_REQUIRE(::write(to_[1], &c, 1) == 1 && ::read(from_[0], &c, 1) == 1);
  }
  void kill() {
    if (pid_ <= 0) return;
    ::kill(pid_, SIGKILL);
    waitpid(std::exchange(pid_, -1), nullptr, 0);
  }
  pid_t pid() const { return pid_; }

 private:
  pid_t pid_ = -1;
  int to_[2] = {-1, -1}, from_[2] = {-1, -1};
};

}  // namespace culprit::ingest::testing
