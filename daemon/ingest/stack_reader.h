// Reads dumps of stacks (formats.md section 5): text of py-spy, faulthandler, gdb, eu-stack and torch's debug
// server, JSON of py-spy, and lines of kind "stack". Pure except for read_stacks(), which reads the file; any
// thread. A damaged or truncated file is parsed up to the damage.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "ingest/source_list.h"
#include "ingest/stack_text.h"
#include "model/report.h"
#include "model/stack.h"

namespace culprit::ingest {

struct ReadStacks {
  std::vector<StackDump> dumps;  // at least one, unless only `refusals` has content
  std::vector<StackRefusal> refusals;
  std::vector<Problem> problems;
};

// The rank in the name of a file ("stacks/node-1/rank_3.json", "pyspy_rank3.2.txt"), and its host in the form
// `stacks/<host>/rank_<r>.<json|txt>`. Other numbers are ignored: they may be a pid or part of a host name.
std::optional<uint32_t> stack_rank_in_name(std::string_view path);
std::optional<std::string> stack_host_in_path(std::string_view path);

// `path` is for messages, and gives rank and host if the dumps lack them. The error is a sentence with the
// path as its subject.
Result<ReadStacks> parse_stacks(std::string_view bytes, const std::string& path);
Result<ReadStacks> read_stacks(const SourceFile& file);

}  // namespace culprit::ingest
