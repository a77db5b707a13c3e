// Whether one checkpoint is complete and intact, without the library that wrote it. Each format's own
// metadata states the required content; pickles are never executed. Pure; one thread. Memory is bounded by
// base/limits.h and by the number of files.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/time.h"
#include "core/checkpoint/layout.h"
#include "core/checkpoint/tree.h"

namespace culprit::checkpoint {

enum class Fault : uint8_t {
  kMissing,      // a required file is missing
  kShort,        // a file ends too early
  kDamaged,      // bytes contradict a checksum, or each other
  kUnfinished,   // a marker says that the writer did not finish
  kOverwritten,  // parts are newer than the index that describes them
  kUnread,       // permission denied, a link, or an unknown kind
};
std::string_view to_string(Fault fault);

struct Problem {
  Fault fault = Fault::kMissing;
  std::string file;  // relative to the tree; empty: the checkpoint itself
  std::string text;  // what is wrong, without the subject
};

enum class State : uint8_t {
  kWhole,
  kWriting,  // incomplete, and recently modified
  kTorn,     // parts are missing, short, unfinished or overwritten
  kDamaged,  // complete, with wrong bytes
  kUnread,   // it could not be judged
};
std::string_view to_string(State state);

// A file's state at an earlier check.
struct Digest {
  uint64_t size = 0;
  TimeNs modified_ns = kNoTime;
  uint64_t hash = 0;  // XXH3 of its bytes
};

using Digests = std::map<std::string, Digest>;

struct CheckOptions {
  // False: headers, directories and sizes. True: every byte is read once, against checksums and digests.
  bool bytes = false;
  TimeNs now = kNoTime;
  // The writer has exited: nothing is being written.
  bool settled = false;
  // The files of complete checkpoints at an earlier check, by path in the tree; null: none. Borrowed.
  const Digests* known = nullptr;
};

struct Checked {
  State state = State::kWhole;
  std::vector<Problem> problems;  // the first ones
  uint64_t problems_total = 0;
  uint64_t files = 0, bytes = 0;  // of the checkpoint
  uint64_t bytes_read = 0;
  TimeNs changed_ns = kNoTime;
  std::optional<int64_t> step;                          // from its files, else from its name
  std::vector<std::pair<std::string, Digest>> digests;  // of files that were read completely
};

Checked check(const Found& found, const Tree& tree, ByteSource& source, const CheckOptions& options);

// The checkpoint's state according to the problems.
State state_of(const std::vector<Problem>& problems, TimeNs changed_ns, const CheckOptions& options);

}  // namespace culprit::checkpoint
