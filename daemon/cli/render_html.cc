#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <string_view>
#include <utility>

#include "app/run/attempt_history.h"
#include "base/text.h"
#include "cli/attempt_text.h"
#include "cli/narrative.h"
#include "cli/render.h"
#include "cli/report_page.h"
#include "model/json_writer.h"
#include "model/report_json.h"

namespace culprit::cli {
namespace {

// Limit of the whole file: accepted by mail and chat, and fast in a browser.
constexpr size_t kPageBytes = 1 << 20;
// Limits of list entries; --format json has everything.
constexpr size_t kDiagnosesMax = 20, kSuspectsMax = 50, kTemplatesMax = 60, kPlacesMax = 20, kRowsMax = 100;
constexpr size_t kEvidenceMax = 20, kWhyMax = 12, kOfPlaceMax = 64, kFramesMax = 64;
// Limits of halving the charts' data, then the longest lines, until the file is small enough: a line of "<"
// takes six times its length.
constexpr int kHalvings = 6, kLineHalvings = 4;

template <class List>
void cut_to(List& list, size_t most) {
  if (list.size() > most) list.resize(most);
}

template <class List>
void cut_to(List& list, size_t most, const char* name, Report& report) {
  if (list.size() <= most) return;
  report.cut[name] += list.size() - most;
  list.resize(most);
}

void bound(Suspect& s) {
  cut_to(s.why, kWhyMax);
  cut_to(s.ranks, kOfPlaceMax);
  cut_to(s.devices, kOfPlaceMax);
}

void bound(Diagnosis& d) {
  cut_to(d.hosts, kOfPlaceMax);
  for (Suspect& s : d.hosts) bound(s);
  cut_to(d.links, kOfPlaceMax);
  cut_to(d.why, kWhyMax);
  cut_to(d.evidence, kEvidenceMax);
  cut_to(d.action.targets, kOfPlaceMax);
  cut_to(d.restart.hosts, kOfPlaceMax);
  cut_to(d.restart.devices, kOfPlaceMax);
}

// The verdict is always included, at any position.
void bound_diagnoses(Report& r) {
  if (r.diagnoses.size() > kDiagnosesMax && r.verdict && *r.verdict >= kDiagnosesMax) {
    std::swap(r.diagnoses[kDiagnosesMax - 1], r.diagnoses[*r.verdict]);
    r.verdict = kDiagnosesMax - 1;
  }
  cut_to(r.diagnoses, kDiagnosesMax, "diagnoses", r);
  for (Diagnosis& d : r.diagnoses) bound(d);
}

void bound_hang(Hang& hang) {
  cut_to(hang.clusters, kRowsMax);
  for (StackCluster& c : hang.clusters) cut_to(c.frames, kFramesMax);
  cut_to(hang.suspects, kOfPlaceMax);
  cut_to(hang.hang_state, kRowsMax);
}

Report bounded(const Report& report) {
  Report r = report;
  bound_diagnoses(r);
  cut_to(r.suspects, kSuspectsMax, "suspects", r);
  for (Suspect& s : r.suspects) bound(s);
  cut_to(r.indicating, kTemplatesMax, "indicating", r);
  for (Indicating& x : r.indicating) cut_to(x.where, kPlacesMax);
  cut_to(r.iterations, kRowsMax, "iterations", r);
  cut_to(r.irregularities, kRowsMax, "irregularities", r);
  for (Irregularity& x : r.irregularities)
    cut_to(x.suspects, kWhyMax), cut_to(x.links, kWhyMax), cut_to(x.chain, kWhyMax);
  cut_to(r.numerics, kRowsMax, "numerics", r);
  for (NumericFault& x : r.numerics) cut_to(x.ranks, kOfPlaceMax);
  cut_to(r.problems, kRowsMax, "problems", r);
  cut_to(r.missing, kRowsMax);
  r.findings.clear();
  r.stacks.reset();
  if (r.hang) bound_hang(*r.hang);
  return r;
}

// Keeps the most notable half of each chart's rows.
template <class Row, class Weight>
void keep_half(std::vector<Row>& rows, Weight weight) {
  std::vector<size_t> order(rows.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return weight(rows[a]) > weight(rows[b]); });
  order.resize((order.size() + 1) / 2);
  std::sort(order.begin(), order.end());
  std::vector<Row> stored;
  for (const size_t i : order) stored.push_back(std::move(rows[i]));
  rows = std::move(stored);
}

double most_of(const std::vector<float>& values) {
  double most = 0;
  for (const float v : values)
    if (v > most) most = v;
  return most;
}

void halve_charts(Report& r, const std::set<std::string>& accused) {
  Activity& a = r.activity;
  a.hosts_all = std::max<uint64_t>(a.hosts_all, a.hosts.size());
  keep_half(a.hosts, [&](const HostActivity& h) {
    const bool marked = std::ranges::any_of(h.indicating, [](uint32_t n) { return n > 0; });
    return (accused.contains(h.host) ? 2 : 0) + (marked ? 1 : 0);
  });
  keep_half(r.comm.rows, [](const CommSteps::Row& row) { return most_of(row.excess_ms); });
  for (StepPicture& p : r.comm.pictures)
    keep_half(p.rows, [](const StepPicture::Row& row) { return row.awaited_ms - row.wait_ms; });
  keep_half(r.curves.rows, [](const NumericCurves::Row& row) { return most_of(row.odd); });
}

void cut_lines(std::vector<SourceLines>& windows, size_t bytes) {
  for (SourceLines& w : windows)
    for (size_t i = 0; i < w.lines.size(); ++i) {
      if (w.lines[i].size() <= bytes) continue;
      w.cut[i] += w.lines[i].size() - bytes;
      w.lines[i].resize(bytes);
    }
}

void cut_texts(Report& r, std::vector<SourceLines>& windows, size_t bytes) {
  cut_lines(windows, bytes);
  for (Diagnosis& d : r.diagnoses)
    for (Evidence& e : d.evidence) e.text = shorten(e.text, 2 * bytes);
  for (Indicating& x : r.indicating) x.template_text = shorten(x.template_text, 2 * bytes);
}

std::set<std::string> accused_hosts(const Report& r) {
  std::set<std::string> out;
  const auto take = [&](const std::vector<Suspect>& list) {
    for (const Suspect& s : list)
      if (s.host) out.insert(*s.host);
  };
  take(r.suspects);
  for (const Diagnosis& d : r.diagnoses) take(d.hosts);
  return out;
}

// JSON for a script element: no text can end the element or begin a comment. Characters that change the
// direction of text or hide text are escaped too; JSON has them only within texts.
std::string for_script(std::string_view json) {
  std::string out;
  out.reserve(json.size());
  for (size_t i = 0; i < json.size(); ++i) {
    const char c = json[i];
    if (c == '<' || c == '>' || c == '&' || c == '\x7f') {
      out += fmt::format("\\u{:04x}", static_cast<unsigned char>(c));
      continue;
    }
    const auto byte = [&](size_t k) {
      return i + k < json.size() ? static_cast<unsigned char>(json[i + k]) : 0u;
    };
    const unsigned first = byte(0);
    unsigned code = 0, size = 1;
    if (first == 0xc2 || first == 0xd8) code = (first & 0x1f) << 6 | (byte(1) & 0x3f), size = 2;
    if (first == 0xe2 || first == 0xef)
      code = (first & 0x0f) << 12 | (byte(1) & 0x3f) << 6 | (byte(2) & 0x3f), size = 3;
    const bool hidden = (code >= 0x80 && code < 0xa0) || code == 0x61c ||
                        (code >= 0x200b && code <= 0x200f) || (code >= 0x2028 && code <= 0x202e) ||
                        (code >= 0x2060 && code <= 0x206f) || code == 0xfeff;
    if (hidden)
      out += fmt::format("\\u{:04x}", code), i += size - 1;
    else
      out += c;
  }
  return out;
}

void write_lines(JsonWriter& w, const std::vector<SourceLines>& windows) {
  w.list("lines", windows, [&](const SourceLines& x) {
    w.object([&] {
      w.field("file", x.file);
      w.field("host", x.host);
      if (x.reader) w.field("reader", *x.reader);
      w.field("first", x.first);
      w.values("here", x.here);
      w.list("lines", x.lines, [&](const std::string& line) { w.write(to_utf8(line)); });
      w.values("cut", x.cut);
    });
  });
}

std::string data_of(const Report& shown, const Report& whole, const RenderOptions& o) {
  std::vector<std::string> notes = o.notes;
  if (whole.interrupted) notes.push_back(interruption(whole));
  if (!o.origin.empty()) notes.push_back(o.origin);
  if (!o.scheduler.empty()) notes.push_back(o.scheduler);
  if (o.settling) notes.emplace_back(kSettling);
  JsonWriter w;
  w.object([&] {
    w.field("schema", "culprit.page/1");
    w.field("version", CULPRIT_VERSION);
    w.field("zone", o.zone_name);
    w.values("notes", notes);
    w.member("from", [&] {
      w.object([&] {
        if (!o.job.empty()) w.field("job", o.job);
        if (o.run) w.field("run", *o.run);
      });
    });
    write_lines(w, o.lines);
    if (o.attempts) w.raw("attempts", app::to_json(*o.attempts));
    w.raw("report", to_json(shown, Charts::kIncluded));
  });
  return for_script(w.finish());
}

// to_html escapes control characters, including line breaks.
std::string lines_as_html(const std::string& text) {
  std::string out;
  for (const std::string_view line : split(text, '\n')) out.append(to_html(line)).append("\n");
  return out;
}

// The attempts as text, for a browser without scripts.
std::string attempts_as_text(const RenderOptions& o) {
  if (!o.attempts) return "";
  std::string out;
  for (const std::string& note : o.notes) out += note + "\n";
  return out + attempt_totals(*o.attempts) + "\n\n" + attempt_table(*o.attempts, {o.width, o.zone, true}) +
         "\n";
}

}  // namespace

