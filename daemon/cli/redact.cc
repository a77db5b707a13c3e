#include "cli/redact.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <re2/re2.h>
#include <re2/set.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <set>

#include "base/text.h"
#include "cli/redact_fold.h"
#include "cli/redact_patterns.h"

namespace culprit::cli {
namespace {

using Piece = re2::StringPiece;

// System accounts and common words, which identify no person.
const std::set<std::string, std::less<>> kPublicNames{
    "root",      "nobody",  "daemon", "ubuntu",  "debian", "centos",   "ec2-user",  "admin",
    "user",      "users",   "none",   "null",    "true",   "false",    "unknown",   "slurm",
    "culprit",   "nvidia",  "docker", "default", "system", "the",      "scheduler", "slurmctld",
    "kubelet",   "systemd", "cron",   "shared",  "public", "data",     "work",      "tmp",
    "home",      "scratch", "local",  "lib",     "bin",    "git",      "oauth2",    "x-access-token",
    "anonymous", "gpu",     "cpu",    "batch",   "train",  "training", "test",      "research",
    "job",       "node",    "rank",   "model",   "host",   "process",  "main",      "base"};
constexpr size_t kNameBytes = 3;  // shorter names would match parts of many words

RE2::Options options() {
  RE2::Options out;
  out.set_log_errors(false);
  out.set_encoding(RE2::Options::EncodingLatin1);  // bytes, so that invalid UTF-8 hides nothing
  return out;
}

// Minimum entropy in bits per character: 24 random characters out of 64 have 4.35 on average, names of
// classes and files less than 4.1.
constexpr double kRandomBits = 4.2;
constexpr int kSlashes = 2;  // base64 has one slash in 64 characters; a path has more

// Public hosts, which do not identify a site.
const std::set<std::string, std::less<>> kPublicHosts{"github.com",
                                                      "huggingface.co",
                                                      "pytorch.org",
                                                      "download.pytorch.org",
                                                      "pypi.org",
                                                      "nvidia.com",
                                                      "docs.nvidia.com",
                                                      "docker.io",
                                                      "python.org",
                                                      "docs.python.org",
                                                      "wandb.ai",
                                                      "api.wandb.ai",
                                                      "developer.nvidia.com",
                                                      "gitlab.com",
                                                      "ghcr.io",
                                                      "nvcr.io",
                                                      "quay.io",
                                                      "gcr.io",
                                                      "hooks.slack.com",
                                                      "discord.com",
                                                      "api.telegram.org"};

constexpr size_t kContext = 60;  // bytes around a hash that show whether it is a commit
constexpr size_t kHexKeyDigits = 40;
constexpr size_t kSerialBytes = 5;

// Shannon entropy in bits per character.
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

bool is_hex(char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F'); }

std::string lower(std::string_view text) {
  std::string out(text);
  for (char& c : out) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return out;
}

// Texts in place of a secret: variables, redacted values, words such as "none".
bool is_placeholder(std::string_view text) {
  static const std::set<std::string, std::less<>> words{
      "none", "null", "true", "false", "yes", "no", "required", "unset", "empty", "prompt", "redacted"};
  return text.starts_with('$') || text.starts_with('%') || text.starts_with('[') || text.starts_with('<') ||
         text.starts_with("!!binary") || text.find_first_not_of("*xX.") == text.npos ||
         words.contains(lower(text));
}

// The text's shape, followed by a number: letters become `letter`, digits 0.
std::string shaped(std::string_view text, std::string number, char letter) {
  std::string out(text);
  for (char& c : out)
    c = c >= '0' && c <= '9' ? '0' : std::isalpha(static_cast<unsigned char>(c)) ? letter : c;
  for (size_t i = out.size(); i > 0 && !number.empty(); --i) {
    if (out[i - 1] != '0' && out[i - 1] != letter) continue;
    out[i - 1] = number.back();
    number.pop_back();
  }
  return out;
}

// Whether the digits of a text have a card's check digit (Luhn) and are not one repeated group.
bool is_card(std::string_view text) {
  std::string digits;
  for (const char c : text)
    if (c >= '0' && c <= '9') digits += c;
  int sum = 0;
  for (size_t i = 0; i < digits.size(); ++i) {
    const int digit = digits[digits.size() - 1 - i] - '0';
    sum += i % 2 == 0 ? digit : digit * 2 % 10 + digit / 5;
  }
  const bool repeated = digits.size() > 4 && digits.compare(0, digits.size() - 4, digits, 4) == 0;
  return digits.size() >= 13 && digits.size() <= 19 && sum % 10 == 0 &&
         (!repeated || text.size() == digits.size());
}

// ISO 7064: an IBAN's letters and digits form a number that is 1 modulo 97.
bool is_iban(std::string_view text) {
  std::string plain;
  for (const char c : text)
    if (c != ' ') plain += c;
  if (plain.size() < 15 || plain.size() > 34) return false;
  std::rotate(plain.begin(), plain.begin() + 4, plain.end());
  int rest = 0;
  for (const char c : plain) rest = c >= 'A' ? (rest * 100 + c - 'A' + 10) % 97 : (rest * 10 + c - '0') % 97;
  return rest == 1;
}

// Rejects a short name that would match words of sentences ("gpu").
bool is_host_name(std::string_view name) {
  return name.size() > kNameBytes && name.find_first_of("0123456789-") != name.npos &&
         name.find_first_not_of("0123456789.:") != name.npos && name.find_first_of(" /@[]") == name.npos &&
         name != "localhost";
}

bool is_word(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

}  // namespace

namespace {

// Regexes; one pass over a line finds those to be tried.
class Patterns {
 public:
  template <size_t n>
  explicit Patterns(const std::array<const char*, n>& texts) : set_(options(), RE2::UNANCHORED) {
    for (const char* text : texts) {
      all_.push_back(static_cast<int>(regexes_.size()));
      regexes_.push_back(std::make_unique<RE2>(text, options()));
      set_.Add(text, nullptr);
    }
    set_.Compile();
  }

  template <class Call>
  void each_in(std::string_view line, Call call) const {
    std::vector<int> found;
    RE2::Set::ErrorInfo error{};
    const bool some = set_.Match(Piece(line.data(), line.size()), &found, &error);
    if (!some && error.kind == RE2::Set::kOutOfMemory) found = all_;
    std::sort(found.begin(), found.end());
    for (const int i : found) call(*regexes_[static_cast<size_t>(i)]);
  }

 private:
  std::vector<std::unique_ptr<RE2>> regexes_;
  std::vector<int> all_;
  RE2::Set set_;
};

}  // namespace

struct Redactor::Impl {
  explicit Impl(const RedactOptions& o)
      : keep_ips(o.keep_ips), keep_hosts(o.keep_hosts), keep_hardware(o.keep_hardware), keep_all(o.keep_all) {
    for (const std::string& name : o.names)
      if (!name.empty()) users.emplace(name, users.size() + 1);
  }

  void learn_name(std::string_view name) {
    while (name.ends_with('.')) name.remove_suffix(1);
    const bool number = name.find_first_not_of("0123456789.-") == name.npos;
    if (name.size() < kNameBytes || number || kPublicNames.contains(name)) return;
    users.emplace(std::string(name), users.size() + 1);
  }

  std::string alias(const char* kind, std::string_view text,
                    std::map<std::string, size_t, std::less<>>& known) {
    ++counts[kind];
    const auto at = known.emplace(std::string(text), known.size() + 1).first;
    return fmt::format("[{}-{}]", kind, at->second);
  }

  // Replaces the last group of each match by the result of `replacement`; an empty result keeps it.
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

  // Leaves sentences about a secret unchanged: "the password is wrong".
  std::string spoken(std::string_view text) {
    static const std::set<std::string, std::less<>> states{"a",         "about",      "absent",
                                                           "accepted",  "all",        "already",
                                                           "also",      "always",     "authentication",
                                                           "denied",    "error",      "failed",
                                                           "failure",   "please",     "timed",
                                                           "an",        "and",        "being",
                                                           "correct",   "deprecated", "empty",
                                                           "encrypted", "expected",   "expired",
                                                           "for",       "found",      "given",
                                                           "going",     "hidden",     "ignored",
                                                           "in",        "incorrect",  "invalid",
                                                           "kept",      "loaded",     "longer",
                                                           "malformed", "masked",     "missing",
                                                           "needed",    "never",      "no",
                                                           "not",       "now",        "null",
                                                           "of",        "ok",         "on",
                                                           "only",      "optional",   "out",
                                                           "present",   "read",       "rejected",
                                                           "required",  "revoked",    "sent",
                                                           "set",       "short",      "shorter",
                                                           "stale",     "stored",     "the",
                                                           "there",     "to",         "too",
                                                           "unknown",   "unset",      "unused",
                                                           "used",      "valid",      "weak",
                                                           "what",      "wrong",      "your"};
    const std::string_view whole = text;
    while (!text.empty() && std::string_view(".,;!?)").find(text.back()) != std::string_view::npos)
      text.remove_suffix(1);
    const std::string low = lower(text);  // if there are several words, the first and the last one decide
    const bool state =
        states.contains(low.substr(0, low.find(' '))) && states.contains(low.substr(low.rfind(' ') + 1));
    if (text.empty() || state || is_placeholder(text)) return "";
    return alias("secret", text, secrets).append(whole.substr(text.size()));
  }

  std::string phone(std::string_view text) {
    const auto digits = std::count_if(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
    return digits < 7 || digits > 15 ? "" : alias("phone", text, phones);
  }

  std::string secret(std::string_view text) {
    // "tokens: 4096" is a word count, not a secret.
    if (text.find_first_not_of("0123456789.eE+-") == text.npos || is_placeholder(text)) return "";
    return alias("secret", text, secrets);
  }

  std::string without_secrets(const std::string& line);
  std::string without_hardware(const std::string& line);
  std::string device(std::string_view text);
  std::string serial(std::string_view text);
  std::string without_accounts(const std::string& line);
  std::string without_users(const std::string& line);
  std::string host(const std::string& low);
  std::string without_hosts(const std::string& line);
  std::string without_ips(const std::string& line);
  bool in_key(std::string_view line);

  bool keep_ips, keep_hosts, keep_hardware, keep_all;
  Patterns name_patterns{kNamePatterns}, secret_patterns{kSecretPatterns};
  Patterns spoken_patterns{kSpokenPatterns}, phone_patterns{kPhonePatterns};
  Patterns device_patterns{kDevicePatterns}, serial_patterns{kSerialPatterns};
  RE2 email{kEmail, options()}, ipv4{kIpv4, options()}, ipv6{kIpv6, options()};
  RE2 random{kRandom, options()}, hostname{kHostname, options()}, octets{kOctets, options()};
  RE2 named_key{kNamedKey, options()}, one_time_code{kOneTimeCode, options()}, iban{kIban, options()},
      card{kCard, options()}, card_named{kCardNamed, options()}, social_security{kSocialSecurity, options()},
      rare_hostname{kRareHostname, options()}, bare_email{kBareEmail, options()},
      spelled_email{kSpelledEmail, options()};
  RE2 hex_key{kHexKey, options()}, commit_before{kCommitBefore, options()},
      commit_behind{kCommitBehind, options()};
  std::map<std::string, size_t, std::less<>> users, emails, hosts, ips, secrets, phones, devices, serials,
      accounts;
  std::set<std::string, std::less<>> own_hosts;  // hosts of the report, in lower case
  std::map<std::string, uint64_t> counts;
  bool key = false;  // within a private key
};

std::string Redactor::Impl::without_secrets(const std::string& line) {
  std::string out = line;
  secret_patterns.each_in(line, [&](const RE2& regex) {
    out = replaced(out, regex, [&](std::string_view text, size_t) { return secret(text); });
  });
  spoken_patterns.each_in(out, [&](const RE2& regex) {
    out = replaced(out, regex, [&](std::string_view text, size_t) { return spoken(text); });
  });
  out = replaced(out, random,
                 [&](std::string_view text, size_t) { return looks_random(text) ? secret(text) : ""; });
  out = replaced(out, named_key,
                 [&](std::string_view text, size_t) { return looks_random(text) ? secret(text) : ""; });
  out = replaced(out, one_time_code,
                 [&](std::string_view text, size_t) { return alias("secret", text, secrets); });
  return replaced(out, hex_key, [&](std::string_view text, size_t begin) -> std::string {
    const size_t end = begin + text.size();
    if (text.size() != kHexKeyDigits || (begin > 0 && is_word(out[begin - 1])) ||
        (end < out.size() && is_word(out[end])))
      return "";
    const size_t from = begin > kContext ? begin - kContext : 0;
    const Piece before(out.data() + from, begin - from),
        behind(out.data() + end, std::min(out.size() - end, kContext));
    return RE2::PartialMatch(before, commit_before) || RE2::PartialMatch(behind, commit_behind)
               ? ""
               : secret(text);
  });
}

// Different notations of one address are the same device.
std::string Redactor::Impl::device(std::string_view text) {
  std::string digits;
  for (const char c : lower(text.starts_with("0x") ? text.substr(2) : text))
    if (is_hex(c)) digits += c;
  if (digits.find_first_not_of(digits[0]) == digits.npos) return "";  // none, or all devices
  ++counts["hardware-address"];
  const size_t number = devices.emplace(digits, devices.size() + 1).first->second;
  std::string out = shaped(text, fmt::format("{:x}", number), '0');
  if (out.size() > 2 && (out[2] == ':' || out[2] == '-')) out[1] = '2';  // a prefix that no manufacturer has
  return text.starts_with("0x") ? "0x" + out.substr(2) : out;
}

std::string Redactor::Impl::serial(std::string_view text) {
  while (text.ends_with('.')) text.remove_suffix(1);
  const bool digit = text.find_first_of("0123456789") != text.npos;
  const bool fraction = text.find('.') != text.npos && text.find_first_not_of("0123456789.") == text.npos;
  if (text.size() < kSerialBytes || !digit || fraction) return "";
  ++counts["serial-number"];
  const size_t number = serials.emplace(std::string(text), serials.size() + 1).first->second;
  return shaped(text, std::to_string(number), 'X');
}

std::string Redactor::Impl::without_hardware(const std::string& line) {
  std::string out = replaced(line, octets, [&](std::string_view text, size_t begin) -> std::string {
    const size_t end = begin + text.size(), count = (text.size() + 1) / 3;
    const bool one_kind = text.find(text[2] == ':' ? '-' : ':') == text.npos;
    const bool letter = text.find_first_of("abcdefABCDEF") != text.npos;
    if ((count != 6 && count != 8 && count != 20) || !one_kind || (text[2] == '-' && !letter) ||
        (begin > 0 && (is_word(line[begin - 1]) || line[begin - 1] == text[2])) ||
        (end < line.size() && (is_word(line[end]) || line[end] == text[2])))
      return "";
    return device(text);
  });
  device_patterns.each_in(out, [&](const RE2& regex) {
    out = replaced(out, regex, [&](std::string_view text, size_t) -> std::string {
      return text.find_first_of("abcdefABCDEF") == text.npos && text.find('.') != text.npos ? ""
                                                                                            : device(text);
    });
  });
  serial_patterns.each_in(out, [&](const RE2& regex) {
    out = replaced(out, regex, [&](std::string_view text, size_t) { return serial(text); });
  });
  return out;
}

constexpr size_t kNameBytesMax = 255;  // of a DNS name; user names are shorter

// Names match whole words: "alice" is removed, "malice" is not.
template <class Knows, class Replace>
std::string without_names(const std::string& line, Knows knows, Replace replacement) {
  std::string out;
  size_t done = 0;
  for (size_t at = 0; at < line.size();) {
    if (!is_word(line[at]) || (at > 0 && is_word(line[at - 1]))) {
      ++at;
      continue;
    }
    size_t end = at;
    while (end < line.size() && (is_word(line[end]) || line[end] == '.' || line[end] == '-')) ++end;
    // The longest known name that starts here and ends at a word's end: "alice" in "alice-train.sh".
    size_t length = 0;
    std::string_view text = std::string_view(line).substr(at, std::min(end - at, kNameBytesMax));
    for (; !text.empty() && length == 0; text.remove_suffix(1))
      if ((at + text.size() == line.size() || !is_word(line[at + text.size()])) && knows(text))
        length = text.size();
    if (length == 0) {
      while (at < line.size() && is_word(line[at])) ++at;
      continue;
    }
    out.append(line, done, at - done);
    out += replacement(std::string_view(line).substr(at, length));
    done = at += length;
  }
  return out.append(line, done);
}

std::string Redactor::Impl::without_users(const std::string& line) {
  return without_names(
      line, [&](std::string_view name) { return users.contains(name); },
      [&](std::string_view name) { return alias("user", name, users); });
}

std::string Redactor::Impl::without_accounts(const std::string& line) {
  std::string out = replaced(line, iban, [&](std::string_view text, size_t) {
    return is_iban(text) ? alias("account", text, accounts) : "";
  });
  for (const RE2* regex : {&card, &card_named})
    out = replaced(out, *regex, [&](std::string_view text, size_t) {
      return is_card(text) ? alias("account", text, accounts) : "";
    });
  return replaced(out, social_security,
                  [&](std::string_view text, size_t) { return alias("account", text, accounts); });
}

std::string Redactor::Impl::host(const std::string& low) {
  ++counts["host"];
  return fmt::format("host-{}.example", hosts.emplace(low, hosts.size() + 1).first->second);
}

// Replacements have the form of host names, so that programs still find hosts in the log.
std::string Redactor::Impl::without_hosts(const std::string& given) {
  std::string line = given;
  if (!own_hosts.empty())
    line = without_names(
        given, [&](std::string_view name) { return own_hosts.contains(lower(name)); },
        [&](std::string_view name) { return host(lower(name)); });
  line = replaced(line, rare_hostname, [&](std::string_view name, size_t begin) -> std::string {
    const bool joined = begin > 0 && (is_word(line[begin - 1]) || line[begin - 1] == '.');
    return joined ? "" : host(lower(name));
  });
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
    const std::string low = lower(name);
    // "model.pt" is a checkpoint.
    const bool file = low.ends_with(".pt") && std::count(low.begin(), low.end(), '.') < 2;
    if (file || kPublicHosts.contains(low) || low.ends_with(".example")) return "";
    return host(low);
  });
}

std::string Redactor::Impl::without_ips(const std::string& line) {
  const std::string four = replaced(line, ipv4, [&](std::string_view ip, size_t) -> std::string {
    // Loopback, unspecified and mask addresses reveal nothing about the site.
    if (ip.starts_with("127.") || ip == "0.0.0.0" || ip.starts_with("255.")) return "";
    return alias("ip", ip, ips);
  });
  return replaced(four, ipv6, [&](std::string_view text, size_t begin) -> std::string {
    // "std::bad_alloc" contains the form of an address, but is not an address.
    const size_t end = begin + text.size();
    if ((begin > 0 && is_word(four[begin - 1])) || (end < four.size() && is_word(four[end]))) return "";
    std::array<unsigned char, sizeof(in6_addr)> parsed;
    while (text.ends_with('.')) text.remove_suffix(1);
    if (text == "::" || text == "::1" || text.size() < 4) return "";
    if (RE2::FullMatch(Piece(text.data(), text.size()), octets)) return "";  // octets of a device address
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

void Redactor::learn_host(std::string_view name) {
  while (name.ends_with('.')) name.remove_suffix(1);
  if (is_host_name(name) && !kPublicHosts.contains(lower(name))) impl_->own_hosts.insert(lower(name));
}

void Redactor::learn(std::string_view text) {
  const std::string visible = folded(without_invisible(text));
  const std::string_view line = visible;
  impl_->name_patterns.each_in(line, [&](const RE2& regex) {
    Piece rest(line.data(), line.size()), name;
    while (RE2::FindAndConsume(&rest, regex, &name))  // a full name is two
      for (const std::string_view part : split({name.data(), name.size()}, ' ')) impl_->learn_name(part);
  });
}

std::string Redactor::apply(std::string_view given) {
  Impl& m = *impl_;
  if (m.keep_all) return std::string(given);
  size_t invisible = 0;
  const std::string line = folded(without_invisible(given, &invisible));
  if (invisible > 0) m.counts["invisible character"] += invisible;
  if (m.in_key(line)) {
    ++m.counts["secret"];
    return "[secret]";
  }
  std::string out = m.without_secrets(line);
  m.phone_patterns.each_in(out, [&](const RE2& regex) {
    out = m.replaced(out, regex, [&](std::string_view number, size_t) { return m.phone(number); });
  });
  out = m.without_accounts(out);
  if (!m.keep_hardware) out = m.without_hardware(out);
  for (const RE2* regex : {&m.email, &m.bare_email, &m.spelled_email})
    out = m.replaced(out, *regex,
                     [&](std::string_view text, size_t) { return m.alias("e-mail", text, m.emails); });
  if (!m.keep_hosts) out = m.without_hosts(out);
  out = m.without_users(out);
  return m.keep_ips ? out : m.without_ips(out);
}

}  // namespace culprit::cli
