#include "store/index_pools.h"

#include <fmt/format.h>

namespace culprit::store {
namespace {

using records::JobRunId;
using records::PoolLogRow;
using records::TaughtRow;
using Statement = Database::Statement;

constexpr size_t kPoolRowsAtOnce = 20;

// The row of the log says which member's run it was.
std::string why_of(const TaughtRow& row) {
  return row.member.empty() ? row.why : fmt::format("at {}: {}", row.member, row.why);
}

}  // namespace

Status IndexPools::teach(const TaughtRow& row, const std::vector<JobRunId>& removed) {
  const std::string why = why_of(row);
  return database_.in_transaction([&]() -> Status {
    Statement put(
        database_,
        "INSERT OR REPLACE INTO taught (job, run, owner, why, time_ns, forms, text, member, shared) "
        "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)");
    put.bind(row.job).bind_number(row.run).bind(row.owner).bind(row.why).bind_time(row.time_ns);
    put.bind_number(row.forms)
        .bind(row.text)
        .bind(row.member)
        .bind(static_cast<int64_t>(!row.member.empty()));
    if (const Status done = put.run(); !done) return done;
    Statement drop(database_, "DELETE FROM taught WHERE job = ? AND run = ?");
    for (const auto& [job, run] : removed)
      if (const Status done = drop.again().bind(job).bind_number(run).run(); !done) return done;
    Statement log(database_,
                  "INSERT INTO pool_log (time_ns, what, job, run, owner, why, forms, who) VALUES (?, "
                  "'learned', ?, ?, ?, ?, ?, '')");
    log.bind_time(row.time_ns).bind(row.job).bind_number(row.run).bind(row.owner).bind(why);
    return log.bind_number(row.forms).run();
  });
}

Result<bool> IndexPools::is_news(const TaughtRow& row) {
  Statement get(database_,
                "SELECT 1 FROM taught WHERE job = ?1 AND run = ?2 AND time_ns >= ?3 UNION ALL SELECT 1 FROM "
                "pool_log WHERE what = 'forgotten' AND job = ?1 AND run = ?2 AND time_ns >= ?3 LIMIT 1");
  const bool is_known = get.bind(row.job).bind_number(row.run).bind_time(row.time_ns).row();
  if (!get.good()) return tl::unexpected(get.status().error());
  return !is_known;
}

Status IndexPools::take_back(const TaughtRow& row) {
  return database_.in_transaction([&]() -> Status {
    Statement log(database_,
                  "INSERT INTO pool_log (time_ns, what, job, run, owner, why, forms, who, shared) VALUES (?, "
                  "'forgotten', ?, ?, ?, ?, ?, ?, 1)");
    log.bind_time(row.time_ns).bind(row.job).bind_number(row.run).bind(row.owner).bind(row.why);
    if (const Status done = log.bind_number(row.forms).bind(row.forgotten).run(); !done) return done;
    Statement drop(database_, "DELETE FROM taught WHERE job = ? AND run = ?");
    return drop.bind(row.job).bind_number(row.run).run();
  });
}

Result<std::vector<TaughtRow>> IndexPools::unshared(std::span<const TaughtRow> shared) {
  if (!shared.empty()) {
    const Status done = database_.in_transaction([&]() -> Status {
      Statement taught(database_, "UPDATE taught SET shared = 1 WHERE job = ? AND run = ? AND time_ns IS ?");
      Statement log(database_,
                    "UPDATE pool_log SET shared = 1 WHERE what = 'forgotten' AND job = ? AND run = ? AND "
                    "time_ns IS ?");
      for (const TaughtRow& row : shared) {
        Statement& put = row.forgotten.empty() ? taught : log;
        put.again().bind(row.job).bind_number(row.run).bind_time(row.time_ns);
        if (const Status marked = put.run(); !marked) return marked;
      }
      return {};
    });
    if (!done) return tl::unexpected(done.error());
  }
  Statement get(database_,
                "SELECT job, run, owner, why, time_ns, forms, text, '' FROM taught WHERE shared = 0 "
                "UNION ALL SELECT job, run, owner, why, time_ns, forms, '', who FROM pool_log WHERE "
                "what = 'forgotten' AND shared = 0 ORDER BY 5 LIMIT ?");
  get.bind(kPoolRowsAtOnce);
  return get.rows<TaughtRow>([](const auto& row) {
    return TaughtRow{row.text(0), static_cast<uint32_t>(row.integer(1)),
                     row.text(2), row.text(3),
                     row.time(4), row.number(5).value_or(0),
                     row.text(6), "",
                     row.text(7)};
  });
}

Result<std::vector<TaughtRow>> IndexPools::taught() {
  Statement get(database_,
                "SELECT job, run, owner, why, time_ns, forms, text, member FROM taught ORDER BY time_ns, "
                "rowid");
  return get.rows<TaughtRow>([](const auto& row) {
    return TaughtRow{row.text(0), static_cast<uint32_t>(row.integer(1)),
                     row.text(2), row.text(3),
                     row.time(4), row.number(5).value_or(0),
                     row.text(6), row.text(7)};
  });
}

Status IndexPools::forget(const std::string& job, TimeNs time_ns, const std::string& by) {
  return database_.in_transaction([&]() -> Status {
    Statement log(database_,
                  "INSERT INTO pool_log (time_ns, what, job, run, owner, why, forms, who) SELECT "
                  "max(?, coalesce(time_ns, 0) + 1), 'forgotten', job, run, owner, why, forms, ? FROM taught "
                  "WHERE job = ? ORDER BY run");
    if (const Status done = log.bind_time(time_ns).bind(by).bind(job).run(); !done) return done;
    if (database_.changes() == 0)
      return fail(ErrorCode::kNotFound, fmt::format("job {} taught nothing that counts", job));
    Statement drop(database_, "DELETE FROM taught WHERE job = ?");
    if (const Status done = drop.bind(job).run(); !done) return done;
    return audit_({time_ns, by, "forget", job, ""});
  });
}

Result<std::vector<PoolLogRow>> IndexPools::log(size_t limit) {
  Statement get(database_,
                "SELECT time_ns, what, job, run, owner, why, forms, who, what = 'learned' AND EXISTS (SELECT "
                "1 FROM taught t WHERE t.job = l.job AND t.run = l.run AND t.time_ns IS l.time_ns) FROM "
                "pool_log l ORDER BY row DESC LIMIT ?");
  get.bind(limit);
  return get.rows<PoolLogRow>([](const auto& row) {
    return PoolLogRow{row.time(0),
                      row.text(1),
                      row.text(2),
                      static_cast<uint32_t>(row.integer(3)),
                      row.text(4),
                      row.text(5),
                      row.number(6).value_or(0),
                      row.text(7),
                      row.integer(8) != 0};
  });
}

}  // namespace culprit::store
