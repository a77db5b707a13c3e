// The processes of a job with their places, grouped by stack: who waits, who is elsewhere, who moves. Built
// from all samples once per report. Pure; borrows the samples.
#pragma once

#include <cstdint>
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
  uint32_t group = 0;  // index into Crowd::groups
  size_t samples = 1;  // compared ones
  bool moves = false;  // the place changed between samples
  TimeNs span_ns = 0;  // between the first and the last compared sample; 0: unknown
};

// Members with one stack, but for lines and what is inside of the telling frame.
struct Group {
  std::vector<uint32_t> members;  // indices into Crowd::members
  Where where = Where::kHost;
  std::string op;
};

struct Crowd {
  std::vector<Member> members;  // by rank; those without one last
  std::vector<Group> groups;    // largest first
};

Crowd make_crowd(const Samples& samples);

// Whether so many processes are at this place of the program that it tells none of them apart: they probably
// wait in a call that Python's stack does not show.
bool is_common_place(const Crowd& crowd, const Member& member);

// A cluster for each group, frames innermost first; with lines that all members share.
std::vector<StackCluster> clusters_of(const Samples& samples, const Crowd& crowd,
                                      const std::vector<bool>& healthy);

// "rank 11", "process 4711 of node-3".
std::string name_of(const Process& process);

}  // namespace culprit::stacks
