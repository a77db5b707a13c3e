#include "core/checkpoint/series.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>

#include "base/ascii.h"
#include "base/limits.h"
#include "base/text.h"

namespace culprit::checkpoint {
namespace {

// Compared with the same shard of the previous checkpoint.
constexpr double kSmaller = 0.8;
// If the total size is about the same, fewer files took over all data.
constexpr double kSameSum = 0.9;

constexpr std::string_view kMegatronPointer = "latest_checkpointed_iteration.txt";

// The checkpoint name in a pointer's text.
std::string name_in(std::string_view file, std::string_view text) {
  text = trim(text);
  if (file == kMegatronPointer && all_digits(text) && text.size() <= 18)
    return fmt::format("iter_{:07}", digits_value(text, 0, text.size()));
  if (text.ends_with('/')) text.remove_suffix(1);
  return std::string(name_of(text));
}

struct Shards {
  uint64_t bytes = 0;
  std::map<std::string, uint64_t> files;  // by name below the checkpoint, with steps removed
};

// Files of one rank each, by name form.
std::map<std::string, Shards> shards_of(const Found& found, const Tree& tree) {
  std::map<std::string, Shards> out;
  for (const Entry& entry : tree.below(found.path)) {
    if (entry.kind != EntryKind::kFile) continue;
    std::string_view name =
        std::string_view(entry.path).substr(found.path.empty() ? 0 : found.path.size() + 1);
    // DeepSpeed's folder inside a Trainer's checkpoint has the step in its name.
    if (name.starts_with("global_step")) name = name.substr(name.find('/') + 1);
    const bool of_rank = name.find("rank_") != name.npos || name.starts_with("rng_state_") ||
                         name.ends_with("-model_states.pt") || name.ends_with(".distcp");
    if (!of_rank) continue;
    Shards& shards = out[shape_of(name)];
    shards.bytes += entry.size;
    shards.files.emplace(name, entry.size);
  }
  return out;
}

class Comparison {
 public:
  Comparison(const Judged& before, Judged& now, const Tree& tree, std::vector<Finding>& findings)
      : before_(before), now_(now), tree_(tree), findings_(findings) {}

  // Whether the newer checkpoint has a new problem.
  bool run() {
    const auto old_shards = shards_of(before_.found, tree_), shards = shards_of(now_.found, tree_);
    for (const auto& [shape, old] : old_shards) {
      const auto at = shards.find(shape);
      static const Shards kNone;
      const Shards& own = at == shards.end() ? kNone : at->second;
      if (own.files.size() < old.files.size())
        fewer(shape, old, own);
      else if (own.files.size() == old.files.size() && now_.checked.state == State::kWhole)
        smaller(old, own);
    }
    return torn_;
  }

 private:
  void fewer(const std::string& shape, const Shards& old, const Shards& own) {
    std::string missing;
    for (const auto& [name, size] : old.files)
      if (!own.files.contains(name) && missing.empty()) missing = name;
    const std::string path = join(now_.found.path, missing);
    const std::string text =
        fmt::format("{} has {} files {}, and {} before it {}", name_or_folder(now_.found.path),
                    own.files.size(), shape, name_or_folder(before_.found.path), old.files.size());
    findings_.push_back({Remark::kFewerRanks, false, now_.found.path, text});
    // An index defines the shards of such a checkpoint. The size of a random number state does not depend on
    // the number of ranks.
    const bool told = shape.ends_with(".distcp") || shape.find("rng_state_") != shape.npos;
    if (told || static_cast<double>(own.bytes) > kSameSum * static_cast<double>(old.bytes)) return;
    ++now_.checked.problems_total;
    if (now_.checked.problems.size() < limits::kCheckpointProblems)
      now_.checked.problems.push_back({Fault::kMissing, path,
                                       fmt::format("is missing: {} has it, and no other file has grown",
                                                   name_or_folder(before_.found.path))});
    torn_ = true;
  }

