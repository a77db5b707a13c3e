#include "capture/tool_text.h"

#include <fmt/format.h>
#include <simdjson.h>

#include <algorithm>
#include <charconv>
#include <optional>

#include "base/text.h"

namespace culprit::capture {
namespace {

namespace dom = simdjson::dom;

class Builder {
 public:
  void thread(std::string_view name, uint64_t tid) {
    open_ = out_.threads.size() < kToolThreads;
    if (!open_) return void(++out_.dropped);
    out_.threads.push_back({shorten(to_utf8(name), kFrameBytes), tid, false, {}});
  }
  // part() replaces single colons, which separate parts; the double colons of C++ names stay.
  void frame(std::string_view file, std::string_view function, uint64_t line) {
    if (!open_) return;
    if (out_.threads.back().frames.size() >= kToolFrames) return void(++out_.dropped);
    std::string text = part(file) + ":" + part(function);
    if (line > 0) text += fmt::format(":{}", line);
    out_.threads.back().frames.push_back(std::move(text));
  }
  void set_gil(bool holds) {
    if (open_) out_.threads.back().holds_gil = holds;
  }
  bool is_open() const { return open_; }
  Result<Stacks> finish(const char* tool) {
    std::erase_if(out_.threads, [](const StackedThread& thread) { return thread.frames.empty(); });
    if (out_.threads.empty()) return fail(ErrorCode::kInvalid, fmt::format("{} printed no stack", tool));
    return std::move(out_);
  }

 private:
  static std::string part(std::string_view text) {
    // Keeps the end of a long path, which is more informative than its beginning.
    if (text.size() > kFrameBytes) text.remove_prefix(text.size() - kFrameBytes);
    std::string out = to_utf8(trim(text));
    while (out.starts_with(':')) out.erase(0, 1);
    for (size_t i = 0; i < out.size(); ++i) {
      if (out[i] == ':' && i + 1 < out.size() && out[i + 1] == ':')
        ++i;
      else if (out[i] == ':')
        out[i] = '.';
      else if (static_cast<unsigned char>(out[i]) < ' ')
        out[i] = '?';
    }
    return out;
  }
  Stacks out_;
  bool open_ = false;
};

template <class Number>
std::optional<Number> leading_number(std::string_view text, int base = 10) {
  Number n = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), n, base);
  return error == std::errc() ? std::optional(n) : std::nullopt;
}

std::string_view member_text(dom::object object, const char* key) {
  std::string_view out;
  return object.at_key(key).get(out) == simdjson::SUCCESS ? out : std::string_view();
}
uint64_t member_number(dom::object object, const char* key) {
  uint64_t out = 0;
  return object.at_key(key).get(out) == simdjson::SUCCESS ? out : 0;
}
bool member_flag(dom::object object, const char* key) {
  bool out = false;
  return object.at_key(key).get(out) == simdjson::SUCCESS && out;
}

// Parses "__poll (fds=0x1, n=2) at poll.c:29", "?? () from /lib/x.so", "_start ()".
void gdb_frame(std::string_view text, Builder& out) {
  if (text.starts_with("0x")) {
    const size_t in = text.find(" in ");
    if (in == text.npos) return;
    text.remove_prefix(in + 4);
  }
  const size_t arguments = text.find(" (");
  const std::string_view function = text.substr(0, arguments);
  const size_t at = text.rfind(") at "), from = text.rfind(") from ");
  if (at != text.npos) {
    const std::string_view place = text.substr(at + 5);
    const size_t colon = place.rfind(':');
    const uint64_t line =
        colon == place.npos ? 0 : leading_number<uint64_t>(place.substr(colon + 1)).value_or(0);
    return out.frame(place.substr(0, colon), function, line);
  }
  out.frame(from == text.npos ? "" : text.substr(from + 7), function, 0);
}

}  // namespace

