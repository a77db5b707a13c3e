// Reads one component of a path: the host, the rank, the job in "train_48211_dgx-h100-003_5". Considers only
// this name; if several readings are possible, the names of the other files decide (placement.h). Views point
// into the name. Pure, any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "core/logs/host_name.h"

namespace culprit::logs {

struct FileName {
  std::string_view host;
  HostForm form = HostForm::kNone;
  bool anchored = false;  // its position proves a host: after Slurm's job id, or before a rank
  // The number after the last '-' of `host` may be a task's: the host without it, and the number.
  std::string_view shorter;
  std::optional<uint32_t> tail;
  bool padded = false;           // the tail has leading zeros
  std::optional<uint32_t> task;  // a number after an anchored host
  std::optional<uint32_t> rank, local;
  std::string_view job;   // the number after "slurm-", "job" or before a host
  bool job_word = false;  // a word before the number names it a job
};

// `name`: a folder's name, or a file's without its extension (file_stem).
FileName read_file_name(std::string_view name);

// A file's name without extensions and generation: the stem of "node-3.log.1" is "node-3".
std::string_view file_stem(std::string_view name);

// The number of a text of one to seven digits.
std::optional<uint32_t> to_number(std::string_view text);

// The number after `word`, if the word is not part of a longer one: "rank_131", "nccl_rank131", "Rank-131".
struct NumberedWord {
  size_t begin = 0, end = 0;  // of the word and its number
  uint32_t number = 0;
};
std::optional<NumberedWord> find_numbered(std::string_view text, std::string_view word);

}  // namespace culprit::logs
