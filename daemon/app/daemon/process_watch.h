// Which jobs have processes on this host, and which job a process or a file belongs to, kept up to date by
// looks at /proc on a thread of their own: loop and engine never wait for /proc, whatever hangs there.
//
// One look answers for all jobs. The next one begins a second after it at the soonest, and later where looks
// are long: they take at most a twentieth of the time. What is old says nothing: where a look hangs, all that
// is asked is unknown after a minute, and a process's job is none.
//
// alive(), follow_*(), ask() and view() from any thread; the rest is the loop's. Owns its two threads: looks,
// and questions about one process, which must not wait for a look.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>

#include "app/process_view.h"
#include "base/status.h"
#include "io/env.h"

namespace culprit::app {

// Whether a job's processes are there: one that belongs to it, that has one of its files open for writing, or
// that sent something of it. Pure; one thread at a time. After each look: seen().
class JobAliveness {
 public:
  // What was taken of the job: from such a file, from such a process. A bounded number.
  void follow_file(const std::string& job, uint64_t device, uint64_t inode);
  void follow_process(const std::string& job, uint32_t pid);
  void seen(const ProcessView& view);
  // Nothing where no process of the job was ever seen, so that its absence says nothing, nor where the look
  // was cut.
  std::optional<bool> alive(const std::string& job) const;

 private:
  struct Followed {
    std::string job;
    uint64_t start_ticks = 0;  // as it was seen first: another process of the number is none of the job's
  };
  std::map<std::pair<uint64_t, uint64_t>, std::string> files_;  // (device, inode) -> job
  std::map<uint32_t, Followed> processes_;
  std::set<std::string> now_, ever_;
  bool cut_ = false;
};

class ProcessWatch {
 public:
  static Result<std::unique_ptr<ProcessWatch>> start(io::Env& env, std::string proc = "/proc");
  // Waits for no look that hangs.
  ~ProcessWatch();

  // As of the last look; asks for another.
  std::optional<bool> alive(const std::string& job);
  // When the look began that alive() answers from (wall clock); kNoTime: there was none.
  TimeNs looked_ns();
  void follow_file(const std::string& job, uint64_t device, uint64_t inode);
  void follow_process(const std::string& job, uint32_t pid);
  // A look that began at `since_ns` (wall clock) or later, waited for at most `patience_ns`; else the last
  // one; null where there is none yet. Not on the loop, which brings it about.
  std::shared_ptr<const ProcessView> view(TimeNs since_ns, TimeNs patience_ns);
  void ask();

  // The job of a process, or "" where it belongs to none or nobody can tell in time.
  void job_of(uint32_t pid, std::function<void(std::string)> answer);
  const std::string& proc() const { return proc_; }
  // Since when a look has been under way without an end; nothing: none hangs.
  std::optional<TimeNs> stuck_ns(TimeNs mono) const;

  struct Figures {
    size_t processes = 0, barred = 0;
    uint64_t looks = 0;
    TimeNs last_took_ns = 0;
  };
  Figures figures() const { return figures_; }

 private:
  struct Shared;
  struct Question;
  ProcessWatch(io::Env& env, std::string proc);
  void wanted();
  void begin();
  void ended(TimeNs began_ns);
  void answer_late();

  io::Env& env_;
  const std::string proc_;
  const std::shared_ptr<Shared> shared_;  // outlives this where a look hangs
  bool busy_ = false, again_ = false;
  TimeNs began_ns_ = kNoTime, next_ns_ = 0;  // monotonic
  Figures figures_;
  std::map<uint64_t, Question> questions_;
  uint64_t next_question_ = 0;
  std::unique_ptr<io::Timer> look_timer_, late_timer_;
  std::unique_ptr<io::Worker> looks_, asks_;
};

}  // namespace culprit::app
