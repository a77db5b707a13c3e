#include "cli/candidates.h"

#include "app/client.h"
#include "app/config/rule_files.h"
#include "cli/remote.h"

namespace culprit::cli {
namespace {

constexpr long kAnswerMs = 60;  // a person waits while typing

std::vector<std::string> listed(app::Client& client, const std::string& path, const char* member) {
  std::vector<std::string> out;
  const auto items = get_items(client, path);
  if (!items) return out;
  for (const Json& item : *items)
    if (const auto at = item.find(member); at != item.end() && at->is_string())
      out.push_back(at->get<std::string>());
  return out;
}

std::vector<std::string> of_daemon(const Completing& at) {
  app::ClientOptions options{at.server, at.token_file, at.ca_file};
  options.answer_ms = kAnswerMs;
  auto client = app::Client::make(options);
  if (!client) return {};
  const std::string of_job = at.job.empty() ? "" : "?job=" + app::url_escaped(at.job);
  switch (at.wanted) {
    case Wanted::kJob:
      return listed(*client, "/v1/jobs", "id");
    case Wanted::kDiagnosis:
      return listed(*client, "/v1/diagnoses" + of_job, "id");
    case Wanted::kHost:
      return listed(*client, "/v1/hosts", "host");
    case Wanted::kSource:
      return listed(*client, "/v1/sources" + of_job, "path");
    default:
      return {};
  }
}

std::vector<std::string> rule_ids() {
  std::vector<std::string> out;
  const app::LoadedRules loaded = app::load_rules({});
  if (loaded.set)
    for (const rules::Rule& rule : loaded.set->rules()) out.push_back(rule.id);
  return out;
}

}  // namespace

std::vector<std::string> candidates(const Completing& at) {
  if (at.wanted == Wanted::kRule) return rule_ids();
  return at.wanted == Wanted::kNothing ? std::vector<std::string>() : of_daemon(at);
}

}  // namespace culprit::cli
