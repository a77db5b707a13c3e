#include "store/postgres/segment_store.h"

#include <fmt/format.h>

#include <charconv>

namespace culprit::store::postgres {
namespace {

constexpr TimeNs kWithinNs = 5 * kNsPerSecond;

// What deletes the objects is the bucket's own rule.
constexpr const char* kPruneObjects =
    "WITH gone AS (DELETE FROM culprit.segment WHERE ctid = ANY (ARRAY(SELECT ctid FROM culprit.segment "
    "WHERE "
    "stored < clock_timestamp() - $1::interval ORDER BY stored LIMIT $2::bigint)) RETURNING 1) "
    "SELECT count(*) FROM gone";

constexpr const char* kTakeArchive =
    "INSERT INTO culprit.archive AS a (archive, member, epoch) VALUES ($1, $2, 1) "
    "ON CONFLICT (archive) DO UPDATE SET member = excluded.member, epoch = a.epoch + 1 "
    "RETURNING epoch, number, segment, at, coalesce((SELECT key FROM culprit.segment s "
    "WHERE s.archive = a.archive AND s.number = a.number), '')";

constexpr const char* kAddObject =
    "WITH mine AS (UPDATE culprit.archive SET number = $2::bigint, segment = $14::bigint, at = $15::bigint "
    "WHERE archive = $1 AND epoch = $3::bigint AND number = $2::bigint - 1 RETURNING archive) "
    "INSERT INTO culprit.segment (archive, number, epoch, member, key, bytes, index_at, sha256, "
    "index_sha256, "
    "hosts, jobs, from_segment, from_at, to_segment, to_at) "
    "SELECT archive, $2::bigint, $3::bigint, $4, $5, $6::bigint, $7::bigint, $8, $9, $10::bigint, "
    "$11::bigint, "
    "$12::bigint, $13::bigint, $14::bigint, $15::bigint FROM mine RETURNING number";

// After an answer that was lost.
constexpr const char* kHasObject =
    "SELECT 1 FROM culprit.segment WHERE archive = $1 AND number = $2::bigint AND epoch = $3::bigint";

constexpr const char* kFindObjects =
    "SELECT archive, number, epoch, member, key, bytes, index_at, sha256, index_sha256, hosts, jobs, "
    "from_segment, from_at, to_segment, to_at FROM culprit.segment "
    "WHERE hosts & $1::bigint <> 0 AND jobs & $2::bigint <> 0 ORDER BY stored DESC LIMIT $3::bigint";

uint64_t as_number(const std::string& text) {
  int64_t out = 0;
  std::from_chars(text.data(), text.data() + text.size(), out);
  return static_cast<uint64_t>(out);
}
std::string as_text(uint64_t number) { return fmt::format("{}", static_cast<int64_t>(number)); }

}  // namespace

Result<Rows> SegmentStore::run(const std::string& sql, const std::vector<std::string>& values) {
  auto rows = session_.run(sql, values, kWithinNs);
  if (!rows) return fail(rows.error().code, "the cluster's database: " + rows.error().text);
  return rows;
}

Result<ArchiveMark> SegmentStore::take(const std::string& archive, const std::string& member) {
  const auto rows = run(kTakeArchive, {archive, member});
  if (!rows) return tl::unexpected(rows.error());
  if (rows->size() != 1 || rows->front().size() != 5)
    return fail(ErrorCode::kIo, "the cluster's database: no row of the archive came back");
  const auto& row = rows->front();
  return ArchiveMark{as_number(row[0]), as_number(row[1]), as_number(row[2]), as_number(row[3]), row[4]};
}

Result<bool> SegmentStore::add(const ObjectRow& row) {
  const std::vector<std::string> values{row.archive,
                                        as_text(row.number),
                                        as_text(row.epoch),
                                        row.member,
                                        row.key,
                                        as_text(row.bytes),
                                        as_text(row.index_at),
                                        row.sha256,
                                        row.index_sha256,
                                        as_text(row.hosts),
                                        as_text(row.jobs),
                                        as_text(row.from_segment),
                                        as_text(row.from_at),
                                        as_text(row.to_segment),
                                        as_text(row.to_at)};
  const auto added = run(kAddObject, values);
  if (!added) return tl::unexpected(added.error());
  if (!added->empty()) return true;
  const auto has = run(kHasObject, {row.archive, as_text(row.number), as_text(row.epoch)});
  if (!has) return tl::unexpected(has.error());
  return !has->empty();
}

Result<size_t> SegmentStore::prune(TimeNs older_ns) {
  const auto rows =
      run(kPruneObjects, {fmt::format("{} seconds", older_ns / kNsPerSecond), as_text(kPrunedAtOnce)});
  if (!rows) return tl::unexpected(rows.error());
  return rows->empty() || rows->front().empty() ? 0 : as_number(rows->front().front());
}

Result<std::vector<ObjectRow>> SegmentStore::find(uint64_t hosts, uint64_t jobs, size_t most) {
  const auto rows = run(kFindObjects, {as_text(hosts), as_text(jobs), as_text(most)});
  if (!rows) return tl::unexpected(rows.error());
  std::vector<ObjectRow> out;
  for (const auto& row : *rows) {
    if (row.size() != 15) continue;
    out.push_back({row[0], as_number(row[1]), as_number(row[2]), row[3], row[4], as_number(row[5]),
                   as_number(row[6]), row[7], row[8], as_number(row[9]), as_number(row[10]),
                   as_number(row[11]), as_number(row[12]), as_number(row[13]), as_number(row[14])});
  }
  return out;
}

}  // namespace culprit::store::postgres
