#include "core/logs/job_log.h"

#include <algorithm>
#include <set>
#include <tuple>

#include "base/limits.h"
#include "base/text.h"
#include "core/logs/counter.h"
#include "core/logs/mask.h"

namespace culprit::logs {
namespace {

constexpr uint32_t kNamedTracks = 0x80000000;  // keys of tracks that a name tells, above those of forms
constexpr size_t kSamples = 8;                 // writers whose first line of a template is kept as text
constexpr size_t kFaultLines = 20'000;         // kept with their text; the counts of their templates go on

uint64_t pair_key(uint32_t writer, uint32_t cluster) { return (uint64_t{writer} << 32) | cluster; }

void widen(TimeNs& first, TimeNs& last, TimeNs time) {
  if (time == kNoTime) return;
  if (first == kNoTime || time < first) first = time;
  if (last == kNoTime || time > last) last = time;
}

}  // namespace

void ActivityBins::add(TimeNs time, uint32_t n) {
  if (time == kNoTime) return;
  if (counts.empty()) counts.assign(kBins, 0), origin_ns = time, width_ns = kNsPerSecond;
  while (time < origin_ns || time >= origin_ns + width_ns * static_cast<TimeNs>(kBins)) {
    const bool left = time < origin_ns;  // grow to the side that the time lies on
    if (left) {
      origin_ns -= width_ns * static_cast<TimeNs>(kBins);
      for (size_t i = kBins; i-- > kBins / 2;) counts[i] = counts[2 * i - kBins] + counts[2 * i + 1 - kBins];
      std::fill(counts.begin(), counts.begin() + kBins / 2, 0);
    } else {
      for (size_t i = 0; i < kBins / 2; ++i) counts[i] = counts[2 * i] + counts[2 * i + 1];
      std::fill(counts.begin() + kBins / 2, counts.end(), 0);
    }
    width_ns *= 2;
  }
  counts[static_cast<size_t>((time - origin_ns) / width_ns)] += n;
}

double ActivityBins::between(TimeNs from, TimeNs to) const {
  double sum = 0;
  for (size_t i = 0; i < counts.size(); ++i) {
    const TimeNs begin = origin_ns + static_cast<TimeNs>(i) * width_ns;
    const TimeNs overlap = std::min(to, begin + width_ns) - std::max(from, begin);
    if (overlap > 0) sum += counts[i] * static_cast<double>(overlap) / static_cast<double>(width_ns);
  }
  return sum;
}

struct JobLog::Impl {
  struct Source {
    SourceInfo info;
    uint64_t lines = 0;
    TimeNs time = kNoTime;
  };

  JobFile job;
  std::vector<SourceInfo> infos;
  std::vector<Source> sources;
  std::vector<WriterStats> writers;
  FlatMap<uint32_t> writer_ids{256};
  Miner miner;
  std::vector<FormStats> forms;
  FlatMap<uint32_t> form_ids{4096};
  std::vector<CounterWatch> counters;  // by form
  std::vector<TemplateStats> templates;
  FlatMap<uint32_t> group_ids{4096};  // (writer, cluster) -> index into the template's groups
  std::vector<ClusterId> clusters;
  std::vector<FaultLine> fault_lines;
  std::vector<ActivityBins> activity;
  Iterations iterations;
  std::vector<uint32_t> last_forms, last_writers;
  std::vector<uint64_t> batch_events;  // of this batch so far, by local writer
  std::vector<uint32_t> room;          // by local form: places that its template can still take
  size_t places = 0;
  uint64_t lines = 0, bytes = 0, events = 0, cut_lines = 0;
  TimeNs first = kNoTime, last = kNoTime;

  uint32_t writer_id(const WriterKey& key) {
    const uint64_t hash = mix64(hash64(key.host), mix64((uint64_t{key.rank} << 32) | key.local, key.task));
    const bool full = writers.size() >= limits::kWriters;
    const auto next = static_cast<uint32_t>(full ? limits::kWriters - 1 : writers.size());
    const auto [id, fresh] = writer_ids.try_emplace(hash, next);
    if (fresh && !full) {
      writers.emplace_back();
      writers.back().key = key;
      activity.emplace_back();
    }
    return *id;
  }

  uint32_t form_id(uint64_t hash, std::string_view message) {
    const auto [id, fresh] = form_ids.try_emplace(hash, static_cast<uint32_t>(forms.size()));
    if (fresh) new_form(hash, form_text(message));
    return *id;
  }

  void new_form(uint64_t hash, std::string text) {
    const ClusterId cluster = miner.add(text, 1);
    forms.push_back({std::move(text), cluster, cluster, 0, 1, hash});
    counters.emplace_back();
    if (cluster >= templates.size()) templates.resize(cluster + 1);
  }

