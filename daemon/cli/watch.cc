#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <csignal>
#include <ctime>
#include <map>
#include <mutex>
#include <set>
#include <thread>

#include "base/text.h"
#include "cli/layout.h"
#include "cli/remote.h"
#include "cli/rules.h"
#include "cli/verbs.h"
#include "model/json_text.h"

namespace culprit::cli {
namespace {

constexpr const char* kWatchExamples = R"(
Examples:
  culprit watch
  culprit watch llama-70b-0412
  culprit watch --format json | jq -r 'select(.event == "diagnosis") | .title')";

constexpr int kWaitSecondsMax = 16;  // between attempts to reconnect
constexpr size_t kWordColumns = 9;   // "diagnosis", "withdrawn"

volatile std::sig_atomic_t g_stop = 0;

struct WatchOptions {
  RemoteOptions remote;
  std::string job;
};

// The first word of a line; a verdict is highlighted.
std::string word_of_event(const app::ServerEvent& event, const Json& data) {
  if (event.kind == "job_started") return "started";
  if (event.kind == "job_ended") return "ended";
  if (event.kind == "diagnosis_gone") return "withdrawn";
  if (event.kind != "diagnosis") return event.kind;
  const auto change = data.find("change");
  const std::string changed = change != data.end() && change->is_string() ? change->get<std::string>() : "";
  if (changed == "withdrawn") return changed;
  if (!data.value("verdict", false)) return event.kind;
  return changed == "revised" ? changed : "verdict";
}

std::string hosts_of(const Json& data) {
  std::vector<std::string> names;
  if (const auto host = data.find("host"); host != data.end() && host->is_string())
    names.push_back(text_field(data, "host"));
  if (const auto hosts = data.find("hosts"); hosts != data.end() && hosts->is_array())
    for (const Json& place : *hosts)
      if (place.is_object()) names.push_back(text_field(place, "host"));
  // Places are per rank; each host appears once.
  names.erase(std::unique(names.begin(), names.end()), names.end());
  const size_t shown = std::min<size_t>(names.size(), 3);
  std::string out =
      fmt::format("{}", fmt::join(names.begin(), names.begin() + static_cast<long>(shown), ", "));
  if (names.size() > shown) out += fmt::format(" and {} more", names.size() - shown);
  return out;
}

std::string text_line(const app::ServerEvent& event, const Json& data, const Zone& zone) {
  const bool color = wants_color();
  const bool of_job = event.kind == "job_started" || event.kind == "job_ended";
  const std::string word = word_of_event(event, data);
  const char* time = event.kind == "job_started" ? "first_ns" : of_job ? "last_ns" : "time_ns";
  std::string out = time_field(data, time, zone) + "  " +
                    inked(padded(to_terminal(word), kWordColumns),
                          word == "verdict" || word == "revised" ? Ink::kAlarm : Ink::kDim, color) +
                    "  " + text_field(data, of_job ? "id" : "job");
  if (event.kind == "job_ended") out += "  " + text_field(data, "state");
  const auto has = [&](const char* name) {
    const auto text = data.find(name);
    return text != data.end() && text->is_string();
  };
  const bool whole = has("headline");  // the headline includes the place
  for (const char* name : {"headline", "title", "verdict"}) {
    if (!has(name)) continue;
    out += "  " + text_field(data, name);
    break;
  }
  if (const std::string hosts = of_job || whole ? "" : hosts_of(data); !hosts.empty()) out += "  on " + hosts;
  if (const auto c = data.find("confidence"); c != data.end() && c->is_number())
    out += fmt::format("  ({:.0f} %)", 100 * c->get<double>());
  if (const auto before = data.find("replaces"); before != data.end() && before->is_object())
    out += "  instead of: " + text_field(*before, "title");
  if (event.kind.starts_with("diagnosis")) out += "  " + text_field(data, "id");  // argument of `confirm`
  return out + "\n";
}

// Groups a fault on many hosts into one line and a count, so that a verdict remains visible.
class Findings {
 public:
  // Whether the finding is the first of its kind; others are counted until summary().
  bool is_first(const Json& data) {
    const std::string kind =
        fmt::format("{}\n{}\n{}", text_field(data, "job"), text_field(data, "run"), text_field(data, "rule"));
    if (kinds_.size() >= kKinds) kinds_.clear();
    const auto [at, fresh] = kinds_.try_emplace(kind);
    Kind& k = at->second;
    const bool host = k.hosts.size() < kHosts && k.hosts.insert(text_field(data, "host")).second;
    if (fresh) return true;
    counted_at_ = std::time(nullptr);
    ++k.more;
    k.more_hosts += host;
    k.last = data;
    return false;
  }

  // Whether findings still arrive, so that counting continues.
  bool still_come() const { return std::time(nullptr) - counted_at_ < kQuietSeconds; }

  std::string summary(const Zone& zone) {
    std::string out;
    for (auto& [name, k] : kinds_) {
      if (k.more == 0) continue;
      const std::string what = k.more_hosts > 0 ? fmt::format("on {}", counted(k.more_hosts, "more host"))
                                                : fmt::format("{} more times", k.more);
      out += fmt::format("{}  {}  {}  {}  {}\n", time_field(k.last, "time_ns", zone),
                         inked(padded("finding", kWordColumns), Ink::kDim, wants_color()),
                         text_field(k.last, "job"), text_field(k.last, "title"), what);
      k.more = k.more_hosts = 0;
    }
    return out;
  }

