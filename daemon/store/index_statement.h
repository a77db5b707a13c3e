// One SQL statement of the index: values are bound in order, rows are read, the first error is kept. Part of
// index.cc; on its thread; lives for one call. What is bound is borrowed until then.
#pragma once

#include <sqlite3.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "store/index.h"

namespace culprit::store {

class Index::Statement {
 public:
  Statement(Index& index, std::string_view sql) : index_(index) {
    keep(sqlite3_prepare_v2(index.db_, sql.data(), static_cast<int>(sql.size()), &statement_, nullptr));
  }
  ~Statement() { sqlite3_finalize(statement_); }
  Statement(const Statement&) = delete;
  Statement& operator=(const Statement&) = delete;

  Statement& bind(std::string_view text) {
    // A null pointer would be a null; an empty text is none.
    const char* data = text.empty() ? "" : text.data();
    return keep(sqlite3_bind_text64(statement_, ++bound_, data, text.size(), SQLITE_STATIC, SQLITE_UTF8));
  }
  Statement& bind(int64_t value) { return keep(sqlite3_bind_int64(statement_, ++bound_, value)); }
  Statement& bind(size_t value) { return bind(static_cast<int64_t>(std::min<size_t>(value, INT64_MAX))); }
  Statement& bind_time(TimeNs time) {
    return time == kNoTime ? keep(sqlite3_bind_null(statement_, ++bound_)) : bind(time);
  }

  Statement& bind_number(std::optional<uint64_t> value) {
    return value ? bind(static_cast<size_t>(*value)) : keep(sqlite3_bind_null(statement_, ++bound_));
  }

  // Moves to the next row; false behind the last, and after an error.
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
    if (code != SQLITE_OK && !error_) error_ = index_.error("the index failed");
    return *this;
  }
  Index& index_;
  sqlite3_stmt* statement_ = nullptr;
  int bound_ = 0;
  std::optional<Error> error_;
};

}  // namespace culprit::store
