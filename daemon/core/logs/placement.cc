#include "core/logs/placement.h"

#include <fmt/format.h>
#include <re2/re2.h>

#include <algorithm>
#include <vector>

#include "base/text.h"
#include "core/logs/host_name.h"

namespace culprit::logs {
namespace {

constexpr size_t kPatternMax = 4096;  // a pattern that is longer was not written by a person
constexpr int64_t kPatternMemory = 8 << 20;
constexpr uint32_t kDevicesMax = 64;  // of a host

constexpr bool digit(char c) { return static_cast<unsigned char>(c - '0') < 10; }
constexpr bool alpha(char c) { return static_cast<unsigned char>((c | 0x20) - 'a') < 26; }

struct UserPattern {
  std::unique_ptr<RE2> regex;
  int group = 0;

  std::optional<std::string> match(std::string_view path) const {
    if (!regex) return std::nullopt;
    std::vector<re2::StringPiece> groups(static_cast<size_t>(group) + 1);
    const re2::StringPiece text(path.data(), path.size());
    if (!regex->Match(text, 0, path.size(), RE2::UNANCHORED, groups.data(), group + 1)) return std::nullopt;
    const re2::StringPiece& found = groups[static_cast<size_t>(group)];
    if (found.empty()) return std::nullopt;
    return std::string(found.data(), found.size());
  }
};

Result<UserPattern> compile(std::string_view pattern, const std::string& group) {
  if (pattern.empty()) return UserPattern{};
  const std::string shown = shorten(pattern, 200);
  if (pattern.size() > kPatternMax)
    return fail(ErrorCode::kLimit,
                fmt::format("{} pattern '{}': longer than {} bytes", group, shown, kPatternMax));
  RE2::Options options;
  options.set_log_errors(false);
  options.set_max_mem(kPatternMemory);
  auto regex = std::make_unique<RE2>(with_named_groups(pattern), options);
  if (!regex->ok())
    return fail(ErrorCode::kInvalid, fmt::format("{} pattern '{}': {}", group, shown, regex->error()));
  const auto& names = regex->NamedCapturingGroups();
  const auto found = names.find(group);
  if (found == names.end())
    return fail(ErrorCode::kInvalid, fmt::format("{} pattern '{}': no group is named '{}', as in (?P<{}>...)",
                                                 group, shown, group, group));
  return UserPattern{std::move(regex), found->second};
}

std::optional<uint32_t> to_number(std::string_view text) {
  if (text.empty() || text.size() > 7) return std::nullopt;
  uint32_t n = 0;
  for (char c : text) {
    if (!digit(c)) return std::nullopt;
    n = n * 10 + static_cast<uint32_t>(c - '0');
  }
  return n;
}

// The number that ends or fills a text: "131", "rank=131", "r131".
std::optional<uint32_t> number_in(std::string_view text) {
  size_t begin = 0;
  while (begin < text.size() && !digit(text[begin])) ++begin;
  size_t end = begin;
  while (end < text.size() && digit(text[end])) ++end;
  return to_number(text.substr(begin, end - begin));
}

// A file's name without what tells its kind or its generation: "node-3.log.1" is "node-3".
std::string_view stem(std::string_view name) {
  constexpr std::string_view kKinds[] = {"log",    "out",    "err",    "txt", "json", "jsonl",
                                         "stdout", "stderr", "ndjson", "csv", "comm", "dump",
                                         "old",    "output", "error",  "logs"};
  for (;;) {
    const size_t dot = name.rfind('.');
    if (dot == std::string_view::npos || dot == 0) return name;
    const std::string_view last = name.substr(dot + 1);
    const bool kind = std::find(std::begin(kKinds), std::end(kKinds), last) != std::end(kKinds);
    // a generation: one or two digits behind a kind
    const bool generation = last.size() <= 2 && to_number(last) && name.find('.') != dot && !is_ipv4(name) &&
                            stem(name.substr(0, dot)).size() < dot;
    if (!kind && !generation) return name;
    name = name.substr(0, dot);
  }
}

// The number behind `word` where it stands as a word of its own: "rank_131", "nccl_rank131", "Rank-131".
std::optional<uint32_t> numbered(std::string_view text, std::string_view word) {
  for (size_t at = 0; at + word.size() < text.size(); ++at) {
    bool same = at == 0 || !alpha(text[at - 1]);
    for (size_t i = 0; i < word.size() && same; ++i)
      same = text[at + i] == word[i] || (alpha(word[i]) && (text[at + i] | 0x20) == word[i]);
    if (!same) continue;
    size_t begin = at + word.size();
    if (text[begin] == '_' || text[begin] == '-' || text[begin] == '=' || text[begin] == '.') ++begin;
    size_t end = begin;
    while (end < text.size() && digit(text[end])) ++end;
    if (end < text.size() && alpha(text[end])) continue;
    if (const auto n = to_number(text.substr(begin, end - begin))) return n;
  }
  return std::nullopt;
}

struct Ranks {
  std::optional<uint32_t> rank, local;
};

// "rank_131", "local_rank_3", "device-3", "gpu3" inside of a host's folder.
void read_ranks(std::string_view name, Ranks& ranks) {
  for (std::string_view word : {"local_rank", "localrank", "local-rank"})
    if (const auto n = numbered(name, word)) {
      ranks.local = n;
      return;
    }
  if (const auto n = numbered(name, "rank")) ranks.rank = n;
  // Other numbers behind "device" are processes (Ascend's device-<pid>_<time>.log).
  if (const auto n = numbered(name, "device"); n && *n < kDevicesMax) ranks.local = n;
}

struct Slurm {
  std::string_view host;
  std::optional<uint32_t> task;
};

// "%j_%N_%t" and its kin: a job's number, a node, a task: "12345_node17_3", "slurm-12345-node17",
// "1234.node17.0".
std::optional<Slurm> slurm_name(std::string_view name) {
  size_t at = 0;
  // a word before the number: "slurm-", "train_"
  while (at < name.size() && !digit(name[at])) ++at;
  if (at > 0 && (name[at - 1] != '-' && name[at - 1] != '_' && name[at - 1] != '.')) return std::nullopt;
  size_t end = at;
  while (end < name.size() && digit(name[end])) ++end;
  if (end == at || end >= name.size()) return std::nullopt;
  const char mark = name[end];
  if (mark != '_' && mark != '-' && mark != '.') return std::nullopt;
  // with a word before it, only a number that is long enough for a job's
  if (at > 0 && end - at < 3) return std::nullopt;
  const std::string_view rest = name.substr(end + 1);
  if (rest.empty() || !alpha(rest[0])) return std::nullopt;
  const size_t last = rest.find_last_of("_-.");
  if (last != std::string_view::npos) {
    const std::string_view node = rest.substr(0, last);
    const auto task = to_number(rest.substr(last + 1));
    const bool whole = !node.empty() && (digit(node.back()) || node.find('.') != std::string_view::npos);
    if (task && whole && host_form(node) != HostForm::kNone) return Slurm{node, task};
  }
  if (host_form(rest) != HostForm::kNone) return Slurm{rest, std::nullopt};
  return std::nullopt;
}

// Folders that hold one entry a host.
bool lists_hosts(std::string_view folder) {
  constexpr std::string_view kFolders[] = {"hosts",    "nodes",    "by-host", "by-node", "by_host", "by_node",
                                           "per_host", "per_node", "stacks",  "pods",    "machines"};
  return std::find(std::begin(kFolders), std::end(kFolders), folder) != std::end(kFolders);
}

struct Best {
  std::string_view host;
  HostForm form = HostForm::kNone;
  // The deeper name wins among equals: "cluster-1/node-3/...".
  void take(std::string_view name, HostForm found) {
    if (found != HostForm::kNone && found >= form) host = name, form = found;
  }
};

// A host inside of a file's name: the whole of it, else a part between '.' or '_'.
void read_file_host(std::string_view name, Best& best) {
  const HostForm whole = host_form(name);
  if (whole != HostForm::kNone) return best.take(name, whole);
  for (char separator : {'.', '_'}) {
    for (std::string_view part : split(name, separator)) {
      const HostForm form = host_form(part);
      // a part may be anything; only surer forms count where '_' divides
      if (form == HostForm::kNone || (form == HostForm::kNumbered && separator == '_')) continue;
      return best.take(part, form);
    }
  }
}

}  // namespace

std::string host_stem(std::string_view host) {
  std::string stem;
  for (const char c : host)
    if (!digit(c))
      stem += c;
    else if (stem.empty() || stem.back() != '#')
      stem += '#';
  return stem;
}

std::string with_named_groups(std::string_view pattern) {
  std::string out;
  bool in_class = false;
  for (size_t i = 0; i < pattern.size(); ++i) {
    const char c = pattern[i];
    if (c == '\\' && i + 1 < pattern.size()) {
      out.append(pattern.substr(i++, 2));
      continue;
    }
    if (c == '[') in_class = true;
    if (c == ']') in_class = false;
    out += c;
    const bool named = !in_class && c == '(' && pattern.substr(i, 3) == "(?<" && i + 3 < pattern.size() &&
                       pattern[i + 3] != '=' && pattern[i + 3] != '!';
    if (named) {
      out += "?P<";
      i += 2;
    }
  }
  return out;
}

struct Placement::Impl {
  UserPattern host, rank;

