// State of alerting that survives a restart, in one SQLite file of the state folder: issues, messages
// queued for receivers, maintenance windows. Values are opaque texts, whose format the calling modules
// define.
//
// One thread owns an AlertStore. Each call is one transaction. Errors (a full disk) leave it usable. A
// damaged file is renamed at the start, and a new one is created.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/status.h"
#include "base/time.h"
#include "store/database.h"

namespace culprit::store {

struct StoredIssue {
  std::string key, text;
};
struct StoredMessage {
  int64_t row = 0;
  std::string id, receiver, issue;
  int kind = 0;
  TimeNs created_ns = kNoTime;
  std::string body;
};
struct StoredWindow {
  int64_t id = 0;
  std::string text;
};

struct StoredReceiver {
  std::string name, text;
};

struct AlertChanges {
  std::vector<StoredIssue> issues;
  std::vector<std::string> issues_removed;
  std::vector<StoredMessage> messages;
  std::vector<int64_t> messages_removed;  // rows
  std::vector<StoredWindow> windows;
  std::vector<int64_t> windows_removed;
  std::vector<StoredReceiver> receivers;
  std::vector<std::string> receivers_removed;
  TimeNs seen_until_ns = kNoTime;  // verdicts before this time were looked at
  bool empty() const {
    return issues.empty() && issues_removed.empty() && messages.empty() && messages_removed.empty() &&
           windows.empty() && windows_removed.empty() && receivers.empty() && receivers_removed.empty() &&
           seen_until_ns == kNoTime;
  }
};

struct StoredAlerts {
  std::vector<StoredIssue> issues;
  std::vector<StoredMessage> messages;  // in order of rows
  std::vector<StoredWindow> windows;
  std::vector<StoredReceiver> receivers;
  TimeNs seen_until_ns = kNoTime;  // none: a new file
};

class AlertStore {
 public:
  static Result<std::unique_ptr<AlertStore>> open(const std::string& path);
  const std::string& moved_aside() const { return database_.moved_aside(); }

  Result<StoredAlerts> load();
  Status apply(const AlertChanges& changes);

 private:
  explicit AlertStore(const std::string& path);
  Status write(const AlertChanges& changes);

  Database database_;
};

}  // namespace culprit::store
