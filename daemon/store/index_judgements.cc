// People's judgements in the index. A cluster's members share them: each numbers the runs of a job by itself,
// so a run of another member is found by its time. The id of a diagnosis is a hash of its kind plus the
// number of its run (app/jobs/live_job.cc), so the id in one numbering gives that in another.
#include <fmt/format.h>

#include <charconv>
#include <functional>

#include "store/index.h"

namespace culprit::store {
namespace {

using records::JudgedRun;
using records::Judgement;
using records::SeenRun;
using Statement = Database::Statement;

constexpr size_t kUnsharedAtOnce = 200;

// "d0a1b2c3d" of run `from` in the numbering of run `to`; unchanged if it has another form.
std::string id_in_run(const std::string& id, uint32_t from, uint32_t to) {
  constexpr size_t kBytes = 9;
  uint32_t number = 0;
  if (id.size() != kBytes || id.front() != 'd') return id;
  const auto [stop, error] = std::from_chars(id.data() + 1, id.data() + kBytes, number, 16);
  if (error != std::errc() || stop != id.data() + kBytes) return id;
  return fmt::format("d{:08x}", number - from + to);
}

// The own run of the time of another member's, and if there are several the one of its number or the last.
Result<std::optional<uint32_t>> run_of_time(Database& database, const std::string& job, const SeenRun& seen) {
  Statement get(
      database,
      "SELECT run FROM jobs WHERE id = ?1 AND (first_ns IS NULL OR first_ns <= ?3) "
      "AND (state = 0 OR last_ns IS NULL OR last_ns >= ?2) ORDER BY run = ?4 DESC, run DESC LIMIT 1");
  const bool found = get.bind(job).bind(seen.first_ns).bind(seen.last_ns).bind_number(seen.run).row();
  if (!get.good()) return tl::unexpected(get.status().error());
  return found ? std::optional(static_cast<uint32_t>(get.integer(0))) : std::nullopt;
}

Status put_unshared(Database& database, const Judgement& j, const SeenRun& seen) {
  Statement put(database,
                "INSERT OR REPLACE INTO unshared (job, id, member, run, first_ns, last_ns, kind, is_right, "
                "who, time_ns, rule) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)");
  put.bind(j.job).bind(j.id).bind(seen.member).bind_number(seen.run).bind_time(seen.first_ns);
  put.bind_time(seen.last_ns).bind(seen.kind).bind(static_cast<int64_t>(j.right)).bind(j.by);
  if (const Status done = put.bind_time(j.time_ns).bind(j.rule).run(); !done) return done;
  Statement bound(database,
                  "DELETE FROM unshared WHERE rowid IN (SELECT rowid FROM unshared ORDER BY time_ns DESC, "
                  "rowid DESC LIMIT -1 OFFSET ?)");
  return bound.bind(kUnsharedMax).run();
}

// Whether the audit has this judgement, or a later one of the same diagnosis.
Result<bool> is_audited(Database& database, const std::string& subject, TimeNs time_ns) {
  Statement get(database,
                "SELECT 1 FROM audit WHERE subject = ? AND what IN ('confirm', 'refute') AND time_ns >= ?");
  const bool found = get.bind(subject).bind_time(time_ns).row();
  if (!get.good()) return tl::unexpected(get.status().error());
  return found;
}

using Audit = std::function<Status(const records::AuditRow&)>;

Status audit_judgement(const Audit& audit, const Judgement& j, const std::string& id,
                       const std::string& kind) {
  const std::string what = j.right ? "confirm" : "refute";
  if (!j.rule.empty()) {
    const Status done =
        audit({j.time_ns, j.by, what, fmt::format("{}/{}/{}", j.job, id, j.rule), "rule:" + j.rule});
    if (!done) return done;
  }
  return audit({j.time_ns, j.by, what, j.job + "/" + id, kind});
}

}  // namespace

Result<JudgedRun> Index::judge(const Judgement& j) {
  JudgedRun out{j.run, j.id, false};
  const Audit audit = [this](const records::AuditRow& row) { return write_audit(row); };
  const Status done = in_transaction([&]() -> Status {
    if (j.seen) {
      const auto run = run_of_time(database_, j.job, *j.seen);
      if (!run) return tl::unexpected(run.error());
      out.run = *run;
      if (*run) out.id = id_in_run(j.id, j.seen->run, **run);
    }
    Statement get(database_,
                  "SELECT d.rowid, d.kind, d.run, d.judged_by, d.judged_ns, j.first_ns, j.last_ns "
                  "FROM diagnoses d JOIN jobs j ON j.id = d.job AND j.run = d.run WHERE d.job = ?1 "
                  "AND d.id = ?2 AND (?3 IS NULL OR d.run = ?3) ORDER BY d.run DESC LIMIT 1");
    const bool is_here = !j.seen || out.run.has_value();
    const bool found = is_here && get.bind(j.job).bind(out.id).bind_number(out.run).row();
    if (is_here && !get.good()) return get.status();
    if (!found && !j.seen) {
      const std::string of_run = j.run ? fmt::format(", run {}", *j.run) : "";
      return fail(ErrorCode::kNotFound, fmt::format("job {}{}: no diagnosis {}", j.job, of_run, j.id));
    }
    if (found) {
      out.run = static_cast<uint32_t>(get.integer(2));
      const bool is_known = !get.text(3).empty() && get.time(4) >= j.time_ns;
      if (j.seen && is_known) return {};
      Statement put(database_,
                    "UPDATE diagnoses SET state = ?, judged_by = ?, judged_ns = ? WHERE rowid = ?");
      put.bind(j.right ? "confirmed" : "refuted").bind(j.by).bind_time(j.time_ns).bind(get.integer(0));
      if (const Status stored = put.run(); !stored) return stored;
      out.changed = true;
      note_changed(j.job, *out.run);  // each id belongs to one run
    } else {
      out.run.reset();
      out.id = j.id;
    }
    const std::string kind = found ? get.text(1) : j.seen->kind;
    if (j.share) {
      const SeenRun seen = j.seen ? *j.seen : SeenRun{"", *out.run, get.time(5), get.time(6), kind};
      if (const Status stored = put_unshared(database_, j, seen); !stored) return stored;
    }
    if (!j.seen) return audit_judgement(audit, j, out.id, kind);
    // It may have been counted under the id of the other member, before the diagnosis was here.
    if (out.id != j.id) {
      Statement move(database_,
                     "UPDATE audit SET subject = ?1 || '/' || ?3 WHERE subject = ?1 || '/' || ?2 AND "
                     "what IN ('confirm', 'refute') AND time_ns = ?4");
      if (const Status moved = move.bind(j.job).bind(j.id).bind(out.id).bind_time(j.time_ns).run(); !moved)
        return moved;
    }
    const auto audited = is_audited(database_, j.job + "/" + out.id, j.time_ns);
    if (!audited) return tl::unexpected(audited.error());
    return *audited ? Status() : audit_judgement(audit, j, out.id, kind);
  });
  if (!done) return tl::unexpected(done.error());
  return out;
}

Result<std::vector<Judgement>> Index::unshared(std::span<const Judgement> shared) {
  if (!shared.empty()) {
    const Status done = in_transaction([&]() -> Status {
      for (const Judgement& j : shared) {  // a later one of the same diagnosis stays
        Statement drop(database_,
                       "DELETE FROM unshared WHERE job = ? AND id = ? AND member = ? AND time_ns IS ?");
        drop.bind(j.job).bind(j.id).bind(j.seen ? j.seen->member : "").bind_time(j.time_ns);
        if (const Status dropped = drop.run(); !dropped) return dropped;
      }
      return {};
    });
    if (!done) return tl::unexpected(done.error());
  }
  Statement get(database_,
                "SELECT job, id, member, run, first_ns, last_ns, kind, is_right, who, time_ns, rule FROM "
                "unshared ORDER BY time_ns LIMIT ?");
  get.bind(kUnsharedAtOnce);
  return get.rows<Judgement>([](const auto& row) {
    Judgement out;
    out.job = row.text(0);
    out.id = row.text(1);
    out.seen =
        SeenRun{row.text(2), static_cast<uint32_t>(row.integer(3)), row.time(4), row.time(5), row.text(6)};
    out.right = row.integer(7) != 0;
    out.by = row.text(8);
    out.time_ns = row.time(9);
    out.rule = row.text(10);
    return out;
  });
}

}  // namespace culprit::store
