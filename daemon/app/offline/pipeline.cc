#include "app/offline/pipeline.h"

#include <fmt/format.h>

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <exception>
#include <mutex>
#include <new>
#include <thread>

#include "ingest/text_reader.h"

namespace culprit::app {
namespace {

// Pieces that a stream may buffer before its turn, and during its turn in addition to the pieces being
// parsed.
constexpr size_t kAheadOfHead = 2, kAheadAtHead = 4;
// Units opened in addition to one per thread, so that a slow first unit does not stop the others.
constexpr size_t kAhead = 6;
constexpr const char* kNoMemory = "out of memory: could not be read to its end";

struct Piece {
  ingest::ChunkBuffer buffer;
  logs::LogBatch batch;
  uint32_t file = 0;
  bool parsed = false;
};

// Work of one thread at a time: a piece of a plain file, or a whole compressed file.
struct Unit {
  uint32_t file = 0;
  uint64_t chunk = 0;
  bool stream = false;
  std::deque<std::unique_ptr<Piece>> ready;
  bool done = false;
};

class Pipeline {
 public:
  Pipeline(const std::vector<LogFile>& files, const PipelineOptions& options, const TakeBatch& take,
           ReadProgress& progress)
      : files_(files), options_(options), take_(take), progress_(progress) {
    for (uint32_t f = 0; f < files.size(); ++f) {
      const ingest::SourceFile& file = files[f].file;
      const bool stream = ingest::is_stream(file);
      const uint64_t chunks = stream ? 1 : ingest::chunk_count(file.size);
      for (uint64_t c = 0; c < chunks; ++c) {
        units_.emplace_back();
        units_.back().file = f;
        units_.back().chunk = c;
        units_.back().stream = stream;
      }
    }
  }

  std::vector<Problem> run() {
    const auto is_stream = [](const Unit& unit) { return unit.stream; };
    // One thread reads a stream while the others parse its pieces.
    const bool streams = std::any_of(units_.begin(), units_.end(), is_stream);
    const size_t useful = streams ? options_.threads : std::min<size_t>(options_.threads, units_.size());
    threads_ = static_cast<unsigned>(std::max<size_t>(useful, 1));
    std::vector<std::thread> pool;
    pool.reserve(threads_);
    try {
      for (unsigned i = 1; i < threads_; ++i) pool.emplace_back([this] { work(); });
    } catch (const std::exception&) {
      // The caller's thread does the same work, in case the system provides no more threads.
    }
    work();
    for (std::thread& t : pool) t.join();
    if (failure_) std::rethrow_exception(failure_);
    return std::move(problems_);
  }

 private:
  void work() {
    try {
      logs::LineParser parser(options_.parse, options_.scanner ? options_.scanner() : nullptr);
      work_on(parser);
    } catch (...) {
      fail();
    }
  }

  // Stops the work of all threads.
  void fail() {
    std::lock_guard lock(mutex_);
    if (!failure_) failure_ = std::current_exception();
    changed_.notify_all();
  }

  void work_on(logs::LineParser& parser) {
    for (;;) {
      Unit* unit = nullptr;
      {
        std::unique_lock lock(mutex_);
        const auto may_open = [&] { return next_ < units_.size() && next_ < head_ + threads_ + kAhead; };
        changed_.wait(lock, [&] {
          return failure_ || !unparsed_.empty() || may_open() || (next_ >= units_.size() && streams_ == 0);
        });
        if (failure_ || (unparsed_.empty() && !may_open())) return;
        if (unparsed_.empty()) {
          unit = &units_[next_++];
          streams_ += unit->stream;
        }
      }
      if (unit)
        open(*unit, parser);
      else
        parse_one(parser);
      drain();
    }
  }

  void open(Unit& unit, logs::LineParser& parser) {
    try {
      if (unit.stream)
        read_stream(unit, parser);
      else if (!progress_.stop)
        read_chunk(unit, parser);
    } catch (const std::bad_alloc&) {
      add_problem({files_[unit.file].file.path, std::nullopt, kNoMemory});
    }
    std::lock_guard lock(mutex_);
    unit.done = true;
    streams_ -= unit.stream;
    changed_.notify_all();
  }

  std::unique_ptr<Piece> fresh_piece() {
    std::lock_guard lock(mutex_);
    if (spare_.empty()) return std::make_unique<Piece>();
    auto piece = std::move(spare_.back());
    spare_.pop_back();
    return piece;
  }

  void read_chunk(Unit& unit, logs::LineParser& parser) {
    const LogFile& file = files_[unit.file];
    auto piece = fresh_piece();
    auto buffer = ingest::read_plain_chunk(file.file, unit.chunk, std::move(piece->buffer));
    if (!buffer) return add_problem({file.file.path, std::nullopt, buffer.error().text});
    piece->buffer = std::move(*buffer);
    piece->file = unit.file;
    progress_.bytes_done += piece->buffer.range_bytes;
    if (piece->buffer.problem) add_problem(*piece->buffer.problem);
    parse(*piece, parser);
    std::lock_guard lock(mutex_);
    piece->parsed = true;
    unit.ready.push_back(std::move(piece));
  }

