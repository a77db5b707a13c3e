#include "cli/near.h"

#include <cstdlib>

#include "app/run/folder.h"
#include "base/shell.h"
#include "cli/remote.h"
#include "core/rules/keys.h"

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

std::string did_you_mean(std::string_view word, const std::vector<std::string>& names,
                         std::string_view quote) {
  const auto bare = [](std::string_view text) {
    return text.substr(std::min(text.find_first_not_of('-'), text.size()));
  };
  std::vector<std::string_view> candidates;
  for (const std::string& name : names) candidates.push_back(bare(name));
  const std::string_view best = rules::nearest(bare(word), candidates);
  for (size_t i = 0; i < names.size(); ++i)
    if (!best.empty() && candidates[i] == best && names[i] != word)
      return "; did you mean " + std::string(quote) + names[i] + std::string(quote) + "?";
  return "";
}

std::string with_meant_job(app::Client& client, const Error& error, const std::string& job) {
  return with_meant(client, error, job, {"/v1/jobs", "id"});
}

std::string with_meant_host(app::Client& client, const Error& error, const std::string& host) {
  return with_meant(client, error, host, {"/v1/hosts", "host"});
}

std::string kept_run_hint(const std::string& job) {
  const std::string inputs = app::kept_run(job, environment);
  return inputs.empty() ? "" : "; `culprit run` kept one: culprit diagnose " + shell_word(inputs);
}

std::string kept_runs_hint() {
  const std::string root = app::kept_runs_root(environment);
  return root.empty() ? "" : "; `culprit run` kept some: culprit diagnose " + shell_word(root) + "/NAME/job";
}

}  // namespace culprit::cli
