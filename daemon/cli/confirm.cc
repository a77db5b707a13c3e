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

constexpr const char* kConfirmExamples = R"(
Examples:
  culprit confirm llama-70b-0412 df43992e9          # as its report names it; a rule is made where none knew
  culprit confirm llama-70b-0412 df43992e9 --wrong  # it was something else
  culprit diagnose --format json runs/failed > report.json
  culprit confirm report.json d1 --pool normal.pool --out /etc/culprit/rules.d/site.lua)";

// Limit of a report file; the largest reports have some hundred MB.
constexpr size_t kReportBytes = 512 << 20;

struct ConfirmOptions {
  RemoteOptions remote;
  std::string what, id, pool, out, rule_id;
  std::optional<uint32_t> run;
  bool wrong = false;
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

Result<Report> report_of_file(const ConfirmOptions& o) {
  auto text = read_whole(o.what, kReportBytes);
  if (!text) return tl::unexpected(text.error());
  auto report = report_from_json(*text);
  if (!report) return fail(report.error().code, o.what + ": " + report.error().text);
  return report;
}

// Finds the run of a diagnosis: the id is unique among runs, so the user need not name the run.
Result<std::optional<uint32_t>> run_of(app::Client& client, const ConfirmOptions& o) {
  if (o.run) return o.run;
  const auto items = get_items(client, "/v1/diagnoses?job=" + app::url_escaped(o.what));
  if (!items) return tl::unexpected(items.error());
  for (const Json& item : *items)
    if (item.value("id", Json()) == o.id && item.contains("run") && item["run"].is_number_unsigned())
      return item["run"].get<uint32_t>();
  return std::optional<uint32_t>();
}

// The daemon's report, fetched after the judgement was recorded.
Result<Report> judged_report(app::Client& client, const ConfirmOptions& o) {
  const auto run = run_of(client, o);
  if (!run) return tl::unexpected(run.error());
  const auto text = client.get(report_path(o.what, *run));
  if (!text) return tl::unexpected(text.error());
  auto report = report_from_json(*text);
  if (!report) return fail(report.error().code, client.server() + ": " + report.error().text);
  const auto done = client.post(
      fmt::format("/v1/jobs/{}/diagnoses/{}/{}{}", app::url_escaped(o.what), app::url_escaped(o.id),
                  o.wrong ? "refute" : "confirm", *run ? fmt::format("?run={}", **run) : ""),
      by_whom());
  if (!done) return tl::unexpected(done.error());
  return report;
}

// Templates of successful jobs: from the named file, else from the daemon; nothing if neither has any.
Result<std::optional<detect::Pool>> pool_of(app::Client* client, const ConfirmOptions& o) {
  std::string text, name = o.pool;
  if (!o.pool.empty()) {
    auto read = read_whole(o.pool, limits::kPoolFileBytes);
    if (!read) return tl::unexpected(read.error());
    text = std::move(*read);
  } else if (client) {
    const auto answer = get_json(*client, "/v1/pool");
    if (!answer) return tl::unexpected(answer.error());
    if (const auto pool = answer->find("pool"); pool != answer->end() && pool->is_string())
      text = pool->get<std::string>();
    name = client->server() + ": its normal pool";
  }
  if (text.empty()) return std::optional<detect::Pool>();
  auto pool = detect::Pool::load(text, name);
  if (!pool) return tl::unexpected(pool.error());
  return std::move(*pool);
}

int make_rule(const ConfirmOptions& o, const Report& report, const Diagnosis& diagnosis,
              const detect::Pool* pool) {
  const auto rule = rule_of(report, diagnosis, o.rule_id, pool);
  if (!rule) return complain(rule.error().text), kUnable;
  for (const std::string& note : rule->notes) complain(note);
  complain(pool ? fmt::format("the rule fires in none of {}", counted(pool->jobs, "successful job"))
                : "the rule was not tried on successful jobs: none is known; --pool FILE does");
  if (o.out.empty()) return print(rule->text) ? kDone : kUnable;
  if (std::filesystem::exists(o.out))
    return complain(o.out + ": there is such a file already; it was not touched"), kUnable;
  if (Status status = write_file(o.out, rule->text); !status) return complain(status.error().text), kUnable;
  return print(fmt::format("{}: rule {}\n", to_terminal(o.out), rule->id)) ? kDone : kUnable;
}

int confirm(const ConfirmOptions& o) {
  const bool live = !o.what.ends_with(".json");
  if (o.wrong && !live) return complain("--wrong: a daemon keeps it; name a job"), kUnable;
  std::optional<app::Client> client;
  if (live) {
    auto made = app::Client::make(o.remote.client);
    if (!made) return complain(made.error().text), kUnable;
    client.emplace(std::move(*made));
  }
  // Read first, so that an unreadable pool fails before the judgement is recorded.
  const auto pool = pool_of(client ? &*client : nullptr, o);
  if (!pool) return complain(pool.error().text), kUnable;
  const auto report = live ? judged_report(*client, o) : report_of_file(o);
  if (!report) return complain(report.error().text), kUnable;
  if (live) complain(fmt::format("{} of {} is recorded as {}", o.id, o.what, o.wrong ? "wrong" : "right"));
  if (o.wrong) return kDone;
  const Diagnosis* diagnosis = find(*report, o.id);
  if (!diagnosis) {
    complain(fmt::format("{}: its report has no diagnosis '{}'{}", o.what, o.id, live ? " any more" : ""));
    return live ? kDone : kUnable;
  }
  if (live && diagnosis->rule) {
    complain(fmt::format("the rule {} knows it already; no new one is needed", *diagnosis->rule));
    return kDone;
  }
  return make_rule(o, *report, *diagnosis, *pool ? &**pool : nullptr);
}

}  // namespace

void add_confirm(Command& app, Run& run) {
  auto o = std::make_shared<ConfirmOptions>();
  Command* verb = app.add_subcommand(
      "confirm", "Say that a diagnosis was right or wrong, and make a rule of a right one");
  verb->footer(kConfirmExamples);
  verb->add_option("JOB", o->what, "A job of the daemon, or a report's file, NAME.json")->required();
  verb->add_option("ID", o->id, "The diagnosis, as the report names it")->required();
  verb->add_option("--pool", o->pool,
                   "A normal pool, in which the rule must not fire (default: what the daemon has learned)");
  verb->add_flag("--wrong", o->wrong, "It was not right: the next ones of its kind tell so");
  verb->add_option("--out", o->out, "Write the rule to this file, which must be new; without: print it");
  verb->add_option("--id", o->rule_id, "The rule's name, such as site.fabric.flap");
  add_run(*verb, o->run);
  add_server_options(*verb, o->remote);
  verb->callback([o, &run] { run = [o] { return confirm(*o); }; });
}

}  // namespace culprit::cli
