#include <atomic>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <utility>

#include "app/daemon/api/daemon_api.h"

namespace culprit::app {
namespace {

// Size of a chunk; two chunks are read ahead of a client.
constexpr size_t kChunkBytes = 256 << 10;

// Queue from the reading thread to the sending loop: chunks in order, two at most.
class Pipe {
 public:
  // Returns false if the reader is gone. `reported` is called only while the reader, and thus its Env,
  // exists.
  bool put(serve::EvidenceChunk chunk, const std::function<void()>& reported) {
    std::unique_lock lock(mutex_);
    room_.wait(lock, [&] { return closed_ || chunks_.size() < 2; });
    if (closed_) return false;
    chunks_.push_back(std::move(chunk));
    reported();
    return true;
  }
  std::optional<serve::EvidenceChunk> pop() {
    std::lock_guard lock(mutex_);
    if (chunks_.empty()) return std::nullopt;
    serve::EvidenceChunk chunk = std::move(chunks_.front());
    chunks_.pop_front();
    room_.notify_one();
    return chunk;
  }
  void close() {
    std::lock_guard lock(mutex_);
    closed_ = true;
    room_.notify_one();
  }

 private:
  std::mutex mutex_;
  std::condition_variable room_;
  std::deque<serve::EvidenceChunk> chunks_;
  bool closed_ = false;
};

// State shared by the loop and the thread; only the loop uses `answer`.
struct Shared {
  Pipe pipe;
  std::function<void(Result<serve::EvidenceChunk>)> answer;
  std::optional<Error> failure;
  bool removed = false;

  void serve_one() {
    if (removed || !answer) return;
    if (auto chunk = pipe.pop())
      std::exchange(answer, nullptr)(std::move(*chunk));
    else if (failure)
      std::exchange(answer, nullptr)(tl::unexpected(*failure));
  }
};

class StoredEvidence : public serve::EvidenceReader {
 public:
  StoredEvidence(io::Env& env, store::EvidenceReader reader, store::EvidenceRange range,
                 std::shared_ptr<void> share, std::unique_ptr<io::Worker> worker)
      : share_(std::move(share)), shared_(std::make_shared<Shared>()), worker_(std::move(worker)) {
    auto failure = std::make_shared<std::optional<Error>>();
    worker_->submit([&env, shared = shared_, failure, range = std::move(range), share = share_,
                     reader = std::move(reader)] { *failure = read(env, shared, range, reader); },
                    [shared = shared_, failure] {
                      shared->failure = *failure;
                      shared->serve_one();
                    });
  }
  // A hung disk must not block the loop: the thread ends when its read returns.
  ~StoredEvidence() override {
    shared_->removed = true;
    shared_->pipe.close();
    worker_->abandon();
  }

  void next(std::function<void(Result<serve::EvidenceChunk>)> answer) override {
    shared_->answer = std::move(answer);
    shared_->serve_one();
  }

 private:
  static std::optional<Error> read(io::Env& env, const std::shared_ptr<Shared>& shared,
                                   const store::EvidenceRange& range, const store::EvidenceReader& reader) {
    serve::EvidenceChunk chunk;
    uint64_t at = range.from;
    chunk.offset = at;
    const auto pass = [&] {
      const bool wanted =
          shared->pipe.put(std::move(chunk), [&] { env.post([shared] { shared->serve_one(); }); });
      chunk = {};
      chunk.offset = at;
      return wanted;
    };
    bool wanted = true;
    store::EvidenceSink sink;
    sink.bytes = [&](std::string_view bytes) {
      chunk.bytes += bytes;
      at += bytes.size();
      return wanted = wanted && (chunk.bytes.size() < kChunkBytes || pass());
    };
    sink.gap = [&](const store::EvidenceGap& gap) {
      if (!chunk.bytes.empty() || chunk.gap) wanted = wanted && pass();
      chunk.gap_offset = at;
      at += gap.in_range;
      chunk.offset = at;
      chunk.gap = gap.gap;
      if (chunk.gap->bytes == 0) chunk.gap->bytes = gap.in_range;
    };
    const auto damage = reader.read(range, sink);
    if (!damage) return damage.error();
    chunk.last = true;
    pass();
    return std::nullopt;
  }

  std::shared_ptr<void> share_;
  std::shared_ptr<Shared> shared_;
  std::unique_ptr<io::Worker> worker_;
};

}  // namespace

Result<std::unique_ptr<serve::EvidenceReader>> read_evidence(io::Env& env, store::EvidenceReader reader,
                                                             store::EvidenceRange range,
                                                             std::shared_ptr<void> share) {
  auto worker = env.worker("evidence");
  if (!worker) return tl::unexpected(worker.error());
  return std::make_unique<StoredEvidence>(env, std::move(reader), std::move(range), std::move(share),
                                          std::move(*worker));
}

}  // namespace culprit::app
