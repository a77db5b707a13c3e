#include "core/logs/batch_groups.h"

#include <map>

#include "base/flat_map.h"

namespace culprit::logs {
namespace {}  // namespace

void BatchGroups::open(const LogBatch& batch, WriterRecords& records, bool trimmed) {
  std::vector<bool> used(batch.groups.size(), !trimmed);
  for (size_t i = 0; trimmed && i < batch.lines.size(); ++i)
    if (batch.lines[i].form != kNoForm) used[batch.lines[i].group] = true;
  std::vector<Writer> writers(batch.writers.size());
  forms_.assign(batch.forms.size(), kNone);
  groups_.assign(batch.groups.size(), {});
  for (size_t i = 0; i < batch.groups.size(); ++i) {
    if (!used[i]) continue;
    const GroupSeen& seen = batch.groups[i];
    Writer& writer = writers[seen.writer];
    if (writer.id == kNone) {
      writer.id = writers_.open(batch.writers[seen.writer]);
      writer.record = records.open(writer.id);
    }
    uint32_t& form = forms_[seen.form];
    if (form == kNone) form = open_form(batch, seen.form);
    Group& group = groups_[i];
    group.lines.writer = writer.id;
    group.lines.form = form;
    group.record = writer.record;
    group.room = templates_.room(form);
  }
}

uint32_t BatchGroups::open_form(const LogBatch& batch, uint32_t local) {
  const FormSeen& seen = batch.forms[local];
  const uint32_t id = templates_.form_id(seen.hash, batch.message(batch.lines[seen.line]));
  if (id >= local_forms_.size()) local_forms_.resize(id + 1);
  local_forms_[id] = local;
  templates_.add_shape(id, seen);
  return id;
}

void BatchGroups::count() const {
  for (size_t i = 0; i < groups_.size(); ++i) {
    if (i + 2 * kPrefetchAhead < groups_.size() && groups_[i + 2 * kPrefetchAhead].lines.count > 0)
      templates_.prefetch_slot(groups_[i + 2 * kPrefetchAhead].lines);
    if (i + kPrefetchAhead < groups_.size() && groups_[i + kPrefetchAhead].lines.count > 0)
      templates_.prefetch_counts(groups_[i + kPrefetchAhead].lines);
    if (groups_[i].lines.count > 0) templates_.count(groups_[i].lines);
  }
}

void BatchGroups::count_owned(const std::string& owner) const {
  std::map<uint32_t, uint64_t> counts;  // number of lines by writer
  for (const Group& group : groups_)
    if (group.lines.count > 0) counts[group.lines.writer] += group.lines.count;
  for (const auto& [writer, n] : counts) writers_.count_owned(owner, writer, n);
}

void BatchGroups::relabel(LogBatch& batch, std::vector<Relabel>& relabels) {
  for (const Relabel& r : relabels) {
    uint32_t& local = local_forms_[r.form];
    if (local >= forms_.size() || forms_[local] != r.form) {
      local = static_cast<uint32_t>(forms_.size());
      forms_.push_back(r.form);
      batch.forms.push_back({templates_.form(r.form).hash, r.line, {}, Level::kNone});
    }
    batch.lines[r.line].form = local;
  }
  relabels.clear();
}

}  // namespace culprit::logs
