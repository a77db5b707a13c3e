#include "capture/request.h"

#include <simdjson.h>

#include <algorithm>

#include "base/text.h"
#include "model/json_writer.h"

namespace culprit::capture {
namespace {

namespace dom = simdjson::dom;

constexpr size_t kWhyBytes = 400;
constexpr size_t kChildrenShown = 16;  // blocked, stopped or dead ones

template <class Value>
Value value_of(dom::object object, const char* key, Value otherwise = {}) {
  Value out{};
  return object.at_key(key).get(out) == simdjson::SUCCESS ? out : otherwise;
}

const ThreadView* view_of(const ProcessLook& look, uint64_t tid) {
  for (const ThreadView& thread : look.threads)
    if (thread.tid == tid) return &thread;
  return nullptr;
}

void write_file(JsonWriter& w, const WaitingFile& file) {
  w.field("file", file.path);
  w.text_or_null("mount", file.mount);
  w.text_or_null("fs_type", file.fs_type);
  w.field("served", file.served);
}

void write_call(JsonWriter& w, const ThreadView& thread) {
  if (!thread.wchan.empty()) w.field("wchan", thread.wchan);
  if (thread.call && !thread.call->running) w.field("syscall", thread.call->number);
}

void write_view(JsonWriter& w, const ThreadView& thread) {
  w.field("state", std::string_view(&thread.state, 1));
  write_call(w, thread);
  if (!thread.kernel.empty()) w.values("kernel", thread.kernel);
}

// Writes the process-level fields of the look.
void write_look(JsonWriter& w, const ProcessLook& look) {
  const char state = look.stat.state;
  w.field("uid", look.status.uid);
  w.field("name", look.stat.name);
  w.field("state", std::string_view(&state, 1));
  if (!look.threads.empty()) write_call(w, look.threads.front());
  if (look.frozen) w.field("frozen", true);
  if (look.status.tracer != 0) w.field("tracer", look.status.tracer);
  if (look.more_threads > 0) w.field("more_threads", look.more_threads);
  const ThreadView* stuck = look.stuck();
  if (!stuck) return;
  w.member("waits", [&] {
    w.object([&] {
      w.field("pid", stuck->pid);
      w.field("tid", stuck->tid);
      w.field("name", stuck->name);
      write_view(w, *stuck);
      if (stuck->file)
        write_file(w, *stuck->file);
      else
        w.field("served", waits_for_server(stuck->wchan));
    });
  });
}

void write_children(JsonWriter& w, const ProcessLook& look, uint32_t pid) {
  std::vector<const ThreadView*> shown;
  for (const ThreadView& thread : look.threads) {
    const bool odd = thread.stuck || std::string_view("TtZX").find(thread.state) != std::string_view::npos;
    if (thread.pid != pid && odd && shown.size() < kChildrenShown) shown.push_back(&thread);
  }
  if (shown.empty()) return;
  w.list("children", shown, [&](const ThreadView* thread) {
    w.object([&] {
      w.field("pid", thread->pid);
      w.field("tid", thread->tid);
      w.field("name", thread->name);
      write_view(w, *thread);
      if (thread->file) write_file(w, *thread->file);
    });
  });
}

void write_thread(JsonWriter& w, const StackedThread& thread, const ProcessLook* look) {
  const ThreadView* view = look && thread.tid > 0 ? view_of(*look, thread.tid) : nullptr;
  w.object([&] {
    w.field("name", thread.name.empty() && view ? view->name : thread.name);
    if (thread.tid > 0) w.field("tid", thread.tid);
    if (thread.holds_gil) w.field("gil", true);
    if (view) w.field("state", std::string_view(&view->state, 1));
    w.values("frames", thread.frames);
  });
}

std::string line_of(const Request& request, const Answer& answer, size_t threads) {
  const Stacks& stacks = answer.stacks;
  JsonWriter w;
  w.object([&] {
    w.field("kind", "stack");
    w.field("job", request.job);
    w.field("host", request.host);
    if (answer.rank) w.field("rank", *answer.rank);
    w.field("time_ns", answer.time_ns);
    w.field("pid", answer.target.pid);
    w.field("sample", request.sample);
    if (answer.look)
      write_look(w, *answer.look);
    else
      w.field("state", "gone");
    if (!answer.tool.empty()) w.field("tool", answer.tool);
    if (!answer.why.empty()) w.field("why", shorten(to_utf8(answer.why), kWhyBytes));
    if (answer.recorder_asked) w.field("recorder_asked", true);
    if (answer.look) write_children(w, *answer.look, answer.target.pid);
    const uint64_t dropped = stacks.dropped + (stacks.threads.size() - threads);
    if (dropped > 0) w.field("dropped", dropped);
    const ProcessLook* look = answer.look ? &*answer.look : nullptr;
    w.member("threads", [&] {
      w.array(std::vector<StackedThread>(stacks.threads.begin(),
                                         stacks.threads.begin() + static_cast<std::ptrdiff_t>(threads)),
              [&](const StackedThread& thread) { write_thread(w, thread, look); });
    });
  });
  return w.finish();
}

}  // namespace

std::string request_line(const Request& request) {
  JsonWriter w;
  w.object([&] {
    w.field("job", request.job);
    w.field("host", request.host);
    w.field("sample", request.sample);
    w.field("rings", request.rings);
    w.values("tools", request.tools);
    w.field("budget_ns", request.budget_ns);
    w.field("at_once", request.at_once);
    if (request.all) w.field("all", true);
    if (request.ras_port != 0) w.field("ras_port", request.ras_port);
    w.list("targets", request.targets, [&](const Target& target) {
      w.object([&] {
        w.field("pid", target.pid);
        w.field("start", target.start_ticks);
      });
    });
  });
  return w.finish();
}

Result<Request> parse_request(std::string_view line) {
  if (line.size() > kRequestBytes) return fail(ErrorCode::kLimit, "the request is too long");
  dom::parser parser;
  dom::object object;
  const simdjson::padded_string padded(line);
  if (parser.parse(padded).get(object) != simdjson::SUCCESS)
    return fail(ErrorCode::kInvalid, "the request is no object");
  Request out;
  out.job = value_of<std::string_view>(object, "job");
  out.host = value_of<std::string_view>(object, "host");
  out.rings = value_of<std::string_view>(object, "rings");
  out.sample = static_cast<uint32_t>(value_of<uint64_t>(object, "sample"));
  out.budget_ns =
      std::clamp<int64_t>(value_of<int64_t>(object, "budget_ns"), kNsPerSecond, 120 * kNsPerSecond);
  out.at_once = static_cast<uint32_t>(std::clamp<uint64_t>(value_of<uint64_t>(object, "at_once"), 1, 64));
  out.all = value_of<bool>(object, "all");
  if (object.at_key("ras_port").error() == simdjson::SUCCESS) {
    const auto port = value_of<uint64_t>(object, "ras_port");
    if (port == 0 || port > UINT16_MAX) return fail(ErrorCode::kInvalid, "the port of RAS is not valid");
    out.ras_port = static_cast<uint16_t>(port);
  }
  const size_t most = out.ras_port != 0 ? kRasTargets : kTargets;
  dom::array tools, targets;
  out.tools.clear();
  if (object.at_key("tools").get(tools) == simdjson::SUCCESS)
    for (const dom::element tool : tools)
      if (std::string_view name; out.tools.size() < 8 && tool.get(name) == simdjson::SUCCESS)
        out.tools.emplace_back(name);
  if (object.at_key("targets").get(targets) != simdjson::SUCCESS)
    return fail(ErrorCode::kInvalid, "the request names no processes");
  for (const dom::element element : targets) {
    dom::object target;
    if (element.get(target) != simdjson::SUCCESS) return fail(ErrorCode::kInvalid, "a process is no object");
    const auto pid = value_of<uint64_t>(target, "pid");
    if (pid < 2 || pid > INT32_MAX) return fail(ErrorCode::kInvalid, "a process has no valid number");
    if (out.targets.size() == most) return fail(ErrorCode::kLimit, "there are too many processes");
    out.targets.push_back({static_cast<uint32_t>(pid), value_of<uint64_t>(target, "start")});
  }
  return out;
}

std::string answer_line(const Request& request, const Answer& answer) {
  size_t threads = answer.stacks.threads.size();
  std::string line = line_of(request, answer, threads);
  while (line.size() > kAnswerBytes && threads > 0) line = line_of(request, answer, threads /= 2);
  return line;
}

}  // namespace culprit::capture
