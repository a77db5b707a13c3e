#include "store/recovery_store.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "model/recovery_json.h"

namespace culprit::store {
namespace {

// Released steps never change; new ones are appended.
constexpr std::array<std::string_view, 3> kSteps = {R"sql(
CREATE TABLE actions (op TEXT PRIMARY KEY, time_ns INTEGER, row TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE attempts (
  job TEXT NOT NULL, attempt INTEGER NOT NULL, time_ns INTEGER, row TEXT NOT NULL,
  PRIMARY KEY (job, attempt)) WITHOUT ROWID;
CREATE TABLE machines (
  host TEXT NOT NULL, device TEXT NOT NULL, time_ns INTEGER, row TEXT NOT NULL,
  PRIMARY KEY (host, device)) WITHOUT ROWID;
CREATE TABLE reset (one INTEGER PRIMARY KEY CHECK (one = 1), time_ns INTEGER NOT NULL, by TEXT NOT NULL);
CREATE TABLE notes (
  id INTEGER PRIMARY KEY, time_ns INTEGER NOT NULL, kind TEXT NOT NULL, job TEXT NOT NULL,
  decision TEXT NOT NULL, text TEXT NOT NULL, order_json TEXT NOT NULL);
CREATE INDEX notes_of_job ON notes (job, id);
CREATE INDEX notes_of_decision ON notes (decision, id);
)sql",
                                                    // What readers ask for, without reading the whole.
                                                    R"sql(
CREATE INDEX actions_of_time ON actions (time_ns);
CREATE INDEX machines_of_time ON machines (time_ns);
CREATE INDEX notes_of_kind ON notes (kind, id);
)sql",
                                                    R"sql(
CREATE TABLE ledger (one INTEGER PRIMARY KEY CHECK (one = 1), id TEXT NOT NULL);
INSERT INTO ledger VALUES (1, lower(hex(randomblob(8))));
)sql"};

using Statement = Database::Statement;

// Identifies a job, whatever its restarts.
std::string key_of(const ScheduledJob& job) {
  return fmt::format("{}/{}@{}", job.scheduler, job.id,
                     job.uid.empty() ? std::to_string(job.submit_ns) : job.uid);
}

template <class Row, class Read>
Result<std::vector<Row>> rows(Database& database, std::string_view sql, Read read) {
  Statement statement(database, sql);
  auto texts = statement.rows<std::string>([](Statement& s) { return s.text(0); });
  if (!texts) return tl::unexpected(texts.error());
  std::vector<Row> out;
  for (const std::string& text : *texts) {
    auto row = read(text);
    if (!row) return tl::unexpected(row.error());
    out.push_back(std::move(*row));
  }
  return out;
}

Result<std::vector<std::string>> newest(Database& database, std::string_view sql, size_t most) {
  Statement statement(database, sql);
  statement.bind(most);
  return statement.rows<std::string>([](Statement& s) { return s.text(0); });
}

}  // namespace

RecoveryStore::RecoveryStore(const std::string& path, bool read_only)
    : database_({path, kSteps, true, 1024, read_only}) {}

Result<std::unique_ptr<RecoveryStore>> RecoveryStore::open(const std::string& path) {
  std::unique_ptr<RecoveryStore> out(new RecoveryStore(path, false));
  if (const Status opened = out->database_.open(); !opened) return tl::unexpected(opened.error());
  return out;
}

Result<std::unique_ptr<RecoveryStore>> RecoveryStore::open_reader(const std::string& path) {
  std::unique_ptr<RecoveryStore> out(new RecoveryStore(path, true));
  if (const Status opened = out->database_.open(); !opened) return tl::unexpected(opened.error());
  return out;
}

Result<std::string> RecoveryStore::id() {
  Statement get(database_, "SELECT id FROM ledger");
  if (get.row()) return get.text(0);
  return get.good() ? fail(ErrorCode::kInvalid, "recover.db: no id") : tl::unexpected(get.status().error());
}

Result<RecoveryRows> RecoveryStore::load() {
  RecoveryRows out;
  auto actions = rows<ActionRecord>(database_, "SELECT row FROM actions ORDER BY time_ns, op", action_of);
  if (!actions) return tl::unexpected(actions.error());
  auto attempts =
      rows<AttemptRecord>(database_, "SELECT row FROM attempts ORDER BY job, attempt", attempt_of);
  if (!attempts) return tl::unexpected(attempts.error());
  auto machines = rows<MachineRecord>(database_, "SELECT row FROM machines", machine_of);
  if (!machines) return tl::unexpected(machines.error());
  out.actions = std::move(*actions);
  out.attempts = std::move(*attempts);
  out.machines = std::move(*machines);
  Statement reset(database_, "SELECT time_ns, by FROM reset");
  if (reset.row()) out.reset_ns = reset.time(0), out.reset_by = reset.text(1);
  if (!reset.good()) return tl::unexpected(reset.status().error());
  return out;
}

Status RecoveryStore::apply(const RecoveryRows& changes) {
  return database_.in_transaction([&] { return write(changes); });
}

