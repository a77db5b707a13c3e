#include "app/sweep/coordinator.h"

#include <fmt/format.h>
#include <poll.h>

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "base/clock.h"
#include "base/text.h"
#include "core/sweep/schedule.h"

namespace culprit::app::sweeping {
namespace {

using sweep::PairAnswer;
using sweep::PairRun;

constexpr TimeNs kHelloWithin = 2 * kNsPerSecond;
constexpr TimeNs kTellWithin = kNsPerSecond;
constexpr TimeNs kMargin = 2 * kNsPerSecond;  // for a member's answer, beyond what the pair may take
constexpr double kDisturbed = 0.1;            // of a transfer, waiting for a processor
constexpr double kTransferLeast = 0.02;       // of a transfer, however long its members waited
constexpr int kPairLimits = 6;                // connect and wait twice, and two directions

struct Member {
  Wire wire;
  Hello hello;
  bool silent = false;       // it did not report in time
  std::optional<Done> done;  // of the task under way
  bool is_open() const { return wire.is_open(); }
};

sweep::Flow flow_of(const std::optional<Done>& receiver, const std::optional<Done>& sender) {
  sweep::Flow out;
  if (!receiver || receiver->answer != Done::Answer::kMeasured) return out;
  out.measured = receiver->measured && receiver->took_ns > 0;
  out.bytes = receiver->bytes;
  out.wrong = receiver->wrong;
  if (!out.measured) return out;
  const auto took = static_cast<double>(receiver->took_ns);
  // Buffers between the two let one go on while the other waits.
  const auto waited =
      static_cast<double>(std::max(receiver->waited_in_ns, sender ? sender->waited_out_ns : 0));
  const double bytes = static_cast<double>(receiver->bytes) * kNsPerSecond;
  out.disturbed = waited > kDisturbed * took;
  out.rate = bytes / took;
  out.most = bytes / std::max(took - waited, kTransferLeast * took);
  return out;
}

class Coordinator {
 public:
  Coordinator(Listener& listener, const SweepOptions& options)
      : listener_(listener), options_(options), began_ns_(steady_now()) {}

  Result<SweepResult> run() {
    collect();
    result_.members.resize(options_.size);
    for (uint32_t rank = 0; rank < options_.size; ++rank) {
      SweepMember& row = result_.members[rank];
      row.rank = rank;
      const auto at = by_rank_.find(rank);
      row.joined = at != by_rank_.end();
      if (!row.joined) {
        row.why = fmt::format("it did not join within {}", format_duration(options_.join_within_ns));
        continue;
      }
      row.host = at->second.hello.host;
      row.why = at->second.hello.busy;
      if (!row.why.empty()) continue;
      result_.ranks.push_back(rank);
      members_.push_back(std::move(at->second));
    }
    if (members_.size() < 2) {
      end_all();
      const auto absent =
          std::ranges::find_if(result_.members, [](const SweepMember& row) { return !row.why.empty(); });
      return fail(ErrorCode::kNotFound,
                  fmt::format("{} of {} can take part, and two are needed; rank {}: {}",
                              counted(members_.size(), "member"), options_.size, absent->rank, absent->why));
    }
    measure();
    result_.verdict = sweep::judge_sweep(number_of_members(), result_.runs);
    end_all();
    for (size_t i = 0; i < members_.size(); ++i) {
      SweepMember& row = result_.members[result_.ranks[i]];
      row.lost = !members_[i].is_open() || members_[i].silent;
      if (row.lost) row.why = members_[i].silent ? "it stopped answering" : "its process ended";
    }
    result_.took_ns = steady_now() - began_ns_;
    return std::move(result_);
  }

 private:
  uint32_t number_of_members() const { return static_cast<uint32_t>(members_.size()); }

  void progress(const std::string& text) const {
    if (options_.progress) options_.progress(text);
  }

  void collect() {
    const TimeNs until = began_ns_ + options_.join_within_ns;
    while (by_rank_.size() < options_.size) {
      progress(fmt::format("{} of {} joined", by_rank_.size(), counted(options_.size, "member")));
      auto wire = listener_.accept(options_.secret, 0, until);
      if (!wire) return;
      const auto message = wire->next_message(std::min(until, steady_now() + kHelloWithin));
      const Hello* hello = message ? std::get_if<Hello>(&*message) : nullptr;
      if (!hello || hello->rank >= options_.size) continue;
      // Of two with one rank the first counts.
      by_rank_.try_emplace(hello->rank, Member{std::move(*wire), *hello, false, std::nullopt});
    }
  }

  void measure() {
    uint32_t number = 0;
    const auto rounds = sweep::sweep_rounds(number_of_members());
    for (const sweep::Round& round : rounds) {
      if (is_over()) return;
      progress(fmt::format("round {} of {}", number + 1, rounds.size()));
      run_round(round, number++, false);
    }
    for (uint32_t again = 0; !is_over(); ++again) {
      const sweep::Round round = sweep::follow_up(number_of_members(), result_.runs, again);
      if (round.empty()) return;
      progress(fmt::format("round {}: pairs that stood out, again", number + 1));
      run_round(round, number++, true);
    }
  }

  bool is_over() {
    if (steady_now() - began_ns_ < options_.total_ns) return false;
    return result_.cut = true;
  }

  bool is_asked(uint32_t member) const { return members_[member].is_open() && !members_[member].silent; }

