// What one user of the host sees of the API on the unix socket ([http.acl]): jobs and evidence of that user.
// A source is the user's if its "owner" is; a job is the user's if all its sources are. Everything else is
// answered as if it did not exist, and requests that are not about one job are refused. The view selects rows
// (listed.h), never JSON.
//
// Thread: the loop's. Borrows the whole API, which outlives it; it may be destroyed before its answers
// arrive.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>

#include "app/config/config.h"
#include "app/daemon/api/listed.h"
#include "serve/api.h"

namespace culprit::app {

// Who sees everything over the unix socket.
struct ReadAccess {
  bool users = false;             // false: everyone who may connect has full access
  std::optional<uint32_t> group;  // group whose members have full access, in addition to root and the
                                  // daemon's user
  bool sees_all(const serve::Reader& reader) const;
};
// As configured in [http.acl]. Reports a group that does not exist.
ReadAccess read_access(const Config& config, const std::function<void(const std::string&)>& report_error);

// The jobs of these sources, each with the user of all its sources; nothing: several, or unknown.
std::map<std::string, std::optional<uint32_t>> users_of_jobs(std::span<const SourceRow> sources);
// The jobs with only sources of the user.
std::set<std::string> jobs_of_user(std::span<const SourceRow> sources, uint32_t uid);

// The daemon's values without alert receivers and their counters, since alerts() is refused.
struct OpenToUsers {
  std::function<void(serve::ApiSource::Answer)> status;
  std::function<void(std::function<void(std::string)>)> metrics;
};

class OwnView final : public serve::ApiSource {
 public:
  OwnView(serve::ApiSource& all, Lists& lists, OpenToUsers open, uint32_t uid)
      : all_(all), lists_(lists), open_(std::move(open)), uid_(uid) {}

  serve::Health health() override { return all_.health(); }
  void metrics(std::function<void(std::string)> answer) override { open_.metrics(std::move(answer)); }
  void job_metrics(KeepJob keep, std::function<void(std::string)> answer) override;
  void status(Answer answer) override { open_.status(std::move(answer)); }
  void rules(Answer answer) override { all_.rules(std::move(answer)); }
  void rule(const std::string& id, Answer answer) override { all_.rule(id, std::move(answer)); }
  void jobs(Answer answer) override;
  void now(const serve::NowQuery&, Answer answer) override { refuse(answer); }
  void report(const serve::ReportQuery& query, Answer answer) override;
  void diagnoses(const serve::DiagnosisQuery& query, Answer answer) override;
  void suspects(const std::optional<std::string>& job, Answer answer) override;
  void sources(const std::optional<std::string>& job, Answer answer) override;
  void evidence(const serve::EvidenceQuery& query,
                std::function<void(Result<std::unique_ptr<serve::EvidenceReader>>)> answer) override;
  void hosts(Answer answer) override { refuse(answer); }
  void devices(Answer answer) override { refuse(answer); }
  void plugins(Answer answer) override { refuse(answer); }
  void about(Answer answer) override { refuse(answer); }
  void pool(Answer answer) override { refuse(answer); }
  void pool_log(Answer answer) override { refuse(answer); }
  void judge(const serve::Judgement&, const serve::Actor&, Answer answer) override { refuse(answer); }
  void make_rule(const serve::RuleRequest&, const serve::Actor&, Answer answer) override { refuse(answer); }
  void reload(const serve::Actor&, Answer answer) override { refuse(answer); }
  void clear(const std::string&, const serve::Actor&, Answer answer) override { refuse(answer); }
  void capture(const std::string&, uint32_t, const serve::Actor&, Answer answer) override { refuse(answer); }
  void forget_taught(const std::string&, const serve::Actor&, Answer answer) override { refuse(answer); }
  void alerts(const serve::AlertQuery&, Answer answer) override { refuse(answer); }
  void handle_alert(const serve::AlertOrder&, const serve::Actor&, Answer answer) override { refuse(answer); }
  void maintenance(Answer answer) override { refuse(answer); }
  void add_maintenance(const std::string&, const serve::Actor&, Answer answer) override { refuse(answer); }
  void end_maintenance(int64_t, const serve::Actor&, Answer answer) override { refuse(answer); }
  void test_alert(const std::string&, const serve::Actor&, Answer answer) override { refuse(answer); }

 private:
  static void refuse(const Answer& answer);

  serve::ApiSource& all_;
  Lists& lists_;
  const OpenToUsers open_;
  const uint32_t uid_;
};

}  // namespace culprit::app
