// Decides when a job's diagnoses are announced: once they are unchanged for some seconds, so that the next
// line of a failing job does not withdraw them at once. A verdict that is certain without further evidence is
// announced at once. An announced diagnosis that changes is revised; one that disappears is withdrawn.
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
#include "model/verdict.h"

namespace culprit::app {

// A diagnosis that differs from its stored version, or is announced now.
struct Announcement {
  std::string id;
  std::optional<size_t> index;  // index in Report::diagnoses; nothing: the diagnosis is gone
  Change change = Change::kNew;
  bool publish = false;  // announce it now; false: only store it
  bool settled = false;  // the stored version was announced
  bool verdict = false;
  std::string sentence;                             // sentence of the diagnosis, also after it disappeared
  std::string replaced_verdict_id, replaced_title;  // id and title of the verdict that this one replaces
};

class Announcer {
 public:
  // By default torchrun checks its processes every 5 s, which delays its report on a rank as much.
  static constexpr TimeNs kSettle = 5 * kNsPerSecond;
  // Limit of the delay while new findings keep coming.
  static constexpr TimeNs kSettleLongest = 20 * kNsPerSecond;

  // What an earlier process announced and did not withdraw. A whole report without it withdraws it.
  struct Announced {
    std::string id, sentence;
    bool verdict = false;
  };
  void load(const Announced& before);

  struct At {
    TimeNs now = kNoTime;
    bool at_once = false;  // announces without waiting: the job is over, a person judged, a restart
    bool whole = true;     // false: the report may lack what an earlier process announced
  };
  // Call after each report. `accused`: the accused of each diagnosis; a change of them is stored, not
  // announced.
  std::vector<Announcement> update(const Report& report, std::span<const AccusedTimes> accused, At at);
  // A new finding arrived: the next reports may differ.
  void new_finding(TimeNs now);
  // Time at which a report is due because a diagnosis waits for its announcement; nothing: none waits.
  std::optional<TimeNs> due_ns() const;
  // The title of the announced verdict; empty: none.
  const std::string& verdict() const { return verdict_title_; }
  bool settled() const { return pending_ns_ == kNoTime; }

 private:
  struct Face {  // the visible text of a diagnosis
    std::string text;
    double confidence = 0;
    bool verdict = false;
  };
  struct DiagnosisState {
    std::string sentence;
    AccusedTimes accused_ns;
    Face retained;
    std::optional<Face> announced;
    bool there = false, was_there = false, changed = false;
    bool before = false;  // of an earlier process, and in no report since
  };
  static Face face_of(const Diagnosis& diagnosis, bool verdict);
  static bool differs(const Face& a, const Face& b);
  bool compare(const Report& report, std::span<const AccusedTimes> accused);
  bool may_announce(const Report& report, TimeNs now);
  void announce(const Report& report, bool whole, std::vector<Announcement>& out);
  Announcement announcement_of(const Diagnosis& diagnosis, const DiagnosisState& known) const;
  void keep(const Report& report, std::vector<Announcement>& out);

  std::map<std::string, DiagnosisState> known_;         // by id
  std::string verdict_id_, verdict_title_;              // id and title of the announced verdict
  TimeNs pending_ns_ = kNoTime, changed_ns_ = kNoTime;  // start of the current wait; last change
};

}  // namespace culprit::app
