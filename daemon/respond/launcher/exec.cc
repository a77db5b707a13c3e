#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>

#include "base/text.h"
#include "respond/launcher/backend.h"
#include "respond/order.h"

namespace culprit::respond::launcher {
namespace {

constexpr int kTemporary = 75;  // EX_TEMPFAIL of sysexits.h
constexpr size_t kAnswerMost = 64 << 10;
constexpr size_t kArgumentMost = 128 << 10;  // Linux's MAX_ARG_STRLEN

constexpr std::array<std::string_view, 8> kPlaceholders{"op",  "decision", "kind", "target",
                                                        "job", "excluded", "code", "reason"};

std::string value_of_placeholder(const ActionOrder& order, std::string_view name) {
  if (name == "op") return order.op;
  if (name == "decision") return order.decision;
  if (name == "kind") return std::string(name_of(order.kind));
  if (name == "target") return one_line(order.target);
  if (name == "job") return one_line(order.job.id);
  if (name == "excluded") return fmt::format("{}", fmt::join(order.excluded, ","));
  if (name == "code") return order.code;
  return one_line(order.reason);
}

// The name of the placeholder that begins at `at`, if one does. Other braces are the user's text.
std::optional<std::string_view> placeholder_at(std::string_view word, size_t at) {
  const size_t end = word.find('}', at);
  if (word[at] != '{' || end == word.npos) return std::nullopt;
  const std::string_view name = word.substr(at + 1, end - at - 1);
  const bool is_name =
      !name.empty() && std::ranges::all_of(name, [](char c) { return (c >= 'a' && c <= 'z') || c == '_'; });
  return is_name ? std::optional(name) : std::nullopt;
}

// nullopt: the argument would begin with '-' by a value, or be too long.
std::optional<std::string> filled(std::string_view word, const ActionOrder& order) {
  std::string out;
  for (size_t i = 0; i < word.size();) {
    const auto name = placeholder_at(word, i);
    if (!name) {
      out += word[i++];
      continue;
    }
    out += value_of_placeholder(order, *name);
    i += name->size() + 2;
  }
  if ((out.starts_with('-') && !word.starts_with('-')) || out.size() > kArgumentMost) return std::nullopt;
  return out;
}

}  // namespace

Status check_command(const std::vector<std::string>& command) {
  if (command.empty() || !command[0].starts_with('/'))
    return fail(ErrorCode::kInvalid, "the launcher's command: its first word is no absolute path");
  for (const std::string& word : command)
    for (size_t i = 0; i < word.size(); ++i)
      if (const auto name = placeholder_at(word, i);
          name && (&word == command.data() || std::ranges::find(kPlaceholders, *name) == kPlaceholders.end()))
        return fail(ErrorCode::kInvalid,
                    fmt::format("the launcher's command: unknown placeholder {{{}}}", *name));
  return {};
}

ActionResult ExecBackend::carry_out(const ActionOrder& order, Pace& pace) const {
  if (const Status sound = check_command(options_.command); !sound)
    return result_of(order, ActionState::kFailed, sound.error().text);
  io::ProgramRun run;
  run.path = options_.command[0];
  for (const std::string& word : options_.command) {
    auto argument = filled(word, order);
    if (!argument)
      return result_of(order, ActionState::kFailed,
                       fmt::format("the argument {} would be an option or is too long", one_line(word)));
    run.words.push_back(std::move(*argument));
  }
  const std::string shown = one_line(fmt::format("{}", fmt::join(run.words, " ")));
  if (options_.observe)
    return result_of(order, ActionState::kDone, fmt::format("observe: would run {}", shown));
  run.environment = options_.environment;
  for (const std::string_view name : {"op", "decision", "kind", "target", "job"}) {
    std::string upper(name);
    for (char& c : upper) c = static_cast<char>(c - 'a' + 'A');
    run.environment.push_back(fmt::format("CULPRIT_{}={}", upper, value_of_placeholder(order, name)));
  }
  run.input = order_json(order) + "\n";
  run.within_ns = options_.within_ns;
  run.output_max = kAnswerMost;
  run.stop = &pace.stop();
  const io::ProgramEnd end = options_.run(run);
  if (end.is_success()) return parse_answer(order, ActionState::kDone, end.output);
  const bool unknown =
      end.is_unknown() || (end.kind == io::ProgramEnd::Kind::kExited && end.code == kTemporary);
  ActionResult out =
      parse_answer(order, unknown ? ActionState::kAmbiguous : ActionState::kFailed, end.output);
  out.detail = one_line(fmt::format("{}: {}", options_.command[0], end.reason));
  return out;
}

}  // namespace culprit::respond::launcher
