#include "core/logs/placement.h"

#include <fmt/format.h>
#include <re2/re2.h>

#include <algorithm>
#include <map>
#include <set>
#include <vector>

#include "base/ascii.h"
#include "base/text.h"
#include "core/logs/file_name.h"

namespace culprit::logs {
namespace {

constexpr size_t kPatternMax = 4096;  // bytes; longer patterns are not hand-written
constexpr int64_t kPatternMemory = 8 << 20;

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

// The number at the end of a text, or the whole text: "131", "rank=131", "r131".
std::optional<uint32_t> number_in(std::string_view text) {
  size_t begin = 0;
  while (begin < text.size() && !digit(text[begin])) ++begin;
  size_t end = begin;
  while (end < text.size() && digit(text[end])) ++end;
  return to_number(text.substr(begin, end - begin));
}

// Folders with one entry per host.
bool lists_hosts(std::string_view folder) {
  constexpr std::string_view kFolders[] = {"hosts",    "nodes",    "by-host", "by-node", "by_host", "by_node",
                                           "per_host", "per_node", "stacks",  "pods",    "machines"};
  return std::find(std::begin(kFolders), std::end(kFolders), folder) != std::end(kFolders);
}

// A component of a path that may name the host.
struct Candidate {
  size_t path = 0;
  std::string host;
  HostForm form = HostForm::kNone;
  bool anchored = false;
  std::string place;  // the component, and its text before the host
  FileName name;
  bool file = false;
  size_t others = 0;  // other hosts in the same place
};

// The readings of one path, before comparison with the other paths.
struct PathReading {
  std::vector<Candidate> candidates;
  std::optional<uint32_t> rank, local;
};

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

namespace {

// Name of a folder for a single process or host: "attempt_0", "process_log", "rank_3".
bool belongs_to_one(std::string_view folder, std::string_view file) {
  return folder.starts_with("attempt_") || folder == "process_log" || find_numbered(folder, "rank") ||
         find_numbered(file, "rank");
}

PathReading read_path(std::string_view path, size_t number) {
  PathReading out;
  const std::vector<std::string_view> parts = split(path, '/');
  for (size_t i = 0; i < parts.size(); ++i) {
    const bool file = i + 1 == parts.size();
    const std::string_view part = file ? file_stem(parts[i]) : parts[i];
    FileName name = read_file_name(part);
    if (name.rank) out.rank = name.rank;
    if (name.local) out.local = name.local;
    // torchrun: attempt_<n>/<local rank>/
    if (!file && i > 0 && parts[i - 1].starts_with("attempt_") && to_number(part))
      out.local = to_number(part);
    if (i > 0 && !file && lists_hosts(parts[i - 1]) && !part.empty() && !name.anchored) {
      name.host = part;
      name.form = HostForm::kMachine;
      name.anchored = true;
    }
    if (name.host.empty()) continue;
    const bool whole = name.host.size() == part.size();
    if (!file && whole)
      for (size_t k = i + 1; k < parts.size() && k <= i + 2; ++k)
        name.anchored |= belongs_to_one(parts[k], k + 1 == parts.size() ? parts[k] : "");
    const std::string_view before = part.substr(0, static_cast<size_t>(name.host.data() - part.data()));
    out.candidates.push_back({number, std::string(name.host), name.form, name.anchored,
                              fmt::format("{}/{}", file ? 0 : i + 1, host_stem(before)), name, file});
  }
  return out;
}

// The deepest component that is one of `hosts`; empty: none.
std::string_view known_host_in(std::string_view path, const std::set<std::string_view>& hosts) {
  const std::vector<std::string_view> parts = split(path, '/');
  for (size_t i = parts.size(); i-- > 0;) {
    const bool file = i + 1 == parts.size();
    for (const std::string_view part : {parts[i], file ? file_stem(parts[i]) : parts[i]})
      if (const auto at = hosts.find(part); at != hosts.end()) return *at;
  }
  return {};
}

// Compares the paths of one job: their varying parts are hosts and ranks.
class PathSet {
 public:
  explicit PathSet(const std::vector<std::string>& paths) {
    for (size_t i = 0; i < paths.size(); ++i) readings_.push_back(read_path(paths[i], i));
  }

