#include "core/detect/logs/ending.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdlib>
#include <set>
#include <string>

#include "base/ascii.h"

namespace culprit::detect {
namespace {

constexpr auto npos = std::string_view::npos;
constexpr size_t kText = 1024;  // bytes of a line that are examined
constexpr TimeNs kMoment = kNsPerSecond;
// After a planned end, a job reports lost peers for some seconds while its ranks exit, but not later.
constexpr TimeNs kTeardown = 60 * kNsPerSecond;
constexpr std::array<std::string_view, 7> kSubjects = {"run",   "job",     "training",  "trainer",
                                                       "train", "program", "experiment"};
constexpr std::array<std::string_view, 9> kEnds = {"stop",    "end",  "finish", "complete", "done",
                                                   "succeed", "exit", "state",  "status"};
constexpr std::array<std::string_view, 8> kExitCodes = {"exit code",   "exit status", "exit_code",
                                                        "exitcode",    "return code", "returncode",
                                                        "exited with", "exit_status"};
constexpr std::array<std::string_view, 9> kDenials = {
    "fail", "error", "abort", "not success", "unsuccess", "false", "cancelled", "killed", "timeout"};

bool is_letter(char c) { return c >= 'a' && c <= 'z'; }
bool is_digit(char c) { return c >= '0' && c <= '9'; }

std::string lowered(std::string_view text) {
  std::string out(text);
  for (char& c : out)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c + ('a' - 'A'));
  return out;
}

bool holds(std::string_view text, std::string_view word) { return text.find(word) != npos; }

template <size_t N>
bool holds_any(std::string_view text, const std::array<std::string_view, N>& words) {
  return std::any_of(words.begin(), words.end(), [&](std::string_view w) { return holds(text, w); });
}

// "job 17 completed", "run_stop", "Training run <*> finished": a subject, then a verb of ending. Only a
// number, a quoted name or another subject may be between them.
bool subject_ends(std::string_view text) {
  bool subject = false;
  for (size_t at = 0; at < text.size();) {
    if (!is_letter(text[at])) {
      // The end of a clause also ends its subject.
      if (text[at] == '.' || text[at] == ';') subject = false;
      ++at;
      continue;
    }
    size_t end = at;
    while (end < text.size() && is_letter(text[end])) ++end;
    const std::string_view word = text.substr(at, end - at);
    const auto begins = [&](std::string_view stem) { return word.starts_with(stem); };
    if (subject && std::any_of(kEnds.begin(), kEnds.end(), begins)) return true;
    const bool is_subject = std::find(kSubjects.begin(), kSubjects.end(), word) != kSubjects.end();
    const bool between = subject && (word == "id" || word == "has" || word == "is" || word == "was");
    subject = is_subject || between;
    at = end;
  }
  return false;
}

// "exit code 0", "ExitCode=0:0": the text has at least one exit code, and all of them are 0.
bool exits_with_zero(std::string_view text) {
  bool zero = false;
  for (const std::string_view name : kExitCodes) {
    for (size_t at = text.find(name); at != npos; at = text.find(name, at + 1)) {
      size_t i = at + name.size();
      for (const std::string_view more : {" code", " status"})
        if (text.substr(i).starts_with(more)) i += more.size();
      while (i < text.size() && (text[i] == ' ' || text[i] == ':' || text[i] == '=' || text[i] == '"')) ++i;
      if (i == text.size() || !is_digit(text[i])) continue;
      if (text[i] != '0' || (i + 1 < text.size() && is_digit(text[i + 1]))) return false;
      zero = true;
    }
  }
  return zero;
}

bool names_job(std::string_view text) {
  return std::any_of(kSubjects.begin(), kSubjects.end(), [&](std::string_view subject) {
    const size_t at = text.find(subject);
    return at != npos && (at == 0 || !is_letter(text[at - 1]));
  });
}

// Order of two lines: by line number within one source, else by time if both have one.
enum class Order { kBefore, kAfter, kUnknown };

Order order(const logs::LogPlace& a, const logs::LogPlace& b) {
  if (a.source == b.source) return a.line < b.line ? Order::kBefore : Order::kAfter;
  if (a.time_ns == kNoTime || b.time_ns == kNoTime) return Order::kUnknown;
  return a.time_ns < b.time_ns ? Order::kBefore : Order::kAfter;
}

// Whether a line is in the second half of its source.
bool is_late(const logs::JobLog& log, const logs::LogPlace& place) {
  return place.line * 2 >= log.lines_of(place.source);
}

struct EndClaims {
  std::vector<logs::LogPlace> succeeded, planned, failed;
};

// Templates mask numbers such as exit codes; samples keep them. Samples count only if they are all of the
// template's lines.
bool succeeds(const logs::JobLog& log, logs::ClusterId id) {
  const logs::TemplateStats& t = log.templates()[id];
  if (states_success(log.miner().text(id))) return true;
  return t.samples.size() == t.count &&
         std::all_of(t.samples.begin(), t.samples.end(),
                     [](const logs::LogSample& s) { return states_success(s.text); });
}

EndClaims read_claims(const logs::JobLog& log) {
  EndClaims out;
  for (const logs::ClusterId id : log.clusters()) {
    const logs::TemplateStats& t = log.templates()[id];
    std::vector<logs::LogPlace>* to = nullptr;
    if (t.shape.kind == logs::ShapeKind::kException || t.shape.kind == logs::ShapeKind::kRootCause)
      to = &out.failed;
    else if (t.shape.words < 2 && !t.is_progress() && succeeds(log, id))
      to = &out.succeeded;
    else if (t.shape.well && t.shape.words < 2)
      to = &out.planned;
    if (to) to->insert(to->end(), t.places.begin(), t.places.end());
  }
  return out;
}

// Whether other files report failures long after this statement: then only one rank had ended well.
bool others_fail_after(const logs::JobLog& log, const logs::LogPlace& stated) {
  if (stated.time_ns == kNoTime) return false;
  return std::ranges::any_of(log.rule_lines(), [&](const logs::RuleLine& line) {
    // Machine reports after the end of a job prove nothing about the job.
    const bool fails = line.known >= logs::Meaning::kEcho && !line.handled && !line.kernel;
    return fails && line.place.source != stated.source && line.place.time_ns != kNoTime &&
           line.place.time_ns - stated.time_ns > kTeardown;
  });
}

// The ranks, by writer, whose own lines state a good end.
std::set<uint32_t> ranks_that_end(const logs::JobLog& log, const EndClaims& claims) {
  std::set<uint32_t> out;
  for (const auto* places : {&claims.succeeded, &claims.planned})
    for (const logs::LogPlace& place : *places)
      if (log.writers()[place.writer].rank) out.insert(place.writer);
  return out;
}

// Whether the log of a rank with progress ends with its failure, while other ranks state a good end only for
// themselves. Then no statement is about the job. A single rank's statement may be about all ranks: nothing
// is known of the others.
bool another_rank_dies(const logs::JobLog& log, const EndClaims& claims) {
  const std::set<uint32_t> end = ranks_that_end(log, claims);
  if (end.size() < 2) return false;
  const auto dies = [&](const logs::RuleLine& line) {
    const uint32_t writer = line.place.writer;
    if (!line.death || line.handled || line.own_step.iteration < 0) return false;
    if (!log.writers()[writer].rank || end.contains(writer)) return false;
    return log.iterations().own_step(writer, line.place.source).iteration <= line.own_step.iteration;
  };
  return std::ranges::any_of(log.rule_lines(), dies) || std::ranges::any_of(log.uncaught(), dies);
}

// Whether a line comes after the job's last progress.
class AfterProgress {
 public:
  explicit AfterProgress(const logs::JobLog& log) : log_(log), counts_(!log.iterations().track().empty()) {
    const logs::ProgressPoint last = log.iterations().last();
    progress_.source = last.source, progress_.line = last.line, progress_.time_ns = last.time_ns;
  }

