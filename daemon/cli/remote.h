// Common parts of verbs that query a daemon: options, JSON requests, tables, times.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "app/cells.h"
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
  bool asks_members = false;  // of one server's cluster; set by add_members()
  bool only_this = false;
  Zone zone;  // set by resolve
};

void add_server_options(Command& verb, RemoteOptions& options);
// --only-this. A verb with it asks the other members of its server's cluster too.
void add_members(Command& verb, RemoteOptions& options);
// The servers that the options name, and the members that these lead to.
Result<app::Cells> cells_of(const RemoteOptions& options);
void add_format(Command& verb, RemoteOptions& options, const std::vector<std::string>& formats);
void add_timezone(Command& verb, RemoteOptions& options);
// --run: selects one of several runs of a job; default: the last.
void add_run(Command& verb, std::optional<uint32_t>& run);
Status resolve(RemoteOptions& options);

// `charts`: include the curves of the report.
std::string report_path(const std::string& job, std::optional<uint32_t> run, bool charts = false);
// A line of JSON.
std::string text_of(const Json& json);
Result<Json> get_json(app::Client& client, const std::string& path);
// The items of a list resource.
Result<std::vector<Json>> get_items(app::Client& client, const std::string& path);

// The client of the one server that has the job: of several, the one with its newest data, which alone
// remains in `options`. An error names the servers that were asked. A single server is not asked.
Result<app::Client> client_of_job(RemoteOptions& options, const std::string& job);

// The answers of several collectors as one: lists are joined, each item gets "server", and "servers" has
// those that answered. Servers that are away are reported on stderr and in "away". An error if none answers.
Result<Json> get_joined(app::Cells& cells, const std::string& path);

// Prints one answer of the daemon, unchanged with --format json, else by `show`; or of several collectors, as
// get_joined() has it. `instead`: text after an error if the resource is missing.
int print_answer(RemoteOptions& options, const std::string& path,
                 const std::function<std::string(const Json&)>& show, const std::string& instead = "");

// Fields, safe for a terminal; "-" if missing.
std::string text_field(const Json& object, const char* name);
std::string time_field(const Json& object, const char* name, const Zone& zone);
// A number or text unchanged, an object or list as JSON.
std::string shown(const Json& value);

// Rows in columns; the first row is bold on a terminal with colour. Texts must be safe to show.
std::string table(const std::vector<std::vector<std::string>>& rows, bool color);
// Like table(), but cuts the texts of one column so that rows fit into `width` columns if possible.
std::string table(std::vector<std::vector<std::string>> rows, bool color, size_t cut, size_t width);

// The user who makes a change: {"by": "alice"}.
std::string by_whom();
TimeNs wall_now();  // of this host's clock

}  // namespace culprit::cli
