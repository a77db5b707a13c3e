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

void describe_fault(const logs::FaultLine& line, Sign& sign) {
  const logs::FaultShape& f = logs::fault_shapes()[line.shape.fault];
  sign.name = f.name;
  sign.title = f.title;
  sign.category = f.category;
  sign.component = f.component;
  sign.symptom = f.symptom;
  sign.action = f.action;
  sign.remedy = f.remedy;
  sign.cascade = f.cascade;
  sign.fatal = f.severity == Severity::kFatal;
  const int xid = xid_number(line.text);
  if (xid < 0) return;
  sign.title = fmt::format("Xid {}: {}", xid, xid == 79 ? "GPU has fallen off the bus" : "GPU error");
  if (std::find(std::begin(kRepairedXids), std::end(kRepairedXids), xid) != std::end(kRepairedXids)) {
    sign.fatal = false;
    sign.cascade = true;  // it explains nothing
    sign.action = ActionKind::kCheck;
    return;
  }
  if (std::find(std::begin(kProgramXids), std::end(kProgramXids), xid) == std::end(kProgramXids)) return;
  sign.category = Category::kUser;
  sign.component = Component::kUserCode;
  sign.action = ActionKind::kFix;
  sign.remedy = "As a rule the program's own doing; on one host only and again and again, check its GPU.";
  sign.fatal = false;
}

void describe_exception(const logs::FaultLine& line, Sign& sign) {
  const ExceptionKind kind = exception_kind(line.text);
  sign.name = std::string(exception_name(line.text));
  sign.title = shorten(line.text, 120);
  sign.category = kind.category;
  sign.component = kind.component;
  sign.cascade = kind.cascade;
  sign.of_host = kind.of_host;
  sign.action = kind.cascade ? ActionKind::kCheck : ActionKind::kFix;
  sign.remedy =
      kind.cascade ? "Look for the process that failed first." : "Read the traceback and mend its cause.";
}

Sign make_sign(const logs::FaultLine& line) {
  Sign sign;
  sign.kind = line.shape.kind;
  if (line.shape.kind == logs::ShapeKind::kFault) {
    describe_fault(line, sign);
  } else if (line.shape.kind == logs::ShapeKind::kRootCause) {
    sign.name = "torchrun's root cause";
    sign.title = "A worker process failed first, says the launcher";
    sign.cascade = true;
    sign.action = ActionKind::kCheck;
    sign.remedy = "Read what that worker wrote last.";
  } else {
    describe_exception(line, sign);
  }
  return sign;
}

// Whether the job went on after the sign's last line as if nothing had been.
bool survived(const detect::View& view, const detect::Analysis& a, const Sign& sign) {
  if (sign.symptom == Symptom::kNumeric) return false;
  const logs::JobLog& log = *view.log;
  const logs::TemplateStats& t = log.templates()[sign.score->id];
  const logs::FaultLine& last = *sign.lines.back();
  const int64_t at = log.iterations().iteration_at(t.last_ns, last.place.source, last.place.line);
  if (at >= 0 && a.fate.last_iteration - at >= kSurvived) return true;
  // Of hardware that broke one line is enough. Another fault whose time nobody knows, in a job that made
  // progress until its log ends, stopped nothing.
  const bool to_the_end = a.fate.last_progress_ns != kNoTime && a.fate.step_ns > 0 &&
                          a.fate.last_ns - a.fate.last_progress_ns < kRunning * a.fate.step_ns;
  if (at < 0 && to_the_end && !(sign.fatal && sign.category == Category::kHardware)) return true;
  if (sign.kind == logs::ShapeKind::kFault) return false;
  const logs::WriterStats& writer = log.writers()[last.place.writer];
  return writer.events - last.writer_event > (writer.rank ? kLastOfRank : kLastEvents);
}

bool is_harmless(const detect::View& view, const detect::Analysis& a, const Sign& sign) {
  if (a.fate.ended_well) return true;
  if (a.has_pool && !sign.score->novel && sign.score->cross_job < 0) return true;
  return survived(view, a, sign);
}

}  // namespace

std::vector<Sign> find_signs(const detect::View& view, const detect::Analysis& a) {
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
  std::vector<Sign> out;
  for (auto& [id, sign] : by_template) {
    sign.score = a.of(id);
    std::stable_sort(sign.lines.begin(), sign.lines.end(),
                     [](const logs::FaultLine* x, const logs::FaultLine* y) {
                       return x->place.time_ns < y->place.time_ns;
                     });
    if (sign.score && !is_harmless(view, a, sign)) out.push_back(std::move(sign));
  }
  std::stable_sort(out.begin(), out.end(), [](const Sign& x, const Sign& y) {
    if (x.cascade != y.cascade) return y.cascade;
    if (x.fatal != y.fatal) return x.fatal;
    return x.lines[0]->place.time_ns < y.lines[0]->place.time_ns;
  });
  return out;
}

}  // namespace culprit::diagnose
