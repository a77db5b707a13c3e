#include "cli/near.h"

#include <cstdlib>

#include "app/run/folder.h"
#include "base/shell.h"
#include "cli/remote.h"
#include "cli/spelling.h"

namespace culprit::cli {
namespace {

std::string with_meant(app::Client& client, const Error& error, const std::string& word,
                       const std::pair<const char*, const char*> list) {
  if (error.code != ErrorCode::kNotFound) return error.text;
  const auto items = get_items(client, list.first);
  if (!items) return error.text;
  std::vector<std::string> names;
  for (const Json& item : *items)
    if (const auto name = item.find(list.second); name != item.end() && name->is_string())
      names.push_back(name->get<std::string>());
  return error.text + did_you_mean(word, names, "'");
}

std::optional<std::string> environment(std::string_view name) {
  const char* value = std::getenv(std::string(name).c_str());
  return value ? std::optional<std::string>(value) : std::nullopt;
}

}  // namespace

std::string with_meant_job(app::Client& client, const Error& error, const std::string& job) {
  return with_meant(client, error, job, {"/v1/jobs", "id"});
}

std::string with_meant_host(app::Client& client, const Error& error, const std::string& host) {
  return with_meant(client, error, host, {"/v1/hosts", "host"});
}

std::string stored_run_hint(const std::string& job) {
  const std::string inputs = app::stored_run(job, environment);
  return inputs.empty() ? "" : "; `culprit run` kept one: culprit diagnose " + shell_word(inputs);
}

std::string stored_runs_hint() {
  const std::string root = app::stored_runs_root(environment);
  return root.empty() ? "" : "; `culprit run` kept some: culprit diagnose " + shell_word(root) + "/NAME/job";
}

}  // namespace culprit::cli
