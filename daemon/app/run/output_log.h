// The copy of the command's output in the run's folder. A thread of its own writes it, so a slow or full disk
// does not hold up the command: what waits is bounded, and the rest is left out and counted. Beyond its size
// the file is renamed to NAME.1 and a new one begins; an older NAME.1 is dropped.
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
  // Of the streams 0 (standard output, or both) and 1 (standard error): the files of these names in a folder,
  // which is borrowed.
  OutputLog(const HeldFolder& folder, std::vector<std::string> names, uint64_t bytes_max);
  ~OutputLog();
  OutputLog(const OutputLog&) = delete;

  void add(size_t stream, std::string_view bytes);
  // Waits until all of it is written, for at most `within_ms`.
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
    bool told = false;  // its trouble
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
  std::vector<File> files_;  // of the thread
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Part> queue_;
  size_t queued_ = 0;
  bool busy_ = false, ends_ = false;
  Counters counters_;
  std::thread thread_;
};

}  // namespace culprit::app
