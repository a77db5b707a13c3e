#include "core/rules/keys.h"

#include <algorithm>
#include <numeric>
#include <vector>

namespace culprit::rules {
namespace {

using T = KeyType;

constexpr std::string_view kCategories = "hardware user framework platform unknown";
constexpr std::string_view kComponents =
    "gpu gpu_memory nvlink pcie network nccl_comm host_memory host_kernel storage cpu cuda_runtime driver "
    "framework user_code user_config user_data dependency platform numeric unknown";
constexpr std::string_view kSeverities = "info warning error fatal";
constexpr std::string_view kActions = "isolate check restart rollback retry mitigate fix none";
constexpr std::string_view kRestarts = "never elsewhere older later same unknown";

constexpr std::string_view kObserves =
    "collective operations absent frames meeting members peer sizes refusal loopback";

constexpr Key kRuleKeys[] = {
    {"id", T::kText, true, "", "",
     "its name: lower-case words, digits, `_` and `-`, joined by dots; unique over all files"},
    {"engine", T::kCount, true, "", "", "the version of this shape: 1"},
    {"title", T::kText, true, "", "",
     "what happened, in a few words; the report shows it. `<name>` in it is the text of that hole in the "
     "first "
     "hit, `<text>` the line"},
    {"category", T::kWord, true, kCategories, "", "who has to act"},
    {"component", T::kWord, true, kComponents, "", "what broke"},
    {"severity", T::kWord, true, kSeverities, "",
     "`fatal`: no process goes on after it; `error`: some do; `warning` and `info` make no diagnosis by "
     "themselves, "
     "they serve the windows of other rules and add evidence to a diagnosis"},
    {"symptom", T::kWord, false, "launch_failure crash hang slowdown numeric other", "crash",
     "how the job shows it"},
    {"source", T::kWords, false, "log kernel finding event metric fatal", "{ \"log\", \"kernel\" }",
     "what the text is: a line of a log, a kernel's message, a detector's finding (`comm: ...`, `numerics: "
     "...`, `stacks: ...`, a plugin's `gpu_health gpu.thermal_throttle: ...`; `findings` of a report in JSON "
     "has them), an event or a metric of a trace (its fields as `name=value`), or a line at level fatal with "
     "its header, if no rule knows its message"},
    {"match", T::kTable, true, "", "", "the wordings; a line that has one of them is a hit"},
    {"match.template", T::kTexts, false, "", "",
     "a text with holes, or a list of them, searched anywhere in the message after the line's header. "
     "`<name>`, "
     "`<_>` and `<*>` stand for one or more characters, as few as possible, the last one in a template for "
     "the "
     "rest of the line; `<<` is a `<`"},
    {"match.regex", T::kTexts, false, "", "", "the same in RE2's syntax, with named groups for holes"},
    {"match.except", T::kTexts, false, "", "", "regexes; a line that has one of them is no hit"},
    {"role", T::kWord, false, "root cascade", "root",
     "`cascade`: says only that something else failed; never outranks a root elsewhere in the job"},
    {"says", T::kWord, false, "notice origin failure errno cause", "cause",
     "what the wording says, the least first: what to plan for, which program reports a failure, what "
     "failed, "
     "the error that the system returned, or the cause. A rule gives way to one that says more of the same "
     "line; only a `cause` leads elsewhere; `notice` makes a diagnosis below a verdict, "
     "where nothing else is found, at any severity"},
    {"ends", T::kWord, false, "killed", "",
     "`killed`: the line says that a process was ended from outside: by the kernel, a limit, a scheduler or "
     "a person. Its rank is looked for on the line's host, and the line explains why peers wait for it"},
    {"observes", T::kWord, false, kObserves, "",
     "what the line shows of ranks that wait; the judge of a hang reads it: a `collective` that waits, times "
     "out or fails; the last `operations` of a rank; who is `absent` from an operation; the `frames` of a "
     "watchdog without its message; a `meeting` that some did not reach, and its `members`; a `peer` that "
     "closed its connection; `sizes` that differ; a `refusal` by a peer; a `loopback` address offered to "
     "peers. The values of the line are in holes, of `match` or of `reads`; \"Holes of ranks that wait\" "
     "lists them"},
    {"reads", T::kTexts, false, "", "",
     "with `observes`: regexes whose named holes are values of a line of this rule, each tried on the "
     "message, wherever the wording of `match` stands in it. Of a hole that several have, the first regex "
     "counts in which its group takes part, even empty; one of `match` with a value comes first. They "
     "decide no match"},
    {"general", T::kFlag, false, "", "false", "the same as `says = \"failure\"`"},
    {"blames", T::kWord, false, "host job few", "by category",
     "where the fault sits; `few`: on the host where few hosts tell of it. By default on the host for "
     "`hardware`; on the job for programs, their settings, data, numbers and frameworks, the platform, and a "
     "program's use of GPU memory; else `few`"},
    {"window", T::kTable, false, "", "", "hits in a span of time that must come together"},
    {"window.by", T::kWord, false, "host rank device job", "host", "whose hits count together"},
    {"window.span", T::kDuration, true, "", "", "how long: \"500ms\", \"60s\", \"10m\", \"2h\""},
    {"window.at_least", T::kCount, false, "", "1", "how many hits, or different values of `distinct`"},
    {"window.same", T::kText, false, "", "", "a hole: only hits with the same value of it count together"},
    {"window.distinct", T::kText, false, "", "", "a hole: its different values count instead of hits"},
    {"window.unless", T::kText, false, "", "",
     "id of a rule that must not have fired for the same in the span before"},
    {"window.after", T::kText, false, "", "",
     "id of a rule that must have fired for the same in the span before"},
    {"window.with", T::kText, false, "", "",
     "id of a rule, on findings or on lines, that must have fired for the same while the finding held, or in "
     "the "
     "span before or after it; only where `source` is `finding`"},
    {"recovery", T::kTable, false, "", "", "what says that the state is over"},
    {"recovery.rule", T::kText, true, "", "", "id of a rule: its hit on the same host ends the state"},
    {"recovery.same", T::kText, false, "", "", "a hole of both rules that must have the same value"},
    {"recovery.within", T::kDuration, false, "", "",
     "a state that ends that soon is no cause of a failure: its hit makes no diagnosis, but still counts in "
     "windows"},
    {"when", T::kFunction, false, "", "",
     "`function(event, window)`: called when all else holds; returns true or false. Both tables are "
     "read-only"},
    {"remedy", T::kText, true, "", "", "what to do, in a sentence"},
    {"action", T::kWord, false, kActions, "none", "what the controller may do by itself"},
    {"restart", T::kWords, false, kRestarts, "by action and category",
     "what must differ for the job's next attempt: nothing will help (`never`), another host or device "
     "(`elsewhere`), an `older` checkpoint, a service that answers again (`later`), nothing (`same`); "
     "`unknown`: one more attempt. Of two words the second holds once the job has made a step. A rule of the "
     "library states it"},
    {"scan", T::kWord, false, "all", "",
     "needed by a pattern without three fixed characters in a row: it is tried on every line, which costs"},
    {"examples", T::kTable, true, "", "", "proof, run at every load"},
    {"examples.hit", T::kTexts, true, "", "",
     "texts that make it fire; lines of one text come one after another"},
    {"examples.miss", T::kTexts, true, "", "", "texts that do not"},
};

constexpr Key kOverrideKeys[] = {
    {"id", T::kText, true, "", "", "the rule that is changed"},
    {"severity", T::kWord, false, kSeverities, "", "in place of the rule's"},
    {"action", T::kWord, false, kActions, "", "in place of the rule's"},
    {"restart", T::kWords, false, kRestarts, "", "in place of the rule's"},
    {"enabled", T::kFlag, false, "", "true", "false switches the rule off"},
};

size_t distance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), size_t{0});
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t above = row[j];
      row[j] = std::min({row[j - 1] + 1, above + 1, diagonal + (a[i - 1] != b[j - 1])});
      diagonal = above;
    }
  }
  return row[b.size()];
}

}  // namespace

std::span<const Key> rule_keys() { return kRuleKeys; }
std::span<const Key> override_keys() { return kOverrideKeys; }

const Key* find_key(std::span<const Key> keys, std::string_view path) {
  const auto it = std::find_if(keys.begin(), keys.end(), [&](const Key& k) { return k.path == path; });
  return it == keys.end() ? nullptr : &*it;
}

std::string_view type_name(KeyType type) {
  constexpr std::string_view kNames[] = {"a text",         "a text or a list of texts",
                                         "a word",         "a word or a list of words",
                                         "a whole number", "a duration",
                                         "true or false",  "a function",
                                         "a table"};
  return kNames[static_cast<size_t>(type)];
}

std::string_view nearest(std::string_view name, std::span<const std::string_view> candidates) {
  std::string_view best;
  size_t least = (name.size() + 2) / 3;
  for (std::string_view candidate : candidates) {
    if (const size_t d = distance(name, candidate); d <= least && (best.empty() || d < least))
      best = candidate, least = d;
  }
  return best;
}

}  // namespace culprit::rules
