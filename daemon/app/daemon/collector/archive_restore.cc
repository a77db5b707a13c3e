#include "app/daemon/collector/archive_restore.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

#include "store/archive_replay.h"

namespace culprit::app {
namespace {

// After kArchiveRounds rounds the agents pause. A round of less than this is the last before it.
constexpr uint64_t kShortRoundBytes = 4 << 20;
constexpr int kArchiveRounds = 12;
constexpr TimeNs kRestoreRetryNs = kNsPerSecond;

using Stream = std::pair<uint64_t, StreamId>;  // epoch of the log, and number in it
using Sizes = std::map<Stream, uint64_t>;

}  // namespace

// Used by the engine's worker during a part.
struct ArchiveRestore::Feed {
  Feed(io::Files& files, const std::string& folder) : replay(files, folder) {}
  store::ArchiveReplay replay;
  store::ReplayPlan plan;
  std::set<Stream> over;  // skipped streams: ended ones of ended jobs
  uint64_t bytes = 0;     // bytes of this round
  Sizes ends;             // where the end of each stream begins; before, blocks are passed over
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
  auto over = std::make_shared<std::set<Stream>>();
  auto sizes = std::make_shared<Sizes>();
  options_.worker->submit(
      [archive = options_.archive, writer = options_.writer, work, plan, over, sizes, first = rounds_ == 0,
       ended = options_.ended] {
        writer->commit(*work);
        work->stats = archive->stats();
        *plan = archive->replay_plan();
        const store::StoredQuery query{.places = false, .kind = store::LogKind::kCondensed};
        if (!first) return;
        if (auto stored = archive->stored(query))
          for (const store::HostStream& stream : *stored) {
            const StreamState& state = stream.stored.state;
            const Stream id(stream.stored.epoch, state.info.id);
            if (state.ended && ended.contains(state.info.job))
              over->insert(id);
            else
              sizes->emplace(id, state.size);
          }
      },
      [this, work, plan, over, sizes] {
        if (stopped_) return;
        options_.committed(*work);
        if (!work->written && last_) return retry_timer_->start(kRestoreRetryNs);
        if (*plan)
          feed_->plan = std::move(**plan);
        else
          options_.report_error(plan->error().text + "; jobs of before are known from what comes only");
        feed_->over.merge(*over);
        for (const auto& [stream, size] : *sizes) bytes_ += size;
        if (options_.whole_bytes && bytes_ > *options_.whole_bytes && feed_->ends.empty()) {
          // The last block of each is read, however long it is.
          const uint64_t part = std::max<uint64_t>(1, *options_.whole_bytes / sizes->size());
          for (const auto& [stream, size] : *sizes) feed_->ends[stream] = size - std::min(size, part);
        }
        feed_part();
      });
}

void ArchiveRestore::feed_part() {
  const auto whole = std::make_shared<bool>(true);
  const uint64_t before = feed_->bytes;
  options_.engine(
      [feed = feed_, whole, most = options_.part_bytes](LiveJobs& live, TimeNs) {
        const auto give = [&](const store::LogOrigin& log, auto into, const auto& one, TimeNs at,
                              bool passes_over = false) {
          RemoteBatch batch{log.host, log.epoch, {}, passes_over};
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
          const auto end = feed->ends.find({log.epoch, piece.stream});
          const bool passes_over =
              end != feed->ends.end() && piece.offset + piece.bytes.size() <= end->second;
          return give(log, &PieceBatch::pieces, piece, piece.time_ns, passes_over);
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
  const bool passed_over = !feed_->ends.empty();
  const auto done = std::move(options_.done);  // the callback destroys this object
  done(passed_over);
}

}  // namespace culprit::app
