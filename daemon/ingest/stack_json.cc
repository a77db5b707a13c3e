#include "ingest/stack_json.h"

#include <algorithm>
#include <map>
#include <optional>
#include <tuple>
#include <utility>

#include "base/limits.h"
#include "base/text.h"
#include "ingest/data_tree.h"
#include "ingest/pickle.h"
#include "ingest/stack_builder.h"

namespace culprit::ingest {
namespace {

using Ref = DataTree::Ref;

constexpr std::pair<std::string_view, StackTool> kToolNames[] = {{"py-spy", StackTool::kPySpy},
                                                                 {"faulthandler", StackTool::kFaultHandler},
                                                                 {"gdb", StackTool::kGdb},
                                                                 {"eu-stack", StackTool::kEuStack}};

// The end of the JSON value that begins at `at`: after its last bracket, or the end of the text.
size_t end_of_value(std::string_view text, size_t at) {
  size_t depth = 0;
  for (size_t i = at; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '"') {
      for (++i; i < text.size() && text[i] != '"'; ++i)
        if (text[i] == '\\') ++i;
    } else if (c == '{' || c == '[') {
      ++depth;
    } else if ((c == '}' || c == ']') && (depth == 0 || --depth == 0)) {
      return i + 1;
    }
  }
  return text.size();
}

class ValueReader {
 public:
  ValueReader(const DataTree& tree, StackJson& out) : tree_(tree), out_(out) {}

  // False: the value is no stack.
  bool read(Ref root) {
    if (tree_.kind(root) == DataTree::Kind::kList) return read_threads(root);
    if (tree_.kind(root) != DataTree::Kind::kTable) return false;
    if (text_at(root, "kind") == "stack") return read_line(root);
    return tree_.find(root, "frames") ? read_one(root) : false;
  }

 private:
  std::string_view text_at(Ref table, std::string_view key) const {
    const auto at = tree_.find(table, key);
    return at ? tree_.text(*at) : std::string_view();
  }
  uint64_t number_at(Ref table, std::string_view key, uint64_t most) const {
    const auto at = tree_.find(table, key);
    const auto n = at ? tree_.integer(*at) : std::nullopt;
    return n && *n >= 0 && static_cast<uint64_t>(*n) <= most ? static_cast<uint64_t>(*n) : 0;
  }
  bool truth_at(Ref table, std::string_view key) const {
    const auto at = tree_.find(table, key);
    return at && tree_.truth(*at);
  }

  void close(StackBuilder& builder) {
    out_.dropped += builder.dropped();
    StackDump dump = builder.finish();
    if (dump.threads.empty() && dump.process_state.empty()) return;
    if (out_.dumps.size() < limits::kStackDumps)
      out_.dumps.push_back(std::move(dump));
    else
      ++out_.dropped;
  }

  // py-spy lists the threads of a process and, if asked, of its children.
  bool read_threads(Ref list) {
    const DataTree::Members members = tree_.members(list);
    StackBuilder builder;
    builder.dump().tool = StackTool::kPySpy;
    bool any = false;
    for (const Ref thread : members) {
      if (tree_.kind(thread) != DataTree::Kind::kTable || !tree_.find(thread, "frames")) continue;
      const auto pid = static_cast<uint32_t>(number_at(thread, "pid", UINT32_MAX));
      if (!any) builder.dump().pid = pid;
      any = true;
      read_thread(builder, thread, pid == builder.dump().pid ? 0 : pid);
    }
    close(builder);
    return any || members.empty();
  }

  bool read_one(Ref thread) {
    StackBuilder builder;
    builder.dump().tool = StackTool::kPySpy;
    builder.dump().pid = static_cast<uint32_t>(number_at(thread, "pid", UINT32_MAX));
    read_thread(builder, thread, 0);
    close(builder);
    return true;
  }

  void read_thread(StackBuilder& builder, Ref table, uint32_t pid) {
    const uint64_t os_id = number_at(table, "os_thread_id", UINT32_MAX);
    const uint64_t id = os_id != 0 ? os_id : number_at(table, "thread_id", UINT64_MAX);
    StackThread* thread = builder.add_thread(text_at(table, "thread_name"), id, pid);
    if (!thread) return;
    thread->main = os_id != 0 && os_id == (pid != 0 ? pid : builder.dump().pid);
    if (tree_.find(table, "active"))
      thread->state = truth_at(table, "owns_gil") ? ThreadState::kGil
                      : truth_at(table, "active") ? ThreadState::kActive
                                                  : ThreadState::kIdle;
    const auto frames = tree_.find(table, "frames");
    if (!frames) return;
    for (const Ref frame : tree_.members(*frames)) {
      const auto line = static_cast<uint32_t>(number_at(frame, "line", 100'000'000));
      const std::string_view file = text_at(frame, "filename");
      builder.add_frame(text_at(frame, "name"), file, line, is_native_frame(file, line));
    }
  }

