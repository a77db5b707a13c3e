#include "store/alert_store.h"

#include <array>
#include <string_view>
#include <utility>

namespace culprit::store {
namespace {

// Released steps never change; new ones are appended.
constexpr std::array<std::string_view, 2> kAlertSteps = {R"sql(
CREATE TABLE issues (key TEXT PRIMARY KEY, text TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE outbox (
  row INTEGER PRIMARY KEY, id TEXT NOT NULL, receiver TEXT NOT NULL, issue TEXT NOT NULL, kind INTEGER NOT NULL,
  created_ns INTEGER, body TEXT NOT NULL);
CREATE TABLE windows (id INTEGER PRIMARY KEY, text TEXT NOT NULL);
CREATE TABLE seen (one INTEGER PRIMARY KEY CHECK (one = 1), until_ns INTEGER);
)sql",
                                                         R"sql(
CREATE TABLE receivers (name TEXT PRIMARY KEY, text TEXT NOT NULL) WITHOUT ROWID;
)sql"};

}  // namespace

// A sent message must be recorded durably; after a power loss it would be sent again under another id.
AlertStore::AlertStore(const std::string& path) : database_({path, kAlertSteps, true, 512}) {}

Result<std::unique_ptr<AlertStore>> AlertStore::open(const std::string& path) {
  std::unique_ptr<AlertStore> out(new AlertStore(path));
  if (const Status opened = out->database_.open(); !opened) return tl::unexpected(opened.error());
  return out;
}

Result<StoredAlerts> AlertStore::load() {
  using Statement = Database::Statement;
  StoredAlerts out;
  Statement issues(database_, "SELECT key, text FROM issues");
  auto stored = issues.rows<StoredIssue>([](Statement& s) { return StoredIssue{s.text(0), s.text(1)}; });
  if (!stored) return tl::unexpected(stored.error());
  out.issues = std::move(*stored);
  Statement outbox(database_,
                   "SELECT row, id, receiver, issue, kind, created_ns, body FROM outbox ORDER BY row");
  auto waiting = outbox.rows<StoredMessage>([](Statement& s) {
    return StoredMessage{s.integer(0), s.text(1), s.text(2), s.text(3), static_cast<int>(s.integer(4)),
                         s.time(5),    s.text(6)};
  });
  if (!waiting) return tl::unexpected(waiting.error());
  out.messages = std::move(*waiting);
  Statement windows(database_, "SELECT id, text FROM windows ORDER BY id");
  auto held = windows.rows<StoredWindow>([](Statement& s) { return StoredWindow{s.integer(0), s.text(1)}; });
  if (!held) return tl::unexpected(held.error());
  out.windows = std::move(*held);
  Statement receivers(database_, "SELECT name, text FROM receivers");
  auto known = receivers.rows<StoredReceiver>([](Statement& s) {
    return StoredReceiver{s.text(0), s.text(1)};
  });
  if (!known) return tl::unexpected(known.error());
  out.receivers = std::move(*known);
  Statement seen(database_, "SELECT until_ns FROM seen");
  if (seen.row()) out.seen_until_ns = seen.time(0);
  if (!seen.good()) return tl::unexpected(seen.status().error());
  return out;
}

Status AlertStore::apply(const AlertChanges& changes) {
  return database_.in_transaction([&] { return write(changes); });
}

Status AlertStore::write(const AlertChanges& c) {
  using Statement = Database::Statement;
  Statement put_issue(database_, "INSERT OR REPLACE INTO issues VALUES (?, ?)");
  for (const StoredIssue& one : c.issues)
    if (Status s = put_issue.again().bind(one.key).bind(one.text).run(); !s) return s;
  Statement drop_issue(database_, "DELETE FROM issues WHERE key = ?");
  for (const std::string& key : c.issues_removed)
    if (Status s = drop_issue.again().bind(key).run(); !s) return s;
  Statement put_message(database_, "INSERT OR REPLACE INTO outbox VALUES (?, ?, ?, ?, ?, ?, ?)");
  for (const StoredMessage& m : c.messages)
    if (Status s = put_message.again()
                       .bind(m.row)
                       .bind(m.id)
                       .bind(m.receiver)
                       .bind(m.issue)
                       .bind(int64_t{m.kind})
                       .bind_time(m.created_ns)
                       .bind(m.body)
                       .run();
        !s)
      return s;
  Statement drop_message(database_, "DELETE FROM outbox WHERE row = ?");
  for (const int64_t row : c.messages_removed)
    if (Status s = drop_message.again().bind(row).run(); !s) return s;
  Statement put_window(database_, "INSERT OR REPLACE INTO windows VALUES (?, ?)");
  for (const StoredWindow& w : c.windows)
    if (Status s = put_window.again().bind(w.id).bind(w.text).run(); !s) return s;
  Statement drop_window(database_, "DELETE FROM windows WHERE id = ?");
  for (const int64_t id : c.windows_removed)
    if (Status s = drop_window.again().bind(id).run(); !s) return s;
  Statement put_receiver(database_, "INSERT OR REPLACE INTO receivers VALUES (?, ?)");
  for (const StoredReceiver& one : c.receivers)
    if (Status s = put_receiver.again().bind(one.name).bind(one.text).run(); !s) return s;
  Statement drop_receiver(database_, "DELETE FROM receivers WHERE name = ?");
  for (const std::string& name : c.receivers_removed)
    if (Status s = drop_receiver.again().bind(name).run(); !s) return s;
  if (c.seen_until_ns == kNoTime) return {};
  return Statement(database_, "INSERT OR REPLACE INTO seen VALUES (1, ?)").bind_time(c.seen_until_ns).run();
}

}  // namespace culprit::store
