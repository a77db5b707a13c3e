#include "core/recover/recording.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <type_traits>
#include <utility>

#include "base/text.h"
#include "core/recover/recorded_members.h"
#include "model/json_text.h"
#include "model/recovery_json.h"

namespace culprit::recover {
namespace {

using Json = nlohmann::json;

constexpr std::string_view kSchema = "culprit.recover.inputs/1";
constexpr size_t kRepeated = size_t{4} << 20;  // bytes of a run of inputs that is remembered
constexpr size_t kReplayedInputs = 1'000'000;  // of a step
constexpr size_t kShown = 300;                 // bytes of a difference

bool repeats(size_t kind) { return kind == kind_of<HostSeen>() || kind == kind_of<JobMeans>(); }

TimeNs* reading_of(Input& input) {
  HostSeen* seen = std::get_if<HostSeen>(&input);
  return seen == nullptr ? nullptr : &seen->read_ns;
}

// Inputs of one kind that follow each other, as JSON; `read_ns` is the time of their common reading.
struct Run {
  size_t kind = 0;
  std::vector<Input> inputs;
  TimeNs read_ns = kNoTime;
  bool one_reading = true;
};

std::vector<Run> runs_of(std::span<const Input> inputs) {
  std::vector<Run> out;
  for (const Input& input : inputs) {
    if (out.empty() || out.back().kind != input.index() || !repeats(input.index()))
      out.push_back({input.index(), {}, kNoTime, true});
    Run& run = out.back();
    Input& added = run.inputs.emplace_back(input);
    const TimeNs* read = reading_of(added);
    if (read == nullptr) continue;
    if (run.inputs.size() == 1) run.read_ns = *read;
    run.one_reading = run.one_reading && run.read_ns == *read;
  }
  return out;
}

void write_input(JsonWriter& w, const Input& input) {
  w.object([&] {
    w.field("kind", kKindWords[input.index()]);
    JsonMembersOut io(w);
    std::visit([&](const auto& in) { input_members(io, in); }, input);
  });
}

std::string without_reading(Run run) {
  JsonWriter w;
  for (Input& input : run.inputs)
    if (TimeNs* read = reading_of(input)) *read = kNoTime;
  w.array(run.inputs, [&](const Input& input) { write_input(w, input); });
  return w.finish();
}

std::string texts(const std::vector<std::string>& names, std::string_view before) {
  std::string out;
  for (const std::string& name : names) out += fmt::format("{}{}", before, name);
  return out;
}

template <class Row>
std::string row_line(std::string_view name, const Row& row) {
  JsonWriter w;
  w.object([&] { w.member(name, [&] { write(w, row); }); });
  return w.finish();
}

}  // namespace

std::string line_of(const Order& order) {
  if (const auto* action = std::get_if<ActionOrder>(&order))
    return fmt::format("{} {} {} {}{}", to_string(action->kind), action->target, action->decision, action->op,
                       texts(action->excluded, " -"));
  if (const auto* check = std::get_if<CheckOrder>(&order))
    return fmt::format("{}{} {}", check->kind == CheckKind::kAlign ? "align" : "check",
                       texts(check->hosts, " "), check->decision);
  if (const auto* advice = std::get_if<AdviceOrder>(&order))
    return fmt::format("advise {} {} {}", to_string(advice->advice.kind), advice->job.id, advice->decision);
  const auto* question = std::get_if<Question>(&order);
  if (question == nullptr) return {};
  std::string out = fmt::format("ask {}", question->decision);
  for (const ActionOrder& one : question->orders)
    out += fmt::format(" [{} {}{}]", to_string(one.kind), one.target, texts(one.excluded, " -"));
  return out;
}

// ---- recording

std::string InputRecorder::header(TimeNs began_ns, uint32_t part) {
  latest_.clear();  // each part stands for itself
  JsonWriter w;
  w.object([&] {
    w.field("schema", kSchema);
    w.field("began_ns", began_ns);
    w.field("part", part);
  });
  return w.finish();
}

std::string InputRecorder::start(const ControllerOptions& options, TimeNs lost_ns) {
  JsonWriter w;
  w.object([&] {
    w.time("lost_ns", lost_ns);
    w.member("start", [&] { write_input(w, options); });
  });
  return w.finish();
}

std::string InputRecorder::row(const ActionRecord& row) const { return row_line("action", row); }
std::string InputRecorder::row(const AttemptRecord& row) const { return row_line("attempt", row); }
std::string InputRecorder::row(const MachineRecord& row) const { return row_line("machine", row); }

std::string InputRecorder::gap(const std::string& why) const {
  JsonWriter w;
  w.object([&] { w.field("gap", why); });
  return w.finish();
}

std::string InputRecorder::step(std::span<const Input> inputs, TimeNs now, std::span<const Order> orders) {
  JsonWriter w;
  w.object([&] {
    w.field("at_ns", now);
    w.member("inputs", [&] {
      std::vector<std::string> written;
      for (const Run& run : runs_of(inputs)) {
        JsonWriter one;
        std::string whole = repeats(run.kind) && run.one_reading ? without_reading(run) : std::string();
        std::string& latest = latest_[run.kind];
        if (!whole.empty() && whole == latest) {
          one.object([&] {
            one.field("kind", kKindWords[run.kind]);
            one.field("again", true);
            one.time("read_ns", run.read_ns);
          });
          written.push_back(one.finish());
          continue;
        }
        latest = whole.size() <= kRepeated ? std::move(whole) : std::string();
        for (const Input& input : run.inputs) write_input(one, input), written.push_back(one.finish());
      }
      w.array(written, [&](const std::string& json) { w.write_raw(json); });
    });
    std::vector<std::string> lines;
    for (const Order& order : orders)
      if (std::string line = line_of(order); !line.empty()) lines.push_back(std::move(line));
    w.values("orders", lines);
  });
  std::string out = w.finish();
  if (out.size() < kRecordedLine) return out;
  latest_.clear();
  return gap(fmt::format("a step of {} bytes is not recorded", out.size()));
}

// ---- replay

struct Replayer::State {
  Show show;
  std::function<void(ControllerOptions&)> change;
  std::optional<Controller> controller;
  TimeNs began_ns = kNoTime;
  uint32_t part = 0;
  std::map<size_t, std::vector<Input>> latest;  // as in the recorder