  std::vector<PathOwner> owners() {
    count_others();
    for (PathReading& reading : readings_) chosen_.push_back(choose(reading));
    split_tasks();
    std::vector<PathOwner> out(readings_.size());
    for (size_t i = 0; i < readings_.size(); ++i) {
      PathOwner& owner = out[i];
      owner.rank = readings_[i].rank;
      owner.local = readings_[i].local;
      const Candidate* c = chosen_[i];
      if (!c) continue;
      // A lone folder named by a letter and a number may be a job ("j1") or a host. A single path counts as a
      // host, since there is nothing to compare it with.
      const bool lone = c->form == HostForm::kNumbered && !c->file && c->others == 0;
      if (!lone || readings_.size() == 1) owner.host = c->host;
      owner.guessed = owner.host && c->form == HostForm::kNumbered && (lone || !c->anchored) &&
                      kinds_[host_stem(c->host)].size() < 2;
      if (!owner.rank && c->name.task) owner.rank = c->name.task;
    }
    return out;
  }

 private:
  void count_others() {
    std::map<std::string, std::set<std::string>> places;
    for (const PathReading& reading : readings_)
      for (const Candidate& c : reading.candidates) {
        places[c.place].insert(c.host);
        kinds_[host_stem(c.host)].insert(c.host);
      }
    for (PathReading& reading : readings_)
      for (Candidate& c : reading.candidates) c.others = places[c.place].size() - 1;
  }

  // Prefers the most certain form, then a place used only by hosts, then varying names; on a tie, the deeper
  // component: "cluster-1/node-3/...".
  static Candidate* choose(PathReading& reading) {
    Candidate* best = nullptr;
    const auto weight = [](const Candidate& c) {
      return 2 * static_cast<int>(c.form) + 2 * c.anchored + 2 * (c.others > 0);
    };
    for (Candidate& c : reading.candidates) {
      // A name of this form is a host only in a place of hosts, next to other such names.
      if (c.form == HostForm::kPossible && (!c.anchored || c.others == 0)) continue;
      if (!best || weight(c) >= weight(*best)) best = &c;
    }
    return best;
  }

  // Decides whether "node17-3" is task 3 on node17 or the name of a host. Task numbers begin at 0 and have no
  // gaps or leading zeros. Each occurs once in the job, or all occur on every host.
  void split_tasks() {
    std::map<std::string, std::vector<Candidate*>> groups;
    for (Candidate* c : chosen_)
      if (c && c->name.tail) {
        const bool whole = is_whole_host_name(c->name.shorter);
        groups[c->place + (whole ? "" : " " + host_stem(c->name.shorter))].push_back(c);
      }
    for (auto& [key, group] : groups) {
      std::set<std::string_view> hosts;
      std::set<uint32_t> tails;
      bool padded = false, whole = true;
      for (const Candidate* c : group) {
        hosts.insert(c->name.shorter);
        tails.insert(*c->name.tail);
        padded |= c->name.padded;
        whole &= is_whole_host_name(c->name.shorter);
      }
      const bool dense = *tails.begin() == 0 && *tails.rbegin() < tails.size() + tails.size() / 4 + 1;
      const bool each_once = tails.size() == group.size();
      const bool tasks = whole ? dense || group.size() == 1 : dense && each_once && hosts.size() > 1;
      if (padded || !tasks || group[0]->name.task) continue;
      for (Candidate* c : group) split_task(*c, each_once);
    }
  }

  void split_task(Candidate& c, bool global) {
    PathReading& reading = readings_[c.path];
    c.host = std::string(c.name.shorter);
    if (global && !reading.rank) reading.rank = c.name.tail;
    if (!global && !reading.local) reading.local = c.name.tail;
  }

  std::vector<PathReading> readings_;
  std::vector<Candidate*> chosen_;                      // by path; null: no component names a host
  std::map<std::string, std::set<std::string>> kinds_;  // names by host_stem
};

}  // namespace

struct Placement::Impl {
  UserPattern host, rank;
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

PathOwner Placement::owner(std::string_view path) const { return owners({std::string(path)})[0]; }

std::vector<PathOwner> Placement::owners(const std::vector<std::string>& paths,
                                         const std::vector<std::string>& hosts) const {
  std::vector<PathOwner> out = PathSet(paths).owners();
  const std::set<std::string_view> known(hosts.begin(), hosts.end());
  for (size_t i = 0; i < paths.size() && !known.empty(); ++i)
    if (const std::string_view host = known_host_in(paths[i], known); !host.empty())
      out[i].host = host, out[i].guessed = false;
  for (size_t i = 0; i < paths.size(); ++i) {
    // If the user gave a pattern, a path without a match has no owner: a guess would contradict the pattern.
    if (impl_->host.regex) out[i].host = impl_->host.match(paths[i]), out[i].guessed = false;
    if (impl_->rank.regex) {
      const auto text = impl_->rank.match(paths[i]);
      out[i].rank = text ? number_in(*text) : std::nullopt;
    }
  }
  return out;
}

bool Placement::has_host_pattern() const { return impl_->host.regex != nullptr; }
bool Placement::has_rank_pattern() const { return impl_->rank.regex != nullptr; }

}  // namespace culprit::logs
