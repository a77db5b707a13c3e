#include "archive_sink.h"

#include <utility>

#include "store/segment.h"

namespace culprit::sim {

namespace {

constexpr TimeNs kTryAgainNs = kNsPerSecond;

store::LogKind kind_of(peer::Log log) {
  return log == peer::Log::kCondensed ? store::LogKind::kCondensed : store::LogKind::kEvidence;
}

}  // namespace

ArchiveSink::ArchiveSink(io::Env& env, io::Worker& worker, std::shared_ptr<store::Archive> archive)
    : env_(env), worker_(worker), archive_(std::move(archive)), timer_(env.timer([this] { commit(); })) {}

void ArchiveSink::hello(const peer::Hello& hello, HelloDone done) {
  auto marks = std::make_shared<Result<std::vector<peer::LogMark>>>();
  worker_.submit(
      [this, archive = archive_, hello, marks, now = env_.now(io::Clock::kWall)] {
        for (const peer::LogBounds& reported : hello.logs) {
          const auto at = archive->begin({reported.epoch, hello.host, kind_of(reported.log)}, now);
          if (!at) {
            *marks = tl::unexpected(at.error());
            return;
          }
          if (*at && on_committed)
            on_committed(reported.epoch, **at);  // including frames adopted at the start
          (*marks)->push_back({reported.log, reported.epoch, at->has_value(), at->value_or(0)});
        }
      },
      [this, marks, done = std::move(done)] {
        if (*marks)
          for (const peer::LogMark& mark : **marks)
            committed_[mark.epoch] = std::max(committed_[mark.epoch], mark.committed);
        done(std::move(*marks));
      });
}

Status ArchiveSink::append(const Batch& batch, collect::LogItem& item) {
  const TimeNs now = env_.now(io::Clock::kWall);
  if (const auto* skipped = std::get_if<peer::Skipped>(&item))
    return archive_->skip(batch.epochs[static_cast<size_t>(skipped->log)],
                          {skipped->from, skipped->to, now, skipped->reason});
  const auto& frame = std::get<peer::Frame>(item);
  const auto header = store::decode_frame_header(frame.bytes);
  // The frame must agree with its message, and belong to the log of the Hello.
  if (!header || header->sequence != frame.sequence ||
      static_cast<uint8_t>(header->kind) != static_cast<uint8_t>(frame.kind) ||
      header->epoch != batch.epochs[static_cast<size_t>(frame.log)])
    return fail(ErrorCode::kInvalid, "a frame is not what its message says");
  return archive_->append(frame.bytes, now);
}

void ArchiveSink::on_batch(Batch batch, std::function<void(Status)> done) {
  auto shared = std::make_shared<Batch>(std::move(batch));
  auto status = std::make_shared<Status>();
  worker_.submit(
      [this, shared, status] {
        for (collect::LogItem& item : shared->items) {
          *status = append(*shared, item);
          if (!*status) return;
          if (on_taken) on_taken(shared->host, item);
        }
      },
      [this, shared, status, done = std::move(done)] {
        asked_.insert(asked_.end(), shared->epochs.begin(), shared->epochs.end());
        commit_soon();
        done(*status);
      });
}

void ArchiveSink::commit_soon() {
  if (std::exchange(due_, true)) return;
  timer_->start(gather_ns);
}

void ArchiveSink::commit() {
  due_ = false;
  auto result = std::make_shared<Result<std::vector<store::CommittedLog>>>();
  worker_.submit(
      [this, result] {
        *result = archive_->commit(env_.now(io::Clock::kWall));
        if (!*result || !on_committed) return;
        for (const store::CommittedLog& log : **result) on_committed(log.epoch, log.sequence);
      },
      [this, result, asked = std::exchange(asked_, {})] {
        if (!*result) {
          ++failed_commits;
          asked_.insert(asked_.end(), asked.begin(), asked.end());
          if (!std::exchange(due_, true)) timer_->start(kTryAgainNs);
          return;
        }
        ++commits;
        for (const store::CommittedLog& log : **result) committed_[log.epoch] = log.sequence;
        if (collector == nullptr) return;
        for (const store::CommittedLog& log : **result) collector->committed(log.epoch, log.sequence);
        for (const uint64_t epoch : asked)  // duplicates count as committed too
          if (const auto at = committed_.find(epoch); at != committed_.end())
            collector->committed(epoch, at->second);
      });
}

}  // namespace culprit::sim
