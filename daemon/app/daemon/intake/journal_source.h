// The journal as a source of the daemon: runs journalctl and reads what it writes. libsystemd maps files that
// another program writes, and a damaged one may end its process; so that process is a child. A journalctl
// that ends is started again, at the entry that was read last. While the daemon lacks credit the pipe is not
// read, and journalctl waits.
//
// Thread: the loop's. Owns the child.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "app/config/config.h"
#include "base/status.h"
#include "base/time.h"
#include "ingest/live/journal.h"
#include "io/child.h"
#include "io/descriptors.h"
#include "io/env.h"
#include "model/piece.h"

namespace culprit::app {

struct JournalSourceOptions {
  std::string directory;           // of the journal's files; empty: the system's journal
  std::vector<std::string> units;  // see ingest::JournalOptions
  bool kernel = true;
  std::function<StreamId()> allocate;
  std::function<void(PieceBatch&&)> take;
  std::function<void(const std::string&)> report_error;
  std::vector<std::string> programs = {"/usr/bin/journalctl", "/bin/journalctl"};  // the first that is there
};

// The words of a journalctl that begins at a place, or, without one, at a time. `machine`: the id whose
// entries the system's journal is asked for; empty: all.
std::vector<std::string> journalctl_words(const std::string& directory, const std::string& machine,
                                          const std::optional<JournalPlace>& place, TimeNs since);

class JournalSource {
 public:
  JournalSource(io::Env& env, JournalSourceOptions options, std::span<const StreamState> known);

  void start();
  void pause();
  void resume();
  void stop();
  const ingest::JournalStats& stats() const { return log_.stats(); }
  uint64_t starts() const { return starts_; }  // of journalctl

 private:
  void begin();
  Status launch();
  void watch();
  void read();
  void read_errors();
  std::string first_error() const;
  void failed(const Error& error);
  std::string ending();

  io::Env& env_;
  JournalSourceOptions options_;
  ingest::JournalLog log_;
  bool held_ = false, stopped_ = false;
  uint64_t starts_ = 0;
  TimeNs since_ = kNoTime;                // wall clock: where a journal without a stored position begins
  TimeNs retry_ns_ = 0;                   // before the next start
  std::string errors_;                    // what this journalctl complained about
  std::string trouble_, reported_error_;  // reported last: why it ended, and what it wrote while it ran
  io::Descriptor out_, err_;              // of journalctl
  io::Child child_;                       // ended before its pipes are closed
  std::unique_ptr<io::Timer> timer_, restart_;
  std::unique_ptr<io::Poll> poll_, errors_poll_;
};

}  // namespace culprit::app
