#include "cli/redact.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <re2/re2.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <set>

namespace culprit::cli {
namespace {

using Piece = re2::StringPiece;

// Accounts of the system and words that stand everywhere: they name nobody.
const std::set<std::string, std::less<>> kNobody{
    "root",    "nobody", "daemon", "ubuntu",  "debian", "centos", "ec2-user", "admin",
    "user",    "users",  "none",   "null",    "true",   "false",  "unknown",  "slurm",
    "culprit", "nvidia", "docker", "default", "system", "shared", "public",   "data",
    "work",    "tmp",    "home",   "scratch", "local",  "lib",    "bin"};
constexpr size_t kNameBytes = 3;  // shorter ones would black out parts of other words' company

RE2::Options options() {
  RE2::Options out;
  out.set_log_errors(false);
  out.set_encoding(RE2::Options::EncodingLatin1);  // bytes: a broken character hides nothing
  return out;
}

// The name is the last group.
const std::vector<std::string> kNames{
    R"(/(?:home|Users)/(?:[a-z]/)?([A-Za-z0-9._-]+))",
    R"((?i)\b(?:user|username|login|logname|owner)["']?\s*[=:]\s*["']?([A-Za-z][A-Za-z0-9._-]+))",
    R"(\b(?:uid|gid)=\d+\(([A-Za-z0-9._-]+)\))",
    R"((?i)\bfor user ([A-Za-z][A-Za-z0-9._-]+))",
    R"(\b([A-Za-z][A-Za-z0-9._-]*)@[A-Za-z0-9.-]+:[~/A-Za-z])",
    R"(://([A-Za-z][A-Za-z0-9._-]*)(?::[^/\s@]*)?@)"};

// What the last group holds is a secret.
const std::vector<std::string> kSecrets{
    // key = value, in environments, headers and JSON
    R"((?i)(?:pass(?:word|wd|phrase)?|secret|token|api[_-]?key|access[_-]?key|private[_-]?key|credentials?|)"
    R"(auth(?:orization)?|cookie|session[_-]?id)(?:[_-][A-Z0-9_-]*)?["']?\s*[=:]\s*["']?)"
    R"((?:(?:bearer|basic|token)\s+)?([A-Za-z0-9+/=_.~%@!$^&*:-]{6,}))",
    // of a program's arguments
    R"((?i)--?[a-z0-9_-]*(?:password|passwd|secret|token|api[_-]?key)\s+([A-Za-z0-9+/=_.~%@!$^&*:][^\s"']{5,}))",
    R"((?i)\b(?:bearer|basic)\s+([A-Za-z0-9+/=_.~-]{8,}))", R"(://[^/\s:@]+:([^/\s@]+)@)",
    R"(\b((?:hf|ghp|gho|ghs|ghu|npm|pypi)_[A-Za-z0-9]{16,}))", R"(\b(github_pat_[A-Za-z0-9_]{20,}))",
    R"(\b(glpat-[A-Za-z0-9_-]{16,}))", R"(\b(sk-[A-Za-z0-9_-]{16,}))", R"(\b(xox[abprs]-[A-Za-z0-9-]{10,}))",
    R"(\b((?:AKIA|ASIA)[0-9A-Z]{16}))", R"(\b(AIza[0-9A-Za-z_-]{30,}))",
    R"(\b(eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]*))",
    // in a URL: what a service was asked with, signed links among it
    R"((?i)[?&](?:[a-z0-9_.-]*(?:sig|key|auth|code|session|jwt|sas)[a-z0-9_.-]*)=([^&\s"'<>#]{6,}))"};

