#include "capture/pod_ras.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sched.h>
#include <simdjson.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <optional>
#include <utility>

#include "base/text.h"
#include "capture/process.h"
#include "capture/tool.h"
#include "io/ras_client.h"
#include "io/system_error.h"
#include "model/json_writer.h"

namespace culprit::capture {
namespace {

// Fits a line even if each byte is a control character: 6 bytes of JSON.
constexpr size_t kPartBytes = 9 << 10;
constexpr size_t kPodAddresses = 64, kPodWhyBytes = 400;
constexpr const char* kPodDenied = "denied";
constexpr const char* kPodNotFound = "not_found";

class Descriptor {
 public:
  explicit Descriptor(const std::string& path) : fd_(::open(path.c_str(), O_RDONLY | O_CLOEXEC)) {}
  ~Descriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int get() const { return fd_; }

 private:
  const int fd_;
};

// Empty: one of them cannot be read.
std::optional<bool> is_same(int namespace_fd, const char* path) {
  struct stat its {
  }, other{};
  if (::fstat(namespace_fd, &its) != 0 || ::stat(path, &other) != 0) return std::nullopt;
  return its.st_dev == other.st_dev && its.st_ino == other.st_ino;
}

// Enters the network namespace; returns the uid of the process.
Result<uint32_t> enter_network_of(const Target& target) {
  const std::string folder = fmt::format("/proc/{}", target.pid);
  const Descriptor space(folder + "/ns/net");
  const int error = errno;
  // The start time is read after the descriptor is opened, so that both belong to the same process.
  const auto stat = ProcessReader().stat(target.pid);
  const auto status = parse_status(read_some(folder + "/status"));
  if (!stat || !status || (target.start_ticks != 0 && stat->start_ticks != target.start_ticks))
    return fail(ErrorCode::kNotFound, "the process has exited");
  if (space.get() < 0) return io::system_failure("its network namespace", error);
  // The namespace of process 1 may be unreadable. Then the namespace is entered, and the checks of the
  // listener's user apply.
  if (is_same(space.get(), "/proc/self/ns/net").value_or(true) ||
      is_same(space.get(), "/proc/1/ns/net").value_or(false))
    return fail(ErrorCode::kInvalid, "the process is in no network namespace of its own");
  if (::setns(space.get(), CLONE_NEWNET) != 0) return io::system_failure("its network namespace", errno);
  return status->uid;
}

const char* code_of(ErrorCode code) {
  if (code == ErrorCode::kDenied) return kPodDenied;
  return code == ErrorCode::kNotFound ? kPodNotFound : "failed";
}

std::string part_line(const Target& target, uint64_t part, std::string_view text) {
  JsonWriter w;
  w.object([&] {
    w.field("kind", "part");
    w.field("pid", target.pid);
    w.field("part", part);
    w.field("text", text);
  });
  return w.finish() + "\n";
}

// The largest part that does not split a character.
size_t part_size(std::string_view text) {
  size_t size = std::min(text.size(), kPartBytes);
  while (size < text.size() && size > kPartBytes - 4 && (text[size] & 0xc0) == 0x80) --size;
  return size;
}

namespace dom = simdjson::dom;

std::string_view word_of(dom::object line, const char* key) {
  std::string_view out;
  return line.at_key(key).get(out) == simdjson::SUCCESS ? out : std::string_view();
}
uint64_t count_of(dom::object line, const char* key) {
  uint64_t out = 0;
  return line.at_key(key).get(out) == simdjson::SUCCESS ? out : 0;
}

// Of the last line.
Result<PodRas> answer_of(dom::object line, uint64_t parts, std::string text) {
  if (const std::string_view why = word_of(line, "why"); !why.empty()) {
    const std::string_view code = word_of(line, "code");
    const ErrorCode known = code == kPodDenied     ? ErrorCode::kDenied
                            : code == kPodNotFound ? ErrorCode::kNotFound
                                                   : ErrorCode::kIo;
    return fail(known, to_terminal(shorten(why, kPodWhyBytes)));
  }
  if (count_of(line, "parts") != parts || parts == 0)
    return fail(ErrorCode::kIo, fmt::format("the answer has {} of {} parts", parts, count_of(line, "parts")));
  PodRas out;
  out.uid = static_cast<uint32_t>(count_of(line, "uid"));
  out.text = std::move(text);
  dom::array addresses;
  if (line.at_key("addresses").get(addresses) == simdjson::SUCCESS)
    for (const dom::element element : addresses)
      if (std::string_view one; out.addresses.size() < kPodAddresses && element.get(one) == simdjson::SUCCESS)
        out.addresses.emplace_back(one);
  return out;
}

}  // namespace

Result<PodRas> ask_pod_ras(const Target& target, uint16_t port, TimeNs within_ns) {
  const auto uid = enter_network_of(target);
  if (!uid) return tl::unexpected(uid.error());
  if (!give_up_capabilities()) return fail(ErrorCode::kIo, "the rights to enter could not be given up");
  io::RasQuestion question;
  question.address = fmt::format("127.0.0.1:{}", port);
  question.within_ns = within_ns;
  question.most = kPodRasBytes;
  question.only_uid = *uid;
  auto reply = io::ask_ras(question);
  if (!reply) {
    const ErrorCode code = reply.error().code;
    return fail(code == ErrorCode::kDenied ? ErrorCode::kInvalid : code, reply.error().text);
  }
  PodRas out;
  out.uid = *uid;
  for (const std::string& one : io::own_addresses())
    if (out.addresses.size() < kPodAddresses) out.addresses.push_back(one);
  out.text = std::move(reply->text);
  return out;
}

std::string ras_lines(const Target& target, const Result<PodRas>& answer) {
  std::string out;
  uint64_t parts = 0;
  if (answer) {
    const std::string text = to_utf8(answer->text);
    for (std::string_view rest = text; !rest.empty(); ++parts) {
      const size_t size = part_size(rest);
      out += part_line(target, parts, rest.substr(0, size));
      rest.remove_prefix(size);
    }
  }
  JsonWriter w;
  w.object([&] {
    w.field("kind", "ras");
    w.field("pid", target.pid);
    if (!answer) {
      w.field("why", shorten(to_utf8(answer.error().text), kPodWhyBytes));
      w.field("code", code_of(answer.error().code));
      return;
    }
    w.field("uid", answer->uid);
    w.field("parts", parts);
    w.values("addresses", answer->addresses);
  });
  return out + w.finish() + "\n";
}

Result<PodRas> read_ras_lines(uint32_t pid, const std::vector<std::string>& lines) {
  dom::parser parser;
  std::string text;
  uint64_t parts = 0;
  for (const std::string& line : lines) {
    dom::object object;
    if (parser.parse(line).get(object) != simdjson::SUCCESS || count_of(object, "pid") != pid) continue;
    const std::string_view kind = word_of(object, "kind");
    if (kind == "ras") return answer_of(object, parts, std::move(text));
    if (kind != "part" || count_of(object, "part") != parts) continue;  // one is lost: the end tells
    const std::string_view part = word_of(object, "text");
    if (text.size() + part.size() > 2 * kPodRasBytes)
      return fail(ErrorCode::kLimit, "the answer is too long");
    text += part;
    ++parts;
  }
  return fail(ErrorCode::kIo, "culprit-capture gave no answer");
}

}  // namespace culprit::capture