  GroupStats& group(uint32_t writer, ClusterId cluster) {
    auto& list = templates[cluster].groups;
    const auto [at, fresh] =
        group_ids.try_emplace(pair_key(writer, cluster), static_cast<uint32_t>(list.size()));
    if (fresh) list.push_back({writer, 0, kNoTime, kNoTime});
    return list[*at];
  }

  void add_places(const LogBatch& batch, const Source& source, size_t index, uint32_t form) {
    TemplateStats& stats = templates[forms[form].cluster];
    const LineRecord& line = batch.lines[index];
    const LogPlace place{batch.source, last_writers[line.writer], source.lines + index + 1, line.time_ns};
    if (stats.places.size() < limits::kPlaces && places < limits::kPlacesTotal) {
      stats.places.push_back(place);
      ++places;
    }
    if (stats.samples.size() >= kSamples) return;
    for (const LogSample& s : stats.samples)
      if (s.place.writer == place.writer) return;
    stats.samples.push_back({place, shorten(record_text(batch, index), limits::kEvidenceText)});
  }

  void count_groups(const LogBatch& batch) {
    for (const GroupSeen& seen : batch.groups) {
      FormStats& form = forms[last_forms[seen.form]];
      TemplateStats& stats = templates[form.cluster];
      GroupStats& out = group(last_writers[seen.writer], form.cluster);
      const TimeNs from = batch.lines[seen.first_line].time_ns;
      const TimeNs to = batch.lines[seen.last_line].time_ns;
      stats.untimed = stats.untimed || (from == kNoTime && stats.first_ns == kNoTime);
      out.count += seen.count;
      stats.count += seen.count;
      form.count += seen.count;
      events += seen.count;
      writers[out.writer].events += seen.count;
      widen(out.first_ns, out.last_ns, from);
      widen(out.first_ns, out.last_ns, to);
      widen(stats.first_ns, stats.last_ns, from);
      widen(stats.first_ns, stats.last_ns, to);
    }
  }

  std::optional<Progress> counted(const LogBatch& batch, const LineRecord& line, CounterKind& kind) {
    const FormSeen& seen = batch.forms[line.form];
    const std::string_view message = batch.message(line);
    if (seen.shape.progress) {
      const auto progress = progress_of(message);
      if (progress) kind = progress->bar ? CounterKind::kBar : CounterKind::kNamed;
      return progress;
    }
    CounterWatch& watch = counters[last_forms[line.form]];
    if (watch.decided() && !watch.counts()) return std::nullopt;
    kind = CounterKind::kCounts;
    if (const auto value = watch.see(last_writers[line.writer], message)) return Progress{*value, 0};
    return std::nullopt;
  }

  void add_fault(const LogBatch& batch, const Source& source, size_t index) {
    const LineRecord& line = batch.lines[index];
    const uint32_t writer = last_writers[line.writer];
    if (fault_lines.size() >= kFaultLines) return;
    const FormStats& form = forms[last_forms[line.form]];
    FaultLine out{{batch.source, writer, source.lines + index + 1, line.time_ns},
                  form.key,
                  writers[writer].events + batch_events[line.writer],
                  line.own_time != 0,
                  batch.forms[line.form].shape,
                  ""};
    out.text = shorten(record_text(batch, index), limits::kEvidenceText);
    fault_lines.push_back(std::move(out));
  }

  // The message, and for a record of several lines its last one: a traceback's exception.
  static std::string record_text(const LogBatch& batch, size_t index) {
    const LineRecord& line = batch.lines[index];
    std::string_view text = batch.message(line);
    const bool block = line.form != kNoForm && batch.forms[line.form].shape.kind == ShapeKind::kRootCause;
    std::string whole(text);
    for (size_t i = index + 1; i < batch.lines.size() && i < index + limits::kMessageTokens; ++i) {
      const LineRecord& next = batch.lines[i];
      if (next.writer != line.writer) continue;
      if (!next.continued) break;
      if (next.rule) continue;
      if (block)
        whole.append(" ").append(batch.message(next));
      else if (next.form == line.form && names_exception(batch.message(next)))
        text = batch.message(next);
    }
    return block ? whole : std::string(text);
  }

  void walk_lines(const LogBatch& batch, const Source& source) {
    batch_events.assign(batch.writers.size(), 0);
    for (size_t i = 0; i < batch.lines.size(); ++i) {
      const LineRecord& line = batch.lines[i];
      if (line.form == kNoForm || line.continued) continue;
      ++batch_events[line.writer];
      const uint32_t writer = last_writers[line.writer];
      const FormSeen& seen = batch.forms[line.form];
      if (room[line.form] > 0) --room[line.form], add_places(batch, source, i, last_forms[line.form]);
      const FormStats& form = forms[last_forms[line.form]];
      CounterKind kind;
      if (const auto progress = counted(batch, line, kind)) {
        const uint32_t key =
            kind == CounterKind::kCounts
                ? form.key
                : kNamedTracks |
                      static_cast<uint32_t>(mix64(progress->name, static_cast<uint64_t>(progress->total)));
        templates[form.cluster].rises += iterations.progress(
            writer, key, kind, {line.time_ns, progress->iteration, batch.source, source.lines + i + 1});
      } else {
        iterations.event(writer, form.key);
      }
      if (seen.shape.kind != ShapeKind::kPlain) add_fault(batch, source, i);
      if (seen.shape.stage) writers[writer].stage = seen.shape.stage;
    }
  }

