#include "store/index.h"

#include <fmt/format.h>

#include "base/check.h"
#include "model/report_json.h"
#include "model/report_json_read.h"
#include "store/index_schema.h"

namespace culprit::store {

namespace {

using namespace records;
using Statement = Database::Statement;

}  // namespace

// ---- the file

Index::Index(const std::string& path)
    : database_({.path = path, .steps = kSchemaSteps}),
      pools_(database_, [this](const AuditRow& row) { return write_audit(row); }) {}

Result<std::unique_ptr<Index>> Index::open(const std::string& path) {
  std::unique_ptr<Index> index(new Index(path));
  if (const Status ready = index->database_.open(); !ready) return tl::unexpected(ready.error());
  return index;
}

Status Index::hold_bounds() {
  return in_transaction([&]() -> Status {
    // Keeps the newest runs of each job. Above the limit over all jobs, keeps running jobs and the newest
    // ended ones.
    Statement runs(database_,
                   "DELETE FROM jobs WHERE rowid IN (SELECT rowid FROM (SELECT rowid, row_number() OVER "
                   "(PARTITION BY id ORDER BY run DESC) AS n FROM jobs) WHERE n > ?)");
    Statement jobs(database_,
                   "DELETE FROM jobs WHERE rowid IN (SELECT rowid FROM jobs ORDER BY state = 0 DESC, last_ns "
                   "DESC LIMIT -1 OFFSET ?)");
    Statement audit(database_, "DELETE FROM audit WHERE row <= (SELECT max(row) FROM audit) - ?");
    Statement pool(database_, "DELETE FROM pool_log WHERE row <= (SELECT max(row) FROM pool_log) - ?");
    const auto per_run = [](const char* table) {
      return fmt::format(
          "DELETE FROM {0} WHERE rowid IN (SELECT rowid FROM (SELECT rowid, row_number() OVER (PARTITION BY "
          "job, run ORDER BY rowid DESC) AS n FROM {0} WHERE (job, run) IN (SELECT job, run FROM {0} GROUP "
          "BY job, run HAVING count(*) > ?1)) WHERE n > ?1)",
          table);
    };
    Statement faults(database_,
                     "DELETE FROM device_faults WHERE rowid IN (SELECT rowid FROM device_faults ORDER BY "
                     "time_ns DESC LIMIT -1 OFFSET ?)");
    Statement findings(database_, per_run("findings")), diagnoses(database_, per_run("diagnoses"));
    runs.bind(kRunsPerJobMax);
    jobs.bind(kJobsMax);
    audit.bind(kAuditMax);
    pool.bind(kPoolLogMax);
    faults.bind(kDeviceFaultsMax);
    findings.bind(kFindingsPerRunMax);
    diagnoses.bind(kDiagnosesPerRunMax);
    for (Statement* statement : {&runs, &jobs, &audit, &pool, &faults, &findings, &diagnoses})
      if (const Status done = statement->run(); !done) return done;
    return {};
  });
}

// ---- jobs

Status Index::upsert_job(const JobRow& job) {
  return in_transaction([&] {
    Statement put(
        database_,
        "INSERT INTO jobs (id, run, state, first_ns, last_ns, ended_ns, hosts, lines, verdict, "
        "headline) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (id, run) DO UPDATE SET state = "
        "excluded.state, first_ns = "
        "excluded.first_ns, last_ns = excluded.last_ns, ended_ns = excluded.ended_ns, hosts = "
        "excluded.hosts, lines = excluded.lines, verdict = excluded.verdict, headline = excluded.headline");
    put.bind(job.id).bind_number(job.run).bind(static_cast<int64_t>(job.state)).bind_time(job.first_ns);
    put.bind_time(job.last_ns).bind_time(job.ended_ns).bind_number(job.hosts).bind_number(job.lines);
    return put.bind(job.verdict).bind(job.headline).run();
  });
}

constexpr std::string_view kJobColumns =
    "SELECT id, run, state, first_ns, last_ns, ended_ns, hosts, lines, verdict, headline FROM jobs ";

static JobRow job_of(const auto& row) {
  JobRow job;
  job.id = row.text(0);
  job.run = static_cast<uint32_t>(row.integer(1));
  job.state = static_cast<JobState>(row.integer(2) & 3);
  job.first_ns = row.time(3);
  job.last_ns = row.time(4);
  job.ended_ns = row.time(5);
  job.hosts = row.number(6);
  job.lines = row.number(7);
  job.verdict = row.text(8);
  job.headline = row.text(9);
  return job;
}

Result<std::optional<JobRow>> Index::job(const std::string& id, std::optional<uint32_t> run) {
  Statement get(
      database_,
      fmt::format("{}WHERE id = ?1 AND (?2 IS NULL OR run = ?2) ORDER BY run DESC LIMIT 1", kJobColumns));
  std::optional<JobRow> found;
  if (get.bind(id).bind_number(run).row()) found = job_of(get);
  if (!get.good()) return tl::unexpected(get.status().error());
  return found;
}

Result<std::vector<JobRow>> Index::jobs(size_t limit) {
  Statement get(database_, fmt::format("{}ORDER BY first_ns DESC, id, run DESC LIMIT ?", kJobColumns));
  get.bind(limit);
  return get.rows<JobRow>([](const auto& row) { return job_of(row); });
}

Result<std::vector<JobRow>> Index::last_runs() {
  Statement get(database_,
                fmt::format("{}WHERE (id, run) IN (SELECT id, max(run) FROM jobs GROUP BY id) ORDER "
                            "BY first_ns DESC, id LIMIT ?",
                            kJobColumns));
  get.bind(kJobsMax);
  return get.rows<JobRow>([](const auto& row) { return job_of(row); });
}

Status Index::put_report(const std::string& job, uint32_t run, const Report& report) {
  const Status done = in_transaction([&] {
    Statement put(database_, "INSERT OR REPLACE INTO reports (job, run, json) VALUES (?, ?, ?)");
    return put.bind(job).bind_number(run).bind(to_json(report, Charts::kIncluded)).run();
  });
  if (done) note_read(true, job, run, "");
  return done;
}

Result<std::optional<Report>> Index::report(const std::string& job, uint32_t run) {
  Statement get(database_, "SELECT json FROM reports WHERE job = ? AND run = ?");
  const auto text = get.bind(job).bind_number(run).one_text();
  if (!text) return tl::unexpected(text.error());
  if (!*text) return std::nullopt;
  auto report = report_from_json(**text);
  note_read(report.has_value(), job, run, "");
  if (!report) return tl::unexpected(report.error());
  return std::move(*report);
}

// ---- diagnoses and findings

// As the index diagnoses_leading has it.
constexpr std::string_view kMayLead = "state = 'confirmed' OR (state = 'open' AND leads)";
constexpr std::string_view kDiagnosisColumns =
    "SELECT job, run, id, kind, first_ns, last_ns, json, state, judged_by, judged_ns FROM diagnoses ";

Status Index::put_verdict(const Verdict& v) {
  note_changed(v.job, v.run);
  const Status done = in_transaction([&] {
    Statement put(database_,
                  "INSERT INTO diagnoses (job, run, id, kind, first_ns, last_ns, json, state, leads) VALUES "
                  "(?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (job, run, id) DO UPDATE SET kind = "
                  "excluded.kind, last_ns = excluded.last_ns, json = excluded.json, leads = excluded.leads, "
                  "state = CASE WHEN judged_by = '' THEN excluded.state ELSE state END");
    put.bind(v.job).bind_number(v.run).bind(v.id()).bind(v.kind).bind_time(v.since_ns).bind_time(v.last_ns);
    return put.bind(to_json(v)).bind(to_string(v.state)).bind(static_cast<int64_t>(v.leads)).run();
  });
  if (done) note_read(true, v.job, v.run, v.id());
  return done;
}

// If this version cannot parse a row of another version, only its columns are returned, and the diagnosis
// does not lead.
template <class Row>
Verdict Index::verdict_of(const Row& row) {
  auto read = verdict_from_json(row.text(6));
  note_read(read.has_value(), row.text(0), static_cast<uint32_t>(row.integer(1)), row.text(2));
  Verdict out = std::move(read).value_or(Verdict());
  out.job = row.text(0);
  out.run = static_cast<uint32_t>(row.integer(1));
  out.diagnosis.id = row.text(2);
  out.kind = row.text(3);
  out.since_ns = row.time(4);
  out.last_ns = row.time(5);
  out.state = from_word<VerdictState>(row.text(7)).value_or(VerdictState::kOpen);
  out.judged_by = row.text(8);
  out.judged_ns = row.time(9);
  return out;
}

void Index::note_read(bool read, const std::string& job, uint32_t run, const std::string& id) {
  if (read && unreadable_.empty()) return;
  if (read)
    unreadable_.erase({job, run, id});
  else if (unreadable_.size() < kUnreadableMax)
    unreadable_.emplace(job, run, id);
  unreadable_count_ = unreadable_.size();
}

// The query has only the requested conditions: SQLite chooses an index when it prepares a statement.
Result<std::vector<Verdict>> Index::verdicts(const VerdictQuery& query) {
  std::string where;
  const auto ask = [&](bool asked, const char* condition) {
    if (asked) where += fmt::format("{} {} ", where.empty() ? "WHERE" : "AND", condition);
  };
  ask(!query.job.empty(), "job = ?1");
  ask(query.run.has_value(), "run = ?2");
  ask(query.since_ns != kNoTime, "last_ns >= ?3");
  ask(query.judged, "judged_by <> ''");
  // A job has few rows: SQLite finds them by their key and then sorts them.
  const char* by = query.job.empty() ? "first_ns" : "+first_ns";
  Statement get(database_,
                fmt::format("{}{}ORDER BY {} DESC, rowid DESC LIMIT ?4", kDiagnosisColumns, where, by));
  get.bind(query.job).bind_number(query.run).bind_time(query.since_ns).bind(query.limit);
  return get.rows<Verdict>([this](const auto& row) { return verdict_of(row); });
}

Result<std::vector<Leading>> Index::leading(size_t limit) {
  Statement get(database_, fmt::format("SELECT job, run, first_ns FROM diagnoses WHERE {} "
                                       "ORDER BY first_ns DESC LIMIT ?",
                                       kMayLead));
  get.bind(limit);
  return get.rows<Leading>([](const auto& row) {
    return Leading{row.text(0), static_cast<uint32_t>(row.integer(1)), row.time(2)};
  });
}

Result<std::vector<Verdict>> Index::leading_of(const std::string& job, uint32_t run) {
  Statement get(database_,
                fmt::format("{}WHERE job = ? AND run = ? AND ({}) ORDER BY +first_ns DESC, rowid DESC",
                            kDiagnosisColumns, kMayLead));
  get.bind(job).bind_number(run);
  return get.rows<Verdict>([this](const auto& row) { return verdict_of(row); });
}

static JobRunId run_of(const auto& row) {
  return JobRunId(row.text(0), static_cast<uint32_t>(row.integer(1)));
}

Result<std::vector<JobRunId>> Index::judged_runs() {
  Statement get(database_, "SELECT DISTINCT job, run FROM diagnoses WHERE judged_by <> ''");
  return get.rows<JobRunId>([](const auto& row) { return run_of(row); });
}

Result<std::vector<JobRunId>> Index::changed_runs(TimeNs since_ns) {
  Statement get(database_, "SELECT DISTINCT job, run FROM diagnoses WHERE last_ns >= ?1 OR judged_ns >= ?1");
  get.bind_time(since_ns);
  return get.rows<JobRunId>([](const auto& row) { return run_of(row); });
}

void Index::note_changed(const std::string& job, uint32_t run) {
  constexpr size_t kChanged = 1000;
  if (changed_.runs.size() >= kChanged) changed_ = {true, {}};
  if (!changed_.all) changed_.runs.emplace(job, run);
}

Result<std::map<std::string, Judged>> Index::judged() {
  // With a single max(), SQLite takes the other columns from the same row.
  Statement get(database_,
                "SELECT detail, what, who, max(row) FROM audit WHERE what IN ('confirm', 'refute') AND "
                "detail <> '' GROUP BY subject ORDER BY max(row)");
  std::map<std::string, Judged> out;
  while (get.row()) {
    Judged& one = out[get.text(0)];
    ++one.hits;
    one.right += get.text(1) == "confirm";
    one.by = get.text(2);
  }
  if (!get.good()) return tl::unexpected(get.status().error());
  Statement first(database_,
                  "SELECT detail, who, time_ns, min(row) FROM audit WHERE what = 'confirm' AND detail <> '' "
                  "GROUP BY detail");
  while (first.row()) {
    const auto one = out.find(first.text(0));
    if (one != out.end()) one->second.first_by = first.text(1), one->second.first_ns = first.time(2);
  }
  if (!first.good()) return tl::unexpected(first.status().error());
  return out;
}

Status Index::add_findings(std::span<const FindingRow> findings) {
  Status refused;
  const Status done = in_transaction([&]() -> Status {
    std::optional<Statement> put;
    for (const FindingRow& f : findings) {
      if (!put)
        put.emplace(database_,
                    "INSERT INTO findings (job, run, id, time_ns, json) VALUES (?, ?, ?, ?, ?) ON CONFLICT "
                    "(job, run, id) DO NOTHING");
      put->again().bind(f.job).bind_number(f.run).bind(f.id).bind_time(f.time_ns);
      const Status one = put->bind(f.json).run();
      writes_ += one ? 1 : 0;
      if (one) continue;
      if (one.error().code != ErrorCode::kInvalid) return one;
      refused = one;
      put.reset();  // a statement keeps its first error
    }
    return {};
  });
  return done ? refused : done;
}

Result<std::vector<FindingRow>> Index::findings(const std::string& job, size_t limit) {
  Statement get(database_,
                "SELECT job, run, id, time_ns, json FROM findings WHERE job = ? ORDER BY rowid DESC LIMIT ?");
  get.bind(job).bind(limit);
  return get.rows<FindingRow>([](const auto& row) {
    return FindingRow{row.text(0), static_cast<uint32_t>(row.integer(1)), row.text(2), row.time(3),
                      row.text(4)};
  });
}

// ---- judgements

Status Index::write_audit(const AuditRow& row) {
  Statement put(database_, "INSERT INTO audit (time_ns, who, what, subject, detail) VALUES (?, ?, ?, ?, ?)");
  return put.bind_time(row.time_ns).bind(row.who).bind(row.what).bind(row.subject).bind(row.detail).run();
}

Status Index::add_audit(const AuditRow& row) {
  return in_transaction([&] { return write_audit(row); });
}

Result<std::vector<AuditRow>> Index::audits(size_t limit) {
  Statement get(database_, "SELECT time_ns, who, what, subject, detail FROM audit ORDER BY row DESC LIMIT ?");
  get.bind(limit);
  return get.rows<AuditRow>([](const auto& row) {
    return AuditRow{row.time(0), row.text(1), row.text(2), row.text(3), row.text(4)};
  });
}

Status Index::clear_host(const std::string& host, TimeNs time_ns, const std::string& by) {
  return in_transaction([&]() -> Status {
    Statement put(database_, "INSERT OR REPLACE INTO cleared (host, time_ns) VALUES (?, ?)");
    if (const Status done = put.bind(host).bind_time(time_ns).run(); !done) return done;
    return write_audit({time_ns, by, "clear", host, ""});
  });
}

Result<std::map<std::string, TimeNs>> Index::cleared() {
  Statement get(database_, "SELECT host, time_ns FROM cleared");
  const auto rows = get.rows<std::pair<std::string, TimeNs>>(
      [](const auto& row) { return std::pair(row.text(0), row.time(1)); });
  if (!rows) return tl::unexpected(rows.error());
  return std::map<std::string, TimeNs>(rows->begin(), rows->end());
}

// ---- devices

Status Index::add_device_fault(const DeviceFault& f) {
  return in_transaction([&] {
    Statement put(
        database_,
        "INSERT INTO device_faults (device, host, job, run, diagnosis, step, time_ns) VALUES (?, ?, "
        "?, ?, ?, ?, ?) ON CONFLICT (device, job, run, diagnosis) DO NOTHING");
    put.bind(f.device).bind(f.host).bind(f.job).bind_number(f.run).bind(f.diagnosis);
    return put.bind_number(f.step).bind_time(f.time_ns).run();
  });
}

Status Index::remove_device_faults(const std::string& job, uint32_t run, const std::string& diagnosis) {
  return in_transaction([&] {
    Statement removed(database_, "DELETE FROM device_faults WHERE job = ? AND run = ? AND diagnosis = ?");
    return removed.bind(job).bind_number(run).bind(diagnosis).run();
  });
}

Result<std::vector<DeviceFault>> Index::device_faults(const std::string& job, uint32_t run) {
  Statement get(database_,
                "SELECT device, host, job, run, diagnosis, step, time_ns FROM device_faults f WHERE (?1 = '' "
                "OR device IN (SELECT device FROM device_faults WHERE job = ?1 AND run = ?2)) AND NOT EXISTS "
                "(SELECT 1 FROM cleared c WHERE c.host = f.host AND c.time_ns >= f.time_ns) AND NOT EXISTS "
                "(SELECT 1 FROM diagnoses d WHERE d.job = f.job AND d.run = f.run AND d.id = f.diagnosis AND "
                "d.state = 'refuted') ORDER BY time_ns, rowid LIMIT ?3");
  get.bind(job).bind_number(run).bind(kDeviceFaultsMax);
  return get.rows<DeviceFault>([](const auto& row) {
    const auto step = row.number(5);
    return DeviceFault{row.text(0), row.text(1),
                       row.text(2), static_cast<uint32_t>(row.integer(3)),
                       row.text(4), step ? std::optional(static_cast<int64_t>(*step)) : std::nullopt,
                       row.time(6)};
  });
}

}  // namespace culprit::store