 private:
  static constexpr std::time_t kQuietSeconds = 2;
  // Beyond these limits, kinds are dropped and shown again.
  static constexpr size_t kKinds = 1000, kHosts = 10'000;
  struct Kind {
    std::set<std::string> hosts;
    uint64_t more = 0, more_hosts = 0;
    Json last;
  };
  std::map<std::string, Kind> kinds_;
  std::time_t counted_at_ = 0;
};

std::string line_of(const WatchOptions& o, const app::ServerEvent& event, Findings& findings) {
  // No events at present: prints the counted findings.
  if (event.data.empty())
    return o.remote.format == "json" || findings.still_come() ? "" : findings.summary(o.remote.zone);
  const Json data = parse_json(event.data);
  if (!data.is_object()) return "";
  if (o.remote.format == "json") {
    Json out{{"event", event.kind}};
    out.update(data);
    return out.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
  }
  if (event.kind == "dropped")
    return fmt::format("culprit: {} events were left out: this reader is too slow\n",
                       text_field(data, "events"));
  if (event.kind != "finding") return findings.summary(o.remote.zone) + text_line(event, data, o.remote.zone);
  return findings.is_first(data) ? text_line(event, data, o.remote.zone) : "";
}

void wait(int seconds) {
  for (int i = 0; i < seconds * 10 && !g_stop; ++i) {
    const timespec tenth{0, 100'000'000};
    nanosleep(&tenth, nullptr);
  }
}

// True also if the answer is no list.
bool has_job(const std::string& answer, const std::string& job) {
  const Json jobs = parse_ordered_json(answer);
  if (!jobs.is_object() || !jobs.contains("items")) return true;
  return std::any_of(jobs["items"].begin(), jobs["items"].end(),
                     [&](const Json& row) { return row.is_object() && text_field(row, "id") == job; });
}

// Output of all servers' threads, a line at a time.
class Output {
 public:
  // False: the output is closed, or the user stopped.
  bool print_line(const std::string& line) {
    const std::lock_guard hold(mutex_);
    if (!line.empty() && (!print(line) || std::ferror(stdout))) g_stop = 1;
    return g_stop == 0;
  }
  void report(const std::string& sentence) {
    const std::lock_guard hold(mutex_);
    report_error(sentence);
  }

 private:
  std::mutex mutex_;
};

// Prints the events of one server until the user stops.
void follow(const WatchOptions& o, app::Client& client, Output& out) {
  const std::string path = "/v1/events" + (o.job.empty() ? "" : "?job=" + app::url_escaped(o.job));
  std::string last_id;
  Findings findings;
  bool reported = false;
  for (int pause = 1; !g_stop;) {
    const Status status = client.events(path, last_id, [&](const app::ServerEvent& event) {
      if (!event.id.empty()) last_id = event.id;
      return out.print_line(line_of(o, event, findings));
    });
    if (g_stop) break;
    const bool reached = status || status.error().code == ErrorCode::kIo;
    if (reached) pause = 1, reported = false;
    if (!reported)
      out.report((status ? client.server() + ": it ended the connection" : status.error().text) +
                 "; trying again");
    reported = true;
    wait(pause);
    pause = std::min(pause * 2, kWaitSecondsMax);
  }
}

int watch(WatchOptions& o) {
  if (Status status = resolve(o.remote); !status) return report_error(status.error().text), kUnable;
  auto cells = cells_of(o.remote);
  if (!cells) return report_error(cells.error().text), kUnable;
  for (const int number : {SIGINT, SIGTERM}) std::signal(number, [](int) { g_stop = 1; });
  // An error at the start needs the user; a later failure may be temporary.
  bool any = false, known = o.job.empty();
  for (const app::Cells::Answer& answer : cells->get("/v1/jobs")) {
    any = any || answer.body;
    known = known || (answer.body && has_job(*answer.body, o.job));
    if (!answer.body) report_error(answer.body.error().text);
  }
  if (!any) return kUnable;
  if (!known)
    report_error(fmt::format("{}: no job '{}' is known yet; waiting for it",
                             fmt::join(app::servers_of(o.remote.client), ", "), o.job));
  Output out;
  std::vector<std::thread> others;
  std::vector<app::Client>& clients = cells->clients();
  for (size_t i = 1; i < clients.size(); ++i) others.emplace_back([&, i] { follow(o, clients[i], out); });
  follow(o, clients.front(), out);
  for (std::thread& other : others) other.join();
  return kDone;
}

}  // namespace

void add_watch(Command& app, Run& run) {
  auto o = std::make_shared<WatchOptions>();
  Command* verb = app.add_subcommand("watch", "Follow findings and diagnoses as they come, until Ctrl-C");
  verb->footer(kWatchExamples);
  verb->add_option("JOB", o->job, "Of this job only");
  add_server_options(*verb, o->remote);
  add_members(*verb, o->remote);
  add_format(*verb, o->remote, {"text", "json"});
  add_timezone(*verb, o->remote);
  verb->callback([o, &run] { run = [o] { return watch(*o); }; });
}

}  // namespace culprit::cli
