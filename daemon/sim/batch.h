// Log lines between the simulated writers and the files: complete with headers, to be sorted by true time.
// Values; one thread.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/site.h"

namespace culprit::sim {

// Role of a line in the fault: none; root: written on the faulty host (for a program fault: on any host);
// echo: a consequence elsewhere.
enum class Role : uint8_t { kNone, kRoot, kEcho };

// Output slot of a host that writes a line; 0 .. ranks_per_host - 1 are the host's ranks.
constexpr uint32_t kAgentSlot = 0xfffffffd, kKernelSlot = 0xfffffffe, kLauncherSlot = 0xffffffff;

struct Record {
  TimeNs time_ns;  // true time
  uint32_t host, slot;
  uint64_t begin;  // in Batch::text
  uint32_t size;
  Shape shape;
  Tone tone;
  Role role;
};

struct Batch {
  std::string text;
  std::vector<Record> records;
  void clear() { text.clear(), records.clear(); }
};

struct Line {
  Shape shape;
  Tone tone;
  const Template* text;
};

// Appends the line's header and text.
void append_line(const Line& line, const Context& context, std::string& out);

}  // namespace culprit::sim
