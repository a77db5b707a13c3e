#include "store/index.h"

#include <fmt/format.h>
#include <sqlite3.h>
#include <unistd.h>

#include <array>
#include <boost/test/unit_test.hpp>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <vector>

#include "store/index_schema.h"

using namespace culprit;
using namespace culprit::records;
using namespace culprit::store;

namespace {

class Folder {
 public:
  Folder() {
    // In memory if possible: the tests need no disk, and would wait for it.
    path_ = std::filesystem::is_directory("/dev/shm") ? "/dev/shm" : "/tmp";
    path_ += "/culprit-index-XXXXXX";
    BOOST_REQUIRE(mkdtemp(path_.data()) != nullptr);
  }
  ~Folder() { std::filesystem::remove_all(path_); }
  std::string file() const { return path_ + "/index.db"; }

 private:
  std::string path_;
};

std::unique_ptr<Index> open_index(const Folder& folder) {
  auto index = Index::open(folder.file());
  BOOST_REQUIRE_MESSAGE(index.has_value(), (index ? "" : index.error().text));
  return std::move(*index);
}

template <class Outcome>
void must(const Outcome& outcome) {
  BOOST_REQUIRE_MESSAGE(outcome.has_value(), (outcome ? "" : outcome.error().text));
}

JobRow job_row(const std::string& id, TimeNs first = 10, uint32_t run = 0) {
  JobRow job;
  job.id = id;
  job.run = run;
  job.first_ns = first;
  job.last_ns = first + 5;
  job.hosts = 2;
  return job;
}

Verdict verdict(const std::string& job, const std::string& id, TimeNs first,
                const std::string& kind = "rule:x") {
  Verdict out;
  out.job = job, out.since_ns = out.last_ns = first, out.kind = kind;
  out.diagnosis.id = id, out.diagnosis.title = "title of " + id;
  return out;
}

Report report_of(const std::string& headline) {
  Report out;
  out.headline = headline;
  return out;
}

// Changes of the file by another program.
void sql(const std::string& path, const std::string& text) {
  sqlite3* db = nullptr;
  BOOST_REQUIRE(sqlite3_open(path.c_str(), &db) == SQLITE_OK);
  char* message = nullptr;
  sqlite3_exec(db, text.c_str(), nullptr, nullptr, &message);
  BOOST_REQUIRE_MESSAGE(message == nullptr, (message ? message : ""));
  sqlite3_close(db);
}

void overwrite(const std::string& path, std::streamoff at, const std::string& bytes) {
  std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
  file.seekp(at);
  file << bytes;
}

}  // namespace

BOOST_AUTO_TEST_CASE(jobs_and_reports_outlive_a_restart) {
  Folder folder;
  {
    auto index = open_index(folder);
    must(index->upsert_job(job_row("old", 10)));
    must(index->upsert_job(job_row("new", 20)));
    must(index->put_report("old", 0, report_of("first")));
    must(index->put_report("old", 0, report_of("second")));
    JobRow ended = job_row("old", 10);
    ended.state = JobState::kFailed;
    ended.ended_ns = 30;
    ended.verdict = "{\"id\":\"d1\"}";
    must(index->upsert_job(ended));
  }
  auto index = open_index(folder);
  BOOST_TEST(index->moved_aside().empty());
  const auto jobs = index->jobs();
  BOOST_REQUIRE((jobs && jobs->size() == 2u));
  BOOST_TEST((*jobs)[0].id == "new");
  BOOST_TEST((*jobs)[0].ended_ns == kNoTime);
  const auto old = index->job("old");
  BOOST_REQUIRE((old && *old));
  BOOST_TEST(((*old)->state == JobState::kFailed && to_string((*old)->state) == "failed"));
  BOOST_TEST(((*old)->ended_ns == 30 && (*old)->first_ns == 10 && (*old)->last_ns == 15));
  BOOST_TEST((*old)->verdict == "{\"id\":\"d1\"}");
  BOOST_TEST(((*old)->hosts == 2u && !(*old)->lines));
  BOOST_TEST(index->report("old", 0)->value().headline == "second");
  BOOST_TEST(!index->report("new", 0)->has_value());
  BOOST_TEST(!index->job("none")->has_value());
}

BOOST_AUTO_TEST_CASE(each_run_of_a_job_keeps_what_is_its_own) {
  Folder folder;
  auto index = open_index(folder);
  for (uint32_t run : {0u, 1u, 2u}) {
    must(index->upsert_job(job_row("a", 10 * (run + 1), run)));
    must(index->put_report("a", run, report_of("run " + std::to_string(run))));
    Verdict one = verdict("a", "d" + std::to_string(run), 10 * (run + 1));
    one.run = run;
    must(index->put_verdict(one));
    must(index->add_findings(std::vector<FindingRow>{{"a", run, "f", 1, "{}"}}));
  }
  must(index->upsert_job(job_row("b", 15)));
  const auto reported = [](const std::vector<JobRow>& rows) {
    std::string out;
    for (const JobRow& row : rows) out += row.id + std::to_string(row.run) + " ";
    return out;
  };
  BOOST_TEST(reported(*index->jobs()) == "a2 a1 b0 a0 ");
  BOOST_TEST(reported(*index->last_runs()) == "a2 b0 ");
  BOOST_TEST(index->job("a")->value().run == 2u);
  BOOST_TEST(index->job("a", 1)->value().first_ns == 20);
  BOOST_TEST(!index->job("a", 3)->has_value());
  BOOST_TEST(index->report("a", 1)->value().headline == "run 1");
  BOOST_TEST(index->verdicts({"a", std::nullopt})->size() == 3u);
  BOOST_TEST(index->verdicts({"a", 1})->at(0).id() == "d1");
  BOOST_TEST(index->findings("a")->size() == 3u);
}

