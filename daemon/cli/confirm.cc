#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <set>
#include <system_error>

#include "app/confirm/work.h"
#include "base/limits.h"
#include "base/shell.h"
#include "base/text.h"
#include "cli/kept_by_server.h"
#include "cli/near.h"
#include "cli/reading.h"
#include "cli/remote.h"
#include "cli/rules.h"
#include "cli/spelling.h"
#include "cli/verbs.h"
#include "model/json_text.h"
#include "model/report_json_read.h"

namespace culprit::cli {
namespace {

constexpr const char* kConfirmExamples = R"(
Examples:
  culprit confirm llama-70b-0412 df43992e9          # as its report names it; a rule is made where none knew
  culprit confirm llama-70b-0412 df43992e9 --line node-3.log:120
  culprit confirm report.json d1 --pool normal.pool --logs runs/failed --out /etc/culprit/rules.d/site.lua)";

// Limit of a report file; the largest reports have some hundred MB.
constexpr size_t kReportBytes = 512 << 20;

struct ConfirmOptions {
  RemoteOptions remote;
  std::string what, id, pool, out, by, line;
  app::RuleWords words;
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

// Templates of successful jobs: from the named file, else from the daemon; nothing if there are none.
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

// The operator's value, else an answer on the terminal; the diagnosis provides the proposal.
std::string asked(const std::string& what, const std::string& proposal) {
  std::fprintf(stderr, "%s [%s]: ", what.c_str(), to_terminal(proposal).c_str());
  std::string line;
  if (!std::getline(std::cin, line)) return "";
  line = trim(line);
  return line.empty() ? proposal : line;
}

void ask(const app::ConfirmedRule& rule, const Diagnosis& d, app::RuleWords& words) {
  for (std::string_view line : split(rule.text, '\n'))
    std::fprintf(stderr, "%s\n", to_terminal(line).c_str());
  report_error("Enter takes what stands in brackets; what stays empty is left to fill in");
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

bool may_ask(const ConfirmOptions& o) { return !o.yes && isatty(0) && isatty(2); }

// Lists the selectable lines, each with its number and why only a person may choose it.
void list_lines(const std::vector<app::LineChoice>& lines) {
  for (size_t i = 0; i < lines.size(); ++i)
    std::fprintf(stderr, "  %zu  %s%s\n", i + 1, to_terminal(shorten(lines[i].line, 160)).c_str(),
                 lines[i].why_not.empty() ? "" : ("\n     " + to_terminal(lines[i].why_not)).c_str());
}

// The line selected by --line: a number of the list, or FILE:N.
Result<std::string> line_of(const std::string& given, const std::vector<app::LineChoice>& lines) {
  size_t number = 0;
  const auto [stop, error] = std::from_chars(given.data(), given.data() + given.size(), number);
  if (error == std::errc() && stop == given.data() + given.size()) {
    if (number > 0 && number <= lines.size()) return lines[number - 1].line;
    list_lines(lines);
    return fail(ErrorCode::kInvalid,
                fmt::format("--line {}: the diagnosis has {} to choose from; FILE:N names "
                            "any other",
                            given, counted(lines.size(), "line")));
  }
  const auto line = app::read_line(given);
  if (!line) return fail(line.error().code, "--line " + line.error().text);
  return line->text;
}

// Asks which line states the fault; empty: none, or no answer.
std::string asked_line(const std::vector<app::LineChoice>& lines) {
  std::fprintf(stderr, "no line of it tells of a fault by itself; which one does?\n");
  list_lines(lines);
  const std::string answer = asked(fmt::format("its number, 1 to {}, or 0: none", lines.size()), "1");
  if (answer.empty() || answer == "0") return "";
  const auto line = line_of(answer, lines);
  return line ? *line : "";
}

// The command that makes a rule after a person has chosen a line.
std::string next_command(const ConfirmOptions& o, const Diagnosis& d,
                         const std::vector<app::LineChoice>& lines) {
  if (!lines.empty()) {
    std::string out = fmt::format("culprit confirm {} {} --line 1", shell_word(o.what), shell_word(o.id));
    if (o.run) out += fmt::format(" --run {}", *o.run);
    for (const std::string& path : o.logs) out += " --logs " + shell_word(path);
    return out + "   # or another number, or FILE:N";
  }
  const std::string id = fmt::format("site.{}.fault", to_string(d.component));
  std::error_code error;
  for (const Evidence& e : d.evidence)
    if (e.line && std::filesystem::is_regular_file(e.file, error))
      return fmt::format("culprit rules new {0} --from {1}:{2} > {0}.lua", id, shell_word(e.file), *e.line);
  return fmt::format("culprit rules new {0} > {0}.lua   # --from FILE:N makes it of a line", id);
}

// A rule, or none: then the reason is already printed, and `status` is the exit status.
struct Made {
  std::optional<app::ConfirmedRule> rule = {};
  int status = kDone;
};

Made not_made(const Error& error) { return report_error(error.text), Made{{}, kUnable}; }

// Reads the rule's inputs, asks for its texts on a terminal, makes the rule, and prints its proof. `words`:
// the rule's current texts.
Made make(const ConfirmOptions& o, const Report& report, const Diagnosis& d, app::StoredJobs* stored,
          std::optional<detect::Pool> pool, app::RuleWords& words) {
  ReadingOptions reading;
  if (Status status = resolve(reading); !status) return not_made(status.error());
  app::LoadedRules loaded;
  RuleChoice choice{o.rules, "text"};
  if (!load_rules(choice, loaded)) return not_made({ErrorCode::kInvalid, "the rules in use are not sound"});
  app::ConfirmWork work(report, d,
                        {loaded.set, std::move(pool), o.what, o.logs, o.healthy, o.failed, reading.diagnose});
  const Status gathered = work.gather(stored);
  for (const std::string& note : work.notes()) report_error(note);
  if (!gathered) return not_made(gathered.error());
  words = o.words;
  words.by = o.by;
  if (!o.line.empty()) {
    const auto line = line_of(o.line, work.lines());
    if (!line) return not_made(line.error());
    words.line = *line;
  }
  auto rule = work.make(words);
  if (!rule && rule.error().code == ErrorCode::kNotFound) {
    const std::vector<app::LineChoice> lines = work.lines();
    if (may_ask(o) && !lines.empty()) words.line = asked_line(lines);
    if (words.line.empty()) {
      report_error(rule.error().text);
      if (!may_ask(o)) list_lines(lines);
      return report_error("a rule is made by: " + next_command(o, d, lines)), Made{{}, kFound};
    }
    rule = work.make(words);
  }
  if (!rule) return not_made(rule.error());
  if (may_ask(o)) {
    ask(*rule, d, words);
    rule = work.make(words);
    if (!rule) return not_made(rule.error());
  }
  for (const std::string& sentence : work.remarks(*rule)) report_error(sentence);
  return {std::move(*rule)};
}

struct Confirmed {
  app::Client& client;
  std::optional<uint32_t> run;
  app::RuleWords words;
};

// What is missing in a rule with open texts.
std::string_view but_open(const app::ConfirmedRule& rule) {
  return rule.open ? "; it runs once its marked texts are written" : "";
}

// If this user lacks write permission, the daemon makes the rule and names it by its pattern.
int install_there(const ConfirmOptions& o, const Confirmed& of, const app::ConfirmedRule& rule) {
  const std::string elsewhere = "no folder of the daemon's rules can be written to from here";
  if (!of.words.id.empty())
    return report_error(elsewhere + "; the rule is printed"), print(rule.text) ? kDone : kUnable;
  Json body = Json::parse(by_whom());
  const std::pair<const char*, const std::string&> texts[] = {
      {"title", of.words.title},       {"cause", of.words.cause},         {"remedy", of.words.remedy},
      {"category", of.words.category}, {"component", of.words.component}, {"action", of.words.action},
      {"line", of.words.line}};
  for (const auto& [name, text] : texts)
    if (!text.empty()) body[name] = text;
  const auto answer =
      of.client.post(fmt::format("/v1/jobs/{}/diagnoses/{}/rule{}", app::url_escaped(o.what),
                                 app::url_escaped(o.id), of.run ? fmt::format("?run={}", *of.run) : ""),
                     body.dump(-1, ' ', false, Json::error_handler_t::replace));
  const Json made = answer ? parse_ordered_json(*answer) : Json();
  if (!made.is_object()) {
    report_error(fmt::format("{}; {}; the rule is printed", elsewhere,
                             answer ? "the daemon's answer is no JSON" : answer.error().text));
    return print(rule.text) ? kDone : kUnable;
  }
  return print(fmt::format("{}: rule {} is loaded{}\n", text_field(made, "file"), text_field(made, "id"),
                           but_open(rule)))
             ? kDone
             : kUnable;
}

// Writes the rule to the daemon's folder and makes the daemon load it; removes a rejected rule.
int install(const ConfirmOptions& o, const Confirmed& of, const app::ConfirmedRule& rule) {
  app::Client& client = of.client;
  const std::string folder = rules_folder(client);
  if (folder.empty()) return install_there(o, of, rule);
  const std::string path = (std::filesystem::path(folder) / (rule.id + ".lua")).string();
  if (std::filesystem::exists(path))
    return report_error(path + ": there is such a file already; it was not touched"), kUnable;
  if (Status status = write_file(path, rule.text); !status) return report_error(status.error().text), kUnable;
  const auto loaded = client.post("/v1/reload", by_whom());
  if (!loaded) {
    std::error_code ignored;
    std::filesystem::remove(path, ignored);
    return report_error(loaded.error().text + "; the rule was taken away again"), kUnable;
  }
  return print(fmt::format("{}: rule {} is loaded{}\n", to_terminal(path), rule.id, but_open(rule)))
             ? kDone
             : kUnable;
}

int put(const ConfirmOptions& o, const Confirmed* of, const app::ConfirmedRule& rule) {
  const bool assent = o.yes || (isatty(0) && isatty(2));
  if (o.out.empty() && of && assent) return install(o, *of, rule);
  if (o.out.empty()) return print(rule.text) ? kDone : kUnable;
  if (std::filesystem::exists(o.out))
    return report_error(o.out + ": there is such a file already; it was not touched"), kUnable;
  if (Status status = write_file(o.out, rule.text); !status)
    return report_error(status.error().text), kUnable;
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
  const Json answer = parse_ordered_json(*done);
  const bool waits = answer.is_object() && answer.value("shared", Json()) == false;
  report_error(fmt::format("{} of {} is recorded as {}{}", o.id, o.what, o.wrong ? "wrong" : "right",
                           waits ? "; the cluster's database does not answer, so the other members get it "
                                   "once it does"
                                 : ""));
  return {};
}

// The diagnosis that a misspelt id probably meant.
std::string meant_of(const Report& report, const std::string& id) {
  std::vector<std::string> ids;
  for (const Diagnosis& d : report.diagnoses) ids.push_back(d.id);
  return did_you_mean(id, ids, "'");
}

std::string known_by(const Diagnosis& d) {
  return fmt::format("the rule {0} knows it already; no new one is needed (culprit rules explain {0})",
                     *d.rule);
}

int confirm_offline(const ConfirmOptions& o) {
  if (o.wrong) return report_error("--wrong: a daemon keeps it; name a job"), kUnable;
  auto pool = pool_of(nullptr, o);
  if (!pool) return report_error(pool.error().text), kUnable;
  const auto report = report_of_file(o);
  if (!report) return report_error(report.error().text), kUnable;
  const Diagnosis* diagnosis = find(*report, o.id);
  if (!diagnosis)
    return report_error(
               fmt::format("{}: its report has no diagnosis '{}'{}", o.what, o.id, meant_of(*report, o.id))),
           kUnable;
  app::RuleWords words;
  if (diagnosis->rule && o.line.empty()) return report_error(known_by(*diagnosis)), kDone;
  const Made made = make(o, *report, *diagnosis, nullptr, std::move(*pool), words);
  return made.rule ? put(o, nullptr, *made.rule) : made.status;
}

int confirm_live(const ConfirmOptions& o) {
  auto client = app::Client::make(o.remote.client);
  if (!client) return report_error(client.error().text), kUnable;
  // Read first, so that an unreadable pool fails before the judgement is recorded.
  auto pool = pool_of(&*client, o);
  if (!pool) return report_error(pool.error().text), kUnable;
  const auto run = run_of(*client, o);
  if (!run) return report_error(run.error().text), kUnable;
  const auto report = report_of_job(*client, o, *run);
  if (!report) return report_error(with_meant_job(*client, report.error(), o.what)), kUnable;
  const Diagnosis* diagnosis = find(*report, o.id);
  const auto record = [&](const std::string& rule) {
    const Status done = judge(*client, o, *run, rule);
    if (!done) report_error(done.error().text + (diagnosis ? "" : meant_of(*report, o.id)));
    return done ? kDone : kUnable;
  };
  if (o.wrong || !diagnosis || (diagnosis->rule && o.line.empty())) {
    const int recorded = record("");
    if (recorded != kDone || o.wrong) return recorded;
    report_error(diagnosis ? known_by(*diagnosis)
                           : fmt::format("{}: its report has no diagnosis '{}' any more", o.what, o.id));
    return kDone;
  }
  StoredByServer stored(*client);
  Confirmed of{*client, *run, {}};
  const Made made = make(o, *report, *diagnosis, &stored, std::move(*pool), of.words);
  const int recorded = record(made.rule ? made.rule->id : "");
  return std::max(recorded, made.rule ? put(o, &of, *made.rule) : made.status);
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
  verb->add_option("--line", o->line,
                   "The line that tells the fault: its number in the list that confirm shows, or FILE:N "
                   "(default: the one that tells most)");
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
