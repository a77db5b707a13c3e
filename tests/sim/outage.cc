#include "outage.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "base/hash.h"
#include "machines.h"
#include "store/evidence.h"

namespace culprit::sim {
namespace {

using peer::Log;

constexpr const char* kHost = "node-0";
constexpr uint64_t kBytesPerSecond = 100 * 64;  // 100 lines
// Bytes of one read of a file: ten seconds of lines.
constexpr uint64_t kReadBytes = 64 << 10;
constexpr TimeNs kHour = 3600 * kNsPerSecond;
constexpr uint64_t kSpoolBytes = 8 << 20;

// A file, its rotated parts, and their readers.
class RotatedLog {
 public:
  static constexpr uint64_t kFileBytes = 2 << 20, kFiles = 4;  // logrotate keeps 4
  StreamId id = kNoStream;
  uint64_t lost = 0;  // in gaps that the spool has taken
  uint64_t gaps = 0;  // number of these gaps: one, and one more if a restart has room for a last frame

  uint64_t written(TimeNs now) {
    if (began_ns_ == kNoTime) began_ns_ = now;
    const TimeNs until = ended_ns_ == kNoTime ? now : ended_ns_;
    return static_cast<uint64_t>((until - began_ns_) / kNsPerSecond) * kBytesPerSecond;
  }
  void end(TimeNs now) { ended_ns_ = now; }
  void restart() { waiting_ = {}; }  // loses the agent's memory

  Status write(store::Spool& spool, TimeNs now) {
    const uint64_t size = written(now);
    if (waiting_.pieces.empty() && !read(spool, now, size)) return {};
    const Status taken = spool.append(waiting_, now);
    if (!taken) return taken;
    if (const auto& gap = waiting_.pieces[0].gap) lost += gap->bytes, ++gaps;
    waiting_ = {};
    return {};
  }

 private:
  // Reads from the position of the spool; false: no new bytes.
  bool read(store::Spool& spool, TimeNs now, uint64_t size) {
    Piece piece;
    uint64_t at = 0;
    for (const StreamState& state : spool.appended()) {
      id = state.info.id;
      piece.offset = state.size;
      at = state.place ? state.place->offset : 0;
    }
    if (id == kNoStream) {
      StreamInfo info;
      info.id = id = spool.allocate();
      info.job = "job", info.path = "/log/train.log", info.opened_ns = now;
      waiting_.opened.push_back(info);
    }
    if (at >= size) return false;
    const uint64_t rotations = size / kFileBytes;
    const uint64_t oldest = rotations <= kFiles ? 0 : (rotations - kFiles) * kFileBytes;
    if (at < oldest) piece.gap = Gap{oldest - at, 0, "the file was rotated away"}, at = oldest;
    piece.stream = id;
    piece.time_ns = now;
    piece.bytes = text_of(kHost, Log::kEvidence, id, at, std::min(kReadBytes, size - at));
    piece.place = FilePlace{1, 1, 0, 0, at + piece.bytes.size(), 0, 0};
    waiting_.pieces.push_back(std::move(piece));
    return true;
  }

  TimeNs began_ns_ = kNoTime, ended_ns_ = kNoTime;
  PieceBatch waiting_;  // read and not taken yet: reading waits
};

class Outage {
 public:
  explicit Outage(const std::string& folder) : world_(1) {
    witness_.fault = [this](const std::string& what) { broken(what); };
    AgentPlan plan;
    plan.host = kHost;
    plan.seed = 2;
    plan.spool_bytes = kSpoolBytes;
    plan.segment_bytes = 256 << 10;
    plan.frame_bytes = peer::kMessageBytes;
    plan.write = [this](Log log, store::Spool& spool, TimeNs now) {
      return log == Log::kEvidence ? log_.write(spool, now) : Status();
    };
    agent_ = std::make_unique<Daemon>(world_, plan, witness_);
    CollectorPlan collector;
    collector.folder = folder;
    collector.seed = 3;
    collector_ = std::make_unique<CollectorMachine>(world_, collector, witness_);
  }