BOOST_AUTO_TEST_CASE(a_finding_that_is_reported_again_is_kept_once) {
  Folder folder;
  auto index = open_index(folder);
  must(index->upsert_job(job_row("a")));
  for (const char* id : {"f1", "f2", "f1"})
    must(index->add_findings(std::vector<FindingRow>{{"a", 0, id, 1, "{}"}}));
  BOOST_TEST(index->findings("a")->size() == 2u);
}

BOOST_AUTO_TEST_CASE(a_refused_finding_does_not_keep_the_others_out) {
  Folder folder;
  auto index = open_index(folder);
  must(index->upsert_job(job_row("a")));
  const std::vector<FindingRow> rows = {
      {"a", 0, "f1", 1, "{}"}, {"none", 0, "f2", 1, "{}"}, {"a", 0, "f3", 1, "{}"}};
  BOOST_TEST(!index->add_findings(rows).has_value());
  BOOST_TEST(index->findings("a")->size() == 2u);
}

BOOST_AUTO_TEST_CASE(what_is_of_a_job_needs_its_job) {
  Folder folder;
  auto index = open_index(folder);
  BOOST_TEST(!index->put_report("none", 0, Report()).has_value());
  BOOST_TEST(!index->put_verdict(verdict("none", "d1", 1)).has_value());
  BOOST_TEST(!index->add_findings(std::vector<FindingRow>{{"none", 0, "f", 1, "{}"}}).has_value());
  must(index->upsert_job(job_row("none")));
  must(index->put_report("none", 0, Report()));
}

BOOST_AUTO_TEST_CASE(diagnoses_are_asked_by_job_and_time) {
  Folder folder;
  auto index = open_index(folder);
  for (const char* job : {"a", "b"}) {
    must(index->upsert_job(job_row(job)));
    for (TimeNs t = 1; t <= 3; ++t) must(index->put_verdict(verdict(job, "d" + std::to_string(t), t)));
  }
  const auto ids = [&](const VerdictQuery& query) {
    std::string text;
    const auto rows = index->verdicts(query);
    for (const auto& row : *rows) text += row.job + row.id() + " ";
    return text;
  };
  BOOST_TEST(ids({}) == "bd3 ad3 bd2 ad2 bd1 ad1 ");
  BOOST_TEST(ids({"a", {}, kNoTime, 1000}) == "ad3 ad2 ad1 ");
  BOOST_TEST(ids({"a", {}, 2, 1000}) == "ad3 ad2 ");
  BOOST_TEST(ids({"", {}, 3, 1000}) == "bd3 ad3 ");
  BOOST_TEST(ids({"", {}, kNoTime, 1}) == "bd3 ");
  BOOST_TEST(ids({"c", {}, kNoTime, 1000}) == "");
}

BOOST_AUTO_TEST_CASE(a_judgement_stays_and_is_audited) {
  Folder folder;
  auto index = open_index(folder);
  must(index->upsert_job(job_row("a")));
  must(index->put_verdict(verdict("a", "d1", 1)));
  must(index->judge({"a", "d1", {}, true, "uid 1000", 50}));
  must(index->put_verdict(verdict("a", "d1", 60)));  // the engine reports it again
  const auto rows = index->verdicts({});
  BOOST_REQUIRE((rows && rows->size() == 1u));
  BOOST_TEST(((*rows)[0].state == VerdictState::kConfirmed));
  BOOST_TEST((*rows)[0].judged_by == "uid 1000");
  BOOST_TEST(((*rows)[0].judged_ns == 50 && (*rows)[0].since_ns == 1 && (*rows)[0].last_ns == 60));
  const auto none = index->judge({"a", "d2", {}, true, "uid 1000", 51});
  BOOST_REQUIRE(!none.has_value());
  BOOST_TEST((none.error().code == ErrorCode::kNotFound));
  BOOST_TEST(none.error().text == "job a: no diagnosis d2");
  BOOST_TEST(index->judge({"a", "d1", 7, true, "uid 1000", 51}).error().text ==
             "job a, run 7: no diagnosis d1");
  const auto audit = index->audits();
  BOOST_REQUIRE((audit && audit->size() == 1u));  // a failed change has no row
  BOOST_TEST(((*audit)[0].what == "confirm" && (*audit)[0].subject == "a/d1" && (*audit)[0].time_ns == 50));
  BOOST_TEST((*audit)[0].detail == "rule:x");
  must(index->judge({"a", "d1", {}, true, "uid 1000", 52, "site.y"}));
  const auto judged = index->judged();
  BOOST_REQUIRE((judged && judged->contains("rule:site.y")));  // also of the rule that was made of it
  BOOST_TEST(judged->at("rule:site.y").right == 1u);
  BOOST_TEST(judged->at("rule:x").hits == 1u);
}

