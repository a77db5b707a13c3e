#include "store/postgres/cluster_store.h"

#include <fmt/format.h>

#include <charconv>
#include <utility>

#include "base/clock.h"
#include "store/postgres/schema.h"

namespace culprit::store::postgres {
namespace {

constexpr const char* kPruneMembers =
    "DELETE FROM culprit.member m WHERE seen < clock_timestamp() - interval '1 day' "
    "AND NOT EXISTS (SELECT FROM culprit.part p WHERE p.owner = m.name)";

constexpr const char* kSeen =
    "INSERT INTO culprit.member (name, address, seen, takes, http) "
    "VALUES ($1, $2, clock_timestamp(), $3::boolean, $4) "
    "ON CONFLICT (name) DO UPDATE SET address = excluded.address, seen = excluded.seen, "
    "takes = excluded.takes, http = excluded.http";
constexpr const char* kTakesNone = "UPDATE culprit.member SET takes = false WHERE name = $1";

// Each new process of a member has an epoch of its own, so what is left of the one before is fenced.
constexpr const char* kAdopt =
    "UPDATE culprit.part SET epoch = epoch + 1, until = clock_timestamp() + $3::interval "
    "WHERE owner = $1 AND part <> ALL ($2::smallint[]) RETURNING part, epoch";

constexpr const char* kRenew =
    "UPDATE culprit.part p SET until = clock_timestamp() + $4::interval "
    "FROM unnest($2::smallint[], $3::bigint[]) AS mine(part, epoch) "
    "WHERE p.part = mine.part AND p.owner = $1 AND p.epoch = mine.epoch RETURNING p.part, p.epoch";

// Any free one, so that members that start together meet seldom; one that another member takes just now is
// skipped. A member with its share leaves those that became free in the last minute to others.
constexpr const char* kTake =
    "WITH pick AS (SELECT part FROM culprit.part "
    "WHERE (owner IS NULL OR until < clock_timestamp()) AND part <> ALL ($2::smallint[]) "
    "AND (until < clock_timestamp() - interval '1 minute' OR cardinality($2::smallint[]) < "
    "(SELECT ceil(64.0 / greatest(1, count(*))) FROM culprit.member "
    "WHERE takes AND seen > clock_timestamp() - $3::interval)) "
    "ORDER BY random() LIMIT 1 FOR UPDATE SKIP LOCKED) "
    "UPDATE culprit.part p SET owner = $1, epoch = p.epoch + 1, until = clock_timestamp() + $3::interval "
    "FROM pick WHERE p.part = pick.part AND (p.owner IS NULL OR p.until < clock_timestamp()) "
    "RETURNING p.part, p.epoch";

constexpr const char* kGive =
    "UPDATE culprit.part SET owner = NULL, until = clock_timestamp() "
    "WHERE part = $2::smallint AND owner = $1 AND epoch = $3::bigint RETURNING part, epoch";

// The owner stays for the rest of the shortened lease: the same member's next process has its own again.
constexpr const char* kGiveBack =
    "UPDATE culprit.part p SET until = least(p.until, clock_timestamp() + $4::interval) "
    "FROM unnest($2::smallint[], $3::bigint[]) AS mine(part, epoch) "
    "WHERE p.part = mine.part AND p.owner = $1 AND p.epoch = mine.epoch RETURNING p.part, p.epoch";

constexpr const char* kParts =
    "SELECT part, coalesce(owner, ''), epoch, "
    "CASE WHEN owner IS NULL THEN 0 "
    "ELSE floor(extract(epoch FROM until - clock_timestamp()) * 1000)::bigint END "
    "FROM culprit.part ORDER BY part";

constexpr const char* kMembers =
    "SELECT name, address, greatest(0, floor(extract(epoch FROM clock_timestamp() - seen) * 1000))::bigint, "
    "takes, http FROM culprit.member ORDER BY name LIMIT 1000";

// No row: fenced, or the same action is another member's of the last day (a job's name may be used again
// later), and this is no continuation of it. The lock holds off a new owner until the commit.
constexpr const char* kReserve =
    "WITH mine AS (SELECT epoch FROM culprit.part WHERE part = $8::smallint AND owner = $7 "
    "AND epoch = $9::bigint AND until > clock_timestamp() FOR SHARE) "
    "INSERT INTO culprit.action AS a (what, op, job, kind, target, decision, member, part, epoch, ledger) "
    "SELECT $1, $2, $3, $4, $5, $6, $7, $8::smallint, mine.epoch, $11 FROM mine "
    "ON CONFLICT (what) DO UPDATE SET op = excluded.op, decision = excluded.decision, member = "
    "excluded.member, epoch = excluded.epoch, ledger = excluded.ledger, at = clock_timestamp(), "
    "sent = a.sent + 1 WHERE (a.member = excluded.member AND a.ledger IN ('', excluded.ledger)) OR a.at < "
    "clock_timestamp() - interval '1 day' "
    "OR ($10::boolean AND a.op = excluded.op) RETURNING epoch";

// A return belongs to the member that isolated the host, also after its partition has moved.
constexpr const char* kReserveReturn =
    "INSERT INTO culprit.action AS a (what, op, job, kind, target, decision, member, part, epoch) "
    "SELECT $1, $2, $3, $4, $5, $6, $7, $8::smallint, $9::bigint WHERE NOT EXISTS "
    "(SELECT FROM culprit.action i WHERE i.op = $10 AND i.target = $5 AND i.member <> $7) "
    "ON CONFLICT (what) DO UPDATE SET at = clock_timestamp(), sent = a.sent + 1 "
    "WHERE a.member = excluded.member RETURNING epoch";

// Nothing: fenced.
constexpr const char* kReservedBy =
    "SELECT a.member, a.epoch FROM culprit.action a WHERE a.what = $1 AND "
    "(a.member <> $2 OR a.ledger <> $5) AND EXISTS "
    "(SELECT FROM culprit.part WHERE part = $3::smallint AND owner = $2 AND epoch = $4::bigint "
    "AND until > clock_timestamp())";

template <class Number>
Number number_of(const std::string& text) {
  Number out = 0;
  std::from_chars(text.data(), text.data() + text.size(), out);
  return out;
}

std::string parts_text(const std::vector<PartHold>& holds) {
  std::string out = "{";
  for (const PartHold& one : holds) out += fmt::format("{}{}", out.size() > 1 ? "," : "", one.part);
  return out + "}";
}
std::string epochs_text(const std::vector<PartHold>& holds) {
  std::string out = "{";
  for (const PartHold& one : holds) out += fmt::format("{}{}", out.size() > 1 ? "," : "", one.epoch);
  return out + "}";
}

}  // namespace

std::string ClusterStore::lease() const {
  return fmt::format("{} milliseconds", options_.lease_ns / kNsPerMs);
}

Result<Rows> ClusterStore::run(const std::string& sql, std::vector<std::string> values) {
  if (!connection_ || !connection_->is_open())
    return fail(ErrorCode::kIo, "there is no connection to the database");
  auto rows = connection_->run(sql, values, until_ns_ - steady_now());
  if (!connection_->is_open()) connection_.reset();
  return rows;
}

Status ClusterStore::connect() {
  if (connection_ && connection_->is_open()) return {};
  auto opened = Connection::open(options_.conninfo, until_ns_ - steady_now());
  if (!opened) return tl::unexpected(opened.error());
  connection_ = std::move(*opened);
  if (const auto done = run(migration(), {}); !done) return tl::unexpected(done.error());
  (void)run(kPruneMembers, {});  // a few rows; no lease waits for them
  return {};
}

Result<std::vector<PartHold>> ClusterStore::holds_of(const std::string& sql,
                                                     std::vector<std::string> values) {
  const auto rows = run(sql, std::move(values));
  if (!rows) return tl::unexpected(rows.error());
  std::vector<PartHold> out;
  for (const auto& row : *rows)
    if (row.size() == 2) out.push_back({number_of<uint32_t>(row[0]), number_of<uint64_t>(row[1])});
  return out;
}

Status ClusterStore::renew(const std::vector<PartHold>& holds, Answer& out) {
  if (holds.empty()) return {};
  const auto renewed = holds_of(kRenew, {options_.name, parts_text(holds), epochs_text(holds), lease()});
  if (!renewed) return tl::unexpected(renewed.error());
  for (const PartHold& one : *renewed) out.renewed.push_back(one.part);
  return {};
}

Status ClusterStore::look(ClusterView& out) {
  const auto parts = run(kParts, {});
  if (!parts) return tl::unexpected(parts.error());
  for (const auto& row : *parts)
    if (row.size() == 4)
      out.parts.push_back({number_of<uint32_t>(row[0]), row[1], number_of<uint64_t>(row[2]),
                           number_of<int64_t>(row[3]) * kNsPerMs});
  const auto members = run(kMembers, {});
  if (!members) return tl::unexpected(members.error());
  for (const auto& row : *members)
    if (row.size() == 5)
      out.members.push_back({row[0], row[1], number_of<int64_t>(row[2]) * kNsPerMs, row[3] == "t", row[4]});
  return {};
}

// After an error the next round begins with a new connection, and makes the tables if they are missing.
Result<ClusterStore::Answer> ClusterStore::round(const Asked& asked) {
  const std::lock_guard lock(mutex_);
  until_ns_ = steady_now() + options_.round_ns;
  Answer out;
  const auto work = [&]() -> Status {
    if (const Status connected = connect(); !connected) return connected;
    if (asked.adopt) {
      std::vector<PartHold> known = asked.renew;
      if (asked.give) known.push_back(*asked.give);
      auto adopted = holds_of(kAdopt, {options_.name, parts_text(known), lease()});
      if (!adopted) return tl::unexpected(adopted.error());
      out.adopted = std::move(*adopted);
    }
    if (const Status renewed = renew(asked.renew, out); !renewed) return renewed;
    const auto seen =
        run(kSeen, {options_.name, options_.address, asked.may_take ? "t" : "f", options_.http});
    if (!seen) return tl::unexpected(seen.error());
    if (asked.give) {
      const auto given = run(
          kGive, {options_.name, fmt::format("{}", asked.give->part), fmt::format("{}", asked.give->epoch)});
      if (!given) return tl::unexpected(given.error());
    }
    if (asked.take) {
      const auto taken = holds_of(kTake, {options_.name, parts_text(asked.renew), lease()});
      if (!taken) return tl::unexpected(taken.error());
      if (!taken->empty()) out.taken = taken->front();
    }
    return look(out.view);
  };
  if (const Status done = work(); !done) {
    connection_.reset();
    return tl::unexpected(done.error());
  }
  return out;
}

Status ClusterStore::give_back(const std::vector<PartHold>& holds) {
  if (holds.empty()) return {};
  const std::lock_guard lock(mutex_);
  until_ns_ = steady_now() + options_.action_ns;
  const auto done = run(kGiveBack, {options_.name, parts_text(holds), epochs_text(holds),
                                    fmt::format("{} milliseconds", options_.left_ns / kNsPerMs)});
  if (!done) return tl::unexpected(done.error());
  const auto ends = run(kTakesNone, {options_.name});
  return ends ? Status() : tl::unexpected(ends.error());
}

Result<ClusterStore::Reservation> ClusterStore::reserve(const ReservedAction& action) {
  const std::lock_guard lock(mutex_);
  until_ns_ = steady_now() + options_.action_ns;
  std::vector<std::string> values{action.what,
                                  action.op,
                                  action.job,
                                  action.kind,
                                  action.target,
                                  action.decision,
                                  options_.name,
                                  fmt::format("{}", action.with.part),
                                  fmt::format("{}", action.with.epoch)};
  const bool returns = !action.undoes.empty();
  values.push_back(returns ? action.undoes : action.continues ? "t" : "f");
  if (!returns) values.push_back(action.ledger);
  const auto rows = run(returns ? kReserveReturn : kReserve, std::move(values));
  if (!rows) return tl::unexpected(rows.error());
  if (!rows->empty()) return Reservation{Reserved::kYes, ""};
  const auto other = run(kReservedBy, {action.what, options_.name, fmt::format("{}", action.with.part),
                                       fmt::format("{}", action.with.epoch), action.ledger});
  if (!other) return tl::unexpected(other.error());
  if (other->empty()) return Reservation{Reserved::kFenced, ""};
  const auto& row = other->front();
  return Reservation{Reserved::kByOther, fmt::format("{} (epoch {})", row[0], row.size() > 1 ? row[1] : "")};
}

}  // namespace culprit::store::postgres
