#include <algorithm>
#include <charconv>
#include <iterator>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/ascii.h"
#include "base/limits.h"
#include "base/read_budget.h"
#include "base/text.h"
#include "base/time.h"
#include "ingest/ras_processes.h"
#include "ingest/ras_reader.h"

namespace culprit::ingest {
namespace {

constexpr int64_t kRasInProgress = 7;  // NCCL's result code: ncclInProgress

// A scalar value. Accessors return defaults for other types.
struct RasScalar {
  std::optional<uint64_t> natural = {};
  int64_t code = 0;
  bool flag = false;
  std::string_view text = {};

  uint32_t number() const {
    return natural && *natural < kRasSizeMost ? static_cast<uint32_t>(*natural) : kRasUnknown;
  }
  uint32_t count() const { return natural && *natural < kRasSizeMost ? static_cast<uint32_t>(*natural) : 0; }
  std::string_view name() const { return text.substr(0, limits::kNameBytes); }
  // "0x9e1e0b0e7dd4f3b8", or a number.
  uint64_t hash() const {
    if (natural) return *natural;
    std::string_view digits = name();
    if (digits.starts_with("0x")) digits.remove_prefix(2);
    uint64_t out = 0;
    std::from_chars(digits.data(), digits.data() + digits.size(), out, 16);
    return out;
  }
};

// Parses "2026-11-21 02:12:09" as UTC. kNoTime for a distant year, whose nanoseconds may overflow.
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

// Receives the parser's events. Values that are not part of an answer are dropped.
class RasJson {
 public:
  RasJson(RasAnswer& out, const RasBounds& bounds)
      : out_(out), bounds_(bounds), processes_(out.processes, bounds.ranks) {}

  bool null() { return scalar({}); }
  bool boolean(bool value) { return scalar({.flag = value}); }
  bool number_integer(int64_t value) { return scalar({.code = value}); }
  bool number_unsigned(uint64_t value) {
    return scalar({.natural = value, .code = value > INT64_MAX ? 0 : static_cast<int64_t>(value)});
  }
  bool number_float(double, const std::string&) { return scalar({}); }
  bool string(std::string& value) { return scalar({.text = value}); }
  bool binary(nlohmann::json::binary_t&) { return false; }
  bool key(std::string& name) {
    key_.assign(name, 0, limits::kNameBytes);
    return true;
  }
  bool start_object(size_t) { return open(object_in(levels_.empty() ? Level::kNone : levels_.back())); }
  bool start_array(size_t) { return open(list_in(levels_.empty() ? Level::kNone : levels_.back())); }
  bool end_object() { return close(); }
  bool end_array() { return close(); }
  bool parse_error(size_t, const std::string&, const nlohmann::json::exception&) {
    failed_ = Error{ErrorCode::kInvalid, "is cut off or damaged"};
    return false;
  }

  // After the last event.
  Status finish() {
    if (failed_) return tl::unexpected(*failed_);
    if (!known_) return fail(ErrorCode::kInvalid, "is no answer of NCCL's RAS: it has no communicators");
    out_.comms_seen = std::max<uint64_t>(out_.comms_seen, out_.comms.size());
    for (const RasComm& comm : out_.comms) {
      if (comm.size > out_.largest) out_.largest_comms = 0;
      out_.largest = std::max(out_.largest, comm.size);
      out_.largest_comms += comm.size == out_.largest;
    }
    for (const RasExit& exited : out_.exited) ++(exited.dead ? out_.dead_processes : out_.exited_processes);
    return {};
  }

 private:
  // The parser's position in an answer. kOther: within a skipped value.
  enum class Level : uint8_t {
    kNone,
    kOther,
    kRoot,
    kRas,
    kComms,
    kComm,
    kRanks,
    kRank,
    kStatus,
    kCounts,
    kMissing,
    kLost,
    kLostStatus
  };

  // The level of an object that begins at level `at`.
  Level object_in(Level at) {
    switch (at) {
      case Level::kNone:
        return Level::kRoot;
      case Level::kRoot:
        return key_ == "ras" ? Level::kRas : Level::kOther;
      case Level::kComms:
        if (out_.comms.size() >= bounds_.comms) return drop();
        out_.comms.emplace_back();
        return Level::kComm;
      case Level::kComm:
        return key_ == "ranks" || key_ == "missing_ranks" ? drop() : Level::kOther;
      case Level::kRanks:
      case Level::kMissing:
        if (members_ >= bounds_.ranks || !fits(out_.comms.back())) return drop();
        ++members_;
        ids_.clear();
        rank_ = {};
        missing_ = {};
        return at == Level::kRanks ? Level::kRank : Level::kLost;
      case Level::kRank:
        if (key_ == "status") status_ = {};
        guess_ = 0;
        return key_ == "status"              ? Level::kStatus
               : key_ == "collective_counts" ? Level::kCounts
                                             : Level::kOther;
      case Level::kLost:
        return key_ == "status" ? Level::kLostStatus : Level::kOther;
      case Level::kCounts:
        return drop();
      default:
        return Level::kOther;
    }
  }