  void read_stream(Unit& unit, logs::LineParser& parser) {
    const LogFile& file = files_[unit.file];
    // After a stop a stream still delivers bytes already read, and its problems are reported.
    if (progress_.stop && !file.file.stream) return;
    auto reader = ingest::StreamReader::open(file.file);
    if (!reader) return add_problem({file.file.path, std::nullopt, reader.error().text});
    uint64_t consumed = 0;
    do {
      auto piece = fresh_piece();
      auto buffer = reader->next(std::move(piece->buffer));
      if (!buffer) break;
      piece->buffer = std::move(*buffer);
      piece->file = unit.file;
      progress_.bytes_done += reader->consumed() - consumed;
      consumed = reader->consumed();
      offer(unit, std::move(piece), parser);
    } while (!progress_.stop && !failed());
    if (reader->problem()) add_problem(*reader->problem());
  }

  // Queues the piece for any free thread. If the queue is full, the reading thread parses too.
  void offer(Unit& unit, std::unique_ptr<Piece> piece, logs::LineParser& parser) {
    std::unique_lock lock(mutex_);
    const auto full = [&] {
      const bool head = &unit == &units_[head_];
      return unit.ready.size() >= (threads_ == 1 ? 1 : head ? kAheadAtHead + threads_ : kAheadOfHead);
    };
    piece->parsed = false;
    unit.ready.push_back(std::move(piece));
    try {
      unparsed_.push_back(unit.ready.back().get());
    } catch (...) {
      unit.ready.pop_back();  // the piece is not queued: otherwise no thread would parse it, and delivery
                              // would wait forever
      throw;
    }
    changed_.notify_all();
    while (full() && !failure_) {
      changed_.wait(lock, [&] { return failure_ || !unparsed_.empty() || !full(); });
      if (unparsed_.empty()) continue;
      lock.unlock();
      parse_one(parser);
      drain();
      lock.lock();
    }
  }

  // Parses the oldest unparsed piece, unless another thread has taken it.
  void parse_one(logs::LineParser& parser) {
    Piece* piece = nullptr;
    {
      std::lock_guard lock(mutex_);
      if (unparsed_.empty()) return;
      piece = unparsed_.front();
      unparsed_.pop_front();
    }
    try {
      parse(*piece, parser);
    } catch (const std::bad_alloc&) {
      piece->batch = {};
      piece->batch.source = piece->file;
      piece->batch.index = piece->buffer.index;
      piece->batch.last = piece->buffer.last;
      add_problem({files_[piece->file].file.path, piece->buffer.offset,
                   fmt::format("out of memory: {} bytes are left out", piece->buffer.range_bytes)});
    }
    std::lock_guard lock(mutex_);
    piece->parsed = true;
    changed_.notify_all();
  }

  bool failed() {
    std::lock_guard lock(mutex_);
    return failure_ != nullptr;
  }

  void parse(Piece& piece, logs::LineParser& parser) const {
    const ingest::ChunkBuffer& buffer = piece.buffer;
    const TextChunk chunk{piece.file,   buffer.index,       buffer.offset,
                          buffer.bytes, buffer.range_bytes, buffer.last};
    parser.parse(chunk, files_[piece.file].info, piece.batch);
  }

  void drain() {
    try {
      hand_over();
    } catch (...) {
      fail();
    }
  }

  // Delivers ready pieces in order; one thread at a time, while the others continue to read.
  void hand_over() {
    std::unique_lock lock(mutex_);
    if (draining_) return;
    draining_ = true;
    while (head_ < units_.size()) {
      Unit& unit = units_[head_];
      if (!unit.ready.empty() && unit.ready.front()->parsed) {
        auto piece = std::move(unit.ready.front());
        unit.ready.pop_front();
        lock.unlock();
        take_(piece->batch);  // after an exception no thread delivers any more
        lock.lock();
        spare_.push_back(std::move(piece));
      } else if (unit.ready.empty() && unit.done) {
        ++head_;
      } else {
        break;
      }
      changed_.notify_all();
    }
    draining_ = false;
  }

  void add_problem(Problem problem) {
    std::lock_guard lock(mutex_);
    problems_.push_back(std::move(problem));
  }

  const std::vector<LogFile>& files_;
  const PipelineOptions& options_;
  const TakeBatch& take_;
  ReadProgress& progress_;
  std::deque<Unit> units_;
  std::vector<std::unique_ptr<Piece>> spare_;
  std::deque<Piece*> unparsed_;  // unparsed pieces of streams, owned by their units
  std::vector<Problem> problems_;
  std::exception_ptr failure_;  // the exception that stopped the work
  std::mutex mutex_;
  std::condition_variable changed_;
  size_t next_ = 0, head_ = 0;
  size_t streams_ = 0;  // being read
  unsigned threads_ = 1;
  bool draining_ = false;
};

}  // namespace

std::vector<Problem> parse_logs(const std::vector<LogFile>& files, const PipelineOptions& options,
                                const TakeBatch& take, ReadProgress& progress) {
  return Pipeline(files, options, take, progress).run();
}

std::vector<Problem> read_logs(const std::vector<LogFile>& files, const PipelineOptions& options,
                               core::Engine& engine, ReadProgress& progress) {
  std::vector<core::Input> opened;
  for (const LogFile& file : files) opened.emplace_back(core::SourceOpened{file.info});
  engine.step(opened, kNoTime);
  const TakeBatch take = [&engine](logs::LogBatch& batch) {
    core::Input input = core::LogInput{&batch};
    engine.step({&input, 1}, kNoTime);
  };
  PipelineOptions own = options;
  if (!own.scanner) own.scanner = [&engine] { return engine.make_scanner(); };
  return parse_logs(files, own, take, progress);
}

}  // namespace culprit::app
