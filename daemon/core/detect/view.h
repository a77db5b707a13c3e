// A settled JobLog seen by hosts and ranks: who wrote how much of what, and when. What the detectors share.
// Borrows the JobLog; valid until its next add(). Pure.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/logs/job_log.h"
#include "model/finding.h"

namespace culprit::detect {

constexpr uint32_t kNowhere = 0xffffffff;

// A host or a rank: the writers that are one, added up.
struct Unit {
  std::string name;             // the host's name; "rank 13" for a rank
  uint32_t host = kNowhere;     // of a rank, where known
  std::vector<uint32_t> ranks;  // global ranks seen on it, ascending
  std::vector<uint32_t> devices;
  std::vector<uint32_t> writers;
  TimeNs first_ns = kNoTime, last_ns = kNoTime;
  logs::Rhythm rhythm;
  int64_t last_iteration = -1;
};

// Lines of one template by one unit.
struct UnitCount {
  uint32_t unit = 0;
  uint64_t count = 0;
  TimeNs first_ns = kNoTime, last_ns = kNoTime;
};

struct View {
  const logs::JobLog* log = nullptr;
  // Where fewer than two hosts are known and there are ranks, ranks are what is compared: `hosts` then holds
  // them.
  bool by_rank = false;
  size_t known_hosts = 0;
  std::vector<Unit> hosts;               // natural order of names
  std::vector<Unit> ranks;               // ascending
  std::vector<uint32_t> host_of_writer;  // kNowhere where unknown
  std::vector<uint32_t> rank_of_writer;
  // Of host h, or kNowhere for names that are none of the job's.
  uint32_t host_named(std::string_view name) const;
  // Index into ranks, or kNowhere.
  uint32_t rank_numbered(uint32_t rank) const;
};

View make_view(const logs::JobLog& log);

// A template's counts by host (or by rank), ascending; writers of no known host are left out.
std::vector<UnitCount> count_by(const logs::TemplateStats& stats,
                                const std::vector<uint32_t>& unit_of_writer);

// A finding that speaks against a unit of `view.hosts`, with so much strength (see model/finding.h).
Finding finding_about(const View& view, uint32_t host, std::string_view detector, double strength);

// A line quoted with its address.
Evidence evidence_at(const logs::JobLog& log, const logs::LogPlace& place, std::string_view text);
// With the number of the line in which its text stands.
Evidence evidence_of(const logs::JobLog& log, const logs::RuleLine& line);

// How alarming a template reads: 0 plain, 1 trouble, 2 failure. Its words, but for a level field that says
// otherwise: "errors: 0" at level info is no failure, and an error is one whatever its words.
uint32_t words_class(const logs::TemplateStats& stats);

}  // namespace culprit::detect
