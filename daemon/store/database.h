// One SQLite file of this room: opens, checks, migrates and writes it in transactions. Statements bind
// values in order, read rows, and keep the first error. A damaged file is renamed at the start, and a new
// one created.
//
// One thread owns it. Errors (a full disk, a locked file) leave it usable. A Statement lives for one call or
// one transaction; bound values are borrowed until it has run.
#pragma once

#include <sqlite3.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "base/time.h"

namespace culprit::store {

struct DatabaseOptions {
  std::string path;
  // Each step migrates the tables from one version to the next (PRAGMA user_version); borrowed for the
  // Database's life.
  std::span<const std::string_view> steps;
  bool full_sync = false;  // false: a power loss may remove the last transactions; the file stays sound
  int cache_kib = 1024;
  // A second connection to a file that another Database owns: it checks, migrates and moves nothing.
  bool read_only = false;
};

class Database {
 public:
  class Statement;
  explicit Database(DatabaseOptions options) : options_(std::move(options)) {}
  ~Database() { close(); }
  Database(const Database&) = delete;
  Database& operator=(const Database&) = delete;

  // An error if it cannot be read or written, or if a newer version of the program wrote it.
  Status open();
  // New path of a damaged file; empty: it was sound.
  const std::string& moved_aside() const { return moved_aside_; }
  // True if SQLite found damage after the start; the next open() renames the file.
  bool damaged() const { return damaged_; }

  Status execute(const std::string& sql);
  // `work` returns a Status; its changes are committed if this returns no error.
  template <class Work>
  Status in_transaction(const Work& work) {
    if (const Status begun = execute("BEGIN IMMEDIATE"); !begun) return begun;
    const Status done = work();
    return end_transaction(done);
  }
  int changes() const { return sqlite3_changes(db_); }

 private:
  Status open_once();
  Status connect();
  Status check_and_migrate();
  Status end_transaction(Status done);
  Status move_aside();
  void close();
  Error error(const char* doing);

  sqlite3* db_ = nullptr;
  const DatabaseOptions options_;
  std::string moved_aside_;
  bool damaged_ = false;
};

class Database::Statement {
 public:
  Statement(Database& database, std::string_view sql) : database_(database) {
    keep(sqlite3_prepare_v2(database.db_, sql.data(), static_cast<int>(sql.size()), &statement_, nullptr));
  }
  ~Statement() { sqlite3_finalize(statement_); }
  Statement(const Statement&) = delete;
  Statement& operator=(const Statement&) = delete;

  Statement& bind(std::string_view text) {
    // SQLite stores a null pointer as null; an empty text is not null.
    const char* data = text.empty() ? "" : text.data();
    return keep(sqlite3_bind_text64(statement_, ++bound_, data, text.size(), SQLITE_STATIC, SQLITE_UTF8));
  }
  Statement& bind(int64_t value) { return keep(sqlite3_bind_int64(statement_, ++bound_, value)); }
  Statement& bind(size_t value) { return bind(static_cast<int64_t>(std::min<size_t>(value, INT64_MAX))); }
  Statement& bind(const std::optional<uint32_t>& value) {
    return value ? bind(int64_t{*value}) : keep(sqlite3_bind_null(statement_, ++bound_));
  }
  Statement& bind_time(TimeNs time) {
    return time == kNoTime ? keep(sqlite3_bind_null(statement_, ++bound_)) : bind(time);
  }

  Statement& bind_number(std::optional<uint64_t> value) {
    return value ? bind(static_cast<size_t>(*value)) : keep(sqlite3_bind_null(statement_, ++bound_));
  }

  // Allows binding and running again.
  Statement& again() {
    sqlite3_reset(statement_);
    bound_ = 0;
    return *this;
  }

  // Moves to the next row; false after the last row and after an error.
  bool row() {
    if (!good()) return false;
    const int code = sqlite3_step(statement_);
    if (code != SQLITE_DONE && code != SQLITE_ROW) keep(code);
    return code == SQLITE_ROW;
  }
  std::string text(int column) const {
    const void* data = sqlite3_column_blob(statement_, column);
    const auto size = static_cast<size_t>(sqlite3_column_bytes(statement_, column));
    return data == nullptr ? "" : std::string(static_cast<const char*>(data), size);
  }
  int64_t integer(int column) const { return sqlite3_column_int64(statement_, column); }
  bool null(int column) const { return sqlite3_column_type(statement_, column) == SQLITE_NULL; }
  TimeNs time(int column) const {
    return sqlite3_column_type(statement_, column) == SQLITE_NULL ? kNoTime : integer(column);
  }

  std::optional<uint64_t> number(int column) const {
    if (sqlite3_column_type(statement_, column) == SQLITE_NULL) return std::nullopt;
    return static_cast<uint64_t>(integer(column));
  }

  bool good() const { return !error_; }
  Status status() const { return error_ ? Status(tl::unexpected(*error_)) : Status{}; }

  Status run() {
    while (row()) {
    }
    return status();
  }
  template <class Row, class Read>
  Result<std::vector<Row>> rows(const Read& read) {
    std::vector<Row> found;
    while (row()) found.push_back(read(*this));
    if (error_) return tl::unexpected(*error_);
    return found;
  }
  Result<std::optional<std::string>> one_text() {
    std::optional<std::string> found;
    if (row()) found = text(0);
    if (error_) return tl::unexpected(*error_);
    return found;
  }

 private:
  Statement& keep(int code) {
    if (code != SQLITE_OK && !error_) error_ = database_.error("the database failed");
    return *this;
  }
  Database& database_;
  sqlite3_stmt* statement_ = nullptr;
  int bound_ = 0;
  std::optional<Error> error_;
};

}  // namespace culprit::store
