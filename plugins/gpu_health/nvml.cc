#include "gpu_health/nvml.h"

#include <dlfcn.h>

#include <algorithm>
#include <cstdio>

namespace gpu {
namespace {

// The declarations of NVML that are used here, as its API reference has them (12.x; the functions are
// stable).
using Device = void*;
struct PciInfo {
  char legacy_bus[16];
  unsigned domain, bus, device, device_id, subsystem_id;
  char bus_id[32];
};
struct EventData {
  Device device;
  unsigned long long type, data;
  unsigned gpu_instance, compute_instance;
};
union Value {
  double d;
  unsigned ui;
  unsigned long ul;
  unsigned long long ull;
  long long sll;
};
struct FieldValue {
  unsigned id, scope;
  long long timestamp, latency;
  int type, status;
  Value value;
};
static_assert(sizeof(PciInfo) == 68 && sizeof(EventData) == 32 && sizeof(FieldValue) == 40, "NVML's layout");

enum { kCorrected = 0, kUncorrected = 1, kVolatile = 0 };       // nvmlMemoryErrorType_t, nvmlEccCounterType_t
enum { kClockSm = 1, kSensorGpu = 0, kThresholdSlowdown = 1 };  // clock, sensor, threshold
enum { kReplay = 0, kRecovery = 1, kCrcFlit = 2 };              // nvmlNvLinkErrorCounter_t
enum { kFieldReplay = 161, kFieldRecovery = 162, kFieldCrc = 163, kFieldRecoveryAction = 230 };
constexpr unsigned long long kEventXid = 8;

uint64_t value_of(const FieldValue& field) {
  switch (field.type) {  // nvmlValueType_t
    case 1:
      return field.value.ui;
    case 2:
      return field.value.ul;
    case 3:
      return field.value.ull;
    case 4:
      return field.value.sll < 0 ? 0 : uint64_t(field.value.sll);
    default:
      return kUnknown;
  }
}

}  // namespace

struct Nvml::Functions {
  int (*init)();
  int (*count)(unsigned*);
  int (*by_index)(unsigned, Device*);
  int (*by_bus)(const char*, Device*);
  int (*pci)(Device, PciInfo*);
  int (*name)(Device, char*, unsigned);
  int (*ecc)(Device, int, int, unsigned long long*);
  int (*remapped)(Device, unsigned*, unsigned*, unsigned*, unsigned*);
  int (*retired)(Device, int, unsigned*, unsigned long long*);
  int (*retire_pending)(Device, int*);
  int (*temperature)(Device, int, unsigned*);
  int (*threshold)(Device, int, unsigned*);
  int (*reasons)(Device, unsigned long long*);
  int (*clock)(Device, int, unsigned*);
  int (*clock_max)(Device, int, unsigned*);
  int (*power)(Device, unsigned*);
  int (*power_limit)(Device, unsigned*);
  int (*replays)(Device, unsigned*);
  int (*link_state)(Device, unsigned, int*);
  int (*link_errors)(Device, unsigned, int, unsigned long long*);
  int (*fields)(Device, int, FieldValue*);
  int (*event_set)(void**);
  int (*event_register)(Device, unsigned long long, void*);
  int (*event_wait)(void*, EventData*, unsigned);
};

int Nvml::open() {
  if (status_ == kOk || status_ == kNoLibrary) return status_;
  static Functions f = {};
  void* library = dlopen(library_.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!library) return status_ = kNoLibrary;
  const auto find = [library](auto& function, std::initializer_list<const char*> names) {
    for (const char* name : names) {
      void* symbol = dlsym(library, name);
      if (!symbol) continue;
      function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(symbol);
      return;
    }
  };
  find(f.init, {"nvmlInit_v2"});
  find(f.count, {"nvmlDeviceGetCount_v2"});
  find(f.by_index, {"nvmlDeviceGetHandleByIndex_v2"});
  find(f.by_bus, {"nvmlDeviceGetHandleByPciBusId_v2"});
  find(f.pci, {"nvmlDeviceGetPciInfo_v3"});
  find(f.name, {"nvmlDeviceGetName"});
  find(f.ecc, {"nvmlDeviceGetTotalEccErrors"});
  find(f.remapped, {"nvmlDeviceGetRemappedRows"});
  find(f.retired, {"nvmlDeviceGetRetiredPages"});
  find(f.retire_pending, {"nvmlDeviceGetRetiredPagesPendingStatus"});
  find(f.temperature, {"nvmlDeviceGetTemperature"});
  find(f.threshold, {"nvmlDeviceGetTemperatureThreshold"});
  find(f.reasons, {"nvmlDeviceGetCurrentClocksEventReasons", "nvmlDeviceGetCurrentClocksThrottleReasons"});
  find(f.clock, {"nvmlDeviceGetClockInfo"});
  find(f.clock_max, {"nvmlDeviceGetMaxClockInfo"});
  find(f.power, {"nvmlDeviceGetPowerUsage"});
  find(f.power_limit, {"nvmlDeviceGetEnforcedPowerLimit"});
  find(f.replays, {"nvmlDeviceGetPcieReplayCounter"});
  find(f.link_state, {"nvmlDeviceGetNvLinkState"});
  find(f.link_errors, {"nvmlDeviceGetNvLinkErrorCounter"});
  find(f.fields, {"nvmlDeviceGetFieldValues"});
  find(f.event_set, {"nvmlEventSetCreate"});
  find(f.event_register, {"nvmlDeviceRegisterEvents"});
  find(f.event_wait, {"nvmlEventSetWait_v2", "nvmlEventSetWait"});
  functions_ = &f;
  if (!f.init || !f.count || !f.by_index) return status_ = kNoLibrary;
  return status_ = f.init();  // tried again at the next call if it failed: the driver may come
}

Devices Nvml::devices() {
  Devices out;
  out.status = open();
  if (out.status == kOk) out.status = functions_->count(&out.count);
  return out;
}

void* Nvml::handle(unsigned index, const std::string& bus, int32_t& status) {
  Device device = nullptr;
  status = open();
  if (status != kOk) return nullptr;
  const bool by_bus = !bus.empty() && functions_->by_bus;
  status = by_bus ? functions_->by_bus(bus.c_str(), &device) : functions_->by_index(index, &device);
  return status == kOk ? device : nullptr;
}

Sample Nvml::sample(unsigned index, const std::string& bus) {
  Sample out;
  Device device = handle(index, bus, out.status);
  std::snprintf(out.bus, sizeof out.bus, "%s", bus.c_str());
  if (!device) return out;
  PciInfo pci = {};
  if (functions_->pci && functions_->pci(device, &pci) == kOk) {
    std::snprintf(out.bus, sizeof out.bus, "%s", pci.bus_id);
  }
  if (functions_->name) functions_->name(device, out.name, sizeof out.name);
  watch_xids(device);
  memory(device, out);
  if (out.status == kOk) clocks(device, out);
  if (out.status == kOk) links(device, out);
  return out;
}

namespace {

// Calls an optional function; keeps the news that the device is gone, whichever call brings it.
template <class Function, class... Arguments>
bool call(Sample& out, Function function, Arguments... arguments) {
  if (!function) return false;
  const int status = function(arguments...);
  if (status == kLost || status == kResetRequired) out.status = status;
  return status == kOk;
}

template <class Function, class... Arguments>
uint64_t read_unsigned(Sample& out, Function function, Device device, Arguments... arguments) {
  unsigned value = 0;
  return call(out, function, device, arguments..., &value) ? value : kUnknown;
}

}  // namespace

void Nvml::memory(void* device, Sample& out) {
  const Functions& f = *functions_;
  unsigned long long errors = 0;
  if (call(out, f.ecc, device, kCorrected, kVolatile, &errors)) out.corrected = errors;
  if (call(out, f.ecc, device, kUncorrected, kVolatile, &errors)) out.uncorrected = errors;
  unsigned corrected = 0, uncorrected = 0, pending = 0, failed = 0;
  if (call(out, f.remapped, device, &corrected, &uncorrected, &pending, &failed)) {
    out.remapped = corrected + uncorrected;
    out.remap_pending = pending;
    out.remap_failed = failed;
    return;  // a GPU remaps rows or retires pages, never both
  }
  uint64_t pages = 0;
  bool known = false;
  for (const int cause : {0, 1}) {  // many single-bit errors, one double-bit error
    unsigned count = 0;
    constexpr int kTooSmall = 7;  // the answer when only the number is asked for
    const int status = f.retired ? f.retired(device, cause, &count, nullptr) : -1;
    if (status != kOk && status != kTooSmall) continue;
    known = true;
    pages += count;
  }
  if (known) out.retired_pages = pages;
  int retire_pending = 0;
  if (call(out, f.retire_pending, device, &retire_pending)) out.retire_pending = uint64_t(retire_pending);
}

void Nvml::clocks(void* device, Sample& out) {
  const Functions& f = *functions_;
  out.temperature_c = read_unsigned(out, f.temperature, device, kSensorGpu);
  out.slowdown_c = read_unsigned(out, f.threshold, device, kThresholdSlowdown);
  unsigned long long reasons = 0;
  if (call(out, f.reasons, device, &reasons)) out.reasons = reasons;
  out.sm_mhz = read_unsigned(out, f.clock, device, kClockSm);
  out.sm_max_mhz = read_unsigned(out, f.clock_max, device, kClockSm);
  out.power_mw = read_unsigned(out, f.power, device);
  out.power_limit_mw = read_unsigned(out, f.power_limit, device);
  out.pcie_replays = read_unsigned(out, f.replays, device);
  out.recovery_action = field(device, kFieldRecoveryAction, 0);
}

uint64_t Nvml::field(void* device, unsigned id, unsigned scope) {
  if (!functions_->fields) return kUnknown;
  FieldValue value = {};
  value.id = id;
  value.scope = scope;
  if (functions_->fields(device, 1, &value) != kOk || value.status != kOk) return kUnknown;
  return value_of(value);
}

// By fields where the driver has them, else by the older function; Blackwell has neither.
void Nvml::links(void* device, Sample& out) {
  const Functions& f = *functions_;
  FieldValue values[kLinksMax * 3] = {};
  for (int link = 0; link < kLinksMax; ++link) {
    int active = 0;
    if (!call(out, f.link_state, device, unsigned(link), &active)) break;
    out.links |= 1u << link;
    if (active) out.links_active |= 1u << link;
  }
  if (out.links == 0) return;
  for (int i = 0; i < kLinksMax * 3; ++i) {
    values[i].id = unsigned(kFieldReplay + i % 3);
    values[i].scope = unsigned(i / 3);
    values[i].status = -1;
  }
  const bool fields = f.fields && f.fields(device, kLinksMax * 3, values) == kOk && values[0].status == kOk;
  for (int link = 0; link < kLinksMax; ++link) {
    if (!(out.links_active >> link & 1)) continue;
    unsigned long long counts[3] = {};
    for (int i = 0; i < 3; ++i) {
      const FieldValue& value = values[link * 3 + i];
      if (fields && value.status == kOk) counts[i] = value_of(value);
      if (!fields) call(out, f.link_errors, device, unsigned(link), i, &counts[i]);
    }
    out.link_errors[link] = counts[kReplay] + counts[kRecovery];
    out.link_crc[link] = counts[kCrcFlit];
  }
}

void Nvml::watch_xids(void* device) {
  const Functions& f = *functions_;
  if (watched_[device] || !f.event_set || !f.event_register || !f.event_wait) return;
  watched_[device] = true;
  if (!events_ && f.event_set(&events_) != kOk) events_ = nullptr;
  if (events_) f.event_register(device, kEventXid, events_);
}

std::vector<Xid> Nvml::xids() {
  std::vector<Xid> found;
  EventData event = {};
  while (events_ && found.size() < 64 && functions_->event_wait(events_, &event, 0) == kOk) {
    if (event.type != kEventXid) continue;
    Xid xid;
    PciInfo pci = {};
    if (functions_->pci && functions_->pci(event.device, &pci) == kOk) {
      std::snprintf(xid.bus, sizeof xid.bus, "%s", pci.bus_id);
    }
    xid.number = event.data;
    found.push_back(xid);
  }
  return found;
}

}  // namespace gpu
