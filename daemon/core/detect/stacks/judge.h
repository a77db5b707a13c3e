// Decides from the places of all processes which process the others wait for, and the confidence. Pure.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/detect/stacks/layout.h"
#include "core/detect/stacks/members.h"

namespace culprit::stacks {

enum class Answer : uint8_t {
  kNothing,      // nothing distinguishes the processes
  kMoving,       // most processes make progress
  kElsewhere,    // some are outside of the operation in which the others wait
  kOtherCall,    // some wait in another collective than their peers
  kSharedGroup,  // some wait elsewhere; which rank of their group is at fault is open
  kAllLate,      // most are in the file system, the loader or a checkpoint: no single rank
  kNoneLate,     // all wait, in communication
  kSplit,        // all wait, many of them in another collective than the rest
  kSilent,       // all wait, except for some without a stack
};

struct Judgement {
  Answer answer = Answer::kNothing;
  std::vector<uint32_t> accused;     // indices into Members::members
  std::vector<uint32_t> absent;      // kSilent: ranks
  std::optional<SharedGroup> group;  // kSharedGroup, and kElsewhere with several accused
  Where where = Where::kHost;        // place of most accused, or of most processes
  double confidence = 0;
  size_t waiting = 0;       // processes that wait for others
  std::string waits_in;     // "all_reduce": the operation of most waiting processes
  std::string other;        // kSplit: "4 in all_reduce", the processes outside of `waits_in`
  std::string why_none;     // if no rank can be named: the reason
  bool is_stalled = false;  // samples seconds apart, or other evidence, prove a standstill
};

// Facts from other sources.
struct Circumstances {
  const std::map<uint32_t, std::string>& silent;  // ranks without a stack, with the reason
  bool hangs = false;                             // other evidence proves a standstill
};
Judgement judge(const Members& members, const GroupLayout& layout, const Circumstances& known);

}  // namespace culprit::stacks
