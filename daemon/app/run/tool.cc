#include "app/run/tool.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdlib>

#include "base/clock.h"
#include "base/text.h"
#include "io/child.h"
#include "io/descriptors.h"
#include "io/system_error.h"

namespace culprit::app {
namespace {

constexpr size_t kErrorBytes = 4096, kReasonBytes = 300;
constexpr int kRoundMs = 100;

struct Pipe {
  io::Descriptor read, write;
};

Result<Pipe> make_pipe() {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return io::system_failure("a pipe", errno);
  Pipe out{io::Descriptor(ends[0]), io::Descriptor(ends[1])};
  ::fcntl(ends[0], F_SETFL, O_NONBLOCK);
  return out;
}

std::vector<std::string> environment_of(const Tool& tool) {
  std::vector<std::string> out = tool.environment;
  const auto replaced = [&](std::string_view entry) {
    const std::string_view name = entry.substr(0, entry.find('='));
    return std::ranges::find(tool.unset, name) != tool.unset.end() ||
           std::ranges::any_of(tool.environment, [&](const std::string& one) {
             return one.size() > name.size() && one[name.size()] == '=' && one.starts_with(name);
           });
  };
  for (char** entry = environ; entry && *entry; ++entry)
    if (!replaced(*entry)) out.emplace_back(*entry);
  return out;
}

// Reads both pipes until the program has closed them. Nothing: they were closed; else why not.
std::string read_both(Pipe& out, Pipe& err, const Tool& tool, std::string& output, std::string& errors) {
  const TimeNs until = steady_now() + tool.within_ns;
  std::array<char, 16384> part{};
  while (out.read.is_open() || err.read.is_open()) {
    if (steady_now() >= until) return fmt::format("did not end within {} s", tool.within_ns / kNsPerSecond);
    pollfd polled[] = {{out.read.get(), POLLIN, 0}, {err.read.get(), POLLIN, 0}};
    if (::poll(polled, 2, kRoundMs) < 0 && errno != EINTR) return "poll failed";
    for (int i = 0; i < 2; ++i) {
      Pipe& pipe = i == 0 ? out : err;
      std::string& text = i == 0 ? output : errors;
      if (!pipe.read.is_open() || polled[i].revents == 0) continue;
      const ssize_t n = ::read(pipe.read.get(), part.data(), part.size());
      if (n < 0 && (errno == EAGAIN || errno == EINTR)) continue;
      if (n <= 0) {
        pipe.read = {};
        continue;
      }
      const size_t room = (i == 0 ? tool.output_max : kErrorBytes) - text.size();
      text.append(part.data(), std::min(room, static_cast<size_t>(n)));
      if (i == 0 && static_cast<size_t>(n) > room)
        return fmt::format("wrote more than {}", format_bytes(tool.output_max));
    }
  }
  return {};
}

std::string first_line(std::string_view text) {
  return shorten(to_terminal(trim(text.substr(0, text.find('\n')))), kReasonBytes);
}

}  // namespace

std::string program_path(std::string_view name, const Lookup& variable) {
  if (name.find('/') != name.npos) return std::string(name);
  const std::string path = variable("PATH").value_or("/usr/bin:/bin");
  for (const std::string_view folder : split(path, ':')) {
    if (!folder.starts_with('/')) continue;
    const std::string out = fmt::format("{}/{}", folder, name);
    if (::access(out.c_str(), X_OK) == 0) return out;
  }
  return {};
}

Result<std::string> output_of(const Tool& tool) {
  const std::string& name = tool.words[0];
  const std::string path = program_path(name, [](std::string_view variable) -> std::optional<std::string> {
    const char* value = std::getenv(std::string(variable).c_str());
    return value ? std::optional<std::string>(value) : std::nullopt;
  });
  if (path.empty()) return fail(ErrorCode::kNotFound, name + ": is not installed here");
  auto out = make_pipe(), err = make_pipe();
  if (!out || !err) return tl::unexpected(out ? err.error() : out.error());
  auto child =
      io::Child::start({.path = path,
                        .arguments = tool.words,
                        .environment = environment_of(tool),
                        .descriptors = {io::ChildProgram::kNull, out->write.get(), err->write.get()}});
  if (!child) return tl::unexpected(child.error());
  out->write = {}, err->write = {};
  std::string output, errors;
  const TimeNs until = steady_now() + tool.within_ns;
  std::string trouble = read_both(*out, *err, tool, output, errors);
  const auto end = child->wait(trouble.empty() ? std::max<TimeNs>(until - steady_now(), 0) : 0);
  if (trouble.empty() && end && end->is_success()) return output;
  if (trouble.empty() && !end)
    trouble = fmt::format("did not end within {} s", tool.within_ns / kNsPerSecond);
  if (trouble.empty())
    trouble = end->signal != 0 ? fmt::format("ended by signal {}", end->signal)
                               : fmt::format("exit code {}", end->code);
  const std::string first = first_line(errors);
  return fail(ErrorCode::kIo, fmt::format("{}: {}{}{}", name, trouble, first.empty() ? "" : ": ", first));
}

}  // namespace culprit::app
