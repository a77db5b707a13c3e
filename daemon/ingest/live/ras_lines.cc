#include "ingest/live/ras_lines.h"

#include <charconv>
#include <string>
#include <string_view>
#include <type_traits>

#include "base/limits.h"

namespace culprit::ingest {
namespace {

namespace dom = simdjson::dom;

constexpr size_t kRasLineGroups = 64, kRasLineProcesses = 4096;

// Reads members of one object; remembers the first wrong key.
class RasFields {
 public:
  RasFields(dom::object object, std::string& wrong) : object_(object), wrong_(wrong) {}

  template <class Number>
  void number(std::string_view key, Number& out) {
    dom::element value;
    if (!find(key, value)) return;
    if constexpr (std::is_same_v<Number, TimeNs>) {
      if (value.get_int64().get(out) != simdjson::SUCCESS) blame(key);
    } else {
      uint64_t read = 0;
      if (value.get_uint64().get(read) != simdjson::SUCCESS || read > std::numeric_limits<Number>::max())
        return blame(key);
      out = static_cast<Number>(read);
    }
  }
  void flag(std::string_view key, bool& out) {
    dom::element value;
    if (find(key, value) && value.get_bool().get(out) != simdjson::SUCCESS) blame(key);
  }
  void text(std::string_view key, std::string& out) {
    dom::element value;
    std::string_view read;
    if (!find(key, value)) return;
    if (value.get_string().get(read) != simdjson::SUCCESS || read.size() > limits::kNameBytes)
      return blame(key);
    out = read;
  }
  void hash(std::string_view key, uint64_t& out) {
    std::string digits;
    text(key, digits);
    const char* const end = digits.data() + digits.size();
    if (std::from_chars(digits.data(), end, out, 16).ptr != end) blame(key);
  }
  // Calls each(RasFields) for the objects of a list of at most `most`.
  template <class Each>
  void list(std::string_view key, size_t most, const Each& each) {
    dom::element value;
    dom::array entries;
    if (!find(key, value)) return;
    if (value.get_array().get(entries) != simdjson::SUCCESS || entries.size() > most) return blame(key);
    for (const dom::element entry : entries) {
      dom::object object;
      if (entry.get_object().get(object) != simdjson::SUCCESS) return blame(key);
      each(RasFields(object, wrong_));
    }
  }
  void refuse(std::string_view key) { blame(key); }

 private:
  bool find(std::string_view key, dom::element& value) {
    return object_.at_key(key).get(value) == simdjson::SUCCESS && !value.is_null();
  }
  void blame(std::string_view key) {
    if (wrong_.empty()) wrong_ = key;
  }

  dom::object object_;
  std::string& wrong_;
};

class RasLineReader {
 public:
  Result<RasState> read(dom::object object) {
    RasFields f(object, wrong_);
    std::string form;
    f.text("address", out_.address);
    f.text("version", out_.version);
    f.text("form", form);
    out_.json = form == "json";
    uint32_t user = kRasUnknown;
    f.number("user", user);
    if (user != kRasUnknown) out_.user = user;
    std::string pod;
    f.text("pod", pod);
    if (!pod.empty()) out_.user = Principal::pod(pod);
    f.number("answers", out_.answers);
    f.number("still", out_.still);
    f.number("still_since_ns", out_.still_since_ns);
    f.number("communicators", out_.comms_seen);
    f.number("ranks", out_.ranks);
    f.number("gone_processes", out_.exited_processes);
    f.number("dead_processes", out_.dead_processes);
    f.number("dropped", out_.dropped);
    f.list("processes", kRasLineProcesses, [&](RasFields p) {
      RasProcess& process = out_.processes.emplace_back();
      p.text("host", process.host);
      p.number("pid", process.pid);
    });
    f.list("gone", limits::kRasListed, [&](RasFields p) {
      RasExit& exited = out_.exited.emplace_back();
      p.number("process", exited.process);
      p.number("device", exited.device);
      p.number("world", exited.world);
      p.flag("dead", exited.dead);
      check_process(exited.process);
    });
    f.list("comms", limits::kRasCommsMax, [&](RasFields p) { read_comm(p, out_.comms.emplace_back()); });
    if (!wrong_.empty()) return fail(ErrorCode::kInvalid, "'" + wrong_ + "' has a wrong value");
    return std::move(out_);
  }

 private:
  void check_process(uint32_t process) {
    if (process != kRasUnknown && process >= out_.processes.size() && wrong_.empty()) wrong_ = "process";
  }
  void read_member(RasFields& f, RasMember& member) {
    f.number("rank", member.rank);
    f.number("process", member.process);
    f.number("device", member.device);
    f.number("world", member.world);
    check_process(member.process);
  }
  void read_groups(RasFields& f, std::string_view key, std::vector<RasGroup>& out) {
    f.list(key, kRasLineGroups, [&](RasFields g) {
      RasGroup& group = out.emplace_back();
      g.number("value", group.value);
      g.number("ranks", group.ranks);
      g.list("listed", limits::kRasListed, [&](RasFields m) { read_member(m, group.listed.emplace_back()); });
    });
  }
  void read_comm(RasFields& f, RasCommState& comm) {
    f.hash("hash", comm.hash);
    f.text("secondary", comm.secondary);
    f.number("size", comm.size);
    f.number("heard", comm.reporting);
    f.number("missing_ranks", comm.missing_ranks);
    f.number("errors", comm.errors);
    f.number("answers", comm.answers);
    f.number("since_ns", comm.since_ns);
    uint64_t ranks = 0, last = 0;
    f.list("members", limits::kRasRuns, [&](RasFields r) {
      RankList::Run run;
      r.number("first", run.first);
      r.number("step", run.step);
      r.number("count", run.count);
      const uint64_t end = run.first + uint64_t{run.step} * (run.count > 0 ? run.count - 1 : 0);
      const bool sound = run.count > 0 && run.step > 0 && end < limits::kCommRanks &&
                         (ranks == 0 || run.first > last) && (ranks += run.count) <= limits::kCommRanks;
      if (!sound) return r.refuse("members");
      last = end;
      comm.members.add(run);
    });
    f.list("missing", limits::kRasListed, [&](RasFields m) {
      RasMissing& missing = comm.missing.emplace_back();
      read_member(m, missing.member);
      m.flag("unresponsive", missing.unresponsive);
      m.flag("dead", missing.dead);
    });
    f.list("counts", kRasFunctions, [&](RasFields s) {
      RasSpread& spread = comm.spreads.emplace_back();
      s.text("function", spread.function);
      read_groups(s, "groups", spread.groups);
    });
    read_groups(f, "phases", comm.phases);
  }

  RasState out_;
  std::string wrong_;
};

}  // namespace

Result<RasState> read_ras_line(dom::object object) { return RasLineReader().read(object); }

}  // namespace culprit::ingest
