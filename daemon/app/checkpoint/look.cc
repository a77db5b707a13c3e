#include "app/checkpoint/look.h"

#include <fmt/format.h>

#include <algorithm>

#include "app/checkpoint/folder.h"
#include "app/checkpoint/memory.h"
#include "base/text.h"

namespace culprit::app {
namespace {

using checkpoint::Judged;
using checkpoint::State;

checkpoint::CheckOptions check_options(const CheckpointOptions& options, const CheckpointMemory& memory,
                                       bool bytes) {
  checkpoint::CheckOptions out;
  out.bytes = bytes;
  out.now = options.now;
  out.settled = options.settled;
  out.known = &memory.digests();
  return out;
}

SeriesLook look_at_series(const checkpoint::Series& series, CheckpointFolder& folder,
                          const CheckpointMemory& memory, const CheckpointOptions& options, bool bytes) {
  const auto how = check_options(options, memory, bytes);
  SeriesLook out;
  out.folder = series.folder;
  for (const checkpoint::Found& found : series.checkpoints) {
    if (options.progress && bytes) {
      uint64_t size = 0;
      for (const checkpoint::Entry& entry : folder.tree().below(found.path)) size += entry.size;
      options.progress(found.path, size);
    }
    out.checkpoints.push_back({found, checkpoint::check(found, folder.tree(), folder, how)});
  }
  out.pointers = checkpoint::read_pointers(folder.tree(), folder, series);
  out.findings = checkpoint::compare(out.checkpoints, folder.tree(), how);
  return out;
}

size_t count_whole(const SeriesLook& series) {
  return static_cast<size_t>(
      std::count_if(series.checkpoints.begin(), series.checkpoints.end(),
                    [](const Judged& judged) { return judged.checked.state == State::kWhole; }));
}

std::string absolute(const std::string& root, const std::string& path) {
  return path.empty() ? root : root + "/" + path;
}

std::string reason(const checkpoint::Checked& checked) {
  if (checked.problems.empty()) return std::string(checkpoint::to_string(checked.state));
  const checkpoint::Problem& first = checked.problems.front();
  return first.file.empty() ? first.text : first.file + " " + first.text;
}

}  // namespace

Result<CheckpointLook> look_at_checkpoints(const std::string& path, const CheckpointOptions& options) {
  auto folder = CheckpointFolder::open(path, options.direct);
  if (!folder) return tl::unexpected(folder.error());
  CheckpointMemory memory = CheckpointMemory::load(options.state_folder, folder->root());
  CheckpointLook out;
  out.root = folder->root();
  out.bytes = options.bytes;
  for (const checkpoint::Series& series : checkpoint::find_series(folder->tree(), folder->name())) {
    SeriesLook look = look_at_series(series, *folder, memory, options, options.bytes);
    look.findings =
        checkpoint::judge(look.checkpoints, look.pointers,
                          {options.resumed_from, folder->is_complete() ? memory.whole(series.folder) : 0},
                          std::move(look.findings));
    for (const Judged& judged : look.checkpoints) {
      out.bytes_read += judged.checked.bytes_read;
      // Records only complete checkpoints, so that damage is not recorded as the known content.
      if (judged.checked.state == State::kWhole)
        for (const auto& [file, digest] : judged.checked.digests) memory.keep(file, digest);
    }
    if (options.bytes && folder->is_complete()) memory.keep_whole(series.folder, count_whole(look));
    out.series.push_back(std::move(look));
  }
  if (options.bytes && !out.series.empty())
    if (const Status saved = memory.save(folder->is_complete() ? &folder->tree() : nullptr); !saved)
      out.note = saved.error().text;
  return out;
}

Result<NewestCheckpoint> newest_whole_checkpoint(const std::string& path, const CheckpointOptions& options,
                                                 std::optional<int64_t> before) {
  auto folder = CheckpointFolder::open(path, options.direct);
  if (!folder) return tl::unexpected(folder.error());
  CheckpointMemory memory = CheckpointMemory::load(options.state_folder, folder->root());
  std::vector<SeriesLook> all;
  for (const checkpoint::Series& series : checkpoint::find_series(folder->tree(), folder->name()))
    all.push_back(look_at_series(series, *folder, memory, options, false));
  const auto changed = [&](const SeriesLook& series) {
    return series.checkpoints.empty() ? kNoTime : series.checkpoints.back().checked.changed_ns;
  };
  std::stable_sort(all.begin(), all.end(),
                   [&](const SeriesLook& a, const SeriesLook& b) { return changed(a) > changed(b); });
  NewestCheckpoint out;
  const auto how = check_options(options, memory, true);
  for (const SeriesLook& series : all)
    for (size_t i = series.checkpoints.size(); i-- > 0;) {
      const Judged& judged = series.checkpoints[i];
      const auto step = judged.checked.step;
      if (before && (!step || *step >= *before)) continue;
      checkpoint::Checked checked = judged.checked;
      if (checked.state == State::kWhole) {
        if (options.progress) options.progress(judged.found.path, checked.bytes);
        checked = checkpoint::check(judged.found, folder->tree(), *folder, how);
      }
      if (checked.state != State::kWhole) {
        const LeftOutCheckpoint left{absolute(folder->root(), judged.found.path), step, checked.state,
                                     reason(checked)};
        out.skipped.push_back(fmt::format("{}: {}", left.path, left.reason));
        if (options.left_out) options.left_out(left);
        continue;
      }
      for (const auto& [file, digest] : checked.digests) memory.keep(file, digest);
      (void)memory.save(folder->is_complete() ? &folder->tree()
                                              : nullptr);  // the checkpoint is complete with or without this
                                                           // file
      out.path = absolute(folder->root(), judged.found.path);
      out.format = judged.found.format;
      out.step = step;
      return out;
    }
  return fail(
      ErrorCode::kNotFound,
      out.skipped.empty()
          ? fmt::format("{}: has no checkpoint", path)
          : fmt::format("{}: has no whole checkpoint; {} not whole: {}", path,
                        out.skipped.size() == 1 ? "one is" : fmt::format("{} are", out.skipped.size()),
                        out.skipped.front()));
}

}  // namespace culprit::app
