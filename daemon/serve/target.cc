#include "serve/target.h"

#include <arpa/inet.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>

#include "base/ascii.h"
#include "base/text.h"

namespace culprit::serve {
namespace {

// Routes have at most six segments and five parameters; more than these limits indicate an attack.
constexpr size_t kSegments = 16;
constexpr size_t kParameters = 16;

// `plus`: decode '+' as a blank, as in form queries.
Result<std::string> decoded(std::string_view text, bool plus) {
  std::string out;
  out.reserve(text.size());
  for (size_t i = 0; i < text.size(); ++i) {
    char c = text[i];
    if (c == '%') {
      const int high = i + 1 < text.size() ? hex_value(text[i + 1]) : -1;
      const int low = i + 2 < text.size() ? hex_value(text[i + 2]) : -1;
      if (high < 0 || low < 0)
        return fail(ErrorCode::kInvalid, "the address: '%' without two hexadecimal digits behind it");
      c = static_cast<char>(high * 16 + low);
      i += 2;
    } else if (c == '+' && plus) {
      c = ' ';
    }
    if (c == '\0') return fail(ErrorCode::kInvalid, "the address: a NUL in it");
    out += c;
  }
  return out;
}

Status parse_query(std::string_view raw, Target& out) {
  for (std::string_view part : split(raw, '&')) {
    if (part.empty()) continue;
    const size_t equals = std::min(part.find('='), part.size());
    auto key = decoded(part.substr(0, equals), true);
    if (!key) return tl::unexpected(key.error());
    auto value = decoded(part.substr(std::min(equals + 1, part.size())), true);
    if (!value) return tl::unexpected(value.error());
    if (!out.query.emplace(*key, std::move(*value)).second)
      return fail(ErrorCode::kInvalid, fmt::format("'{}': given twice", shorten(to_utf8(*key), 60)));
    if (out.query.size() > kParameters)
      return fail(ErrorCode::kInvalid, fmt::format("the address: more than {} parameters", kParameters));
  }
  return {};
}

bool digits(std::string_view text) {
  return !text.empty() && text.size() <= 5 && text.find_first_not_of("0123456789") == text.npos;
}

std::string lower(std::string_view text) {
  std::string out(text);
  for (char& c : out)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return out;
}

}  // namespace

Result<Target> parse_target(std::string_view raw) {
  Target out;
  raw = raw.substr(0, raw.find('#'));
  const size_t mark = std::min(raw.find('?'), raw.size());
  std::string_view path = raw.substr(0, mark);
  if (!path.starts_with('/')) return fail(ErrorCode::kInvalid, "the address: it does not begin with '/'");
  path.remove_prefix(1);
  if (!path.empty()) {
    for (std::string_view segment : split(path, '/')) {
      auto name = decoded(segment, false);
      if (!name) return tl::unexpected(name.error());
      out.path.push_back(std::move(*name));
      if (out.path.size() > kSegments)
        return fail(ErrorCode::kInvalid, fmt::format("the address: more than {} parts", kSegments));
    }
  }
  if (mark < raw.size())
    if (Status status = parse_query(raw.substr(mark + 1), out); !status)
      return tl::unexpected(status.error());
  return out;
}

bool host_allowed(std::string_view host, const std::vector<std::string>& names) {
  std::string name = lower(host);
  std::array<unsigned char, sizeof(in6_addr)> address;
  if (name.starts_with('[')) {
    const size_t end = name.find(']');
    if (end == name.npos) return false;
    const std::string_view port = std::string_view(name).substr(end + 1);
    if (!port.empty() && (port[0] != ':' || !digits(port.substr(1)))) return false;
    return inet_pton(AF_INET6, name.substr(1, end - 1).c_str(), address.data()) == 1;
  }
  if (const size_t colon = name.find(':'); colon != name.npos) {
    if (!digits(std::string_view(name).substr(colon + 1))) return false;
    name.resize(colon);
  }
  if (inet_pton(AF_INET, name.c_str(), address.data()) == 1 || name == "localhost") return true;
  return std::any_of(names.begin(), names.end(),
                     [&](const std::string& own) { return !own.empty() && lower(own) == name; });
}

bool bearer_matches(std::string_view authorization, std::string_view token) {
  constexpr std::string_view kScheme = "bearer ";
  if (token.empty() || lower(authorization.substr(0, kScheme.size())) != kScheme) return false;
  const std::string_view given = trim(authorization.substr(kScheme.size()));
  // Compares every byte, so that the time depends only on the length of the given token.
  unsigned differs = given.size() != token.size();
  for (size_t i = 0; i < given.size(); ++i)
    differs |= static_cast<unsigned char>(given[i]) ^ static_cast<unsigned char>(token[i % token.size()]);
  return differs == 0;
}

}  // namespace culprit::serve
