#include "model/report.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <utility>

#include "model/finding.h"

namespace culprit {
namespace {

// Each table is in the order of its enum: to_string() uses the value as index.
template <class Enum>
struct Words;

template <>
struct Words<Category> {
  static constexpr std::array<std::string_view, 5> kTable{"hardware", "user", "framework", "platform",
                                                          "unknown"};
};
template <>
struct Words<Component> {
  static constexpr std::array<std::string_view, 20> kTable{
      "gpu",         "gpu_memory", "nvlink",     "pcie",         "network", "nccl_comm", "host_memory",
      "host_kernel", "storage",    "cpu",        "cuda_runtime", "driver",  "framework", "user_code",
      "user_config", "user_data",  "dependency", "platform",     "numeric", "unknown"};
};
template <>
struct Words<Symptom> {
  static constexpr std::array<std::string_view, 6> kTable{"launch_failure", "crash",   "hang",
                                                          "slowdown",       "numeric", "other"};
};
template <>
struct Words<Stage> {
  static constexpr std::array<std::string_view, 5> kTable{"launch", "init", "iterative", "checkpoint",
                                                          "teardown"};
};
template <>
struct Words<ActionKind> {
  static constexpr std::array<std::string_view, 8> kTable{"isolate", "check",    "restart", "rollback",
                                                          "retry",   "mitigate", "fix",     "none"};
};
template <>
struct Words<About> {
  static constexpr std::array<std::string_view, 2> kTable{"job", "culprit"};
};
template <>
struct Words<Restart> {
  static constexpr std::array<std::string_view, 6> kTable{"never", "elsewhere", "older",
                                                          "later", "same",      "unknown"};
};
template <>
struct Words<SlowPart> {
  static constexpr std::array<std::string_view, 7> kTable{"gpu",    "host",   "nic", "link",
                                                          "nvlink", "switch", "job"};
};
template <>
struct Words<NumericClass> {
  static constexpr std::array<std::string_view, 5> kTable{"sdc", "data", "optimizer", "schedule", "unknown"};
};
template <>
struct Words<DetectorKind> {
  static constexpr std::array<std::string_view, 11> kTable{"",         "spatial",   "temporal", "cross-job",
                                                           "silence",  "traceback", "comm",     "flight",
                                                           "numerics", "stacks",    "plugin"};
};
template <>
struct Words<ProcessEnd> {
  static constexpr std::array<std::string_view, 2> kTable{"", "killed"};
};
template <>
struct Words<Observes> {
  static constexpr std::array<std::string_view, 11> kTable{"",       "collective", "operations", "absent",
                                                           "frames", "meeting",    "members",    "peer",
                                                           "sizes",  "refusal",    "loopback"};
};
template <>
struct Words<HangAnswer> {
  static constexpr std::array<std::string_view, 6> kTable{"unknown",    "rank_missing", "mismatch",
                                                          "unfinished", "rank_left",    "no_single_rank"};
};
template <>
struct Words<CallPlace> {
  static constexpr std::array<std::string_view, 5> kTable{"unknown", "waits", "finished", "elsewhere",
                                                          "left"};
};
template <>
struct Words<Severity> {
  static constexpr std::array<std::string_view, 4> kTable{"info", "warning", "error", "fatal"};
};
template <>
struct Words<PhaseKind> {
  static constexpr std::array<std::string_view, 7> kTable{"start",   "training", "evaluation", "checkpoint",
                                                          "restart", "stall",    "end"};
};

template <>
struct Words<Conclusion> {
  static constexpr std::array<std::string_view, 3> kTable{"fault", "no_fault", "cannot_tell"};
};

template <>
struct Words<VerdictState> {
  static constexpr std::array<std::string_view, 4> kTable{"open", "withdrawn", "confirmed", "refuted"};
};

template <class Enum>
std::string_view word_of(Enum value) {
  return Words<Enum>::kTable[static_cast<size_t>(value)];
}

// Keeps the `top` best entries by `better`, in their original order.
template <class Entry, class Better>
size_t cut_by(std::vector<Entry>& list, size_t top, Better better) {
  if (list.size() <= top) return 0;
  std::vector<size_t> order(list.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return better(list[a], list[b]); });
  order.resize(top);
  std::sort(order.begin(), order.end());
  std::vector<Entry> retained;
  retained.reserve(top);
  for (const size_t i : order) retained.push_back(std::move(list[i]));
  const size_t left_out = list.size() - top;
  list = std::move(retained);
  return left_out;
}

template <class Entry>
size_t cut_tail(std::vector<Entry>& list, size_t top) {
  if (list.size() <= top) return 0;
  const size_t left_out = list.size() - top;
  list.erase(list.begin() + static_cast<std::ptrdiff_t>(top), list.end());
  return left_out;
}

// The verdict is kept for any `top`: a report that names a cause must contain it.
size_t cut_diagnoses(Report& report, size_t top) {
  const size_t before = report.diagnoses.size();
  if (before <= top) return 0;
  if (report.verdict && *report.verdict < before && *report.verdict >= top) {
    const size_t place = top > 0 ? top - 1 : 0;
    std::swap(report.diagnoses[place], report.diagnoses[*report.verdict]);
    report.verdict = place;
    top = place + 1;
  }
  return cut_tail(report.diagnoses, top);
}

// The total cost of a spell of slow steps.
double total_cost(const Irregularity& x) {
  return x.cost_ms * static_cast<double>(x.last_step - x.first_step + 1);
}

}  // namespace