BOOST_AUTO_TEST_CASE(a_judgement_that_is_shared_waits_until_the_others_have_it) {
  Folder folder;
  {
    auto index = open_index(folder);
    must(index->upsert_job(job_row("a")));
    must(index->put_verdict(verdict("a", "d1", 1)));
    Judgement j{"a", "d1", {}, true, "alice", 50};
    must(index->judge(j));
    BOOST_TEST(index->unshared({})->empty());
    j.share = true;
    must(index->judge(j));
  }
  auto index = open_index(folder);  // also after a restart
  const auto waiting = index->unshared({});
  BOOST_REQUIRE((waiting && waiting->size() == 1u));
  const Judgement& one = waiting->front();
  BOOST_TEST((one.job == "a" && one.id == "d1" && one.right && one.by == "alice" && one.time_ns == 50));
  BOOST_REQUIRE(one.seen.has_value());
  BOOST_TEST((one.seen->member.empty() && one.seen->run == 0u && one.seen->kind == "rule:x"));
  Judgement later = one;
  later.time_ns = 60;
  later.right = false;
  later.seen.reset();
  later.share = true;
  must(index->judge(later));
  BOOST_TEST(index->unshared(*waiting)->size() == 1u);  // a later one of the same diagnosis still waits
  BOOST_TEST(index->unshared(*index->unshared({}))->empty());
}

namespace {

// As another member judged it: its run has the number 3 there, and began at `first`.
Judgement of_other(const std::string& job, bool right, TimeNs at, TimeNs first, TimeNs last) {
  Judgement out{job, "d00000013", {}, right, "bob at y", at};
  out.seen = SeenRun{"y", 3, first, last, "rule:x"};
  return out;
}

std::string states(Index& index) {
  std::string out;
  for (const auto& v : *index.verdicts({}))
    out += fmt::format("{}@{}={} ", v.id(), v.run, to_string(v.state));
  return out;
}

JobRow run_row(const std::string& job, uint32_t run, TimeNs first, TimeNs last) {
  JobRow out = job_row(job);
  out.run = run;
  out.state = JobState::kFailed;
  out.first_ns = first;
  out.last_ns = last;
  return out;
}

}  // namespace

// It has the run of that time under another number, and so the diagnosis under another id.
BOOST_AUTO_TEST_CASE(a_judgement_of_another_member_is_of_the_run_of_its_time) {
  Folder folder;
  auto index = open_index(folder);
  for (const uint32_t run : {0u, 1u}) {
    must(index->upsert_job(run_row("a", run, 100 + 100 * run, 150 + 100 * run)));
    Verdict v = verdict("a", fmt::format("d{:08x}", 0x10 + run), 1);
    v.run = run;
    must(index->put_verdict(v));
  }
  const auto done = index->judge(of_other("a", true, 500, 120, 140));
  BOOST_REQUIRE(done.has_value());
  BOOST_TEST((done->changed && done->run == 0u && done->id == "d00000010"));
  BOOST_TEST(states(*index) == "d00000011@1=open d00000010@0=confirmed ");
  BOOST_TEST(index->judge(of_other("a", false, 400, 120, 140))->changed == false);  // an older one
  BOOST_TEST(index->judge(of_other("a", true, 500, 120, 140))->changed == false);   // the same again
  BOOST_TEST(states(*index) == "d00000011@1=open d00000010@0=confirmed ");
  BOOST_TEST(index->audits()->size() == 1u);
  BOOST_TEST(!index->judge(of_other("a", true, 600, 700, 800))->run.has_value());  // no run of that time
  BOOST_TEST(states(*index) == "d00000011@1=open d00000010@0=confirmed ");
}

BOOST_AUTO_TEST_CASE(a_judgement_of_a_diagnosis_that_is_not_here_counts_for_its_kind_once) {
  Folder folder;
  auto index = open_index(folder);
  for (int i = 0; i < 2; ++i) {
    const auto done = index->judge(of_other("a", true, 500, 120, 140));
    BOOST_REQUIRE(done.has_value());
    BOOST_TEST((!done->run && !done->changed));
  }
  BOOST_TEST((index->judged()->at("rule:x").hits == 1u && index->judged()->at("rule:x").by == "bob at y"));
  must(index->upsert_job(run_row("a", 0, 130, 200)));  // the job comes here, and then its diagnosis
  must(index->judge(of_other("a", true, 500, 120, 140)));
  must(index->put_verdict(verdict("a", "d00000010", 135)));
  BOOST_TEST(index->judge(of_other("a", true, 500, 120, 140))->changed);
  BOOST_TEST(states(*index) == "d00000010@0=confirmed ");
  BOOST_TEST((index->judged()->at("rule:x").hits == 1u && index->audits()->size() == 1u));
  must(index->judge({"a", "d00000010", {}, false, "carol", 900}));  // and somebody here says otherwise
  BOOST_TEST((index->judged()->at("rule:x").hits == 1u && index->judged()->at("rule:x").right == 0u));
}

