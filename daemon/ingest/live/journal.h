// The entries of systemd's journal, as `journalctl --output=json` writes them. journalctl runs as a child
// (app), since the journal's files may be damaged, and libsystemd maps them. The evidence is one line per
// entry, a JSON object with those of the journal's fields that matter, under the journal's names.
//
// Durable state: a piece has a JournalPlace, the numbers in the cursor of its last entry. After a restart
// journalctl begins at that cursor: its first entry is the stored one, and is skipped. If it is another, the
// journal removed entries before they were read: a gap. So no entry is lost that the journal still has, and
// none is stored twice.
//
// Fields with an underscore are journald's own, and no other program can set them; a program chooses all
// others, also SYSLOG_IDENTIFIER=kernel.
//
// Thread: the loop's. Pure but for the parser's memory: no descriptor, no clock.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/time.h"
#include "model/piece.h"

namespace culprit::ingest {

// Who wrote an entry, by journald's own fields.
enum class JournalWriter : uint8_t {
  kKernel,
  kService,  // a service of the system, with a user id below 1000
  kOther,    // users, their sessions, containers, audit records: evidence, and no cause
};

struct JournalEntry {
  JournalPlace place;
  std::string cursor;
  JournalWriter writer = JournalWriter::kOther;
  uint64_t realtime_us = 0;
  std::string message;         // UTF-8, or the bytes of a binary message
  bool cut = false;            // the message was longer
  std::string unit, about;     // _SYSTEMD_UNIT; the unit that the system's manager speaks of
  std::string command;         // _COMM
  std::string transport, tag;  // _TRANSPORT, SYSLOG_IDENTIFIER
  std::string priority, facility, pid, uid, host, container;
};

// "s=0dc1…;i=5;b=eed1…;m=407c;t=6618;x=2b70"; nothing if it lacks s, i, t or x.
std::optional<JournalPlace> parse_cursor(std::string_view cursor);
// The cursor of a place, for journalctl's --cursor: without the boot and its time, which are not stored.
std::string cursor_of(const JournalPlace& place);

// Parses lines of journalctl, and of the evidence. Reuses its memory.
class JournalParser {
 public:
  JournalParser();
  ~JournalParser();
  // Nothing: no entry with a cursor.
  std::optional<JournalEntry> parse(std::string_view line);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// The entry as a line of the evidence, with its newline.
std::string evidence_line(const JournalEntry& entry);
// The entry as lines for the engine. kKernel: "2026-11-21T02:12:09.123456+00:00 kernel: text\n"; kService: a
// JSON object with its tag; each line of the message is one. Empty: the entry says nothing about the host, by
// its writer.
std::string journal_text(const JournalEntry& entry);
// The program's name: its tag, else its command or unit.
std::string_view journal_tag(const JournalEntry& entry);

struct JournalOptions {
  std::function<StreamId()> allocate;
  std::string path = "journal/system";
  std::vector<std::string> units;  // names or patterns with * and ?; empty: all
  bool kernel = true;              // false: the kernel's messages have a source of their own
};

struct JournalStats {
  uint64_t entries = 0, bytes = 0;
  uint64_t lost = 0;       // at most so many entries were removed before they were read
  uint64_t left_out = 0;   // entries of other units, of the daemon itself, or of a kernel read elsewhere
  uint64_t cut = 0;        // messages cut at their limit
  uint64_t malformed = 0;  // lines of journalctl that are no entry, or longer than their limit
};

class JournalLog {
 public:
  JournalLog(JournalOptions options, std::span<const StreamState> known);
  JournalLog(const JournalLog&) = delete;

  // A journalctl was started, at position(). An unfinished line of an earlier one is dropped.
  void restarted();
  // Adds bytes that journalctl wrote.
  PieceBatch add(std::string_view bytes, TimeNs now);
  // The last entry that was read; nothing before the first one.
  const std::optional<JournalPlace>& position() const { return position_; }

  const JournalStats& stats() const { return stats_; }

 private:
  struct Batch;
  void on_line(std::string_view line, Batch* out);
  bool is_stored(const JournalPlace& place, Batch* out);
  void note_gap(uint64_t records, const char* reason, Batch* out);
  bool is_wanted(const JournalEntry& entry) const;
  void flush(Batch* out);

  JournalOptions options_;
  JournalParser parser_;
  StreamId stream_ = kNoStream;
  uint64_t offset_ = 0;  // of the evidence
  std::optional<JournalPlace> position_;
  uint64_t unstored_ = 0;  // entries left out since the last piece
  bool resuming_ = false;  // the next entry is the first of a journalctl that began at position()
  bool skipping_ = false;  // within a line beyond its limit
  std::string line_;       // unfinished
  std::optional<Gap> gap_;
  JournalStats stats_;
};

}  // namespace culprit::ingest
