// Who entered which operation in which communicator, and who did not: the observations of all sources joined,
// and the one answer that follows from them. In order:
//
//   1. a source states a mismatch: a fingerprint, dumps; or ranks called different operations or sizes under
//      one number of a group: the program
//   2. ranks did not finish what their peers finished: their devices
//   3. a rank left, and waits nowhere
//   4. most ranks are in the file system: no single rank
//   5. a rank lives, and is not in what others wait in: by a report, a dump, a stack, or its own numbers. An
//      unfinished bar of a preparation comes before its own numbers
//   6. ranks of several groups wait for each other: the program calls its groups in another order
//   7. ranks have different numbers of batches: the program
//   8. all members are in one operation that none finished: device or network
//   9. counts of launches show the ranks that are behind
//  10. nothing is known of few members while all others wait: they are missing; why is unknown
//  11. a barrier in the first operations of a group: some rank still prepares, on the host
//  12. a rank left that may also wait
//
// Otherwise the answer is unknown, with what is missing. Only ranks that wait print: silence alone is never a
// fault of the hardware, and the first to print is not the culprit. Pure; accepts any observations.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "core/detect/hang/observation.h"
#include "core/detect/hang/preparing.h"
#include "core/detect/hang/sentence.h"
#include "model/finding.h"
#include "model/report.h"

namespace culprit::hang {

// What a source states about ranks. kMissing: `ranks` did not enter `call`. kMismatch: `ranks` called
// different operations, listed in `calls`. `weak`: based on launch counts alone, which lag in pipelines.
struct HangClaim {
  HangAnswer answer = HangAnswer::kMissing;
  ObservedGroup group;
  ObservedCall call;
  std::vector<uint32_t> ranks;
  std::vector<ObservedCall> calls;
  Evidence evidence;
  ObservationSource source = ObservationSource::kWatchdog;
  bool weak = false;
  std::string title = {};  // empty: composed from the hang state
  std::vector<std::string> why = {};
  double confidence = 0;           // 0: the confidence of the communication library's own reports
  std::optional<Finding> as = {};  // the source's own finding: category, action, remedy, places
  bool meets = false;              // the lines counted the ranks that arrived
};
// Converts a finding of a detector of `source` to a claim: ranks, text and confidence.
HangClaim stated_by(ObservationSource source, HangAnswer answer, Finding finding);

struct HangInput {
  std::vector<Observation> observations;
  std::vector<RankExit> exits;
  std::vector<HangClaim> claims;
  uint32_t world = 0;                  // ranks of the job; 0: unknown
  uint32_t ranks_per_host = 0;         // 0: unknown
  std::set<uint32_t> alive;            // ranks that another source saw alive
  std::set<uint32_t> logged;           // ranks with a line of any kind in the logs
  std::optional<Preparing> preparing;  // the last line of work before the training
  bool iterated = false;               // the job had finished iterations
};

struct HangJudgement {
  Hang hang;                  // without clusters and suspects
  std::string title;          // the sentence without times
  bool by_host_code = false;  // kMissing: the rank runs host code
  bool certain = false;       // the log lines alone prove the answer
  bool by_process = false;    // kLeft: the process does not answer, reason unknown
  bool by_silence = false;    // kLeft: peers name an address, and only this rank logged nothing
  bool prepares = false;      // kMissing: the rank does work that precedes the training
  bool left_loop = false;     // kMismatch: ranks have different numbers of batches
  double confidence = 0;
  std::vector<std::string> why, missing;
  std::vector<Evidence> evidence;
  std::optional<size_t> led;  // index of the claim that gave the answer
  std::vector<size_t> agree;  // indices of other claims that state the same
};

// The only rank below the highest one with no log lines. Empty if only one rank is known.
std::optional<uint32_t> silent_rank(const std::set<uint32_t>& logged);

// `name` may be empty.
HangJudgement answer(const HangInput& input, const NameOfRank& name = {});

}  // namespace culprit::hang
