// Decides when a job's diagnoses are announced: once they are unchanged for some seconds, so that the next
// line of a failing job does not withdraw them at once. A verdict that is certain by itself does not wait. An
// announced diagnosis that changes is revised; one that disappears is withdrawn.
//
// Pure: time is an argument. One thread.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/time.h"
#include "model/report.h"

namespace culprit::app {

enum class Change : uint8_t { kNew, kRevised, kWithdrawn };
std::string_view word(Change change);  // "new", "revised", "withdrawn"

// A diagnosis that differs from its stored version, or is announced now.
struct Announcement {
  std::string id;
  std::optional<size_t> index;  // in Report::diagnoses; nothing: the diagnosis is gone
  Change change = Change::kNew;
  bool publish = false;  // it is announced now; otherwise it is only stored
  bool settled = false;  // its stored version was announced
  bool verdict = false;
  std::string title;                                // of the diagnosis, also of one that disappeared
  std::string replaced_verdict_id, replaced_title;  // of the verdict whose place it takes
};

class Announcer {
 public:
  // torchrun checks its processes every 5 s by default: its report on a rank comes that late.
  static constexpr TimeNs kSettle = 5 * kNsPerSecond;
  // A storm of findings delays no verdict for longer.
  static constexpr TimeNs kSettleLongest = 20 * kNsPerSecond;

  // After each report. `marks`: by diagnosis, stored members whose change is not announced. `at_once`:
  // announces without waiting (the job is over, a person judged, a restart).
  std::vector<Announcement> update(const Report& report, std::span<const std::string> marks, TimeNs now,
                                   bool at_once);
  // A new finding came: the next reports may differ.
  void new_finding(TimeNs now);
  // When the next report is due because a diagnosis waits to be announced, if one does.
  std::optional<TimeNs> due_ns() const;
  // The title of the verdict that was announced; empty: there is none.
  const std::string& verdict() const { return verdict_title_; }
  bool settled() const { return pending_ns_ == kNoTime; }

 private:
  struct Face {  // what people see of a diagnosis
    std::string text;
    double confidence = 0;
    bool verdict = false;
  };
  struct Known {
    std::string title, mark;
    Face kept;
    std::optional<Face> announced;
    bool there = false, was_there = false, changed = false;
  };
  static Face face_of(const Diagnosis& diagnosis, bool verdict);
  static bool differs(const Face& a, const Face& b);
  bool compare(const Report& report, std::span<const std::string> marks);
  bool may_announce(const Report& report, TimeNs now);
  void announce(const Report& report, std::vector<Announcement>& out);
  Announcement announcement_of(const Diagnosis& diagnosis, const Known& known) const;
  void keep(const Report& report, std::vector<Announcement>& out);

  std::map<std::string, Known> known_;                  // by id
  std::string verdict_id_, verdict_title_;              // announced
  TimeNs pending_ns_ = kNoTime, changed_ns_ = kNoTime;  // since when something waits; changed last
};

}  // namespace culprit::app