Result<Stacks> read_py_spy(std::string_view json) {
  dom::parser parser;
  dom::array threads;
  const simdjson::padded_string padded(json);
  if (parser.parse(padded).get(threads) != simdjson::SUCCESS)
    return fail(ErrorCode::kInvalid, "py-spy printed no array of threads");
  Builder out;
  for (const dom::element element : threads) {
    dom::object thread;
    dom::array frames;
    if (element.get(thread) != simdjson::SUCCESS) continue;
    if (thread.at_key("frames").get(frames) != simdjson::SUCCESS) continue;
    out.thread(member_text(thread, "thread_name"), member_number(thread, "os_thread_id"));
    out.set_gil(member_flag(thread, "owns_gil"));
    for (const dom::element at : frames) {
      dom::object frame;
      if (at.get(frame) != simdjson::SUCCESS) continue;
      const std::string_view file = member_text(frame, "short_filename");
      out.frame(file.empty() ? member_text(frame, "filename") : file, member_text(frame, "name"),
                member_number(frame, "line"));
    }
  }
  return out.finish("py-spy");
}

// Thread 2 (Thread 0x7f… (LWP 12) "name"):
// #0  0x00007f… in __poll (fds=…) at ../poll.c:29
Result<Stacks> read_gdb(std::string_view text) {
  Builder out;
  for (const std::string_view line : split(text, '\n')) {
    if (line.starts_with("Thread ") && line.find(" (") != line.npos) {
      const size_t lwp = line.find("LWP ");
      const size_t open = line.find('"'), close = line.rfind('"');
      const uint64_t tid = lwp == line.npos ? 0 : leading_number<uint64_t>(line.substr(lwp + 4)).value_or(0);
      const bool named = open != line.npos && close > open;
      out.thread(named ? line.substr(open + 1, close - open - 1) : std::string_view(), tid);
    } else if (line.starts_with("#")) {
      if (!out.is_open()) out.thread("", 0);
      const size_t blank = line.find(' ');
      if (blank != line.npos) gdb_frame(trim(line.substr(blank)), out);
    }
  }
  return out.finish("gdb");
}

// TID 12:
// #0  0x00007f… __poll - /lib/x86_64-linux-gnu/libc.so.6
Result<Stacks> read_eu_stack(std::string_view text) {
  Builder out;
  for (const std::string_view line : split(text, '\n')) {
    if (line.starts_with("TID ")) {
      out.thread("", leading_number<uint64_t>(line.substr(4)).value_or(0));
    } else if (line.starts_with("#")) {
      const size_t address = line.find("0x");
      const size_t blank = address == line.npos ? line.npos : line.find(' ', address);
      if (address == line.npos) continue;
      std::string_view rest = blank == line.npos ? std::string_view() : trim(line.substr(blank));
      const size_t dash = rest.rfind(" - ");
      const std::string_view library = dash == rest.npos ? std::string_view() : rest.substr(dash + 3);
      rest = rest.substr(0, dash);
      if (rest.starts_with("- ")) rest = {};
      out.frame(library, rest.empty() ? "??" : rest, 0);
    }
  }
  return out.finish("eu-stack");
}

// Thread 0x00007f… (most recent call first):
//   File "/x/train.py", line 12 in forward
Result<Stacks> read_faulthandler(std::string_view text) {
  constexpr std::string_view kFile = "  File \"", kLine = "\", line ", kIn = " in ";
  Builder out;
  for (const std::string_view line : split(text, '\n')) {
    const bool current = line.starts_with("Current thread ");
    if ((current || line.starts_with("Thread ")) && line.find("(most recent call first)") != line.npos) {
      // Usually the signal reaches the main thread, but the current thread may be another one.
      const size_t open = line.find('['), close = line.rfind(']');
      const bool named = open != line.npos && close != line.npos && close > open;
      out.thread(named ? line.substr(open + 1, close - open - 1) : current ? "current" : "", 0);
    } else if (line.starts_with(kFile)) {
      const size_t at = line.rfind(kLine);
      if (at == line.npos || at < kFile.size()) continue;
      const std::string_view rest = line.substr(at + kLine.size());
      const size_t in = rest.find(kIn);
      const std::string_view function = in == rest.npos ? "??" : rest.substr(in + kIn.size());
      out.frame(line.substr(kFile.size(), at - kFile.size()), function,
                leading_number<uint64_t>(rest).value_or(0));
    }
  }
  return out.finish("faulthandler");
}

}  // namespace culprit::capture
