// Questions that may hang: asked in a child process, so that a wedged driver or file server stops neither
// the detector nor the other questions. Owned by the detector, on its thread; nothing here blocks.
//
// One child answers all subjects in turn. If it does not answer for one in time, that subject hangs: the
// child is killed and left behind (a process in uninterruptible sleep ends when the kernel lets it), and a
// new one goes on with the rest. A subject that hung is asked again after `retry_ns`, by a child of its
// own, and only if the child that hung on it has ended. So at most one child per subject is ever stuck.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace health {

class Queries {
 public:
  // Runs in the child, which keeps its state between calls.
  using Answer = std::function<std::string(const std::string& subject)>;
  struct Options {
    int64_t timeout_ns;
    int64_t retry_ns;
  };
  enum class Outcome { kAnswered, kHangs, kDied };
  struct Result {
    std::string subject;
    Outcome outcome;
    std::string bytes;
    int64_t waited_ns;
  };

  Queries(Options options, Answer answer);
  ~Queries();
  Queries(const Queries&) = delete;
  Queries& operator=(const Queries&) = delete;

  // Leaves out what is asked already, and what hung recently.
  void ask(const std::string& subject, int64_t now_ns);
  // What was answered, and what hangs, since the last call. Once per tick.
  std::vector<Result> poll(int64_t now_ns);

  size_t stuck() const { return left_.size(); }  // children that were killed and have not ended
  // Ends the idle child, which holds its memory; the next question starts another.
  void rest();

 private:
  struct Child {
    pid_t pid = -1;
    int socket = -1;
    bool own = false;  // for a subject that hung before
    std::deque<std::string> waiting;
    int64_t since_ns = 0;  // of the first of them
    int ticks = 0;         // since then
  };
  struct Hung {
    int64_t again_ns;
    pid_t pid;  // -1: it has ended
  };

  std::unique_ptr<Child> start();
  [[noreturn]] void serve(int socket);
  bool send(Child& child, const std::string& subject);
  Child* common();
  void leave(const Child* child);
  void read(Child& child, int64_t now_ns, std::vector<Result>& results);
  void give_up(std::unique_ptr<Child> child, Outcome outcome, int64_t now_ns, std::vector<Result>& results);
  void reap();
  bool asked(const std::string& subject) const;

  Options options_;
  Answer answer_;
  std::vector<std::unique_ptr<Child>> children_;
  std::map<std::string, Hung> hung_;
  std::vector<pid_t> left_;
  std::string buffer_;
};

}  // namespace health
