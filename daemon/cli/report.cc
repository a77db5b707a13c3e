#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "app/offline/source_lines.h"
#include "base/text.h"
#include "cli/look.h"
#include "cli/near.h"
#include "cli/remote.h"
#include "cli/render.h"
#include "cli/rules.h"
#include "cli/verbs.h"
#include "model/report_json_read.h"

namespace culprit::cli {
namespace {

constexpr const char* kReportExamples = R"(
Examples:
  culprit report llama-70b-0412
  culprit report llama-70b-0412 --run 0             # the first of several of this name
  culprit report llama-70b-0412 --format json | jq .verdict.title)";

struct ReportOptions {
  RemoteOptions remote;
  std::string job;
  std::optional<uint32_t> run;
  bool exit_code = false;
};

// The lines around the evidence, as far as the daemon has them.
std::vector<SourceLines> lines_of(app::Client& client, const std::string& job, const Report& report) {
  std::vector<SourceLines> out;
  for (SourceLines& w : app::windows_around(app::places_shown(report))) {
    const uint64_t around = w.lines.size() / 2, middle = w.first + around;
    const auto got =
        get_json(client, fmt::format("/v1/evidence/lines?job={}&host={}&path={}&line={}&around={}",
                                     app::url_escaped(job), app::url_escaped(w.host.value_or("")),
                                     app::url_escaped(w.file), middle, around));
    if (!got || !got->is_object()) continue;
    w.first = got->value("first", w.first);
    w.lines = got->value("lines", std::vector<std::string>());
    w.cut = got->value("cut", std::vector<uint64_t>());
    w.cut.resize(w.lines.size());
    for (size_t i = 0; i < w.lines.size(); ++i) {
      const size_t size = w.lines[i].size();
      if (size > kContextLineBytes)
        w.lines[i].resize(kContextLineBytes), w.cut[i] += size - kContextLineBytes;
    }
    if (!w.lines.empty()) out.push_back(std::move(w));
  }
  return out;
}

int report(ReportOptions& o) {
  if (Status status = resolve(o.remote); !status) return complain(status.error().text), kUnable;
  auto client = app::Client::make(o.remote.client);
  if (!client) return complain(client.error().text), kUnable;
  const std::string& format = o.remote.format;
  const auto text = client->get(report_path(o.job, o.run, format != "json"));
  if (!text) return complain(with_meant_job(*client, text.error(), o.job)), kUnable;
  auto read = report_from_json(*text);
  if (!read) return complain(client->server() + ": " + read.error().text), kUnable;
  std::erase_if(read->diagnoses, [](const Diagnosis& d) { return d.refuted; });  // they stand last
  RenderOptions options;
  options.color = wants_color();
  options.width = page_width();
  options.zone = o.remote.zone;
  options.zone_name = o.remote.timezone;
  const auto json = nlohmann::json::parse(*text, nullptr, false);
  options.settling = json.is_object() && json.value("settled", nlohmann::json(true)) == false;
  options.look = [&](const Evidence& e) {
    return look_at_daemon(e, read->job.id.value_or(o.job), o.remote.client);
  };
  if (format == "html") {
    options.job = o.job;
    options.run = o.run;
    options.lines = lines_of(*client, o.job, *read);
  }
  const std::string out = format == "json"   ? *text
                          : format == "html" ? render_html(*read, options)
                                             : render_text(*read, options);
  if (!print(out)) return kUnable;
  return o.exit_code && !read->diagnoses.empty() ? kFound : kDone;
}

}  // namespace

void add_report(Command& app, Run& run) {
  auto o = std::make_shared<ReportOptions>();
  Command* verb = app.add_subcommand("report", "What the daemon says of a job, running or ended");
  verb->footer(kReportExamples);
  verb->add_option("JOB", o->job, "As `culprit jobs` lists it")->required();
  add_run(*verb, o->run);
  add_server_options(*verb, o->remote);
  add_format(*verb, o->remote, {"text", "json", "html"});
  add_timezone(*verb, o->remote);
  verb->add_flag("--exit-code", o->exit_code, "Exit with 1 when a diagnosis was made");
  verb->callback([o, &run] { run = [o] { return report(*o); }; });
}

}  // namespace culprit::cli
