// What checkpoints that lie side by side say together: which is the newest whole one, whether the file that
// names the newest is right, what became less. Pure; any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/checkpoint/check.h"

namespace culprit::checkpoint {

enum class Remark : uint8_t {
  kPointerAhead,    // names a checkpoint that is missing or not whole
  kPointerBehind,   // a newer one is whole
  kPointerMissing,  // the format needs one, and there is none
  kFewerRanks,      // than the one before
  kSmaller,         // a shard, by more than a fifth
  kNoneWhole,
  kResumedBehind,  // the job resumed from an older step than the newest whole one
};
std::string_view to_string(Remark remark);

struct Finding {
  Remark remark = Remark::kPointerAhead;
  bool alarm = false;  // the next start goes wrong, or steps are lost
  std::string file;    // relative to the tree
  std::string text;    // a whole sentence, without a full stop
};

// A file or link that names the newest checkpoint.
struct Pointer {
  std::string path;
  bool is_link = false;
  std::string text;  // as it stands
  std::string name;  // of the checkpoint that it means
};

struct Judged {
  Found found;
  Checked checked;
};

struct SeriesFacts {
  std::optional<int64_t> resumed_from;  // the step at which the job went on; 0: from the beginning
  size_t whole_before = 0;              // at an earlier look
};

// The pointers in the folder of a series. Unreadable ones are left out.
std::vector<Pointer> read_pointers(const Tree& tree, ByteSource& source, const Series& series);

// Compares shards with those of the checkpoint before. A rank's file that the one before has, and whose data
// no other file took over, is a problem of the checkpoint: its state may change.
std::vector<Finding> compare(std::vector<Judged>& checkpoints, const Tree& tree, const CheckOptions& options);

// `checkpoints`: the oldest first. `compared` is what compare() returned.
std::vector<Finding> judge(const std::vector<Judged>& checkpoints, const std::vector<Pointer>& pointers,
                           const SeriesFacts& facts, std::vector<Finding> compared);

// The newest whole one; null: none.
const Judged* newest_whole(const std::vector<Judged>& checkpoints);

// What `--fall-back` does, in this order.
struct FallBack {
  std::vector<std::string> aside;                        // checkpoints that become *.torn
  std::vector<std::pair<Pointer, std::string>> rewrite;  // pointers, and their new text
  std::string to;                                        // the checkpoint that is then the newest
};
// An empty plan: nothing to do. An error: there is no whole checkpoint, or a newer one is being written.
Result<FallBack> plan_fall_back(const std::vector<Judged>& checkpoints, const std::vector<Pointer>& pointers);

}  // namespace culprit::checkpoint
