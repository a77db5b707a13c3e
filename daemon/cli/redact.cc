#include "cli/redact.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <re2/re2.h>

#include <algorithm>
#include <array>
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
    R"(\b(?:uid|gid)=\d+\(([A-Za-z0-9._-]+)\))", R"((?i)\bfor user ([A-Za-z][A-Za-z0-9._-]+))",
    R"(\b([A-Za-z][A-Za-z0-9._-]*)@[a-z0-9-]+:[~/])"};

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
    R"(\b(eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]*))"};

constexpr const char* kEmail = R"(([A-Za-z0-9._%+-]+@[A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)*\.[A-Za-z]{2,}))";
constexpr const char* kIpv4 = R"((\b(?:25[0-5]|2[0-4]\d|1?\d?\d)(?:\.(?:25[0-5]|2[0-4]\d|1?\d?\d)){3}\b))";
constexpr const char* kIpv6 = R"(([0-9A-Fa-f:]*:[0-9A-Fa-f]*:[0-9A-Fa-f:.]*))";

bool is_word(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

}  // namespace

struct Redactor::Impl {
  explicit Impl(const RedactOptions& o) : keep_ips(o.keep_ips) {
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
  std::string without_ips(const std::string& line);
  bool in_key(std::string_view line);

  bool keep_ips;
  std::vector<std::unique_ptr<RE2>> names, secrets;
  RE2 email{kEmail, options()}, ipv4{kIpv4, options()}, ipv6{kIpv6, options()};
  std::map<std::string, size_t, std::less<>> users, emails, ips;
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
  out = m.replaced(out, m.email,
                   [&](std::string_view text, size_t) { return m.alias("e-mail", text, m.emails); });
  out = m.without_users(out);
  return m.keep_ips ? out : m.without_ips(out);
}

}  // namespace culprit::cli
