#include "core/diagnose/signs.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <map>

#include "base/text.h"
#include "core/diagnose/exceptions.h"

namespace culprit::diagnose {
namespace {

constexpr size_t kLines = 64;          // of a sign
constexpr double kFatalWeight = 1.0;   // against its host: as much as a certain line of an unknown kind
constexpr size_t kEvidence = 20;       // of those, quoted
constexpr uint64_t kLastEvents = 400;  // a dying process with its launcher and peers writes no more than that
constexpr uint64_t kLastOfRank = 60;   // one process alone: its other threads and its exit handlers
constexpr TimeNs kRunning = 2;         // steps after its last progress in which a job may still be running
constexpr int64_t kSurvived = 2;  // iterations after it: all ranks meet in each, so one at most is under way

// Xids that a program causes by itself as a rule (NVIDIA's catalogue: illegal access, page fault, user
// abort).
constexpr int kProgramXids[] = {13, 31, 43, 45};
// And those that tell of something repaired: a row remapped, a rate of corrected errors.
constexpr int kRepairedXids[] = {63, 92};

int xid_number(std::string_view text) {
  const size_t at = text.find("Xid");
  const size_t colon = at == std::string_view::npos ? at : text.find("): ", at);
  if (colon == std::string_view::npos) return -1;
  int number = -1;
  std::from_chars(text.data() + colon + 3, text.data() + text.size(), number);
  return number;
}

// The lines of one template on their way to a finding.
struct Sign {
  Finding finding;
  const detect::TemplateScore* score = nullptr;  // borrowed from the analysis
  std::string name;                              // "kernel: Xid", "KeyError"
  bool of_host = true;                           // by its kind: where few hosts have it, it is theirs
  bool alone = true;                             // tells of a failure without any other sign
  logs::ShapeKind kind = logs::ShapeKind::kPlain;
  std::vector<const logs::FaultLine*> lines;  // the first ones, in time
};

void describe_xid(int xid, Sign& sign) {
  Finding& f = sign.finding;
  f.title = fmt::format("Xid {}: {}", xid, xid == 79 ? "GPU has fallen off the bus" : "GPU error");
  if (std::find(std::begin(kRepairedXids), std::end(kRepairedXids), xid) != std::end(kRepairedXids)) {
    f.fatal = false;
    f.role = FindingRole::kCascade;  // it explains nothing
    sign.alone = false;
    f.action = ActionKind::kCheck;
    return;
  }
  if (std::find(std::begin(kProgramXids), std::end(kProgramXids), xid) == std::end(kProgramXids)) return;
  sign.alone = false;  // the program fails with an error of its own then
  f.category = Category::kUser;
  f.component = Component::kUserCode;
  f.action = ActionKind::kFix;
  f.remedy = "As a rule the program's own doing; on one host only and again and again, check its GPU.";
  f.fatal = false;
}

void describe_fault(const logs::FaultLine& line, Sign& sign) {
  const logs::FaultShape& shape = logs::fault_shapes()[line.shape.fault];
  sign.name = shape.name;
  Finding& f = sign.finding;
  f.title = shape.title;
  f.category = shape.category;
  f.component = shape.component;
  f.symptom = shape.symptom;
  f.action = shape.action;
  f.remedy = shape.remedy;
  f.role = shape.cascade ? FindingRole::kCascade : FindingRole::kRoot;
  f.fatal = shape.severity == Severity::kFatal;
  // Software is wrong everywhere, but memory of a host may be taken by others too.
  const bool of_software = shape.category == Category::kUser || shape.category == Category::kFramework;
  sign.of_host = !of_software || shape.component == Component::kHostMemory;
  if (const int xid = xid_number(line.text); xid >= 0) describe_xid(xid, sign);
}

void describe_exception(const logs::FaultLine& line, Sign& sign) {
  const ExceptionKind kind = exception_kind(line.text);
  sign.name = std::string(exception_name(line.text));
  sign.of_host = kind.of_host;
  Finding& f = sign.finding;
  f.title = shorten(line.text, 120);
  f.category = kind.category;
  f.component = kind.component;
  f.role = kind.cascade ? FindingRole::kCascade : FindingRole::kRoot;
  f.action = kind.cascade ? ActionKind::kCheck : ActionKind::kFix;
  f.remedy =
      kind.cascade ? "Look for the process that failed first." : "Read the traceback and mend its cause.";
}

Sign make_sign(const logs::FaultLine& line) {
  Sign sign;
  sign.kind = line.shape.kind;
  Finding& f = sign.finding;
  f.kind = FindingKind::kFault;
  f.symptom = Symptom::kCrash;
  if (line.shape.kind == logs::ShapeKind::kFault) {
    describe_fault(line, sign);
  } else if (line.shape.kind == logs::ShapeKind::kRootCause) {
    sign.name = "torchrun's root cause";
    f.title = "A worker process failed first, says the launcher";
    f.role = FindingRole::kCascade;
    f.action = ActionKind::kCheck;
    f.remedy = "Read what that worker wrote last.";
  } else {
    describe_exception(line, sign);
  }
  // A program's fault or the cluster's sits on no host, however many of them show it.
  f.of_nobody = !sign.of_host || f.component == Component::kPlatform || f.component == Component::kUserCode ||
                f.component == Component::kNumeric;
  f.confidence = f.role == FindingRole::kCascade ? 0.5 : f.fatal ? 0.95 : 0.85;
  return sign;
}

// Whether the job went on after the sign's last line as if nothing had been.
// `told`: others say that a process of the job failed.
bool survived(const detect::View& view, const detect::Analysis& a, const Sign& sign, bool told) {
  const Finding& f = sign.finding;
  if (f.symptom == Symptom::kNumeric) return false;
  const logs::JobLog& log = *view.log;
  const logs::FaultLine& last = *sign.lines.back();
  const TimeNs last_ns = log.templates()[sign.score->id].last_ns;
  const int64_t at = log.iterations().iteration_at(last_ns, last.place.source, last.place.line);
  // A line without a time has that of the line before, which may be an old one; where others tell of a
  // failure and no successful job has such a line, that proves nothing.
  const bool dated = last.own_time || !told || !sign.score->novel;
  if (at >= 0 && dated && a.fate.last_iteration - at >= kSurvived) return true;
  // Of hardware that broke one line is enough. Another fault whose time nobody knows, in a job that made
  // progress until its log ends, stopped nothing.
  const bool to_the_end = a.fate.last_progress_ns != kNoTime && a.fate.step_ns > 0 &&
                          a.fate.last_ns - a.fate.last_progress_ns < kRunning * a.fate.step_ns;
  if (at < 0 && to_the_end && !told && !(f.fatal && f.category == Category::kHardware)) return true;
  if (sign.kind == logs::ShapeKind::kFault) return false;
  const logs::WriterStats& writer = log.writers()[last.place.writer];
  return writer.events - last.writer_event > (writer.rank ? kLastOfRank : kLastEvents);
}

bool is_harmless(const detect::View& view, const detect::Analysis& a, const Sign& sign, bool told) {
  if (!sign.score || a.fate.ended_well) return true;
  if (a.has_pool && !sign.score->novel && sign.score->cross_job < 0) return true;
  return survived(view, a, sign, told);
}

// Adds to the finding what the template's lines tell together: who wrote them, when, how usual they are.
Finding complete(const detect::View& view, Sign sign) {
  const detect::TemplateScore& score = *sign.score;
  const logs::JobLog& log = *view.log;
  Finding& f = sign.finding;
  for (const logs::FaultLine* line : sign.lines)
    if (f.evidence.size() < kEvidence)
      f.evidence.push_back(detect::evidence_at(log, line->place, line->text));
  f.lines = log.templates()[score.id].count;
  const logs::LogPlace& first = sign.lines.front()->place;
  f.first_ns = first.time_ns;
  f.last_ns = log.templates()[score.id].last_ns;
  const int64_t iteration = log.iterations().iteration_at(first.time_ns, first.source, first.line);
  if (iteration >= 0) f.iteration = iteration;
  const bool few = !score.widespread && !score.hosts.empty();
  f.detector = score.novel ? "cross-job" : few ? "spatial" : "temporal";
  f.of_nobody = f.of_nobody || score.widespread;
  // What any line of its own says against a host is in the template's score already; this is for what is
  // known of such lines beside it.
  const double known = f.role == FindingRole::kCascade ? 0 : f.fatal ? kFatalWeight : kFatalWeight / 2;
  if (few && !f.of_nobody)
    for (const detect::UnitCount& c : score.hosts)
      f.subjects.push_back(
          finding_about(view, c.unit, f.detector, known / static_cast<double>(score.hosts.size()))
              .subjects[0]);
  const size_t hosts = score.hosts.size();
  const std::string told = hosts ? counted(hosts, "host") : counted(log.templates()[score.id].count, "line");
  f.why.push_back(fmt::format("{}: {} told it", sign.name, told));
  if (score.novel) f.why.emplace_back("no successful job of the pool has such a line");
  if (score.late) f.why.emplace_back("it began when the iterations ended");
  return std::move(sign.finding);
}

}  // namespace

Finding finding_of(const logs::JobLog& log, const logs::FaultLine& line) {
  Finding f = make_sign(line).finding;
  f.first_ns = f.last_ns = line.place.time_ns;
  f.evidence.push_back(detect::evidence_at(log, line.place, line.text));
  return f;
}

std::vector<Finding> find_signs(const detect::View& view, const detect::Analysis& a) {
  const logs::JobLog& log = *view.log;
  std::map<logs::ClusterId, Sign> by_template;
  for (const logs::FaultLine& line : log.fault_lines()) {
    using K = logs::ShapeKind;
    if (line.shape.kind != K::kFault && line.shape.kind != K::kException && line.shape.kind != K::kRootCause)
      continue;
    const logs::ClusterId id = log.miner().resolve(line.cluster);
    const auto at = by_template.find(id);
    Sign& sign =
        at != by_template.end() ? at->second : by_template.emplace(id, make_sign(line)).first->second;
    if (sign.lines.size() < kLines) sign.lines.push_back(&line);
  }
  bool told = false, alone = false;
  for (auto& [id, sign] : by_template) {
    sign.score = a.of(id);
    std::stable_sort(sign.lines.begin(), sign.lines.end(),
                     [](const logs::FaultLine* x, const logs::FaultLine* y) {
                       return x->place.time_ns < y->place.time_ns;
                     });
    told = told ||
           (sign.finding.role == FindingRole::kCascade && sign.alone && !is_harmless(view, a, sign, false));
  }
  std::vector<Sign> kept;
  for (auto& [id, sign] : by_template) {
    if (is_harmless(view, a, sign, told)) continue;
    alone = alone || sign.alone;
    kept.push_back(std::move(sign));
  }
  std::vector<Finding> out;
  for (Sign& sign : kept)
    if (alone) out.push_back(complete(view, std::move(sign)));
  return out;
}

}  // namespace culprit::diagnose
