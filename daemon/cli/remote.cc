#include "cli/remote.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <pwd.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>

#include "base/text.h"
#include "cli/layout.h"
#include "cli/rules.h"
#include "cli/verbs.h"
#include "cli/zone.h"
#include "model/json_text.h"

namespace culprit::cli {

void add_server_options(Command& verb, RemoteOptions& options) {
  verb.add_option(
      "--server", options.client.server,
      fmt::format("unix:PATH or http(s)://HOST:PORT; without: CULPRIT_SERVER, else {}", app::kLocalServer));
  verb.add_option("--token-file", options.client.token_file,
                  "A file whose first token the daemon knows, for http(s); without: CULPRIT_TOKEN_FILE");
  verb.add_option("--ca-file", options.client.ca_file,
                  "The authority of the daemon's certificate, for https; without: CULPRIT_CA_FILE, else the "
                  "system's");
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

int print_answer(RemoteOptions& options, const std::string& path,
                 const std::function<std::string(const Json&)>& show, const std::string& instead) {
  if (Status status = resolve(options); !status) return report_error(status.error().text), kUnable;
  auto client = app::Client::make(options.client);
  if (!client) return report_error(client.error().text), kUnable;
  if (options.format == "json") {
    auto text = client->get(path);
    if (!text) return report_error(text.error().text + instead), kUnable;
    return print(*text) ? kDone : kUnable;
  }
  const auto json = get_json(*client, path);
  if (!json) return report_error(json.error().text + instead), kUnable;
  return print(show(*json)) ? kDone : kUnable;
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
