// Identifies files other than logs, traces and dumps by their first bytes. Pure functions; any thread.
#pragma once

#include <string_view>

namespace culprit::ingest {

struct UnreadKind {
  std::string_view what;     // "a core dump"
  std::string_view instead;  // a suggested input in its place; empty: none
  bool lost = false;         // may have been a log with unknown content
};
UnreadKind unread_kind(std::string_view head);

// Whether the head is machine JSON: a profiler's trace, or lines of objects with neither a sentence nor a
// step.
bool is_machine_json(std::string_view head);

// Whether the head is a thread dump of a Java program (jstack, SIGQUIT), which is no process of a training
// job.
bool is_java_dump(std::string_view head);

// Whether the head is a report that `culprit` wrote as a page: its quotes of a job's lines are no second job.
bool is_own_page(std::string_view head);

}  // namespace culprit::ingest
