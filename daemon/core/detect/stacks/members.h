// The processes of a job with their places, grouped by stack: who waits, who is elsewhere, who moves. Built
// from all samples once per report. Pure; borrows the samples.
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
  const Sample* sample = nullptr;  // the newest of the tool that most processes have
  Found found;
  uint32_t group = 0;  // index into Members::groups
  size_t samples = 1;  // compared ones, with equal times counted once
  bool moves = false;  // the place changed between samples
  TimeNs span_ns = 0;  // between the first and the last compared sample; 0: unknown
};

// Members with one stack, but for lines and what is inside of the telling frame.
struct Group {
  std::vector<uint32_t> members;  // indices into Members::members
  Where where = Where::kHost;
  std::string op;
};

// Samples less far apart are of one moment: they do not show that a process stands still.
constexpr TimeNs kApartNs = 5 * kNsPerSecond;

struct Members {
  std::vector<Member> members;           // by rank, or without one if no process of the dumps has one
  std::vector<Group> groups;             // largest first
  StackTool tool = StackTool::kUnknown;  // of most members
  // Processes that count for no rank: without a rank where others have one, workers and launchers, without a
  // stack, and ranks whose dumps are of several hosts at a time, as of two jobs.
  std::vector<const Process*> strangers, silent, doubled;
};

// Whether at least two samples some seconds apart show the process at one place.
inline bool is_stalled(const Member& m) { return m.samples > 1 && m.span_ns >= kApartNs && !m.moves; }

// `keep`: which samples count; empty: all.
Members members_of(const Samples& samples, const std::function<bool(const Sample&)>& keep = {});

// Whether so many processes are at this place of the program that it tells none of them apart: they probably
// wait in a call that Python's stack does not show.
bool is_common_place(const Members& members, const Member& member);

// A cluster for each group, frames innermost first; with lines that all members share.
std::vector<StackCluster> clusters_of(const Samples& samples, const Members& members,
                                      const std::vector<bool>& healthy);

// "rank 11", "process 4711 of node-3".
std::string name_of(const Process& process);

}  // namespace culprit::stacks
