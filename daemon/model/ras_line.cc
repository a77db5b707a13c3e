#include "model/ras_line.h"

#include <span>

#include "base/hash.h"
#include "base/limits.h"
#include "model/json_writer.h"

namespace culprit {
namespace {

class RasLine {
 public:
  explicit RasLine(const RasState& state) : state_(state) {}

  std::string write(const std::string& job, size_t comms) {
    w_.object([&] {
      w_.field("kind", "ras");
      w_.field("job", job);
      w_.field("host", state_.host);
      w_.field("time_ns", state_.at_ns);
      w_.text_or_null("address", state_.address);
      if (state_.user && state_.user->is_pod()) w_.field("pod", state_.user->pod_id());
      if (state_.user && !state_.user->is_pod()) w_.field("user", *state_.user->uid());
      w_.field("version", state_.version);
      w_.field("form", state_.json ? "json" : "text");
      w_.field("answers", state_.answers);
      w_.field("still", state_.still);
      w_.time("still_since_ns", state_.still_since_ns);
      w_.field("communicators", state_.comms_seen);
      w_.field("ranks", state_.ranks);
      w_.field("gone_processes", state_.exited_processes);
      w_.field("dead_processes", state_.dead_processes);
      w_.field("dropped", state_.dropped + (state_.comms.size() - comms));
      w_.list("processes", state_.processes, [&](const RasProcess& process) {
        w_.object([&] {
          w_.field("host", process.host);
          w_.field("pid", process.pid);
        });
      });
      w_.list("gone", state_.exited, [&](const RasExit& one) { exited(one); });
      w_.list("comms", std::span(state_.comms).first(comms), [&](const RasCommState& one) { comm(one); });
    });
    return w_.finish();
  }

 private:
  void number(const char* name, uint32_t value) {
    if (value != kRasUnknown) w_.field(name, value);
  }
  void exited(const RasExit& one) {
    w_.object([&] {
      number("process", one.process);
      number("device", one.device);
      number("world", one.world);
      w_.field("dead", one.dead);
    });
  }
  void member(const RasMember& one) {
    w_.field("rank", one.rank);
    number("process", one.process);
    number("device", one.device);
    number("world", one.world);
  }
  void groups(const char* name, const std::vector<RasGroup>& all) {
    w_.list(name, all, [&](const RasGroup& group) {
      w_.object([&] {
        w_.field("value", group.value);
        w_.field("ranks", group.ranks);
        w_.list("listed", group.listed, [&](const RasMember& one) { w_.object([&] { member(one); }); });
      });
    });
  }
  void comm(const RasCommState& one) {
    w_.object([&] {
      w_.field("hash", hex64(one.hash));
      w_.field("secondary", one.secondary);
      w_.field("size", one.size);
      w_.field("heard", one.reporting);
      w_.field("missing_ranks", one.missing_ranks);
      w_.field("errors", one.errors);
      w_.field("answers", one.answers);
      w_.time("since_ns", one.since_ns);
      w_.list("members", one.members.runs(), [&](const RankList::Run& run) {
        w_.object([&] {
          w_.field("first", run.first);
          w_.field("step", run.step);
          w_.field("count", run.count);
        });
      });
      w_.list("missing", one.missing, [&](const RasMissing& missing) {
        w_.object([&] {
          member(missing.member);
          w_.field("unresponsive", missing.unresponsive);
          w_.field("dead", missing.dead);
        });
      });
      w_.list("counts", one.spreads, [&](const RasSpread& spread) {
        w_.object([&] {
          w_.field("function", spread.function);
          groups("groups", spread.groups);
        });
      });
      groups("phases", one.phases);
    });
  }

  const RasState& state_;
  JsonWriter w_;
};

}  // namespace

std::string ras_line(const RasState& state, const std::string& job) {
  std::string out;
  for (size_t comms = state.comms.size();; comms /= 2) {
    out = RasLine(state).write(job, comms);
    if (out.size() <= limits::kLineBytes || comms == 0) return out;
  }
}

}  // namespace culprit
