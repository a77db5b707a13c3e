// Reads the files of NCCL's Inspector, and RCCL's (formats.md section 3): one JSON object a line for each
// operation that ended, a file per process. They name ranks within communicators only, so the files of a job
// are read twice: InspectorJob first finds the processes and their global ranks, then InspectorFile makes
// records. One thread at a time; InspectorFile borrows the settled InspectorJob. Content is untrusted: lines,
// processes and members are limited, and what is beyond is counted.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/status.h"
#include "base/time.h"
#include "ingest/comm_source.h"
#include "ingest/decompress.h"
#include "model/topology.h"

namespace culprit::ingest {

struct InspectorLine {
  uint64_t comm = 0;
  uint32_t rank = 0, n_ranks = 0;  // within the communicator
  std::string host;
  uint64_t pid = 0;
  CommOp op = CommOp::kAllReduce;
  uint32_t peer = kCommUnknown;  // of send and recv: rank within the communicator
  uint64_t sn = 0;  // NCCL's number: per communicator and function; for send and recv per communicator
  uint64_t bytes = 0;
  uint64_t start_ns = 0, end_ns = 0;
  bool has_times =
      false;  // false: the times are those of the writing, as without NCCL_INSPECTOR_DUMP_VERBOSE
  bool device_time = false;  // the duration is from the GPU's clock
};

enum class InspectorPiece : uint8_t {
  kOperation,
  kOther,  // an object that is none of Inspector's operations
  kBroken  // no object, or without what it must have
};
InspectorPiece parse_inspector_line(std::string_view line, InspectorLine& out);

// The communicator's id for records: NCCL numbers operations per function, so each function is a stream of
// its own.
uint64_t inspector_stream(uint64_t comm, CommOp op);

// A peer within the communicator and a direction, as a key.
inline uint64_t inspector_pair(uint32_t peer, bool sends) { return uint64_t{peer} << 1 | (sends ? 1 : 0); }

// Lines of a decompressed text up to a limit; longer ones are passed over and counted.
class LimitedLines {
 public:
  explicit LimitedLines(Decompressor bytes) : bytes_(std::move(bytes)) {}
  // Valid until the next call. False: the end.
  bool next(std::string_view& line);
  uint64_t too_long() const { return too_long_; }
  uint64_t content_bytes() const { return content_bytes_; }
  bool cut() const { return cut_; }  // the last line has no end
  const Decompressor& bytes() const { return bytes_; }

 private:
  Decompressor bytes_;
  std::string buffer_, last_;
  size_t at_ = 0;
  uint64_t too_long_ = 0, content_bytes_ = 0;
  bool ended_ = false, skipping_ = false, cut_ = false;
};

class InspectorJob {
 public:
  static constexpr uint32_t kNoProcess = UINT32_MAX;

  // `job` (borrowed): its hosts and ranks per host number the ranks where no communicator does.
  explicit InspectorJob(const JobFile& job) : job_(job) {}

  // Reads a file for the first time; `stop`: see ReadProgress.
  void add_file(const SourceFile& file, const std::atomic<bool>& stop);
  void add_line(const InspectorLine& line);
  // After the last file: numbers the ranks.
  void settle();
  // After settle(): about the job as a whole; and by file, from its first reading.
  std::vector<Problem> problems() const;

