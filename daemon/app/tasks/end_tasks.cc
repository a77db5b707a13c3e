#include "app/tasks/end_tasks.h"

#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <simdjson.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <optional>

#include "app/jobs/process_view.h"
#include "base/clock.h"
#include "capture/proc_text.h"
#include "capture/process.h"
#include "io/descriptors.h"
#include "model/json_writer.h"

namespace culprit::app {
namespace {

namespace dom = simdjson::dom;

constexpr int kPollSliceMs = 20;
constexpr size_t kWhyMax = 400;

struct Signalled {
  EndTarget target;
  io::Descriptor handle;
};

std::optional<uint64_t> start_of(const std::string& proc, uint32_t pid) {
  const auto stat = capture::parse_stat(capture::read_some(fmt::format("{}/{}/stat", proc, pid)));
  if (!stat || stat->state == 'Z' || stat->state == 'X') return std::nullopt;
  return stat->start_ticks;
}

void send(const std::vector<Signalled>& all, int signal) {
  for (const Signalled& one : all) ::syscall(SYS_pidfd_send_signal, one.handle.get(), signal, nullptr, 0);
}

// Removes those that have ended; returns their number.
uint32_t remove_ended(std::vector<Signalled>& all, const std::string& proc) {
  return static_cast<uint32_t>(std::erase_if(all, [&](const Signalled& one) {
    pollfd ended{one.handle.get(), POLLIN, 0};
    return ::poll(&ended, 1, 0) != 0 || start_of(proc, one.target.pid) != one.target.start_ticks;
  }));
}

uint32_t await_end(std::vector<Signalled>& all, const std::string& proc, TimeNs within) {
  const TimeNs until = steady_now() + within;
  uint32_t ended = remove_ended(all, proc);
  while (!all.empty() && steady_now() < until) {
    ::poll(nullptr, 0, kPollSliceMs);
    ended += remove_ended(all, proc);
  }
  return ended;
}

void note(EndCounts& counts, std::string why) {
  if (counts.why.empty()) counts.why = std::move(why).substr(0, kWhyMax);
}

Result<dom::object> object_of(dom::parser& parser, std::string_view line) {
  dom::object object;
  if (parser.parse(simdjson::padded_string(line)).get(object) != simdjson::SUCCESS)
    return fail(ErrorCode::kInvalid, "it is no JSON object");
  return object;
}

uint64_t number_of(dom::object object, const char* key, uint64_t otherwise = 0) {
  uint64_t out = 0;
  return object.at_key(key).get(out) == simdjson::SUCCESS ? out : otherwise;
}

std::string text_of(dom::object object, const char* key) {
  std::string_view out;
  return object.at_key(key).get(out) == simdjson::SUCCESS ? std::string(out) : "";
}

}  // namespace

std::string to_line(const EndRequest& request) {
  JsonWriter w;
  w.object([&] {
    w.field("job", request.job);
    w.field("grace_ms", static_cast<uint64_t>(request.grace_ns / kNsPerMs));
    w.list("targets", request.targets, [&](const EndTarget& target) {
      w.object([&] {
        w.field("pid", target.pid);
        w.field("start_ticks", target.start_ticks);
      });
    });
  });
  return w.finish();
}

Result<EndRequest> parse_end_request(std::string_view line) {
  dom::parser parser;
  auto object = object_of(parser, line);
  if (!object) return tl::unexpected(object.error());
  EndRequest out;
  out.job = text_of(*object, "job");
  out.grace_ns = std::min(number_of(*object, "grace_ms"), uint64_t{kEndGraceMax / kNsPerMs}) * kNsPerMs;
  dom::array targets;
  if (out.job.empty() || object->at_key("targets").get(targets) != simdjson::SUCCESS)
    return fail(ErrorCode::kInvalid, "a request has a job and targets");
  for (const dom::element element : targets) {
    dom::object target;
    if (element.get(target) != simdjson::SUCCESS || out.targets.size() >= kEndTargets)
      return fail(ErrorCode::kInvalid, "a target is a process, and they are few");
    const uint64_t pid = number_of(target, "pid");
    if (pid <= 1 || pid > INT32_MAX) return fail(ErrorCode::kInvalid, "no process has this number");
    out.targets.push_back({static_cast<uint32_t>(pid), number_of(target, "start_ticks")});
  }
  return out;
}

std::string to_line(const EndCounts& counts) {
  JsonWriter w;
  w.object([&] {
    w.field("ended", counts.ended);
    w.field("ended_before", counts.ended_before);
    w.field("refused", counts.refused);
    w.field("left", counts.left);
    w.field("why", counts.why);
  });
  return w.finish();
}

Result<EndCounts> parse_end_counts(std::string_view line) {
  dom::parser parser;
  auto object = object_of(parser, line);
  if (!object) return tl::unexpected(object.error());
  const auto count = [&](const char* key) { return static_cast<uint32_t>(number_of(*object, key)); };
  return EndCounts{count("ended"), count("ended_before"), count("refused"), count("left"),
                   text_of(*object, "why")};
}

std::string why_not_ended(const std::string& proc, const std::string& job, uint32_t pid) {
  struct stat owner {};
  if (::stat(fmt::format("{}/{}", proc, pid).c_str(), &owner) != 0) return "it has ended";
  const auto status = capture::parse_status(capture::read_some(fmt::format("{}/{}/status", proc, pid)));
  if (!status || owner.st_uid == 0 || status->uid == 0) return "processes of root are never ended";
  if (job_of_process(proc, pid) != job) return fmt::format("process {} is not of job {}", pid, job);
  return {};
}

EndCounts end_tasks(const EndRequest& request, const WhyNot& why_not, const std::string& proc) {
  EndCounts counts;
  std::vector<Signalled> all;
  for (const EndTarget& target : request.targets) {
    // The pidfd comes first: what is read after it is about this process, or about none.
    io::Descriptor handle(static_cast<int>(::syscall(SYS_pidfd_open, static_cast<pid_t>(target.pid), 0)));
    if (!handle.is_open() || start_of(proc, target.pid) != target.start_ticks) {
      ++counts.ended_before;
    } else if (std::string why = why_not(target.pid); !why.empty()) {
      ++counts.refused;
      note(counts, std::move(why));
    } else {
      all.push_back({target, std::move(handle)});
    }
  }
  send(all, SIGTERM);
  send(all, SIGCONT);
  counts.ended = await_end(all, proc, request.grace_ns);
  send(all, SIGKILL);
  counts.ended += await_end(all, proc, kKilledWithin);
  counts.left = static_cast<uint32_t>(all.size());
  if (!all.empty())
    note(counts,
         fmt::format("process {} lives in spite of SIGKILL: it waits in the kernel", all.front().target.pid));
  return counts;
}

}  // namespace culprit::app
