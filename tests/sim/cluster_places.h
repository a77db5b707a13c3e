// The places that members of a simulated cluster share: a database and a bucket, behind a network. The
// product's classes ask them; the statements are those of store/postgres, carried out by the database's clock
// when they arrive, which may be after their client gave up.
#pragma once

#include <array>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "cluster_clock.h"
#include "core/cluster/member.h"
#include "store/bucket/bucket.h"
#include "store/postgres/cluster_store.h"
#include "store/postgres/segment_store.h"

namespace culprit::sim {

using cluster::kPartitions;

enum class Place : uint8_t { kDatabase, kBucket, kAgents };
constexpr size_t kPlaces = 3;

// What a seed has of troubles, and what came of it.
struct Troubles {
  bool cuts = false, pauses = false, kills = false, outages = false, steps_clock = false, lies = false;
};
class Account {
 public:
  void count(const std::string& fault) { ++faults[fault]; }
  void broken(std::string what) {
    if (broken_.empty()) broken_ = std::move(what);
  }
  const std::string& first_broken() const { return broken_; }

  std::map<std::string, uint64_t> faults;
  uint64_t commits = 0, fenced = 0, actions = 0, refused = 0, takes = 0, gives = 0, moves = 0;
  uint64_t objects = 0, acknowledged = 0, read = 0, gap_bytes = 0;

 private:
  std::string broken_;
};

// A process of a member. A killed one fails all calls; a paused one goes on when it wakes.
struct Process {
  size_t node = 0;
  uint64_t number = 0;
  bool alive = true;
  TimeNs paused_until_ns = 0;
};

class Network {
 public:
  Network(VirtualClock& clock, Dice& dice, Account& account)
      : clock_(clock), dice_(dice), account_(account) {}

  Troubles troubles;
  std::array<bool, kPlaces> up{true, true, true};

  void cut(size_t node, Place place, TimeNs span) { cuts_[{node, place}] = clock_.now() + span; }
  void mend() { cuts_.clear(); }
  bool reaches(size_t node, Place place) const {
    const auto at = cuts_.find({node, place});
    return up[static_cast<size_t>(place)] && (at == cuts_.end() || at->second <= clock_.now());
  }
  // Now and then longer than the client waits: a statement then comes after later ones.
  TimeNs delay(Place place = Place::kDatabase) {
    if (!troubles.cuts || !dice_.chance(3)) return dice_.range(kMs / 5, 5 * kMs);
    return dice_.range(0, place == Place::kBucket ? 90 * kS : 8 * kS);
  }
  bool loses() { return troubles.cuts && dice_.per_mille(8); }
  // Of the process that runs; a pause of it is slept through.
  void rest(const Process& who, TimeNs span);
  // A request and its answer, by a task. `what` happens when the request arrives.
  template <class T>
  Result<T> ask(const Process& who, Place place, TimeNs within, std::function<Result<T>()> what) {
    if (!who.alive) return fail(ErrorCode::kIo, "the process ended");
    const auto out = std::make_shared<std::optional<Result<T>>>();
    const TimeNs there = delay(place), back = delay();
    if (!reaches(who.node, place)) {
      account_.count(kNames[static_cast<size_t>(place)].refused);
      rest(who, std::min(within, there));
      return fail(ErrorCode::kIo, "no connection");
    }
    if (loses()) {
      account_.count(kNames[static_cast<size_t>(place)].lost);
    } else {
      const bool late = there > within, twice = place == Place::kBucket && loses();
      if (late) account_.count(kNames[static_cast<size_t>(place)].late);
      if (twice) account_.count("PUT duplicated");
      for (int n = 0; n < (twice ? 2 : 1); ++n)
        clock_.after(there + (n > 0 ? delay() : 0), [this, out, place, what, node = who.node, n] {
          if (!reaches(node, place)) return account_.count(kNames[static_cast<size_t>(place)].lost);
          auto answer = what();
          if (n == 0) *out = std::move(answer);
        });
    }
    rest(who, std::min(within, there + back));
    if (!who.alive) return fail(ErrorCode::kIo, "the process ended");
    const bool comes = out->has_value() && there + back <= within && reaches(who.node, place);
    if (comes && !loses()) return std::move(**out);
    if (out->has_value()) account_.count(kNames[static_cast<size_t>(place)].answer_lost);
    if (there + back < within) rest(who, within - there - back);
    return fail(ErrorCode::kIo, "no answer");
  }