// Each diagnosis counts once, with its last judgement; also of jobs that are no longer in the index.
BOOST_AUTO_TEST_CASE(what_people_said_of_a_kind_is_counted_over_all_jobs) {
  Folder folder;
  auto index = open_index(folder);
  for (const char* job : {"a", "b", "c"}) {
    must(index->upsert_job(job_row(job)));
    must(index->put_verdict(verdict(job, "d1", 1)));
  }
  must(index->put_verdict(verdict("a", "d2", 1, "silence:hang")));
  BOOST_TEST(index->judged()->empty());
  must(index->judge({"a", "d1", {}, true, "alice", 50}));
  must(index->judge({"a", "d1", {}, true, "alice", 51}));
  must(index->judge({"b", "d1", {}, true, "bob", 52}));
  must(index->judge({"b", "d1", {}, false, "bob", 53}));
  must(index->judge({"c", "d1", {}, false, "alice", 54}));
  must(index->judge({"c", "d1", {}, true, "carol", 55}));
  must(index->judge({"a", "d2", {}, true, "dave", 56}));
  sql(folder.file(), "DELETE FROM jobs WHERE id = 'a'");
  const auto judged = index->judged();
  BOOST_REQUIRE((judged && judged->size() == 2u));
  const Judged& x = judged->at("rule:x");
  BOOST_TEST((x.hits == 3 && x.right == 2 && x.by == "carol"));
  BOOST_TEST((judged->at("silence:hang").hits == 1));
}

BOOST_AUTO_TEST_CASE(what_jobs_taught_is_kept_logged_and_taken_back_by_job) {
  Folder folder;
  const auto jobs = [](Index& index) {
    std::string out;
    const auto rows = index.pools().taught();
    for (const TaughtRow& row : *rows) out += row.job + "/" + std::to_string(row.run) + "=" + row.text + " ";
    return out;
  };
  const auto log = [](Index& index) {
    std::string out;
    const auto rows = index.pools().log();
    for (const PoolLogRow& row : *rows)
      out += row.what + " " + row.job + "/" + std::to_string(row.run) + row.who + (row.counts ? "+ " : " ");
    return out;
  };
  {
    auto index = open_index(folder);
    must(index->pools().teach({"a", 0, "user 1", "its word", 5, 2, std::string("two\0three", 9)}, {}));
    must(index->pools().teach({"a", 1, "user 1", "its word", 6, 2, "y"}, {}));
    must(index->pools().teach({"b", 0, "trusted", "its word", 7, 1, "z"}, {}));
    must(index->pools().teach({"c", 0, "user 2", "its word", 8, 1, "u"}, {{"b", 0}}));
  }
  auto index = open_index(folder);
  BOOST_TEST(jobs(*index) == "a/0=" + std::string("two\0three", 9) + " a/1=y c/0=u ");
  BOOST_TEST(log(*index) == "learned c/0+ learned b/0 learned a/1+ learned a/0+ ");
  must(index->pools().forget("a", 9, "root"));
  BOOST_TEST(jobs(*index) == "c/0=u ");
  BOOST_TEST(log(*index) ==
             "forgotten a/1root forgotten a/0root learned c/0+ learned b/0 learned a/1 "
             "learned a/0 ");
  BOOST_TEST((index->audits(1)->front().what == "forget" && index->audits(1)->front().subject == "a"));
  const Status again = index->pools().forget("a", 10, "root");
  BOOST_REQUIRE(!again.has_value());
  BOOST_TEST((again.error().code == ErrorCode::kNotFound));
  BOOST_TEST(index->pools().log()->size() == 6u);
}

BOOST_AUTO_TEST_CASE(what_other_members_lack_of_the_pool_waits_until_they_have_it) {
  Folder folder;
  const auto waiting = [](Index& index, std::span<const TaughtRow> shared = {}) {
    std::string out;
    const auto rows = index.pools().unshared(shared);
    for (const TaughtRow& row : *rows)
      out += row.job + "/" + std::to_string(row.run) + "=" + row.text + row.forgotten + " ";
    return out;
  };
  auto index = open_index(folder);
  must(index->pools().teach({"a", 0, "user 1", "its word", 5, 2, "x"}, {}));
  must(index->pools().teach({"b", 0, "user 1", "its word", 6, 1, "y"}, {}));
  must(index->pools().teach({"c", 0, "user 1", "its word", 7, 1, "z", "y"}, {}));
  must(index->pools().forget("b", 9, "root"));
  BOOST_TEST(waiting(*index) == "a/0=x b/0=root ", "another member's own is not given back");
  const TaughtRow early{"a", 0, "", "", 4, 0, ""};
  BOOST_TEST(waiting(*index, {{early}}) == "a/0=x b/0=root ");
  const TaughtRow a{"a", 0, "", "", 5, 0, ""}, b{"b", 0, "", "", 9, 0, "", "", "root"};
  const std::array both{a, b};
  BOOST_TEST(waiting(*index, both) == "");
  index.reset();
  index = open_index(folder);
  BOOST_TEST(waiting(*index) == "");
  BOOST_TEST(index->pools().taught()->back().member == "y");
}

