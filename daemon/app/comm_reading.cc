#include "app/comm_reading.h"

#include <algorithm>
#include <deque>
#include <future>
#include <new>

#include "ingest/comm_file.h"

namespace culprit::app {
namespace {

// Records taken of a file at a time: 1 MB, some steps of a host's ranks.
constexpr size_t kBlock = 16'384;
// Files open at a time: each holds a descriptor and, where it is compressed, a decoder's window.
constexpr size_t kOpen = 256;

struct Reading {
  const ingest::SourceFile* file = nullptr;
  std::optional<ingest::CommFile> reader;
  uint64_t told = 0;  // bytes, of the progress
};

// What one turn over the open files gave, in their order.
struct Round {
  std::vector<std::pair<std::string, std::vector<CommRecord>>> blocks;
  std::vector<Problem> problems;
  bool ended = false;
};

class CommReader {
 public:
  CommReader(const std::vector<ingest::SourceFile>& files, ReadProgress& progress)
      : files_(files), progress_(progress) {}

  // A turn is bounded, so that two of them (the one that is read and the one that is taken) fit into memory.
  Round next() {
    constexpr size_t kBlocks = 32;
    Round out;
    while (out.blocks.size() < kBlocks && !progress_.stop) {
      while (open_.size() < kOpen && next_file_ < files_.size()) open(out);
      if (open_.empty()) break;
      if (turn_ >= open_.size()) turn_ = 0;
      read(out);
    }
    out.ended = progress_.stop || (open_.empty() && next_file_ >= files_.size());
    return out;
  }

 private:
  void open(Round& out) {
    const ingest::SourceFile& file = files_[next_file_++];
    auto reader = ingest::CommFile::open(file);
    if (!reader) {
      std::string what = reader.error().text;
      if (what.starts_with(file.path + ": ")) what = what.substr(file.path.size() + 2);
      out.problems.push_back({file.path, std::nullopt, std::move(what)});
      return;
    }
    open_.push_back({&file, std::move(*reader), 0});
  }

  void read(Round& out) {
    Reading& one = open_[turn_];
    std::vector<CommRecord> records;
    try {
      one.reader->next(records, kBlock);
    } catch (const std::bad_alloc&) {
      out.problems.push_back({one.file->path, std::nullopt, "out of memory: could not be read to its end"});
      records.clear();
    }
    progress_.bytes_done += one.reader->consumed() - one.told;
    one.told = one.reader->consumed();
    const bool over = records.size() < kBlock;
    if (!records.empty()) out.blocks.emplace_back(one.reader->header().host, std::move(records));
    if (!over) {
      ++turn_;
      return;
    }
    if (one.reader->problem()) out.problems.push_back(*one.reader->problem());
    open_.erase(open_.begin() + static_cast<ptrdiff_t>(turn_));
  }

  const std::vector<ingest::SourceFile>& files_;
  ReadProgress& progress_;
  std::deque<Reading> open_;
  size_t next_file_ = 0, turn_ = 0;
};

}  // namespace

std::vector<Problem> read_comm(const std::vector<ingest::SourceFile>& files, core::Engine& engine,
                               ReadProgress& progress, unsigned threads) {
  std::vector<Problem> problems;
  if (files.empty()) return problems;
  CommReader reader(files, progress);
  const auto policy = threads > 1 ? std::launch::async : std::launch::deferred;
  auto coming = std::async(policy, [&reader] { return reader.next(); });
  for (bool ended = false; !ended;) {
    Round round = coming.get();
    ended = round.ended;
    if (!ended) coming = std::async(policy, [&reader] { return reader.next(); });
    std::move(round.problems.begin(), round.problems.end(), std::back_inserter(problems));
    for (const auto& [host, records] : round.blocks) {
      core::Input input = core::CommInput{host, records};
      engine.step({&input, 1}, kNoTime);
    }
  }
  return problems;
}

}  // namespace culprit::app