  // The address of one member as another reaches it.
  std::string address_of(uint32_t member, uint32_t from) const {
    const Member& one = members_[member];
    if (!one.hello.address.empty()) return one.hello.address;
    // The member in this process comes over the loopback: others reach it as they reach the coordinator.
    if (result_.ranks[member] == 0 && members_[from].is_open()) return members_[from].wire.own_address();
    return one.is_open() ? one.wire.peer_address() : addresses_.at(member);
  }

  void tell(uint32_t member, const Message& message) {
    if (!members_[member].wire.send(message, steady_now() + kTellWithin)) members_[member].wire.close();
  }

  void run_round(const sweep::Round& round, uint32_t number, bool quiet) {
    for (uint32_t i = 0; i < members_.size(); ++i)
      if (members_[i].is_open()) addresses_[i] = members_[i].wire.peer_address();
    std::map<uint64_t, PairRun> pairs;
    for (const auto& [a, b] : round) {
      const uint64_t id = ++last_id_;
      pairs[id] = {a, b, number, quiet, PairAnswer::kNoReport, {}, {}, kNoTime};
      members_[a].done.reset();
      members_[b].done.reset();
      // Who is asked for nothing is connected to: then its host answers, or not. Else the roles change.
      const bool a_connects = !is_asked(b) || (is_asked(a) && number % 2 == 0);
      const uint32_t from = a_connects ? a : b, to = a_connects ? b : a;
      Task task{id, false, "", 0, options_.bytes, static_cast<uint32_t>(options_.pair_ns / kNsPerMs)};
      if (is_asked(to)) tell(to, task);
      task.connects = true;
      task.address = address_of(to, from);
      task.port = members_[to].hello.port;
      if (is_asked(from)) tell(from, task);
    }
    await(pairs);
    for (auto& [id, run] : pairs) result_.runs.push_back(run_of(run));
  }

  void await(const std::map<uint64_t, PairRun>& pairs) {
    const TimeNs until = steady_now() + kPairLimits * options_.pair_ns + kMargin;
    std::map<uint32_t, uint64_t> waiting;
    for (const auto& [id, run] : pairs)
      for (const uint32_t member : {run.a, run.b})
        if (is_asked(member)) waiting[member] = id;
    while (!waiting.empty() && steady_now() < until) {
      std::vector<pollfd> descriptors;
      std::vector<uint32_t> order;
      for (const auto& [member, id] : waiting) {
        descriptors.push_back({members_[member].wire.get(), POLLIN, 0});
        order.push_back(member);
      }
      const TimeNs left = std::max<TimeNs>(until - steady_now(), 0);
      if (::poll(descriptors.data(), descriptors.size(), static_cast<int>(left / kNsPerMs + 1)) <= 0)
        continue;
      for (size_t i = 0; i < order.size(); ++i)
        if (descriptors[i].revents != 0 && hear(order[i], waiting[order[i]])) waiting.erase(order[i]);
    }
    for (const auto& [member, id] : waiting) members_[member].silent = true;
  }

  // Reads what has come. True: the member is done, or is lost.
  bool hear(uint32_t number, uint64_t id) {
    Member& member = members_[number];
    do {
      // A poll said that bytes are there; a line that comes in parts is finished at once.
      const auto message = member.wire.next_message(steady_now() + kTellWithin);
      const Done* done = message ? std::get_if<Done>(&*message) : nullptr;
      if (!done) return member.wire.close(), true;
      if (done->id == id) return member.done = *done, true;
    } while (member.wire.has_message());
    return false;
  }

  PairRun run_of(PairRun run) const {
    const auto& a = members_[run.a].done;
    const auto& b = members_[run.b].done;
    const auto is = [](const std::optional<Done>& done, Done::Answer answer) {
      return done && done->answer == answer;
    };
    if (is(a, Done::Answer::kMeasured) || is(b, Done::Answer::kMeasured)) {
      run.answer = PairAnswer::kMeasured;
      run.to_b = flow_of(b, a);
      run.to_a = flow_of(a, b);
      for (const auto& done : {a, b})
        if (done && done->latency_ns != kNoTime) run.latency_ns = done->latency_ns;
      return run;
    }
    // A member that is silent may be stopped: only the network's answer counts. One whose process ended says
    // nothing.
    const bool unreached = is(a, Done::Answer::kUnreached) || is(b, Done::Answer::kUnreached);
    const bool lost = !members_[run.a].is_open() || !members_[run.b].is_open();
    if ((a && b) || (unreached && !lost)) run.answer = PairAnswer::kNotReached;
    return run;
  }

  void end_all() {
    std::map<uint32_t, End> named;
    for (const sweep::SweepFinding& f : result_.verdict.findings)
      if (f.of == sweep::SweepFinding::Of::kHost)
        named.try_emplace(f.members[0], End{true, f.trouble, f.bad, f.tried, f.figure, f.usual});
    for (uint32_t i = 0; i < members_.size(); ++i) {
      const auto at = named.find(i);
      if (members_[i].is_open()) tell(i, at == named.end() ? End{} : at->second);
    }
    for (auto& [rank, member] : by_rank_)
      if (member.is_open()) (void)member.wire.send(End{}, steady_now() + kTellWithin);
  }

  Listener& listener_;
  const SweepOptions& options_;
  const TimeNs began_ns_;
  std::map<uint32_t, Member> by_rank_;  // until the sweep begins; then those that take no part
  std::vector<Member> members_;
  std::map<uint32_t, std::string> addresses_;  // as last seen
  uint64_t last_id_ = 0;
  SweepResult result_;
};

}  // namespace

Result<SweepResult> coordinate(Listener& listener, const SweepOptions& options) {
  return Coordinator(listener, options).run();
}

}  // namespace culprit::app::sweeping