BOOST_AUTO_TEST_CASE(the_latest_word_of_another_member_on_a_run_counts) {
  Folder folder;
  auto index = open_index(folder);
  const auto is_news = [&](TimeNs time_ns) {
    return *index->pools().is_news({"a", 1, "user 1", "its word", time_ns, 2, "x", "y"});
  };
  BOOST_TEST(is_news(5));
  must(index->pools().teach({"a", 1, "user 1", "its word", 5, 2, "x", "y"}, {}));
  BOOST_TEST(index->pools().log()->front().why == "at y: its word");
  BOOST_TEST((!is_news(5) && is_news(6)));
  must(index->pools().take_back({"a", 1, "user 1", "its word", 7, 2, "", "y", "root at y"}));
  BOOST_TEST(index->pools().taught()->empty());
  BOOST_TEST((index->pools().log()->front().what == "forgotten" &&
              index->pools().log()->front().who == "root at y"));
  BOOST_TEST((!is_news(7) && is_news(8)));
  BOOST_TEST(index->pools().unshared({})->empty());
}

BOOST_AUTO_TEST_CASE(cleared_hosts_are_kept) {
  Folder folder;
  {
    auto index = open_index(folder);
    must(index->clear_host("node-1", 5, "root"));
    must(index->clear_host("node-1", 9, "root"));
    must(index->add_audit({7, "root", "reload", "", "ok"}));
  }
  auto index = open_index(folder);
  BOOST_TEST((index->cleared()->at("node-1") == 9));
  BOOST_TEST(index->audits()->size() == 3u);
  BOOST_TEST(index->audits(1)->front().what == "reload");
}

