// An app with one job, for tests of the API and of its clients.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "serve/api.h"

namespace culprit::serve::test {

class FakeReader final : public EvidenceReader {
 public:
  explicit FakeReader(std::vector<EvidenceChunk> chunks, bool fails = false)
      : chunks_(std::move(chunks)), fails_(fails) {}
  void next(std::function<void(Result<EvidenceChunk>)> answer) override {
    if (at_ == chunks_.size() && fails_) return answer(fail(ErrorCode::kIo, "the segment is damaged"));
    answer(chunks_[at_++]);
  }

 private:
  std::vector<EvidenceChunk> chunks_;
  bool fails_;
  size_t at_ = 0;
};

class FakeSource : public ApiSource {
 public:
  bool healthy = true;
  std::string asked;  // the last query
  std::string report_json = R"({"schema":"culprit.report/1","job":{"id":"j/1"},"verdict":null})";
  std::vector<EvidenceChunk> chunks;
  bool evidence_fails = false;
  std::optional<ErrorCode> capture_refusal;

  Health health() override { return {healthy, healthy ? "ok" : "the engine stands still since 40 s"}; }
  void metrics(std::function<void(std::string)> answer) override { answer("culprit_up 1\n"); }
  void job_metrics(KeepJob keep, std::function<void(std::string)> answer) override {
    std::string out;
    for (const char* job : {"j/1", "a", "b"})
      if (keep(job)) out += std::string("culprit_job_run{job_id=\"") + job + "\"} 0\n";
    answer(out);
  }
  void status(Answer answer) override { give("status", answer, R"({"role":"both","version":"0.1.0"})"); }
  void jobs(Answer answer) override {
    give("jobs", answer,
         R"({"items":[{"id":"j/1","state":"failed","first_ns":1763690000000000000,)"
         R"("last_ns":1763690060000000000,"hosts":2,"lines":1200,"verdict":"GPU \u001b[31m gone"}]})");
  }
  void now(const NowQuery& q, Answer answer) override {
    give("now " + std::to_string(q.limit) + " " + std::to_string(q.from) + " " + q.words + " " + q.state,
         answer, R"({"items":[]})");
  }
  void report(const ReportQuery& q, Answer answer) override {
    if (q.of.job != "j/1") return answer(fail(ErrorCode::kNotFound, "no job '" + q.of.job + "' is known"));
    give("report " + named(q.of) + (q.charts ? " with charts" : ""), answer, report_json);
  }
  void diagnoses(const DiagnosisQuery& q, Answer answer) override {
    give("diagnoses " + named({q.job.value_or("-"), q.run}) + " " + std::to_string(q.since_ns.value_or(-1)),
         answer, R"({"items":[]})");
  }
  void suspects(const std::optional<std::string>& job, Answer answer) override {
    give("suspects " + job.value_or("-"), answer, R"({"items":[]})");
  }
  void hosts(Answer answer) override {
    give("hosts", answer, R"({"items":[{"host":"node-1","state":"suspected","last_ns":null}]})");
  }
  void plugins(Answer answer) override { give("plugins", answer, R"({"items":[]})"); }
  void devices(Answer answer) override { give("devices", answer, R"({"items":[]})"); }
  void rules(Answer answer) override { give("rules", answer, R"({"items":[]})"); }
  void rule(const std::string& id, Answer answer) override { give("rule " + id, answer, R"({"id":"x"})"); }
  void sources(const std::optional<std::string>& job, Answer answer) override {
    give("sources " + job.value_or("-"), answer,
         R"({"items":[{"job":"j/1","host":"node-1","path":"/var/log/a.log","kind":"file","bytes":12,)"
         R"("lost_bytes":40,"lost_records":0,"first_ns":null,"last_ns":null,"ended":false}]})");
  }
  void evidence(const EvidenceQuery& q,
                std::function<void(Result<std::unique_ptr<EvidenceReader>>)> answer) override {
    asked = "evidence " + q.job + " " + q.host + " " + q.path + " " + std::to_string(q.from_byte) + " " +
            std::to_string(q.to_byte);
    if (q.path == "/none") return answer(fail(ErrorCode::kNotFound, "no such source"));
    answer(std::make_unique<FakeReader>(chunks, evidence_fails));
  }
  void about(Answer answer) override {
    give("about", answer, R"({"config":"role = \"both\"\n","versions":{"culpritd":"0.1.0"}})");
  }
  void pool(Answer answer) override { give("pool", answer, R"({"pool":null})"); }
  void pool_log(Answer answer) override { give("pool log", answer, R"({"items":[]})"); }
  void judge(const Judgement& j, const Actor& by, Answer answer) override {
    give((j.right ? "confirm " : "refute ") + named(j.of) + " " + j.id +
             (j.rule.empty() ? "" : " as " + j.rule) + " by " + by.name,
         answer, "{}");
  }
  void make_rule(const RuleRequest& r, const Actor& by, Answer answer) override {
    give((r.dry ? "show rule of " : "make rule of ") + named(r.of) + " " + r.id + " '" + r.title + "' " +
             r.component + " by " + by.name,
         answer, "{}");
  }
  void reload(const Actor& by, Answer answer) override { give("reload by " + by.name, answer, "{}"); }
  void clear(const std::string& host, const Actor& by, Answer answer) override {
    give("clear " + host + " by " + by.name, answer, "{}");
  }
  void capture(const std::string& job, uint32_t rounds, const Actor& by, Answer answer) override {
    if (capture_refusal) return answer(fail(*capture_refusal, "the job is captured already"));
    give("capture " + job + " " + std::to_string(rounds) + " by " + by.name, answer, R"({"sample":1})");
  }
  void alerts(const AlertQuery& q, Answer answer) override {
    give("alerts " + q.job.value_or("-") + " " + q.key.value_or("-"), answer, R"({"items":[]})");
  }
  void handle_alert(const AlertOrder& o, const Actor& by, Answer answer) override {
    constexpr const char* kDeeds[] = {"acknowledge ", "silence ", "repaired "};
    give(kDeeds[static_cast<int>(o.what)] + o.key + " for " + std::to_string(o.for_ns / kNsPerSecond) +
             " s by " + by.name,
         answer, "{}");
  }
  void forget_taught(const std::string& job, const Actor& by, Answer answer) override {
    give("forget " + job + " by " + by.name, answer, "{}");
  }

 private:
  static std::string named(const JobRun& of) {
    return of.job + (of.run ? " run " + std::to_string(*of.run) : "");
  }
  void give(const std::string& question, const Answer& answer, const std::string& json) {
    asked = question;
    answer(json);
  }
};

}  // namespace culprit::serve::test
