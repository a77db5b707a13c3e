#include "core/detect/flight/condense.h"

#include <algorithm>
#include <unordered_map>

#include "base/limits.h"

namespace culprit::flight {
namespace {

// Maximum number of open entries and of last entries per group. A rank waits in the first open entry, and
// mismatches appear in the next few. Ranks of a group enqueue only a few operations ahead, so their last
// entries overlap. Jobs have about ten groups per rank.
constexpr size_t kOfGroup = 32;

struct Retained {
  size_t under_way = 0, last = 0;
};

class FlightCondenser {
 public:
  explicit FlightCondenser(const FlightDump& dump) : dump_(dump), retained_(dump.groups.size()) {}

  FlightDump run() {
    out_.rank = dump_.rank;
    out_.host = dump_.host;
    out_.host_guessed = dump_.host_guessed;
    out_.file = dump_.file;
    out_.version = dump_.version;
    out_.written_ns = dump_.written_ns;
    out_.groups = dump_.groups;
    word(0);
    out_.stacks.emplace_back();
    const std::vector<bool> chosen = choose();
    for (size_t i = 0; i < chosen.size(); ++i)
      if (chosen[i]) add(dump_.ops[i]);
    return std::move(out_);
  }

 private:
  std::vector<bool> choose() {
    std::vector<bool> chosen(dump_.ops.size(), false);
    size_t room = limits::kFlightOpsSent;
    const auto take = [&](size_t i, size_t Retained::*count) {
      const FlightOp& op = dump_.ops[i];
      if (chosen[i] || room == 0 || op.group >= retained_.size()) return;
      if (retained_[op.group].*count >= kOfGroup) return;
      ++(retained_[op.group].*count);
      --room;
      chosen[i] = true;
    };
    for (size_t i = 0; i < chosen.size(); ++i)
      if (!dump_.ops[i].done) take(i, &Retained::under_way);
    for (size_t i = chosen.size(); i-- > 0;) take(i, &Retained::last);
    return chosen;
  }

  void add(FlightOp op) {
    for (uint32_t* at : {&op.name, &op.in_sizes, &op.out_sizes, &op.dtypes}) *at = word(*at);
    const auto [at, fresh] = stacks_.try_emplace(op.stack, static_cast<uint32_t>(out_.stacks.size()));
    if (op.stack == 0) {
      at->second = 0;
    } else if (fresh) {
      std::vector<uint32_t> stack;
      for (const uint32_t frame : dump_.stacks[op.stack]) stack.push_back(word(frame));
      out_.stacks.push_back(std::move(stack));
    }
    op.stack = at->second;
    out_.ops.push_back(op);
  }

  uint32_t word(uint32_t old) {
    const auto [at, fresh] = words_.try_emplace(old, static_cast<uint32_t>(out_.words.size()));
    if (fresh) out_.words.push_back(dump_.words[old]);
    return at->second;
  }

  const FlightDump& dump_;
  std::vector<Retained> retained_;  // by group
  std::unordered_map<uint32_t, uint32_t> words_, stacks_;
  FlightDump out_;
};

}  // namespace

FlightDump condense(const FlightDump& dump) { return FlightCondenser(dump).run(); }

}  // namespace culprit::flight