BOOST_AUTO_TEST_CASE(texts_of_strangers_are_values_and_nothing_else) {
  Folder folder;
  auto index = open_index(folder);
  for (const std::string& id : {std::string("'; DROP TABLE jobs; --"), std::string("\xff\xfe"),
                                std::string(""), std::string("a\0b", 3), std::string(100'000, 'x')}) {
    must(index->upsert_job(job_row(id)));
    const auto found = index->job(id);
    BOOST_REQUIRE((found && *found));
    BOOST_TEST((*found)->id == id);
  }
  BOOST_TEST(index->jobs()->size() == 5u);
}

BOOST_AUTO_TEST_CASE(rows_are_bounded_and_the_oldest_go) {
  Folder folder;
  must(open_index(folder)->upsert_job(job_row("a")));
  const auto up_to = [](size_t n) {
    return "WITH RECURSIVE n (i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < " +
           std::to_string(n - 1) + ") ";
  };
  sql(folder.file(), up_to(kFindingsPerRunMax) + "INSERT INTO findings SELECT 'a', 0, i, i, '{}' FROM n");
  sql(folder.file(), up_to(kAuditMax) + "INSERT INTO audit SELECT NULL, i, '', '', '', '' FROM n");
  sql(folder.file(),
      up_to(kDiagnosesPerRunMax + 50) +
          "INSERT INTO diagnoses SELECT 'a', 0, 'd' || i, '', i, i, '{}', 'open', '', NULL, 0 FROM n");
  sql(folder.file(),
      up_to(kJobsMax) + "INSERT INTO jobs SELECT 'j' || i, 0, min(i, 3), i, i, i, 1, 1, '', '' FROM n");
  auto index = open_index(folder);
  for (TimeNs t = 1; t <= 300; ++t)
    must(index->add_findings(
        std::vector<FindingRow>{{"a", 0, "new " + std::to_string(t), 1'000'000 + t, "{}"}}));
  const auto findings = index->findings("a", SIZE_MAX);
  BOOST_TEST(findings->size() < kFindingsPerRunMax + 256);
  BOOST_TEST(findings->size() >= kFindingsPerRunMax);
  BOOST_TEST(findings->front().time_ns == 1'000'300);
  BOOST_TEST(index->verdicts({"", {}, kNoTime, SIZE_MAX})->size() == kDiagnosesPerRunMax);
  BOOST_TEST(index->audits(SIZE_MAX)->size() <= kAuditMax);
  BOOST_TEST(index->jobs(SIZE_MAX)->size() == kJobsMax);
  BOOST_TEST(index->job("j0")->has_value());  // it is running
  BOOST_TEST(!index->job("j1")->has_value());
  BOOST_TEST(index->job("j2")->has_value());
}

BOOST_AUTO_TEST_CASE(a_job_that_comes_again_and_again_keeps_its_last_runs_and_no_other_job_goes) {
  Folder folder;
  auto index = open_index(folder);
  must(index->upsert_job(job_row("other", 1)));
  for (uint32_t run = 0; run < 600; ++run) must(index->upsert_job(job_row("a", 10 + run, run)));
  BOOST_TEST(index->jobs(SIZE_MAX)->size() < kRunsPerJobMax + 257);
  BOOST_TEST(index->job("other")->has_value());
  BOOST_TEST(index->job("a", 599)->has_value());
  BOOST_TEST(!index->job("a", 0)->has_value());
}

BOOST_AUTO_TEST_CASE(a_damaged_index_is_moved_aside_and_a_new_one_begun) {
  const struct {
    std::streamoff at;
    std::string bytes;
  } damages[] = {
      {0, std::string(100, 'x')}, {4096, std::string(3 * 4096, '\xa5')}, {100, std::string(8, '\xff')}};
  for (const auto& damage : damages) {
    Folder folder;
    for (int round = 1; round <= 2; ++round) {
      {
        auto index = open_index(folder);
        must(index->upsert_job(job_row("a")));
      }
      overwrite(folder.file(), damage.at, damage.bytes);
      auto index = open_index(folder);
      BOOST_TEST(index->moved_aside() == folder.file() + ".damaged-" + std::to_string(round));
      BOOST_TEST(std::filesystem::exists(index->moved_aside()));
      BOOST_TEST(index->jobs()->empty());
      must(index->upsert_job(job_row("b")));
    }
  }
}

BOOST_AUTO_TEST_CASE(an_index_cut_short_is_opened_or_moved_aside) {
  Folder whole;
  {
    auto index = open_index(whole);
    for (int i = 0; i < 50; ++i) must(index->upsert_job(job_row("job-" + std::to_string(i))));
  }
  const auto size = std::filesystem::file_size(whole.file());
  for (uintmax_t cut = 0; cut < size; cut += 1500) {
    Folder folder;
    std::filesystem::copy_file(whole.file(), folder.file());
    std::filesystem::resize_file(folder.file(), cut);
    must(open_index(folder)->upsert_job(job_row("a")));
  }
}

BOOST_AUTO_TEST_CASE(a_newer_index_is_refused_and_left_alone) {
  Folder folder;
  open_index(folder);
  sql(folder.file(), "PRAGMA user_version=1000; CREATE TABLE future (x)");
  const auto index = Index::open(folder.file());
  BOOST_REQUIRE(!index.has_value());
  BOOST_TEST(index.error().text.find("newer") != std::string::npos);
  sql(folder.file(), "SELECT x FROM future");
}

BOOST_AUTO_TEST_CASE(lists_of_jobs_read_the_rows_that_may_lead_and_the_judged_ones) {
  Folder folder;
  auto index = open_index(folder);
  const auto put = [&](const std::string& job, const std::string& id, TimeNs first, bool leads,
                       VerdictState state = VerdictState::kOpen) {
    must(index->upsert_job(job_row(job)));
    Verdict one = verdict(job, id, first);
    one.leads = leads;
    one.state = state;
    must(index->put_verdict(one));
  };
  put("a", "d1", 10, true);
  put("a", "d2", 20, false);
  put("b", "d1", 30, true);
  put("b", "d2", 40, true, VerdictState::kWithdrawn);
  put("c", "d1", 50, false);
  const auto leading = [&](size_t limit = 100) {
    std::string out;
    const auto rows = index->leading(limit);
    for (const Leading& row : *rows) out += row.job + std::to_string(row.first_ns) + " ";
    return out;
  };
  BOOST_TEST(leading() == "b30 a10 ");
  BOOST_TEST(leading(1) == "b30 ");
  BOOST_TEST(index->leading_of("a", 0)->size() == 1u);
  BOOST_TEST(index->leading_of("a", 0)->at(0).id() == "d1");
  BOOST_TEST(index->leading_of("c", 0)->empty());
  BOOST_TEST(index->judged_runs()->empty());
  BOOST_TEST(index->drain_changed().runs.size() == 3u);
  must(index->judge({"c", "d1", {}, true, "alice", 60}));
  must(index->judge({"a", "d1", 0, false, "alice", 60}));
  BOOST_TEST(leading() == "c50 b30 ");
  BOOST_TEST((index->judged_runs().value() == std::vector<JobRunId>{{"a", 0}, {"c", 0}}));
  const auto since = [&](TimeNs time) {
    const auto runs = index->changed_runs(time);
    return std::set<JobRunId>(runs->begin(), runs->end());
  };
  BOOST_TEST((since(60) == std::set<JobRunId>{{"a", 0}, {"c", 0}}));
  BOOST_TEST((since(30) == std::set<JobRunId>{{"a", 0}, {"b", 0}, {"c", 0}}));
  const Changed changed = index->drain_changed();
  BOOST_TEST((!changed.all && changed.runs == std::set<JobRunId>{{"a", 0}, {"c", 0}}));
  BOOST_TEST(index->drain_changed().runs.empty());
  for (int i = 0; i < 2000; ++i) put("j" + std::to_string(i), "d1", i, false);
  BOOST_TEST(index->drain_changed().all);
}

namespace {

// For the tables of each version, by its number: rows in them.
std::vector<std::string> rows_by_version() {
  std::vector<std::string> rows = {
      "",  // version 0: an empty file
      R"(INSERT INTO jobs VALUES ('a', 1, 10, 15, 20, '["node-1"]', 'lost', 3);
         INSERT INTO reports VALUES ('a', '{}');
         INSERT INTO diagnoses VALUES ('a', 'd1', 1, 2, '{"rule":"x","detector":null,"symptom":"crash"}',
           'confirmed', 'alice', 9);
         INSERT INTO diagnoses VALUES ('a', 'd2', 1, 2, '{"verdict":true,"rule":null,"detector":"silence","symptom":"hang"}',
           'open', '', NULL);
         INSERT INTO diagnoses VALUES ('a', 'd3', 1, 2, 'no json', 'open', '', NULL);
         INSERT INTO findings VALUES ('a', 5, '{}');
         INSERT INTO findings VALUES ('a', 6, '{}');
         INSERT INTO audit VALUES (NULL, 9, 'alice', 'confirm', 'a/d1', '');)",
      R"(INSERT INTO jobs VALUES ('a', 3, 1, 10, 15, 20, 2, 7, 'lost');
         INSERT INTO reports VALUES ('a', 3, '{}');
         INSERT INTO diagnoses VALUES ('a', 3, 'd1', 'rule:x', 1, 2, '{}', 'confirmed', 'alice', 9);
         INSERT INTO diagnoses VALUES ('a', 3, 'd2', 'silence:hang', 1, 2, '{"verdict":true}', 'open', '', NULL);
         INSERT INTO diagnoses VALUES ('a', 3, 'd3', '', 1, 2, 'no json', 'open', '', NULL);
         INSERT INTO findings VALUES ('a', 3, 'f1', 5, '{}'), ('a', 3, 'f2', 6, '{}');
         INSERT INTO audit VALUES (NULL, 9, 'alice', 'confirm', 'a/d1', 'rule:x');)",
      R"(INSERT INTO jobs VALUES ('a', 3, 1, 10, 15, 20, 2, 7, 'lost');
         INSERT INTO reports VALUES ('a', 3, '{}');
         INSERT INTO diagnoses VALUES ('a', 3, 'd1', 'rule:x', 1, 2, '{}', 'confirmed', 'alice', 9);
         INSERT INTO diagnoses VALUES ('a', 3, 'd2', 'silence:hang', 1, 2, '{"verdict":true}', 'open', '', NULL);
         INSERT INTO diagnoses VALUES ('a', 3, 'd3', '', 1, 2, 'no json', 'open', '', NULL);
         INSERT INTO findings VALUES ('a', 3, 'f1', 5, '{}'), ('a', 3, 'f2', 6, '{}');
         INSERT INTO audit VALUES (NULL, 9, 'alice', 'confirm', 'a/d1', 'rule:x');
         INSERT INTO device_faults VALUES ('GPU-1', 'node-1', 'a', 3, 'd1', 120, 9);
         INSERT INTO pool VALUES ('', 'who taught this?');)",
      R"(INSERT INTO jobs VALUES ('a', 3, 1, 10, 15, 20, 2, 7, 'lost');
         INSERT INTO reports VALUES ('a', 3, '{}');
         INSERT INTO diagnoses VALUES ('a', 3, 'd1', 'rule:x', 1, 2, '{}', 'confirmed', 'alice', 9);
         INSERT INTO diagnoses VALUES ('a', 3, 'd2', 'silence:hang', 1, 2, '{"verdict":true}', 'open', '', NULL);
         INSERT INTO diagnoses VALUES ('a', 3, 'd3', '', 1, 2, 'no json', 'open', '', NULL);
         INSERT INTO findings VALUES ('a', 3, 'f1', 5, '{}'), ('a', 3, 'f2', 6, '{}');
         INSERT INTO audit VALUES (NULL, 9, 'alice', 'confirm', 'a/d1', 'rule:x');)",
  };
  rows.push_back(rows.back());  // version 5 has further indexes alone
  std::string newest = rows.back();
  newest.replace(newest.find("'lost')"), 7, "'lost', 'GPU lost on node-1')");
  rows.push_back(newest);
  for (const auto& [row, leads] : {std::pair("'alice', 9)", ", 1"),
                                   {"true}', 'open', '', NULL)", ", 1"},
                                   {"'no json', 'open', '', NULL)", ", 0"}})
    newest.insert(newest.find(row) + std::string_view(row).size() - 1, leads);
  rows.push_back(newest);
  rows.push_back(newest);             // version 8 has a further table alone
  rows.push_back(std::move(newest));  // version 9 has further columns with defaults
  return rows;
}

}  // namespace

