#include "ingest/stack_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <utility>

#include "base/ascii.h"
#include "base/limits.h"
#include "base/read_budget.h"
#include "base/text.h"
#include "ingest/decompress.h"
#include "ingest/pickle.h"
#include "ingest/stack_json.h"

namespace culprit::ingest {
namespace {

std::string_view file_name(std::string_view path) { return path.substr(path.rfind('/') + 1); }

void report_drops(uint64_t dropped, const std::string& path, ReadStacks& out) {
  if (dropped == 0) return;
  out.problems.push_back(
      {path, std::nullopt,
       fmt::format("{} of dumps, threads or frames of stacks beyond the limits are left out", dropped)});
}

void read_text_form(std::string_view bytes, const std::string& path, ReadStacks& out) {
  StackText text;
  while (!bytes.empty()) {
    const size_t end = std::min(bytes.find('\n'), bytes.size());
    text.add_line(bytes.substr(0, std::min(end, limits::kLineBytes)));
    bytes.remove_prefix(std::min(end + 1, bytes.size()));
  }
  text.end();
  report_drops(text.dropped, path, out);
  out.dumps = std::move(text.dumps);
  out.refusals = std::move(text.refusals);
}

void read_json_form(std::string_view bytes, const std::string& path, ReadStacks& out) {
  StackJson json = parse_stack_json(bytes);
  report_drops(json.dropped, path, out);
  if (!json.problem.empty()) out.problems.push_back({path, json.offset, json.problem});
  if (json.others > 0)
    out.problems.push_back(
        {path, std::nullopt,
         fmt::format("{} in it no stacks", json.others == 1 ? std::string("1 value is")
                                                            : fmt::format("{} values are", json.others))});
  out.dumps = std::move(json.dumps);
  out.refusals = std::move(json.refusals);
}

// The first line of a file of culprit.watch_stacks(): JSON about the process, before dumps as text. Empty:
// the text has no such line.
std::string_view head_line(std::string_view bytes) {
  const size_t end = bytes.find('\n');
  if (!bytes.starts_with('{') || end == bytes.npos) return {};
  const std::string_view rest = bytes.substr(end + 1);
  const size_t next = rest.find_first_not_of(" \t\r\n");
  const bool text =
      next != rest.npos && rest[next] != '{' && rest[next] != '[' && rest[next] != '"' && rest[next] != '}';
  return text ? bytes.substr(0, end) : std::string_view();
}

void apply_head(std::string_view line, ReadStacks& out) {
  const ReadTree read = read_json_tree(line);
  if (!read.root || read.tree.kind(*read.root) != DataTree::Kind::kTable) return;
  const auto number = [&](std::string_view key, int64_t most) -> std::optional<uint32_t> {
    const auto at = read.tree.find(*read.root, key);
    const auto n = at ? read.tree.integer(*at) : std::nullopt;
    return n && *n >= 0 && *n < most ? std::optional(static_cast<uint32_t>(*n)) : std::nullopt;
  };
  const auto host = read.tree.find(*read.root, "host");
  for (StackDump& dump : out.dumps) {
    dump.rank = number("rank", limits::kCommRanks);
    dump.pid = number("pid", UINT32_MAX).value_or(dump.pid);
    if (host && !read.tree.text(*host).empty())
      dump.host = std::string(read.tree.text(*host).substr(0, limits::kNameBytes));
  }
}

}  // namespace

std::optional<uint32_t> stack_rank_in_name(std::string_view path) {
  const std::string_view name = file_name(path);
  for (const std::string_view mark : {"rank_", "rank-", "rank"}) {
    const size_t at = name.rfind(mark);
    if (at == name.npos || at + mark.size() >= name.size() || !digit(name[at + mark.size()])) continue;
    uint32_t rank = 0;
    const char* const first = name.data() + at + mark.size();
    const auto [stop, error] = std::from_chars(first, name.data() + name.size(), rank);
    if (error == std::errc() && rank < limits::kCommRanks) return rank;
  }
  return std::nullopt;
}

std::optional<std::string> stack_host_in_path(std::string_view path) {
  const size_t name = path.rfind('/');
  if (name == path.npos || !stack_rank_in_name(path)) return std::nullopt;
  const std::string_view folder = path.substr(0, name);
  const size_t host = folder.rfind('/');
  if (host == folder.npos) return std::nullopt;
  if (file_name(folder.substr(0, host)) != "stacks") return std::nullopt;
  return std::string(folder.substr(host + 1));
}

namespace {

Result<ReadStacks> stacks_of(std::string_view bytes, const std::string& path) {
  ReadStacks out;
  const size_t first = bytes.find_first_not_of(" \t\r\n");
  if (first == bytes.npos) return fail(ErrorCode::kInvalid, path + ": is empty");
  const std::string_view head = head_line(bytes.substr(first));
  if (!head.empty()) {
    read_text_form(bytes.substr(first + head.size()), path, out);
    apply_head(head, out);
  }
  const std::string_view begin = bytes.substr(first);
  const bool words =
      begin.starts_with("[New ") || begin.starts_with("[Thread") || begin.starts_with("[Inferior");
  if (head.empty() && (begin[0] == '{' || begin[0] == '[') && !words)
    read_json_form(bytes, path, out);
  else if (head.empty())
    read_text_form(bytes, path, out);
  if (out.dumps.empty() && out.refusals.empty())
    return fail(ErrorCode::kInvalid, fmt::format("{}: {}", path,
                                                 out.problems.empty() ? "has no stack of a form that is read"
                                                                      : out.problems[0].what));
  const auto rank = stack_rank_in_name(path);
  const auto host = stack_host_in_path(path);
  for (StackDump& dump : out.dumps) {
    dump.file = path;
    if (!dump.rank) dump.rank = rank;
    if (!dump.host) dump.host = host;
  }
  return out;
}

}  // namespace

Result<ReadStacks> parse_stacks(std::string_view bytes, const std::string& path) {
  return ReadBudget(bytes.size()).run([&] { return stacks_of(bytes, path); }, path + ": ");
}

Result<ReadStacks> read_stacks(const SourceFile& file) {
  auto reader = Decompressor::open(file);
  if (!reader) return tl::unexpected(reader.error());
  std::string bytes;
  const bool cut = reader->read_up_to(limits::kStackBytes, bytes);
  auto out = parse_stacks(bytes, file.path);
  if (!out) return out;
  if (cut) out->problems.push_back({file.path, bytes.size(), "is larger than what is read of stacks"});
  if (reader->problem()) out->problems.push_back(*reader->problem());
  for (StackDump& dump : out->dumps)
    if (dump.time_ns == kNoTime) dump.time_ns = file.modified_ns;
  return out;
}

}  // namespace culprit::ingest
