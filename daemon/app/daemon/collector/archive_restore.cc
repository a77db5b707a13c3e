#include "app/daemon/collector/archive_restore.h"

#include <fmt/format.h>

#include <utility>

#include "store/archive_replay.h"

namespace culprit::app {
namespace {

// Bytes per part, which limits the wait of queries. After kArchiveRounds rounds the agents pause.
constexpr uint64_t kArchivePartBytes = 4 << 20;
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
  options_.worker->submit(
      [archive = options_.archive, writer = options_.writer, work, plan, over,
       ended = rounds_ == 0 ? options_.ended : std::set<std::string>()] {
        writer->commit(*work);
        work->stats = archive->stats();
        *plan = archive->replay_plan();
        const store::StoredQuery query{.places = false, .kind = store::LogKind::kCondensed};
        if (ended.empty()) return;
        if (auto stored = archive->stored(query))
          for (const store::HostStream& stream : *stored)
            if (stream.stored.state.ended && ended.contains(stream.stored.state.info.job))
              over->emplace(stream.stored.epoch, stream.stored.state.info.id);
      },
      [this, work, plan, over] {
        if (stopped_) return;
        options_.committed(*work);
        if (!work->written && last_) return retry_timer_->start(kRestoreRetryNs);
        if (*plan)
          feed_->plan = std::move(**plan);
        else
          options_.report_error(plan->error().text + "; jobs of before are known from what comes only");
        feed_->over.merge(*over);
        feed_part();
      });
}

void ArchiveRestore::feed_part() {
  const auto whole = std::make_shared<bool>(true);
  options_.engine->query(
      [feed = feed_, whole](LiveJobs& live, TimeNs) {
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
        *whole = feed->replay.advance(feed->plan, kArchivePartBytes, visitor);
      },
      [this, whole] {
        if (!stopped_) *whole ? round_done() : feed_part();
      });
}

void ArchiveRestore::round_done() {
  ++rounds_;
  if (!last_) {
    // Pauses the agents for the last round: little is left, or the limit of rounds is reached.
    last_ = std::exchange(feed_->bytes, 0) < kArchivePartBytes || rounds_ >= kArchiveRounds;
    if (last_) options_.pause();
    return next_round();
  }
  const store::ReadDamage damage = feed_->replay.damage();
  if (!damage.first.empty())
    options_.report_error(
        fmt::format("archive: {}; {} damaged frames are left out", damage.first, damage.frames));
  const auto done = std::move(options_.done);  // the callback destroys this object
  done();
}

}  // namespace culprit::app
