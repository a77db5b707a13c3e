// The index' tables, as steps from each version to the next (PRAGMA user_version). A step that was released
// never changes; a new one is added behind it, with a test that begins with the earlier tables.
#pragma once

#include <array>
#include <string_view>

namespace culprit::store {

// Times are nanoseconds since the epoch, or null. Texts are kept as bytes, since ids come from strangers.
inline constexpr std::array<std::string_view, 1> kSchemaSteps = {R"sql(
CREATE TABLE jobs (
  id TEXT PRIMARY KEY, state INTEGER NOT NULL, first_ns INTEGER, last_ns INTEGER, ended_ns INTEGER,
  hosts TEXT NOT NULL, verdict TEXT NOT NULL, run INTEGER NOT NULL DEFAULT 0);
CREATE INDEX jobs_by_time ON jobs (first_ns);
CREATE TABLE reports (
  job TEXT PRIMARY KEY REFERENCES jobs (id) ON DELETE CASCADE, json TEXT NOT NULL);
CREATE TABLE diagnoses (
  job TEXT NOT NULL REFERENCES jobs (id) ON DELETE CASCADE, id TEXT NOT NULL, first_ns INTEGER,
  last_ns INTEGER, json TEXT NOT NULL, state TEXT NOT NULL, confirmed_by TEXT NOT NULL DEFAULT '',
  confirmed_ns INTEGER, PRIMARY KEY (job, id));
CREATE INDEX diagnoses_by_time ON diagnoses (first_ns);
CREATE TABLE findings (
  job TEXT NOT NULL REFERENCES jobs (id) ON DELETE CASCADE, time_ns INTEGER, json TEXT NOT NULL);
CREATE INDEX findings_by_job ON findings (job);
CREATE TABLE audit (
  row INTEGER PRIMARY KEY AUTOINCREMENT, time_ns INTEGER, who TEXT NOT NULL, what TEXT NOT NULL,
  subject TEXT NOT NULL, detail TEXT NOT NULL);
CREATE TABLE cleared (host TEXT PRIMARY KEY, time_ns INTEGER);
CREATE TABLE pool (kind TEXT PRIMARY KEY, text BLOB NOT NULL);
)sql"};

}  // namespace culprit::store