  bool run(uint64_t days) {
    collector_->start();
    agent_->start();
    pass(kHour / 6);
    need(agent_->refused_appends == 0, "with a collector something was refused");
    collector_->kill(SimEnv::Death::kPowerLoss);
    const TimeNs outage = static_cast<TimeNs>(days) * 24 * kHour;
    pass(outage / 2);
    agent_->kill(SimEnv::Death::kKilled);
    log_.restart();
    pass(kHour);
    if (!agent_->start()) broken("the agent does not start: " + agent_->why_not_started);
    pass(outage / 2);
    const uint64_t refused = agent_->refused_appends, stored = agent_->spool(Log::kEvidence).stats().bytes;
    need(refused > 0, "the spool's bound did not act");
    const TimeNs back = world_.monotonic_ns();
    collector_->start();
    for (int i = 0; i < 3600 && broken_.empty() && !caught_up(); ++i) pass(kNsPerSecond);
    const TimeNs took = world_.monotonic_ns() - back;
    pass(kHour / 6);  // and continues as before
    log_.end(wall());
    for (int i = 0; i < 600 && broken_.empty() && !(agent_->is_done() && caught_up()); ++i)
      pass(kNsPerSecond);
    need(agent_->is_done(), "not all of it is acknowledged");
    pass(10 * kNsPerSecond);
    verify();
    if (!broken_.empty()) return fmt::print("FAIL outage: {}\n", broken_), false;
    fmt::print(
        "{} days: {:.1f} MB of spool took {:.1f} MB of {:.0f} MB written, the source waited {} times; "
        "caught up {} s after the collector came, {:.0f} MB that were rotated away reported as a gap\n",
        days, mb(stored), mb(arrived_), mb(log_.written(wall())), refused, took / kNsPerSecond,
        mb(log_.lost));
    return true;
  }

 private:
  static double mb(uint64_t bytes) { return static_cast<double>(bytes) / 1e6; }
  TimeNs wall() const { return world_.monotonic_ns() + SimEnvOptions().wall_at_start_ns; }
  void broken(const std::string& what) {
    if (broken_.empty()) broken_ = what;
  }
  void need(bool holds, const char* what) {
    if (!holds) broken(what);
  }
  void pass(TimeNs ns) {
    // One hour at a time, to check the limits.
    for (; ns > 0 && broken_.empty(); ns -= kHour) {
      if (!world_.run_for(std::min(ns, kHour))) broken("time stands still");
      agent_->check_bounds();
      collector_->check_bounds();
    }
  }
  bool caught_up() {
    for (const StreamState& state : agent_->spool(Log::kEvidence).appended())
      return state.place && state.place->offset + 2 * kBytesPerSecond >= log_.written(wall());
    return false;
  }

  void verify() {
    store::StoredQuery query;
    query.host = kHost, query.job = "job", query.kind = store::LogKind::kEvidence;
    const auto stored = collector_->archive().stored(query);
    if (!stored || stored->size() != 1) return broken("its evidence is not one source");
    uint64_t at = 0, gaps = 0, missing = 0;  // positions in the file
    store::EvidenceSink sink;
    sink.bytes = [&](std::string_view bytes) {
      if (bytes != text_of(kHost, Log::kEvidence, log_.id, at, bytes.size()))
        return broken(fmt::format("byte {} is not what was written", at)), false;
      at += bytes.size(), arrived_ += bytes.size();
      return true;
    };
    sink.gap = [&](const store::EvidenceGap& gap) { ++gaps, missing += gap.gap.bytes, at += gap.gap.bytes; };
    const auto damage = store::EvidenceReader(collector_->disk, collector_->plan.folder)
                            .read({{stored->front().stored}, 0, UINT64_MAX}, sink);
    if (!damage) return broken(damage.error().text);
    if (gaps != log_.gaps || missing != log_.lost || missing == 0)
      broken(fmt::format("{} bytes were lost, and {} are reported in {} gaps", log_.lost, missing, gaps));
    if (at != log_.written(wall()))
      broken(fmt::format("{} bytes were written, and {} are there or reported", log_.written(wall()), at));
  }

  World world_;
  Witness witness_;
  RotatedLog log_;
  std::unique_ptr<Daemon> agent_;
  std::unique_ptr<CollectorMachine> collector_;
  std::string broken_;
  uint64_t arrived_ = 0;
};

}  // namespace

bool run_outage(uint64_t days, const std::string& folder) { return Outage(folder).run(days); }

}  // namespace culprit::sim