// Each step begins with the tables of the previous version, with a row in them.
BOOST_AUTO_TEST_CASE(each_earlier_version_is_brought_up_to_date) {
  const std::vector<std::string> rows = rows_by_version();
  BOOST_REQUIRE(rows.size() == kSchemaSteps.size() + 1);
  for (size_t version = 0; version < rows.size(); ++version) {
    Folder folder;
    std::string text;
    for (size_t step = 0; step < version; ++step) text += kSchemaSteps[step];
    sql(folder.file(), text + rows[version] + "PRAGMA user_version=" + std::to_string(version));
    auto index = open_index(folder);
    BOOST_TEST(index->moved_aside().empty());
    if (version > 0) {
      const auto job = index->job("a");
      BOOST_REQUIRE((job && *job));
      BOOST_TEST(((*job)->run == 3 && (*job)->state == JobState::kEndedWell && (*job)->verdict == "lost"));
      BOOST_TEST(index->report("a", 3).error().text.find("no report") == 0u);
      std::string reported;
      const auto diagnoses = index->verdicts({"a", 3});
      for (const auto& d : *diagnoses)
        reported += fmt::format("{}={} {}{} ", d.id(), d.kind, to_string(d.state), d.judged_by);
      BOOST_TEST(reported == "d3= open d2=silence:hang open d1=rule:x confirmedalice ");
      BOOST_TEST(index->leading_of("a", 3)->size() == 2u, "version " << version << " has what leads");
      BOOST_TEST(index->findings("a")->at(0).time_ns == 6);
      BOOST_TEST((index->judged()->at("rule:x").right == 1));
    }
    must(index->upsert_job(job_row("b")));
    must(index->put_verdict(verdict("b", "d1", 1)));
    // Rows of a run are deleted with it, as before.
    sql(folder.file(), "PRAGMA foreign_keys=ON; DELETE FROM jobs");
    BOOST_TEST((index->verdicts({})->empty() && index->findings("a")->empty()));
    BOOST_TEST(!index->report("a", 3)->has_value());
  }
}

