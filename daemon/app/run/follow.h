// Follows the verdicts of a run's private daemon while the command runs, on a separate thread. After a
// verdict it fetches the daemon's report and wakes the owner through a descriptor.
#pragma once

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "app/client.h"

namespace culprit::app {

class Follow {
 public:
  Follow(std::string server, std::string job);
  // Does not wait for the daemon: end the daemon first.
  ~Follow();
  Follow(const Follow&) = delete;

  // Readable when there is a new report.
  int descriptor() const { return wake_; }
  // The daemon's report of the last verdict, unchanged; nothing: no new report since the last call.
  std::optional<std::string> take();
  // Whether the daemon answered at least once.
  bool reached() const { return reached_; }

 private:
  void run();
  bool take_event(Client& client, const ServerEvent& event);
  bool pause(int ms);

  const std::string server_, job_;
  int wake_ = -1;
  std::atomic<bool> reached_ = false;
  std::mutex mutex_;
  std::condition_variable ends_changed_;
  bool ends_ = false;
  std::optional<std::string> report_;
  std::thread thread_;
};

}  // namespace culprit::app
