// The tables of archive.db, as steps from each version to the next (PRAGMA user_version). Released steps
// never change; new ones are appended.
#pragma once

#include <array>
#include <string_view>

namespace culprit::store {

// Times are nanoseconds since the epoch, or null; epochs and sequences are signed 64 bits. Texts are stored
// as bytes, because they are untrusted. Large tables are clustered by log, so that frames of one host change
// few pages.
inline constexpr std::array<std::string_view, 1> kArchiveSteps = {R"sql(
CREATE TABLE archive (epoch INTEGER NOT NULL);
CREATE TABLE hosts (host TEXT PRIMARY KEY, first_ns INTEGER, seen_ns INTEGER, about TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE logs (
  log INTEGER PRIMARY KEY, epoch INTEGER NOT NULL UNIQUE, host TEXT NOT NULL, kind INTEGER NOT NULL,
  sequence INTEGER NOT NULL);
CREATE INDEX logs_by_host ON logs (host, kind);
CREATE TABLE segments (
  segment INTEGER PRIMARY KEY, kind INTEGER NOT NULL, size INTEGER NOT NULL, newest_ns INTEGER);
CREATE TABLE parts (
  segment INTEGER NOT NULL, log INTEGER NOT NULL, bytes INTEGER NOT NULL,
  PRIMARY KEY (segment, log)) WITHOUT ROWID;
CREATE INDEX parts_by_log ON parts (log);
CREATE TABLE streams (
  log INTEGER NOT NULL, stream INTEGER NOT NULL, kind INTEGER NOT NULL, job TEXT NOT NULL, path TEXT NOT NULL,
  uid INTEGER, pid INTEGER, opened_ns INTEGER, boot_ns INTEGER, size INTEGER NOT NULL, first INTEGER NOT NULL,
  ended INTEGER NOT NULL, PRIMARY KEY (log, stream)) WITHOUT ROWID;
CREATE INDEX streams_by_job ON streams (job);
CREATE TABLE extents (
  log INTEGER NOT NULL, segment INTEGER NOT NULL, stream INTEGER NOT NULL, begins INTEGER NOT NULL,
  ends INTEGER NOT NULL, first_at INTEGER NOT NULL, last_at INTEGER NOT NULL,
  PRIMARY KEY (log, segment, stream)) WITHOUT ROWID;
CREATE TABLE gaps (
  log INTEGER NOT NULL, stream INTEGER NOT NULL, offset INTEGER NOT NULL, bytes INTEGER NOT NULL,
  reason TEXT NOT NULL, PRIMARY KEY (log, stream, offset)) WITHOUT ROWID;
CREATE TABLE skips (
  log INTEGER NOT NULL, first INTEGER NOT NULL, last INTEGER NOT NULL, time_ns INTEGER, reason TEXT NOT NULL,
  PRIMARY KEY (log, first)) WITHOUT ROWID;
)sql"};

}  // namespace culprit::store
