#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "app/offline/source_lines.h"
#include "base/text.h"
#include "cli/look.h"
#include "cli/near.h"
#include "cli/remote.h"
#include "cli/render.h"
#include "cli/rules.h"
#include "cli/scheduler_text.h"
#include "cli/shared_jobs.h"
#include "cli/verbs.h"
#include "model/json_text.h"
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

// False if the answer has another form, or no lines.
bool take_lines(const Json& got, SourceLines& w) {
  const auto is_list = [&](const char* name) { return got.contains(name) && got[name].is_array(); };
  if (!got.is_object() || !is_list("lines") || !is_list("cut")) return false;
  if (const auto first = got.find("first"); first != got.end() && first->is_number_unsigned())
    w.first = first->get<uint64_t>();
  w.lines.clear();
  w.cut.clear();
  for (const Json& line : got["lines"]) {
    std::string& text = w.lines.emplace_back(line.is_string() ? line.get<std::string>() : "");
    const size_t at = w.lines.size() - 1, size = text.size();
    const Json cut = at < got["cut"].size() ? got["cut"][at] : Json();
    text.resize(std::min(size, kContextLineBytes));
    w.cut.push_back((cut.is_number_unsigned() ? cut.get<uint64_t>() : 0) + size - text.size());
  }
  return !w.lines.empty();
}

// The lines around the evidence that the daemon has. Evidence may name the host that it is about, although
// another host read the source.
class EvidenceLines {
 public:
  EvidenceLines(app::Client& client, const std::string& job) : client_(client), job_(app::url_escaped(job)) {}

  std::vector<SourceLines> of(const Report& report) {
    std::vector<SourceLines> out;
    for (SourceLines& w : app::windows_around(app::places_shown(report))) {
      if (!fill(w.host.value_or(""), w)) {
        w.reader = reader_of(w);
        if (!fill(*w.reader, w)) continue;
      }
      out.push_back(std::move(w));
    }
    return out;
  }

 private:
  bool fill(const std::string& host, SourceLines& w) {
    const uint64_t around = (w.here.back() - w.here.front()) / 2 + kLinesAround;
    const std::string path = fmt::format("/v1/evidence/lines?job={}&host={}&path={}&line={}&around={}", job_,
                                         app::url_escaped(host), app::url_escaped(w.file),
                                         (w.here.front() + w.here.back()) / 2, around + 1);
    const auto got = get_json(client_, path);
    return got && take_lines(*got, w);
  }

  std::string reader_of(const SourceLines& w) {
    if (!sources_) sources_ = get_items(client_, "/v1/sources?job=" + job_).value_or(std::vector<Json>());
    for (const Json& x : *sources_)
      if (x.is_object() && x.value("path", Json()) == w.file && x.value("host", Json()).is_string())
        return x["host"].get<std::string>();
    return "";
  }

  app::Client& client_;
  const std::string job_;
  std::optional<std::vector<Json>> sources_;  // read once, if needed
};

int report(ReportOptions& o) {
  if (Status status = resolve(o.remote); !status) return report_error(status.error().text), kUnable;
  auto client = client_of_job(o.remote, o.job);
  if (!client) return report_error(client.error().text), kUnable;
  const std::string& format = o.remote.format;
  const auto text = client->get(report_path(o.job, o.run, format != "json"));
  if (!text)
    return report_error(with_meant_job(*client, text.error(), o.job) + stored_run_hint(o.job)), kUnable;
  auto read = report_from_json(*text);
  if (!read) return report_error(client->server() + ": " + read.error().text), kUnable;
  std::erase_if(read->diagnoses, [](const Diagnosis& d) { return d.is_refuted(); });  // they stand last
  RenderOptions options;
  options.color = wants_color();
  options.width = page_width();
  options.zone = o.remote.zone;
  options.zone_name = o.remote.timezone;
  const auto json = parse_json(*text);
  if (json.is_object()) options.origin = origin_text(json, o.remote.zone);
  options.scheduler = scheduler_text(json);
  options.settling = json.is_object() && json.value("settled", nlohmann::json(true)) == false;
  options.look = [&](const Evidence& e) {
    return look_at_daemon(e, read->job.id.value_or(o.job), o.remote.client);
  };
  if (format == "html") {
    options.job = o.job;
    options.run = o.run;
    options.lines = EvidenceLines(*client, o.job).of(*read);
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
  add_members(*verb, o->remote);
  add_format(*verb, o->remote, {"text", "json", "html"});
  add_timezone(*verb, o->remote);
  verb->add_flag("--exit-code", o->exit_code, "Exit with 1 when a diagnosis was made");
  verb->callback([o, &run] { run = [o] { return report(*o); }; });
}

}  // namespace culprit::cli
