// A record of what the controller got and gave, a JSON object per line, so that its decisions can be replayed
// and compared (formats.md has the lines). The recorder never fails: what it cannot record becomes a gap,
// which a replay reports. Pure; one thread.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "base/time.h"
#include "core/recover/controller.h"

namespace culprit::recover {

// Bytes of a line. A longer step is a gap, and a longer line ends a replay.
constexpr size_t kRecordedLine = size_t{8} << 20;

// "isolate n1 d-0001 00112233445566aa", "run-again 4711 d-0001 … -n1", "check n1 n2 d-0001"; empty: a note.
std::string line_of(const Order& order);

class InputRecorder {
 public:
  // The first line of each part of a recording. Parts count from 1; `began_ns` names the recording.
  std::string header(TimeNs began_ns, uint32_t part);
  // Of part 1, before the steps: the options, then the rows as loaded. `lost_ns`: the ledger was lost then.
  std::string start(const ControllerOptions& options, TimeNs lost_ns);
  std::string row(const ActionRecord& row) const;
  std::string row(const AttemptRecord& row) const;
  std::string row(const MachineRecord& row) const;
  // One step: what step() got, and what it gave.
  std::string step(std::span<const Input> inputs, TimeNs now, std::span<const Order> orders);
  std::string gap(const std::string& why) const;

 private:
  // Views of the scheduler repeat: the latest run of inputs of a kind, without the time of the reading.
  std::map<size_t, std::string> latest_;
};

struct Replayed {
  uint64_t recordings = 0, steps = 0, inputs = 0, orders = 0, different = 0;  // steps that differ
  std::string first_difference;                                               // empty: none
  std::string incomplete;  // why it is no whole recording: a gap, a torn line; empty: it is one
};

class Replayer {
 public:
  // Gets each order of the replay; may be empty.
  using Show = std::function<void(TimeNs at, const std::string& order)>;
  // `change`: of the recorded options, to see what others would decide; may be empty.
  explicit Replayer(Show show = {}, std::function<void(ControllerOptions&)> change = {});
  ~Replayer();

  // One line without its newline. An error ends the replay: the line is none of a recording, another version
  // wrote it, or the parts before it are missing.
  Status line(std::string_view text);
  // The last line has no newline: it was being written.
  void torn();
  const Replayed& result() const { return result_; }

 private:
  struct State;
  std::unique_ptr<State> state_;
  Replayed result_;
};

}  // namespace culprit::recover