 private:
  struct Names {
    const char *refused, *lost, *late, *answer_lost;
  };
  static constexpr Names kNames[] = {
      {"database not reached", "statement lost", "statement late", "answer of the database lost"},
      {"bucket not reached", "request of the bucket lost", "PUT late", "answer of the bucket lost"},
      {"agents cut off", "frames lost", "frames late", "acknowledgement lost"}};

  VirtualClock& clock_;
  Dice& dice_;
  Account& account_;
  std::map<std::pair<size_t, Place>, TimeNs> cuts_;
};

// ---- the database

struct Database {
  TimeNs skew_ns = 0;  // of its clock
  struct Part {
    std::string owner;
    uint64_t epoch = 0;
    TimeNs until_ns = 0;
  };
  struct Action {
    std::string op, member;
    uint64_t epoch = 0;
    TimeNs at_ns = 0;
  };
  struct Archive {
    std::string member;
    uint64_t epoch = 0, number = 0, segment = 0, at = 0;
  };
  struct Report {
    uint64_t epoch = 0, version = 0;
  };
  std::array<Part, kPartitions> parts;
  std::map<std::string, std::pair<TimeNs, bool>> members;  // when they were seen; whether they take any
  std::map<std::string, Action> actions;
  std::map<std::string, Archive> archives;
  std::vector<store::postgres::ObjectRow> objects;  // in order of their rows
  std::map<uint32_t, Report> reports;               // of one job of each partition

  size_t share(TimeNs now) const;  // of a member
  ClusterView view(TimeNs now) const;
  std::string living_owner(uint32_t part, TimeNs now) const {
    return parts[part].until_ns < now + skew_ns ? "" : parts[part].owner;
  }
};

struct Places {
  VirtualClock& clock;
  Dice& dice;
  Account& account;
  Network& network;
  Database& database;

  TimeNs database_now() const { return clock.now() + database.skew_ns; }
};

// The tables of leases and actions, as one process asks for them.
class SimLeases final : public store::postgres::ClusterStore {
 public:
  SimLeases(Places places, std::shared_ptr<Process> who, std::string name, std::function<TimeNs()> boot)
      : ClusterStore({"", name, name}),
        places_(places),
        who_(std::move(who)),
        name_(std::move(name)),
        boot_(std::move(boot)) {}
  Result<Answer> round(const Asked& asked) override;
  Status give_back(const std::vector<PartHold>& holds) override;
  Result<Reservation> reserve(const store::postgres::ReservedAction& action) override;

 private:
  Result<std::vector<PartHold>> adopt(const std::vector<PartHold>& known, TimeNs within);
  Result<std::vector<uint32_t>> renew(const Asked& asked, TimeNs within);
  Result<bool> give(const PartHold& one, TimeNs within);
  Result<std::optional<PartHold>> take(const std::vector<PartHold>& held, TimeNs within);

  Places places_;
  const std::shared_ptr<Process> who_;
  const std::string name_;
  const std::function<TimeNs()> boot_;
  TimeNs took_ns_ = kNoTime;
};

// Rows of objects.
class SimRows final : public store::postgres::SegmentStore {
 public:
  SimRows(Places places, std::shared_ptr<Process> who)
      : SegmentStore(""), places_(places), who_(std::move(who)) {}
  Result<store::postgres::ArchiveMark> take(const std::string& archive, const std::string& member) override;
  Result<bool> add(const store::postgres::ObjectRow& row) override;

 private:
  Places places_;
  const std::shared_ptr<Process> who_;
};

// ---- the bucket

struct Stored {
  std::map<std::string, std::string> objects;   // by key
  std::map<std::string, std::string> contents;  // SHA-256 of what was ever sent, by key
  std::set<std::string> lies;                   // keys lost after a 200, or stored damaged
};

class SimBucket final : public store::bucket::Bucket {
 public:
  SimBucket(Places places, std::shared_ptr<Process> who, std::shared_ptr<Stored> stored)
      : Bucket({}), places_(places), who_(std::move(who)), stored_(std::move(stored)) {}
  Status put(const std::string& key, std::string_view bytes, std::string_view sha256) const override;
  Result<store::bucket::Listing> list(const std::string& prefix, const std::string& after) const override;
  Status remove(const std::string& key) const override;

 private:
  Places places_;
  const std::shared_ptr<Process> who_;
  const std::shared_ptr<Stored> stored_;
};

}  // namespace culprit::sim
