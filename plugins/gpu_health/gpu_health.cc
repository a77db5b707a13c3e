// The detector gpu_health: asks for each GPU in a child process (common/queries.h), and judges the answers
// (watch.h).
#include <algorithm>
#include <map>

#include "common/files.h"
#include "common/queries.h"
#include "common/report.h"
#include "gpu_health/nvml.h"
#include "gpu_health/other.h"
#include "gpu_health/sample.h"
#include "gpu_health/watch.h"

namespace gpu {
namespace {

using health::Queries;

constexpr const char* kNpuSmiPlaces[] = {"/usr/local/sbin/npu-smi", "/usr/local/bin/npu-smi",
                                         "/usr/bin/npu-smi"};
constexpr int64_t kListAgainNs = 5 * health::kMinute;  // a driver or a GPU that comes later
constexpr uint32_t kDevicesMax = 64;

// In the child: answers "nvml", "xid", "nv INDEX BUS", "amd CARD" and "npu".
class Asker {
 public:
  Asker(const std::string& library, std::string root, std::string npu_smi)
      : nvml_(library), root_(std::move(root)), npu_smi_(std::move(npu_smi)) {}

  std::string answer(const std::string& subject) {
    const auto words = health::words(subject);
    if (words[0] == "nvml") return bytes_of(nvml_.devices());
    if (words[0] == "nv") {
      const auto index = health::number(words[1]).value_or(0);
      return bytes_of(nvml_.sample(unsigned(index), words.size() > 2 ? std::string(words[2]) : ""));
    }
    if (words[0] == "amd") return bytes_of(amd_sample(root_, std::string(words[1])));
    if (words[0] == "npu") return run_npu_smi(npu_smi_);
    std::string events;
    for (const Xid& xid : nvml_.xids()) events += bytes_of(xid);
    return events;
  }

 private:
  Nvml nvml_;
  std::string root_, npu_smi_;
};

std::string npu_smi_of(const std::string& option) {
  if (!option.empty()) return option;
  for (const char* place : kNpuSmiPlaces) {
    if (health::exists(place)) return place;
  }
  return {};
}

class GpuHealth : public culprit::Detector {
 public:
  explicit GpuHealth(const culprit::Host& host)
      : Detector(host),
        root_(host.option("root")),
        interval_ns_(host.integer("interval_s") * health::kSecond),
        npu_smi_(npu_smi_of(host.option("npu_smi"))),
        report_(host),
        watch_(report_, Limits{host.number("corrected_per_hour")}),
        asker_(host.option("nvml"), root_, npu_smi_),
        queries_({host.integer("timeout_s") * health::kSecond, host.integer("retry_s") * health::kSecond},
                 [this](const std::string& subject) { return asker_.answer(subject); }) {}

  void tick(int64_t wall_ns) override {
    const int64_t now_ns = clock_.advance(wall_ns);
    for (const Queries::Result& result : queries_.poll(now_ns)) take(result, now_ns);
    if (now_ns >= list_ns_) {
      list_ns_ = now_ns + kListAgainNs;
      queries_.ask("nvml", now_ns);
      for (const std::string& card : amd_cards(root_)) {  // one that is gone stays, and is found missing
        if (std::find(amd_.begin(), amd_.end(), card) == amd_.end()) amd_.push_back(card);
      }
    }
    if (now_ns < round_ns_) return;
    round_ns_ = now_ns + interval_ns_;
    watch_.compare();
    for (uint32_t i = 0; i < count_; ++i) queries_.ask(subject_of(i), now_ns);
    if (count_ > 0) queries_.ask("xid", now_ns);
    for (const std::string& card : amd_) queries_.ask("amd " + card, now_ns);
    if (!npu_smi_.empty()) queries_.ask("npu", now_ns);
  }

  std::string save_state() override { return report_.save(); }
  void load_state(const std::string& state) override { report_.load(state); }

 private:
  std::string subject_of(uint32_t index) const {
    const auto bus = buses_.find(index);
    return "nv " + std::to_string(index) + (bus == buses_.end() ? "" : " " + bus->second);
  }

  // CULPRIT_NONE: not about one device.
  int64_t device_of(const std::vector<std::string_view>& words) const {
    if (words[0] == "nv") return int64_t(health::number(words[1]).value_or(0));
    if (words[0] != "amd") return CULPRIT_NONE;
    for (size_t i = 0; i < amd_.size(); ++i) {
      if (amd_[i] == words[1]) return int64_t(i);
    }
    return CULPRIT_NONE;
  }