std::string_view to_string(Category value) { return word_of(value); }
std::string_view to_string(Component value) { return word_of(value); }
std::string_view to_string(Symptom value) { return word_of(value); }
std::string_view to_string(Stage value) { return word_of(value); }
std::string_view to_string(ActionKind value) { return word_of(value); }
std::string_view to_string(About value) { return word_of(value); }
std::string_view to_string(Restart value) { return word_of(value); }
std::string_view to_string(DetectorKind value) { return word_of(value); }
std::string_view to_string(ProcessEnd value) { return word_of(value); }
std::string_view to_string(Observes value) { return word_of(value); }
std::string_view to_string(SlowPart value) { return word_of(value); }
std::string_view to_string(NumericClass value) { return word_of(value); }
std::string_view to_string(HangAnswer value) { return word_of(value); }
std::string_view to_string(CallPlace value) { return word_of(value); }
std::string_view to_string(Severity value) { return word_of(value); }
std::string_view to_string(Conclusion value) { return word_of(value); }
std::string_view to_string(VerdictState value) { return word_of(value); }
std::string_view to_string(PhaseKind value) { return word_of(value); }

template <class Enum>
std::optional<Enum> from_word(std::string_view word) {
  const auto& table = Words<Enum>::kTable;
  const auto at = std::find(table.begin(), table.end(), word);
  if (at == table.end()) return std::nullopt;
  return static_cast<Enum>(at - table.begin());
}

template <class Enum>
std::span<const std::string_view> words_of() {
  return Words<Enum>::kTable;
}

template std::span<const std::string_view> words_of<Category>();
template std::span<const std::string_view> words_of<Component>();
template std::span<const std::string_view> words_of<Symptom>();
template std::span<const std::string_view> words_of<ActionKind>();
template std::span<const std::string_view> words_of<Restart>();
template std::optional<Category> from_word(std::string_view);
template std::optional<Component> from_word(std::string_view);
template std::optional<Symptom> from_word(std::string_view);
template std::optional<Stage> from_word(std::string_view);
template std::optional<ActionKind> from_word(std::string_view);
template std::optional<About> from_word(std::string_view);
template std::optional<Restart> from_word(std::string_view);
template std::optional<ProcessEnd> from_word(std::string_view);
template std::optional<Observes> from_word(std::string_view);
template std::optional<SlowPart> from_word(std::string_view);
template std::optional<NumericClass> from_word(std::string_view);
template std::optional<HangAnswer> from_word(std::string_view);
template std::optional<CallPlace> from_word(std::string_view);
template std::optional<Severity> from_word(std::string_view);
template std::optional<Conclusion> from_word(std::string_view);
template std::optional<VerdictState> from_word(std::string_view);
template std::optional<PhaseKind> from_word(std::string_view);

std::string shown_list(const std::vector<Principal>& who) {
  std::vector<std::string> users, pods;
  for (const Principal& one : who)
    if (one.is_pod())
      pods.push_back(to_string(one));
    else
      users.push_back(std::to_string(one.value));
  std::string out;
  if (!users.empty()) out = (users.size() > 1 ? "uids " : "uid ") + shown_list(users);
  if (!pods.empty()) out += (out.empty() ? "" : " and ") + shown_list(pods);
  return out;
}

std::string shown_list(const std::vector<std::string>& names) {
  constexpr size_t kNamed = 3;
  std::string out;
  for (size_t i = 0; i < std::min(names.size(), kNamed); ++i) out += (i == 0 ? "" : ", ") + names[i];
  if (names.size() > kNamed) out += " and " + std::to_string(names.size() - kNamed) + " more";
  return out;
}

std::string sentence(const SaidBy& by) {
  std::string out;
  if (!by.uids.empty()) out = "said by " + shown_list(by.uids) + " alone";
  if (!by.hosts.empty())
    out += (out.empty() ? "" : "; ") + std::string("hearsay: said by ") + shown_list(by.hosts) +
           ", not by the accused host itself";
  return out;
}

void keep_top(Report& report, size_t top) {
  const auto reported = [&](const char* list, size_t left_out) {
    if (left_out) report.cut[list] += left_out;
  };
  reported("diagnoses", cut_diagnoses(report, top));
  reported("suspects", cut_tail(report.suspects, top));
  reported("indicating", cut_tail(report.indicating, top));
  reported("iterations", cut_by(report.iterations, top, [](const IterationScore& a, const IterationScore& b) {
             return a.score > b.score;
           }));
  reported("irregularities",
           cut_by(report.irregularities, top, [](const Irregularity& a, const Irregularity& b) {
             return total_cost(a) > total_cost(b);
           }));
  reported("numerics", cut_by(report.numerics, top, [](const NumericFault& a, const NumericFault& b) {
             return a.confidence > b.confidence;
           }));
  reported("problems", cut_tail(report.problems, top));
}

}  // namespace culprit
