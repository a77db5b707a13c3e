#include <fmt/format.h>

#include "base/text.h"
#include "cli/near.h"
#include "cli/remote.h"
#include "cli/verbs.h"

namespace culprit::cli {
namespace {

constexpr const char* kClearExamples = R"(
Example:
  culprit clear node-17     # its GPU was replaced: what was held against it counts no more)";

struct ClearOptions {
  RemoteOptions remote;
  std::string host;
};

int clear(ClearOptions& o) {
  auto client = app::Client::make(o.remote.client);
  if (!client) return report_error(client.error().text), kUnable;
  const auto done = client->post("/v1/hosts/" + app::url_escaped(o.host) + "/clear", by_whom());
  if (!done) return report_error(with_meant_host(*client, done.error(), o.host)), kUnable;
  const std::string reported =
      o.remote.format == "json" ? *done : fmt::format("{}: cleared\n", to_terminal(o.host));
  return print(reported) ? kDone : kUnable;
}

}  // namespace

void add_clear(Command& app, Run& run) {
  auto o = std::make_shared<ClearOptions>();
  Command* verb = app.add_subcommand("clear", "Tell the daemon that a host was mended");
  verb->footer(kClearExamples);
  verb->add_option("HOST", o->host, "As `culprit hosts` lists it")->required();
  add_server_options(*verb, o->remote);
  add_format(*verb, o->remote, {"text", "json"});
  verb->callback([o, &run] { run = [o] { return clear(*o); }; });
}

}  // namespace culprit::cli
