#include "app/offline/comm_reading.h"

#include <algorithm>
#include <memory>
#include <new>
#include <set>
#include <tuple>
#include <utility>

#include "app/jobs/task_thread.h"
#include "app/offline/open_files.h"
#include "base/limits.h"
#include "ingest/comm_file.h"
#include "ingest/inspector_file.h"
#include "ingest/profiler_trace.h"

namespace culprit::app {
namespace {

// Records read from a file at a time: 128 KB, a step of some of a host's ranks.
constexpr size_t kBlock = 2048;
// Blocks per round: one thread reads them while another feeds the previous round to the engine; 4 MB, which
// stay in the processor's cache.
constexpr size_t kBlocks = 32;

// A file with what it takes to open it.
struct CommInput {
  const ingest::SourceFile* file = nullptr;
  const SourceInfo* info = nullptr;  // only of a profile
};

struct OpenInput {
  std::unique_ptr<ingest::CommSource> reader;
  uint64_t reported = 0, content = 0;  // bytes reported: as progress, and as read
  size_t held = 0;                     // records of a profile
};

struct Block {
  std::string host;
  std::vector<CommRecord> records;
};

// Blocks in reading order; reused to keep its memory.
struct Round {
  std::vector<Block> blocks;
  size_t used = 0;
  uint64_t bytes = 0;  // including headers
  std::vector<Problem> problems;
  bool ended = false;
};

class CommReader {
 public:
  CommReader(const CommInputs& inputs, const ingest::InspectorJob& inspector, ReadProgress& progress)
      : inspector_(inspector), progress_(progress) {
    for (const ingest::SourceFile& file : inputs.traces) files_.push_back({&file});
    for (const ingest::SourceFile& file : inputs.inspector) files_.push_back({&file});
    for (const LogFile& one : inputs.profiles) files_.push_back({&one.file, &one.info});
    readings_.resize(files_.size());
    open_max_ = std::min(kOpen, descriptors_for(std::min(kOpen, files_.size())));
  }

  void next(Round& out) {
    out.used = 0;
    out.problems.clear();
    out.blocks.resize(kBlocks);
    while (out.used < kBlocks && !progress_.stop) {
      while (next_file_ < files_.size() && has_room(files_[next_file_])) open(out);
      if (turns_.empty()) break;
      read(out);
    }
    out.ended = progress_.stop || (turns_.empty() && next_file_ >= files_.size());
  }

 private:
  // Order of reading: the file with the lowest step first, then the one with the fewest records.
  struct Turn {
    uint32_t step = 0;
    uint64_t records = 0;
    size_t file = 0;
    bool operator<(const Turn& o) const {
      return std::tie(step, records, file) < std::tie(o.step, o.records, o.file);
    }
  };

  bool has_room(const CommInput& one) const {
    if (is_heavy(one) && heavy_ >= kOpenCompressed) return false;
    // A profile is read whole when it is opened.
    if (one.info && held_ >= limits::kProfilerOpsOpen / 2 && !turns_.empty()) return false;
    return turns_.size() < open_max_;
  }

  // Whether an open file needs buffers.
  static bool is_heavy(const CommInput& one) {
    return one.file->compression != ingest::Compression::kNone ||
           (!one.info && one.file->kind == ingest::FileKind::kInspector);
  }

  Result<std::unique_ptr<ingest::CommSource>> open_source(const CommInput& one) {
    const ingest::SourceFile& file = *one.file;
    if (one.info) {
      const ingest::TraceOwner owner{one.info->host.value_or(""), one.info->rank};
      const size_t room = limits::kProfilerOpsOpen - std::min(held_, limits::kProfilerOpsOpen);
      return ingest::ProfilerTrace::open(file, owner, room, progress_.stop);
    }
    if (file.kind == ingest::FileKind::kInspector) return ingest::InspectorFile::open(file, inspector_);
    auto reader = ingest::CommFile::open(file);
    if (!reader) return tl::unexpected(std::move(reader.error()));
    return std::make_unique<ingest::CommFile>(std::move(*reader));
  }

