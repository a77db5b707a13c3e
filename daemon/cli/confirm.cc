#include <fmt/format.h>

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <system_error>

#include "base/limits.h"
#include "base/text.h"
#include "cli/confirm_rule.h"
#include "cli/remote.h"
#include "cli/verbs.h"
#include "model/report_json_read.h"

namespace culprit::cli {
namespace {

constexpr const char* kExamples = R"(
Examples:
  culprit report llama-70b-0412 --format json | jq -r '.diagnoses[] | .id + "  " + .title'
  culprit confirm llama-70b-0412 df43992e9          # the daemon keeps it; the rule is printed
  culprit diagnose --format json runs/failed > report.json
  culprit confirm report.json d1 --pool normal.pool --out /etc/culprit/rules.d/site.lua)";

// A report that a person hands over: the largest has some hundred MB.
constexpr size_t kReportBytes = 512 << 20;

struct Options {
  RemoteOptions remote;
  std::string what, id, pool, out, rule_id;
};

Result<std::string> read_whole(const std::string& path, size_t limit) {
  std::error_code error;
  const uint64_t size = std::filesystem::file_size(path, error);
  if (!error && size > limit)
    return fail(ErrorCode::kLimit, fmt::format("{}: larger than {}", path, format_bytes(limit)));
  std::ifstream file(path, std::ios::binary);
  std::string text((std::istreambuf_iterator<char>(file)), {});
  if (!file.is_open() || file.bad())
    return fail(ErrorCode::kNotFound, fmt::format("{}: {}", path, std::generic_category().message(errno)));
  return text;
}

const Diagnosis* find(const Report& report, const std::string& id) {
  for (const Diagnosis& d : report.diagnoses)
    if (d.id == id) return &d;
  return nullptr;
}

// The report, of a file, or of a job whose daemon then also records the confirmation.
Result<Report> confirmed_report(Options& o, bool live) {
  if (!live) {
    auto text = read_whole(o.what, kReportBytes);
    if (!text) return tl::unexpected(text.error());
    auto report = report_from_json(*text);
    if (!report) return fail(report.error().code, o.what + ": " + report.error().text);
    return report;
  }
  auto client = app::Client::make(o.remote.client);
  if (!client) return tl::unexpected(client.error());
  const std::string job = "/v1/jobs/" + app::url_escaped(o.what);
  auto text = client->get(job + "/report");
  if (!text) return tl::unexpected(text.error());
  auto report = report_from_json(*text);
  if (!report) return fail(report.error().code, client->server() + ": " + report.error().text);
  const auto done = client->post(job + "/diagnoses/" + app::url_escaped(o.id) + "/confirm", by_whom());
  if (!done) return tl::unexpected(done.error());
  return report;
}

int confirm(Options& o) {
  const bool live = !o.what.ends_with(".json");
  detect::Pool pool;
  if (!o.pool.empty()) {
    const auto text = read_whole(o.pool, limits::kPoolFileBytes);
    if (!text) return complain(text.error().text), kUnable;
    auto loaded = detect::Pool::load(*text, o.pool);
    if (!loaded) return complain(loaded.error().text), kUnable;
    pool = std::move(*loaded);
  }
  const auto report = confirmed_report(o, live);
  if (!report) return complain(report.error().text), kUnable;
  const Diagnosis* diagnosis = find(*report, o.id);
  if (!diagnosis) return complain(fmt::format("{}: it has no diagnosis '{}'", o.what, o.id)), kUnable;
  if (live) complain(fmt::format("{} of {} is recorded as confirmed", o.id, o.what));
  const auto rule = rule_of(*report, *diagnosis, o.rule_id, o.pool.empty() ? nullptr : &pool);
  if (!rule) {
    complain(rule.error().text);
    return live && diagnosis->rule ? kDone : kUnable;
  }
  for (const std::string& note : rule->notes) complain(note);
  if (o.pool.empty()) complain("the rule was not tried on successful jobs; --pool FILE does");
  if (o.out.empty()) return print(rule->text) ? kDone : kUnable;
  if (std::filesystem::exists(o.out))
    return complain(o.out + ": there is such a file already; it was not touched"), kUnable;
  if (Status status = write_file(o.out, rule->text); !status) return complain(status.error().text), kUnable;
  return print(fmt::format("{}: rule {}\n", to_terminal(o.out), rule->id)) ? kDone : kUnable;
}

}  // namespace

void add_confirm(CLI::App& app, Run& run) {
  auto o = std::make_shared<Options>();
  CLI::App* verb = app.add_subcommand("confirm", "Say that a diagnosis was right, and make a rule of it");
  verb->footer(kExamples);
  verb->add_option("JOB", o->what, "A job of the daemon, or a report's file, NAME.json")->required();
  verb->add_option("ID", o->id, "The diagnosis: `id` in the report with --format json")->required();
  verb->add_option("--pool", o->pool, "A normal pool, in which the rule must not fire");
  verb->add_option("--out", o->out, "Write the rule to this file, which must be new; without: print it");
  verb->add_option("--id", o->rule_id, "The rule's name, such as site.fabric.flap");
  add_server_options(*verb, o->remote, Asks::kChanges);
  verb->callback([o, &run] { run = [o] { return confirm(*o); }; });
}

}  // namespace culprit::cli
