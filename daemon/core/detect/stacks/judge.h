// Decides from the places of all processes who is waited for, and how sure that is. Pure.
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
  kMoving,       // most processes go on
  kElsewhere,    // some are not where the others wait
  kOtherCall,    // some wait in another collective than their peers
  kSharedGroup,  // some wait elsewhere, and which rank of their group is to blame is open
  kAllLate,      // most are in the file system, the loader or a checkpoint: no single rank
  kNoneLate,     // all wait, in communication
  kSplit,        // all wait, many of them in another collective than the rest
  kSilent,       // all wait but some that gave no stack
};

struct Judgement {
  Answer answer = Answer::kNothing;
  std::vector<uint32_t> accused;     // indices into Members::members
  std::vector<uint32_t> absent;      // kSilent: ranks
  std::optional<SharedGroup> group;  // kSharedGroup, and kElsewhere with several accused
  Where where = Where::kHost;        // of most accused, or of most processes
  double confidence = 0;
  size_t waiting = 0;       // processes that wait for others
  std::string waits_in;     // "all_reduce", of most of these
  std::string other;        // kSplit: "4 in all_reduce", those that are not in it
  std::string why_none;     // if no rank can be named: the reason
  bool is_stalled = false;  // samples some seconds apart show that the job stands still, or it is known
};

// What other sources know.
struct Circumstances {
  const std::map<uint32_t, std::string>& silent;  // ranks that gave no stack, and why
  bool hangs = false;                             // other evidence says that the job stands still
};
Judgement judge(const Members& members, const GroupLayout& layout, const Circumstances& known);

}  // namespace culprit::stacks
