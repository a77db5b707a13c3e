#include "app/sweep/member.h"

#include <poll.h>

#include <algorithm>
#include <utility>

#include "app/sweep/transfer.h"
#include "base/clock.h"

namespace culprit::app::sweeping {
namespace {

constexpr int kPauseMs = 100;
constexpr TimeNs kConnectWithin = 3 * kNsPerSecond;
constexpr TimeNs kReportWithin = 5 * kNsPerSecond;
// A round of all pairs, and the wait for members that do not answer, are shorter.
constexpr TimeNs kSilenceMost = 900 * kNsPerSecond;

// Connects, also where the meeting is not known yet or an old one.
Result<std::pair<Wire, std::string>> join(const FindMeeting& find, TimeNs until) {
  std::string last = "no coordinator was found";
  bool refused = false;  // later it may be gone
  while (steady_now() < until) {
    if (const auto meeting = find()) {
      const TimeNs within = std::min(until, steady_now() + kConnectWithin);
      auto wire = connect_to(meeting->address, meeting->port, within);
      if (wire && prove_as_connector(*wire, meeting->secret, 0, within))
        return std::pair(std::move(*wire), meeting->secret);
      refused |= wire.has_value();
      last = meeting->address + (refused ? " has another secret, or is no coordinator" : " does not answer");
    }
    ::poll(nullptr, 0, kPauseMs);
  }
  return fail(ErrorCode::kNotFound, last);
}

}  // namespace

Result<End> run_member(MemberOptions options, const FindMeeting& find, TimeNs join_until) {
  auto listener = Listener::open(options.address, 0);
  if (!listener) return tl::unexpected(listener.error());
  auto joined = join(find, join_until);
  if (!joined) return tl::unexpected(joined.error());
  auto& [wire, secret] = *joined;
  const Hello hello{options.rank, listener->port(), options.host, options.address, options.busy};
  if (!wire.send(hello, steady_now() + kReportWithin))
    return fail(ErrorCode::kIo, "the coordinator closed the connection");
  for (;;) {
    auto message = wire.next_message(steady_now() + kSilenceMost);
    if (!message) return tl::unexpected(message.error());
    if (const End* end = std::get_if<End>(&*message)) return *end;
    const Task* task = std::get_if<Task>(&*message);
    if (!task) return fail(ErrorCode::kInvalid, "the coordinator sent what only members send");
    if (!wire.send(run_task(*task, *listener, secret), steady_now() + kReportWithin))
      return fail(ErrorCode::kIo, "the coordinator closed the connection");
  }
}

}  // namespace culprit::app::sweeping
