// Which issues fire, who hears of them, and when: one issue for each fault, whatever is said of it and how
// often. The book follows the verdicts that it is given and returns what is to be kept and sent.
//
// Pure: time is an argument. One thread. The caller keeps the changes of take() on the disk, and gives them
// back to load() at the next start.
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

// Who hears of what. An empty list: of all.
struct Route {
  std::string name;                                    // of the receiver
  std::vector<std::string> categories, actions, jobs;  // jobs: globs
  // Of these users' jobs alone, as Fault::user names them ("user 1000"); "*": of any known user's.
  std::vector<std::string> owners = {};
  double min_confidence = 0;
  bool resolved = true;  // also of the end
  bool groups = false;   // it groups alerts by itself, so storms do not concern it
  bool wants(const Fault& fault) const;
  // Whether faults of programs are left to their owner's receiver, where there is one.
  bool leaves_to_owner(const Fault& fault) const;
};

struct BookOptions {
  std::vector<Route> routes;
  size_t storm_above = 10;  // new issues in a minute
  TimeNs expire_after_ns = TimeNs{24} * 3600 * kNsPerSecond;
  std::vector<std::string> critical = {"hardware", "platform"};  // categories
  TimeNs remind_every_ns = 0;                                    // of what is not acknowledged; 0: never
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

// How a run of a job goes, as seen now.
struct RunNews {
  std::string job;
  uint32_t run = 0;
  bool running = false, well = false;  // well: it ended as planned
  std::optional<int64_t> iteration;
  std::string user = {};  // whose word alone this is: "user 1000"; empty: root's or the kernel's too
};

class AlertBook {
 public:
  // A run that goes on this long after its crash or hang has recovered: its last lines are no progress.
  static constexpr TimeNs kRecoveredAfter = 120 * kNsPerSecond;
  // How often a storm is sent again while it grows.
  static constexpr TimeNs kStormEvery = 60 * kNsPerSecond;
  static constexpr size_t kIssuesMax = 20'000;  // twice the runs that the index keeps
  static constexpr TimeNs kResolvedRetained = TimeNs{7} * 24 * 3600 * kNsPerSecond;
  static constexpr TimeNs kWindowRetained = TimeNs{30} * 24 * 3600 * kNsPerSecond;
  static constexpr size_t kStormNames = 20;
  static constexpr TimeNs kSilentLongest = TimeNs{30} * 24 * 3600 * kNsPerSecond;

  explicit AlertBook(BookOptions options) { set_options(std::move(options)); }
  // New receivers hear of what comes from now on.
  void set_options(BookOptions options);
  void load(std::vector<Issue> issues, std::vector<Window> windows);

  // The verdict of a run as it stands now; none: `why` it has none.
  void update(const std::string& job, uint32_t run, const std::optional<Fault>& fault, End why, TimeNs now);
  // What became of a message: the receiver took it, or it was given up.
  void settled(const std::string& receiver, const std::string& issue, bool dropped);
  // What the receiver now knows of the issue, and what of it was news.
  void delivered(const std::string& receiver, const std::string& issue, const Fault& fault,
                 std::string change);
  // The same kind of finding came again on a host: it fires what a person had called repaired.
  void found_again(const std::string& job, uint32_t run, const std::string& source, const std::string& host,
                   TimeNs now);

  // What a person does about an issue that fires, by its key. A storm has no fault that could be handled.
  Result<Issue> acknowledge(const std::string& key, const std::string& by, TimeNs now);
  // Until then; `now` or earlier ends a silence.
  Result<Issue> silence(const std::string& key, TimeNs until, const std::string& by, TimeNs now);
  Result<Issue> repaired(const std::string& key, const std::string& by, TimeNs now);

  // All runs that the engine knows, at intervals.
  void on_runs(const std::vector<RunNews>& runs, TimeNs now);
  // Ends windows, storms and old issues; at least every few seconds.
  void tick(TimeNs now);
  BookChanges take() { return std::exchange(changes_, {}); }

  // Gives it its id.
  Result<Window> add_window(Window window, TimeNs now);
  Result<Window> end_window(int64_t id, TimeNs now);

  const std::map<std::string, Issue>& issues() const { return issues_; }  // by key
  const std::map<int64_t, Window>& windows() const { return windows_; }   // by id
  const BookOptions& options() const { return options_; }
  std::vector<const Issue*> firing() const;
  size_t firing_count() const { return firing_.size(); }

  struct Counts {
    uint64_t issues = 0;    // since the start
    uint64_t silenced = 0;  // suppressed by windows, by receiver
    uint64_t held = 0;      // held by storms, by receiver
    uint64_t refused = 0;   // issues beyond kIssuesMax
  };
  const Counts& counts() const { return counts_; }

 private:
  using RunId = std::pair<std::string, uint32_t>;
  struct Progress {
    std::optional<int64_t> first, last;
    TimeNs since_ns = kNoTime, seen_ns = kNoTime;  // of the last advance and the first in a row
  };
  struct Storm {
    std::string key;                // of its issue; empty: none is on
    std::vector<std::string> held;  // keys in order
    uint64_t shown = 0;             // count in its newest message
  };

  // Of a receiver. What is grave has a bound of its own.
  struct Gates {
    StormGate grave, others;
    StormGate& of(const Fault& fault) { return is_grave(fault) ? grave : others; }
  };

  Issue* open_issue(const RunId& run);
  const Issue* last_closed(const RunId& run) const;
  void fire(Issue& issue, const Fault& fault, TimeNs now);
  void revise(Issue& issue, const Fault& fault, TimeNs now);
  void resolve(Issue& issue, End end, TimeNs now);
  void offer(Issue& issue, const Route& route, TimeNs now);
  void send(Issue& issue, const Route& route, Message::Kind kind, TimeNs now);
  bool hears(const Route& route, const Fault& fault) const;
  bool covered(const Fault& fault, TimeNs now) const;
  // By a window, or by a person.
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
  static bool may_resolve(const RunNews& news, const Fault& fault);
  const Route* route(const std::string& name) const;
  void note(const Issue& issue);

  BookOptions options_;
  std::map<std::string, Issue> issues_;
  std::set<std::string> firing_;                   // keys, also of storms
  std::map<RunId, std::set<std::string>> of_run_;  // keys
  std::map<int64_t, Window> windows_;
  std::map<std::string, Gates> gates_;  // by receiver
  std::map<std::string, Storm> storms_;
  std::map<RunId, Progress> progress_;
  std::set<RunId> running_;
  BookChanges changes_;
  Counts counts_;
  TimeNs forgot_ns_ = kNoTime;
};

}  // namespace culprit::alert
