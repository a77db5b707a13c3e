// What alerts must remember over a restart, one SQLite file in the state folder: issues, messages that wait
// for their receivers, maintenance windows. Values are opaque texts; the rooms that make them know their
// forms.
//
// One thread owns it. Each call is one transaction, all or nothing. Errors (a full disk) leave it usable. A
// damaged file is renamed at the start, and a new one created.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/status.h"
#include "base/time.h"
#include "store/database.h"

namespace culprit::store {

struct KeptIssue {
  std::string key, text;
};
struct KeptMessage {
  int64_t row = 0;
  std::string id, receiver, issue;
  int kind = 0;
  TimeNs created_ns = kNoTime;
  std::string body;
};
struct KeptWindow {
  int64_t id = 0;
  std::string text;
};

struct KeptReceiver {
  std::string name, text;
};

struct AlertChanges {
  std::vector<KeptIssue> issues;
  std::vector<std::string> issues_gone;
  std::vector<KeptMessage> messages;
  std::vector<int64_t> messages_gone;  // rows
  std::vector<KeptWindow> windows;
  std::vector<int64_t> windows_gone;
  std::vector<KeptReceiver> receivers;
  std::vector<std::string> receivers_gone;
  TimeNs seen_until_ns = kNoTime;  // verdicts before this time were looked at
  bool empty() const {
    return issues.empty() && issues_gone.empty() && messages.empty() && messages_gone.empty() &&
           windows.empty() && windows_gone.empty() && receivers.empty() && receivers_gone.empty() &&
           seen_until_ns == kNoTime;
  }
};

struct KeptAlerts {
  std::vector<KeptIssue> issues;
  std::vector<KeptMessage> messages;  // in order of rows
  std::vector<KeptWindow> windows;
  std::vector<KeptReceiver> receivers;
  TimeNs seen_until_ns = kNoTime;  // none: a new file
};

class AlertStore {
 public:
  static Result<std::unique_ptr<AlertStore>> open(const std::string& path);
  const std::string& moved_aside() const { return database_.moved_aside(); }

  Result<KeptAlerts> load();
  Status apply(const AlertChanges& changes);

 private:
  explicit AlertStore(const std::string& path);
  Status write(const AlertChanges& changes);

  Database database_;
};

}  // namespace culprit::store
