#include "cluster_places.h"

#include <fmt/format.h>

#include <algorithm>

namespace culprit::sim {
namespace {

using store::postgres::ArchiveMark;
using store::postgres::ObjectRow;

constexpr cluster::Timing kTiming;
constexpr TimeNs kRoundNs = 4 * kS, kActionNs = 3 * kS, kRowNs = 5 * kS, kTryNs = 60 * kS, kLeftNs = 10 * kS;
constexpr TimeNs kDayNs = 24 * 3600 * kS;
constexpr int kTries = 3;

bool has(const std::vector<PartHold>& holds, uint32_t part) {
  return std::ranges::any_of(holds, [&](const PartHold& one) { return one.part == part; });
}

}  // namespace

void Network::rest(const Process& who, TimeNs span) {
  clock_.sleep(span);
  while (who.alive && clock_.now() < who.paused_until_ns)
    clock_.sleep(who.paused_until_ns - clock_.now() + dice_.range(0, 5 * kMs));
}

size_t Database::share(TimeNs now) const {
  const auto live = std::ranges::count_if(members, [&](const auto& one) {
    return one.second.second && one.second.first > now + skew_ns - kTiming.lease_ns;
  });
  const size_t all = std::max<size_t>(1, static_cast<size_t>(live));
  return (kPartitions + all - 1) / all;
}

ClusterView Database::view(TimeNs now) const {
  ClusterView out;
  for (const auto& [name, at] : members)
    out.members.push_back({name, name, std::max<TimeNs>(0, now + skew_ns - at.first), at.second});
  for (uint32_t part = 0; part < kPartitions; ++part)
    out.parts.push_back({part, parts[part].owner, parts[part].epoch, parts[part].until_ns - now - skew_ns});
  return out;
}

// ---- leases

Result<std::vector<PartHold>> SimLeases::adopt(const std::vector<PartHold>& known, TimeNs within) {
  return places_.network.ask<std::vector<PartHold>>(*who_, Place::kDatabase, within,
                                                    [=, p = places_, me = name_] {
                                                      std::vector<PartHold> out;
                                                      for (uint32_t part = 0; part < kPartitions; ++part) {
                                                        Database::Part& row = p.database.parts[part];
                                                        if (row.owner != me || has(known, part)) continue;
                                                        out.push_back({part, ++row.epoch});
                                                        row.until_ns = p.database_now() + kTiming.lease_ns;
                                                      }
                                                      return out;
                                                    });
}

Result<std::vector<uint32_t>> SimLeases::renew(const Asked& asked, TimeNs within) {
  return places_.network.ask<std::vector<uint32_t>>(*who_, Place::kDatabase, within,
                                                    [=, p = places_, me = name_] {
                                                      std::vector<uint32_t> out;
                                                      for (const PartHold& one : asked.renew) {
                                                        Database::Part& row = p.database.parts[one.part];
                                                        if (row.owner != me || row.epoch != one.epoch)
                                                          continue;
                                                        row.until_ns = p.database_now() + kTiming.lease_ns;
                                                        out.push_back(one.part);
                                                      }
                                                      return out;
                                                    });
}

Result<bool> SimLeases::give(const PartHold& one, TimeNs within) {
  return places_.network.ask<bool>(*who_, Place::kDatabase, within, [=, p = places_, me = name_] {
    Database::Part& row = p.database.parts[one.part];
    if (row.owner != me || row.epoch != one.epoch) return false;
    row.owner.clear();
    row.until_ns = p.database_now();
    ++p.account.gives;
    return true;
  });
}

Result<std::optional<PartHold>> SimLeases::take(const std::vector<PartHold>& held, TimeNs within) {
  using Taken = std::optional<PartHold>;
  const auto from = places_.dice.below(kPartitions);
  return places_.network.ask<Taken>(*who_, Place::kDatabase, within, [=, p = places_, me = name_]() -> Taken {
    const TimeNs now = p.database_now();
    for (uint64_t i = 0; i < kPartitions; ++i) {
      const auto part = static_cast<uint32_t>((from + i) % kPartitions);
      Database::Part& row = p.database.parts[part];
      if (has(held, part) || (!row.owner.empty() && row.until_ns >= now)) continue;
      if (row.until_ns >= now - 60 * kS && held.size() >= p.database.share(p.clock.now())) continue;
      row = {me, row.epoch + 1, now + kTiming.lease_ns};
      ++p.account.takes;
      return PartHold{part, row.epoch};
    }
    return std::nullopt;
  });
}

// A statement after the other, as in store/postgres; a round that fails ends with it.
Result<store::postgres::ClusterStore::Answer> SimLeases::round(const Asked& asked) {
  Places& p = places_;
  if (asked.take && took_ns_ != kNoTime && boot_() - took_ns_ < kTiming.take_ns)
    p.account.broken(name_ + " takes two partitions in five seconds");
  if (asked.take) took_ns_ = boot_();
  const TimeNs until = p.clock.now() + kRoundNs;
  const auto left = [&] { return std::max<TimeNs>(0, until - p.clock.now()); };
  Answer out;
  if (asked.adopt) {
    std::vector<PartHold> known = asked.renew;
    if (asked.give) known.push_back(*asked.give);
    auto adopted = adopt(known, left());
    if (!adopted) return tl::unexpected(adopted.error());
    out.adopted = std::move(*adopted);
  }
  auto renewed = renew(asked, left());
  if (!renewed) return tl::unexpected(renewed.error());
  out.renewed = std::move(*renewed);
  const auto seen = p.network.ask<bool>(*who_, Place::kDatabase, left(), [=, p = places_, me = name_] {
    p.database.members[me] = {p.database_now(), asked.may_take};
    return true;
  });
  if (!seen) return tl::unexpected(seen.error());
  if (asked.give)
    if (const auto given = give(*asked.give, left()); !given) return tl::unexpected(given.error());
  if (asked.take) {
    const auto taken = take(asked.renew, left());
    if (!taken) return tl::unexpected(taken.error());
    out.taken = *taken;
  }
  auto view = p.network.ask<ClusterView>(*who_, Place::kDatabase, left(),
                                         [p = places_] { return p.database.view(p.clock.now()); });
  if (!view) return tl::unexpected(view.error());
  out.view = std::move(*view);
  return out;
}

Status SimLeases::give_back(const std::vector<PartHold>& holds) {
  Places& p = places_;
  const auto done = p.network.ask<bool>(*who_, Place::kDatabase, kActionNs, [=, this, &db = p.database] {
    const TimeNs now = places_.clock.now() + db.skew_ns;
    for (const PartHold& one : holds)
      if (Database::Part& row = db.parts[one.part]; row.owner == name_ && row.epoch == one.epoch)
        row.until_ns = std::min(row.until_ns, now + kLeftNs);
    db.members[name_].second = false;
    return true;
  });
  return done ? Status() : tl::unexpected(done.error());
}

Result<store::postgres::ClusterStore::Reservation> SimLeases::reserve(
    const store::postgres::ReservedAction& action) {
  Places& p = places_;
  Database& db = p.database;
  const std::string me = name_;
  const auto owns = [&db, &clock = p.clock, me](const PartHold& with) {
    const Database::Part& row = db.parts[with.part];
    return row.owner == me && row.epoch == with.epoch && row.until_ns > clock.now() + db.skew_ns;
  };
  const auto stored = p.network.ask<bool>(*who_, Place::kDatabase, kActionNs, [=, &db, &clock = p.clock] {
    if (!owns(action.with)) return false;
    const TimeNs now = clock.now() + db.skew_ns;
    const auto [at, fresh] = db.actions.try_emplace(action.what);
    Database::Action& row = at->second;
    const bool may =
        fresh || row.member == me || row.at_ns < now - kDayNs || (action.continues && row.op == action.op);
    if (may) row = {action.op, me, action.with.epoch, now};
    return may;
  });
  if (!stored) return tl::unexpected(stored.error());
  if (*stored) return Reservation{Reserved::kYes, ""};
  const auto other =
      p.network.ask<std::string>(*who_, Place::kDatabase, kActionNs, [=, &db]() -> std::string {
        const auto at = db.actions.find(action.what);
        return at == db.actions.end() || at->second.member == me || !owns(action.with) ? ""
                                                                                       : at->second.member;
      });
  if (!other) return tl::unexpected(other.error());
  return other->empty() ? Reservation{Reserved::kFenced, ""} : Reservation{Reserved::kByOther, *other};
}

// ---- rows of objects

Result<ArchiveMark> SimRows::take(const std::string& archive, const std::string& member) {
  Database& db = places_.database;
  return places_.network.ask<ArchiveMark>(*who_, Place::kDatabase, kRowNs, [=, &db] {
    Database::Archive& row = db.archives[archive];
    row.member = member;
    ++row.epoch;
    ArchiveMark mark{row.epoch, row.number, row.segment, row.at, ""};
    for (const ObjectRow& object : db.objects)
      if (object.archive == archive && object.number == row.number) mark.last_key = object.key;
    return mark;
  });
}

Result<bool> SimRows::add(const ObjectRow& row) {
  Database& db = places_.database;
  const auto added =
      places_.network.ask<bool>(*who_, Place::kDatabase, kRowNs, [=, &db, &account = places_.account] {
        Database::Archive& mark = db.archives[row.archive];
        if (mark.epoch != row.epoch || mark.number + 1 != row.number) {
          ++account.fenced;
          return false;
        }
        const std::pair to(row.to_segment, row.to_at), from(row.from_segment, row.from_at);
        if (from < std::pair(mark.segment, mark.at) || to <= from)
          account.broken(fmt::format("object {} begins before the last one ends", row.key));
        mark.number = row.number;
        mark.segment = row.to_segment;
        mark.at = row.to_at;
        db.objects.push_back(row);
        ++account.commits;
        ++account.objects;
        return true;
      });
  if (!added || *added) return added;
  return places_.network.ask<bool>(*who_, Place::kDatabase, kRowNs, [=, &db] {
    return std::ranges::any_of(db.objects, [&](const ObjectRow& one) {
      return one.archive == row.archive && one.number == row.number && one.epoch == row.epoch;
    });
  });
}

// ---- the bucket

Status SimBucket::put(const std::string& key, std::string_view bytes, std::string_view sha256) const {
  Places p = places_;
  const auto [at, fresh] = stored_->contents.try_emplace(key, std::string(sha256));
  if (!fresh && at->second != sha256)
    p.account.broken(fmt::format("two PUTs of {} have different bytes", key));
  const auto content = std::make_shared<std::string>(bytes);
  Status done;
  for (int n = 0; n < kTries; ++n) {
    const bool lies = p.network.troubles.lies && p.dice.per_mille(15), damages = lies && p.dice.chance(30);
    const auto put =
        p.network.ask<bool>(*who_, Place::kBucket, kTryNs, [=, stored = stored_, &account = p.account] {
          if (lies) stored->lies.insert(key);
          if (lies) account.count(damages ? "object stored damaged" : "PUT lost after its 200");
          if (lies && !damages) return true;
          std::string& object = stored->objects[key] = *content;
          if (damages) object[object.size() / 2] = static_cast<char>(object[object.size() / 2] ^ 1);
          return true;
        });
    if (put) return {};
    done = tl::unexpected(put.error());
    if (!who_->alive) break;
    p.network.rest(*who_, (250 * kMs) << n);
  }
  return done;
}

Result<store::bucket::Listing> SimBucket::list(const std::string& prefix, const std::string& after) const {
  return places_.network.ask<store::bucket::Listing>(*who_, Place::kBucket, kTryNs, [=, stored = stored_] {
    store::bucket::Listing out;
    for (const auto& [key, bytes] : stored->objects)
      if (key.starts_with(prefix) && key > after) out.keys.push_back(key);
    return out;
  });
}

Status SimBucket::remove(const std::string& key) const {
  Places p = places_;
  const auto done = p.network.ask<bool>(
      *who_, Place::kBucket, kTryNs, [=, stored = stored_, &db = p.database, &account = p.account] {
        if (std::ranges::find(db.objects, key, &ObjectRow::key) != db.objects.end())
          account.broken(fmt::format("{} is deleted, and has a row", key));
        stored->objects.erase(key);
        account.count("object without a row removed");
        return true;
      });
  return done ? Status() : tl::unexpected(done.error());
}

}  // namespace culprit::sim
