// Names the kind of a file that is no log, trace or dump, by its first bytes. Pure functions; any thread.
#pragma once

#include <string_view>

namespace culprit::ingest {

struct UnreadKind {
  std::string_view what;     // "a core dump"
  std::string_view instead;  // a suggested input in its place; empty: none
  bool lost = false;         // it may have been a log: what it held is not known
};
UnreadKind unread_kind(std::string_view head);

// JSON for machines: a profiler's trace, or lines of objects with neither a sentence nor a step.
bool is_machine_json(std::string_view head);

// Thread dumps of a Java program (jstack, SIGQUIT): no process of a training job.
bool is_java_dump(std::string_view head);

}  // namespace culprit::ingest
