// Decides which issues fire, which receivers are notified, and when. One fault is one issue, however many
// reports it has. The book tracks the verdicts given to it, and returns what to store and send.
//
// Pure: time is an argument. One thread. The caller stores the changes from take() on disk, and passes them
// to load() at the next start.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/status.h"
#include "base/time.h"
#include "core/alert/identity.h"
#include "core/alert/maintenance.h"
#include "core/alert/storm_gate.h"
#include "model/alert.h"

namespace culprit::alert {

// Filter of one receiver. An empty list matches all.
struct Route {
  std::string name;                                    // the receiver's name
  std::vector<std::string> categories, actions, jobs;  // jobs: globs
  // Only jobs of these users, as in Fault::user ("user 1000"); "*": of any known user.
  std::vector<std::string> owners = {};
  double min_confidence = 0;
  bool resolved = true;  // also notify when an issue ends
  bool groups = false;   // the receiver groups alerts itself, so storms do not apply
  bool wants(const Fault& fault) const;
  // Whether program faults are sent only to their owner's receiver, if one exists.
  bool leaves_to_owner(const Fault& fault) const;
};

struct BookOptions {
  std::vector<Route> routes;
  size_t storm_above = 10;  // new issues in a minute
  TimeNs expire_after_ns = TimeNs{24} * 3600 * kNsPerSecond;
  std::vector<std::string> critical = {"hardware", "platform"};  // categories
  TimeNs remind_every_ns = 0;                                    // repeats unacknowledged issues; 0: never
};

// What changed since the last call.
struct BookChanges {
  std::vector<Issue> issues;           // new or changed
  std::vector<std::string> forgotten;  // keys of issues
  std::vector<Message> messages;       // to be sent, in order
  std::vector<Window> windows;
  std::vector<int64_t> windows_forgotten;
  bool empty() const {
    return issues.empty() && forgotten.empty() && messages.empty() && windows.empty() &&
           windows_forgotten.empty();
  }
};

// The current state of a run of a job.
struct RunNews {
  std::string job;
  uint32_t run = 0;
  bool running = false, well = false;  // well: it ended as planned
  std::optional<int64_t> iteration;
  std::string user = {};      // the only source: "user 1000"; empty: root or the kernel too
  uint32_t attempt = 0;       // the latest attempt of a job that runs again, from 1; 0: no such job
  bool attempt_well = false;  // this attempt ended well
};

class AlertBook {
 public:
  // A run that continues this long after its crash or hang has recovered; earlier progress may be its last
  // lines.
  static constexpr TimeNs kRecoveredAfter = 120 * kNsPerSecond;
  // A crash of an attempt waits so long for the decision whether another one follows; it is one message then.
  static constexpr TimeNs kDecisionWithin = 60 * kNsPerSecond;
  // Interval at which a growing storm is sent again.
  static constexpr TimeNs kStormEvery = 60 * kNsPerSecond;
  static constexpr size_t kIssuesMax = 20'000;  // twice the runs in the index
  static constexpr TimeNs kResolvedRetained = TimeNs{7} * 24 * 3600 * kNsPerSecond;
  static constexpr TimeNs kWindowRetained = TimeNs{30} * 24 * 3600 * kNsPerSecond;
  static constexpr size_t kStormNames = 20;
  static constexpr TimeNs kSilentLongest = TimeNs{30} * 24 * 3600 * kNsPerSecond;

  explicit AlertBook(BookOptions options) { set_options(std::move(options)); }
  // New receivers are notified only of later issues.
  void set_options(BookOptions options);
  void load(std::vector<Issue> issues, std::vector<Window> windows);

  // The current verdict of a run; none: `why` states the reason.
  void update(const std::string& job, uint32_t run, const std::optional<Fault>& fault, End why, TimeNs now);
  // The result of sending a message: the receiver accepted it, or sending was abandoned.
  void settled(const std::string& receiver, const std::string& issue, bool dropped);
  // Records what the receiver now knows about the issue, and which part was news.
  void delivered(const std::string& receiver, const std::string& issue, const Fault& fault,
                 std::string change);
  // The same kind of finding recurred on a host: an issue that a person marked as repaired fires again.
  void found_again(const std::string& job, uint32_t run, const std::string& source, const std::string& host,
                   TimeNs now);

  // A question of the controller (fault.decision): an issue of its own, which no progress ends. Receivers get
  // it by their filters, also where they get no program faults.
  void ask(const Fault& question, TimeNs now);
  // Ends it. `by`: who answered; empty: no person did.
  void answered(const std::string& decision, End end, const std::string& by, TimeNs now);
  std::vector<std::string> asked() const;  // decisions

