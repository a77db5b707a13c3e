#include "plughost/messages.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>

#include "base/bytes.h"
#include "base/limits.h"

namespace culprit::plughost {
namespace {

constexpr uint16_t kMagic = 0x43c7;
constexpr size_t kReadBytes = 64 << 10;

void put_text(std::string& out, std::string_view text) {
  put(out, static_cast<uint32_t>(text.size()));
  out.append(text);
}

std::string get_text(Cursor& in) { return std::string(in.read_bytes(in.get<uint32_t>())); }

void put_optional(std::string& out, const std::optional<uint32_t>& value) {
  put(out, value ? int64_t{*value} : int64_t{-1});
}

std::optional<uint32_t> get_optional(Cursor& in) {
  const auto value = in.get<int64_t>();
  return value < 0 || value > UINT32_MAX ? std::nullopt : std::optional(static_cast<uint32_t>(value));
}

bool whole(const Cursor& in) { return !in.bad() && in.at_end(); }

}  // namespace

std::string encode(const CreateRequest& request) {
  std::string out;
  put_text(out, request.host);
  put_text(out, request.version);
  put(out, request.limits.memory_bytes);
  put(out, request.limits.cpu_ppm);
  put(out, request.limits.findings_per_minute);
  put(out, request.limits.call_ns);
  put(out, static_cast<uint32_t>(request.options.size()));
  for (const auto& [name, value] : request.options) {
    put_text(out, name);
    put_text(out, value);
  }
  put_text(out, request.state);
  return out;
}

bool decode(std::string_view bytes, CreateRequest& out) {
  Cursor in(bytes);
  out.host = get_text(in);
  out.version = get_text(in);
  out.limits.memory_bytes = in.get<uint64_t>();
  out.limits.cpu_ppm = in.get<uint64_t>();
  out.limits.findings_per_minute = in.get<uint64_t>();
  out.limits.call_ns = in.get<TimeNs>();
  const auto count = in.get<uint32_t>();
  if (count > limits::kPluginOptions) return false;
  for (uint32_t i = 0; i < count && !in.bad(); ++i) {
    std::string name = get_text(in);
    out.options.emplace_back(std::move(name), get_text(in));
  }
  out.state = get_text(in);
  return whole(in);
}

std::string encode(const Description& description) {
  std::string out;
  for (const std::string* text :
       {&description.name, &description.version, &description.vendor, &description.about})
    put_text(out, *text);
  put(out, description.abi_major);
  put(out, description.abi_minor);
  put(out, description.events);
  put(out, description.tick_ms);
  put(out, static_cast<uint32_t>(description.options.size()));
  for (const OptionSpec& option : description.options) {
    put_text(out, option.name);
    put_text(out, option.default_value);
    put_text(out, option.about);
    put(out, option.minimum);
    put(out, option.maximum);
    put(out, option.type);
  }
  return out;
}

bool decode(std::string_view bytes, Description& out) {
  Cursor in(bytes);
  for (std::string* text : {&out.name, &out.version, &out.vendor, &out.about}) *text = get_text(in);
  out.abi_major = in.get<uint32_t>();
  out.abi_minor = in.get<uint32_t>();
  out.events = in.get<uint64_t>();
  out.tick_ms = in.get<uint64_t>();
  const auto count = in.get<uint32_t>();
  if (count > limits::kPluginOptions) return false;
  for (uint32_t i = 0; i < count && !in.bad(); ++i) {
    OptionSpec& option = out.options.emplace_back();
    for (std::string* text : {&option.name, &option.default_value, &option.about}) *text = get_text(in);
    option.minimum = in.get<double>();
    option.maximum = in.get<double>();
    option.type = in.get<uint32_t>();
  }
  return whole(in);
}

std::string encode(const PluginFinding& finding) {
  std::string out;
  for (const auto text : kPluginFindingTexts) put_text(out, finding.*text);
  put_optional(out, finding.rank);
  put_optional(out, finding.device);
  put(out, finding.time_ns);
  put(out, finding.confidence);
  put(out, finding.severity);
  put(out, finding.state);
  put(out, static_cast<uint32_t>(finding.values.size()));
  for (const auto& [name, value] : finding.values) {
    put_text(out, name);
    put(out, value);
  }
  return out;
}

bool decode(std::string_view bytes, PluginFinding& out) {
  Cursor in(bytes);
  for (const auto text : kPluginFindingTexts) out.*text = get_text(in);
  out.rank = get_optional(in);
  out.device = get_optional(in);
  out.time_ns = in.get<TimeNs>();
  out.confidence = in.get<double>();
  const auto severity = in.get<uint8_t>(), state = in.get<uint8_t>();
  if (severity > CULPRIT_FATAL || state > CULPRIT_CLEARED) return false;
  out.severity = static_cast<PluginSeverity>(severity);
  out.state = static_cast<PluginState>(state);
  const auto count = in.get<uint32_t>();
  if (count > limits::kPluginValues) return false;
  for (uint32_t i = 0; i < count && !in.bad(); ++i) {
    std::string name = get_text(in);
    out.values.emplace_back(std::move(name), in.get<double>());
  }
  return whole(in);
}

std::string encode(const LogLine& line) {
  std::string out;
  put(out, line.severity);
  put_text(out, line.text);
  return out;
}

bool decode(std::string_view bytes, LogLine& out) {
  Cursor in(bytes);
  out.severity = in.get<uint32_t>();
  out.text = get_text(in);
  return whole(in) && out.severity <= CULPRIT_FATAL;
}

std::string encode(const Done& done) {
  std::string out;
  put(out, done.kind);
  put(out, done.result);
  put(out, done.findings_dropped);
  return out;
}

bool decode(std::string_view bytes, Done& out) {
  Cursor in(bytes);
  out.kind = in.get<MessageKind>();
  out.result = in.get<int32_t>();
  out.findings_dropped = in.get<uint64_t>();
  return whole(in) && (out.kind == MessageKind::kEvents || out.kind == MessageKind::kTick);
}

void append_message(std::string& out, MessageKind kind, std::string_view payload) {
  put(out, static_cast<uint32_t>(payload.size()));
  put(out, static_cast<uint16_t>(kind));
  put(out, kMagic);
  out.append(payload);
}

void set_message_size(std::string& out, size_t at) {
  const auto size = static_cast<uint32_t>(out.size() - at - kMessageHeadBytes);
  std::memcpy(out.data() + at, &size, sizeof size);
}

char* MessageReader::room(size_t& size) {
  if (begin_ > 0) {  // the rest is small, except for the largest messages
    std::memmove(bytes_.data(), bytes_.data() + begin_, filled_ - begin_);
    filled_ -= begin_;
    begin_ = 0;
  }
  size_t needed = filled_ + kReadBytes;
  if (filled_ >= kMessageHeadBytes)
    needed = std::max(needed, kMessageHeadBytes +
                                  std::min<size_t>(get_at<uint32_t>(bytes_, 0), limits::kPluginMessageBytes));
  if (bytes_.size() < needed) bytes_.resize(needed);
  size = bytes_.size() - filled_;
  return bytes_.data() + filled_;
}

MessageReader::Next MessageReader::next(Message& out) {
  const std::string_view left = std::string_view(bytes_).substr(begin_, filled_ - begin_);
  if (left.size() < kMessageHeadBytes) return Next::kNone;
  const auto size = get_at<uint32_t>(left, 0);
  if (get_at<uint16_t>(left, 6) != kMagic || size > limits::kPluginMessageBytes) return Next::kMalformed;
  if (left.size() - kMessageHeadBytes < size) return Next::kNone;
  out.kind = static_cast<MessageKind>(get_at<uint16_t>(left, 4));
  out.payload = left.substr(kMessageHeadBytes, size);
  begin_ += kMessageHeadBytes + size;
  return Next::kMessage;
}

}  // namespace culprit::plughost