  bool operator()(const logs::LogPlace& place) const {
    if (log_.steps_below(place)) return false;  // the end of an earlier run
    // The next line may count the last epoch in the same second.
    const bool timed = counts_ && place.time_ns != kNoTime && progress_.time_ns != kNoTime;
    if (timed && std::abs(progress_.time_ns - place.time_ns) <= kMoment) return true;
    const Order at = counts_ ? order(place, progress_) : Order::kUnknown;
    return at == Order::kAfter || (at == Order::kUnknown && is_late(log_, place));
  }

 private:
  const logs::JobLog& log_;
  bool counts_;
  logs::LogPlace progress_;
};

// Whether a count of the line is below its total: "Epoch [3/10] Step [100/100]".
bool counts_on(std::string_view text) {
  for (size_t at = text.find('/'); at != npos; at = text.find('/', at + 1)) {
    size_t from = at;
    while (from > 0 && digit(text[from - 1])) --from;
    int64_t n = 0, total = 0;
    const char* const end = text.data() + text.size();
    if (std::from_chars(text.data() + from, text.data() + at, n).ec == std::errc() &&
        std::from_chars(text.data() + at + 1, end, total).ec == std::errc() && n < total)
      return true;
  }
  return false;
}

// Whether the last progress line has the last of all steps ("step 5000/5000"). A progress bar, or steps that
// reached their total before, may count one epoch.
bool counts_all(const logs::JobLog& log) {
  if (log.last_progress().empty()) return false;
  const logs::LogSample& line = log.last_progress().back();
  const auto last = logs::progress_of(line.text);
  if (!last || last->bar || last->total <= 1 || last->iteration != last->total || counts_on(line.text))
    return false;
  return std::ranges::none_of(log.iterations().track(), [&](const logs::ProgressPoint& p) {
    return p.iteration >= last->total && (p.source != line.place.source || p.line < line.place.line);
  });
}

}  // namespace

