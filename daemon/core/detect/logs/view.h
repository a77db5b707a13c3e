// A settled JobLog grouped by hosts and ranks: counts and times of lines per unit. Shared by the detectors.
// Borrows the JobLog; valid until the next JobLog::add(). Pure.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/logs/job_log.h"
#include "model/finding.h"

namespace culprit::detect {

constexpr uint32_t kNowhere = 0xffffffff;

// A host or a rank: the sum over its writers.
struct Unit {
  std::string name;             // the host's name; "rank 13" for a rank
  uint32_t host = kNowhere;     // host of a rank, if known
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
  // True if fewer than two hosts are known and the logs have ranks. Then the detectors compare ranks, and
  // `hosts` holds ranks.
  bool by_rank = false;
  size_t known_hosts = 0;
  std::vector<Unit> hosts;               // in natural order of names
  std::vector<Unit> ranks;               // ascending
  std::vector<uint32_t> host_of_writer;  // kNowhere where unknown
  std::vector<uint32_t> rank_of_writer;
  // Index into hosts; kNowhere if the job has no host of this name.
  uint32_t host_named(std::string_view name) const;
  // Whether job.toml lists the job's hosts without the writer's host, and the writer shows neither rank nor
  // progress. Such a host is neither counted nor accused, and its kernel lines concern others. A launcher may
  // write there.
  bool is_stranger(uint32_t writer) const { return writer < stranger.size() && stranger[writer]; }
  std::vector<bool> stranger;  // by writer; empty: none
  // Index into ranks, or kNowhere.
  uint32_t rank_numbered(uint32_t rank) const;
};

View make_view(const logs::JobLog& log);

// Counts of a template by host (or by rank), ascending. Skips writers without a known host.
std::vector<UnitCount> count_by(const logs::TemplateStats& stats,
                                const std::vector<uint32_t>& unit_of_writer);

// A finding against a unit of `view.hosts`. For `strength` see model/finding.h.
Finding finding_about(const View& view, uint32_t host, DetectorKind detector, double strength);

// Quotes a line with its address.
Evidence evidence_at(const logs::JobLog& log, const logs::LogPlace& place, std::string_view text);
// Quotes the line of a rule match, with the number of the line that contains the text.
Evidence evidence_of(const logs::JobLog& log, const logs::RuleLine& line);

// Severity of a template's text: 0 plain, 1 trouble, 2 failure. Its words decide, except against a level
// field: "errors: 0" at level info is no failure, and a line at level error always is.
uint32_t words_class(const logs::TemplateStats& stats);

}  // namespace culprit::detect
