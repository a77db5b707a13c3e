// Sends alerts: follows the verdicts of runs, stores issues and messages on the disk before sending them, and
// passes messages to their receivers. OTLP's records and metrics take the same path.
//
// Thread: the loop's, also for callbacks. Owns a worker for the disk and one for each receiver; the loop
// never waits for them. Borrows its parts, which outlive it.
#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "app/config/config.h"
#include "app/daemon/alerts/alert_delivery.h"
#include "app/daemon/alerts/alert_faults.h"
#include "app/daemon/alerts/verdict_feed.h"
#include "app/daemon/engine/engine_worker.h"
#include "app/daemon/self/error_report.h"
#include "app/daemon/self/self_watch.h"
#include "core/alert/alert_book.h"
#include "io/env.h"
#include "respond/outbox.h"
#include "store/alert_store.h"

namespace culprit::app {

struct AlertServiceOptions {
  const Config* config = nullptr;
  VerdictFeed* verdicts = nullptr;
  EngineWorker* engine = nullptr;
  std::function<void(const std::string&)> report_error, inform;  // write to the log
  // The text of GET /metrics, for OTLP; may be empty.
  std::function<void(std::function<void(std::string)>)> metrics = {};
  TimeNs started_ns = 0;
  // One delivery attempt, on the receiver's worker. Receivers of a simulation refuse, hang and answer late,
  // without a network and in simulated time.
  std::function<DeliveryOutcome(const DeliveryOrder&)> deliver = app::deliver;
  SelfWatch* watch = nullptr;  // borrowed; records whether the alert file works
};

class AlertService {
 public:
  // Blocks while the alert file is opened and read.
  static Result<std::unique_ptr<AlertService>> open(io::Env& env, AlertServiceOptions options);
  ~AlertService();

  // Call after the events are in the records.
  void on_events(const std::vector<LiveEvent>& events);
  void on_verdicts(std::span<const RunVerdict> verdicts);  // subscriber of the feed
  // The controller's open questions (Fault::decision), each an alert of its own. Others end, as
  // `end_of` says.
  struct QuestionEnd {
    alert::End end = alert::End::kMoot;
    std::string by;  // who answered; empty: no person did
  };
  void on_questions(std::span<const alert::Fault> open,
                    const std::function<QuestionEnd(const std::string& decision)>& end_of);
  // The engine has ingested all data from before the start. Processes the changes that the previous process
  // had not handled when it ended.
  void restored();
  void reload();
  // Writes unwritten changes to the disk, then calls `done`. Sends no more messages.
  void stop(std::function<void()> done);

  // Sends a test to the receiver, or to all, and answers in plain words: the receiver, whether it accepted
  // the test, and its answer.
  struct Tested {
    std::string receiver, sentence;
    bool sent = false;
  };
  void test(const std::string& receiver, std::function<void(Result<std::vector<Tested>>)> answer);
  // A person's action on an issue, by the issue's key.
  Result<alert::Issue> acknowledge(const std::string& key, const std::string& by);
  Result<alert::Issue> silence(const std::string& key, TimeNs for_ns, const std::string& by);
  Result<alert::Issue> repaired(const std::string& key, const std::string& by);
  Result<alert::Window> add_window(alert::Window window);
  Result<alert::Window> end_window(int64_t id);

  const alert::AlertBook& book() const { return book_; }
  const respond::Outbox& outbox() const { return outbox_; }
  const Config& config() const { return *options_.config; }
  // Why alerts are late or lost now; empty: no problem.
  std::vector<std::string> troubles() const;
  struct Counters {
    uint64_t resent = 0;        // firing alerts sent again to Alertmanagers
    uint64_t store_failed = 0;  // writes to the disk
  };
  const Counters& counters() const { return counters_; }

 private:
  struct Channel {
    std::unique_ptr<io::Worker> worker;
    bool busy = false;
    TimeNs resent_ns = kNoTime;  // last resend to an Alertmanager
    ErrorReport error_report;
  };

  AlertService(io::Env& env, AlertServiceOptions options);
  Status load(const std::string& state_dir);
  alert::BookOptions book_options() const;
  std::vector<std::string> receivers() const;
  void record(const LiveEvent& event);
  void found(const LiveEvent& event);
  void add(alert::Message message);
  void keep_receivers();
  void flush();
  void write();
  void written(const Status& status);
  void beat();
  void follow_runs();
  void export_metrics();
  void kick_all();
  void kick(const AlertConfig& receiver, bool otlp);
  Channel* channel(const std::string& receiver);
  std::vector<alert::Issue> active(const AlertConfig& receiver, Channel& channel);
  std::string change_of(const alert::Message& message) const;
  void begin(Channel& channel, DeliveryOrder order);
  void delivered(const DeliveryOrder& order, const DeliveryOutcome& outcome);
  DeliveryOrder order_for(const AlertConfig& receiver, bool otlp) const;
  TimeNs wall() const { return env_.now(io::Clock::kWall); }
  TimeNs mono() const { return env_.now(io::Clock::kMonotonic); }

  io::Env& env_;
  const AlertServiceOptions options_;
  alert::AlertBook book_;
  respond::Outbox outbox_;
  std::shared_ptr<store::AlertStore> store_;  // worker only
  store::AlertChanges unwritten_;
  bool writing_ = false;
  int64_t stored_row_ = 0;  // messages up to this row are on the disk, or cannot be stored
  int64_t last_row_ = 0, writing_row_ = 0;
  TimeNs seen_until_ns_ = kNoTime, seen_written_ns_ = kNoTime;  // seen_written_ns_: monotonic
  TimeNs write_after_ns_ = kNoTime;                             // monotonic: next write after a failure
  bool stopping_ = false, following_ = false;
  std::function<void()> stopped_;
  TimeNs followed_ns_ = kNoTime, exported_ns_ = kNoTime;  // monotonic
  std::map<std::string, Channel> channels_;
  std::map<std::string, respond::Outbox::Past> pasts_;  // as stored on the disk
  ErrorReport store_error_;
  std::string store_trouble_;
  Counters counters_;
  const std::shared_ptr<std::atomic<bool>> stop_ = std::make_shared<std::atomic<bool>>(false);
  std::unique_ptr<io::Timer> timer_;
  std::unique_ptr<io::Worker> disk_;
};

}  // namespace culprit::app
