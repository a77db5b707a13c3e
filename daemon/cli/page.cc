#include <fmt/format.h>
#include <unistd.h>

#include "base/text.h"
#include "cli/qr.h"
#include "cli/remote.h"
#include "cli/verbs.h"
#include "model/json_text.h"

namespace culprit::cli {
namespace {

constexpr const char* kPageExamples = R"(
Examples:
  culprit page                        # a link that logs a browser in once, and a QR code for a phone
  culprit page llama-70b-0412         # opens at this job)";

struct PageOptions {
  RemoteOptions remote;
  std::string job;
};

bool on_this_machine_only(const std::string& url) {
  for (const char* host : {"://127.", "://localhost", "://[::1]"})
    if (url.find(host) != url.npos) return true;
  return false;
}

int print_link(PageOptions& o) {
  if (Status status = resolve(o.remote); !status) return report_error(status.error().text), kUnable;
  auto client = app::Client::make(o.remote.client);
  if (!client) return report_error(client.error().text), kUnable;
  const auto done = client->post("/v1/page/link", by_whom());
  if (!done) return report_error(done.error().text), kUnable;
  Json json = parse_ordered_json(*done);
  if (!json.is_object() || !json.value("url", Json()).is_string())
    return report_error("the daemon's answer has no link"), kUnable;
  std::string url = json["url"].get<std::string>();
  if (!o.job.empty()) url += "&at=" + app::url_escaped("jobs/" + app::url_escaped(o.job));
  json["url"] = url;
  if (o.remote.format == "json") return print(json.dump() + "\n") ? kDone : kUnable;
  std::string out = to_terminal(url) + "\n";
  if (isatty(STDOUT_FILENO)) {
    if (const auto code = qr_code(url)) out += "\n" + qr_text(*code);
    out += fmt::format("\nIt logs one browser in, which may {}, until {}. Who has the link can use it.\n",
                       text_field(json, "role") == "operate" ? "read and change" : "read",
                       time_field(json, "expires_ns", o.remote.zone));
    if (on_this_machine_only(url))
      out +=
          "It opens on this machine alone: for a phone set url below [http], the page's address for "
          "people.\n";
  }
  return print(out) ? kDone : kUnable;
}

}  // namespace

void add_page(Command& app, Run& run) {
  auto o = std::make_shared<PageOptions>();
  Command* verb = app.add_subcommand("page", "A link that logs a browser in once, and its QR code");
  verb->footer(kPageExamples);
  verb->add_option("JOB", o->job, "Open the page at this job");
  add_server_options(*verb, o->remote);
  add_format(*verb, o->remote, {"text", "json"});
  add_timezone(*verb, o->remote);
  verb->callback([o, &run] { run = [o] { return print_link(*o); }; });
}

}  // namespace culprit::cli
