// Where a confirmed fault was seen, and how often, as the scope and window of its rule. Pure.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "app/confirm/cause.h"

namespace culprit::app {

// The keys of a rule's window.
struct RuleWindow {
  std::string by = "host";
  TimeNs span_ns = 0;
  uint64_t at_least = 1;
  uint64_t hosts = 0;  // different hosts; 0: any number
};

// Several hosts at once, yet not all of the job's, share what is at fault: some of them must write it again.
// A line without a word of failure that came again and again must come so again: single ones are chatter.
// None: one line is enough. `job_hosts`: of the whole job; 0: unknown.
std::optional<RuleWindow> window_of(const Cause& cause, size_t job_hosts);

// The next longer duration that a person would write.
TimeNs written_span(TimeNs span_ns);

// `{ by = "host", span = "10m", at_least = 3 }`.
std::string lua_window(const RuleWindow& window);

// Lines of such hosts as one example; `count` of them, from one host each if the window counts hosts.
std::string example_of(const RuleWindow& window, const std::vector<std::string>& lines, size_t count,
                       bool one_host);

// The template with holes of the accused named: "<rank>" where every line names an accused rank behind the
// word rank, "<host>" where every line names an accused host that does not speak itself.
std::string with_subjects(const std::string& pattern, const Diagnosis& diagnosis, const Cause& cause);

}  // namespace culprit::app
