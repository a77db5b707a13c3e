#include <simdjson.h>

#include <algorithm>
#include <charconv>

#include "base/ascii.h"
#include "base/limits.h"
#include "base/text.h"
#include "base/time.h"
#include "ingest/ras_processes.h"
#include "ingest/ras_reader.h"

namespace culprit::ingest {
namespace {

namespace dom = simdjson::dom;

constexpr size_t kRasDepth = 32;        // of the text; answers are six deep
constexpr int64_t kRasInProgress = 7;   // NCCL's result code: ncclInProgress
constexpr uint32_t kRasMost = 1 << 24;  // ranks and sizes beyond it are no numbers of ranks

uint32_t ras_number(dom::element value) {
  int64_t number = 0;
  const bool sound = value.get_int64().get(number) == simdjson::SUCCESS && number >= 0 && number < kRasMost;
  return sound ? static_cast<uint32_t>(number) : kRasUnknown;
}

int64_t ras_code(dom::element value) {
  int64_t code = 0;
  return value.get_int64().get(code) == simdjson::SUCCESS ? code : 0;
}

uint32_t ras_count(dom::element value) {
  const uint32_t number = ras_number(value);
  return number == kRasUnknown ? 0 : number;
}

bool ras_flag(dom::element value) {
  bool flag = false;
  return value.get_bool().get(flag) == simdjson::SUCCESS && flag;
}

std::string_view ras_string(dom::element value) {
  std::string_view text;
  return value.get_string().get(text) == simdjson::SUCCESS ? text.substr(0, limits::kNameBytes) : text;
}

// "0x9e1e0b0e7dd4f3b8", or a number.
uint64_t ras_hash(dom::element value) {
  uint64_t hash = 0;
  if (value.get_uint64().get(hash) == simdjson::SUCCESS) return hash;
  std::string_view text = ras_string(value);
  if (text.starts_with("0x")) text.remove_prefix(2);
  std::from_chars(text.data(), text.data() + text.size(), hash, 16);
  return hash;
}

// "2026-11-21 02:12:09", as if it were UTC. kNoTime for a year far from ours: its nanoseconds may not fit.
TimeNs ras_time(std::string_view text) {
  constexpr std::string_view kForm = "0000-00-00 00:00:00";
  if (text.size() < kForm.size()) return kNoTime;
  for (size_t i = 0; i < kForm.size(); ++i)
    if (kForm[i] == '0' ? !digit(text[i]) : text[i] != kForm[i]) return kNoTime;
  const auto part = [&](size_t at, size_t n) { return digits_value(text, at, n); };
  const auto year = static_cast<int64_t>(part(0, 4));
  if (year < 1970 || year > 2200) return kNoTime;
  const int64_t days =
      days_from_civil(year, static_cast<unsigned>(part(5, 2)), static_cast<unsigned>(part(8, 2)));
  const auto seconds = static_cast<int64_t>(part(11, 2) * 3600 + part(14, 2) * 60 + part(17, 2));
  return (days * 86'400 + seconds) * kNsPerSecond;
}

class RasJson {
 public:
  explicit RasJson(RasAnswer& out) : out_(out), processes_(out.processes) {}

  bool read(dom::object object) {
    bool known = false;
    for (const dom::key_value_pair field : object) {
      if (field.key == "nccl_version") out_.version = ras_string(field.value);
      if (field.key == "timestamp") out_.local_ns = ras_time(ras_string(field.value));
      if (field.key == "communicators_count") out_.comms_seen = ras_count(field.value);
      if (field.key == "ras") read_ras_part(field.value);
      if (field.key == "communicators") known = read_comms(field.value);
    }
    out_.comms_seen = std::max<uint64_t>(out_.comms_seen, out_.comms.size());
    for (const RasComm& comm : out_.comms) {
      if (comm.size > out_.largest) out_.largest_comms = 0;
      out_.largest = std::max(out_.largest, comm.size);
      out_.largest_comms += comm.size == out_.largest;
    }
    for (const RasGone& gone : out_.gone) ++(gone.dead ? out_.dead_processes : out_.gone_processes);
    return known;
  }

 private:
  void read_ras_part(dom::element value) {
    dom::element timeouts;
    if (value.at_key("timeouts_count").get(timeouts) == simdjson::SUCCESS)
      out_.timeouts = ras_count(timeouts);
  }

  bool read_comms(dom::element value) {
    dom::array comms;
    if (value.get_array().get(comms) != simdjson::SUCCESS) return false;
    for (const dom::element one : comms) {
      dom::object object;
      const bool room = out_.comms.size() < limits::kRasComms;
      if (!room || one.get_object().get(object) != simdjson::SUCCESS)
        ++out_.dropped;
      else
        read_comm(object);
    }
    return true;
  }

  void read_comm(dom::object object) {
    RasComm& comm = out_.comms.emplace_back();
    for (const dom::key_value_pair field : object) {
      if (field.key == "hash") comm.hash = ras_hash(field.value);
      if (field.key == "secondary_hash") comm.secondary = ras_string(field.value);
      if (field.key == "size") comm.size = ras_count(field.value);
      if (field.key == "ranks_count") comm.heard = ras_count(field.value);
      if (field.key == "missing_ranks_count") comm.missing_ranks = ras_count(field.value);
      if (field.key == "ranks" || field.key == "missing_ranks") read_members(field, comm);
    }
    comm.heard = std::max<uint32_t>(comm.heard, static_cast<uint32_t>(comm.ranks.size()));
    comm.missing_ranks = std::max<uint32_t>(comm.missing_ranks, static_cast<uint32_t>(comm.missing.size()));
    for (const RasRank& rank : comm.ranks) comm.errors += rank.error != 0;
  }

  void read_members(const dom::key_value_pair& field, RasComm& comm) {
    dom::array members;
    if (field.value.get_array().get(members) != simdjson::SUCCESS) return void(++out_.dropped);
    const bool missing = field.key == "missing_ranks";
    for (const dom::element one : members) {
      dom::object object;
      if (members_ >= limits::kRasRanks || one.get_object().get(object) != simdjson::SUCCESS) {
        ++out_.dropped;
        continue;
      }
      ++members_;
      missing ? read_missing(object, comm) : read_rank(object, comm);
    }
  }

  // The five members that both kinds of ranks have. Returns false for other fields.
  struct Ids {
    uint32_t rank = kRasUnknown, pid = kRasUnknown, device = kRasUnknown;
    std::string_view host;
    bool take(const dom::key_value_pair& field) {
      if (field.key == "rank")
        rank = ras_number(field.value);
      else if (field.key == "host")
        host = ras_string(field.value);
      else if (field.key == "pid")
        pid = ras_number(field.value);
      else if (field.key == "nvml_dev")
        device = ras_number(field.value);
      else
        return false;
      return true;
    }
  };
  RasMember member_of(const Ids& ids) {
    const uint32_t process = ids.pid == kRasUnknown ? kRasUnknown : processes_.index(ids.host, ids.pid);
    return {ids.rank, process, ids.device, kRasUnknown};
  }

  void read_rank(dom::object object, RasComm& comm) {
    RasRank rank;
    Ids ids;
    for (const dom::key_value_pair field : object) {
      if (ids.take(field)) continue;
      if (field.key == "status") read_status(field.value, rank);
      if (field.key == "collective_counts") read_counts(field.value, rank);
    }
    if (ids.rank == kRasUnknown) return void(++out_.dropped);
    rank.member = member_of(ids);
    comm.ranks.push_back(rank);
  }

  void read_status(dom::element value, RasRank& rank) {
    dom::object object;
    if (value.get_object().get(object) != simdjson::SUCCESS) return;
    int64_t init = 0, async = 0;
    bool ends = false, aborts = false;
    for (const dom::key_value_pair field : object) {
      if (field.key == "init_state") init = ras_code(field.value);
      if (field.key == "async_error") async = ras_code(field.value);
      if (field.key == "finalize_called" || field.key == "destroy_flag") ends = ends || ras_flag(field.value);
      if (field.key == "abort_flag") aborts = ras_flag(field.value);
    }
    rank.phase = aborts      ? RasPhase::kAbort
                 : ends      ? RasPhase::kFinalize
                 : init == 0 ? RasPhase::kRunning
                             : RasPhase::kInit;
    for (const int64_t code : {async, init})
      if (code > 0 && code < 64 && code != kRasInProgress) rank.error = static_cast<int32_t>(code);
  }

  void read_counts(dom::element value, RasRank& rank) {
    dom::object object;
    if (value.get_object().get(object) != simdjson::SUCCESS) return;
    size_t guess = 0;  // ranks name the functions in one order
    for (const dom::key_value_pair field : object) {
      const size_t at = function(field.key, guess++);
      uint64_t count = 0;
      if (at >= kRasFunctions || field.value.get_uint64().get(count) != simdjson::SUCCESS)
        ++out_.dropped;
      else
        rank.counts[at] = count;
    }
  }

  size_t function(std::string_view name, size_t guess) {
    std::vector<std::string>& names = out_.functions;
    if (guess < names.size() && names[guess] == name) return guess;
    const auto known = std::find(names.begin(), names.end(), name);
    if (known != names.end()) return static_cast<size_t>(known - names.begin());
    if (names.size() >= kRasFunctions || name.empty() || name.size() > limits::kNameBytes)
      return kRasFunctions;
    names.emplace_back(name);
    return names.size() - 1;
  }

  void read_missing(dom::object object, RasComm& comm) {
    RasMissing missing;
    Ids ids;
    for (const dom::key_value_pair field : object) {
      dom::object status;
      if (ids.take(field) || field.key != "status" || field.value.get_object().get(status)) continue;
      for (const dom::key_value_pair flag : status) {
        if (flag.key == "unresponsive") missing.unresponsive = ras_flag(flag.value);
        if (flag.key == "considered_dead") missing.dead = ras_flag(flag.value);
      }
    }
    if (ids.rank == kRasUnknown) return void(++out_.dropped);
    missing.member = member_of(ids);
    comm.missing.push_back(missing);
    if (!missing.unresponsive && !missing.dead) return;
    const uint32_t process = missing.member.process;
    const bool known = std::any_of(out_.gone.begin(), out_.gone.end(),
                                   [&](const RasGone& gone) { return gone.process == process; });
    if (!known && process != kRasUnknown && out_.gone.size() < limits::kRasGone)
      out_.gone.push_back({process, missing.member.device, kRasUnknown, missing.dead});
  }

  RasAnswer& out_;
  RasProcessTable processes_;
  size_t members_ = 0;
};

}  // namespace

Result<RasAnswer> parse_ras_json(std::string_view answer) {
  if (answer.size() > limits::kRasBytes) return fail(ErrorCode::kLimit, "is larger than what is read");
  dom::parser parser(limits::kRasBytes + 1);
  if (parser.allocate(std::max<size_t>(answer.size(), 1), kRasDepth) != simdjson::SUCCESS)
    return fail(ErrorCode::kLimit, "there is no memory to read it");
  dom::element document;
  dom::object object;
  const auto failed = parser.parse(answer.data(), answer.size()).get(document);
  if (failed == simdjson::DEPTH_ERROR) return fail(ErrorCode::kLimit, "is nested too deeply");
  if (failed != simdjson::SUCCESS) return fail(ErrorCode::kInvalid, "is cut off or damaged");
  RasAnswer out;
  out.json = true;
  if (document.get_object().get(object) != simdjson::SUCCESS || !RasJson(out).read(object))
    return fail(ErrorCode::kInvalid, "is no answer of NCCL's RAS: it has no communicators");
  return out;
}

}  // namespace culprit::ingest
