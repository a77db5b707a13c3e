#include "cli/remote.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <pwd.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <functional>
#include <limits>

#include "base/text.h"
#include "cli/layout.h"
#include "cli/rules.h"
#include "cli/shared_jobs.h"
#include "cli/verbs.h"
#include "cli/zone.h"
#include "model/json_text.h"

namespace culprit::cli {

void add_server_options(Command& verb, RemoteOptions& options) {
  verb.add_option(
      "--server", options.client.server,
      fmt::format(
          "unix:PATH or http(s)://HOST:PORT, several collectors with commas; without: CULPRIT_SERVER, "
          "else {}",
          app::kLocalServer));
  verb.add_option("--token-file", options.client.token_file,
                  "A file whose first token the daemon knows, for http(s); without: CULPRIT_TOKEN_FILE");
  verb.add_option("--ca-file", options.client.ca_file,
                  "The authority of the daemon's certificate, for https; without: CULPRIT_CA_FILE, else the "
                  "system's");
}

void add_members(Command& verb, RemoteOptions& options) {
  options.asks_members = true;
  verb.add_flag("--only-this", options.only_this,
                "Ask only the server, not the other members of its cluster (cluster.http)");
}

Result<app::Cells> cells_of(const RemoteOptions& options) {
  if (!options.asks_members || options.only_this) return app::Cells::make(options.client);
  auto out = app::Cells::make_with_members(options.client);
  if (out)
    for (const std::string& sentence : out->left_out()) report_error(sentence);
  return out;
}

void add_format(Command& verb, RemoteOptions& options, const std::vector<std::string>& formats) {
  const std::string last = formats.back();
  const std::vector<std::string> first(formats.begin(), formats.end() - 1);
  verb.add_option("--format,-f", options.format, fmt::format("{} or {}", fmt::join(first, ", "), last))
      ->one_of(formats)
      ->show_default();
}

void add_timezone(Command& verb, RemoteOptions& options) {
  verb.add_option("--timezone", options.timezone,
                  "Zone of the times shown: local, UTC, an offset such as +02:00, or a name")
      ->show_default();
}

void add_run(Command& verb, std::optional<uint32_t>& run) {
  verb.add_option("--run", run,
                  "Of several runs of the job: its number in `culprit jobs` (default: the last)")
      ->type_name("N");
}

std::string report_path(const std::string& job, std::optional<uint32_t> run, bool charts) {
  std::string query;
  if (run) query += fmt::format("&run={}", *run);
  if (charts) query += "&charts=1";
  if (!query.empty()) query.front() = '?';
  return fmt::format("/v1/jobs/{}/report{}", app::url_escaped(job), query);
}

Status resolve(RemoteOptions& options) {
  auto zone = zone_named(options.timezone);
  if (!zone) return tl::unexpected(zone.error());
  options.zone = std::move(*zone);
  return {};
}

Result<Json> get_json(app::Client& client, const std::string& path) {
  auto text = client.get(path);
  if (!text) return tl::unexpected(text.error());
  Json json = parse_ordered_json(*text);
  if (!json.is_object())
    return fail(ErrorCode::kInvalid, client.server() + ": it answers with something else than JSON");
  return json;
}

Result<std::vector<Json>> get_items(app::Client& client, const std::string& path) {
  auto json = get_json(client, path);
  if (!json) return tl::unexpected(json.error());
  std::vector<Json> out;
  const auto items = json->find("items");
  if (items == json->end() || !items->is_array())
    return fail(ErrorCode::kInvalid, client.server() + ": it answers without a list");
  for (Json& item : *items)
    if (item.is_object()) out.push_back(std::move(item));
  return out;
}

namespace {

std::string joined_names(const Json& names) {
  std::string out;
  for (const Json& name : names) out += (out.empty() ? "" : ", ") + shown(name);
  return out;
}

// As each collector has them: what fires first, and the newest first by the time that all items have.
void sort_newest_first(Json::array_t& items) {
  for (const char* time : {"first_ns", "since_ns", "time_ns"}) {
    if (!std::ranges::all_of(items, [&](const Json& x) { return x.value(time, Json()).is_number_integer(); }))
      continue;
    std::ranges::stable_sort(items, std::greater(), [&](const Json& x) {
      return std::pair(x.value("state", Json()) == "firing", x[time].get<int64_t>());
    });
    return;
  }
}

void join_lists(Json& out, Json answer, const std::string& server) {
  for (auto& [name, list] : answer.items()) {
    if (!list.is_array()) continue;
    if (!out.contains(name)) out[name] = Json::array();
    for (Json& item : list) {
      if (!item.is_object()) continue;
      item["server"] = server;
      out[name].push_back(std::move(item));
    }
  }
}

}  // namespace

Result<Json> get_joined(app::Cells& cells, const std::string& path) {
  Json out{{"items", Json::array()}}, servers = Json::array(), away = Json::array();
  for (const app::Cells::Answer& answer : cells.get(path)) {
    Json json = answer.body ? parse_ordered_json(*answer.body) : Json();
    if (json.is_object() && !json.value("items", Json()).is_array())
      return fail(ErrorCode::kInvalid, "--server: this asks one collector; name one of them");
    if (json.is_object()) {
      servers.push_back(answer.server);
      join_lists(out, std::move(json), answer.server);
      continue;
    }
    const std::string why =
        answer.body ? answer.server + ": it answers with something else than JSON" : answer.body.error().text;
    report_error(why + "; what it has is left out");
    away.push_back({{"server", answer.server}, {"why", why}});
  }
  if (servers.empty()) return fail(ErrorCode::kIo, "no collector answers");
  keep_best(out["items"].get_ref<Json::array_t&>());
  sort_newest_first(out["items"].get_ref<Json::array_t&>());
  out["servers"] = std::move(servers);
  out["away"] = std::move(away);
  return out;
}

Result<app::Client> client_of_job(RemoteOptions& options, const std::string& job) {
  auto cells = cells_of(options);
  if (!cells) return tl::unexpected(cells.error());
  if (!cells->are_several()) return std::move(cells->clients().front());
  const auto json = get_joined(*cells, "/v1/jobs");
  if (!json) return tl::unexpected(json.error());
  TimeNs newest = std::numeric_limits<TimeNs>::min();
  std::string chosen;
  for (const Json& row : (*json)["items"]) {
    const Json last = row.value("last_ns", Json());
    const TimeNs seen = last.is_number_integer() ? last.get<TimeNs>() : 0;
    if (row.value("id", Json()) != job || seen <= newest) continue;
    newest = seen;
    chosen = row["server"].get<std::string>();
  }
  if (chosen.empty())
    return fail(ErrorCode::kNotFound,
                fmt::format("no job '{}' at {}{}", to_terminal(job), joined_names((*json)["servers"]),
                            (*json)["away"].empty() ? "" : "; others are away"));
  options.client.server = chosen;
  return app::Client::make(options.client);
}

int print_answer(RemoteOptions& options, const std::string& path,
                 const std::function<std::string(const Json&)>& show, const std::string& instead) {
  if (Status status = resolve(options); !status) return report_error(status.error().text), kUnable;
  auto cells = cells_of(options);
  if (!cells) return report_error(cells.error().text), kUnable;
  app::Client& client = cells->clients().front();
  if (options.format == "json" && !cells->are_several()) {
    auto text = client.get(path);
    if (!text) return report_error(text.error().text + instead), kUnable;
    return print(*text) ? kDone : kUnable;
  }
  const auto json = cells->are_several() ? get_joined(*cells, path) : get_json(client, path);
  if (!json) return report_error(json.error().text + instead), kUnable;
  return print(options.format == "json" ? text_of(*json) : show(*json)) ? kDone : kUnable;
}

std::string text_of(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

std::string shown(const Json& value) {
  if (value.is_null()) return "-";
  if (value.is_boolean()) return value.get<bool>() ? "yes" : "no";
  if (value.is_string()) return to_terminal(value.get<std::string>());
  return to_terminal(value.dump(-1, ' ', false, Json::error_handler_t::replace));
}

std::string text_field(const Json& object, const char* name) {
  const auto at = object.find(name);
  return at == object.end() ? "-" : shown(*at);
}

std::string time_field(const Json& object, const char* name, const Zone& zone) {
  const auto at = object.find(name);
  if (at == object.end() || !at->is_number_integer()) return "-";
  const std::string text = format_time(at->get<TimeNs>(), zone);
  return text.substr(0, text.rfind('.'));
}

std::string table(const std::vector<std::vector<std::string>>& rows, bool color) {
  std::vector<size_t> widths;
  for (const auto& row : rows)
    for (size_t i = 0; i < row.size(); ++i) {
      if (widths.size() <= i) widths.push_back(0);
      widths[i] = std::max(widths[i], columns_of(row[i]));
    }
  std::string out;
  for (size_t r = 0; r < rows.size(); ++r) {
    std::string line;
    for (size_t i = 0; i < rows[r].size(); ++i)
      line += i + 1 < rows[r].size() ? padded(rows[r][i], widths[i]) + "  " : rows[r][i];
    out += inked(line, r == 0 ? Ink::kBold : Ink::kPlain, color) + "\n";
  }
  return out;
}

std::string table(std::vector<std::vector<std::string>> rows, bool color, size_t cut, size_t width) {
  constexpr size_t kGap = 2, kLeast = 20;
  std::vector<size_t> widths;
  for (const auto& row : rows) {
    widths.resize(std::max(widths.size(), row.size()));
    for (size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], columns_of(row[i]));
  }
  size_t others = 0;
  for (size_t i = 0; i < widths.size(); ++i)
    if (i != cut) others += widths[i] + kGap;
  const size_t room = std::max(kLeast, width - std::min(width, others));
  for (auto& row : rows)
    if (cut < row.size()) row[cut] = shorten_around(row[cut], 0, room);
  return table(rows, color);
}

std::string by_whom() {
  const char* sudo = std::getenv("SUDO_USER");
  const passwd* user = getpwuid(getuid());
  const std::string name = sudo && *sudo ? sudo : user ? user->pw_name : std::to_string(getuid());
  return Json{{"by", to_utf8(name)}}.dump();
}

TimeNs wall_now() {
  using std::chrono::nanoseconds;
  return std::chrono::duration_cast<nanoseconds>(std::chrono::system_clock::now().time_since_epoch()).count();
}

}  // namespace culprit::cli
