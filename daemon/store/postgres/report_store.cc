#include "store/postgres/report_store.h"

#include <fmt/format.h>
#include <zstd.h>

#include <charconv>

#include "base/hash.h"
#include "base/text.h"
#include "store/postgres/columns.h"

namespace culprit::store::postgres {
namespace {

constexpr TimeNs kLimit = 3 * kNsPerSecond;  // of a statement

// The lock holds off a new owner until the commit.
constexpr const char* kPut =
    "WITH mine AS (SELECT epoch FROM culprit.part WHERE part = $1::smallint AND owner = $2 "
    "AND epoch = $3::bigint AND until > clock_timestamp() FOR SHARE) "
    "INSERT INTO culprit.report (job, run, part, epoch, member, as_of, uid, listed, body) "
    "SELECT $4, $5::bigint, $1::smallint, mine.epoch, $2, clock_timestamp(), nullif($6, '')::bigint, $7, "
    "decode($8, 'hex') FROM mine "
    "ON CONFLICT (job) DO UPDATE SET run = excluded.run, part = excluded.part, epoch = excluded.epoch, "
    "member = excluded.member, as_of = excluded.as_of, uid = excluded.uid, listed = excluded.listed, "
    "body = excluded.body RETURNING epoch";

constexpr const char* kKeys =
    "SELECT job, (extract(epoch FROM as_of) * 1000000)::bigint FROM culprit.report "
    "ORDER BY as_of DESC LIMIT 20000";

constexpr const char* kRows =
    "SELECT job, run, member, (extract(epoch FROM as_of) * 1000000)::bigint, coalesce(uid::text, ''), "
    "listed, "
    "encode(body, 'hex') FROM culprit.report WHERE job = ANY ($1::text[])";

constexpr const char* kPruneReports =
    "DELETE FROM culprit.report WHERE as_of < clock_timestamp() - interval '30 days'";

constexpr size_t kKeyBytes = 500;
constexpr int kLevel = 3;

template <class Number>
Number number_in(const std::string& text) {
  Number out = 0;
  std::from_chars(text.data(), text.data() + text.size(), out);
  return out;
}

// A literal of text[].
std::string array_text(const std::vector<std::string>& texts) {
  std::string out = "{";
  for (const std::string& text : texts) {
    out += out.size() > 1 ? ",\"" : "\"";
    for (const char c : text) {
      if (c == '"' || c == '\\') out += '\\';
      out += c;
    }
    out += '"';
  }
  return out + "}";
}

}  // namespace

Result<bool> ReportStore::put(const ReportRow& row, const PartHold& with) {
  const std::string values[] = {fmt::format("{}", with.part),
                                member_,
                                fmt::format("{}", with.epoch),
                                row.job,
                                fmt::format("{}", row.run),
                                row.uid ? fmt::format("{}", *row.uid) : "",
                                row.listed,
                                to_hex(row.packed)};
  const auto done = session_.run(kPut, values, kLimit);
  if (!done) return tl::unexpected(done.error());
  return !done->empty();
}

Result<std::vector<ReportStore::Key>> ReportStore::keys() {
  const auto found = session_.run(kKeys, {}, kLimit);
  if (!found) return tl::unexpected(found.error());
  std::vector<Key> out;
  for (const auto& row : *found)
    if (row.size() == 2) out.push_back({row[0], number_in<int64_t>(row[1])});
  return out;
}

Result<std::vector<ReportRow>> ReportStore::rows(const std::vector<std::string>& jobs) {
  const std::string values[] = {array_text(jobs)};
  auto found = session_.run(kRows, values, kLimit);
  if (!found) return tl::unexpected(found.error());
  std::vector<ReportRow> out;
  for (auto& row : *found) {
    if (row.size() != 7) continue;
    ReportRow& one = out.emplace_back();
    one.job = row[0];
    one.run = number_in<uint32_t>(row[1]);
    one.member = row[2];
    one.as_of_ns = number_in<int64_t>(row[3]) * (kNsPerMs / 1000);
    if (!row[4].empty()) one.uid = number_in<uint32_t>(row[4]);
    one.listed = std::move(row[5]);
    one.packed = from_hex(row[6]).value_or("");
  }
  return out;
}

Status ReportStore::prune() {
  const auto done = session_.run(kPruneReports, {}, kLimit);
  return done ? Status() : tl::unexpected(done.error());
}

std::string report_key(const std::string& job) {
  std::string out = to_utf8(job);
  if (out.size() <= kKeyBytes && out.find('\0') == out.npos) return out;
  std::erase(out, '\0');
  return fmt::format("{} {}", shorten(out, kKeyBytes / 2), hex64(hash64(job)));
}

std::string pack_report(const std::string& json) {
  std::string out(ZSTD_compressBound(json.size()), '\0');
  const size_t size = ZSTD_compress(out.data(), out.size(), json.data(), json.size(), kLevel);
  if (ZSTD_isError(size)) return "";
  out.resize(size);
  out.shrink_to_fit();
  return out;
}

std::optional<std::string> unpack_report(const std::string& packed) {
  const unsigned long long size = ZSTD_getFrameContentSize(packed.data(), packed.size());
  if (size == ZSTD_CONTENTSIZE_UNKNOWN || size == ZSTD_CONTENTSIZE_ERROR || size > kReportBytes)
    return std::nullopt;
  std::string out(static_cast<size_t>(size), '\0');
  const size_t got = ZSTD_decompress(out.data(), out.size(), packed.data(), packed.size());
  if (ZSTD_isError(got) || got != out.size()) return std::nullopt;
  return out;
}

}  // namespace culprit::store::postgres