  void open(Round& out) {
    const size_t index = next_file_++;
    const CommInput& one = files_[index];
    try {
      auto reader = open_source(one);
      if (!reader) {
        std::string what = reader.error().text;
        if (what.starts_with(one.file->path + ": ")) what = what.substr(one.file->path.size() + 2);
        out.problems.push_back({one.file->path, std::nullopt, std::move(what)});
        return;
      }
      const auto* profile = one.info ? static_cast<const ingest::ProfilerTrace*>(reader->get()) : nullptr;
      readings_[index] = {std::move(*reader), 0, 0, profile ? profile->held() : 0};
    } catch (const std::bad_alloc&) {
      out.problems.push_back({one.file->path, std::nullopt, "out of memory: could not be read"});
      return;
    }
    held_ += readings_[index].held;
    heavy_ += is_heavy(one);
    turns_.insert({0, 0, index});
  }

  void read(Round& out) {
    Turn turn = turns_.extract(turns_.begin()).value();
    OpenInput& one = readings_[turn.file];
    const std::string& path = files_[turn.file].file->path;
    Block& block = out.blocks[out.used];
    try {
      one.reader->next(block.records, kBlock);
    } catch (const std::bad_alloc&) {
      out.problems.push_back({path, std::nullopt, "out of memory: could not be read to its end"});
      block.records.clear();
    }
    progress_.bytes_done += one.reader->consumed() - one.reported;
    one.reported = one.reader->consumed();
    out.bytes += one.reader->content_bytes() - one.content;
    one.content = one.reader->content_bytes();
    const std::vector<CommRecord>& records = block.records;
    if (!records.empty()) {
      block.host = one.reader->header().host;
      ++out.used;
      turn.records += records.size();
      if (records.back().step != kCommUnknown) turn.step = std::max(turn.step, records.back().step);
      turns_.insert(turn);
      return;
    }
    for (Problem& problem : one.reader->problems()) out.problems.push_back(std::move(problem));
    heavy_ -= is_heavy(files_[turn.file]);
    held_ -= one.held;
    one.reader = nullptr;
  }

  const ingest::InspectorJob& inspector_;
  ReadProgress& progress_;
  std::vector<CommInput> files_;
  std::vector<OpenInput> readings_;  // by file, empty if not open
  std::set<Turn> turns_;             // turns of the open files
  size_t next_file_ = 0, open_max_ = 0, heavy_ = 0, held_ = 0;
};

// Files of the Inspector are read twice, which a stream cannot.
ingest::InspectorJob first_reading(CommInputs& inputs, const JobFile& job, const ReadProgress& progress,
                                   std::vector<Problem>& problems) {
  ingest::InspectorJob out(job);
  std::erase_if(inputs.inspector, [&](const ingest::SourceFile& file) {
    if (!file.stream) return false;
    problems.push_back(
        {file.path, std::nullopt, "passed over: NCCL Inspector's lines are read from files only"});
    return true;
  });
  for (const ingest::SourceFile& file : inputs.inspector) {
    try {
      out.add_file(file, progress.stop);
    } catch (const std::bad_alloc&) {
      problems.push_back({file.path, std::nullopt, "out of memory: could not be read to its end"});
    }
  }
  try {
    out.settle();
  } catch (const std::bad_alloc&) {
    problems.push_back({"", std::nullopt, "NCCL Inspector: out of memory: its files are passed over"});
    inputs.inspector.clear();
    return ingest::InspectorJob(job);
  }
  for (Problem& problem : out.problems()) problems.push_back(std::move(problem));
  return out;
}

}  // namespace

std::vector<Problem> read_comm(CommInputs inputs, const JobFile& job, core::Engine& engine,
                               ReadProgress& progress, unsigned threads) {
  std::vector<Problem> problems;
  if (inputs.empty()) return problems;
  const ingest::InspectorJob inspector = first_reading(inputs, job, progress, problems);
  CommReader reader(inputs, inspector, progress);
  Round rounds[2];
  TaskThread ahead;
  const auto read = [&](Round& round) {
    if (threads > 1)
      ahead.start([&] { reader.next(round); });
    else
      reader.next(round);
  };
  size_t turn = 0;
  read(rounds[0]);
  for (bool ended = false; !ended; turn = 1 - turn) {
    ahead.wait();
    Round& round = rounds[turn];
    ended = round.ended;
    if (!ended) read(rounds[1 - turn]);
    std::move(round.problems.begin(), round.problems.end(), std::back_inserter(problems));
    std::vector<core::Input> batch;
    for (size_t i = 0; i < round.used; ++i)
      batch.emplace_back(core::CommInput{round.blocks[i].host, round.blocks[i].records});
    batch.emplace_back(core::NonLogRead{std::exchange(round.bytes, 0), 0});
    engine.step(batch, kNoTime);
  }
  return problems;
}

}  // namespace culprit::app