// What stands behind a key and "=" or ":" and looks drawn at random. A hash in hex says which file or commit
// it is, and is no key of anything that a vendor may not see; it stays.
constexpr const char* kRandom =
    R"([A-Za-z0-9_.-]+["']?\s*[=:]\s*["']?([A-Za-z0-9+/_-]{24,}={0,2})(?:[\s"',;)}\]]|$))";
// Bits a character: 24 that are drawn from 64 have 4.35 on average, names of classes and files below 4.1.
constexpr double kRandomBits = 4.2;
constexpr int kSlashes = 2;  // base64 has one in 64; a path has more

// Names below these ends are of hosts; file names end otherwise ("train.py", "libcuda.so.1").
constexpr const char* kHostname =
    R"(((?:[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?\.)+)"
    R"((?:com|net|org|edu|gov|mil|int|io|ai|cloud|dev|app|tech|info|local|internal|intranet|lan|corp|home|)"
    R"(private|localdomain|svc|cluster|test|example|eu|de|at|ch|fr|nl|be|uk|ie|it|es|pt|pl|cz|se|no|dk|fi|us|ca|)"
    R"(mx|br|ar|cl|cn|jp|kr|tw|hk|sg|in|au|nz|za|il|tr|ae|sa|ru|ua)))";
// Of everybody: they name no site.
const std::set<std::string, std::less<>> kPublicHosts{
    "github.com", "huggingface.co",  "pytorch.org",         "download.pytorch.org", "pypi.org",
    "nvidia.com", "docs.nvidia.com", "docker.io",           "python.org",           "docs.python.org",
    "wandb.ai",   "api.wandb.ai",    "developer.nvidia.com"};

constexpr const char* kEmail = R"(([A-Za-z0-9._%+-]+@[A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)*\.[A-Za-z]{2,}))";
constexpr const char* kIpv4 = R"((\b(?:25[0-5]|2[0-4]\d|1?\d?\d)(?:\.(?:25[0-5]|2[0-4]\d|1?\d?\d)){3}\b))";
constexpr const char* kIpv6 = R"(([0-9A-Fa-f:]*:[0-9A-Fa-f]*:[0-9A-Fa-f:.]*))";

// Shannon's, bits a character.
double entropy(std::string_view text) {
  std::array<size_t, 256> counts{};
  for (const char c : text) ++counts[static_cast<unsigned char>(c)];
  double bits = 0;
  for (const size_t n : counts)
    if (n > 0)
      bits -= static_cast<double>(n) * std::log2(static_cast<double>(n) / static_cast<double>(text.size()));
  return bits / static_cast<double>(text.size());
}

bool looks_random(std::string_view text) {
  const auto has = [&](const char* kind) { return text.find_first_of(kind) != text.npos; };
  const bool digits = has("0123456789"), lower = has("abcdefghijklmnopqrstuvwxyz"),
             upper = has("ABCDEFGHIJKLMNOPQRSTUVWXYZ");
  return digits && lower && upper && std::count(text.begin(), text.end(), '/') <= kSlashes &&
         entropy(text) >= kRandomBits;
}

bool is_word(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

}  // namespace

struct Redactor::Impl {
  explicit Impl(const RedactOptions& o)
      : keep_ips(o.keep_ips), keep_hosts(o.keep_hosts), keep_all(o.keep_all) {
    for (const std::string& regex : kNames) names.push_back(std::make_unique<RE2>(regex, options()));
    for (const std::string& regex : kSecrets) secrets.push_back(std::make_unique<RE2>(regex, options()));
    for (const std::string& name : o.names)
      if (!name.empty()) users.emplace(name, users.size() + 1);
  }

  void learn_name(std::string_view name) {
    while (name.ends_with('.')) name.remove_suffix(1);
    const bool number = name.find_first_not_of("0123456789.-") == name.npos;
    if (name.size() < kNameBytes || number || kNobody.contains(name)) return;
    users.emplace(std::string(name), users.size() + 1);
  }

  std::string alias(const char* kind, std::string_view text,
                    std::map<std::string, size_t, std::less<>>& known) {
    ++counts[kind];
    const auto at = known.emplace(std::string(text), known.size() + 1).first;
    return fmt::format("[{}-{}]", kind, at->second);
  }

  // Each match of the regex has its last group replaced by what `replacement` gives; empty leaves it.
  template <class Replace>
  std::string replaced(const std::string& line, const RE2& regex, Replace replacement) const {
    std::string out;
    size_t done = 0;
    std::array<Piece, 2> groups;
    for (size_t at = 0; at <= line.size();) {
      if (!regex.Match(line, at, line.size(), RE2::UNANCHORED, groups.data(), 2)) break;
      const size_t begin = static_cast<size_t>(groups[1].data() - line.data());
      const size_t end = begin + groups[1].size();
      const std::string with = replacement(std::string_view(line).substr(begin, end - begin), begin);
      if (!with.empty()) {
        out.append(line, done, begin - done);
        out += with;
        done = end;
      }
      at = std::max(end, at + 1);
    }
    return done == 0 && out.empty() ? line : out.append(line, done);
  }

  std::string without_users(const std::string& line);
  std::string without_hosts(const std::string& line);
  std::string without_ips(const std::string& line);
  bool in_key(std::string_view line);

  bool keep_ips, keep_hosts, keep_all;
  std::vector<std::unique_ptr<RE2>> names, secrets;
  RE2 email{kEmail, options()}, ipv4{kIpv4, options()}, ipv6{kIpv6, options()};
  RE2 random{kRandom, options()}, hostname{kHostname, options()};
  std::map<std::string, size_t, std::less<>> users, emails, hosts, ips;
  std::map<std::string, uint64_t> counts;
  bool key = false;  // within a private key
};

// Names stand as words: "alice" goes, "malice" stays.
std::string Redactor::Impl::without_users(const std::string& line) {
  std::string out;
  size_t done = 0;
  for (size_t at = 0; at < line.size();) {
    if (!is_word(line[at]) || (at > 0 && is_word(line[at - 1]))) {
      ++at;
      continue;
    }
    size_t end = at;
    while (end < line.size() && (is_word(line[end]) || line[end] == '.' || line[end] == '-')) ++end;
    // The longest known name that begins here and ends at a word's end: "alice" in "alice-train.sh".
    size_t length = 0;
    std::string_view text = std::string_view(line).substr(at, end - at);
    for (; !text.empty() && length == 0; text.remove_suffix(1))
      if ((at + text.size() == line.size() || !is_word(line[at + text.size()])) && users.contains(text))
        length = text.size();
    if (length == 0) {
      while (at < line.size() && is_word(line[at])) ++at;
      continue;
    }
    out.append(line, done, at - done);
    out += alias("user", std::string_view(line).substr(at, length), users);
    done = at += length;
  }
  return out.append(line, done);
}

// An alias that is a host's name: whoever reads the log with a program finds hosts where hosts stood.
std::string Redactor::Impl::without_hosts(const std::string& line) {
  return replaced(line, hostname, [&](std::string_view name, size_t begin) -> std::string {
    const size_t end = begin + name.size();
    const auto part = [&](size_t at) {
      return is_word(line[at]) || line[at] == '-' ||
             (line[at] == '.' && at + 1 < line.size() && is_word(line[at + 1]));
    };
    // Part of a path or of a longer word: "/opt/x.dev/lib", "torch.distributed.io.Reader".
    if ((begin > 0 &&
         (is_word(line[begin - 1]) ||
          std::string_view("./-").find(line[begin - 1]) != std::string_view::npos) &&
         !(begin > 1 && line[begin - 1] == '/' && line[begin - 2] == '/')) ||
        (end < line.size() && (part(end) || line[end] == '(')))
      return "";
    std::string low(name);
    for (char& c : low) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
    if (kPublicHosts.contains(low) || low.ends_with(".example")) return "";
    ++counts["host"];
    const auto at = hosts.emplace(low, hosts.size() + 1).first;
    return fmt::format("host-{}.example", at->second);
  });
}

std::string Redactor::Impl::without_ips(const std::string& line) {
  const std::string four = replaced(line, ipv4, [&](std::string_view ip, size_t) -> std::string {
    // Of the machine itself, of no machine, and masks say nothing about the site.
    if (ip.starts_with("127.") || ip == "0.0.0.0" || ip.starts_with("255.")) return "";
    return alias("ip", ip, ips);
  });
  return replaced(four, ipv6, [&](std::string_view text, size_t begin) -> std::string {
    // "std::bad_alloc" has an address in it, and is none.
    const size_t end = begin + text.size();
    if ((begin > 0 && is_word(four[begin - 1])) || (end < four.size() && is_word(four[end]))) return "";
    std::array<unsigned char, sizeof(in6_addr)> parsed;
    while (text.ends_with('.')) text.remove_suffix(1);
    if (text == "::" || text == "::1" || text.size() < 4) return "";
    if (inet_pton(AF_INET6, std::string(text).c_str(), parsed.data()) != 1) return "";
    return alias("ip", text, ips);
  });
}

bool Redactor::Impl::in_key(std::string_view line) {
  const bool begins = line.find("-----BEGIN ") != line.npos && line.find("PRIVATE KEY") != line.npos;
  const bool inside = key || begins;
  if (begins) key = true;
  if (line.find("-----END ") != line.npos) key = false;
  return inside;
}

Redactor::Redactor(const RedactOptions& options) : impl_(std::make_unique<Impl>(options)) {}
Redactor::~Redactor() = default;
void Redactor::next_source() { impl_->key = false; }
const std::map<std::string, uint64_t>& Redactor::counts() const { return impl_->counts; }

void Redactor::learn(std::string_view line) {
  for (const auto& regex : impl_->names) {
    Piece rest(line.data(), line.size()), name;
    while (RE2::FindAndConsume(&rest, *regex, &name)) impl_->learn_name({name.data(), name.size()});
  }
}

std::string Redactor::apply(std::string_view line) {
  Impl& m = *impl_;
  if (m.keep_all) return std::string(line);
  if (m.in_key(line)) {
    ++m.counts["secret"];
    return "[secret]";
  }
  std::string out(line);
  for (const auto& regex : m.secrets)
    out = m.replaced(out, *regex, [&](std::string_view text, size_t) -> std::string {
      // "tokens: 4096" counts words of a text.
      if (text.find_first_not_of("0123456789.eE+-") == text.npos) return "";
      ++m.counts["secret"];
      return "[secret]";
    });
  out = m.replaced(out, m.random, [&](std::string_view text, size_t) -> std::string {
    if (!looks_random(text)) return "";
    ++m.counts["secret"];
    return "[secret]";
  });
  out = m.replaced(out, m.email,
                   [&](std::string_view text, size_t) { return m.alias("e-mail", text, m.emails); });
  if (!m.keep_hosts) out = m.without_hosts(out);
  out = m.without_users(out);
  return m.keep_ips ? out : m.without_ips(out);
}

}  // namespace culprit::cli
