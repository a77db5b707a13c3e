// C++ wrapper of one plugin's detector: it passes complete input to the plugin, and checks, copies and
// limits the plugin's output. Runs in the host program, in the daemon for plugins without a process, and in
// `culprit plugin check`.
//
// One thread makes all calls. The detector's own threads may call the [any] functions of culprit_host,
// hence `log` is called from any thread.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "base/status.h"
#include "base/time.h"
#include "model/plugin_finding.h"
#include "plughost/library.h"

namespace culprit::plughost {

constexpr TimeNs kMinuteNs = 60 * kNsPerSecond;

// As in culprit_budget. 0: none.
struct DetectorLimits {
  uint64_t memory_bytes = 0, cpu_ppm = 0, findings_per_minute = 0;
  TimeNs call_ns = 0;
};

// Why a finding is invalid; empty: it is sound.
std::string finding_fault(const PluginFinding& finding);

// Called with true when a plugin's code begins to run in this thread, with false when it ends; returns the
// previous value. May be null. The host program uses it to make allocations of the plugin fail.
using CodeOfPlugin = bool (*)(bool runs);

class Detector {
 public:
  struct Setup {
    std::string host, version;  // of this host, and of Culprit
    OptionValues options;
    DetectorLimits limits;
    std::function<TimeNs()> mono;
    CodeOfPlugin code_of_plugin = nullptr;
    std::function<void(PluginFinding&&)> found;
    std::function<void(uint32_t severity, std::string)> log;  // any thread
  };
  // The error is a reason without a subject.
  static Result<std::unique_ptr<Detector>> create(const Library& library, Setup setup);
  ~Detector();
  Detector(const Detector&) = delete;
  Detector& operator=(const Detector&) = delete;

  // CULPRIT_OK or the detector's error.
  int32_t observe(const culprit_event* const* events, uint64_t count) noexcept;
  int32_t tick(TimeNs wall) noexcept;
  // Empty: it has none, or none that is allowed.
  std::string save_state();
  bool load_state(std::string_view state) noexcept;
  // Findings over the limit, and invalid ones.
  uint64_t findings_dropped() const { return findings_dropped_; }

 private:
  explicit Detector(Setup setup);
  Status begin(const Library& library);
  int32_t emit(const culprit_detector_finding* finding);
  int32_t fill_budget(culprit_budget* budget);
  uint64_t findings_left();
  static Detector& of(const culprit_host* host) { return *static_cast<Detector*>(host->context); }

  Setup setup_;
  std::string name_;
  culprit_host host_{};
  culprit_detector* detector_ = nullptr;
  TimeNs minute_ = 0;
  std::atomic<uint64_t> findings_of_minute_ = 0;
  uint64_t findings_dropped_ = 0;
};

}  // namespace culprit::plughost
