#include "core/logs/job_templates.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "base/limits.h"
#include "base/text.h"
#include "core/logs/mask.h"
#include "core/logs/time_span.h"

namespace culprit::logs {
namespace {

constexpr size_t kSamples = 8;  // writers whose first line of a template is kept as text
// No message has this form: masking joins adjacent holes.
constexpr std::string_view kFoldedForm = "<*> <*> (folded)";

uint64_t pair_key(uint32_t writer, uint32_t cluster) { return (uint64_t{writer} << 32) | cluster; }

bool tells_more(const FormShape& a, const FormShape& b) {
  const auto rank = [](const FormShape& s) { return std::pair(s.kind != ShapeKind::kPlain, s.words); };
  return rank(a) > rank(b);
}

void merge_into(TemplateStats& to, TemplateStats from) {
  to.count += from.count;
  widen(to.first_ns, to.last_ns, from.first_ns);
  widen(to.first_ns, to.last_ns, from.last_ns);
  to.level = std::max(to.level, from.level);
  if (from.shaped && (!to.shaped || tells_more(from.shape, to.shape))) to.shape = from.shape;
  to.shaped = to.shaped || from.shaped;
  to.partial = to.partial || from.partial;
  to.known = std::max(to.known, from.known);
  to.rises += from.rises;
  to.untimed = to.untimed || from.untimed;
  to.places.insert(to.places.end(), from.places.begin(), from.places.end());
  to.samples.insert(to.samples.end(), from.samples.begin(), from.samples.end());
  to.groups.insert(to.groups.end(), from.groups.begin(), from.groups.end());
  const auto earlier = [](const LogPlace& a, const LogPlace& b) {
    return std::tie(a.source, a.line) < std::tie(b.source, b.line);
  };
  to.placed = std::min<size_t>(to.placed + from.placed, limits::kPlaces);
  std::sort(to.places.begin(), to.places.end(), earlier);
  if (to.places.size() > limits::kPlaces) to.places.resize(limits::kPlaces);
  if (to.samples.size() > kSamples) to.samples.resize(kSamples);
}

// Joins the groups of one writer, in order of writer.
void join_groups(std::vector<GroupStats>& groups) {
  std::stable_sort(groups.begin(), groups.end(),
                   [](const GroupStats& a, const GroupStats& b) { return a.writer < b.writer; });
  size_t retained = 0;
  for (size_t i = 0; i < groups.size(); ++i) {
    if (retained > 0 && groups[retained - 1].writer == groups[i].writer) {
      groups[retained - 1].count += groups[i].count;
      widen(groups[retained - 1].first_ns, groups[retained - 1].last_ns, groups[i].first_ns);
      widen(groups[retained - 1].first_ns, groups[retained - 1].last_ns, groups[i].last_ns);
    } else {
      groups[retained++] = groups[i];
    }
  }
  groups.resize(retained);
}

}  // namespace

uint32_t JobTemplates::form_id(uint64_t hash, std::string_view message) {
  if (const uint32_t* known = form_ids_.find(hash)) return *known;
  std::string text = form_text(message);
  if (forms_.size() >= limits::kForms || form_bytes_ + text.size() > limits::kFormBytes) {
    if (folded_ == kNone) folded_ = new_form(0, std::string(kFoldedForm));
    return folded_;
  }
  return new_form(hash, std::move(text));
}

void JobTemplates::add_pool_form(uint64_t hash, std::string_view form) {
  if (!form_ids_.find(hash)) new_form(hash, std::string(form));
}

uint32_t JobTemplates::new_form(uint64_t hash, std::string text) {
  const auto id = static_cast<uint32_t>(forms_.size());
  if (hash != 0) form_ids_.try_emplace(hash, id);
  const ClusterId cluster = miner_.add(text, 1);
  form_bytes_ += text.size();
  forms_.push_back({std::move(text), cluster, cluster, 0, 1, hash});
  if (cluster >= templates_.size()) templates_.resize(cluster + 1);
  return id;
}

void JobTemplates::add_shape(uint32_t form, const FormSeen& seen) {
  if (is_folded(form)) return;
  TemplateStats& stats = of_form(form);
  stats.level = std::max(stats.level, seen.level);
  if (!stats.shaped || tells_more(seen.shape, stats.shape)) stats.shape = seen.shape;
  stats.shaped = true;
}

// Null if no more groups are kept.
GroupStats* JobTemplates::group(uint32_t writer, ClusterId cluster) {
  auto& list = templates_[cluster].groups;
  const uint64_t key = pair_key(writer, cluster);
  if (const uint32_t* known = group_ids_.find(key)) return &list[*known];
  if (group_ids_.size() >= limits::kGroups) return nullptr;
  group_ids_.try_emplace(key, static_cast<uint32_t>(list.size()));
  list.push_back({writer, 0, kNoTime, kNoTime});
  return &list.back();
}

void JobTemplates::count(const FormLines& lines) {
  FormStats& form = forms_[lines.form];
  TemplateStats& stats = templates_[form.cluster];
  stats.untimed = stats.untimed || (lines.untimed && stats.first_ns == kNoTime);
  stats.count += lines.count;
  form.count += lines.count;
  events_ += lines.count;
  if (is_folded(lines.form)) drops_.add(Drop::kForms, lines.count);
  widen(stats.first_ns, stats.last_ns, lines.first_ns);
  widen(stats.first_ns, stats.last_ns, lines.last_ns);
  GroupStats* out = group(lines.writer, form.cluster);
  if (!out) {
    stats.partial = true;
    return drops_.add(Drop::kGroups, lines.count);
  }
  out->count += lines.count;
  widen(out->first_ns, out->last_ns, lines.first_ns);
  widen(out->first_ns, out->last_ns, lines.last_ns);
}

void JobTemplates::prefetch_slot(const FormLines& lines) const {
  group_ids_.prefetch(pair_key(lines.writer, forms_[lines.form].cluster));
}

void JobTemplates::prefetch_counts(const FormLines& lines) const {
  const ClusterId cluster = forms_[lines.form].cluster;
  if (const uint32_t* known = group_ids_.find(pair_key(lines.writer, cluster)))
    __builtin_prefetch(&templates_[cluster].groups[*known]);
}

void JobTemplates::add_place(uint32_t form, const LogPlace& place) {
  TemplateStats& stats = of_form(form);
  if (stats.placed < limits::kPlaces) {
    ++stats.placed;
    if (places_ < limits::kPlacesTotal)
      stats.places.push_back(place), ++places_;
    else
      drops_.add(Drop::kPlaces);
  }
}

bool JobTemplates::add_sample(uint32_t form, const LogPlace& place, std::string_view text,
                              uint64_t text_line) {
  TemplateStats& stats = of_form(form);
  if (stats.samples.size() >= kSamples) return true;
  if (text.empty()) return false;
  for (const LogSample& s : stats.samples)
    if (s.place.writer == place.writer) return true;
  const size_t size = std::min(text.size(), limits::kEvidenceText);
  if (sample_bytes_ + size > limits::kSampleBytes) {
    drops_.add(Drop::kSamples);
    return false;
  }
  sample_bytes_ += size;
  stats.samples.push_back({place, shorten(text, limits::kEvidenceText)});
  stats.samples.back().place.line = text_line;
  return true;
}

uint16_t JobTemplates::room(uint32_t form) const {
  static_assert(limits::kPlaces <= 0xffff);
  return static_cast<uint16_t>(limits::kPlaces - templates_[forms_[form].cluster].placed);
}

void JobTemplates::settle(const std::vector<QuotedLines>& quoted) {
  merge_templates();
  discount_quoted(quoted, templates_);
  clusters_.clear();
  for (ClusterId id = 0; id < templates_.size(); ++id)
    if (templates_[id].count > 0) clusters_.push_back(id);
}

// Moves the counts of absorbed clusters to their current cluster.
void JobTemplates::merge_templates() {
  bool merged = false;
  for (FormStats& form : forms_) {
    if (form.count > form.reported) miner_.add(form.text, form.count - form.reported);
    form.reported = std::max(form.reported, form.count);
  }
  miner_.settle();
  templates_.resize(miner_.size());
  for (ClusterId id = 0; id < templates_.size(); ++id) {
    const ClusterId root = miner_.resolve(id);
    if (root == id || (templates_[id].count == 0 && templates_[id].groups.empty())) continue;
    merge_into(templates_[root], std::move(templates_[id]));
    templates_[id] = {};
    merged = true;
  }
  for (FormStats& form : forms_) form.cluster = miner_.resolve(form.cluster);
  if (merged) regroup();
}

void JobTemplates::regroup() {
  group_ids_ = FlatMap<uint32_t>(group_ids_.size());
  for (ClusterId id = 0; id < templates_.size(); ++id) {
    auto& groups = templates_[id].groups;
    join_groups(groups);
    for (uint32_t i = 0; i < groups.size(); ++i) group_ids_.try_emplace(pair_key(groups[i].writer, id), i);
  }
}

Drops JobTemplates::drops() const {
  Drops all = drops_;
  all.add(Drop::kTemplates, miner_.folded());
  return all;
}

}  // namespace culprit::logs
