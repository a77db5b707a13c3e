#include "core/detect/scene/stands.h"

#include <algorithm>

namespace culprit::scene {
namespace {

void join(const SightCall& more, SightCall& call) {
  if (call.op.empty()) call.op = more.op;
  if (!call.in) call.in = more.in;
  if (!call.out) call.out = more.out;
  if (call.sizes.empty()) call.sizes = more.sizes;
  if (call.site.empty()) call.site = more.site;
}

}  // namespace

void Stand::add(const Sight& sight, uint32_t at) {
  if (sight.enqueued) enqueued = std::max(enqueued, *sight.enqueued), counted = true;
  if (sight.completed) completed = std::max(completed, *sight.completed);
  if (sight.call && sight.call->entered) {
    const bool earlier = !call || call->seq < 0 || (sight.call->seq >= 0 && sight.call->seq < call->seq);
    if (earlier) order = at;
    if (earlier)
      call = sight.call;
    else if (sight.call->seq == call->seq)
      join(*sight.call, *call);
    enqueued = std::max(enqueued, sight.call->seq);
    waited_ns = std::max(waited_ns, sight.waited_ns);
    if (sight.at_ns != kNoTime && sight.waited_ns > 0 &&
        (since_ns == kNoTime || sight.at_ns - sight.waited_ns < since_ns))
      since_ns = sight.at_ns - sight.waited_ns;
  }
  if (sight.state != SightState::kUnknown) state = sight.state, doing = sight.doing;
  if (!evidence && !sight.evidence.text.empty()) evidence = &sight.evidence;
}

}  // namespace culprit::scene