  static PathOwner guess(std::string_view path) {
    const std::vector<std::string_view> parts = split(path, '/');
    Best best;
    Ranks ranks;
    bool named = false;  // by a folder that lists hosts
    for (size_t i = 0; i + 1 < parts.size(); ++i) {
      const std::string_view part = parts[i];
      if (i > 0 && lists_hosts(parts[i - 1]) && !part.empty()) {
        best = Best{part, HostForm::kMachine};
        named = true;
        continue;
      }
      read_ranks(part, ranks);
      // torchrun: attempt_<n>/<local rank>/
      if (i > 0 && parts[i - 1].starts_with("attempt_") && to_number(part)) ranks.local = to_number(part);
      if (!named) best.take(part, host_form(part));
    }
    const std::string_view file = stem(parts.back());
    read_ranks(file, ranks);
    const std::optional<Slurm> slurm = slurm_name(file);
    if (slurm) {
      if (!named) best.take(slurm->host, std::max(best.form, host_form(slurm->host)));
      if (slurm->task && !ranks.rank) ranks.rank = slurm->task;
    } else if (!named && !numbered(file, "rank")) {
      read_file_host(file, best);
    }
    PathOwner owner;
    owner.guessed = best.form == HostForm::kNumbered && best.host.data() >= parts.back().data();
    if (best.form != HostForm::kNone) owner.host = std::string(best.host);
    owner.rank = ranks.rank;
    owner.local = ranks.local;
    return owner;
  }
};

Placement::Placement(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Placement::Placement(Placement&&) noexcept = default;
Placement& Placement::operator=(Placement&&) noexcept = default;
Placement::~Placement() = default;

Result<Placement> Placement::create(const PlacementOptions& options) {
  auto impl = std::make_unique<Impl>();
  auto host = compile(options.host_pattern, "host");
  if (!host) return tl::unexpected(host.error());
  auto rank = compile(options.rank_pattern, "rank");
  if (!rank) return tl::unexpected(rank.error());
  impl->host = std::move(*host);
  impl->rank = std::move(*rank);
  return Placement(std::move(impl));
}

PathOwner Placement::owner(std::string_view path) const {
  PathOwner owner = Impl::guess(path);
  // Where the user gave a pattern, a path that it does not match has no owner: our guess would contradict it.
  if (impl_->host.regex) owner.host = impl_->host.match(path), owner.guessed = false;
  if (impl_->rank.regex) {
    const auto text = impl_->rank.match(path);
    owner.rank = text ? number_in(*text) : std::nullopt;
  }
  return owner;
}

bool Placement::has_host_pattern() const { return impl_->host.regex != nullptr; }
bool Placement::has_rank_pattern() const { return impl_->rank.regex != nullptr; }

}  // namespace culprit::logs
