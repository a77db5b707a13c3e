// One plugin as a state machine: its process starts, runs, is replaced, ends. All failures (a crash, a hang,
// too much memory or processor time, malformed messages, an error) have one answer. The process group is
// killed, and the failure is counted and reported as a finding about the plugin. The plugin starts again
// after a wait that doubles. After kFailuresMax failures within kFailuresNs it is quarantined: until its file
// or table changes, or a reload.
//
// What a plugin raised ends where no instance knows of it any more: kPluginForgot says so. Its findings from
// before it is ready wait until then, as they are of the new instance.
//
// One thread. Time is an argument; `mono` never goes back.
#pragma once

#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "io/trusted_path.h"
#include "plughost/host_link.h"
#include "plughost/plugins.h"
#include "plughost/state_file.h"

namespace culprit::plughost {

class Supervisor {
 public:
  static constexpr size_t kFailuresMax = 5;  // within kFailuresNs: then it is quarantined
  static constexpr TimeNs kFailuresNs = 600 * kNsPerSecond;
  static constexpr TimeNs kFirstWaitNs = kNsPerSecond, kMostWaitNs = 60 * kNsPerSecond;

  struct Setup {
    PluginTable table;
    std::string path;
    const PluginsOptions* options = nullptr;  // borrowed
    std::function<void(PluginFinding&&)> found;
    PluginLog log;
  };
  explicit Supervisor(Setup setup);
  ~Supervisor();

  const std::string& name() const { return table_.name; }
  const std::string& path() const { return path_; }
  // As configured last.
  const PluginTable& table() const { return asked_; }
  // Why an earlier table is in effect: "keeps its earlier options: …". Empty: the requested table is in
  // effect.
  const std::string& keeps() const { return keeps_; }
  // Quarantined or refused: only a changed file or table, or a reload, starts it again.
  bool gave_up() const { return state_ == State::kQuarantined || state_ == State::kRefused; }

  // Starts the plugin. If it runs, the new file or table takes over, with the state, once it has loaded
  // successfully.
  void start(TimeNs mono);
  void replace(std::string path, PluginTable table, bool other_file, TimeNs mono);
  // Lets the plugin save its state and exit. The state is kept only if the daemon ends.
  enum class End : uint8_t { kOfDaemon, kRemoved, kDisabled };
  void stop(End why, TimeNs mono);
  bool is_over() const { return state_ == State::kOver; }

  // Event kinds that the plugin wants now; 0: send none.
  uint64_t wanted() const;
  void observe(std::string_view events);
  // Sends and receives what is possible, and handles expired timers. Returns the time of the next call.
  TimeNs round(TimeNs wall, TimeNs mono);
  void add_descriptors(std::vector<pollfd>& out) const;
  PluginRow row() const;

 private:
  enum class State : uint8_t {
    kStarting,  // no detector yet
    kRunning,
    kEnding,   // asked for its state
    kDying,    // killed, and not gone yet
    kWaiting,  // for the next start
    kQuarantined,
    kRefused,  // the library or its options are wrong
    kOver,
  };
  struct Failure {
    std::string kind;  // "crashed": the finding's id is culprit.plugin.crashed
    std::string why;
  };
  // A process and what is known of it.
  struct Instance {
    std::unique_ptr<HostLink> link;
    std::optional<Description> description;
    uint64_t answered = 0;  // messages
    TimeNs waiting_since = kNoTime;
    TimeNs next_tick = kNoTime;
    bool tick_pending = false, ready = false, gave_state = false;
    uint64_t findings_dropped = 0;
    std::vector<PluginFinding> early;  // before it was ready
  };
  struct Sample {
    TimeNs mono = 0;
    uint64_t cpu_ns = 0;
  };

  Result<Instance> launch(TimeNs mono);
  void refuse(const std::string& why);
  void discard(Instance& instance);
  void receive(MessageKind kind, std::string_view payload);
  Status check_hello(std::string_view payload, Instance& of, OptionValues& options) const;
  void hello(std::string_view payload);
  void create(const OptionValues& options);
  void ready(std::string_view payload);
  void keep_options(const std::string& why);
  void finding(std::string_view payload);
  void done(std::string_view payload);
  void log_line(uint32_t severity, std::string_view text);
  void candidate_round();
  void drop_candidate(const std::string& why);

  void exchange();
  void check_deadline();
  void sample();
  void tick_if_due();
  void fail_with(Failure failure);
  void reap_if_ended();
  void reaped(const std::string& how);
  void end();
  void count_failure(Failure failure);
  void release_pending();
  void release_early(Instance& of);
  void forget();
  void say_end(int pid) const;
  void report(std::string_view id, std::string_view title, std::string text,
              PluginState state = PluginState::kHappened);
  void new_minute();

  PluginTable table_, asked_;  // in effect, and as configured last
  std::string keeps_;
  std::string path_;
  const PluginsOptions& options_;
  const std::function<void(PluginFinding&&)> found_;
  const PluginLog log_;
  const StateFile state_file_;

  State state_ = State::kWaiting;
  std::string reason_;
  TimeNs wall_ = kNoTime, mono_ = 0;   // of this round
  Instance current_;                   // its link is null while no process runs
  std::optional<Instance> candidate_;  // of a changed file
  OptionValues candidate_options_;
  std::vector<std::unique_ptr<HostLink>> discarded_;  // killed, and not gone yet
  Description description_;                           // of the instance that ran last
  std::string saved_;                                 // state of the instance that ended
  std::optional<End> stopping_;
  std::string replaced_;            // version of the instance that the next one replaces; empty: none
  std::optional<Failure> failure_;  // while dying
  std::deque<TimeNs> failures_;
  bool replacing_ = false;  // the old instance is ending; pending_ has events for the new one
  std::string pending_;
  size_t pending_count_ = 0;
  std::string raised_;  // finding to end once the plugin runs: "refused", "quarantined"
  TimeNs resume_at_ = kNoTime;

  std::deque<Sample> samples_;
  TimeNs next_sample_ = 0;
  bool withheld_ = false;  // over its processor time
  TimeNs minute_ = 0, flood_reported_ = kNoTime;
  uint64_t findings_of_minute_ = 0, lines_of_minute_ = 0;
  uint64_t starts_ = 0, failures_total_ = 0, events_ = 0, dropped_ = 0, findings_ = 0, findings_dropped_ = 0,
           lines_dropped_ = 0, cpu_before_ns_ = 0;
  HostLink::Use use_;
};

}  // namespace culprit::plughost