  Level list_in(Level at) {
    switch (at) {
      case Level::kRoot:
        known_ = known_ || key_ == "communicators";
        return key_ == "communicators" ? Level::kComms : Level::kOther;
      case Level::kComm:
        return key_ == "ranks" ? Level::kRanks : key_ == "missing_ranks" ? Level::kMissing : Level::kOther;
      case Level::kComms:
      case Level::kRanks:
      case Level::kMissing:
      case Level::kCounts:
        return drop();
      default:
        return Level::kOther;
    }
  }

  // Whether the communicator can have one more member. NCCL writes the size first.
  bool fits(const RasComm& comm) const {
    const size_t members = comm.ranks.size() + comm.missing.size();
    return comm.size <= bounds_.size && members < (comm.size > 0 ? comm.size : bounds_.size);
  }

  Level drop() {
    ++out_.dropped;
    return Level::kOther;
  }

  bool open(Level level) {
    if (levels_.size() >= limits::kNesting) {
      failed_ = Error{ErrorCode::kLimit, "is nested too deeply"};
      return false;
    }
    levels_.push_back(level);
    return true;
  }

  bool close() {
    const Level level = levels_.back();
    levels_.pop_back();
    if (level == Level::kComm) end_comm();
    if (level == Level::kRank) end_rank();
    if (level == Level::kStatus) end_status();
    if (level == Level::kLost) end_missing();
    return true;
  }

  bool scalar(const RasScalar& value) {
    switch (levels_.empty() ? Level::kNone : levels_.back()) {
      case Level::kRoot:
        if (key_ == "nccl_version") out_.version = value.name();
        if (key_ == "timestamp") out_.local_ns = ras_time(value.name());
        if (key_ == "communicators_count") out_.comms_seen = value.count();
        break;
      case Level::kRas:
        if (key_ == "timeouts_count") out_.timeouts = value.count();
        break;
      case Level::kComm:
        comm_field(value);
        break;
      case Level::kComms:
      case Level::kRanks:
      case Level::kMissing:
        ++out_.dropped;
        break;
      case Level::kRank:
      case Level::kLost:
        member_field(value);
        break;
      case Level::kStatus:
        if (key_ == "init_state") status_.init = value.code;
        if (key_ == "async_error") status_.async = value.code;
        if (key_ == "finalize_called" || key_ == "destroy_flag") status_.ends |= value.flag;
        if (key_ == "abort_flag") status_.aborts = value.flag;
        break;
      case Level::kCounts:
        count_field(value);
        break;
      case Level::kLostStatus:
        if (key_ == "unresponsive") missing_.unresponsive = value.flag;
        if (key_ == "considered_dead") missing_.dead = value.flag;
        break;
      case Level::kNone:
      case Level::kOther:
        break;
    }
    return true;
  }

  void comm_field(const RasScalar& value) {
    RasComm& comm = out_.comms.back();
    if (key_ == "hash") comm.hash = value.hash();
    if (key_ == "secondary_hash") comm.secondary = value.name();
    if (key_ == "size") comm.size = value.count();
    if (key_ == "ranks_count") comm.reporting = value.count();
    if (key_ == "missing_ranks_count") comm.missing_ranks = value.count();
    if (key_ == "ranks" || key_ == "missing_ranks") ++out_.dropped;
  }

  void member_field(const RasScalar& value) {
    if (key_ == "rank") ids_.rank = value.number();
    if (key_ == "host") ids_.host = value.name();
    if (key_ == "pid") ids_.pid = value.number();
    if (key_ == "nvml_dev") ids_.device = value.number();
  }

  void count_field(const RasScalar& value) {
    const size_t at = function(key_, guess_++);
    if (at >= kRasFunctions || !value.natural)
      ++out_.dropped;
    else
      rank_.counts[at] = *value.natural;
  }

  size_t function(std::string_view name, size_t guess) {
    std::vector<std::string>& names = out_.functions;
    if (guess < names.size() && names[guess] == name) return guess;
    const auto known = std::find(names.begin(), names.end(), name);
    if (known != names.end()) return static_cast<size_t>(known - names.begin());
    if (names.size() >= kRasFunctions || name.empty() || name.size() >= limits::kNameBytes)
      return kRasFunctions;
    names.emplace_back(name);
    return names.size() - 1;
  }

  RasMember member() {
    const uint32_t process = ids_.pid == kRasUnknown ? kRasUnknown : processes_.index(ids_.host, ids_.pid);
    return {ids_.rank, process, ids_.device, kRasUnknown};
  }

