#include "core/detect/logs/view.h"

#include <algorithm>
#include <map>
#include <set>

#include "base/text.h"
#include "core/logs/host_name.h"
#include "core/logs/node_list.h"

namespace culprit::detect {
namespace {

constexpr size_t kRanksToCompare = 3;  // of two ranks that differ, neither is an outlier

struct NaturalLess {
  bool operator()(const std::string& a, const std::string& b) const { return natural_less(a, b); }
};

void insert_sorted(std::vector<uint32_t>& list, uint32_t value) {
  const auto at = std::lower_bound(list.begin(), list.end(), value);
  if (at == list.end() || *at != value) list.insert(at, value);
}

void add_writer(Unit& unit, const logs::WriterStats& w, uint32_t id, int64_t iteration) {
  unit.writers.push_back(id);
  if (w.rank) insert_sorted(unit.ranks, *w.rank);
  if (w.device) insert_sorted(unit.devices, *w.device);
  if (w.first_ns != kNoTime && (unit.first_ns == kNoTime || w.first_ns < unit.first_ns))
    unit.first_ns = w.first_ns;
  if (w.last_ns != kNoTime && (unit.last_ns == kNoTime || w.last_ns > unit.last_ns)) {
    unit.last_ns = w.last_ns;
  }
  unit.last_iteration = std::max(unit.last_iteration, iteration);
}

// Rhythm of a unit: its longest silence is that of its least silent writer, among writers active throughout
// its life.
void find_rhythm(Unit& unit, const logs::JobLog& log) {
  const double life = static_cast<double>(unit.last_ns - unit.first_ns);
  for (uint32_t id : unit.writers) {
    const logs::WriterStats& w = log.writers()[id];
    if (w.rhythm.gaps == 0 || static_cast<double>(w.last_ns - w.first_ns) < 0.8 * life) continue;
    const bool first = unit.rhythm.gaps == 0;
    unit.rhythm.longest_ns =
        first ? w.rhythm.longest_ns : std::min(unit.rhythm.longest_ns, w.rhythm.longest_ns);
    unit.rhythm.gaps += w.rhythm.gaps;
  }
}

// The members of the job: as job.toml lists them, else as its scheduler does in a line of its log.
std::vector<std::string> listed_hosts(const logs::JobLog& log) {
  if (!log.job().hosts.empty()) return log.job().hosts;
  for (const logs::ClusterId id : log.clusters()) {
    const logs::TemplateStats& t = log.templates()[id];
    if (!t.shape.lists_nodes) continue;
    for (const logs::LogSample& s : t.samples)
      if (auto hosts = logs::nodes_listed_in(s.text); !hosts.empty()) return hosts;
  }
  return {};
}

// By writer: see View::is_stranger. Where no listed host wrote a line, the list has names of another kind.
std::vector<bool> strangers(const logs::JobLog& log) {
  const std::vector<std::string> listed = listed_hosts(log);
  if (listed.empty()) return {};
  const std::set<std::string> names(listed.begin(), listed.end());
  bool logged = false;
  std::set<std::string> members, others;
  for (uint32_t i = 0; i < log.writers().size(); ++i) {
    const logs::WriterStats& w = log.writers()[i];
    if (!w.host) continue;
    const std::string known = log.host_called(*w.host);
    const bool is_listed = names.contains(*w.host) || names.contains(known);
    logged = logged || is_listed;
    if (is_listed || w.rank || log.iterations().last_of(i) >= 0)
      members.insert(*w.host);
    else
      others.insert(*w.host);
  }
  if (!logged || others.empty()) return {};
  std::vector<bool> out;
  for (const logs::WriterStats& w : log.writers()) out.push_back(w.host && !members.contains(*w.host));
  return out;
}

}  // namespace

uint32_t View::host_named(std::string_view name) const {
  const auto at = std::lower_bound(hosts.begin(), hosts.end(), name,
                                   [](const Unit& u, std::string_view n) { return natural_less(u.name, n); });
  if (at != hosts.end() && at->name == name) return static_cast<uint32_t>(at - hosts.begin());
  const std::string other = log && !by_rank && logs::is_host_name(name) ? log->host_called(name) : "";
  return other.empty() || other == name ? kNowhere : host_named(other);
}

uint32_t View::rank_numbered(uint32_t rank) const {
  const auto at = std::lower_bound(ranks.begin(), ranks.end(), rank,
                                   [](const Unit& u, uint32_t r) { return u.ranks[0] < r; });
  return at != ranks.end() && at->ranks[0] == rank ? static_cast<uint32_t>(at - ranks.begin()) : kNowhere;
}

View make_view(const logs::JobLog& log) {
  View view;
  view.log = &log;
  std::map<std::string, uint32_t, NaturalLess> host_ids;
  std::map<uint32_t, uint32_t> rank_ids;
  view.stranger = strangers(log);
  for (const std::string& h : log.job().hosts) host_ids[h];
  for (uint32_t i = 0; i < log.writers().size(); ++i) {
    const logs::WriterStats& w = log.writers()[i];
    if (w.host && !view.is_stranger(i)) host_ids[*w.host];
    if (w.rank) rank_ids[*w.rank];
  }
  for (auto& [name, id] : host_ids) {
    id = static_cast<uint32_t>(view.hosts.size());
    view.hosts.emplace_back();
    view.hosts.back().name = name;
  }
  for (auto& [rank, id] : rank_ids) {
    id = static_cast<uint32_t>(view.ranks.size());
    view.ranks.emplace_back();
    view.ranks.back().name = "rank " + std::to_string(rank);
  }
  for (uint32_t i = 0; i < log.writers().size(); ++i) {
    const logs::WriterStats& w = log.writers()[i];
    const uint32_t host = w.host && !view.is_stranger(i) ? host_ids[*w.host] : kNowhere;
    const uint32_t rank = w.rank ? rank_ids[*w.rank] : kNowhere;
    view.host_of_writer.push_back(host);
    view.rank_of_writer.push_back(rank);
    const int64_t iteration = log.iterations().last_of(i);
    if (host != kNowhere) add_writer(view.hosts[host], w, i, iteration);
    if (rank != kNowhere) {
      add_writer(view.ranks[rank], w, i, iteration);
      if (host != kNowhere) view.ranks[rank].host = host;
    }
  }
  for (Unit& unit : view.hosts) find_rhythm(unit, log);
  for (Unit& unit : view.ranks) find_rhythm(unit, log);
  view.known_hosts = view.hosts.size();
  view.by_rank = view.hosts.size() < 2 && view.ranks.size() >= kRanksToCompare;
  if (view.by_rank) {
    view.hosts = view.ranks;
    view.host_of_writer = view.rank_of_writer;
    for (uint32_t r = 0; r < view.ranks.size(); ++r) view.ranks[r].host = r;
  }
  return view;
}

std::vector<UnitCount> count_by(const logs::TemplateStats& stats,
                                const std::vector<uint32_t>& unit_of_writer) {
  std::vector<UnitCount> out;
  if (stats.partial) return out;  // counting stopped early, so a missing unit may merely not be counted
  for (const logs::GroupStats& g : stats.groups) {
    const uint32_t unit = unit_of_writer[g.writer];
    if (unit != kNowhere) out.push_back({unit, g.count, g.first_ns, g.last_ns});
  }
  std::sort(out.begin(), out.end(), [](const UnitCount& a, const UnitCount& b) { return a.unit < b.unit; });
  size_t retained = 0;
  for (const UnitCount& c : out) {
    if (retained == 0 || out[retained - 1].unit != c.unit) {
      out[retained++] = c;
      continue;
    }
    UnitCount& to = out[retained - 1];
    to.count += c.count;
    if (c.first_ns != kNoTime && (to.first_ns == kNoTime || c.first_ns < to.first_ns))
      to.first_ns = c.first_ns;
    to.last_ns = std::max(to.last_ns, c.last_ns);
  }
  out.resize(retained);
  return out;
}

Finding finding_about(const View& view, uint32_t host, DetectorKind detector, double strength) {
  const Unit& unit = view.hosts[host];
  Finding f;
  f.detector = detector;
  FindingSubject subject;
  subject.strength = strength;
  if (view.by_rank) {
    subject.rank = unit.ranks[0];
    subject.host = view.log->writers()[unit.writers[0]].host;
  } else {
    subject.host = unit.name;
  }
  f.subjects.push_back(std::move(subject));
  return f;
}

Evidence evidence_at(const logs::JobLog& log, const logs::LogPlace& place, std::string_view text) {
  const logs::WriterStats& writer = log.writers()[place.writer];
  Evidence e;
  e.host = writer.host;
  // Before the log is settled, only the line's own fields are known.
  if (!e.host && !writer.key.host.empty()) e.host = writer.key.host;
  e.file = log.sources()[place.source].file;
  e.line = place.line;
  e.text = std::string(text);
  e.time_ns = place.time_ns;
  e.uid = log.sources()[place.source].user;
  e.rank = writer.rank;
  if (!e.rank && !writer.key.task && writer.key.rank != logs::kNoRank) e.rank = writer.key.rank;
  return e;
}

Evidence evidence_of(const logs::JobLog& log, const logs::RuleLine& line) {
  Evidence e = evidence_at(log, line.place, line.text);
  e.line = line.text_line;
  return e;
}

uint32_t words_class(const logs::TemplateStats& t) {
  if (t.level >= logs::Level::kError || t.shape.kind == logs::ShapeKind::kException ||
      t.known >= logs::Meaning::kEcho || t.shape.kind == logs::ShapeKind::kRootCause)
    return 2;
  const uint32_t words = t.shape.words;
  if (t.level == logs::Level::kWarning) return std::max(words, 1u);
  if (t.level == logs::Level::kNone || t.shape.kind != logs::ShapeKind::kPlain) return words;
  return std::min(words, 1u);
}

}  // namespace culprit::detect