BOOST_AUTO_TEST_CASE(a_row_in_a_form_of_another_version_is_counted_until_it_is_written_again) {
  Folder folder;
  auto index = open_index(folder);
  const auto put = [&] {
    must(index->upsert_job(job_row("a")));
    must(index->put_report("a", 0, report_of("x")));
    must(index->put_verdict(verdict("a", "d1", 1)));
    must(index->put_verdict(verdict("a", "d2", 2)));
  };
  put();
  sql(folder.file(), "UPDATE diagnoses SET json = 'no json' WHERE id = 'd1'; UPDATE reports SET json = '{}'");
  BOOST_TEST(index->unreadable() == 0u);
  for (int i = 0; i < 2; ++i) {  // a row counts once, however often it is read
    BOOST_TEST(index->verdicts({})->size() == 2u);
    BOOST_TEST(!index->report("a", 0).has_value());
    BOOST_TEST(index->unreadable() == 2u);
  }
  put();
  BOOST_TEST(index->unreadable() == 0u);
}

BOOST_AUTO_TEST_CASE(what_spoke_against_a_device_outlives_its_jobs_and_the_daemon) {
  Folder folder;
  const auto reported = [&](Index& index, const std::string& job = "", uint32_t run = 0) {
    std::string out;
    const auto faults = index.device_faults(job, run);
    for (const DeviceFault& f : *faults)
      out += f.device + "@" + f.host + "=" + f.job + "/" + std::to_string(f.step.value_or(-1)) + " ";
    return out;
  };
  {
    auto index = open_index(folder);
    must(index->upsert_job(job_row("b")));
    must(index->put_verdict(verdict("b", "d1", 1)));
    must(index->add_device_fault({"GPU-1", "node-1", "a", 0, "d1", 12, 10}));
    must(index->add_device_fault({"GPU-1", "node-2", "b", 0, "d1", {}, 20}));
    must(index->add_device_fault({"GPU-1", "node-2", "b", 0, "d1", 99, 25}));  // repeated
    must(index->add_device_fault({"GPU-2", "node-1", "c", 1, "d1", 5, 30}));
  }
  sql(folder.file(), "PRAGMA foreign_keys=OFF; DELETE FROM jobs WHERE id = 'a'");
  auto index = open_index(folder);
  BOOST_TEST(reported(*index) == "GPU-1@node-1=a/12 GPU-1@node-2=b/-1 GPU-2@node-1=c/5 ");
  BOOST_TEST(reported(*index, "b") == "GPU-1@node-1=a/12 GPU-1@node-2=b/-1 ");
  BOOST_TEST(reported(*index, "c", 0).empty());
  must(index->judge({"b", "d1", 0, false, "alice", 40}));
  BOOST_TEST(reported(*index, "b") == "GPU-1@node-1=a/12 ");
  must(index->clear_host("node-1", 10, "alice"));
  BOOST_TEST(reported(*index) == "GPU-2@node-1=c/5 ");
  must(index->remove_device_faults("c", 1, "d1"));
  BOOST_TEST(reported(*index).empty());
}

BOOST_AUTO_TEST_CASE(a_folder_that_is_not_there_is_one_sentence) {
  const auto index = Index::open("/nonexistent/index.db");
  BOOST_REQUIRE(!index.has_value());
  BOOST_TEST(index.error().text.find("/nonexistent/index.db") == 0u);
}

BOOST_AUTO_TEST_CASE(a_write_that_failed_leaves_the_index_usable) {
  Folder folder;
  auto index = open_index(folder);
  must(index->upsert_job(job_row("a")));
  // Beyond SQLite's limit.
  const Status failed = index->put_report("a", 0, report_of(std::string(300 << 20, 'x')));
  BOOST_REQUIRE(!failed.has_value());
  must(index->put_report("a", 0, report_of("small")));
  BOOST_TEST(index->report("a", 0)->value().headline == "small");
}
