// One member of a sweep: joins the coordinator, measures the pairs that it is given, and ends with it.
// Blocking; one thread.
#pragma once

#include <functional>
#include <string>

#include "app/sweep/messages.h"
#include "app/sweep/wire.h"
#include "base/status.h"

namespace culprit::app::sweeping {

struct MemberOptions {
  uint32_t rank = 0;
  std::string host;
  std::string address;  // that other members connect to; empty: as the coordinator sees it
  std::string busy;     // why nothing may be measured here; empty: it may
};

// The coordinator as a member finds it; tried again until the time is over, since it may not be there yet.
struct Meeting {
  std::string address;
  uint16_t port = 0;
  std::string secret;
};
// Nothing: it is not known yet.
using FindMeeting = std::function<std::optional<Meeting>()>;

// Returns what the sweep found of this member's host. Error: it did not take part to the end.
Result<End> run_member(MemberOptions options, const FindMeeting& find, TimeNs join_until);

}  // namespace culprit::app::sweeping
