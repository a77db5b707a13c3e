#include "app/config/values.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <re2/re2.h>

#include <algorithm>
#include <charconv>
#include <span>

#include "app/config/options.h"
#include "base/text.h"
#include "core/logs/placement.h"
#include "core/rules/keys.h"
#include "io/address.h"
#include "model/report.h"

namespace culprit::app {
namespace {

constexpr size_t kJobBytes = 255;   // limit of file names; Slurm's and Kubernetes' names are shorter
constexpr size_t kHostBytes = 64;   // docs/formats.md section 3
constexpr size_t kGroupBytes = 32;  // limit of useradd
constexpr size_t kCommandBytes = 1024;
constexpr size_t kWebHostBytes = 253;  // limit of the DNS
constexpr int64_t kRegexBytes = 1 << 20;

// Why a name between slashes of a glob matches no file, or other files than expected.
std::string check_glob_name(std::string_view name) {
  if (name.empty()) return "has an empty name between two slashes";
  if (name == "." || name == "..") return fmt::format("must not hold '{}' as a name", name);
  if (name == "**") return "";
  if (name.find("**") != name.npos) return "may hold ** only as a whole name between slashes";
  if (name.find_first_of("{}") != name.npos && name.find("[{]") == name.npos && name.find("[}]") == name.npos)
    return "has braces, which are not expanded: write a [[log]] table for each, or [{] for the character";
  for (size_t open = name.find('['); open != name.npos;) {
    size_t from = open + 1;
    if (from < name.size() && (name[from] == '!' || name[from] == '^')) ++from;
    const size_t close = name.find(']', from + 1);  // a ']' directly after '[' is a literal
    if (close == name.npos) return "has a '[' without its ']'";
    open = name.find('[', close + 1);
  }
  return "";
}

}  // namespace

std::string in_quotes(std::string_view text) { return fmt::format("'{}'", shorten(text, 80)); }

std::string check_absolute_path(std::string_view text) {
  if (!text.starts_with('/')) return fmt::format("must be an absolute path, not {}", in_quotes(text));
  return "";
}

std::string check_plain_folder(std::string_view text) {
  if (std::string why = check_absolute_path(text); !why.empty()) return why;
  const bool plain = text.size() > 1 && !text.ends_with('/') && text.find_first_of("*?[{,") == text.npos &&
                     text.find("//") == text.npos && text.find("/.") == text.npos;
  return plain ? ""
               : fmt::format("must be a folder without a wildcard or a slash at its end, not {}",
                             in_quotes(text));
}

std::string check_glob(std::string_view text) {
  if (!text.starts_with('/')) return fmt::format("must be an absolute path, not {}", in_quotes(text));
  if (text.ends_with('/')) return "names a folder: write what files in it, as in \"/var/log/train/**/*.log\"";
  const std::vector<std::string_view> names = split(text.substr(1), '/');
  for (std::string_view name : names)
    if (std::string why = check_glob_name(name); !why.empty()) return why;
  if (names[0] == "**") return "would watch the whole file system: begin with a folder";
  return "";
}

std::string check_socket_name(std::string_view text) {
  if (text.empty()) return "must not be empty";
  if (text.ends_with('/')) return fmt::format("must name a socket, not the folder {}", in_quotes(text));
  if (!text.starts_with('/') && text.find('/') != text.npos)
    return fmt::format("must be a name in runtime_dir or an absolute path, not {}", in_quotes(text));
  if (text == "." || text == "..") return "must name a socket";
  return "";
}

std::string check_job(std::string_view text) {
  if (text.empty()) return "must not be empty";
  if (text.size() > kJobBytes) return fmt::format("is longer than {} bytes", kJobBytes);
  return "";
}

std::string check_job_pattern(std::string_view text) {
  re2::RE2::Options options(re2::RE2::Quiet);
  options.set_max_mem(kRegexBytes);
  const re2::RE2 regex(logs::with_named_groups(text), options);
  if (!regex.ok()) return fmt::format("is no regular expression of RE2: {}", regex.error());
  if (!regex.NamedCapturingGroups().contains("job"))
    return "must have a group named job, as in '/train/(?P<job>[^/]+)/'";
  return "";
}

std::string check_host_name(std::string_view text) {
  if (text.empty()) return "must not be empty";
  if (text.size() > kHostBytes) return fmt::format("is longer than {} bytes", kHostBytes);
  for (char c : text)
    if (static_cast<unsigned char>(c) <= ' ' || c == '/' || c == 0x7f)
      return "must not hold spaces or slashes";
  return "";
}

std::string check_plugin_name(std::string_view text) {
  constexpr size_t kBytes = 64;
  if (text.empty()) return "must not be empty";
  if (text.size() > kBytes) return fmt::format("is longer than {} bytes", kBytes);
  for (const char c : text)
    if (!((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_'))
      return "must hold only a to z, digits and _";
  return "";
}

std::string check_receiver_name(std::string_view text) {
  constexpr size_t kBytes = 64;
  if (text.empty()) return "must not be empty";
  if (text.size() > kBytes) return fmt::format("is longer than {} bytes", kBytes);
  for (const char c : text)
    if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-'))
      return "must hold only letters, digits, - and _";
  if (text == "otlp") return "must not be otlp, the name of the exporter";
  return "";
}

std::string check_url(std::string_view text) {
  const std::string wanted = fmt::format("must be http://HOST or https://HOST, not {}", in_quotes(text));
  const size_t scheme = text.starts_with("https://") ? 8 : text.starts_with("http://") ? 7 : 0;
  if (scheme == 0) return wanted;
  const std::string_view rest = text.substr(scheme);
  const std::string_view authority = rest.substr(0, rest.find_first_of("/?#"));
  if (authority.find('@') != authority.npos)
    return "must hold no name or password: write them into a file of headers";
  if (authority.empty() || text.find_first_of(" <>\"\\^`{|}") != text.npos) return wanted;
  return "";
}

std::string check_mail_address(std::string_view text) {
  const size_t at = text.find('@');
  bool sound = at != text.npos && at > 0 && at + 1 < text.size() && text.find('@', at + 1) == text.npos &&
               !text.starts_with('-') && text.size() <= 254;
  for (const char c : text)
    sound =
        sound && c > ' ' && c < 0x7f && std::string_view("()<>[],;:\\\"").find(c) == std::string_view::npos;
  return sound ? "" : fmt::format("must be an address, NAME@HOST, not {}", in_quotes(text));
}

namespace {

std::string check_word(std::string_view text, std::span<const std::string_view> words) {
  if (std::find(words.begin(), words.end(), text) != words.end()) return "";
  const std::string_view best = rules::nearest(text, words);
  return fmt::format("must be of {}, not {}{}", fmt::join(words, ", "), in_quotes(text),
                     best.empty() ? "" : fmt::format("; did you mean '{}'?", best));
}

}  // namespace

std::string check_category(std::string_view text) { return check_word(text, words_of<Category>()); }
std::string check_action(std::string_view text) { return check_word(text, words_of<ActionKind>()); }

std::string check_order_kind(std::string_view text) {
  constexpr std::string_view kKinds[] = {"isolate", "return", "end_tasks", "run_again", "verify"};
  return check_word(text, kKinds);
}

std::string check_namespace(std::string_view text) {
  constexpr size_t kBytes = 63;
  const bool sound = !text.empty() && text.size() <= kBytes && std::ranges::all_of(text, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-';
  });
  return sound ? "" : fmt::format("must be a namespace of Kubernetes, not {}", in_quotes(text));
}

std::string check_namespaces(std::string_view text) {
  std::string plain(text);
  std::ranges::replace_if(
      plain, [](char c) { return c == '*' || c == '?'; }, 'x');
  return check_namespace(plain).empty()
             ? ""
             : fmt::format("must be of namespaces of Kubernetes, with * and ?, not {}", in_quotes(text));
}

std::string check_units(std::string_view text) {
  constexpr size_t kBytes = 255;
  const bool sound = !text.empty() && text.size() <= kBytes && std::ranges::all_of(text, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           std::string_view("-_.:@\\*?").find(c) != std::string_view::npos;
  });
  const bool is_name = text.ends_with('*') || text.find('.') != text.npos;  // "nvidia-dcgm" is none
  return sound && is_name ? ""
                          : fmt::format("must be of units of systemd, as in \"nvidia-*.service\", not {}",
                                        in_quotes(text));
}

std::string check_label(std::string_view text) {
  constexpr size_t kBytes = 400;
  const bool sound = !text.empty() && text.size() <= kBytes && text.front() != '=' &&
                     std::ranges::count(text, '=') <= 1 && std::ranges::all_of(text, [](char c) {
                       return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                              std::string_view("-_./=").find(c) != std::string_view::npos;
                     });
  return sound ? "" : fmt::format("must be KEY or KEY=VALUE of a label, not {}", in_quotes(text));
}

std::string check_lease(std::string_view text) {
  const size_t slash = text.find('/');
  const bool sound = text.empty() || (slash != text.npos && check_namespace(text.substr(0, slash)).empty() &&
                                      check_namespace(text.substr(slash + 1)).empty());
  return sound ? "" : fmt::format("must be NAMESPACE/NAME, not {}", in_quotes(text));
}

std::string check_command_word(std::string_view text) {
  constexpr size_t kBytes = 4096;
  if (text.size() > kBytes) return fmt::format("has a word longer than {} bytes", kBytes);
  return text.find('\0') == text.npos ? "" : "must not hold a NUL byte";
}

std::string check_user(std::string_view text) {
  constexpr size_t kBytes = 64;
  if (text == "*") return "";
  if (text.empty()) return "must not hold an empty name";
  if (text.size() > kBytes) return fmt::format("has a name longer than {} bytes", kBytes);
  if (text.find_first_of(" :,/*") != text.npos) return "must hold names or uids of users, or \"*\" alone";
  return "";
}

std::string check_tool(std::string_view text) {
  const std::string_view name = text.substr(text.rfind('/') + 1);
  const bool known = name == "py-spy" || name == "eu-stack" || name == "gdb";
  if (!known) return fmt::format("must be py-spy, eu-stack or gdb, not {}", in_quotes(text));
  if (name != text && !text.starts_with('/')) return "must be a name or an absolute path";
  return "";
}

std::string check_command(std::string_view text) {
  if (!text.starts_with('/')) return fmt::format("must begin with an absolute path, not {}", in_quotes(text));
  if (text.size() > kCommandBytes) return fmt::format("is longer than {} bytes", kCommandBytes);
  for (const char c : text)
    if (static_cast<unsigned char>(c) < ' ') return "must not hold control characters";
  return "";
}

// The configuration is readable by more people than a file of passwords.
std::string check_bucket(std::string_view text) {
  const auto plain = [](unsigned char c) {
    return std::islower(c) || std::isdigit(c) || c == '-' || c == '.';
  };
  if (text.empty()) return "";
  if (text.size() < 3 || text.size() > 63 || !std::ranges::all_of(text, plain) || text.front() == '.' ||
      text.front() == '-' || text.find("..") != text.npos)
    return fmt::format("must be 3 to 63 of a-z, 0-9, - and ., not {}", in_quotes(text));
  return "";
}

std::string check_region(std::string_view text) {
  const auto plain = [](unsigned char c) { return std::isalnum(c) || c == '-' || c == '_'; };
  if (text.empty() || text.size() > 63 || !std::ranges::all_of(text, plain))
    return fmt::format("must be a name of letters, digits and -, not {}", in_quotes(text));
  return "";
}

std::string check_database(std::string_view text) {
  constexpr size_t kBytes = 4096;
  if (text.size() > kBytes) return fmt::format("is longer than {} bytes", kBytes);
  for (const char c : text)
    if (static_cast<unsigned char>(c) < ' ') return "must not hold control characters";
  constexpr const char* kSecret =
      "must hold no password: write it into a file, and name that by passfile or "
      "service";
  std::string lower(text);
  std::ranges::transform(lower, lower.begin(), [](unsigned char c) { return std::tolower(c); });
  const auto holds = [&](std::string_view key) {
    for (size_t at = lower.find(key); at != lower.npos; at = lower.find(key, at + 1)) {
      const size_t next = lower.find_first_not_of(' ', at + key.size());
      if (next != lower.npos && lower[next] == '=') return true;
    }
    return false;
  };
  if (holds("password")) return kSecret;  // and sslpassword
  const size_t scheme = lower.find("://");
  if (scheme == lower.npos) return "";
  const std::string_view place = std::string_view(lower).substr(scheme + 3);
  const std::string_view login = place.substr(0, std::min(place.find('@'), place.find_first_of("/?")));
  const bool has_login = place.find('@') < place.find_first_of("/?");
  return has_login && login.find(':') != login.npos ? kSecret : "";
}

std::string check_group(std::string_view text) {
  if (text.empty()) return "must not be empty";
  if (text.size() > kGroupBytes) return fmt::format("is longer than {} bytes", kGroupBytes);
  if (text.find_first_of(" :,/") != text.npos) return "must not hold spaces, colons, commas or slashes";
  return "";
}

std::string check_web_host(std::string_view text) {
  if (text.empty()) return "must not hold an empty name";
  if (text.size() > kWebHostBytes) return fmt::format("has a name longer than {} bytes", kWebHostBytes);
  for (const char c : text) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
    if (!plain && c != '-' && c != '.' && c != '_')
      return fmt::format("must be names of hosts without a scheme or a port, not {}", in_quotes(text));
  }
  return "";
}

std::string check_member_url(std::string_view text) {
  constexpr size_t kBytes = 300;
  if (const std::string trouble = check_url(text); !trouble.empty()) return trouble;
  if (text.size() > kBytes) return fmt::format("is longer than {} bytes", kBytes);
  if (text.find_first_of("?#") != text.npos) return "must hold no query: paths of the API follow it";
  for (const char c : text)
    if (static_cast<unsigned char>(c) <= ' ' || static_cast<unsigned char>(c) >= 0x7f)
      return "must be plain ASCII without spaces";
  const std::string_view rest = text.substr(text.find("://") + 3);
  std::string address(rest.substr(0, rest.find('/')));
  const size_t end = address.find(']'), colon = address.find(':', end == address.npos ? 0 : end);
  if (colon == address.npos) address += ":443";
  if (const std::string trouble = check_tcp_address(address); !trouble.empty()) return trouble;
  std::string host = address.substr(0, address.rfind(':'));
  if (host.starts_with('[')) host = host.substr(1, host.size() - 2);
  in_addr four{};
  in6_addr six{};
  const bool is_wildcard = host == "*" ||
                           (inet_aton(host.c_str(), &four) != 0 && four.s_addr == INADDR_ANY) ||
                           (inet_pton(AF_INET6, host.c_str(), &six) == 1 && IN6_IS_ADDR_UNSPECIFIED(&six));
  return is_wildcard ? fmt::format("has a wildcard address, which leads to no member: {}", in_quotes(text))
                     : "";
}

std::string check_tcp_address(std::string_view text) {
  const std::string wanted = fmt::format("must be HOST:PORT, not {}", in_quotes(text));
  const size_t colon = text.rfind(':');
  if (colon == text.npos || colon == 0) return wanted;
  std::string_view host = text.substr(0, colon), port = text.substr(colon + 1);
  if (host.starts_with('[') != host.ends_with(']')) return wanted;
  if (host.starts_with('[')) {
    host = host.substr(1, host.size() - 2);
  } else if (host.find(':') != host.npos) {
    return fmt::format("has an IPv6 address: write it as \"[{}]:{}\"", shorten(host, 60), shorten(port, 10));
  }
  if (host.empty() || host.find_first_of(" /") != host.npos) return wanted;
  unsigned number = 0;
  const auto [stop, error] = std::from_chars(port.data(), port.data() + port.size(), number);
  if (error != std::errc() || stop != port.data() + port.size() || number > 65'535)
    return fmt::format("must end in a port from 0 to 65535, not {}", in_quotes(text));
  return "";
}

std::string check_listen_address(std::string_view text) {
  if (text.starts_with("unix:")) return check_socket_name(text.substr(5));
  if (text.starts_with('/') || text.find(':') == text.npos)
    return fmt::format("must be \"unix:NAME\" or HOST:PORT, not {}", in_quotes(text));
  return check_tcp_address(text);
}

bool is_loopback(std::string_view address) { return io::is_loopback(address); }

bool goes_in_clear(std::string_view url) {
  constexpr std::string_view kScheme = "http://";
  if (!url.starts_with(kScheme)) return false;
  const std::string_view rest = url.substr(kScheme.size());
  std::string address(rest.substr(0, rest.find_first_of("/?#")));
  const size_t bracket = address.rfind(']');
  if (address.find(':', bracket == address.npos ? 0 : bracket) == address.npos) address += ":80";
  return !is_loopback(address);
}

}  // namespace culprit::app
