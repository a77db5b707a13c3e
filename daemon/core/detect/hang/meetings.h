// Joins the lines about one meeting of processes (meeting_lines.h): how many ranks arrived, and which did
// not. The missing ranks are stated in the lines, or inferred: all others wait there, or only the missing
// ranks logged nothing. Borrows the log and its lines. One thread; pure.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "core/detect/hang/judge.h"
#include "core/detect/hang/meeting_lines.h"
#include "core/detect/logs/view.h"

namespace culprit::hang {

class Meetings {
 public:
  explicit Meetings(const logs::JobLog& log) : log_(log) {}

  // In log order. `line` is the parse of `from`.
  void add(const logs::RuleLine& from, MeetingLine line);
  // Adds a statement and the waiting ranks for the first meeting with known missing ranks; if none, for the
  // first meeting.
  void finish(HangInput& out);

 private:
  struct Tensor {
    std::set<uint32_t> there, missing;
  };
  struct Meeting {
    std::string what;
    MeetingUnit unit = MeetingUnit::kRank;
    bool starts = false, lost = false, cut = false;
    std::optional<uint32_t> came = {}, all = {};
    std::set<uint32_t> missing = {}, waiting = {};
    std::map<std::string, Tensor> tensors = {};
    TimeNs waited_ns = 0;
    std::vector<const logs::RuleLine*> lines = {};  // the first ones
    std::vector<std::string> why = {};
  };
  // The message that the next lines of a source may continue.
  struct Open {
    size_t meeting = 0;
    uint64_t line = 0;
  };

  size_t meeting_of(const MeetingLine& line);
  void infer_missing(Meeting& m) const;
  void infer_from_tensors(Meeting& m) const;
  std::optional<HangClaim> state(const Meeting& m) const;
  std::optional<HangClaim> state_order(const Meeting& m) const;
  void place(const Meeting& m, HangClaim& claim) const;
  std::set<uint32_t> logged() const;

  const logs::JobLog& log_;
  std::vector<Meeting> meetings_;
  std::map<uint32_t, Open> open_;  // by source
  std::optional<uint32_t> started_;
};

}  // namespace culprit::hang