  void smaller(const Shards& old, const Shards& own) {
    for (const auto& [name, size] : own.files) {
      const auto at = old.files.find(name);
      if (at == old.files.end() || static_cast<double>(size) >= kSmaller * static_cast<double>(at->second))
        continue;
      findings_.push_back(
          {Remark::kSmaller, false, join(now_.found.path, name),
           fmt::format("{} has {}, and {} in {}", join(now_.found.path, name), format_bytes(size),
                       format_bytes(at->second), name_or_folder(before_.found.path))});
      return;
    }
  }

  static std::string name_or_folder(const std::string& path) { return path.empty() ? "the folder" : path; }

  const Judged& before_;
  Judged& now_;
  const Tree& tree_;
  std::vector<Finding>& findings_;
  bool torn_ = false;
};

const Judged* by_name(const std::vector<Judged>& checkpoints, std::string_view name) {
  for (const Judged& judged : checkpoints)
    if (name_of(judged.found.path) == name) return &judged;
  return nullptr;
}

}  // namespace

std::string_view to_string(Remark remark) {
  constexpr std::array<std::string_view, 7> kNames{"pointer-ahead", "pointer-behind", "pointer-missing",
                                                   "fewer-ranks",   "smaller",        "none-whole",
                                                   "resumed-behind"};
  return kNames[static_cast<size_t>(remark)];
}

std::vector<Pointer> read_pointers(const Tree& tree, ByteSource& source, const Series& series) {
  constexpr std::array<std::string_view, 5> kNames{kMegatronPointer, "latest", "latest_universal",
                                                   "last_checkpoint", "latest_checkpoint.txt"};
  std::vector<Pointer> out;
  for (const Entry* entry : tree.in(series.folder)) {
    const std::string_view name = name_of(entry->path);
    if (entry->kind == EntryKind::kLink) {
      std::string_view target = entry->target;
      if (target.ends_with('/')) target.remove_suffix(1);
      if (target.starts_with("./")) target.remove_prefix(2);
      // A link deeper into a folder names no checkpoint of this series; an absolute path may.
      if (!target.empty() && (target[0] == '/' || target.find('/') == target.npos))
        out.push_back({entry->path, true, entry->target, std::string(name_of(target))});
    } else if (entry->kind == EntryKind::kFile && entry->size <= limits::kCheckpointPointerBytes &&
               std::find(kNames.begin(), kNames.end(), name) != kNames.end()) {
      std::string text(entry->size, '\0');
      const auto got = source.read_at(entry->path, text.data(), text.size(), 0);
      if (!got) continue;
      text.resize(*got);
      out.push_back({entry->path, false, text, name_in(name, text)});
    }
  }
  return out;
}

std::vector<Finding> compare(std::vector<Judged>& checkpoints, const Tree& tree,
                             const CheckOptions& options) {
  std::vector<Finding> out;
  const Judged* before = nullptr;
  for (Judged& now : checkpoints) {
    if (now.checked.state == State::kUnread) continue;
    if (before && before->found.format == now.found.format && Comparison(*before, now, tree, out).run())
      now.checked.state = state_of(now.checked.problems, now.checked.changed_ns, options);
    if (now.checked.state == State::kWhole) before = &now;
  }
  return out;
}

const Judged* newest_whole(const std::vector<Judged>& checkpoints) {
  const auto at = std::find_if(checkpoints.rbegin(), checkpoints.rend(),
                               [](const Judged& judged) { return judged.checked.state == State::kWhole; });
  return at == checkpoints.rend() ? nullptr : &*at;
}

std::vector<Finding> judge(const std::vector<Judged>& checkpoints, const std::vector<Pointer>& pointers,
                           const SeriesFacts& facts, std::vector<Finding> compared) {
  std::vector<Finding> out = std::move(compared);
  const Judged* newest = newest_whole(checkpoints);
  bool megatron = false, deepspeed = false, pointed = false;
  for (const Judged& judged : checkpoints) {
    megatron |= judged.found.format == Format::kMegatron && name_of(judged.found.path).starts_with("iter_");
    deepspeed |=
        judged.found.format == Format::kDeepSpeed && name_of(judged.found.path).starts_with("global_step");
  }
  for (const Pointer& pointer : pointers) {
    pointed |= !pointer.is_link;
    const Judged* named = by_name(checkpoints, pointer.name);
    const std::string subject =
        fmt::format("{} names {}", pointer.path, shorten(to_terminal(pointer.name), 200));
    if (pointer.name.empty())
      out.push_back({Remark::kPointerAhead, true, pointer.path, fmt::format("{} is empty", pointer.path)});
    else if (!named && !pointer.is_link)
      out.push_back({Remark::kPointerAhead, true, pointer.path, subject + ", which is not there"});
    else if (named && named->checked.state != State::kWhole)
      out.push_back({Remark::kPointerAhead, named->checked.state != State::kWriting, pointer.path,
                     fmt::format("{}, which is {}", subject, to_string(named->checked.state))});
    else if (named && newest && named < newest && !pointer.is_link)
      out.push_back({Remark::kPointerBehind, false, pointer.path,
                     fmt::format("{}, and {} is whole and newer", subject, newest->found.path)});
  }
  if (!pointed && newest && (megatron || deepspeed))
    out.push_back({Remark::kPointerMissing, true,
                   join(folder_of(newest->found.path), megatron ? kMegatronPointer : "latest"),
                   fmt::format("{} is missing: a job would start from the beginning although {} is whole",
                               join(folder_of(newest->found.path), megatron ? kMegatronPointer : "latest"),
                               newest->found.path)});
  const bool writing = std::any_of(checkpoints.begin(), checkpoints.end(), [](const Judged& judged) {
    return judged.checked.state == State::kWriting || judged.checked.state == State::kUnread;
  });
  if (!newest && (!writing || facts.whole_before > 0))
    out.push_back({Remark::kNoneWhole, true, "",
                   facts.whole_before > 0
                       ? fmt::format("no checkpoint is whole any more; {} before",
                                     counted(facts.whole_before, "was whole"))
                       : fmt::format("none of {} is whole", counted(checkpoints.size(), "checkpoint"))});
  if (facts.resumed_from && newest && newest->checked.step && *newest->checked.step > *facts.resumed_from)
    out.push_back({Remark::kResumedBehind, true, newest->found.path,
                   fmt::format("the job resumed from step {} although step {} is whole in {}",
                               *facts.resumed_from, *newest->checked.step, newest->found.path)});
  return out;
}

Result<FallBack> plan_fall_back(const std::vector<Judged>& checkpoints,
                                const std::vector<Pointer>& pointers) {
  const Judged* newest = newest_whole(checkpoints);
  if (!newest) return fail(ErrorCode::kNotFound, "no checkpoint is whole, so there is none to fall back to");
  FallBack out;
  out.to = newest->found.path;
  for (const Judged* later = newest + 1; later < checkpoints.data() + checkpoints.size(); ++later) {
    const State state = later->checked.state;
    if (state == State::kWriting) return fail(ErrorCode::kBusy, later->found.path + ": is being written");
    if (state == State::kUnread)
      return fail(ErrorCode::kDenied, later->found.path + ": could not be judged, so it stays");
    out.aside.push_back(later->found.path);
  }
  for (const Pointer& pointer : pointers) {
    const Judged* named = by_name(checkpoints, pointer.name);
    if (named && named->checked.state == State::kWhole) continue;
    if (!named && pointer.is_link) continue;
    const std::string_view name = name_of(newest->found.path);
    std::string text(name);
    if (name_of(pointer.path) == kMegatronPointer) {
      const auto step = step_of(name);
      if (!step) continue;
      text = std::to_string(*step);
    }
    out.rewrite.emplace_back(pointer,
                             pointer.is_link ? text : text + (pointer.text.ends_with('\n') ? "\n" : ""));
  }
  return out;
}

}  // namespace culprit::checkpoint
