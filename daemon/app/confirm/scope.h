// Derives scope and window of a rule from the places and the number of a confirmed fault. Pure.
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
  uint64_t hosts = 0;  // number of different hosts; 0: any
};

// The window that a rule needs; none: one line is enough. If several hosts, but not all of the job's, wrote
// the line at once, they share the faulty part: some of them must write the line again. A repeated line
// without a word of failure must repeat again, since single lines are chatter. `job_hosts`: of the whole job;
// 0: unknown.
std::optional<RuleWindow> window_of(const Cause& cause, size_t job_hosts);

// The next longer duration in a round unit.
TimeNs written_span(TimeNs span_ns);

// `{ by = "host", span = "10m", at_least = 3 }`.
std::string lua_window(const RuleWindow& window);

// Lines of these hosts as one example: `count` lines, each of another host if the window counts hosts.
std::string example_of(const RuleWindow& window, const std::vector<std::string>& lines, size_t count,
                       bool one_host);

// The template with named holes for the accused: "<rank>" if every line names an accused rank after the word
// rank, "<host>" if every line names an accused host that is not its writer.
std::string with_subjects(const std::string& pattern, const Diagnosis& diagnosis, const Cause& cause);

}  // namespace culprit::app
