#include "store/postgres/ledger_store.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>

#include "base/hash.h"
#include "base/text.h"
#include "model/json_writer.h"
#include "store/postgres/columns.h"

namespace culprit::store::postgres {
namespace {

constexpr TimeNs kWithin = 5 * kNsPerSecond;

// $3: rows of other members stay.
constexpr const char* kPutLines =
    "INSERT INTO culprit.ledger AS l (kind, key, job, stamp, member, at, line) "
    "SELECT kind, key, job, stamp, $2, clock_timestamp(), line FROM jsonb_to_recordset($1::jsonb) "
    "AS given(kind text, key text, job text, stamp bigint, line text) "
    "ON CONFLICT (kind, key) DO UPDATE SET job = excluded.job, stamp = excluded.stamp, "
    "member = excluded.member, at = excluded.at, line = excluded.line WHERE l.stamp <= excluded.stamp "
    "AND (l.member = excluded.member OR NOT $3::boolean)";

// A transaction that began earlier may become visible later, so half a minute is read again.
constexpr const char* kNews =
    "SELECT kind, key, job, stamp, line, member, at::text FROM culprit.ledger "
    "WHERE kind IN ('isolate', 'machine', 'reset') AND member <> $1 AND at >= "
    "coalesce(nullif($2, '')::timestamptz - $4::interval, clock_timestamp() - interval '7 days') "
    "ORDER BY at LIMIT $3::integer";

constexpr const char* kOfJobs =
    "SELECT kind, key, job, stamp, line, member, at::text FROM culprit.ledger "
    "WHERE job <> '' AND job IN (SELECT jsonb_array_elements_text($1::jsonb)) "
    "AND at > clock_timestamp() - interval '30 days' ORDER BY at DESC LIMIT $2::integer";

constexpr const char* kPruneLedger =
    "DELETE FROM culprit.ledger WHERE at < clock_timestamp() - interval '400 days'";
constexpr const char* kPruneActions =
    "DELETE FROM culprit.action WHERE at < clock_timestamp() - interval '400 days'";

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

std::string ledger_key(const std::string& name) {
  constexpr size_t kKeyBytes = 500;
  const std::string out = sound_text(name);
  if (out == name && out.size() <= kKeyBytes) return out;
  return fmt::format("{} {}", shorten(out, kKeyBytes / 2), hex64(hash64(name)));
}

Result<Rows> LedgerStore::run(const char* sql, std::vector<std::string> values) {
  return session_.run(sql, values, kWithin);
}

Status LedgerStore::put(const std::vector<LedgerLine>& lines) {
  for (const bool again : {false, true}) {
    std::map<std::pair<std::string, std::string>, const LedgerLine*> those;
    for (const LedgerLine& one : lines) {
      if (one.again != again) continue;
      const LedgerLine*& at = those[{one.kind, ledger_key(one.key)}];
      if (at == nullptr || at->stamp <= one.stamp) at = &one;
    }
    if (those.empty()) continue;
    JsonWriter w;
    w.array(those, [&](const auto& one) {
      w.object([&] {
        w.field("kind", one.first.first);
        w.field("key", one.first.second);
        w.field("job", ledger_key(one.second->job));
        w.field("stamp", one.second->stamp);
        w.field("line", sound_text(one.second->line));
      });
    });
    if (const auto done = run(kPutLines, {w.finish(), member_, again ? "t" : "f"}); !done)
      return tl::unexpected(done.error());
  }
  return {};
}

Result<std::vector<LedgerLine>> LedgerStore::news() {
  auto rows = run(kNews, {member_, read_until_, std::to_string(kReadLines), behind_ ? "0" : "30 seconds"});
  if (!rows) return tl::unexpected(rows.error());
  behind_ = rows->size() == kReadLines;
  if (!rows->empty() && rows->back().size() == 7) read_until_ = rows->back()[6];
  return lines_of(std::move(*rows));
}

Result<std::vector<LedgerLine>> LedgerStore::of_jobs(const std::vector<std::string>& jobs) {
  JsonWriter w;
  w.array(jobs, [&](const std::string& job) { w.write(ledger_key(job)); });
  auto rows = run(kOfJobs, {w.finish(), std::to_string(kReadLines)});
  if (!rows) return tl::unexpected(rows.error());
  if (rows->size() < kReadLines || jobs.size() < 2) {
    std::ranges::reverse(*rows);
    return lines_of(std::move(*rows));
  }
  // Some are left out, so half of the jobs at a time.
  const auto middle = jobs.begin() + static_cast<ptrdiff_t>(jobs.size() / 2);
  auto out = of_jobs({jobs.begin(), middle});
  if (!out) return out;
  auto rest = of_jobs({middle, jobs.end()});
  if (!rest) return rest;
  std::ranges::move(*rest, std::back_inserter(*out));
  return out;
}

Status LedgerStore::prune() {
  for (const char* sql : {kPruneLedger, kPruneActions})
    if (const auto done = run(sql, {}); !done) return tl::unexpected(done.error());
  return {};
}

}  // namespace culprit::store::postgres