  void take(const Queries::Result& result, int64_t now_ns) {
    const auto words = health::words(result.subject);
    const int64_t device = device_of(words);
    const std::string what =
        device < 0 ? "query \"" + result.subject + "\"" : "GPU " + std::to_string(device);
    const bool hangs = result.outcome == Queries::Outcome::kHangs;
    watch_.hangs(device, what, hangs, double(result.waited_ns) * 1e-9, queries_.stuck());
    watch_.dies(device, what, result.outcome == Queries::Outcome::kDied);
    if (result.outcome != Queries::Outcome::kAnswered) return;
    if (words[0] == "nvml") return take_devices(result.bytes);
    if (words[0] == "nv") return take_sample(device, result.bytes, now_ns);
    if (words[0] == "amd") return take_amd(device, result.bytes, now_ns);
    if (words[0] == "npu") {
      for (const Npu& npu : parse_npu_smi(result.bytes)) watch_.npu(npu);
      return;
    }
    for (size_t at = 0; at + sizeof(Xid) <= result.bytes.size(); at += sizeof(Xid)) {
      Xid xid;
      if (from_bytes(result.bytes.substr(at, sizeof xid), xid)) watch_.xid(xid);
    }
  }

  void take_devices(const std::string& bytes) {
    Devices devices;
    if (!from_bytes(bytes, devices)) return;
    watch_.nvml(devices.status);
    if (devices.status != kOk && devices.status != last_status_) {
      host().log(CULPRIT_INFO,
                 devices.status == kNoLibrary
                     ? "no NVML library: NVIDIA GPUs are not watched"
                     : health::format("NVML returns %d: NVIDIA GPUs are not watched", devices.status));
    }
    last_status_ = devices.status;
    if (count_ == 0 && amd_.empty() && npu_smi_.empty() && devices.status != kOk) queries_.rest();
    // A GPU that is gone is still asked for, by its bus id: that is how it is found missing.
    if (devices.status == kOk) count_ = std::max(count_, std::min(devices.count, kDevicesMax));
    if (count_ > 0 && buses_.empty()) round_ns_ = 0;  // at once, not after an interval
  }

  void take_sample(int64_t device, const std::string& bytes, int64_t now_ns) {
    Sample sample;
    if (!from_bytes(bytes, sample)) return;
    if (sample.status == kOk && sample.bus[0]) buses_[uint32_t(device)] = sample.bus;
    watch_.nvidia(device, sample, now_ns);
  }

  void take_amd(int64_t device, const std::string& bytes, int64_t now_ns) {
    AmdSample sample;
    if (from_bytes(bytes, sample) && device >= 0) watch_.amd(device, sample, now_ns);
  }

  const std::string root_;
  const int64_t interval_ns_;
  const std::string npu_smi_;
  health::TickClock clock_;
  health::Report report_;
  Watch watch_;
  Asker asker_;
  Queries queries_;
  int64_t list_ns_ = 0, round_ns_ = 0;
  uint32_t count_ = 0;
  int32_t last_status_ = 0;
  std::map<uint32_t, std::string> buses_;
  std::vector<std::string> amd_;
};

constexpr culprit_option kOptionTable[] = {
    {sizeof(culprit_option), "interval_s", "15", "Seconds between two looks at each GPU.", 1, 3600,
     CULPRIT_OPTION_INTEGER, 0},
    {sizeof(culprit_option), "timeout_s", "20", "Seconds after which a query hangs.", 2, 600,
     CULPRIT_OPTION_INTEGER, 0},
    {sizeof(culprit_option), "retry_s", "300", "Seconds until a GPU whose query hung is asked again.", 10,
     86400, CULPRIT_OPTION_INTEGER, 0},
    {sizeof(culprit_option), "corrected_per_hour", "1000",
     "Corrected memory errors per hour that are a finding.", 1, 1e9, CULPRIT_OPTION_NUMBER, 0},
    {sizeof(culprit_option), "nvml", "libnvidia-ml.so.1", "Name or path of NVIDIA's management library.", 0,
     0, CULPRIT_OPTION_TEXT, 0},
    {sizeof(culprit_option), "npu_smi", "", "Path of npu-smi; empty: searched in its usual places.", 0, 0,
     CULPRIT_OPTION_TEXT, 0},
    {sizeof(culprit_option), "root", "", "Folder before /sys, for tests and containers.", 0, 0,
     CULPRIT_OPTION_TEXT, 0},
};
constexpr const culprit_option* kOptions[] = {&kOptionTable[0], &kOptionTable[1], &kOptionTable[2],
                                              &kOptionTable[3], &kOptionTable[4], &kOptionTable[5],
                                              &kOptionTable[6]};
constexpr culprit_description kDescription = {sizeof kDescription,
                                              CULPRIT_ABI_MAJOR,
                                              CULPRIT_ABI_MINOR,
                                              "gpu_health",
                                              "1.0",
                                              "Culprit",
                                              "Finds faults of GPUs by their drivers' own counters.",
                                              0,
                                              1000,
                                              kOptions,
                                              std::size(kOptions)};

}  // namespace
}  // namespace gpu

CULPRIT_PLUGIN(gpu::GpuHealth, gpu::kDescription)
