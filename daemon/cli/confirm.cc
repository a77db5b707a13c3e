#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <set>
#include <system_error>

#include "base/limits.h"
#include "base/text.h"
#include "cli/confirm_logs.h"
#include "cli/confirm_rule.h"
#include "cli/remote.h"
#include "cli/rules.h"
#include "cli/verbs.h"
#include "model/report_json_read.h"

namespace culprit::cli {
namespace {

constexpr const char* kConfirmExamples = R"(
Examples:
  culprit confirm llama-70b-0412 df43992e9          # as its report names it; a rule is made where none knew
  culprit confirm llama-70b-0412 df43992e9 --yes --title "Fabric port flaps" --category hardware \
    --component network --cause "A cable is damaged" --remedy "Reseat the cable of the port"
  culprit confirm llama-70b-0412 df43992e9 --wrong  # it was something else
  culprit diagnose --format json runs/failed > report.json
  culprit confirm report.json d1 --pool normal.pool --logs runs/failed --out /etc/culprit/rules.d/site.lua)";

// Limit of a report file; the largest reports have some hundred MB.
constexpr size_t kReportBytes = 512 << 20;

// Other jobs of each kind, failed and successful, whose kept evidence a rule is tried on.
constexpr size_t kKeptJobs = 10;

// Lines of rules in use that may come with a finding.
constexpr size_t kFiredRules = 1000;

struct ConfirmOptions {
  RemoteOptions remote;
  std::string what, id, pool, out, by;
  RuleWords words;
  std::vector<std::string> logs, healthy, failed;
  app::RuleOptions rules;
  std::optional<uint32_t> run;
  bool wrong = false, yes = false;
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

Result<Report> report_of_job(app::Client& client, const ConfirmOptions& o, std::optional<uint32_t> run) {
  const auto text = client.get(report_path(o.what, run));
  if (!text) return tl::unexpected(text.error());
  auto report = report_from_json(*text);
  if (!report) return fail(report.error().code, client.server() + ": " + report.error().text);
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

// What the operator gave, and what is asked for on a terminal; the proposals come from the diagnosis.
std::string asked(const std::string& what, const std::string& proposal) {
  std::fprintf(stderr, "%s [%s]: ", what.c_str(), to_terminal(proposal).c_str());
  std::string line;
  if (!std::getline(std::cin, line)) return "";
  line = trim(line);
  return line.empty() ? proposal : line;
}

void ask(const ConfirmedRule& rule, const Diagnosis& d, RuleWords& words) {
  for (std::string_view line : split(rule.text, '\n'))
    std::fprintf(stderr, "%s\n", to_terminal(line).c_str());
  complain("Enter takes what stands in brackets; what stays empty is left to fill in");
  const auto fill = [](std::string& text, const char* what, const std::string& proposal) {
    if (text.empty()) text = asked(what, proposal);
  };
  fill(words.title, "title: what happened, in a few words", rule.title);
  fill(words.cause, "cause: why, in a sentence", "");
  fill(words.remedy, "remedy: what to do, in a sentence", "");
  fill(words.category, "category: who has to act", std::string(to_string(d.category)));
  fill(words.component, "component: what broke", std::string(to_string(d.component)));
}

// The folder of rules that the daemon reads and this user may write to; empty: none.
std::string rules_folder(app::Client& client) {
  const auto about = get_json(client, "/v1/about");
  if (!about || !client.server().starts_with("unix:")) return "";
  const Json paths = about->value("config", Json::object()).value("rules", Json::array());
  for (auto path = paths.rbegin(); path != paths.rend(); ++path) {
    if (!path->is_string() || path->get<std::string>().ends_with(".lua")) continue;
    std::error_code error;
    std::filesystem::create_directories(path->get<std::string>(), error);
    if (!error && access(path->get<std::string>().c_str(), W_OK) == 0) return path->get<std::string>();
  }
  return "";
}

class Confirming {
 public:
  Confirming(const ConfirmOptions& options, const Report& report, const Diagnosis& diagnosis)
      : o_(options), report_(report), d_(diagnosis) {}

  // Reads what the rule is made and proven with. What cannot be read is said, and the rest counts.
  Status gather(app::Client* client, std::optional<detect::Pool> pool) {
    if (Status status = resolve(reading_); !status) return status;
    pool_ = std::move(pool);
    app::LoadedRules loaded;
    RuleChoice choice{o_.rules, "text"};
    if (!load_rules(choice, loaded)) return fail(ErrorCode::kInvalid, "the rules in use are not sound");
    known_ = loaded.set;
    if (const auto own = own_logs(client); own)
      job_ = *own;
    else
      complain(own.error().text + ": the pattern rests on the quoted lines alone");
    for (const auto& [paths, healthy] : {std::pair(&o_.healthy, true), std::pair(&o_.failed, false)})
      for (const std::string& path : *paths) {
        auto logs = JobLogs::open({path}, reading_);
        if (!logs) return tl::unexpected(logs.error());
        add(path, healthy, "", *logs);
      }
    if (client) gather_kept(*client);
    context_.pool = pool_ ? &*pool_ : nullptr;
    context_.known = known_.get();
    if (!job_) return {};
    context_.job = [this](const std::vector<std::string>& patterns) { return job_->search(patterns); };
    JobLogs::Facts facts = job_->facts();
    context_.job_templates = std::move(facts.templates);
    context_.job_hosts = std::move(facts.hosts);
    for (const core::RuleFired& fired : job_->match(known_).fired) {
      const rules::Rule& rule = known_->rules()[fired.hit.rule];
      if (rule.severity < Severity::kWarning || rule.role == rules::Role::kCascade || rule.general) continue;
      if (context_.fired.size() >= kFiredRules) break;
      context_.fired.push_back({rule.id, fired.hit.text, fired.hit.host, fired.hit.time_ns});
    }
    return {};
  }

  Result<ConfirmedRule> make() {
    RuleWords words = o_.words;
    words.by = o_.by;
    auto rule = rule_of(report_, d_, words, context_);
    if (!rule || o_.yes || !isatty(0) || !isatty(2)) return rule;
    ask(*rule, d_, words);
    return rule_of(report_, d_, words, context_);
  }

  void tell(const ConfirmedRule& rule) const {
    for (const std::string& note : rule.notes) complain(note);
    for (const std::string& sentence : rule.proof) complain(sentence);
    const bool tried = pool_ || std::any_of(context_.others.begin(), context_.others.end(),
                                            [](const TriedJob& job) { return job.healthy; });
    if (!tried) complain("the rule was not tried on successful jobs: none is known; --pool FILE does");
    if (rule.open)
      complain(fmt::format("texts marked {} are left open; `culprit rules check` refuses them", kFillIn));
  }

 private:
  Result<std::shared_ptr<JobLogs>> own_logs(app::Client* client) const {
    if (!o_.logs.empty()) return JobLogs::open(o_.logs, reading_);
    if (client) return JobLogs::fetch(*client, o_.what, reading_);
    std::set<std::string> files;
    std::error_code error;
    for (const Evidence& e : d_.evidence)
      if (std::filesystem::is_regular_file(e.file, error)) files.insert(e.file);
    for (const Indicating& i : report_.indicating)
      for (const LinePlace& p : i.where)
        if (std::filesystem::is_regular_file(p.file, error)) files.insert(p.file);
    if (files.empty())
      return fail(ErrorCode::kNotFound, "the files of the report are not here; --logs PATH names them");
    return JobLogs::open({files.begin(), files.end()}, reading_);
  }

  void add(const std::string& name, bool healthy, const std::string& said, std::shared_ptr<JobLogs> logs) {
    context_.others.push_back({name, healthy, said, [logs](const std::vector<std::string>& patterns) {
                                 return logs->search(patterns);
                               }});
  }

  // The newest other jobs whose evidence the daemon keeps.
  void gather_kept(app::Client& client) {
    const auto jobs = get_items(client, "/v1/jobs");
    if (!jobs) return complain(jobs.error().text);
    size_t healthy = 0, failed = 0;
    std::set<std::string> seen{o_.what};
    for (const Json& job : *jobs) {
      const std::string id = job.value("id", ""), state = job.value("state", "");
      const bool well = job.value("well", false);
      if (id.empty() || state == "running" || !seen.insert(id).second) continue;
      size_t& count = well ? healthy : failed;
      if (count >= kKeptJobs) continue;
      auto logs = JobLogs::fetch(client, id, reading_);
      if (!logs) continue;  // its evidence is gone
      ++count;
      const bool said = job.contains("verdict") && job["verdict"].is_string();
      add(id, well, said ? job["verdict"].get<std::string>() : "", *logs);
    }
  }

  const ConfirmOptions& o_;
  const Report& report_;
  const Diagnosis& d_;
  ReadingOptions reading_;
  std::optional<detect::Pool> pool_;
  std::shared_ptr<rules::Ruleset> known_;
  std::shared_ptr<JobLogs> job_;
  ConfirmContext context_;
};

// Writes the rule where the daemon reads it, and has it loaded; a refused rule is taken away again.
int install(app::Client& client, const ConfirmedRule& rule) {
  const std::string folder = rules_folder(client);
  if (folder.empty()) {
    complain("no folder of the daemon's rules can be written to from here; the rule is printed");
    return print(rule.text) ? kDone : kUnable;
  }
  const std::string path = (std::filesystem::path(folder) / (rule.id + ".lua")).string();
  if (std::filesystem::exists(path))
    return complain(path + ": there is such a file already; it was not touched"), kUnable;
  if (Status status = write_file(path, rule.text); !status) return complain(status.error().text), kUnable;
  const auto loaded = client.post("/v1/reload", by_whom());
  if (!loaded) {
    std::error_code ignored;
    std::filesystem::remove(path, ignored);
    return complain(loaded.error().text + "; the rule was taken away again"), kUnable;
  }
  return print(fmt::format("{}: rule {} is loaded\n", to_terminal(path), rule.id)) ? kDone : kUnable;
}

int put(const ConfirmOptions& o, app::Client* client, const ConfirmedRule& rule) {
  const bool assent = o.yes || (isatty(0) && isatty(2));
  if (o.out.empty() && client && assent) return install(*client, rule);
  if (o.out.empty()) return print(rule.text) ? kDone : kUnable;
  if (std::filesystem::exists(o.out))
    return complain(o.out + ": there is such a file already; it was not touched"), kUnable;
  if (Status status = write_file(o.out, rule.text); !status) return complain(status.error().text), kUnable;
  return print(fmt::format("{}: rule {}\n", to_terminal(o.out), rule.id)) ? kDone : kUnable;
}

Status judge(app::Client& client, const ConfirmOptions& o, std::optional<uint32_t> run,
             const std::string& rule) {
  std::string query = run ? fmt::format("?run={}", *run) : "";
  if (!rule.empty()) query += (query.empty() ? "?rule=" : "&rule=") + app::url_escaped(rule);
  const auto done = client.post(fmt::format("/v1/jobs/{}/diagnoses/{}/{}{}", app::url_escaped(o.what),
                                            app::url_escaped(o.id), o.wrong ? "refute" : "confirm", query),
                                by_whom());
  if (!done) return tl::unexpected(done.error());
  complain(fmt::format("{} of {} is recorded as {}", o.id, o.what, o.wrong ? "wrong" : "right"));
  return {};
}

int confirm_offline(const ConfirmOptions& o) {
  if (o.wrong) return complain("--wrong: a daemon keeps it; name a job"), kUnable;
  auto pool = pool_of(nullptr, o);
  if (!pool) return complain(pool.error().text), kUnable;
  const auto report = report_of_file(o);
  if (!report) return complain(report.error().text), kUnable;
  const Diagnosis* diagnosis = find(*report, o.id);
  if (!diagnosis) return complain(fmt::format("{}: its report has no diagnosis '{}'", o.what, o.id)), kUnable;
  Confirming work(o, *report, *diagnosis);
  if (Status status = work.gather(nullptr, std::move(*pool)); !status)
    return complain(status.error().text), kUnable;
  const auto rule = work.make();
  if (!rule) return complain(rule.error().text), kUnable;
  work.tell(*rule);
  return put(o, nullptr, *rule);
}

int confirm_live(const ConfirmOptions& o) {
  auto client = app::Client::make(o.remote.client);
  if (!client) return complain(client.error().text), kUnable;
  // Read first, so that an unreadable pool fails before the judgement is recorded.
  auto pool = pool_of(&*client, o);
  if (!pool) return complain(pool.error().text), kUnable;
  const auto run = run_of(*client, o);
  if (!run) return complain(run.error().text), kUnable;
  const auto report = report_of_job(*client, o, *run);
  if (!report) return complain(report.error().text), kUnable;
  const Diagnosis* diagnosis = find(*report, o.id);
  const auto record = [&](const std::string& rule) {
    const Status done = judge(*client, o, *run, rule);
    if (!done) complain(done.error().text);
    return done ? kDone : kUnable;
  };
  if (o.wrong || !diagnosis || diagnosis->rule) {
    const int recorded = record("");
    if (recorded != kDone || o.wrong) return recorded;
    complain(diagnosis ? fmt::format("the rule {} knows it already; no new one is needed", *diagnosis->rule)
                       : fmt::format("{}: its report has no diagnosis '{}' any more", o.what, o.id));
    return kDone;
  }
  Confirming work(o, *report, *diagnosis);
  const Status gathered = work.gather(&*client, std::move(*pool));
  const Result<ConfirmedRule> rule = gathered ? work.make() : tl::unexpected(gathered.error());
  const int recorded = record(rule ? rule->id : "");
  if (!rule) return complain(rule.error().text), kUnable;
  work.tell(*rule);
  return std::max(recorded, put(o, &*client, *rule));
}

int confirm(ConfirmOptions& o) {
  o.by = Json::parse(by_whom()).value("by", "");
  return o.what.ends_with(".json") ? confirm_offline(o) : confirm_live(o);
}

template <class Word>
std::vector<std::string> words() {
  const auto all = words_of<Word>();
  return {all.begin(), all.end()};
}

void add_words(Command& verb, ConfirmOptions& o) {
  verb.add_option("--id", o.words.id, "The rule's name, such as site.fabric.flap");
  verb.add_option("--title", o.words.title, "What happened, in a few words without a host, rank or number");
  verb.add_option("--cause", o.words.cause, "Why it happened, in a sentence");
  verb.add_option("--remedy", o.words.remedy, "What to do, in a sentence");
  verb.add_option("--category", o.words.category, "Who has to act")->one_of(words<Category>());
  verb.add_option("--component", o.words.component, "What broke")->one_of(words<Component>());
  verb.add_option("--action", o.words.action, "What the controller may do by itself")
      ->one_of(words<ActionKind>());
  verb.add_flag("--yes,-y", o.yes, "Ask nothing; what is not given is left open, and marked in the rule");
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
  add_words(*verb, *o);
  verb->add_option("--out", o->out,
                   "Write the rule to this file, which must be new (default: a daemon's folder of rules with "
                   "--yes or on a terminal, else print it)");
  verb->add_option(
          "--logs", o->logs,
          "The job's logs (default: what the daemon keeps, or the files that the report names); repeat")
      ->one_value();
  verb->add_option("--healthy", o->healthy, "Logs of a successful job, in which it must not fire; repeat")
      ->one_value();
  verb->add_option("--failed", o->failed, "Logs of another failed job, to try it on; repeat")->one_value();
  add_rule_options(*verb, o->rules);
  add_run(*verb, o->run);
  add_server_options(*verb, o->remote);
  verb->callback([o, &run] { run = [o] { return confirm(*o); }; });
}

}  // namespace culprit::cli
