// What a user sees of the API, and what is logged of readers.
#include "app/daemon/api/own_view.h"

#include <unistd.h>

#include <boost/test/unit_test.hpp>

#include "../../serve/fake_source.h"
#include "app/daemon/api/read_audit.h"

namespace culprit::app {
namespace {

using nlohmann::json;

constexpr uint32_t kAlice = 12'003, kBob = 12'004;

SourceRow source(const char* job, const char* path, std::optional<uint32_t> uid,
                 OriginKind kind = OriginKind::kFile) {
  SourceRow row;
  row.job = job;
  row.host = "h";
  row.path = path;
  row.kind = kind;
  row.owner = uid;
  return row;
}

class Stored final : public serve::test::FakeSource, public Lists {
 public:
  using Answer = serve::ApiSource::Answer;
  using KeepJob = serve::ApiSource::KeepJob;
  std::vector<SourceRow> all = {source("a", "/a1", kAlice),
                                source("a", "/a2", kAlice, OriginKind::kSocket),
                                source("b", "/b", kBob),
                                source("mixed", "/m1", kAlice),
                                source("mixed", "/m2", kBob),
                                source("rotated", "/r", kAlice),
                                source("rotated", "/r", {}),
                                source("unknown", "/u", {}),
                                source("a", "x", {}, OriginKind::kCondensed),
                                source("", "/dev/kmsg", {}, OriginKind::kKernel)};
  std::map<std::string, std::optional<uint32_t>> published;  // by other members: jobs with their users
  bool fails = false;

  void report_of(const serve::ReportQuery& query, Scope scope, Answer answer) override {
    const auto other = published.find(query.of.job);
    if (scope.own(query.of.job)) return answer("report of " + query.of.job);
    if (other != published.end() && (!scope.uid || scope.uid == other->second))
      return answer("published report of " + query.of.job);
    answer(fail(ErrorCode::kNotFound, "no job " + query.of.job));
  }
  void jobs_of(Scope scope, Answer answer) override {
    std::string out = those({"a", "b", "mixed", "rotated", "unknown", "unseen"}, scope.own);
    for (const auto& [job, user] : published)
      if (!scope.uid || scope.uid == user) out += "published " + job + ";";
    answer(out);
  }
  void diagnoses_of(const serve::DiagnosisQuery&, KeepJob keep, Answer answer) override {
    answer(those({"a", "b", "mixed", ""}, keep));
  }
  void suspects_of(const std::optional<std::string>&, KeepJob keep, Answer answer) override {
    answer(those({"a", "b", "mixed", ""}, keep));
  }
  void source_rows(const std::optional<std::string>& job, SourceRows rows) override {
    if (fails) return rows(fail(ErrorCode::kIo, "the spool is not readable"));
    std::vector<SourceRow> out;
    for (const SourceRow& one : all)
      if (!job || one.job.empty() || one.job == *job) out.push_back(one);
    rows(std::move(out));
  }

