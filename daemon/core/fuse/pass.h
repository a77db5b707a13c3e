// The passes that turn all detectors' findings into one report. They run in the order of their table
// (core/engine.cc). Each pass declares what it reads and writes, so tests can check the order. Pure.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/time.h"
#include "core/detect/comm/findings.h"
#include "core/detect/logs/analysis.h"
#include "core/detect/logs/unheard.h"
#include "core/detect/logs/view.h"
#include "core/diagnose/signs.h"
#include "model/report.h"

namespace culprit::core::fuse {

// The parts of a draft that passes read and write.
enum class Part : uint8_t {
  kOutcome,    // how the job ended
  kFindings,   // findings of all detectors
  kHang,       // the report's hang
  kSigns,      // no fault by itself: rule signs, an operation that a rank may have left out
  kOpen,       // what is missing for a better answer, and notes
  kProblems,   // inputs that were not read completely
  kCharts,     // the report's charts, single steps and numbers
  kDiagnoses,  // with suspects and verdict
  kJob,        // the job's summary
};

class Parts {
 public:
  constexpr Parts(std::initializer_list<Part> parts) {
    for (const Part part : parts) bits_ |= bit(part);
  }
  constexpr bool has(Part part) const { return (bits_ & bit(part)) != 0; }
  constexpr bool has_all_of(Parts other) const { return (bits_ & other.bits_) == other.bits_; }
  constexpr Parts operator|(Parts other) const {
    other.bits_ |= bits_;
    return other;
  }

 private:
  static constexpr uint32_t bit(Part part) { return 1U << static_cast<uint32_t>(part); }
  uint32_t bits_ = 0;
};

// A report under construction. Borrows the view.
struct Draft {
  const detect::View& view;
  TimeNs now = kNoTime;  // kNoTime: offline
  const detect::Unheard& unheard;
  detect::Analysis analysis = {};
  Report report = {};
  diagnose::Signs signs = {};
  std::optional<comm::RankLeftOut> left_out = {};  // a rank that may have left out an operation
  std::vector<std::string> open = {};              // open questions
};

// Receives the draft after each pass: to explain the report, or to check the table.
class PassObserver {
 public:
  virtual ~PassObserver() = default;
  virtual void after(std::string_view pass, Parts reads, Parts writes, const Draft& draft) = 0;
};

// `Of`: owner of the state that the pass reads in addition to the draft.
template <class Of>
struct Pass {
  std::string_view name;
  Parts reads, writes;
  void (Of::*run)(Draft& draft);
};

}  // namespace culprit::core::fuse
