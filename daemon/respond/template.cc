// Templates of webhooks: see notice.h.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "base/text.h"
#include "model/json_writer.h"
#include "respond/notice.h"

namespace culprit::respond {
namespace {

constexpr size_t kRenderedBytes = 256 << 10;

std::string json_inside(std::string_view text) {
  JsonWriter w;
  w.write(text);
  const std::string whole = w.finish();
  return whole.substr(1, whole.size() - 2);
}

// Escapes '<' and '>', because Slack reads <...> as links and mentions.
std::string for_slack(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '&')
      out += "&amp;";
    else if (c == '<')
      out += "&lt;";
    else if (c == '>')
      out += "&gt;";
    else
      out += c;
  }
  return out;
}

std::string for_markdown(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (std::string_view("\\`*_[]()<>#|~!").find(c) != std::string_view::npos) out += '\\';
    out += c;
  }
  return out;
}

// Looks up the value in "firing:trigger|resolved:resolve", and returns the word after it; empty: not found.
std::string mapped(const std::vector<std::string_view>& choices, std::string_view value) {
  for (size_t i = 1; i < choices.size(); ++i) {
    const size_t colon = choices[i].find(':');
    if (choices[i].substr(0, colon) == value) return std::string(choices[i].substr(colon + 1));
  }
  return "";
}

Result<std::string> value_text(std::string_view inside, const Values& values) {
  const std::vector<std::string_view> parts = split(inside, '|');
  const auto value = values.find(std::string(trim(parts[0])));
  if (value == values.end())
    return fail(ErrorCode::kInvalid,
                fmt::format("there is no value '{}'", shorten(to_terminal(trim(parts[0])), 60)));
  if (parts.size() == 1) return value->second;
  if (parts[1] == "slack") return for_slack(value->second);
  if (parts[1] == "markdown") return for_markdown(value->second);
  if (parts[1].find(':') == std::string_view::npos)
    return fail(ErrorCode::kInvalid, fmt::format("'{}' is none of slack, markdown and VALUE:WORD",
                                                 shorten(to_terminal(parts[1]), 60)));
  return mapped(parts, value->second);
}

}  // namespace

Result<std::string> render(std::string_view text, const Values& values) {
  std::string out;
  for (;;) {
    const size_t open = text.find("{{");
    out += text.substr(0, open);
    if (open == text.npos) break;
    const size_t close = text.find("}}", open);
    if (close == text.npos) return fail(ErrorCode::kInvalid, "a '{{' lacks its '}}'");
    auto value = value_text(text.substr(open + 2, close - open - 2), values);
    if (!value) return value;
    out += json_inside(*value);
    text.remove_prefix(close + 2);
    if (out.size() > kRenderedBytes) return fail(ErrorCode::kLimit, "the text becomes too long");
  }
  if (!nlohmann::json::accept(out)) return fail(ErrorCode::kInvalid, "what it makes is no JSON");
  return out;
}

}  // namespace culprit::respond
