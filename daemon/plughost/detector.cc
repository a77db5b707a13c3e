#include "plughost/detector.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <set>

#include "base/limits.h"
#include "base/text.h"

namespace culprit::plughost {
namespace {

constexpr size_t kIdMax = 64;
// shorten() adds an ellipsis; to_utf8() makes up to three bytes of one.
constexpr size_t kTextMax = 3 * limits::kEvidenceText + 3;

// Sizes in version 1.0 of the interface: a plugin's structs may be larger, never smaller.
#define CULPRIT_UP_TO(type, member) (offsetof(type, member) + sizeof(type::member))
constexpr size_t kDetectorSize = CULPRIT_UP_TO(culprit_detector, extension);
constexpr size_t kFindingSize = CULPRIT_UP_TO(culprit_detector_finding, value_count);
constexpr size_t kValueSize = CULPRIT_UP_TO(culprit_value, value);

// Scope in which daemon code runs that the plugin called.
class BackInDaemon {
 public:
  explicit BackInDaemon(CodeOfPlugin code) : code_(code), before_(code && code(false)) {}
  ~BackInDaemon() {
    if (code_) code_(before_);
  }
  BackInDaemon(const BackInDaemon&) = delete;
  BackInDaemon& operator=(const BackInDaemon&) = delete;

 private:
  const CodeOfPlugin code_;
  const bool before_;
};

class InPlugin {
 public:
  explicit InPlugin(CodeOfPlugin code) : code_(code) {
    if (code_) code_(true);
  }
  ~InPlugin() {
    if (code_) code_(false);
  }
  InPlugin(const InPlugin&) = delete;
  InPlugin& operator=(const InPlugin&) = delete;

 private:
  const CodeOfPlugin code_;
};

std::string text_of(const char* text) {
  if (!text) return "";
  return to_utf8(shorten({text, strnlen(text, 2 * limits::kEvidenceText)}, limits::kEvidenceText));
}

bool is_id(std::string_view id) {
  return !id.empty() && id.size() <= kIdMax && std::all_of(id.begin(), id.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '.' || c == '_' || c == '-';
  });
}

// Why a finding does not fit our own struct; empty: it does.
std::string unreadable(const culprit_detector_finding* from) {
  if (!from) return "it is NULL";
  if (from->size < kFindingSize) return fmt::format("its size is {}", from->size);
  for (const int64_t number : {from->rank, from->device})
    if (number < CULPRIT_NONE || number >= UINT32_MAX) return fmt::format("rank or device {}", number);
  if (from->severity > CULPRIT_FATAL) return fmt::format("severity {}", from->severity);
  if (from->state > CULPRIT_CLEARED) return fmt::format("state {}", from->state);
  if (from->value_count > limits::kPluginValues) return fmt::format("{} values", from->value_count);
  for (uint64_t i = 0; i < from->value_count; ++i)
    if (!from->values || !from->values[i] || from->values[i]->size < kValueSize)
      return fmt::format("value {} is missing", i);
  return "";
}

PluginFinding copy_finding(const culprit_detector_finding& from) {
  PluginFinding out;
  out.id = text_of(from.id);
  out.title = text_of(from.title);
  out.text = text_of(from.text);
  out.category = text_of(from.category);
  out.component = text_of(from.component);
  out.symptom = text_of(from.symptom);
  out.action = text_of(from.action);
  out.remedy = text_of(from.remedy);
  out.host = text_of(from.host);
  out.job = text_of(from.job);
  out.peer = text_of(from.peer);
  out.part = text_of(from.part);
  if (CULPRIT_HAS(&from, culprit_detector_finding, restart)) out.restart = text_of(from.restart);
  if (from.rank != CULPRIT_NONE) out.rank = static_cast<uint32_t>(from.rank);
  if (from.device != CULPRIT_NONE) out.device = static_cast<uint32_t>(from.device);
  out.time_ns = from.time_ns;
  out.confidence = from.confidence;
  out.severity = static_cast<PluginSeverity>(from.severity);
  out.state = static_cast<PluginState>(from.state);
  for (uint64_t i = 0; i < from.value_count; ++i)
    out.values.emplace_back(text_of(from.values[i]->name), from.values[i]->value);
  return out;
}

// Of this process.
uint64_t resident_bytes() {
  char text[128] = {};
  const int statm = ::open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
  if (statm < 0) return 0;
  const ssize_t size = ::read(statm, text, sizeof text - 1);
  ::close(statm);
  const char* second = size > 0 ? std::strchr(text, ' ') : nullptr;
  return second ? std::strtoull(second, nullptr, 10) * static_cast<uint64_t>(::sysconf(_SC_PAGESIZE)) : 0;
}

}  // namespace

