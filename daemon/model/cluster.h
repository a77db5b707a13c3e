// The nouns of several collectors on one database: partitions of jobs, and who owns them. Plain values.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/time.h"

namespace culprit {

// A partition that a member owns, or owned: each new owner, and each new process of one, has a higher epoch.
struct PartHold {
  uint32_t part = 0;
  uint64_t epoch = 0;

  bool operator==(const PartHold&) const = default;
};

// A partition as the database shows it.
struct PartRow {
  uint32_t part = 0;
  std::string owner;  // name of a member; empty: none
  uint64_t epoch = 0;
  TimeNs left_ns = 0;  // until the lease ends, by the database's clock; not above 0: it has ended
};

// A collector as the database shows it.
struct MemberRow {
  std::string name, address;
  TimeNs age_ns = 0;      // since its last sign of life, by the database's clock
  bool takes = true;      // partitions: it is below its memory mark
  std::string http = {};  // address of its HTTP API for people; empty: it names none
};

struct ClusterView {
  std::vector<PartRow> parts;      // by number
  std::vector<MemberRow> members;  // by name
};

}  // namespace culprit