  bool read_line(Ref table) {
    StackBuilder builder;
    StackDump& dump = builder.dump();
    if (const auto host = text_at(table, "host"); !host.empty())
      dump.host = std::string(host.substr(0, limits::kNameBytes));
    if (const auto at = tree_.find(table, "rank"))
      if (const auto n = tree_.integer(*at); n && *n >= 0 && *n < limits::kCommRanks)
        dump.rank = static_cast<uint32_t>(*n);
    const uint64_t time = number_at(table, "time_ns", static_cast<uint64_t>(limits::kCommTimeMax));
    if (time > 0) dump.time_ns = static_cast<TimeNs>(time);
    dump.pid = static_cast<uint32_t>(number_at(table, "pid", UINT32_MAX));
    dump.sample = static_cast<uint32_t>(number_at(table, "sample", INT32_MAX));
    const std::string_view state = text_at(table, "state");
    if (state == "gone" || state == "Z" || state == "X") {
      const char* why = state == "Z" ? "its process ended and is a zombie" : "its process is gone";
      if (dump.rank && out_.refusals.size() < limits::kStackDumps) out_.refusals.push_back({*dump.rank, why});
      return true;
    }
    read_state(table, state, dump);
    const std::string_view tool = text_at(table, "tool");
    for (const auto& [name, known] : kToolNames)
      if (tool == name) dump.tool = known;
    const auto threads = tree_.find(table, "threads");
    uint64_t number = 0;
    if (threads)
      for (const Ref thread : tree_.members(*threads)) read_line_thread(builder, thread, ++number);
    close(builder);
    return true;
  }

  // The kernel's view of the process: its letter, and what a blocked thread waits for.
  void read_state(Ref table, std::string_view state, StackDump& dump) {
    if (state.size() == 1) dump.process_state = state;
    dump.waits_in = text_at(table, "wchan").substr(0, limits::kNameBytes);
    if (truth_at(table, "frozen")) dump.process_state = "T";
    const auto waits = tree_.find(table, "waits");
    if (!waits || tree_.kind(*waits) != DataTree::Kind::kTable || !truth_at(*waits, "served")) return;
    dump.process_state = "D";
    dump.waits_in = text_at(*waits, "wchan").substr(0, limits::kNameBytes);
  }

  void read_line_thread(StackBuilder& builder, Ref table, uint64_t number) {
    const auto frames = tree_.find(table, "frames");
    const uint64_t tid = number_at(table, "tid", UINT32_MAX);
    StackThread* thread = frames ? builder.add_thread(text_at(table, "name"), tid ? tid : number) : nullptr;
    if (!thread) return;
    thread->main = tid != 0 && tid == builder.dump().pid;
    if (truth_at(table, "gil")) thread->state = ThreadState::kGil;
    for (const Ref frame : tree_.members(*frames)) builder.add_frame_text(tree_.text(frame));
  }

  const DataTree& tree_;
  StackJson& out_;
};

}  // namespace

StackJson parse_stack_json(std::string_view text) {
  StackJson out;
  size_t at = 0;
  while ((at = text.find_first_not_of(" \t\r\n,", at)) != text.npos && out.problem.empty()) {
    if (text[at] != '{' && text[at] != '[') {  // text printed by the tool between its values
      ++out.others;
      at = std::min(text.find('\n', at), text.size());
      continue;
    }
    const size_t end = end_of_value(text, at);
    const ReadTree read = read_json_tree(text.substr(at, end - at));
    if (!read.problem.empty()) {
      out.problem = read.problem;
      out.offset = at + read.offset;
    }
    if (read.root && !ValueReader(read.tree, out).read(*read.root)) ++out.others;
    at = end;
  }
  std::map<std::tuple<std::optional<uint32_t>, uint32_t>, uint32_t> samples;
  for (StackDump& dump : out.dumps)
    if (dump.sample == 0) dump.sample = samples[{dump.rank, dump.pid}]++;
  return out;
}

}  // namespace culprit::ingest
