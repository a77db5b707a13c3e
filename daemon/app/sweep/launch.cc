#include "app/sweep/launch.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <memory>

#include "base/random.h"
#include "base/text.h"
#include "core/sweep/pair_run.h"
#include "io/address.h"
#include "io/descriptors.h"
#include "io/secret_file.h"
#include "io/system_error.h"

namespace culprit::app::sweeping {
namespace {

constexpr size_t kMeetingBytes = 4096, kAddressesMost = 32, kAddressBytes = 253;
constexpr size_t kSecretBytes = 32, kSecretLeast = 16, kSecretMost = 128;
constexpr std::string_view kFirstWord = "culprit-sweep/1";

std::optional<uint32_t> number_of(const std::optional<std::string>& text, uint32_t most) {
  uint32_t out = 0;
  if (!text || text->empty()) return std::nullopt;
  const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), out);
  if (error != std::errc() || end != text->data() + text->size() || out > most) return std::nullopt;
  return out;
}

struct Launcher {
  const char* name;
  const char* rank;
  const char* size;
};
constexpr Launcher kLaunchers[] = {{"Open MPI", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"},
                                   {"PMI", "PMI_RANK", "PMI_SIZE"},
                                   {"Slurm", "SLURM_PROCID", "SLURM_STEP_NUM_TASKS"},
                                   {"Slurm", "SLURM_PROCID", "SLURM_NTASKS"}};

std::string host_name() {
  char name[256] = "";
  (void)::gethostname(name, sizeof name - 1);
  return name;
}

bool is_safe(std::string_view text) {
  return !text.empty() && text.size() <= kAddressBytes && std::ranges::all_of(text, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
           c == '-' || c == '_' || c == ':';
  });
}

using Interfaces = std::unique_ptr<ifaddrs, decltype(&::freeifaddrs)>;
Interfaces interfaces() {
  ifaddrs* out = nullptr;
  if (::getifaddrs(&out) != 0) out = nullptr;
  return {out, &::freeifaddrs};
}

// Empty: none that others can connect to.
std::string text_of(const ifaddrs& one) {
  char text[INET6_ADDRSTRLEN] = "";
  if (!one.ifa_addr || !(one.ifa_flags & IFF_UP)) return {};
  if (one.ifa_addr->sa_family == AF_INET) {
    ::inet_ntop(AF_INET, &reinterpret_cast<const sockaddr_in*>(one.ifa_addr)->sin_addr, text, sizeof text);
  } else if (one.ifa_addr->sa_family == AF_INET6) {
    const auto& v6 = *reinterpret_cast<const sockaddr_in6*>(one.ifa_addr);
    if (!IN6_IS_ADDR_LINKLOCAL(&v6.sin6_addr)) ::inet_ntop(AF_INET6, &v6.sin6_addr, text, sizeof text);
  }
  return text;
}

}  // namespace

Place place_of(const Lookup& variable) {
  Place out;
  for (const Launcher& one : kLaunchers) {
    const auto rank = number_of(variable(one.rank), sweep::kMembersMost - 1);
    const auto size = number_of(variable(one.size), sweep::kMembersMost);
    if (!rank || !size || *size == 0 || *rank >= *size) continue;
    out.rank = *rank, out.size = *size, out.from = one.name;
    break;
  }
  out.host = variable("SLURMD_NODENAME").value_or("");
  if (!is_safe(out.host)) out.host = host_name();
  const auto job = variable("SLURM_JOB_ID"), step = variable("SLURM_STEP_ID");
  if (job && is_safe(*job)) out.job = *job + "." + (step && is_safe(*step) ? *step : "0");
  for (const char* name : {"PMIX_NAMESPACE", "PMI_JOBID", "PMI_ID_JOB"})
    if (const auto id = variable(name); out.job.empty() && id && is_safe(*id)) out.job = *id;
  return out;
}

std::string meeting_text(const MeetingFile& meeting) {
  std::string out = fmt::format("{} {} {}", kFirstWord, meeting.port, meeting.secret);
  for (const std::string& address : meeting.addresses) out += " " + address;
  return out + "\n";
}