  void end_status() {
    rank_.phase = status_.aborts      ? RasPhase::kAbort
                  : status_.ends      ? RasPhase::kFinalize
                  : status_.init == 0 ? RasPhase::kRunning
                                      : RasPhase::kInit;
    for (const int64_t code : {status_.async, status_.init})
      if (code > 0 && code < 64 && code != kRasInProgress) rank_.error = static_cast<int32_t>(code);
  }

  void end_rank() {
    if (ids_.rank == kRasUnknown) return void(++out_.dropped);
    rank_.member = member();
    out_.comms.back().ranks.push_back(rank_);
  }

  void end_missing() {
    if (ids_.rank == kRasUnknown) return void(++out_.dropped);
    missing_.member = member();
    out_.comms.back().missing.push_back(missing_);
    if (!missing_.unresponsive && !missing_.dead) return;
    const uint32_t process = missing_.member.process;
    const bool known = std::any_of(out_.exited.begin(), out_.exited.end(),
                                   [&](const RasExit& exited) { return exited.process == process; });
    if (!known && process != kRasUnknown && out_.exited.size() < limits::kRasExits)
      out_.exited.push_back({process, missing_.member.device, kRasUnknown, missing_.dead});
  }

  void end_comm() {
    RasComm& comm = out_.comms.back();
    if (comm.size > bounds_.size) {
      out_.comms.pop_back();
      return void(++out_.dropped);
    }
    comm.reporting = std::max<uint32_t>(comm.reporting, static_cast<uint32_t>(comm.ranks.size()));
    comm.missing_ranks = std::max<uint32_t>(comm.missing_ranks, static_cast<uint32_t>(comm.missing.size()));
    for (const RasRank& rank : comm.ranks) comm.errors += rank.error != 0;
  }

  struct Ids {
    uint32_t rank = kRasUnknown, pid = kRasUnknown, device = kRasUnknown;
    std::string host;
    void clear() {
      rank = pid = device = kRasUnknown;
      host.clear();
    }
  };
  struct RankStatus {
    int64_t init = 0, async = 0;
    bool ends = false, aborts = false;
  };

  RasAnswer& out_;
  const RasBounds& bounds_;
  RasProcessTable processes_;
  std::vector<Level> levels_;
  std::string key_;  // the last one
  Ids ids_;          // ids of the current rank
  RasRank rank_;
  RasMissing missing_;
  RankStatus status_;
  size_t guess_ = 0;  // next expected function: all ranks list functions in the same order
  size_t members_ = 0;
  bool known_ = false;
  std::optional<Error> failed_;
};

// Feeds the bytes of an answer to the parser as they arrive.
class RasBytes {
 public:
  RasBytes(std::string_view first, const NextBytes& next, size_t most, ReadBudget& budget)
      : now_(first), next_(next), most_(most), budget_(budget) {
    count(first.size());
  }

  bool ended() {
    while (now_.empty() && !ended_) {
      const HeapScope outside(nullptr);
      now_ = next_();
      ended_ = now_.empty();
      count(now_.size());
    }
    return now_.empty();
  }
  char byte() const { return now_.front(); }
  void skip() { now_.remove_prefix(1); }
  bool over() const { return over_; }

 private:
  void count(size_t bytes) {
    read_ += bytes;
    if (read_ > most_) now_ = {}, ended_ = over_ = true;
    budget_.add_read(now_.size());
  }

  std::string_view now_;
  const NextBytes& next_;
  const size_t most_;
  ReadBudget& budget_;
  size_t read_ = 0;
  bool ended_ = false, over_ = false;
};

struct RasByteIterator {
  using iterator_category = std::input_iterator_tag;
  using value_type = char;
  using difference_type = std::ptrdiff_t;
  using pointer = const char*;
  using reference = char;

  RasBytes* bytes = nullptr;  // null: the end
  char operator*() const { return bytes->byte(); }
  RasByteIterator& operator++() {
    bytes->skip();
    return *this;
  }
  RasByteIterator operator++(int) { return ++*this; }
  bool operator==(const RasByteIterator& other) const {
    return (!bytes || bytes->ended()) && (!other.bytes || other.bytes->ended());
  }
};

}  // namespace

Result<RasAnswer> parse_ras_json(std::string_view first, const NextBytes& next, const RasBounds& bounds) {
  ReadBudget budget(0, bounds.held);
  RasBytes bytes(first, next, bounds.bytes, budget);
  return budget.run([&]() -> Result<RasAnswer> {
    RasAnswer out;
    out.json = true;
    RasJson reader(out, bounds);
    nlohmann::json::sax_parse(RasByteIterator{&bytes}, RasByteIterator{}, &reader);
    const Status read = reader.finish();
    if (bytes.over()) return fail(ErrorCode::kLimit, "is larger than what is read");
    if (!read) return tl::unexpected(read.error());
    return out;
  });
}

}  // namespace culprit::ingest
