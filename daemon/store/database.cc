#include "store/database.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>

#include "base/crash_point.h"
#include "base/limits.h"

namespace culprit::store {

namespace {

constexpr int kBusyMs = 2000;  // for a person who reads the file with sqlite3
// Renamed damaged files that are kept; their content was derived from evidence that still exists.
constexpr int kDamagedMax = 4;

}  // namespace

Status Database::open() {
  if (options_.read_only) return connect();
  Status ready = open_once();
  if (ready || !damaged_) return ready;
  if (const Status moved = move_aside(); !moved) return moved;
  return open_once();
}

Status Database::open_once() {
  const Status connected = connect();
  return connected ? check_and_migrate() : connected;
}

void Database::close() {
  sqlite3_close_v2(db_);
  db_ = nullptr;
}

Error Database::error(const char* doing) {
  const int code = sqlite3_extended_errcode(db_);
  if ((code & 0xff) == SQLITE_CORRUPT || (code & 0xff) == SQLITE_NOTADB) damaged_ = true;
  const char* reason = db_ == nullptr ? "out of memory" : sqlite3_errmsg(db_);
  // Errors of refused values are permanent; all others come from the disk or a lock.
  const bool refused = (code & 0xff) == SQLITE_CONSTRAINT || (code & 0xff) == SQLITE_TOOBIG;
  return {refused ? ErrorCode::kInvalid : ErrorCode::kIo,
          fmt::format("{}: {}: {}", options_.path, doing, reason)};
}

Status Database::execute(const std::string& sql) {
  if (sqlite3_exec(db_, sql.c_str(), nullptr, nullptr, nullptr) == SQLITE_OK) return {};
  return tl::unexpected(error("the database failed"));
}

Status Database::connect() {
  const int access = options_.read_only ? SQLITE_OPEN_READONLY : SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE;
  const int flags = access | SQLITE_OPEN_NOMUTEX;
  if (sqlite3_open_v2(options_.path.c_str(), &db_, flags, nullptr) != SQLITE_OK) {
    const Error failed = error("cannot be opened");
    close();
    return tl::unexpected(failed);
  }
  sqlite3_busy_timeout(db_, kBusyMs);
  sqlite3_limit(db_, SQLITE_LIMIT_LENGTH, static_cast<int>(limits::kPoolFileBytes));
  // A killed process loses no transaction in either mode. Files of other programs are not trusted.
  return execute(
      fmt::format("PRAGMA journal_mode=WAL; PRAGMA synchronous={}; PRAGMA foreign_keys=ON; PRAGMA "
                  "cache_size=-{}; PRAGMA journal_size_limit=4194304; PRAGMA trusted_schema=OFF;",
                  options_.full_sync ? "FULL" : "NORMAL", options_.cache_kib));
}

Status Database::check_and_migrate() {
  int64_t version = 0;
  std::string sound;
  {
    Statement check(*this, "PRAGMA quick_check(1)");
    if (check.row()) sound = check.text(0);
    if (!check.good()) return check.status();
    Statement asked(*this, "PRAGMA user_version");
    if (asked.row()) version = asked.integer(0);
    if (!asked.good()) return asked.status();
  }
  if (sound != "ok") {
    damaged_ = true;
    return fail(ErrorCode::kIo, fmt::format("{}: damaged: {}", options_.path, sound));
  }
  if (version < 0 || version > static_cast<int64_t>(options_.steps.size()))
    return fail(ErrorCode::kInvalid,
                fmt::format("{}: written by a newer culpritd (index {}, this one knows {})", options_.path,
                            version, options_.steps.size()));
  for (size_t step = static_cast<size_t>(version); step < options_.steps.size(); ++step) {
    const Status done = in_transaction([&]() -> Status {
      if (const Status made = execute(std::string(options_.steps[step])); !made) return made;
      return execute(fmt::format("PRAGMA user_version={}", step + 1));
    });
    if (!done) return done;
  }
  return {};
}

// Renames the -wal and -shm files too, so that the damaged database can still be inspected.
Status Database::move_aside() {
  close();
  int n = 1;
  std::string to;
  for (; n <= kDamagedMax; ++n) {
    to = fmt::format("{}.damaged-{}", options_.path, n);
    if (access(to.c_str(), F_OK) != 0) break;
  }
  for (const char* part : {"-wal", ""})
    if (std::rename((options_.path + part).c_str(), (to + part).c_str()) != 0 && *part == '\0')
      return fail(ErrorCode::kIo, fmt::format("{}: damaged, and cannot be moved to {}", options_.path, to));
  unlink((options_.path + "-shm").c_str());
  damaged_ = false;
  moved_aside_ = to;
  return {};
}

Status Database::end_transaction(Status done) {
  if (done) {
    crash_point("store.index_before_commit");
    done = execute("COMMIT");
    crash_point("store.index_after_commit");
  }
  // A full disk may have rolled it back already.
  if (!done && sqlite3_get_autocommit(db_) == 0) sqlite3_exec(db_, "ROLLBACK", nullptr, nullptr, nullptr);
  return done;
}

}  // namespace culprit::store
