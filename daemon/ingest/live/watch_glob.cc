#include "ingest/live/watch_glob.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"

namespace culprit::ingest {
namespace {

// Alternatives from braces: {a,b}{c,d}… doubles with each pair.
constexpr size_t kAlternatives = 64;
constexpr uint32_t kPartBits = 16;
constexpr size_t kPatternBytes = 4096;  // PATH_MAX

bool has_pattern(std::string_view part) { return part.find_first_of("*?[{") != part.npos; }

// Whether `c` is in the set after the '[' at `at`; `at` then points after the ']'. A '[' without an end is an
// ordinary character.
bool in_set(std::string_view pattern, size_t& at, char c) {
  const size_t open = at++;
  const bool negated = at < pattern.size() && (pattern[at] == '!' || pattern[at] == '^');
  if (negated) ++at;
  bool found = false;
  for (size_t first = at; at < pattern.size(); ++at) {
    if (pattern[at] == ']' && at > first) {
      ++at;
      return found != negated;
    }
    const auto low = static_cast<unsigned char>(pattern[at]);
    auto high = low;
    if (at + 2 < pattern.size() && pattern[at + 1] == '-' && pattern[at + 2] != ']') {
      high = static_cast<unsigned char>(pattern[at + 2]);
      at += 2;
    }
    const auto byte = static_cast<unsigned char>(c);
    found = found || (low <= byte && byte <= high);
  }
  at = open + 1;
  return c == '[';
}

// The position of the brace that closes the one at `open`, or npos.
size_t closing(std::string_view pattern, size_t open) {
  size_t depth = 0;
  for (size_t at = open; at < pattern.size(); ++at) {
    if (pattern[at] == '{') ++depth;
    if (pattern[at] == '}' && --depth == 0) return at;
  }
  return pattern.npos;
}

// Writes the pattern without braces, once for each combination; false beyond kAlternatives.
bool expand(std::string_view pattern, std::vector<std::string>& out) {
  const size_t open = pattern.find('{');
  const size_t close = open == pattern.npos ? open : closing(pattern, open);
  if (close == pattern.npos) {
    out.emplace_back(pattern);
    return out.size() <= kAlternatives;
  }
  size_t depth = 0, from = open + 1;
  for (size_t at = open + 1; at <= close; ++at) {
    if (pattern[at] == '{') ++depth;
    if (at < close && pattern[at] == '}') --depth;
    if (at < close && !(pattern[at] == ',' && depth == 0)) continue;
    const std::string one = fmt::format("{}{}{}", pattern.substr(0, open), pattern.substr(from, at - from),
                                        pattern.substr(close + 1));
    if (!expand(one, out)) return false;
    from = at + 1;
  }
  return true;
}

// A name that begins with a dot matches only a pattern part that begins with one.
bool part_takes(std::string_view part, std::string_view name) {
  if (name.starts_with('.') && !part.starts_with('.')) return false;
  return name_matches(part, name);
}

}  // namespace

bool name_matches(std::string_view pattern, std::string_view name) {
  size_t at = 0, i = 0;
  size_t star = pattern.npos, star_i = 0;  // the last `*`, and the end of its match
  while (i < name.size()) {
    size_t next = at + 1;
    bool matches = false;
    if (at < pattern.size() && pattern[at] == '*') {
      star = at++;
      star_i = i;
      continue;
    }
    if (at < pattern.size()) {
      if (pattern[at] == '[') {
        next = at;
        matches = in_set(pattern, next, name[i]);
      } else {
        matches = pattern[at] == '?' || pattern[at] == name[i];
      }
    }
    if (matches) {
      at = next;
      ++i;
    } else if (star != pattern.npos) {
      at = star + 1;
      i = ++star_i;
    } else {
      return false;
    }
  }
  return pattern.find_first_not_of('*', at) == pattern.npos;
}

Result<WatchGlob> WatchGlob::parse(std::string_view pattern) {
  const auto invalid = [&](std::string_view why) {
    return fail(ErrorCode::kInvalid, fmt::format("the glob \"{}\" {}", to_terminal(pattern), why));
  };
  if (pattern.size() > kPatternBytes) return invalid("is longer than a path can be");
  if (pattern.find('\0') != pattern.npos) return invalid("holds a zero byte");
  if (!pattern.starts_with('/')) return invalid("is no absolute path");
  if (pattern.ends_with('/')) return invalid("names a folder");

  WatchGlob glob;
  size_t from = 1;
  for (size_t end; (end = pattern.find('/', from)) != pattern.npos; from = end + 1) {
    const std::string_view part = pattern.substr(from, end - from);
    // A brace may span a slash, so nothing after the brace's start is fixed.
    if (has_pattern(part)) break;
    if (part == "." || part == "..") return invalid("must not hold \".\" or \"..\"");
    if (!part.empty()) glob.root_.append("/").append(part);
  }
  if (glob.root_.empty()) glob.root_.push_back('/');
  std::vector<std::string> plain;
  if (!expand(pattern.substr(from), plain)) return invalid("has more than 64 alternatives");
  for (const std::string& one : plain) {
    Parts parts;
    for (const std::string_view part : split(one, '/')) {
      if (part == "." || part == "..") return invalid("must not hold \".\" or \"..\"");
      const bool repeated = part == "**" && !parts.empty() && parts.back() == "**";
      if (!part.empty() && !repeated) parts.emplace_back(part);
    }
    if (parts.empty() || one.ends_with('/')) return invalid("names a folder");
    glob.alternatives_.push_back(std::move(parts));
  }
  return glob;
}

void WatchGlob::add(State& state, uint32_t alternative, uint32_t part) const {
  const Parts& parts = alternatives_[alternative];
  for (; part < parts.size(); ++part) {
    const uint32_t code = alternative << kPartBits | part;
    if (std::find(state.begin(), state.end(), code) == state.end()) state.push_back(code);
    // `**` also matches no folder, but as the last part it requires a name.
    if (parts[part] != "**") return;
  }
}

WatchGlob::State WatchGlob::at_root() const {
  State state;
  for (uint32_t i = 0; i < alternatives_.size(); ++i) add(state, i, 0);
  return state;
}

WatchGlob::State WatchGlob::enter(const State& folder, std::string_view name) const {
  State state;
  for (const uint32_t code : folder) {
    const uint32_t alternative = code >> kPartBits, part = code & ((1u << kPartBits) - 1);
    const Parts& parts = alternatives_[alternative];
    if (parts[part] == "**") {
      if (!name.starts_with('.')) add(state, alternative, part);
    } else if (part + 1 < parts.size() && part_takes(parts[part], name)) {
      add(state, alternative, part + 1);
    }
  }
  return state;
}

bool WatchGlob::takes(const State& folder, std::string_view name) const {
  return std::any_of(folder.begin(), folder.end(), [&](uint32_t code) {
    const Parts& parts = alternatives_[code >> kPartBits];
    const uint32_t part = code & ((1u << kPartBits) - 1);
    if (part + 1 != parts.size()) return false;
    return parts[part] == "**" ? !name.starts_with('.') : part_takes(parts[part], name);
  });
}

bool WatchGlob::takes_path(std::string_view below) const {
  State state = at_root();
  for (size_t end; (end = below.find('/')) != below.npos; below.remove_prefix(end + 1))
    state = enter(state, below.substr(0, end));
  return takes(state, below);
}

}  // namespace culprit::ingest
