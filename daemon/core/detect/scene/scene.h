// Who entered which operation in which communicator, and who did not: the sights of all sources joined, and
// the one answer that follows from them. In order:
//
//   1. a source states it: a desync report, a fingerprint, a barrier that knows who is missing
//   2. ranks called different operations or sizes under one number of a group: the program
//   3. a rank's own numbers show that it never entered what others of the group wait in: it is missing
//   4. ranks of one group wait at different numbers: the program, earlier than what is seen
//   5. all members are accounted for, in one operation that none finished: device or network
//   6. few members say nothing while all others wait: they are missing; why is unknown
//   7. a barrier in the first operations of a group: some rank still prepares, on the host
//   8. a rank left before the others began to wait
//
// Otherwise the answer is unknown, with what is missing. Only ranks that wait print: silence alone is never a
// fault of the hardware, and the first to print is not the culprit. Pure; accepts any sights.
#pragma once

#include <string>
#include <vector>

#include "core/detect/scene/sentence.h"
#include "core/detect/scene/sight.h"
#include "model/finding.h"
#include "model/report.h"

namespace culprit::scene {

// What a source states of ranks by itself. kMissing: they did not come to `call`. kMismatch: they called
// different operations, `ranks` by `calls`.
struct Statement {
  HangAnswer answer = HangAnswer::kMissing;
  SightGroup group;
  SightCall call;
  std::vector<uint32_t> ranks;
  std::vector<SightCall> calls;
  Evidence evidence;
};

struct SceneInput {
  std::vector<Sight> sights;
  std::vector<Departure> departures;
  std::vector<Statement> statements;
  uint32_t world = 0;     // ranks of the job; 0: unknown
  std::string preparing;  // the last line of work before the training: "Tokenizing Prompts: 92%"; empty: none
  bool iterated = false;  // the job had finished iterations
};

struct SceneAnswer {
  Hang hang;                  // without clusters and suspects
  std::string title;          // the sentence without times
  bool by_host_code = false;  // kMissing: the rank runs host code
  bool certain = false;       // the lines themselves prove it
  double confidence = 0;
  std::vector<std::string> why, missing;
  std::vector<Evidence> evidence;
};

// `name` may be empty.
SceneAnswer answer(const SceneInput& input, const NameOfRank& name = {});

}  // namespace culprit::scene
