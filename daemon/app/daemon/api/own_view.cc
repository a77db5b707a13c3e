#include "app/daemon/api/own_view.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <map>
#include <utility>

#include "app/daemon/api/api_json.h"
#include "model/json_text.h"

namespace culprit::app {
namespace {

using Answer = serve::ApiSource::Answer;

std::string member(const json& item, const char* name) {
  const auto at = item.find(name);
  return at != item.end() && at->is_string() ? at->get<std::string>() : "";
}

bool is_of(const json& item, uint32_t uid) {
  const auto at = item.find("owner");
  return at != item.end() && at->is_number_unsigned() && at->get<uint64_t>() == uid;
}

// The items of a list; an error passes through.
Result<json> items_of(Result<std::string> text) {
  if (!text) return tl::unexpected(text.error());
  json list = parse_json(*text);
  const auto items = list.is_object() ? list.find("items") : list.end();
  if (!list.is_object() || items == list.end() || !items->is_array())
    return fail(ErrorCode::kIo, "the list of sources is not readable");
  return std::move(*items);
}

template <class Keep>
Answer keep_items(Answer answer, Keep keep) {
  return [answer = std::move(answer), keep = std::move(keep)](Result<std::string> text) {
    auto items = items_of(std::move(text));
    if (!items) return answer(tl::unexpected(items.error()));
    json kept = json::array();
    for (json& item : *items)
      if (item.is_object() && keep(item)) kept.push_back(std::move(item));
    answer(dump({{"items", std::move(kept)}}));
  };
}

// Calls `then` with the jobs of the user, among all or if it is this job.
void with_jobs(serve::ApiSource& all, const std::optional<std::string>& job, uint32_t uid,
               std::function<void(Result<std::set<std::string>>)> then) {
  all.sources(job, [uid, then = std::move(then)](Result<std::string> text) {
    const auto items = items_of(std::move(text));
    if (!items) return then(tl::unexpected(items.error()));
    then(jobs_of_user(*items, uid));
  });
}

tl::unexpected<Error> no_job(const std::string& job, uint32_t uid) {
  return fail(ErrorCode::kNotFound, fmt::format("no job {} of uid {}", job, uid));
}

}  // namespace

bool ReadAccess::sees_all(const serve::Reader& reader) const {
  if (!users || !reader.uid) return true;
  if (*reader.uid == 0 || *reader.uid == geteuid()) return true;
  return group && std::find(reader.groups.begin(), reader.groups.end(), *group) != reader.groups.end();
}

std::set<std::string> jobs_of_user(const nlohmann::json& sources, uint32_t uid) {
  std::map<std::string, bool> own;
  for (const json& source : sources) {
    const std::string job = member(source, "job"), kind = member(source, "kind");
    // The daemon itself writes the other kinds.
    if (job.empty() || kind == "kernel" || kind == "condensed" || kind == "mark") continue;
    const auto [at, fresh] = own.try_emplace(job, true);
    at->second = at->second && is_of(source, uid);
  }
  std::set<std::string> out;
  for (const auto& [job, is_own] : own)
    if (is_own) out.insert(job);
  return out;
}

void OwnView::refuse(const Answer& answer) {
  answer(fail(ErrorCode::kDenied, "this is for readers who may see all jobs: members of http.acl.group"));
}

void OwnView::status(Answer answer) {
  all_.status([answer = std::move(answer)](Result<std::string> text) {
    if (!text) return answer(tl::unexpected(text.error()));
    json status = parse_json(*text);
    if (!status.is_object()) return answer(fail(ErrorCode::kIo, "the status is not readable"));
    status.erase("alerts");
    answer(dump(status));
  });
}

// Sample, "# HELP" and "# TYPE" lines begin with the name.
void OwnView::metrics(std::function<void(std::string)> answer) {
  all_.metrics([answer = std::move(answer)](const std::string& text) {
    std::string out;
    for (size_t at = 0; at < text.size();) {
      const size_t end = std::min(text.find('\n', at), text.size() - 1) + 1;
      std::string_view line(text.data() + at, end - at);
      at = end;
      std::string_view name = line;
      if (name.starts_with("# ")) name.remove_prefix(std::min(name.find(' ', 2), name.size() - 1) + 1);
      if (!name.starts_with("culprit_alerts_")) out += line;
    }
    answer(std::move(out));
  });
}

void OwnView::jobs(Answer answer) {
  with_jobs(all_, std::nullopt, uid_, [&all = all_, answer = std::move(answer)](auto jobs) {
    if (!jobs) return answer(tl::unexpected(jobs.error()));
    all.jobs(keep_items(
        answer, [jobs = std::move(*jobs)](const json& item) { return jobs.contains(member(item, "id")); }));
  });
}

void OwnView::job_metrics(KeepJob keep, std::function<void(std::string)> answer) {
  with_jobs(all_, std::nullopt, uid_,
            [&all = all_, keep = std::move(keep), answer = std::move(answer)](auto jobs) {
              if (!jobs) return answer("");
              all.job_metrics([keep, jobs = std::move(*jobs)](
                                  const std::string& job) { return jobs.contains(job) && keep(job); },
                              answer);
            });
}

void OwnView::report(const serve::ReportQuery& query, Answer answer) {
  with_jobs(all_, query.of.job, uid_,
            [&all = all_, uid = uid_, query, answer = std::move(answer)](auto jobs) {
              if (!jobs) return answer(tl::unexpected(jobs.error()));
              if (!jobs->contains(query.of.job)) return answer(no_job(query.of.job, uid));
              all.report(query, answer);
            });
}

void OwnView::diagnoses(const serve::DiagnosisQuery& query, Answer answer) {
  with_jobs(all_, query.job, uid_, [&all = all_, query, answer = std::move(answer)](auto jobs) {
    if (!jobs) return answer(tl::unexpected(jobs.error()));
    all.diagnoses(query, keep_items(answer, [jobs = std::move(*jobs)](const json& item) {
                    return jobs.contains(member(item, "job"));
                  }));
  });
}

void OwnView::suspects(const std::optional<std::string>& job, Answer answer) {
  with_jobs(all_, job, uid_, [&all = all_, job, answer = std::move(answer)](auto jobs) {
    if (!jobs) return answer(tl::unexpected(jobs.error()));
    all.suspects(job, keep_items(answer, [jobs = std::move(*jobs)](const json& item) {
                   return jobs.contains(member(item, "job"));
                 }));
  });
}

void OwnView::sources(const std::optional<std::string>& job, Answer answer) {
  all_.sources(job,
               keep_items(std::move(answer), [uid = uid_](const json& item) { return is_of(item, uid); }));
}

// A path of a job may have several sources, one after the other: all must be the user's.
void OwnView::evidence(const serve::EvidenceQuery& query,
                       std::function<void(Result<std::unique_ptr<serve::EvidenceReader>>)> answer) {
  all_.sources(query.job, [&all = all_, uid = uid_, query, answer = std::move(answer)](auto text) {
    const auto items = items_of(std::move(text));
    if (!items) return answer(tl::unexpected(items.error()));
    size_t own = 0, others = 0;
    for (const json& item : *items) {
      if (member(item, "host") != query.host || member(item, "path") != query.path) continue;
      ++(is_of(item, uid) ? own : others);
    }
    if (own == 0 || others > 0)
      return answer(
          fail(ErrorCode::kNotFound, fmt::format("no evidence of {} of host {} for job {} of uid {}",
                                                 query.path, query.host, query.job, uid)));
    all.evidence(query, answer);
  });
}

}  // namespace culprit::app
