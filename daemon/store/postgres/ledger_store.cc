#include "store/postgres/ledger_store.h"

#include "model/json_writer.h"
#include "store/postgres/columns.h"

namespace culprit::store::postgres {
namespace {

constexpr TimeNs kWithin = 5 * kNsPerSecond;

constexpr const char* kPutLines =
    "INSERT INTO culprit.ledger AS l (kind, key, job, stamp, member, at, line) "
    "SELECT kind, key, job, stamp, $2, clock_timestamp(), line FROM jsonb_to_recordset($1::jsonb) "
    "AS given(kind text, key text, job text, stamp bigint, line text) "
    "ON CONFLICT (kind, key) DO UPDATE SET job = excluded.job, stamp = excluded.stamp, "
    "member = excluded.member, at = excluded.at, line = excluded.line WHERE l.stamp <= excluded.stamp";

// A transaction that began earlier may become visible later, so half a minute is read again.
constexpr const char* kNews =
    "SELECT kind, key, job, stamp, line, member, at::text FROM culprit.ledger "
    "WHERE kind IN ('isolate', 'machine', 'reset') AND member <> $1 AND at > "
    "coalesce(nullif($2, '')::timestamptz - interval '30 seconds', clock_timestamp() - interval '7 days') "
    "ORDER BY at LIMIT $3::integer";

constexpr const char* kOfJobs =
    "SELECT kind, key, job, stamp, line, member, at::text FROM culprit.ledger "
    "WHERE job <> '' AND job IN (SELECT jsonb_array_elements_text($1::jsonb)) "
    "AND at > clock_timestamp() - interval '1 day' ORDER BY at LIMIT $2::integer";

constexpr const char* kPruneLedger =
    "DELETE FROM culprit.ledger WHERE at < clock_timestamp() - interval '400 days'";

std::vector<LedgerLine> lines_of(Rows rows) {
  std::vector<LedgerLine> out;
  for (auto& row : rows) {
    if (row.size() != 7) continue;
    int64_t stamp = 0;
    (void)read_number(row[3], stamp);
    out.push_back({std::move(row[0]), std::move(row[1]), std::move(row[2]), stamp, std::move(row[4]),
                   std::move(row[5])});
  }
  return out;
}

}  // namespace

Result<Rows> LedgerStore::run(const char* sql, std::vector<std::string> values) {
  return session_.run(sql, values, kWithin);
}

Status LedgerStore::put(const std::vector<LedgerLine>& lines) {
  if (lines.empty()) return {};
  JsonWriter w;
  w.array(lines, [&](const LedgerLine& one) {
    w.object([&] {
      w.field("kind", one.kind);
      w.field("key", sound_text(one.key));
      w.field("job", sound_text(one.job));
      w.field("stamp", one.stamp);
      w.field("line", sound_text(one.line));
    });
  });
  const auto done = run(kPutLines, {w.finish(), member_});
  return done ? Status() : tl::unexpected(done.error());
}

Result<std::vector<LedgerLine>> LedgerStore::news() {
  auto rows = run(kNews, {member_, read_until_, std::to_string(kReadLines)});
  if (!rows) return tl::unexpected(rows.error());
  if (!rows->empty() && rows->back().size() == 7) read_until_ = rows->back()[6];
  return lines_of(std::move(*rows));
}

Result<std::vector<LedgerLine>> LedgerStore::of_jobs(const std::vector<std::string>& jobs) {
  JsonWriter w;
  w.array(jobs, [&](const std::string& job) { w.write(sound_text(job)); });
  auto rows = run(kOfJobs, {w.finish(), std::to_string(kReadLines)});
  if (!rows) return tl::unexpected(rows.error());
  return lines_of(std::move(*rows));
}

Status LedgerStore::prune() {
  const auto done = run(kPruneLedger, {});
  return done ? Status() : tl::unexpected(done.error());
}

}  // namespace culprit::store::postgres