std::string finding_fault(const PluginFinding& finding) {
  if (!is_id(finding.id)) return fmt::format("the id '{}' is not 1 to 64 of [a-z0-9._-]", finding.id);
  if (finding.id.starts_with("culprit.")) return fmt::format("the id '{}' is of Culprit itself", finding.id);
  if (finding.title.empty()) return "the title is empty";
  if (finding.time_ns < 0 && finding.time_ns != kNoTime)
    return fmt::format("the time {} is before 1970", finding.time_ns);
  for (const auto& [what, name] :
       {std::pair{"host", &finding.host}, {"job", &finding.job}, {"peer", &finding.peer}})
    if (name->size() > limits::kNameBytes)
      return fmt::format("the {} has {} bytes; {} are allowed", what, name->size(), limits::kNameBytes);
  if (!(finding.confidence >= 0 && finding.confidence <= 1))
    return fmt::format("the confidence {} is not between 0 and 1", finding.confidence);
  if (finding.values.size() > limits::kPluginValues) return fmt::format("{} values", finding.values.size());
  for (const auto text : kPluginFindingTexts)
    if ((finding.*text).size() > kTextMax) return "a text is too long";
  if (finding.device >= limits::kDevicesOfHost) return fmt::format("device {}", *finding.device);
  for (const auto& [name, value] : finding.values)
    if (name.empty() || name.size() > limits::kNameBytes) return "the name of a value is empty or too long";
  std::set<std::string_view> names;
  for (const auto& [name, value] : finding.values)
    if (!names.insert(name).second) return fmt::format("the value {} is there twice", name);
  return "";
}

Detector::Detector(Setup setup) : setup_(std::move(setup)) {
  host_.size = sizeof host_;
  host_.context = this;
  host_.version = setup_.version.c_str();
  host_.name = setup_.host.c_str();
  host_.log = [](const culprit_host* host, uint32_t severity, const char* text) {
    const BackInDaemon back(of(host).setup_.code_of_plugin);
    of(host).setup_.log(std::min<uint32_t>(severity, CULPRIT_FATAL), text_of(text));
  };
  host_.emit = [](const culprit_host* host, const culprit_detector_finding* finding) -> int32_t {
    const BackInDaemon back(of(host).setup_.code_of_plugin);
    return of(host).emit(finding);
  };
  host_.option = [](const culprit_host* host, const char* name) -> const char* {
    if (!name) return nullptr;
    for (const auto& [known, value] : of(host).setup_.options)
      if (known == name) return value.c_str();
    return nullptr;
  };
  host_.budget = [](const culprit_host* host, culprit_budget* budget) -> int32_t {
    const BackInDaemon back(of(host).setup_.code_of_plugin);
    return of(host).fill_budget(budget);
  };
  host_.extension = [](const culprit_host*, const char*) -> const void* { return nullptr; };
}

Result<std::unique_ptr<Detector>> Detector::create(const Library& library, Setup setup) {
  std::unique_ptr<Detector> out(new Detector(std::move(setup)));
  if (const Status begun = out->begin(library); !begun) return tl::unexpected(begun.error());
  return out;
}

