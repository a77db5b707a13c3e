// Log analysis of one settled job: the method of L4 (FSE Companion '25) and our additions. Each part is one
// function:
//
//   cross-job  templates that successful jobs in the pool also wrote are no evidence; new templates are, in
//              relation to how many new templates a healthy job has
//   temporal   when a template begins relative to the last progress; iterations that differ (dynamic time
//              warping)
//   spatial    hosts and ranks that differ from their peers, and the templates that show the difference
//   order      the earliest host, and the hosts that other hosts name: a cause precedes its echoes
//   silence    hosts that stopped writing or fell behind before the others
//
// The evidence for a template is a sum of log likelihood ratios (naive Bayes); score.cc gives their sources.
// Results about hosts, ranks and iterations become findings, as with any other detector. Pure functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "core/detect/logs/pace.h"
#include "core/detect/logs/pool.h"
#include "core/detect/logs/view.h"
#include "model/finding.h"
#include "model/report.h"

namespace culprit::detect {

// Minimum posterior probability with which a template indicates the failure.
constexpr double kIndicating = 0.5;
// Templates reported per host or rank.
constexpr size_t kTemplatesReported = 3;

// Parts of the method. Evaluations switch off one part at a time to measure its value.
struct Steps {
  bool cross_job = true, spatial = true, temporal = true, order = true, silence = true, shapes = true;
};

// How the job's logs end.
struct RunEnd {
  bool ended_well = false;  // the log states a planned end after the last progress, and no failure
  bool end_stated = false;  // the log states a planned end after the last progress; a failure may follow
  bool progress_stopped =
      false;  // Lines continue long after the last iteration, and no line announces a long phase.
  TimeNs last_progress_ns = kNoTime;
  TimeNs last_ns = kNoTime;
  int64_t last_iteration = -1;
  bool trained = false;              // lines or heartbeats show completed steps
  TimeNs first_step_ns = kNoTime;    // when a trained job's first step was seen
  std::optional<Stage> stage;        // stage at the end of the logs
  TimeNs step_ns = 0;                // median
  std::optional<SlowerPace> slower;  // set if late steps are slower than early ones
};

struct TemplateScore {
  logs::ClusterId id = 0;
  double cross_job = 0, temporal = 0, spatial = 0, words = 0, shape = 0;  // log likelihood ratios
  // Posterior probability that it indicates the failure; used to accuse hosts and for verdicts.
  double score = 0;
  double course = 0;     // extra evidence from the job's own course; for listing, not for accusing hosts
  double indicates = 0;  // posterior probability including `course`
  // The pool's entry for this template (borrowed); null: none, or cross_job is off.
  const PoolForm* known = nullptr;
  bool novel = false;          // the pool has no entry for it
  bool late = false;           // began when progress ended
  bool widespread = false;     // on more than half of the hosts (or of the ranks, if hosts are unknown)
  bool role = false;           // on few hosts because of their role, not because of a fault
  bool with_slowdown = false;  // written repeatedly since the iterations became slower
  bool accuses = true;         // may accuse the few units that write it (roles.cc)
  TimeNs first_ns = kNoTime;
  int64_t iteration = -1;
  std::vector<UnitCount> hosts;  // ascending
};

struct Analysis {
  RunEnd outcome;
  bool has_pool = false;
  bool learned_pool = false;  // see Pool
  double novel_expected = 0;  // number of new templates expected in a healthy job
  uint32_t novel_seen = 0;
  double birth_surprise = 0;  // -log p of this many new templates at the end, given the job's own past
  std::vector<TemplateScore> templates;  // best first
  std::vector<uint32_t> by_cluster;      // index into `templates`; kNowhere: the job lacks the template
  std::vector<Finding> findings;         // about hosts, ranks and iterations
  // Ids of the rules that fired on lines of a template, by cluster.
  std::map<logs::ClusterId, std::vector<std::string>> rules;
  // By host (index into View::hosts): when its ranks had timed out waiting and were torn down. Later machine
  // reports do not explain the wait.
  std::map<uint32_t, TimeNs> torn_down;
  const TemplateScore* of(logs::ClusterId id) const;
};

Analysis analyse(const View& view, const Pool& pool, const Steps& steps);

// The parts, in the order in which analyse() calls them.
RunEnd find_outcome(const View& view);
void score_templates(const View& view, const Pool& pool, const Steps& steps, Analysis& analysis);
void add_spatial(const View& view, Analysis& analysis);
void find_odd_iterations(const View& view, Analysis& analysis);
void find_silent(const View& view, Analysis& analysis);
void find_accusing(const View& view, Analysis& analysis);
void score_hosts(const View& view, const Steps& steps, Analysis& analysis);
void find_odd_ranks(const View& view, Analysis& analysis);

}  // namespace culprit::detect
