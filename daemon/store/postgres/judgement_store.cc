#include "store/postgres/judgement_store.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/hash.h"
#include "base/text.h"
#include "model/json_writer.h"
#include "store/postgres/columns.h"

namespace culprit::store::postgres {
namespace {

constexpr TimeNs kJudgementLimit = 3 * kNsPerSecond;  // of a statement
constexpr TimeNs kAheadMost = 24LL * 3600 * kNsPerSecond;
constexpr size_t kJobBytes = 4096, kTextBytes = 500;
constexpr size_t kColumns = 13;

constexpr const char* kPutJudgements =
    "INSERT INTO culprit.judgement AS j (key, job, id, numbered_by, run, first_ns, last_ns, kind, is_right, "
    "who, time_ns, rule, member, at) SELECT key, decode(job, 'hex'), id, numbered_by, run, first_ns, "
    "last_ns, "
    "kind, is_right, who, time_ns, rule, $2, clock_timestamp() FROM jsonb_to_recordset($1::jsonb) AS "
    "given(key "
    "text, job text, id text, numbered_by text, run bigint, first_ns bigint, last_ns bigint, kind text, "
    "is_right boolean, who text, time_ns bigint, rule text) ON CONFLICT (key) DO UPDATE SET run = "
    "excluded.run, "
    "first_ns = excluded.first_ns, last_ns = excluded.last_ns, kind = excluded.kind, is_right = "
    "excluded.is_right, who = excluded.who, time_ns = excluded.time_ns, rule = excluded.rule, member = "
    "excluded.member, at = excluded.at WHERE j.time_ns < excluded.time_ns";

// A transaction that began earlier may become visible later, so half a minute is read again.
constexpr const char* kJudgementNews =
    "SELECT key, encode(job, 'hex'), id, numbered_by, run, first_ns, last_ns, kind, is_right, who, time_ns, "
    "rule, "
    "member, at::text FROM culprit.judgement WHERE at >= "
    "coalesce(nullif($1, '')::timestamptz - $2::interval, '-infinity') ORDER BY at LIMIT $3::integer";

constexpr const char* kPruneJudgements =
    "DELETE FROM culprit.judgement WHERE at < clock_timestamp() - interval '400 days'";

// The same diagnosis of the same member's run has the same key.
std::string key_of(const records::Judgement& j, const std::string& of) {
  const std::string text = fmt::format("{}\n{}\n{}", of, j.id, j.job);
  return hex64(hash64(text)) + hex64(hash64(text + "\n"));
}

bool is_id(const std::string& id) {
  return id.size() == 9 && id.front() == 'd' && std::all_of(id.begin() + 1, id.end(), [](char c) {
           return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
         });
}

}  // namespace

std::optional<records::Judgement> judgement_of(const std::vector<std::string>& row, const std::string& self,
                                               TimeNs now) {
  if (row.size() < kColumns) return std::nullopt;
  for (const size_t text : {3, 7, 9, 11, 12})
    if (row[text].size() > kTextBytes + 16) return std::nullopt;
  const auto job = from_hex(row[1]);
  records::Judgement out;
  records::SeenRun seen;
  const bool read = read_number(row[4], seen.run) && read_number(row[5], seen.first_ns) &&
                    read_number(row[6], seen.last_ns) && read_number(row[10], out.time_ns);
  if (!read || !job || job->empty() || job->size() > kJobBytes || !is_id(row[2]) || row[7].empty())
    return std::nullopt;
  if (out.time_ns <= 0 || out.time_ns > now + kAheadMost || seen.last_ns < seen.first_ns) return std::nullopt;
  out.job = *job;
  out.id = row[2];
  out.right = row[8] == "t";
  out.by = row[12] == self ? row[9] : fmt::format("{} at {}", row[9], row[12]);
  out.rule = row[11];
  seen.member = row[3];
  seen.kind = row[7];
  out.seen = std::move(seen);
  return out;
}

Status JudgementStore::put(const std::vector<records::Judgement>& judgements) {
  if (judgements.empty()) return {};
  JsonWriter w;
  w.array(judgements, [&](const records::Judgement& j) {
    const std::string of = j.seen->member.empty() ? member_ : j.seen->member;
    w.object([&] {
      w.field("key", key_of(j, of));
      w.field("job", to_hex(j.job));
      w.field("id", sound_text(j.id, kTextBytes));
      w.field("numbered_by", sound_text(of, kTextBytes));
      w.field("run", j.seen->run);
      w.field("first_ns", std::max<TimeNs>(j.seen->first_ns, 0));
      w.field("last_ns", std::max<TimeNs>({j.seen->last_ns, j.seen->first_ns, 0}));
      w.field("kind", sound_text(j.seen->kind, kTextBytes));
      w.field("is_right", j.right);
      w.field("who", sound_text(j.by, kTextBytes));
      w.field("time_ns", j.time_ns);
      w.field("rule", sound_text(j.rule, kTextBytes));
    });
  });
  const std::string values[] = {w.finish(), member_};
  const auto done = session_.run(kPutJudgements, values, kJudgementLimit);
  return done ? Status() : tl::unexpected(done.error());
}

Result<JudgementStore::News> JudgementStore::news(TimeNs now) {
  const std::string values[] = {read_until_, behind_ ? "0" : "30 seconds", std::to_string(kReadLines)};
  const auto rows = session_.run(kJudgementNews, values, kJudgementLimit);
  if (!rows) return tl::unexpected(rows.error());
  News out;
  for (const auto& row : *rows) {
    if (auto one = judgement_of(row, member_, now))
      out.judgements.push_back(std::move(*one));
    else
      ++out.refused;
  }
  if (!rows->empty() && rows->back().size() > kColumns) read_until_ = rows->back()[kColumns];
  out.complete = rows->size() < kReadLines;
  behind_ = !out.complete;
  return out;
}

Status JudgementStore::prune() {
  const auto done = session_.run(kPruneJudgements, {}, kJudgementLimit);
  return done ? Status() : tl::unexpected(done.error());
}

}  // namespace culprit::store::postgres
