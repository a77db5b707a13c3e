#include "core/detect/hang/calls.h"

#include <fmt/format.h>

#include "core/detect/hang/watchdog_lines.h"

namespace culprit::hang {
namespace {

// Operations whose sizes may legitimately differ between ranks.
bool sizes_may_differ(const std::string& op) {
  return op.find("alltoall") != op.npos || op.find("coalesced") != op.npos || op == "send" || op == "recv" ||
         op == "unknown";
}
// Operations in which only the root has all the elements.
bool one_sided(const std::string& op) { return op == "gather" || op == "scatter"; }

}  // namespace

bool is_pair(const std::string& plain) { return plain == "send" || plain == "recv" || plain == "coalesced"; }

bool names_barrier(const ObservedCall& call) {
  return plain_op(call.op).find("barrier") != std::string::npos;
}

bool is_barrier(const ObservedCall& call) {
  return names_barrier(call) ||
         (plain_op(call.op) == "allreduce" && call.in == 1u && call.out.value_or(1) == 1);
}

std::string call_key(const ObservedCall& call) {
  const std::string op = plain_op(call.op);
  std::string out = op;
  if (sizes_may_differ(op)) return out;
  if (!one_sided(op)) {
    if (call.in) out += fmt::format(" in {}", *call.in);
    if (call.out) out += fmt::format(" out {}", *call.out);
    if (!call.sizes.empty()) out += " " + call.sizes;
  }
  return out;
}

bool differ(const ObservedCall& a, const ObservedCall& b) {
  const std::string op = plain_op(a.op), other = plain_op(b.op);
  if (op.empty() || other.empty()) return false;
  if (is_pair(op) || is_pair(other)) return false;  // the two ends legitimately call different operations
  if (op != other) return true;
  if (sizes_may_differ(op)) return false;
  if (!a.sizes.empty() && !b.sizes.empty() && a.sizes != b.sizes) return true;
  if (one_sided(op)) return false;
  return (a.in && b.in && *a.in != *b.in) || (a.out && b.out && *a.out != *b.out);
}

std::string shown_call(const ObservedCall& call) {
  std::string out = call.op.empty() ? "an operation" : call.op;
  if (call.in && call.out && *call.in != *call.out)
    out += fmt::format(" of {} and {} elements", *call.in, *call.out);
  else if (call.in)
    out += fmt::format(" of {} elements", *call.in);
  else if (!call.sizes.empty())
    out += fmt::format(" of [{}]", call.sizes);
  if (!call.site.empty()) out += fmt::format(" at {}", call.site);
  return out;
}

std::string shown_op(const ObservedCall& call) {
  std::string out = call.op.empty() ? "an operation" : call.op;
  if (call.seq >= 0) out += fmt::format(" #{}", call.seq);
  return out;
}

}  // namespace culprit::hang