  // A person's actions on a firing issue, by its key. A storm has no fault to act on.
  Result<Issue> acknowledge(const std::string& key, const std::string& by, TimeNs now);
  // Silences until this time; `now` or earlier ends a silence.
  Result<Issue> silence(const std::string& key, TimeNs until, const std::string& by, TimeNs now);
  Result<Issue> repaired(const std::string& key, const std::string& by, TimeNs now);

  // Takes all runs that the engine knows; called at intervals.
  void on_runs(const std::vector<RunNews>& runs, TimeNs now);
  // Ends windows, storms and old issues; call at least every few seconds.
  void tick(TimeNs now);
  BookChanges take() { return std::exchange(changes_, {}); }

  // Assigns the window's id.
  Result<Window> add_window(Window window, TimeNs now);
  Result<Window> end_window(int64_t id, TimeNs now);

  const std::map<std::string, Issue>& issues() const { return issues_; }  // by key
  const std::map<int64_t, Window>& windows() const { return windows_; }   // by id
  const BookOptions& options() const { return options_; }
  std::vector<const Issue*> firing() const;
  // Runs with a crash that waits for a decision: update() is due each second.
  using RunId = std::pair<std::string, uint32_t>;
  const std::map<RunId, TimeNs>& undecided() const { return undecided_; }

  struct Counts {
    uint64_t issues = 0;    // since the start
    uint64_t silenced = 0;  // suppressed by windows, by receiver
    uint64_t held = 0;      // held by storms, by receiver
    uint64_t refused = 0;   // issues beyond kIssuesMax
  };
  const Counts& counts() const { return counts_; }

 private:
  struct Progress {
    std::optional<int64_t> first, last;
    TimeNs since_ns = kNoTime, seen_ns = kNoTime;  // of the first advance in a row, and of the last
  };
  struct Storm {
    std::string key;                // of the storm's issue; empty: no storm
    std::vector<std::string> held;  // keys in order
    uint64_t shown = 0;             // count in its newest message
  };

  // Gates of one receiver. Grave issues have a separate limit.
  struct Gates {
    StormGate grave, others;
    StormGate& of(const Fault& fault) { return is_grave(fault) ? grave : others; }
  };

  bool awaits_decision(const RunId& run, const Issue* open, const Fault& fault, TimeNs now);
  Issue* open_issue(const RunId& run);
  const Issue* last_closed(const RunId& run) const;
  void fire(Issue& issue, const Fault& fault, TimeNs now);
  void revise(Issue& issue, const Fault& fault, TimeNs now);
  void resolve(Issue& issue, End end, TimeNs now);
  void offer(Issue& issue, const Route& route, TimeNs now);
  void send(Issue& issue, const Route& route, Message::Kind kind, TimeNs now);
  bool hears(const Route& route, const Fault& fault) const;
  bool covered(const Fault& fault, TimeNs now) const;
  // Whether a window or a person suppresses the issue.
  bool silent(const Issue& issue, TimeNs now) const;
  Severity severity_of(const Fault& fault) const;
  Result<Issue*> handled(const std::string& key);
  void end_silence(Issue& issue, TimeNs now);
  void remind(Issue& issue, TimeNs now);
  void count_silenced(const Fault& fault, TimeNs now);
  void hold(Issue& issue, const Route& route, TimeNs now);
  void recount(const std::string& receiver);
  void release(const Route& route, TimeNs now);
  void tick_storm(const Route& route, TimeNs now);
  void tick_issue(Issue& issue, TimeNs now);
  void forget_old(TimeNs now);
  void follow(const RunNews& news, TimeNs now);
  const Route* route(const std::string& name) const;
  void note(const Issue& issue);

  BookOptions options_;
  std::map<std::string, Issue> issues_;
  std::set<std::string> firing_;                   // including storms
  std::map<RunId, std::set<std::string>> of_run_;  // keys
  std::map<int64_t, Window> windows_;
  std::map<std::string, Gates> gates_;  // by receiver
  std::map<std::string, Storm> storms_;
  std::map<RunId, Progress> progress_;
  std::map<RunId, TimeNs> undecided_;  // since when
  std::set<RunId> running_;
  BookChanges changes_;
  Counts counts_;
  TimeNs forgot_ns_ = kNoTime;
};

}  // namespace culprit::alert
