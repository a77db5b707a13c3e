#include "app/checkpoint/copyable.h"

#include <algorithm>

#include "app/checkpoint/folder.h"
#include "app/checkpoint/look.h"

namespace culprit::app {
namespace {

using checkpoint::Checked;
using checkpoint::Fault;
using checkpoint::Judged;
using checkpoint::State;

// Whether the present files are all sound: of a shard without its neighbours nothing else can be required.
bool is_ready(const Checked& checked, bool parts) {
  if (checked.state == State::kWhole) return true;
  if (!parts || checked.problems_total > checked.problems.size()) return false;
  return checked.files > 0 && std::ranges::all_of(checked.problems, [](const checkpoint::Problem& problem) {
           return problem.fault == Fault::kMissing;
         });
}

Result<std::vector<std::string>> files_of(const std::string& root, const checkpoint::Found& found) {
  if (found.is_file) return std::vector<std::string>{found.path};
  auto folder = CheckpointFolder::open(found.path.empty() ? root : root + "/" + found.path, false);
  if (!folder) return tl::unexpected(folder.error());
  std::vector<std::string> out;
  for (const checkpoint::Entry& entry : folder->tree().below(""))
    if (entry.kind == checkpoint::EntryKind::kFile) out.push_back(checkpoint::join(found.path, entry.path));
  return out;
}

}  // namespace

Result<std::vector<Copyable>> find_copyable(const std::string& folder, bool parts, TimeNs now) {
  CheckpointOptions options;
  options.now = now;
  const auto look = look_at_checkpoints(folder, options);
  if (!look) return tl::unexpected(look.error());
  std::vector<Copyable> out;
  for (const SeriesLook& series : look->series) {
    const auto& all = series.checkpoints;
    const auto newest = std::find_if(all.rbegin(), all.rend(),
                                     [&](const Judged& judged) { return is_ready(judged.checked, parts); });
    if (newest == all.rend()) continue;
    auto files = files_of(look->root, newest->found);
    if (!files || files->empty()) continue;  // removed meanwhile
    Copyable copyable{look->root,
                      newest->found.path,
                      std::string(checkpoint::to_string(newest->found.format)),
                      newest->checked.step,
                      newest->checked.changed_ns,
                      std::move(*files),
                      {}};
    for (const checkpoint::Pointer& pointer : series.pointers)
      if (!pointer.is_link && pointer.name == checkpoint::name_of(newest->found.path))
        copyable.pointers.emplace_back(pointer.path, pointer.text);
    out.push_back(std::move(copyable));
  }
  return out;
}

}  // namespace culprit::app