  Status header(const Json& line, Replayed& result);
  Status start(const Json& line);
  Status row(const Json& line);
  Status repeat(const Json& one, std::vector<Input>& out) const;
  Result<std::vector<Input>> inputs(const Json& list);
  Status step(const Json& line, Replayed& result);
};

namespace {

Status wrong_line(const std::string& why) { return fail(ErrorCode::kInvalid, "no recording: " + why); }

Result<Input> input_of(const Json& json) {
  const auto kind = json.is_object() ? json.find("kind") : json.end();
  if (!json.is_object() || kind == json.end() || !kind->is_string())
    return tl::unexpected(wrong_line("an input without a kind").error());
  const auto at = std::ranges::find(kKindWords, kind->get_ref<const std::string&>());
  if (at == kKindWords.end())
    return tl::unexpected(
        wrong_line("an input of the unknown kind '" + kind->get<std::string>() + "'").error());
  Input out = empty_input(static_cast<size_t>(at - kKindWords.begin()));
  JsonMembersIn io(json);
  std::visit([&](auto& in) { input_members(io, in); }, out);
  if (!io.wrong().empty()) return tl::unexpected(wrong_line(fmt::format("{}: {}", *at, io.wrong())).error());
  return out;
}

std::string shown_orders(const std::vector<std::string>& orders) {
  std::string out;
  for (const std::string& one : orders) out += (out.empty() ? "" : "; ") + one;
  return out.empty() ? "nothing" : shorten(out, kShown);
}

}  // namespace

Replayer::Replayer(Show show, std::function<void(ControllerOptions&)> change)
    : state_(std::make_unique<State>()) {
  state_->show = std::move(show);
  state_->change = std::move(change);
}
Replayer::~Replayer() = default;

Status Replayer::State::header(const Json& line, Replayed& result) {
  if (line["schema"] != kSchema) return wrong_line("another version wrote it");
  const auto began = line.find("began_ns"), number = line.find("part");
  if (began == line.end() || !began->is_number_integer() || number == line.end() ||
      !number->is_number_unsigned())
    return wrong_line("its first line has no 'began_ns' and 'part'");
  latest.clear();
  if (*number == 1u) {
    controller.reset();
    ++result.recordings;
    began_ns = began->get<TimeNs>();
  } else if (!controller || *began != began_ns || *number != part + 1) {
    return fail(ErrorCode::kInvalid,
                fmt::format("part {} of a recording without the parts before it: give all, the oldest first",
                            number->get<uint64_t>()));
  }
  part = number->get<uint32_t>();
  return {};
}

Status Replayer::State::start(const Json& line) {
  auto options = input_of(line["start"]);
  if (!options) return tl::unexpected(options.error());
  auto* given = std::get_if<ControllerOptions>(&*options);
  if (given == nullptr) return wrong_line("'start' has no options");
  if (change) change(*given);
  controller.emplace(std::move(*given));
  if (const auto lost = line.find("lost_ns"); lost != line.end() && lost->is_number_integer())
    controller->lost_ledger(lost->get<TimeNs>());
  return {};
}

Status Replayer::State::row(const Json& line) {
  if (!controller) return wrong_line("a row before 'start'");
  const std::string& name = line.begin().key();
  const std::string text = line.begin()->dump();
  bool loaded = true;
  if (name == "action") {
    auto row = action_of(text);
    if (!row) return tl::unexpected(row.error());
    loaded = controller->load(std::move(*row));
  } else if (name == "attempt") {
    auto row = attempt_of(text);
    if (!row) return tl::unexpected(row.error());
    loaded = controller->load(std::move(*row));
  } else if (name == "machine") {
    auto row = machine_of(text);
    if (!row) return tl::unexpected(row.error());
    controller->load(std::move(*row));
  } else {
    return wrong_line("an unknown line");
  }
  return loaded ? Status{} : wrong_line("a row that contradicts itself");
}

// A run that repeats the latest one of its kind, at another reading.
Status Replayer::State::repeat(const Json& one, std::vector<Input>& out) const {
  const auto kind = one.find("kind");
  if (kind == one.end() || !kind->is_string()) return wrong_line("an input without a kind");
  const auto at = std::ranges::find(kKindWords, kind->get_ref<const std::string&>());
  const auto before = latest.find(static_cast<size_t>(at - kKindWords.begin()));
  if (before == latest.end()) return wrong_line("a repetition of nothing");
  const auto read = one.find("read_ns");
  for (Input copy : before->second) {
    if (TimeNs* when = reading_of(copy))
      *when = read != one.end() && read->is_number_integer() ? read->get<TimeNs>() : kNoTime;
    out.push_back(std::move(copy));
  }
  return {};
}

Result<std::vector<Input>> Replayer::State::inputs(const Json& list) {
  std::vector<Input> out;
  size_t last = kKindWords.size();
  for (const Json& one : list) {
    if (one.is_object() && one.contains("again")) {
      last = kKindWords.size();
      if (const Status status = repeat(one, out); !status) return tl::unexpected(status.error());
      if (out.size() > kReplayedInputs)
        return tl::unexpected(wrong_line("too many inputs in a step").error());
      continue;
    }
    auto input = input_of(one);
    if (!input) return tl::unexpected(input.error());
    const size_t kind = input->index();
    if (repeats(kind)) {
      if (kind != last) latest[kind].clear();
      latest[kind].push_back(*input);
    }
    last = kind;
    if (change)
      if (auto* options = std::get_if<ControllerOptions>(&*input)) change(*options);
    out.push_back(std::move(*input));
  }
  return out;
}

Status Replayer::State::step(const Json& line, Replayed& result) {
  if (!controller) return wrong_line("a step before 'start'");
  const auto at = line.find("at_ns"), list = line.find("inputs"), recorded = line.find("orders");
  if (at == line.end() || !at->is_number_integer() || list == line.end() || !list->is_array() ||
      recorded == line.end() || !recorded->is_array())
    return wrong_line("a step without inputs or orders");
  auto given = inputs(*list);
  if (!given) return tl::unexpected(given.error());
  const TimeNs now = at->get<TimeNs>();
  ++result.steps;
  result.inputs += given->size();
  std::vector<std::string> orders, before;
  for (const Order& order : controller->step(*given, now))
    if (std::string text = line_of(order); !text.empty()) orders.push_back(std::move(text));
  controller->drain_actions(), controller->drain_attempts(), controller->drain_machines();
  result.orders += orders.size();
  if (show)
    for (const std::string& order : orders) show(now, order);
  for (const Json& one : *recorded) before.push_back(one.is_string() ? one.get<std::string>() : "");
  if (orders == before) return {};
  if (result.different++ == 0)
    result.first_difference = fmt::format("at {}, step {}: recorded {}; replayed {}", format_time(now),
                                          result.steps, shown_orders(before), shown_orders(orders));
  return {};
}

Status Replayer::line(std::string_view text) {
  if (text.size() > kRecordedLine) return wrong_line("a line is too long");
  const Json line = parse_json(text);
  if (!line.is_object() || line.empty()) return wrong_line("a line is no JSON object");
  if (line.contains("schema")) return state_->header(line, result_);
  if (state_->part == 0) return wrong_line("the first line has no 'schema'");
  if (const auto gap = line.find("gap"); gap != line.end()) {
    if (result_.incomplete.empty()) result_.incomplete = gap->is_string() ? gap->get<std::string>() : "a gap";
    return {};
  }
  if (line.contains("start")) return state_->start(line);
  return line.contains("at_ns") ? state_->step(line, result_) : state_->row(line);
}

void Replayer::torn() {
  if (result_.incomplete.empty()) result_.incomplete = "the last line is torn: it was being written";
}

}  // namespace culprit::recover
