#include "store/postgres/pool_store.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "base/hash.h"
#include "base/text.h"
#include "model/json_writer.h"
#include "store/postgres/columns.h"

namespace culprit::store::postgres {
namespace {

constexpr TimeNs kPoolLimit = 10 * kNsPerSecond;  // of a statement
constexpr TimeNs kPoolAheadMost = 24LL * 3600 * kNsPerSecond;
constexpr size_t kPoolJobBytes = 4096, kPoolNameBytes = 500;
constexpr size_t kPoolColumns = 9;

constexpr const char* kPutPool =
    "INSERT INTO culprit.pool AS p (key, job, run, owner, why, time_ns, forms, body, forgotten, member, at) "
    "SELECT key, decode(job, 'hex'), run, owner, why, time_ns, forms, decode(body, 'hex'), forgotten, $2, "
    "clock_timestamp() FROM jsonb_to_recordset($1::jsonb) AS given(key text, job text, run bigint, owner "
    "text, why text, time_ns bigint, forms bigint, body text, forgotten text) ON CONFLICT (key) DO UPDATE "
    "SET owner = excluded.owner, why = excluded.why, time_ns = excluded.time_ns, forms = excluded.forms, "
    "body = excluded.body, forgotten = excluded.forgotten, member = excluded.member, at = excluded.at "
    "WHERE p.time_ns < excluded.time_ns";

// A transaction that began earlier may become visible later, so half a minute is read again.
constexpr const char* kPoolNews =
    "SELECT encode(job, 'hex'), run, owner, why, time_ns, forms, encode(body, 'hex'), forgotten, member, "
    "at::text FROM culprit.pool WHERE at >= coalesce(nullif($1, '')::timestamptz - $2::interval, "
    "'-infinity') AND member <> $3 ORDER BY at LIMIT $4::integer";

constexpr const char* kPrunePool =
    "DELETE FROM culprit.pool WHERE at < clock_timestamp() - interval '400 days' OR key IN (SELECT key FROM "
    "(SELECT key, row_number() OVER (PARTITION BY owner ORDER BY time_ns DESC) AS n FROM culprit.pool WHERE "
    "forgotten = '') AS kept WHERE n > $1::integer)";

// Members number runs by themselves: two runs of one job may have one key, and then the later one counts.
std::string pool_key(const records::TaughtRow& row) {
  const std::string text = fmt::format("{}\n{}", row.run, row.job);
  return hex64(hash64(text)) + hex64(hash64(text + "\n"));
}

}  // namespace

std::optional<records::TaughtRow> taught_of(const std::vector<std::string>& row, TimeNs now) {
  if (row.size() < kPoolColumns) return std::nullopt;
  for (const size_t text : {2, 3, 7, 8})
    if (row[text].size() > kPoolNameBytes + 16) return std::nullopt;
  if (row[6].size() > 2 * PoolStore::kTextBytes) return std::nullopt;
  const auto job = from_hex(row[0]);
  auto body = from_hex(row[6]);
  records::TaughtRow out;
  if (!read_number(row[1], out.run) || !read_number(row[4], out.time_ns) || !read_number(row[5], out.forms))
    return std::nullopt;
  if (!job || job->empty() || job->size() > kPoolJobBytes || !body || row[2].empty() || row[8].empty())
    return std::nullopt;
  if (out.time_ns <= 0 || out.time_ns > now + kPoolAheadMost) return std::nullopt;
  if (body->empty() == row[7].empty()) return std::nullopt;  // it was taken back, or it has a text
  out.job = *job;
  out.owner = row[2];
  out.why = row[3];
  out.text = std::move(*body);
  out.member = row[8];
  if (!row[7].empty()) out.forgotten = fmt::format("{} at {}", row[7], row[8]);
  return out;
}

Status PoolStore::put(const std::vector<records::TaughtRow>& rows) {
  if (rows.empty()) return {};
  std::map<std::string, const records::TaughtRow*> latest;  // a statement changes a row once
  for (const records::TaughtRow& row : rows) {
    const records::TaughtRow*& at = latest[pool_key(row)];
    if (at == nullptr || at->time_ns <= row.time_ns) at = &row;
  }
  JsonWriter w;
  w.array(latest, [&](const auto& one) {
    const records::TaughtRow& row = *one.second;
    w.object([&] {
      w.field("key", one.first);
      w.field("job", to_hex(row.job));
      w.field("run", row.run);
      w.field("owner", sound_text(row.owner, kPoolNameBytes));
      w.field("why", sound_text(row.why, kPoolNameBytes));
      w.field("time_ns", row.time_ns);
      w.field("forms", static_cast<int64_t>(std::min<uint64_t>(row.forms, UINT32_MAX)));
      w.field("body", to_hex(row.text));
      w.field("forgotten", sound_text(row.forgotten, kPoolNameBytes));
    });
  });
  const std::string values[] = {w.finish(), member_};
  const auto done = session_.run(kPutPool, values, kPoolLimit);
  return done ? Status() : tl::unexpected(done.error());
}

Result<PoolStore::News> PoolStore::news(TimeNs now) {
  const std::string values[] = {read_until_, behind_ ? "0" : "30 seconds", member_,
                                std::to_string(kReadRows)};
  const auto rows = session_.run(kPoolNews, values, kPoolLimit);
  if (!rows) return tl::unexpected(rows.error());
  News out;
  for (const auto& row : *rows) {
    if (auto one = taught_of(row, now))
      out.rows.push_back(std::move(*one));
    else
      ++out.refused;
  }
  if (!rows->empty() && rows->back().size() > kPoolColumns) read_until_ = rows->back()[kPoolColumns];
  out.complete = rows->size() < kReadRows;
  behind_ = !out.complete;
  return out;
}

Status PoolStore::prune() {
  const std::string values[] = {std::to_string(kRunsOfOwner)};
  const auto done = session_.run(kPrunePool, values, kPoolLimit);
  return done ? Status() : tl::unexpected(done.error());
}

}  // namespace culprit::store::postgres
