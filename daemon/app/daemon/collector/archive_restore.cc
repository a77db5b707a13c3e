#include "app/daemon/collector/archive_restore.h"

#include <fmt/format.h>

#include <utility>

#include "store/archive_replay.h"

namespace culprit::app {
namespace {

// After kArchiveRounds rounds the agents pause. A round of less than this is the last before it.
constexpr uint64_t kShortRoundBytes = 4 << 20;
constexpr int kArchiveRounds = 12;
constexpr TimeNs kRestoreRetryNs = kNsPerSecond;

using Streams = std::set<std::pair<uint64_t, StreamId>>;

}  // namespace

// Used by the engine's worker during a part.
struct ArchiveRestore::Feed {
  Feed(io::Files& files, const std::string& folder) : replay(files, folder) {}
  store::ArchiveReplay replay;
  store::ReplayPlan plan;
  Streams over;        // skipped streams: ended ones of ended jobs
  uint64_t bytes = 0;  // bytes of this round
  bool passes_over = false;
};

ArchiveRestore::ArchiveRestore(io::Env& env, io::Files& files, ArchiveRestoreOptions options)
    : env_(env),
      options_(std::move(options)),
      feed_(std::make_shared<Feed>(files, options_.folder)),
      retry_timer_(env.timer([this] { next_round(); })) {}

void ArchiveRestore::next_round() {
  auto work = std::make_shared<ArchiveWork>();
  work->now = env_.now(io::Clock::kWall);
  auto plan = std::make_shared<Result<store::ReplayPlan>>();
  auto over = std::make_shared<Streams>();
  auto bytes = std::make_shared<uint64_t>(0);
  options_.worker->submit(
      [archive = options_.archive, writer = options_.writer, work, plan, over, bytes, first = rounds_ == 0,
       ended = options_.ended] {
        writer->commit(*work);
        work->stats = archive->stats();
        *plan = archive->replay_plan();
        const store::StoredQuery query{.places = false, .kind = store::LogKind::kCondensed};
        if (!first) return;
        if (auto stored = archive->stored(query))
          for (const store::HostStream& stream : *stored) {
            const StreamState& state = stream.stored.state;
            if (state.ended && ended.contains(state.info.job))
              over->emplace(stream.stored.epoch, state.info.id);
            else
              *bytes += state.size;
          }
      },
      [this, work, plan, over, bytes] {
        if (stopped_) return;
        options_.committed(*work);
        if (!work->written && last_) return retry_timer_->start(kRestoreRetryNs);
        if (*plan)
          feed_->plan = std::move(**plan);
        else
          options_.report_error(plan->error().text + "; jobs of before are known from what comes only");
        feed_->over.merge(*over);
        bytes_ += *bytes;
        feed_->passes_over = feed_->passes_over || (options_.whole_bytes && *bytes > *options_.whole_bytes);
        feed_part();
      });
}

void ArchiveRestore::feed_part() {
  const auto whole = std::make_shared<bool>(true);
  const uint64_t before = feed_->bytes;
  options_.engine(
      [feed = feed_, whole, most = options_.part_bytes, newest = options_.newest_ns](LiveJobs& live, TimeNs) {
        if (feed->passes_over) live.restoring({}, {}, newest);
        const auto give = [&](const store::LogOrigin& log, auto into, const auto& one, TimeNs at) {
          RemoteBatch batch{log.host, log.epoch, {}};
          (batch.batch.*into).push_back(one);
          live.ingest(batch, at);
          return true;
        };
        store::ArchiveVisitor visitor;
        visitor.wanted = [&](const store::LogOrigin& log, const StreamInfo& info) {
          if (info.kind != OriginKind::kCondensed || feed->over.contains({log.epoch, info.id})) return false;
          return give(log, &PieceBatch::opened, info, info.opened_ns);
        };
        visitor.piece = [&](const store::LogOrigin& log, const Piece& piece) {
          feed->bytes += piece.bytes.size();
          return give(log, &PieceBatch::pieces, piece, piece.time_ns);
        };
        *whole = feed->replay.advance(feed->plan, most, visitor);
      },
      [this, whole, before] {
        bytes_read_ += feed_->bytes - before;
        if (!stopped_) *whole ? round_done() : feed_part();
      });
}

void ArchiveRestore::round_done() {
  ++rounds_;
  if (!last_) {
    // Pauses the agents for the last round: little is left, or the limit of rounds is reached.
    last_ = std::exchange(feed_->bytes, 0) < kShortRoundBytes || rounds_ >= kArchiveRounds;
    if (last_) options_.pause();
    return next_round();
  }
  const store::ReadDamage damage = feed_->replay.damage();
  if (!damage.first.empty())
    options_.report_error(
        fmt::format("archive: {}; {} damaged frames are left out", damage.first, damage.frames));
  const bool passed_over = feed_->passes_over;
  const auto done = std::move(options_.done);  // the callback destroys this object
  done(passed_over);
}

}  // namespace culprit::app
