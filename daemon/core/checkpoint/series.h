// Checks a series of checkpoints: the newest complete one, the file that names the newest, and anything that
// became smaller. Pure; any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/checkpoint/check.h"

namespace culprit::checkpoint {

enum class Remark : uint8_t {
  kPointerAhead,    // names a missing or incomplete checkpoint
  kPointerBehind,   // a newer checkpoint is complete
  kPointerMissing,  // the format requires a pointer, and there is none
  kFewerRanks,      // than the previous checkpoint
  kSmaller,         // a shard shrank by more than a fifth
  kNoneWhole,
  kResumedBehind,  // the job resumed from an older step than the newest complete one
};
std::string_view to_string(Remark remark);

struct Finding {
  Remark remark = Remark::kPointerAhead;
  bool alarm = false;  // the next start fails, or steps are lost
  std::string file;    // relative to the tree
  std::string text;    // a whole sentence, without a full stop
};

// A file or link that names the newest checkpoint.
struct Pointer {
  std::string path;
  bool is_link = false;
  std::string text;  // unchanged
  std::string name;  // name of the checkpoint that the pointer means
};

struct Judged {
  Found found;
  Checked checked;
};

struct SeriesFacts {
  std::optional<int64_t> resumed_from;  // the step from which the job resumed; 0: the beginning
  size_t whole_before = 0;              // complete checkpoints at an earlier check
};

// The pointers in the folder of a series. Skips unreadable ones.
std::vector<Pointer> read_pointers(const Tree& tree, ByteSource& source, const Series& series);

// Compares shards with those of the previous checkpoint. A rank's file is missing if the previous checkpoint
// has it and no other file took over its data: this is a problem of the checkpoint, and may change its state.
std::vector<Finding> compare(std::vector<Judged>& checkpoints, const Tree& tree, const CheckOptions& options);

// `checkpoints`: the oldest first. `compared` is what compare() returned.
std::vector<Finding> judge(const std::vector<Judged>& checkpoints, const std::vector<Pointer>& pointers,
                           const SeriesFacts& facts, std::vector<Finding> compared);

// The newest complete one; null: none.
const Judged* newest_whole(const std::vector<Judged>& checkpoints);

// The actions of `--fall-back`, in this order.
struct FallBack {
  std::vector<std::string> aside;                        // checkpoints to rename to *.torn
  std::vector<std::pair<Pointer, std::string>> rewrite;  // pointers, and their new text
  std::string to;                                        // the newest checkpoint afterwards
};
// An empty plan: nothing to do. An error: no complete checkpoint exists, or a newer one is being written.
Result<FallBack> plan_fall_back(const std::vector<Judged>& checkpoints, const std::vector<Pointer>& pointers);

}  // namespace culprit::checkpoint
