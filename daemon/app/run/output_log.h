// The copy of the command's output in the run's folder. A separate thread writes it, so that a slow or full
// disk does not block the command: the queue is bounded, and excess output is dropped and counted. At its
// size limit the file is renamed to NAME.1 and a new one begins; an older NAME.1 is dropped.
//
// add() and finish() are for one thread. Owns its thread and the files.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "app/run/held_folder.h"

namespace culprit::app {

class OutputLog {
 public:
  // Files for stream 0 (standard output, or both) and stream 1 (standard error), with these names, in a
  // borrowed folder.
  OutputLog(const HeldFolder& folder, std::vector<std::string> names, uint64_t bytes_max);
  ~OutputLog();
  OutputLog(const OutputLog&) = delete;

  void add(size_t stream, std::string_view bytes);
  // Waits until all output is written, for at most `within_ms`.
  void finish(int within_ms);

  struct Counters {
    uint64_t written = 0;
    uint64_t dropped = 0;  // bytes that are in no file
    std::string trouble;   // why, of each file
  };
  Counters counters() const;

 private:
  struct File {
    std::string name;
    int fd = -1;
    uint64_t size = 0;
    bool told = false;  // the file's problem is reported
  };
  struct Part {
    size_t stream;
    std::string bytes;
  };
  void run();
  // Returns errno or 0.
  int write(File& file, std::string_view bytes);
  int open(File& file);

  const HeldFolder& folder_;
  const uint64_t bytes_max_;
  std::vector<File> files_;  // used by the thread
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Part> queue_;
  size_t queued_ = 0;
  bool busy_ = false, ends_ = false;
  Counters counters_;
  std::thread thread_;
};

}  // namespace culprit::app