Status RecoveryStore::write(const RecoveryRows& c) {
  Statement action(database_, "INSERT OR REPLACE INTO actions VALUES (?, ?, ?)");
  for (const ActionRecord& row : c.actions)
    if (Status s = action.again().bind(row.order.op).bind_time(row.reserved_ns).bind(to_json(row)).run(); !s)
      return s;
  Statement attempt(database_, "INSERT OR REPLACE INTO attempts VALUES (?, ?, ?, ?)");
  for (const AttemptRecord& row : c.attempts)
    if (Status s = attempt.again()
                       .bind(key_of(row.job))
                       .bind(int64_t{row.attempt})
                       .bind_time(std::max(row.begin_ns, row.end_ns))
                       .bind(to_json(row))
                       .run();
        !s)
      return s;
  Statement machine(database_, "INSERT OR REPLACE INTO machines VALUES (?, ?, ?, ?)");
  for (const MachineRecord& row : c.machines)
    if (Status s =
            machine.again().bind(row.host).bind(row.device).bind_time(row.last_ns).bind(to_json(row)).run();
        !s)
      return s;
  Statement note(database_, "INSERT INTO notes VALUES (NULL, ?, ?, ?, ?, ?, ?)");
  for (const RecoveryNote& row : c.notes)
    if (Status s = note.again()
                       .bind_time(row.time_ns)
                       .bind(row.kind)
                       .bind(row.job)
                       .bind(row.decision)
                       .bind(row.text)
                       .bind(row.order)
                       .run();
        !s)
      return s;
  if (c.reset_ns == kNoTime) return {};
  return Statement(database_, "INSERT OR REPLACE INTO reset VALUES (1, ?, ?)")
      .bind_time(c.reset_ns)
      .bind(c.reset_by)
      .run();
}

// One condition at most has an index to go by, so only those that are given are asked for.
Result<std::vector<RecoveryNote>> RecoveryStore::notes(const NotesOf& which) {
  std::string sql = "SELECT time_ns, kind, job, decision, text, order_json FROM notes";
  const std::pair<const char*, const std::string&> conditions[] = {
      {"job", which.job}, {"decision", which.decision}, {"kind", which.kind}};
  const char* word = "WHERE";
  for (const auto& [column, value] : conditions)
    if (!value.empty()) sql += fmt::format(" {} {} = ?", std::exchange(word, "AND"), column);
  Statement statement(database_, sql + " ORDER BY id DESC LIMIT ?");
  for (const auto& [column, value] : conditions)
    if (!value.empty()) statement.bind(value);
  statement.bind(which.limit);
  return statement.rows<RecoveryNote>([](Statement& s) {
    return RecoveryNote{s.time(0), s.text(1), s.text(2), s.text(3), s.text(4), s.text(5)};
  });
}

Result<std::vector<AttemptRecord>> RecoveryStore::attempts_of(const ScheduledJob& job, size_t most) {
  Statement statement(database_, "SELECT row FROM attempts WHERE job = ? ORDER BY attempt DESC LIMIT ?");
  const std::string key = key_of(job);
  statement.bind(key).bind(most);
  auto texts = statement.rows<std::string>([](Statement& s) { return s.text(0); });
  if (!texts) return tl::unexpected(texts.error());
  std::vector<AttemptRecord> out;
  for (auto text = texts->rbegin(); text != texts->rend(); ++text) {
    auto row = attempt_of(*text);
    if (!row) return tl::unexpected(row.error());
    out.push_back(std::move(*row));
  }
  return out;
}

// A key is the id, an @ and what tells the jobs of one id apart.
Result<std::optional<AttemptRecord>> RecoveryStore::newest_attempt(const std::string& id) {
  Statement statement(database_,
                      "SELECT row FROM attempts WHERE job > ?1 || '@' AND job < ?1 || 'A' "
                      "ORDER BY attempt DESC LIMIT 100");
  statement.bind(id);
  auto texts = statement.rows<std::string>([](Statement& s) { return s.text(0); });
  if (!texts) return tl::unexpected(texts.error());
  std::optional<AttemptRecord> out;
  for (const std::string& text : *texts) {
    auto row = attempt_of(text);
    if (!row) return tl::unexpected(row.error());
    if (!out || out->begin_ns < row->begin_ns) out = std::move(*row);
  }
  return out;
}

Result<std::vector<std::string>> RecoveryStore::newest_actions(size_t most) {
  return newest(database_, "SELECT row FROM actions ORDER BY time_ns DESC LIMIT ?", most);
}

Result<std::vector<std::string>> RecoveryStore::newest_machines(size_t most) {
  return newest(database_, "SELECT row FROM machines ORDER BY time_ns DESC LIMIT ?", most);
}

Result<size_t> RecoveryStore::prune(TimeNs now) {
  size_t removed = 0;
  const TimeNs until = now - kRecoveryRetention;
  const Status done = database_.in_transaction([&]() -> Status {
    for (const char* table : {"actions", "attempts", "machines", "notes"}) {
      const std::string sql = fmt::format("DELETE FROM {} WHERE time_ns < ?", table);
      if (Status s = Statement(database_, sql).bind_time(until).run(); !s) return s;
      removed += static_cast<size_t>(std::max(database_.changes(), 0));
    }
    return {};
  });
  if (!done) return tl::unexpected(done.error());
  return removed;
}

}  // namespace culprit::store