bool exit_was_seen(const logs::JobLog& log) {
  return std::ranges::any_of(log.clusters(), [&](logs::ClusterId id) {
    return log.miner().text(id).starts_with("culprit run: ") &&
           log.miner().text(id).find(" ended with exit code ") != npos;
  });
}

// No rule's holes: any program words its own success, and this judges templates, whose lines are mostly
// dropped.
bool states_success(std::string_view text) {
  const std::string low = lowered(text.substr(0, kText));
  if (holds_any(low, kDenials)) return false;
  if (exits_with_zero(low)) return names_job(low);
  if (!subject_ends(low)) return false;
  // A training that "completed" may still fail to write its model; a "job" that completed cannot.
  return holds(low, "success") || holds(low, "succeeded") || (holds(low, "job") && holds(low, "completed"));
}

bool names_phase(std::string_view text) {
  const std::string low = lowered(text);
  for (const std::string_view word : {"eval", "validat", "compil", "recompil"}) {
    for (size_t at = low.find(word); at != npos; at = low.find(word, at + 1))
      if (at == 0 || !is_letter(low[at - 1])) return true;
  }
  return false;
}

bool announces_work(std::string_view text) {
  if (names_phase(text)) return true;
  constexpr size_t kFirstWords = 3;  // "Now computing BLEU", "rank 0: loading shards"
  constexpr std::array<std::string_view, 22> kNoWork = {
      "waiting",  "warning",    "missing",      "hanging", "failing",  "using",   "training", "remaining",
      "setting",  "nothing",    "string",       "during",  "retrying", "polling", "sleeping", "blocking",
      "stalling", "connecting", "reconnecting", "logging", "entering", "ending"};
  constexpr std::array<std::string_view, 8> kWork = {"test",   "inference", "checkpoint", "download",
                                                     "upload", "snapshot",  "warmup",     "save"};
  const std::string low = lowered(text.substr(0, kText));
  size_t words = 0;
  for (size_t at = 0; at < low.size() && words < kFirstWords;) {
    size_t end = at;
    while (end < low.size() && is_letter(low[end])) ++end;
    const std::string_view word = std::string_view(low).substr(at, end - at);
    at = std::max(end, at + 1);
    if (word.size() < 2) continue;
    ++words;
    if (std::ranges::find(kWork, word) != kWork.end() || (words == 1 && word == "val")) return true;
    if (word.size() > 5 && word.ends_with("ing") && word != "starting")
      return std::ranges::find(kNoWork, word) == kNoWork.end();
  }
  return false;
}

bool ended_well(const logs::JobLog& log) {
  if (exit_was_seen(log)) return false;
  EndClaims claims = read_claims(log);
  // One rank may end as planned while others die.
  for (const logs::RuleLine& line : log.rule_lines())
    if (line.death && !line.handled) claims.failed.push_back(line.place);
  if (another_rank_dies(log, claims)) return false;
  const AfterProgress after_progress(log);
  if (std::ranges::any_of(claims.succeeded, after_progress)) return true;
  return std::ranges::any_of(claims.planned, [&](const logs::LogPlace& place) {
    if (!after_progress(place) || others_fail_after(log, place)) return false;
    return std::ranges::none_of(claims.failed, [&](const logs::LogPlace& failure) {
      return order(failure, place) != Order::kBefore;
    });
  });
}

std::string cut_short(const logs::JobLog& log) {
  if (log.last_progress().empty()) return {};
  const logs::LogSample& line = log.last_progress().back();
  const auto last = logs::progress_of(line.text);
  if (!last || last->total <= 1 || last->iteration >= last->total) return {};
  // A count from 0, or of every tenth step, does not print its total.
  const std::vector<logs::ProgressPoint>& track = log.iterations().track();
  const int64_t stride =
      track.size() < 2 ? 1 : track[track.size() - 1].iteration - track[track.size() - 2].iteration;
  if (last->total - last->iteration <= std::max<int64_t>(1, stride)) return {};
  // A progress bar may be of a validation or of loaded files, or may be stale.
  if (last->bar && line.place.line < log.lines_of(line.place.source)) return {};
  return fmt::format("{} of {}", last->iteration, last->total);
}

bool states_end_on(const logs::JobLog& log, uint32_t writer) {
  const std::optional<std::string>& host = log.writers()[writer].host;
  const EndClaims claims = read_claims(log);
  for (const auto* places : {&claims.succeeded, &claims.planned})
    for (const logs::LogPlace& place : *places)
      if (log.writers()[place.writer].host == host) return true;
  return false;
}

bool states_end(const logs::JobLog& log, const logs::LogPlace* before) {
  if (exit_was_seen(log)) return false;
  const AfterProgress after_progress(log);
  if (counts_all(log) && (!before || order(log.last_progress().back().place, *before) != Order::kAfter))
    return true;
  return std::ranges::any_of(read_claims(log).planned, [&](const logs::LogPlace& place) {
    if (!before && others_fail_after(log, place)) return false;
    return after_progress(place) && (!before || order(place, *before) != Order::kAfter);
  });
}

}  // namespace culprit::detect
