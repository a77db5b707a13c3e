// The method of L4 (FSE Companion '25) and what we add to it, each step a function of the settled job:
//
//   cross-job  templates that the pool of successful jobs has are no evidence; new ones are, by how many new
//              ones a healthy job brings
//   temporal   when a template begins relative to the end of progress; iterations that differ (dynamic time
//              warping)
//   spatial    hosts and ranks that differ from their peers, and by which templates
//   order      the earliest host, and whom the others name: cause before echo
//   silence    hosts that stopped writing or fell behind before the others
//
// Evidence for a template is a sum of log likelihood ratios (naive Bayes); score.cc says where each comes
// from. What is found about hosts, ranks and iterations leaves as findings, like that of any other detector.
// Pure.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "core/detect/pace.h"
#include "core/detect/pool.h"
#include "core/detect/view.h"
#include "model/finding.h"
#include "model/report.h"

namespace culprit::detect {

// Steps of the method; left out one by one to see what each is worth.
struct Steps {
  bool cross_job = true, spatial = true, temporal = true, order = true, silence = true, shapes = true;
};

// How the job's logs end.
struct Fate {
  bool ended_well = false;  // its last progress is followed by words of a planned end, and no failure
  bool end_stated = false;  // words of a planned end follow its last progress, whatever else does
  bool progress_stopped =
      false;  // lines go on for long after the last iteration, and none tells of a long phase
  TimeNs last_progress_ns = kNoTime;
  TimeNs last_ns = kNoTime;
  int64_t last_iteration = -1;
  bool trained = false;              // lines or heartbeats show that steps were done
  std::optional<Stage> stage;        // in which it ended
  TimeNs step_ns = 0;                // median
  std::optional<SlowerPace> slower;  // than at its beginning
};

struct TemplateScore {
  logs::ClusterId id = 0;
  double cross_job = 0, temporal = 0, spatial = 0, words = 0, shape = 0;  // log likelihood ratios
  double score = 0;      // posterior probability that it indicates the failure: accuses hosts, gives verdicts
  double course = 0;     // what the job's own course says further: it lists, and accuses no host
  double indicates = 0;  // the posterior probability with it
  const PoolForm* known = nullptr;  // what the pool has of it (borrowed), where that step is on
  bool novel = false;               // the pool has none of it
  bool late = false;                // began when progress ended
  bool widespread = false;     // on more than half of the hosts (or of the ranks, where hosts are unknown)
  bool role = false;           // on few hosts by what they are, not by a fault
  bool with_slowdown = false;  // written again and again since the iterations take longer
  bool accuses = true;         // it may accuse the few units that write it: see roles.cc
  TimeNs first_ns = kNoTime;
  int64_t iteration = -1;
  std::vector<UnitCount> hosts;  // ascending
};

struct Analysis {
  Fate fate;
  bool has_pool = false;
  double novel_expected = 0;  // new templates that a healthy job brings
  uint32_t novel_seen = 0;
  double birth_surprise = 0;  // -log p of that many templates beginning at the end, by the job's own past
  std::vector<TemplateScore> templates;  // best first
  std::vector<uint32_t> by_cluster;      // index into templates, kNowhere where the job has none
  std::vector<Finding> findings;         // about hosts, ranks and iterations
  // Ids of the rules that fired on lines of a template, by cluster.
  std::map<logs::ClusterId, std::vector<std::string>> rules;
  const TemplateScore* of(logs::ClusterId id) const;
};

Analysis analyse(const View& view, const Pool& pool, const Steps& steps);

// The parts, in the order in which analyse() runs them.
Fate find_fate(const View& view);
void score_templates(const View& view, const Pool& pool, const Steps& steps, Analysis& analysis);
void add_spatial(const View& view, Analysis& analysis);
void find_odd_iterations(const View& view, Analysis& analysis);
void find_silent(const View& view, Analysis& analysis);
void find_accusing(const View& view, Analysis& analysis);
void score_hosts(const View& view, const Steps& steps, Analysis& analysis);
void find_odd_ranks(const View& view, Analysis& analysis);

}  // namespace culprit::detect
