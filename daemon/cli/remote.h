// What the verbs share that speak to a daemon: options, asking for JSON, tables, times.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "app/client.h"
#include "base/status.h"
#include "base/time.h"
#include "cli/command.h"

namespace culprit::cli {

using Json = nlohmann::ordered_json;

struct RemoteOptions {
  app::ClientOptions client;
  std::string format = "text";
  std::string timezone = "local";
  Zone zone;  // after resolve
};

enum class Asks { kReads, kChanges };
void add_server_options(Command& verb, RemoteOptions& options, Asks asks);
void add_format(Command& verb, RemoteOptions& options, const std::vector<std::string>& formats);
void add_timezone(Command& verb, RemoteOptions& options);
// --run: which of several runs of a job; without, the last.
void add_run(Command& verb, std::optional<uint32_t>& run);
Status resolve(RemoteOptions& options);

// `charts`: with the curves that a person is shown.
std::string report_path(const std::string& job, std::optional<uint32_t> run, bool charts = false);
Result<Json> ask_json(app::Client& client, const std::string& path);
// The items of a list.
Result<std::vector<Json>> ask_items(app::Client& client, const std::string& path);

// A verb that prints one answer of the daemon: as it is with --format json, else as `show` has it.
int print_answer(RemoteOptions& options, const std::string& path,
                 const std::function<std::string(const Json&)>& show);

// Fields as a terminal may show them; "-" where there is none.
std::string text_field(const Json& object, const char* name);
std::string time_field(const Json& object, const char* name, const Zone& zone);
// A number or text as it is, an object or list as JSON.
std::string shown(const Json& value);

// Rows in columns, the first row in bold on a terminal that has colour. Texts are safe to show already.
std::string table(const std::vector<std::vector<std::string>>& rows, bool color);

// Who asks for a change: {"by": "alice"}.
std::string by_whom();

}  // namespace culprit::cli