  // Moves the counts of clusters that were absorbed to the one that holds them now.
  void merge_templates() {
    bool merged = false;
    for (FormStats& form : forms) {
      if (form.count > form.told) miner.add(form.text, form.count - form.told);
      form.told = std::max(form.told, form.count);
    }
    miner.settle();
    templates.resize(miner.size());
    for (ClusterId id = 0; id < templates.size(); ++id) {
      const ClusterId root = miner.resolve(id);
      if (root == id || (templates[id].count == 0 && templates[id].groups.empty())) continue;
      merge_into(templates[root], std::move(templates[id]));
      templates[id] = {};
      merged = true;
    }
    for (FormStats& form : forms) form.cluster = miner.resolve(form.cluster);
    if (merged) regroup();
  }

  static void merge_into(TemplateStats& to, TemplateStats from) {
    to.count += from.count;
    widen(to.first_ns, to.last_ns, from.first_ns);
    widen(to.first_ns, to.last_ns, from.last_ns);
    to.level = std::max(to.level, from.level);
    if (to.shape.kind == ShapeKind::kPlain && to.shape.words < from.shape.words) to.shape = from.shape;
    to.rises += from.rises;
    to.untimed = to.untimed || from.untimed;
    to.places.insert(to.places.end(), from.places.begin(), from.places.end());
    to.samples.insert(to.samples.end(), from.samples.begin(), from.samples.end());
    to.groups.insert(to.groups.end(), from.groups.begin(), from.groups.end());
    const auto earlier = [](const LogPlace& a, const LogPlace& b) {
      return std::tie(a.source, a.line) < std::tie(b.source, b.line);
    };
    std::sort(to.places.begin(), to.places.end(), earlier);
    if (to.places.size() > limits::kPlaces) to.places.resize(limits::kPlaces);
    if (to.samples.size() > kSamples) to.samples.resize(kSamples);
  }

  void regroup() {
    group_ids = FlatMap<uint32_t>(group_ids.size());
    for (ClusterId id = 0; id < templates.size(); ++id) {
      auto& groups = templates[id].groups;
      std::stable_sort(groups.begin(), groups.end(),
                       [](const GroupStats& a, const GroupStats& b) { return a.writer < b.writer; });
      size_t kept = 0;
      for (size_t i = 0; i < groups.size(); ++i) {
        if (kept > 0 && groups[kept - 1].writer == groups[i].writer) {
          groups[kept - 1].count += groups[i].count;
          widen(groups[kept - 1].first_ns, groups[kept - 1].last_ns, groups[i].first_ns);
          widen(groups[kept - 1].first_ns, groups[kept - 1].last_ns, groups[i].last_ns);
        } else {
          groups[kept++] = groups[i];
        }
      }
      groups.resize(kept);
      for (uint32_t i = 0; i < kept; ++i) group_ids.try_emplace(pair_key(groups[i].writer, id), i);
    }
  }

  // Bare task numbers (srun -l) are ranks where there are as many as ranks, else they number the hosts.
  bool tasks_are_hosts() const {
    if (job.hosts.size() < 2 || job.ranks_per_host.value_or(1) == 1) return false;
    std::set<uint32_t> tasks;
    for (const WriterStats& w : writers)
      if (w.key.task) tasks.insert(w.key.rank);
    return !tasks.empty() && tasks.size() <= job.hosts.size() && *tasks.rbegin() < job.hosts.size();
  }

  void resolve_writers() {
    const bool hosts_by_task = tasks_are_hosts();
    for (WriterStats& w : writers) {
      w.host = w.key.host.empty() ? std::nullopt : std::optional(w.key.host);
      w.rank = w.key.rank == kNoRank ? std::nullopt : std::optional(w.key.rank);
      w.device = w.key.local == kNoRank ? std::nullopt : std::optional(w.key.local);
      if (w.key.task && hosts_by_task) {
        if (!w.host) w.host = job.hosts[w.key.rank];
        w.rank = std::nullopt;
      }
      if (!w.host && w.rank) w.host = host_of_rank(job, *w.rank);
      if (!w.rank && w.host && w.device) w.rank = rank_of_local(job, *w.host, *w.device);
      if (!w.device && w.rank) w.device = device_of_rank(job, *w.rank);
    }
  }

