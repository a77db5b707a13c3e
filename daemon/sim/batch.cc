#include "sim/batch.h"

#include <array>

#include <fmt/format.h>

namespace culprit::sim {

namespace {

constexpr std::array<std::string_view, 4> kLong = {"DEBUG", "INFO", "WARNING", "ERROR"};
constexpr std::array<std::string_view, 4> kLower = {"debug", "info", "warning", "error"};
constexpr std::string_view kLetter = "DIWE";

void append_padded(std::string& out, int64_t value, unsigned width) {
  const fmt::format_int digits(value);
  for (size_t n = digits.size(); n < width; ++n) out += '0';
  out.append(digits.data(), digits.size());
}

int64_t fraction(TimeNs time, int64_t unit) { return time % kNsPerSecond / unit; }

// "1121 09:26:37.123456"
void append_glog_time(TimeNs time, std::string& out) {
  const std::string_view date = date_and_time(time);
  out.append(date.substr(5, 2)).append(date.substr(8, 2)).append(" ").append(date.substr(11));
  out += '.';
  append_padded(out, fraction(time, kNsPerUs), 6);
}

void append_with_ms(TimeNs time, char before_ms, std::string& out) {
  out += date_and_time(time);
  out += before_ms;
  append_padded(out, fraction(time, kNsPerMs), 3);
}

void append_python(const Context& context, Tone tone, std::string& out) {
  const std::string_view level = kLong[static_cast<size_t>(tone)];
  const TimeNs time = context.local_ns;
  switch (context.site.python_style) {
    case 0:
      append_with_ms(time, ',', out), out += ' ', out += level, out += ' ';
      break;
    case 1:
      append_with_ms(time, ',', out), out += " - ", out += level, out += " - ";
      break;
    case 2:
      out += '[', append_with_ms(time, ',', out), out += "][", out += level, out += "] ";
      break;
    case 3:
      out += date_and_time(time, 'T'), out += '.';
      append_padded(out, fraction(time, kNsPerUs), 6), out += "Z ", out += level, out += ' ';
      break;
    default: {
      const std::string date(date_and_time(time));
      fmt::format_to(std::back_inserter(out), "{}/{}/{} {} - {} - ", date.substr(5, 2), date.substr(8, 2),
                     date.substr(0, 4), date.substr(11), level);
    }
  }
}

// Returns the text up to its first '|': the header field of a text that has one.
std::string take_field(const std::string& text) {
  const size_t bar = text.find('|');
  return bar == text.npos ? std::string() : text.substr(0, bar);
}

void append_fielded(const Line& line, const Context& context, std::string& out) {
  std::string text;
  line.text->expand(context, text);
  const std::string field = take_field(text);
  const std::string_view level = kLong[static_cast<size_t>(line.tone)];
  if (line.shape == Shape::kHf) {
    out.append("[").append(level).append("|").append(field).append("] ");
    append_with_ms(context.local_ns, ',', out);
    out += " >> ";
  } else {
    out.append("[").append(level).append("] ").append(field).append("(");
    append_int(out, pid_of(context.run, context.host, context.local));
    out += ",python3):";
    std::string stamp(date_and_time(context.local_ns, '-'));
    out += stamp, out += '.';
    append_padded(out, fraction(context.local_ns, kNsPerMs), 3), out += '.';
    append_padded(out, fraction(context.local_ns, kNsPerUs) % 1000, 3), out += ' ';
  }
  out.append(text, field.empty() ? 0 : field.size() + 1);
}

void append_nccl(const Line& line, const Context& context, std::string& out) {
  out += context.run.hosts[context.host].name;
  out += ':';
  append_int(out, pid_of(context.run, context.host, context.local));
  out += ':';
  append_int(out, pid_of(context.run, context.host, context.local) + 512 + context.local);
  out += " [", append_int(out, context.local);
  out += line.tone >= Tone::kWarning ? "] " : "] NCCL INFO ";
}

void append_kernel(const Context& context, std::string& out) {
  const int64_t up = context.local_ns - context.run.hosts[context.host].boot_ns;
  const int64_t seconds = up / kNsPerSecond;
  out += '[';
  for (int64_t bound = 10'000; bound > seconds && bound > 1; bound /= 10) out += ' ';
  append_int(out, seconds), out += '.';
  append_padded(out, fraction(up, kNsPerUs), 6), out += "] ";
}

void append_torch_cpp(const Line& line, const Context& context, std::string& out) {
  const char letter = kLetter[static_cast<size_t>(line.tone)];
  if (!context.site.new_torch) {
    out += '[', out += letter, out += ' ';
    return;
  }
  if (context.site.layout != "rank-stream") {
    out += "[rank";
    append_int(out, context.host * context.site.ranks_per_host + context.local);
    out += "]:";
  }
  out += '[', out += letter;
  append_glog_time(context.local_ns, out);
  append_padded(out, fraction(context.local_ns, 1) % 1000, 3), out += ' ';
}

void append_elastic(const Line& line, const Context& context, std::string& out) {
  if (context.site.new_torch) {
    out += kLetter[static_cast<size_t>(line.tone)];
    append_glog_time(context.local_ns, out);
    out += ' ', append_int(out, context.run.hosts[context.host].pid - 7);
    out += " torch/distributed/elastic/multiprocessing/api.py:", append_int(out, 868);
    out += "] ";
    return;
  }
  out += '[', append_with_ms(context.local_ns, ',', out);
  out += "] torch.distributed.elastic.multiprocessing.api: [";
  out += kLong[static_cast<size_t>(line.tone)];
  out += "] ";
}

}  // namespace

void append_line(const Line& line, const Context& context, std::string& out) {
  const auto tone = static_cast<size_t>(line.tone);
  switch (line.shape) {
    case Shape::kRaw:
      break;
    case Shape::kDeep:
      out += '[', append_with_ms(context.local_ns, ',', out);
      out.append("] [").append(kLong[tone]).append("] ");
      break;
    case Shape::kPython:
      append_python(context, line.tone, out);
      break;
    case Shape::kNccl:
      append_nccl(line, context, out);
      break;
    case Shape::kGlog:
      out += kLetter[tone];
      append_glog_time(context.local_ns, out);
      out += ' ', append_int(out, pid_of(context.run, context.host, context.local)), out += ' ';
      break;
    case Shape::kHf:
    case Shape::kMind:
      return append_fielded(line, context, out);
    case Shape::kNemo:
      out.append("[NeMo ").append(1, kLetter[tone]).append(" ").append(date_and_time(context.local_ns));
      out += ' ';
      break;
    case Shape::kDmesg:
      append_kernel(context, out);
      break;
    case Shape::kMindPy:
      append_with_ms(context.local_ns, ',', out);
      out += " - mindformers[mindformers/core/callback/callback.py:3";
      append_int(out, 10 + static_cast<int64_t>(tone)), out += "] - ";
      out.append(kLong[tone]).append(" - ");
      break;
    case Shape::kTorchCpp:
      append_torch_cpp(line, context, out);
      break;
    case Shape::kElastic:
      append_elastic(line, context, out);
      break;
    case Shape::kLogfmt:
      out.append("time=\"").append(date_and_time(context.local_ns, 'T')).append("Z\" level=");
      out.append(kLower[tone]).append(" msg=");
      break;
  }
  const size_t begin = out.size();
  line.text->expand(context, out);
  if (line.shape != Shape::kDmesg) return;
  // The kernel prints its timestamp before each line of a message.
  for (size_t at = out.find('\n', begin); at != out.npos; at = out.find('\n', at + 1)) {
    std::string stamp;
    append_kernel(context, stamp);
    out.insert(at + 1, stamp);
  }
}

}  // namespace culprit::sim