Status Detector::begin(const Library& library) {
  name_ = library.description.name;
  minute_ = setup_.mono();
  {
    const InPlugin in(setup_.code_of_plugin);
    detector_ = library.plugin->create(&host_);
  }
  if (!detector_) return fail(ErrorCode::kInvalid, "create returns no detector");
  if (detector_->size < kDetectorSize || !detector_->destroy) {
    detector_ = nullptr;  // there is no way to free it
    return fail(ErrorCode::kInvalid, "culprit_detector lacks members");
  }
  if (library.description.events != 0 && !detector_->observe)
    return fail(ErrorCode::kInvalid, "it wants events and has no observe");
  if (library.description.tick_ms != 0 && !detector_->tick)
    return fail(ErrorCode::kInvalid, "it wants ticks and has no tick");
  return {};
}

Detector::~Detector() {
  const InPlugin in(setup_.code_of_plugin);
  if (detector_) detector_->destroy(detector_);
}

int32_t Detector::observe(const culprit_event* const* events, uint64_t count) noexcept {
  if (count == 0 || !detector_->observe) return CULPRIT_OK;
  const InPlugin in(setup_.code_of_plugin);
  return detector_->observe(detector_, events, count);
}

int32_t Detector::tick(TimeNs wall) noexcept {
  if (!detector_->tick) return CULPRIT_OK;
  const InPlugin in(setup_.code_of_plugin);
  return detector_->tick(detector_, wall);
}

std::string Detector::save_state() {
  if (!detector_->save_state) return "";
  const auto save = [&](void* buffer, uint64_t capacity) noexcept {
    const InPlugin in(setup_.code_of_plugin);
    return detector_->save_state(detector_, buffer, capacity);
  };
  const int64_t size = save(nullptr, 0);
  if (size <= 0 || static_cast<uint64_t>(size) > limits::kPluginStateBytes) {
    if (size != 0) setup_.log(CULPRIT_WARNING, fmt::format("save_state returns {}: no state is kept", size));
    return "";
  }
  std::string state(static_cast<size_t>(size), '\0');
  if (save(state.data(), state.size()) == size) return state;
  setup_.log(CULPRIT_WARNING, "save_state returns another size than before: no state is kept");
  return "";
}

bool Detector::load_state(std::string_view state) noexcept {
  if (!detector_->load_state) return false;
  const InPlugin in(setup_.code_of_plugin);
  return detector_->load_state(detector_, state.data(), state.size()) >= 0;
}

uint64_t Detector::findings_left() {
  const TimeNs now = setup_.mono();
  if (now - minute_ >= kMinuteNs) {
    minute_ = now;
    findings_of_minute_ = 0;
  }
  const uint64_t limit = setup_.limits.findings_per_minute, used = findings_of_minute_;
  return limit == 0 ? UINT64_MAX : limit - std::min(limit, used);
}

int32_t Detector::emit(const culprit_detector_finding* from) {
  std::string fault = unreadable(from);
  PluginFinding finding;
  if (fault.empty()) {
    finding = copy_finding(*from);
    fault = finding_fault(finding);
  }
  if (!fault.empty()) {
    ++findings_dropped_;
    setup_.log(CULPRIT_WARNING, "a finding is invalid: " + fault);
    return CULPRIT_ERROR_INVALID;
  }
  if (findings_left() == 0) {
    ++findings_dropped_;
    return CULPRIT_ERROR_LIMIT;
  }
  ++findings_of_minute_;
  finding.plugin = name_;
  setup_.found(std::move(finding));
  return CULPRIT_OK;
}

int32_t Detector::fill_budget(culprit_budget* budget) {
  if (!budget || budget->size < sizeof budget->size) return CULPRIT_ERROR_INVALID;
  const DetectorLimits& limits = setup_.limits;
  const uint64_t limit = limits.findings_per_minute, left = findings_left();
  const culprit_budget full{budget->size,
                            limits.memory_bytes,
                            resident_bytes(),
                            limits.cpu_ppm,
                            static_cast<uint64_t>(limits.call_ns),
                            limit,
                            limit == 0 ? 0 : left};
  std::memcpy(budget, &full, std::min<uint64_t>(budget->size, sizeof full));
  return CULPRIT_OK;
}

}  // namespace culprit::plughost