 private:
  static std::string those(std::initializer_list<const char*> jobs, const KeepJob& keep) {
    std::string out;
    for (const char* job : jobs)
      if (keep(job)) out += std::string(job) + ";";
    return out;
  }
};

struct Fixture {
  Stored stored;
  OwnView alice{stored,
                stored,
                {[](const auto& take) { take("status for everyone"); },
                 [](const auto& take) { take("figures for everyone"); }},
                kAlice};
  std::string got;
  serve::ApiSource::Answer answer = [this](Result<std::string> text) {
    got = text ? *text : "error: " + text.error().text;
  };
};

BOOST_FIXTURE_TEST_SUITE(own_view, Fixture)

BOOST_AUTO_TEST_CASE(a_user_sees_the_jobs_whose_sources_are_all_of_that_user) {
  alice.jobs(answer);
  BOOST_TEST(got == "a;");
  alice.diagnoses({}, answer);
  BOOST_TEST(got == "a;");
  alice.suspects(std::nullopt, answer);
  BOOST_TEST(got == "a;");
  alice.suspects("b", answer);
  BOOST_TEST(got == "");
  alice.report({{"a", std::nullopt}}, answer);
  BOOST_TEST(got == "report of a");
  for (const char* job : {"b", "mixed", "rotated", "unknown", "unseen", ""}) {
    alice.report({{job, std::nullopt}}, answer);
    BOOST_TEST(got == std::string("error: no job ") + job + " of uid 12003");
  }
}

BOOST_AUTO_TEST_CASE(a_user_sees_what_other_members_published_of_the_own_jobs) {
  stored.published = {{"there", kAlice}, {"of-bob", kBob}, {"of-several", std::nullopt}, {"b", kBob}};
  alice.jobs(answer);
  BOOST_TEST(got == "a;published there;");
  alice.report({{"there", std::nullopt}}, answer);
  BOOST_TEST(got == "published report of there");
  for (const char* job : {"of-bob", "of-several", "b"}) {
    alice.report({{job, std::nullopt}}, answer);
    BOOST_TEST(got == std::string("error: no job ") + job + " of uid 12003");
  }
}

BOOST_AUTO_TEST_CASE(the_user_of_a_job_is_that_of_all_its_sources) {
  const auto users = users_of_jobs(stored.all);
  BOOST_TEST((users.at("a") == kAlice));
  BOOST_TEST((users.at("b") == kBob));
  for (const char* job : {"mixed", "rotated", "unknown"}) BOOST_TEST(!users.at(job).has_value());
  BOOST_TEST(users.size() == 5u);
}

BOOST_AUTO_TEST_CASE(a_user_sees_the_status_and_the_figures_that_everyone_may_see) {
  alice.status(answer);
  BOOST_TEST(got == "status for everyone");
  alice.metrics([&](std::string text) { got = std::move(text); });
  BOOST_TEST(got == "figures for everyone");
  BOOST_TEST(stored.asked == "");
}

BOOST_AUTO_TEST_CASE(a_user_gets_metrics_of_the_own_jobs) {
  const auto take = [&](std::string text) { got = std::move(text); };
  alice.job_metrics([](const std::string&) { return true; }, take);
  BOOST_TEST(got == "culprit_job_run{job_id=\"a\"} 0\n");
  alice.job_metrics([](const std::string&) { return false; }, take);
  BOOST_TEST(got.empty());
}

BOOST_AUTO_TEST_CASE(a_user_sees_the_evidence_of_that_user) {
  alice.sources(std::nullopt, answer);
  const json items = json::parse(got)["items"];
  BOOST_TEST(items.size() == 4u);
  for (const json& item : items) BOOST_TEST(item["owner"] == kAlice);
  const std::tuple<const char*, const char*, const char*, bool> reads[] = {
      {"a", "h", "/a1", true},      {"a", "h", "/a2", true},       {"mixed", "h", "/m1", true},
      {"mixed", "h", "/m2", false}, {"b", "h", "/b", false},       {"rotated", "h", "/r", false},
      {"a", "other", "/a1", false}, {"unknown", "h", "/u", false}, {"a", "h", "/dev/kmsg", false}};
  for (const auto& [job, host, path, allowed] : reads) {
    bool given = false;
    alice.evidence({job, host, path}, [&](auto reader) { given = reader.has_value(); });
    BOOST_TEST(given == allowed, job << " " << host << " " << path);
  }
}

BOOST_AUTO_TEST_CASE(what_is_about_all_jobs_and_every_change_is_refused_to_a_user) {
  const std::function<void()> asks[] = {[&] { alice.hosts(answer); },
                                        [&] { alice.devices(answer); },
                                        [&] { alice.about(answer); },
                                        [&] { alice.pool(answer); },
                                        [&] { alice.judge({}, {}, answer); },
                                        [&] { alice.clear("h", {}, answer); },
                                        [&] { alice.pool_log(answer); },
                                        [&] { alice.alerts({}, answer); },
                                        [&] { alice.handle_alert({}, {}, answer); },
                                        [&] { alice.forget_taught("j", {}, answer); },
                                        [&] { alice.capture("j", 1, {}, answer); }};
  for (const auto& ask : asks) {
    got.clear();
    ask();
    BOOST_TEST(got.starts_with("error: this is for readers who may see all jobs"));
  }
  BOOST_TEST(stored.asked == "");
}

BOOST_AUTO_TEST_CASE(a_list_of_sources_that_fails_shows_nothing) {
  stored.fails = true;
  alice.jobs(answer);
  BOOST_TEST(got == "error: the spool is not readable");
  alice.diagnoses({}, answer);
  BOOST_TEST(got == "error: the spool is not readable");
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_CASE(root_the_daemon_the_group_and_holders_of_tokens_see_everything) {
  const ReadAccess open{}, acl{true, 77}, no_group{true, std::nullopt};
  const serve::Reader root{0u}, daemon{geteuid()}, token{std::nullopt, {}, "t"}, user{kAlice, {12'003, 100}},
      member{kAlice, {100, 77}};
  for (const serve::Reader& reader : {root, daemon, token, user, member}) BOOST_TEST(open.sees_all(reader));
  for (const serve::Reader& reader : {root, daemon, token, member}) BOOST_TEST(acl.sees_all(reader));
  BOOST_TEST(!acl.sees_all(user));
  BOOST_TEST(!no_group.sees_all(member));
}

BOOST_AUTO_TEST_CASE(a_reader_of_evidence_is_logged_once_a_minute_and_source) {
  ReadAudit audit;
  const serve::Reader alice{kAlice}, grafana{std::nullopt, {}, "grafana"};
  const auto lines = [&](const char* path, const serve::Reader& who, TimeNs at) {
    return audit.on_read({"j", "h", path}, who, at);
  };
  BOOST_TEST(lines("/a", alice, 0).at(0) == "evidence: uid 12003 reads /a of host h, job j");
  BOOST_TEST(lines("/a", alice, 59 * kNsPerSecond).empty());
  BOOST_TEST(lines("/b", alice, 59 * kNsPerSecond).size() == 1u);
  BOOST_TEST(lines("/a", grafana, 59 * kNsPerSecond).at(0) ==
             "evidence: token grafana reads /a of host h, job j");
  BOOST_TEST(lines("/a", alice, 60 * kNsPerSecond).size() == 1u);
  BOOST_TEST(lines("/evil\x1b[2J\n", alice, 61 * kNsPerSecond).at(0).find('\n') == std::string::npos);
}

BOOST_AUTO_TEST_CASE(a_reader_of_many_sources_fills_no_log) {
  ReadAudit audit;
  size_t logged = 0;
  for (int i = 0; i < 10'000; ++i) logged += audit.on_read({"j", "h", std::to_string(i)}, {kAlice}, 0).size();
  BOOST_TEST(logged == ReadAudit::kSourcesPerMinute);
  const auto next = audit.on_read({"j", "h", "/a"}, {kBob}, 60 * kNsPerSecond);
  BOOST_REQUIRE(next.size() == 2u);
  BOOST_TEST(next[0] == "evidence: uid 12003 read 9900 sources more within a minute");
}

}  // namespace
}  // namespace culprit::app