Result<MeetingFile> parse_meeting(std::string_view text) {
  const auto wrong = [](const char* why) { return fail(ErrorCode::kInvalid, why); };
  if (text.size() > kMeetingBytes || !text.ends_with('\n')) return wrong("it is cut or too long");
  text.remove_suffix(1);
  const auto words = split(text, ' ');
  if (words.size() < 4 || words.size() > 3 + kAddressesMost || words[0] != kFirstWord)
    return wrong("it is no meeting file of a sweep");
  MeetingFile out;
  const auto port = number_of(std::string(words[1]), 65535);
  if (!port || *port == 0) return wrong("its port is none");
  out.port = static_cast<uint16_t>(*port);
  out.secret = std::string(words[2]);
  if (out.secret.size() < kSecretLeast || out.secret.size() > kSecretMost || !is_safe(out.secret))
    return wrong("its secret is none");
  for (size_t i = 3; i < words.size(); ++i) {
    if (!is_safe(words[i])) return wrong("an address is none");
    out.addresses.emplace_back(words[i]);
  }
  return out;
}

Status write_meeting(const std::string& path, const MeetingFile& meeting) {
  const auto suffix = random_secret();
  if (!suffix) return fail(ErrorCode::kIo, "no random numbers");
  const std::string temporary = path + "." + suffix->substr(0, 12);
  io::Descriptor file(::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (!file.is_open()) return io::system_failure(path, errno);
  const std::string text = meeting_text(meeting);
  const bool whole = ::write(file.get(), text.data(), text.size()) == static_cast<ssize_t>(text.size()) &&
                     ::fsync(file.get()) == 0;
  if (!whole || ::rename(temporary.c_str(), path.c_str()) != 0) {
    const int error = errno;
    (void)::unlink(temporary.c_str());
    return io::system_failure(path, error);
  }
  return {};
}

Result<MeetingFile> read_meeting(const std::string& path) {
  io::Descriptor file(::open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK));
  if (!file.is_open()) return io::system_failure(path, errno);
  struct stat is {};
  if (::fstat(file.get(), &is) != 0 || !S_ISREG(is.st_mode))
    return fail(ErrorCode::kInvalid, path + ": is no file");
  if (is.st_uid != ::geteuid() || (is.st_mode & 077) != 0)
    return fail(ErrorCode::kDenied, path + ": belongs to another user, or others may read it");
  std::string text(kMeetingBytes + 1, '\0');
  const ssize_t n = ::read(file.get(), text.data(), text.size());
  text.resize(n > 0 ? static_cast<size_t>(n) : 0);
  auto out = parse_meeting(text);
  if (!out) return fail(out.error().code, path + ": " + out.error().text);
  return out;
}

std::vector<std::string> own_addresses() {
  std::vector<std::string> out;
  if (const std::string name = host_name(); is_safe(name)) out.push_back(name);
  const Interfaces all = interfaces();
  for (const ifaddrs* one = all.get(); one && out.size() < kAddressesMost - 1; one = one->ifa_next) {
    if (one->ifa_flags & IFF_LOOPBACK) continue;
    if (const std::string text = text_of(*one); is_safe(text)) out.push_back(text);
  }
  if (out.size() < 2) out.emplace_back("127.0.0.1");
  return out;
}

Result<std::string> address_of_interface(const std::string& name) {
  const Interfaces all = interfaces();
  for (const ifaddrs* one = all.get(); one; one = one->ifa_next)
    if (name == one->ifa_name)
      if (std::string text = text_of(*one); !text.empty()) return text;
  return fail(ErrorCode::kNotFound, name + ": no such interface with an address");
}

std::optional<std::string> random_secret() {
  unsigned char bytes[kSecretBytes];
  if (!fill_random(bytes, sizeof bytes)) return std::nullopt;
  std::string out;
  for (const unsigned char byte : bytes) out += fmt::format("{:02x}", byte);
  return out;
}

Result<std::string> given_secret(const std::string& file, const Lookup& variable) {
  std::string out = variable("CULPRIT_SWEEP_SECRET").value_or("");
  if (!file.empty()) {
    auto text = io::read_secret(file, kMeetingBytes);
    if (!text) return tl::unexpected(text.error());
    out = trim(*text);
  }
  if (out.size() >= kSecretLeast) return out;
  return fail(
      ErrorCode::kInvalid,
      "--master needs a secret of 16 characters or more, the same on all hosts: CULPRIT_SWEEP_SECRET or "
      "--secret-file (openssl rand -hex 32)");
}

Result<Meeting> meeting_at(const std::string& address) {
  const auto at = io::split_address(address);
  if (!at || at->port == 0 || !is_safe(at->host))
    return fail(ErrorCode::kInvalid, fmt::format("--master: '{}' is not HOST:PORT", address));
  return Meeting{at->host, at->port, ""};
}

}  // namespace culprit::app::sweeping