std::string render_html(const Report& report, const RenderOptions& options) {
  const ReportPage& page = report_page();
  RenderOptions plain = options;
  plain.color = false;
  plain.width = 100;
  const std::string text = lines_as_html(attempts_as_text(plain) + render_text(report, plain));
  Report shown = bounded(report);
  const std::set<std::string> accused = accused_hosts(shown);
  const size_t around = page.script.size() + page.style.size() + text.size() + 2000;
  std::string data = data_of(shown, report, options);
  for (int i = 0; i < kHalvings && data.size() + around > kPageBytes; ++i) {
    halve_charts(shown, accused);
    data = data_of(shown, report, options);
  }
  for (int i = 0; i <= kLineHalvings && data.size() + around > kPageBytes; ++i) {
    cut_texts(shown, plain.lines, kContextLineBytes >> i);
    data = data_of(shown, report, plain);
  }
  return fmt::format(
      R"(<!doctype html>
<html lang="en"><head><meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; script-src '{}'; style-src '{}'; base-uri 'none'; form-action 'none'">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="referrer" content="no-referrer">
<title>Culprit: {}</title>
<style>{}</style></head>
<body><header><span class="brand">Culprit</span><span id="name"></span></header>
<main id="main" tabindex="-1"><pre class="plain">{}</pre></main>
<script type="application/json" id="data">{}</script>
<script>{}</script></body></html>
)",
      page.script_hash, page.style_hash, to_html(headline(report, options)), page.style, text, data,
      page.script);
}

}  // namespace culprit::cli