  void walk_times(const LogBatch& batch) {
    for (size_t i = 0; i < batch.lines.size(); ++i) {
      const LineRecord& line = batch.lines[i];
      if (line.form == kNoForm) continue;
      const uint32_t id = last_writers[line.writer];
      WriterStats& w = writers[id];
      ++w.lines;
      if (line.time_ns == kNoTime) continue;
      if (w.last_ns != kNoTime && line.time_ns > w.last_ns) w.rhythm.add(line.time_ns - w.last_ns);
      widen(w.first_ns, w.last_ns, line.time_ns);
      activity[id].add(line.time_ns, 1);
    }
  }
};

JobLog::JobLog(const JobFile& job) : impl_(std::make_unique<Impl>()) { impl_->job = job; }
JobLog::~JobLog() = default;

SourceId JobLog::open_source(const SourceInfo& info) {
  impl_->sources.push_back({info, 0, kNoTime});
  impl_->infos.push_back(info);
  return static_cast<SourceId>(impl_->sources.size() - 1);
}

void JobLog::add_pool_form(uint64_t hash, std::string_view form) {
  const auto [id, fresh] = impl_->form_ids.try_emplace(hash, static_cast<uint32_t>(impl_->forms.size()));
  if (fresh) impl_->new_form(hash, std::string(form));
}

void JobLog::add(LogBatch& batch) {
  Impl& s = *impl_;
  Impl::Source& source = s.sources[batch.source];
  for (LineRecord& line : batch.lines) {
    if (line.time_ns != kNoTime) break;
    line.time_ns = source.time;
  }
  s.last_writers.clear();
  for (const WriterKey& key : batch.writers) s.last_writers.push_back(s.writer_id(key));
  s.last_forms.clear();
  s.room.clear();
  for (const FormSeen& seen : batch.forms) {
    const uint32_t id = s.form_id(seen.hash, batch.message(batch.lines[seen.line]));
    TemplateStats& stats = s.templates[s.forms[id].cluster];
    stats.level = std::max(stats.level, seen.level);
    stats.shape = seen.shape;
    s.last_forms.push_back(id);
    s.room.push_back(static_cast<uint32_t>(limits::kPlaces - stats.places.size()));
  }
  s.walk_lines(batch, source);
  s.count_groups(batch);
  s.walk_times(batch);
  if (!batch.lines.empty() && batch.lines.back().time_ns != kNoTime) source.time = batch.lines.back().time_ns;
  for (const LineRecord& line : batch.lines) widen(s.first, s.last, line.time_ns);
  source.lines += batch.lines.size();
  s.lines += batch.lines.size() - batch.skipped_lines;
  s.bytes += batch.range_bytes;
  s.cut_lines += batch.cut_lines;
}

void JobLog::settle() {
  Impl& s = *impl_;
  s.merge_templates();
  s.resolve_writers();
  s.iterations.choose();
  s.clusters.clear();
  for (ClusterId id = 0; id < s.templates.size(); ++id)
    if (s.templates[id].count > 0) s.clusters.push_back(id);
}

const std::vector<SourceInfo>& JobLog::sources() const { return impl_->infos; }
uint64_t JobLog::lines_of(SourceId source) const { return impl_->sources[source].lines; }
const std::vector<WriterStats>& JobLog::writers() const { return impl_->writers; }
const std::vector<TemplateStats>& JobLog::templates() const { return impl_->templates; }
const std::vector<ClusterId>& JobLog::clusters() const { return impl_->clusters; }
const Miner& JobLog::miner() const { return impl_->miner; }
const std::vector<JobLog::FormStats>& JobLog::forms() const { return impl_->forms; }
const std::vector<uint32_t>& JobLog::last_forms() const { return impl_->last_forms; }
const Iterations& JobLog::iterations() const { return impl_->iterations; }
const std::vector<FaultLine>& JobLog::fault_lines() const { return impl_->fault_lines; }
const std::vector<ActivityBins>& JobLog::activity() const { return impl_->activity; }
uint64_t JobLog::lines() const { return impl_->lines; }
uint64_t JobLog::bytes() const { return impl_->bytes; }
uint64_t JobLog::events() const { return impl_->events; }
uint64_t JobLog::cut_lines() const { return impl_->cut_lines; }
TimeNs JobLog::first_ns() const { return impl_->first; }
TimeNs JobLog::last_ns() const { return impl_->last; }
const JobFile& JobLog::job() const { return impl_->job; }

uint64_t JobLog::unplaced_lines() const {
  uint64_t lines = 0;
  for (const WriterStats& w : impl_->writers) lines += w.host ? 0 : w.lines;
  return lines;
}

}  // namespace culprit::logs
