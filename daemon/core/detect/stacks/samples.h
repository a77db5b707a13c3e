// The stacks of a job's processes, normalized; equal frames and stacks are stored once. Keeps the newest
// samples of each process. Owned by the engine or a command; one thread; pure. Dumps are untrusted.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/flat_map.h"
#include "core/detect/stacks/frames.h"
#include "model/stack.h"

namespace culprit::stacks {

using FrameId = uint32_t;
using PathId = uint32_t;

struct Frame {
  std::string function, file;
  bool native = false;
  FrameMeaning meaning;
};
// A stack frame: its name and line.
struct CodePlace {
  FrameId frame = 0;
  uint32_t line = 0;
  auto operator<=>(const CodePlace&) const = default;
};
struct Thread {
  std::string name;
  bool main = false;   // according to the tool
  bool child = false;  // of a worker process
  ThreadState state = ThreadState::kUnknown;
  PathId path = 0;
};
struct Sample {
  StackTool tool = StackTool::kUnknown;
  std::string host;  // empty: unknown
  uint32_t pid = 0;
  TimeNs time_ns = kNoTime;
  uint64_t number = 0;  // in order of arrival
  std::string file;
  uint64_t line = 0;
  std::string process_state, waits_in;
  std::vector<Thread> threads;
  uint32_t capture = 0;  // its number, equal for all processes of the job; 0: unknown
};

// A process, identified by rank; if the rank is unknown, by host and pid.
struct Process {
  std::optional<uint32_t> rank;
  std::optional<std::string> host;
  uint32_t pid = 0;
  std::vector<Sample> samples;  // by time, then by arrival; at most limits::kStackSamples of each tool
};

class Samples {
 public:
  // A copy of a known dump in another file with the same time counts as the same observation.
  void add(const StackDump& dump);
  // The process did not answer the request for its stacks.
  void add_silent(uint32_t rank, std::string reason);

  // Drops samples with an earlier time: the process made progress since then.
  void forget_before(TimeNs time);

  // Ranks first, ascending.
  const std::vector<const Process*>& processes() const;
  const std::map<uint32_t, std::string>& silent() const { return silent_; }
  uint32_t last_capture() const { return last_capture_; }  // the highest number
  uint64_t arrivals() const { return arrivals_; }  // dumps so far: derived results change with this count
  bool empty() const { return by_place_.empty() && silent_.empty(); }

  const Frame& frame(FrameId id) const { return frames_[id]; }
  std::span<const CodePlace> path(PathId id) const;  // innermost first

  // One sentence per kind of dropped data.
  std::vector<std::string> drop_sentences() const;

 private:
  using Place = std::tuple<uint32_t, std::string, uint32_t>;  // rank or a number above all ranks, host, pid
  PathId path_of(const StackDump& dump, const StackThread& thread);
  FrameId frame_of(const StackDump& dump, const StackFrame& frame);
  FrameId intern(std::string_view function, std::string_view file, bool native);

  std::vector<Frame> frames_;
  std::map<std::tuple<std::string, std::string, bool>, FrameId> frame_ids_;
  // Frames by their raw text, which is cheaper than normalizing each frame. A hash match is verified by text.
  struct Raw {
    std::string function, file;
    bool native = false;
    FrameId id = 0;
  };
  std::vector<Raw> raws_;
  FlatMap<uint32_t> raw_ids_;     // index into raws_
  std::vector<uint64_t> hashes_;  // of the words of the dump being added
  std::vector<CodePlace> standings_;
  std::vector<std::pair<uint32_t, uint32_t>> paths_;  // begin and length in standings_
  std::unordered_multimap<uint64_t, PathId> path_ids_;
  std::map<Place, Process> by_place_;
  mutable std::vector<const Process*> order_;
  std::map<uint32_t, std::string> silent_;
  uint64_t arrivals_ = 0;
  uint32_t last_capture_ = 0;
  size_t threads_ = 0;
  uint64_t dropped_processes_ = 0, dropped_samples_ = 0, dropped_threads_ = 0, dropped_frames_ = 0;
};

}  // namespace culprit::stacks