  struct Stream {  // a function of a communicator in a process
    CommOp op = CommOp::kAllReduce;
    uint64_t first_sn = 0, last_sn = 0, count = 0;
  };
  struct Hole {       // operations without a line
    uint64_t sn = 0;  // at most this number
    uint64_t count = 0;
  };
  struct PairSide {  // sends to a peer, or receives from it
    uint64_t count = 0;
    uint64_t missing = 0;         // sum of `lost`
    std::vector<Hole> lost = {};  // after settle(): ascending, each with the count of those before it
    uint64_t all() const { return count + missing; }
    void lose(Hole hole) {
      lost.push_back(hole);
      missing += hole.count;
    }
  };
  struct Numbered {
    uint64_t sn = 0, pair = 0;
  };
  using PairCounts = std::map<uint64_t, uint64_t>;
  struct Membership {
    uint32_t comm = 0;  // index
    uint32_t rank = 0;  // within it
    uint64_t first_ns = 0;
    uint64_t last_written_ns = 0;  // of its operations without times
    std::vector<Stream> streams;
    std::map<uint64_t, PairSide> pairs = {};  // by inspector_pair()
    std::vector<Numbered> p2p = {};           // until settle(), in the order of the lines
    bool lost_p2p = false;  // some are beyond limits; after settle() also: have no line, or two
  };
  struct Process {
    std::string host;
    uint64_t pid = 0;
    uint32_t global = kCommUnknown;  // unknown: of an earlier run, or beyond limits
    uint32_t device = kCommUnknown;  // index on its host
    uint64_t first_ns = UINT64_MAX, last_ns = 0;
    std::map<uint64_t, Membership> comms;  // by id
  };
  struct Comm {
    uint64_t id = 0;
    uint32_t n_ranks = 0;
    std::vector<std::pair<uint32_t, uint32_t>> members;  // rank, process; sorted after settle()
    bool repeats = false;  // after settle(): several processes say that they have the same rank
  };
  uint32_t find_process(const std::string& host, uint64_t pid) const;
  const std::vector<Process>& processes() const { return processes_; }
  const std::vector<Comm>& comms() const { return comms_; }
  // The global rank of a communicator's rank; kCommUnknown: it has no records.
  uint32_t global_rank(uint32_t comm, uint32_t rank) const;
  // Whether both sides of the pair have the same sends and receives, so that their order matches them.
  bool matches(const Membership& own, uint64_t pair) const;
  bool use_untimed() const { return use_untimed_; }

 private:
  void drop_earlier_runs();
  bool number_by_world();
  bool add_p2p(Membership& own, const InspectorLine& line);
  std::vector<uint32_t> places() const;
  std::vector<uint32_t> order_by_members();
  void number_in_order(const std::vector<uint32_t>& order);
  void number_devices();
  void find_lost_p2p();
  PairCounts lacking(const Membership& own) const;
  void share_lost(Membership& own, Hole hole) const;
  const Membership* find_member(uint32_t comm, uint32_t rank) const;
  bool is_current(uint32_t process) const { return current_[process]; }

  const JobFile& job_;
  std::vector<Process> processes_;
  std::map<std::pair<std::string, uint64_t>, uint32_t> by_name_;
  std::vector<Comm> comms_;
  std::unordered_map<uint64_t, uint32_t> by_id_;
  size_t members_ = 0, p2p_ = 0;  // members and pairs; lines of sends and receives
  uint64_t operations_ = 0, untimed_ = 0, bunched_ = 0, beyond_ = 0, changed_ranks_ = 0, lost_p2p_ = 0;
  size_t earlier_ = 0;
  std::vector<bool> current_;  // by process: not of an earlier run
  bool use_untimed_ = true, guessed_ = false, contradicts_ = false;
  uint32_t world_ = 0;  // ranks of the communicator that numbers them without job.toml; 0: none
  std::vector<Problem> problems_;
};

class InspectorFile : public CommSource {
 public:
  static Result<std::unique_ptr<InspectorFile>> open(const SourceFile& file, const InspectorJob& job);
  static std::unique_ptr<InspectorFile> over(Decompressor bytes, const InspectorJob& job);

  const CommHeader& header() const override { return header_; }
  void next(std::vector<CommRecord>& out, size_t most) override;
  std::vector<Problem> problems() const override { return {}; }  // InspectorJob has them
  uint64_t consumed() const override { return lines_.bytes().consumed(); }
  uint64_t content_bytes() const override { return lines_.content_bytes(); }

 private:
  InspectorFile(Decompressor bytes, const InspectorJob& job) : lines_(std::move(bytes)), job_(job) {}
  void begin_process();
  bool make_record(CommRecord& out);

  LimitedLines lines_;
  const InspectorJob& job_;
  CommHeader header_;
  InspectorLine line_;
  bool held_ = false;  // `line_` has not become a record yet
  uint32_t process_ = InspectorJob::kNoProcess;
  std::set<uint32_t> begun_;       // processes whose joins were given
  std::vector<CommRecord> joins_;  // to be given before further operations
  struct Pair {
    bool matches = false;
    uint64_t count = 0;
    const InspectorJob::PairSide* side = nullptr;
  };
  std::map<std::pair<uint64_t, uint64_t>, Pair> pairs_;  // by process and communicator, and inspector_pair()
};

}  // namespace culprit::ingest
