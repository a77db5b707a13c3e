// The processes of a job with their places, grouped by stack: waiting, elsewhere, or moving. Built from all
// samples once per report. Pure; borrows the samples.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "core/detect/stacks/places.h"
#include "core/detect/stacks/samples.h"
#include "model/report.h"

namespace culprit::stacks {

struct Member {
  const Process* process = nullptr;
  const Sample* sample = nullptr;  // the newest, by the tool that most processes have
  Found found;
  uint32_t group = 0;  // index into Members::groups
  size_t samples = 1;  // compared samples; equal times count once
  bool moves = false;  // the place changed between samples
  TimeNs span_ns = 0;  // between the first and the last compared sample; 0: unknown
};

// Members with equal stacks; line numbers and frames inside of the telling frame may differ.
struct Group {
  std::vector<uint32_t> members;  // indices into Members::members
  Where where = Where::kHost;
  std::string op;
};

// Samples less far apart count as one moment: they do not prove a standstill.
constexpr TimeNs kApartNs = 5 * kNsPerSecond;

struct Members {
  std::vector<Member> members;           // by rank; without ranks if no process of the dumps has one
  std::vector<Group> groups;             // largest first
  StackTool tool = StackTool::kUnknown;  // of most members
  // Processes that count for no rank: without a rank (if others have one), workers, launchers, without a
  // stack, and ranks with dumps from several hosts at once, as from two jobs.
  std::vector<const Process*> strangers, silent, doubled;
};

// Whether at least two samples some seconds apart show the process at the same place.
inline bool is_stalled(const Member& m) { return m.samples > 1 && m.span_ns >= kApartNs && !m.moves; }

// `keep`: the samples that count; empty: all.
Members members_of(const Samples& samples, const std::function<bool(const Sample&)>& keep = {});

// Whether so many processes share this place of the program that it distinguishes none. They probably wait in
// a call that Python's stack does not show.
bool is_common_place(const Members& members, const Member& member);

// One cluster per group, frames innermost first; line numbers only where all members agree.
std::vector<StackCluster> clusters_of(const Samples& samples, const Members& members,
                                      const std::vector<bool>& healthy);

// "rank 11", "process 4711 of node-3".
std::string name_of(const Process& process);

}  // namespace culprit::stacks
