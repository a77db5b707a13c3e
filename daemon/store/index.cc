#include "store/index.h"

#include <fmt/format.h>

#include <array>
#include <nlohmann/json.hpp>

#include "store/index_schema.h"

namespace culprit::store {

namespace {

using Statement = Database::Statement;

// Bounds of rows are held once in so many writes: counting costs more than a row.
constexpr uint64_t kBoundsEvery = 256;
constexpr std::array<std::string_view, 4> kStates = {"running", "ended_well", "failed", "ended"};

std::string hosts_text(const std::vector<std::string>& hosts) {
  return nlohmann::json(hosts).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

std::vector<std::string> hosts_of(const std::string& text) {
  std::vector<std::string> hosts;
  const auto json = nlohmann::json::parse(text, nullptr, false);
  if (!json.is_array()) return hosts;
  for (const auto& host : json)
    if (host.is_string()) hosts.push_back(host.get<std::string>());
  return hosts;
}

}  // namespace

std::string_view name(JobState state) { return kStates[static_cast<size_t>(state) % kStates.size()]; }

// ---- the file

Index::Index(const std::string& path) : database_({.path = path, .steps = kSchemaSteps}) {}

Result<std::unique_ptr<Index>> Index::open(const std::string& path) {
  std::unique_ptr<Index> index(new Index(path));
  if (const Status ready = index->database_.open(); !ready) return tl::unexpected(ready.error());
  return index;
}

template <class Work>
Status Index::in_transaction(const Work& work) {
  const Status done = database_.in_transaction(work);
  if (done && ++writes_ % kBoundsEvery == 0) return hold_bounds();
  return done;
}

Status Index::hold_bounds() {
  return in_transaction([&]() -> Status {
    Statement jobs(database_,
                   "DELETE FROM jobs WHERE id IN (SELECT id FROM jobs ORDER BY state = 0 DESC, last_ns DESC "
                   "LIMIT -1 OFFSET ?)");
    Statement audit(database_, "DELETE FROM audit WHERE row <= (SELECT max(row) FROM audit) - ?");
    const auto per_job = [](const char* table) {
      return fmt::format(
          "DELETE FROM {0} WHERE rowid IN (SELECT rowid FROM (SELECT rowid, row_number() OVER (PARTITION BY "
          "job ORDER BY rowid DESC) AS n FROM {0} WHERE job IN (SELECT job FROM {0} GROUP BY job HAVING "
          "count(*) > ?1)) WHERE n > ?1)",
          table);
    };
    Statement findings(database_, per_job("findings")), diagnoses(database_, per_job("diagnoses"));
    jobs.bind(kJobsMax);
    audit.bind(kAuditMax);
    findings.bind(kFindingsPerJobMax);
    diagnoses.bind(kDiagnosesPerJobMax);
    for (Statement* statement : {&jobs, &audit, &findings, &diagnoses})
      if (const Status done = statement->run(); !done) return done;
    return {};
  });
}

// ---- jobs

Status Index::upsert_job(const JobRow& job) {
  const std::string hosts = hosts_text(job.hosts);
  return in_transaction([&] {
    Statement put(
        database_,
        "INSERT INTO jobs (id, state, first_ns, last_ns, ended_ns, hosts, verdict, run) VALUES "
        "(?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (id) DO UPDATE SET state = excluded.state, first_ns = "
        "excluded.first_ns, last_ns = excluded.last_ns, ended_ns = excluded.ended_ns, hosts = "
        "excluded.hosts, verdict = excluded.verdict, run = excluded.run");
    put.bind(job.id).bind(static_cast<int64_t>(job.state)).bind_time(job.first_ns).bind_time(job.last_ns);
    put.bind_time(job.ended_ns).bind(hosts).bind(job.verdict).bind(static_cast<int64_t>(job.run));
    return put.run();
  });
}

constexpr std::string_view kJobColumns =
    "SELECT id, state, first_ns, last_ns, ended_ns, hosts, verdict, run FROM jobs ";

static JobRow job_of(const auto& row) {
  JobRow job;
  job.id = row.text(0);
  job.state = static_cast<JobState>(row.integer(1) & 3);
  job.first_ns = row.time(2);
  job.last_ns = row.time(3);
  job.ended_ns = row.time(4);
  job.hosts = hosts_of(row.text(5));
  job.verdict = row.text(6);
  job.run = static_cast<uint32_t>(row.integer(7));
  return job;
}

Result<std::optional<JobRow>> Index::job(const std::string& id) {
  Statement get(database_, fmt::format("{}WHERE id = ?", kJobColumns));
  std::optional<JobRow> found;
  if (get.bind(id).row()) found = job_of(get);
  if (!get.good()) return tl::unexpected(get.status().error());
  return found;
}

Result<std::vector<JobRow>> Index::jobs(size_t limit) {
  Statement get(database_, fmt::format("{}ORDER BY first_ns DESC, id LIMIT ?", kJobColumns));
  get.bind(limit);
  return get.rows<JobRow>([](const auto& row) { return job_of(row); });
}

Status Index::put_report(const std::string& job, std::string_view json) {
  return in_transaction([&] {
    Statement put(database_, "INSERT OR REPLACE INTO reports (job, json) VALUES (?, ?)");
    return put.bind(job).bind(json).run();
  });
}

Result<std::optional<std::string>> Index::report(const std::string& job) {
  return Statement(database_, "SELECT json FROM reports WHERE job = ?").bind(job).one_text();
}

// ---- diagnoses and findings

Status Index::put_diagnosis(const DiagnosisRow& d) {
  return in_transaction([&] {
    Statement put(database_,
                  "INSERT INTO diagnoses (job, id, first_ns, last_ns, json, state) VALUES (?, ?, ?, ?, ?, ?) "
                  "ON CONFLICT (job, id) DO UPDATE SET first_ns = excluded.first_ns, last_ns = "
                  "excluded.last_ns, json = excluded.json, state = CASE WHEN confirmed_by = '' THEN "
                  "excluded.state ELSE state END");
    put.bind(d.job).bind(d.id).bind_time(d.first_ns).bind_time(d.last_ns).bind(d.json).bind(d.state);
    return put.run();
  });
}

Result<std::vector<DiagnosisRow>> Index::diagnoses(const DiagnosisQuery& query) {
  Statement get(database_,
                "SELECT job, id, first_ns, last_ns, json, state, confirmed_by, confirmed_ns FROM diagnoses "
                "WHERE (?1 = '' OR job = ?1) AND (?2 IS NULL OR last_ns >= ?2) ORDER BY first_ns DESC, rowid "
                "DESC LIMIT ?3");
  get.bind(query.job).bind_time(query.since_ns).bind(query.limit);
  return get.rows<DiagnosisRow>([](const auto& row) {
    return DiagnosisRow{row.text(0), row.text(1), row.time(2), row.time(3),
                        row.text(4), row.text(5), row.text(6), row.time(7)};
  });
}

Status Index::confirm(const Confirmation& c) {
  return in_transaction([&]() -> Status {
    Statement put(
        database_,
        "UPDATE diagnoses SET state = 'confirmed', confirmed_by = ?, confirmed_ns = ? WHERE job = ? "
        "AND id = ?");
    put.bind(c.by).bind_time(c.time_ns).bind(c.job).bind(c.id);
    if (const Status done = put.run(); !done) return done;
    if (database_.changes() == 0)
      return fail(ErrorCode::kNotFound, fmt::format("job {}: no diagnosis {}", c.job, c.id));
    return write_audit({c.time_ns, c.by, "confirm", c.job + "/" + c.id, ""});
  });
}

Status Index::add_finding(const FindingRow& finding) {
  return in_transaction([&] {
    Statement put(database_, "INSERT INTO findings (job, time_ns, json) VALUES (?, ?, ?)");
    return put.bind(finding.job).bind_time(finding.time_ns).bind(finding.json).run();
  });
}

Result<std::vector<FindingRow>> Index::findings(const std::string& job, size_t limit) {
  Statement get(database_,
                "SELECT job, time_ns, json FROM findings WHERE job = ? ORDER BY rowid DESC LIMIT ?");
  get.bind(job).bind(limit);
  return get.rows<FindingRow>([](const auto& row) {
    return FindingRow{row.text(0), row.time(1), row.text(2)};
  });
}

// ---- people

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

// ---- pool and meta

Status Index::save_pool(const std::string& kind, std::string_view text) {
  return in_transaction([&] {
    return Statement(database_, "INSERT OR REPLACE INTO pool (kind, text) VALUES (?, ?)")
        .bind(kind)
        .bind(text)
        .run();
  });
}

Result<std::optional<std::string>> Index::load_pool(const std::string& kind) {
  return Statement(database_, "SELECT text FROM pool WHERE kind = ?").bind(kind).one_text();
}

}  // namespace culprit::store
