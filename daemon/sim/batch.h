// Lines between the simulated writers and the files: complete with their headers, to be sorted by true time.
// Values; one thread.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/site.h"

namespace culprit::sim {

// The part of the fault in a line: none, made on the faulty host (for a fault of the program: anywhere), or a
// consequence elsewhere.
enum class Role : uint8_t { kNone, kRoot, kEcho };

// The output of a host that has a line: 0 .. ranks_per_host - 1 are its ranks.
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
