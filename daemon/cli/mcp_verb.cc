#include <unistd.h>

#include <cerrno>

#include "cli/mcp_source.h"
#include "cli/reading.h"
#include "cli/remote.h"
#include "cli/verbs.h"

namespace culprit::cli {
namespace {

constexpr const char* kMcpExamples = R"(
Examples:
  culprit mcp                                   # an assistant starts it; it asks the daemon of this host
  culprit mcp --dir runs/failed                 # the same of a folder, without a daemon
  culprit mcp --server https://culprit.example:7420 --token-file token)";

struct McpOptions {
  RemoteOptions remote;
  std::string dir;
};

// Calls back for each line of standard input; nullopt: a line that is too long. False: the input is
// unreadable.
bool for_each_line(const std::function<bool(std::optional<std::string_view>)>& take) {
  std::string line, part(64 << 10, '\0');
  bool skipping = false;
  for (;;) {
    const ssize_t n = read(STDIN_FILENO, part.data(), part.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return false;
    if (n == 0) return line.empty() || skipping || take(line);
    std::string_view rest(part.data(), static_cast<size_t>(n));
    while (!rest.empty()) {
      const size_t end = rest.find('\n');
      if (!skipping) line += rest.substr(0, end);
      if (!skipping && line.size() > kMcpLineBytes) {
        skipping = true;
        if (!take(std::nullopt)) return true;
      }
      if (end == rest.npos) break;
      if (!skipping && !take(line)) return true;
      line.clear();
      skipping = false;
      rest.remove_prefix(end + 1);
    }
  }
}

int mcp(McpOptions& o) {
  std::unique_ptr<McpSource> source;
  if (o.dir.empty()) {
    auto client = app::Client::make(o.remote.client);
    if (!client) return report_error(client.error().text), kUnable;
    source = mcp_of_daemon(std::move(*client));
  } else {
    ReadingOptions reading;
    reading.diagnose.paths = {o.dir};
    reading.quiet = true;
    if (Status status = resolve(reading); !status) return report_error(status.error().text), kUnable;
    if (access(o.dir.c_str(), R_OK) != 0) return report_error(o.dir + ": it cannot be read"), kUnable;
    source = mcp_of_folder(std::move(reading.diagnose));
  }
  McpServer server(*source);
  bool printed = true;
  const bool whole = for_each_line([&](std::optional<std::string_view> line) {
    const std::string reply = line ? server.handle(*line) : McpServer::too_long();
    printed = reply.empty() || print(reply + "\n");
    return printed;
  });
  if (!whole) report_error("standard input cannot be read");
  return whole && printed ? kDone : kUnable;
}

}  // namespace

void add_mcp(Command& app, Run& run) {
  auto o = std::make_shared<McpOptions>();
  Command* verb = app.add_subcommand("mcp", "Answer an assistant over the Model Context Protocol, read-only");
  verb->footer(kMcpExamples);
  verb->add_option("--dir", o->dir, "Answer for the jobs in this folder, without a daemon");
  add_server_options(*verb, o->remote);
  verb->callback([o, &run] { run = [o] { return mcp(*o); }; });
}

}  // namespace culprit::cli
