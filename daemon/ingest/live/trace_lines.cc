#include "ingest/live/trace_lines.h"

#include <simdjson.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <span>
#include <utility>

#include "base/limits.h"
#include "base/text.h"
#include "ingest/live/ras_lines.h"

namespace culprit::ingest {
namespace {

namespace dom = simdjson::dom;

constexpr std::string_view kKindNames[kTraceKinds] = {"metric", "log",     "stack", "step",   "phase",
                                                      "event",  "finding", "ras",   "unknown"};
// Ranks are u32 in every format; the largest value means "none" in section 3.
constexpr uint64_t kRankMax = 0xfffffffe;
// Known keys are nested at most four deep; other content of a line is skipped.
constexpr size_t kDepth = 64;

Status wrong(std::string_view key, std::string_view must) {
  return fail(ErrorCode::kInvalid, "'" + shorten(key, 64) + "' must be " + std::string(must));
}

// Puts "NaN", "Infinity" and "-Infinity" into quotes where a value may stand; changes nothing else.
std::string with_quoted_names(std::string_view line) {
  static constexpr std::string_view kNames[] = {"NaN", "Infinity", "-Infinity"};
  std::string out;
  bool in_string = false;
  for (size_t i = 0; i < line.size();) {
    const std::string_view rest = line.substr(i);
    const auto name = std::find_if(std::begin(kNames), std::end(kNames),
                                   [&](std::string_view n) { return rest.substr(0, n.size()) == n; });
    if (!in_string && name != std::end(kNames)) {
      out.append(1, '"').append(*name).append(1, '"');
      i += name->size();
      continue;
    }
    if (rest[0] == '"') in_string = !in_string;
    const size_t taken = in_string && rest[0] == '\\' && rest.size() > 1 ? 2 : 1;
    out.append(rest.substr(0, taken));
    i += taken;
  }
  return out;
}

std::optional<double> special_number(std::string_view text) {
  if (text == "NaN") return std::numeric_limits<double>::quiet_NaN();
  if (text == "Infinity") return std::numeric_limits<double>::infinity();
  if (text == "-Infinity") return -std::numeric_limits<double>::infinity();
  return std::nullopt;
}

// Reuses its memory for the next line; returned views are valid until then.
class Parser {
 public:
  Result<dom::object> object(std::string_view line) {
    auto failed = parse(line);
    if (failed == simdjson::SUCCESS && !document_.is_object())
      return fail(ErrorCode::kInvalid, "it is no JSON object");
    if (failed != simdjson::SUCCESS) {
      // Python writes NaN unquoted, which is no JSON; a NaN loss is an important value.
      const std::string quoted = with_quoted_names(line);
      if (quoted.size() != line.size()) failed = parse(quoted);
    }
    if (failed == simdjson::DEPTH_ERROR) return fail(ErrorCode::kLimit, "it is nested too deep");
    if (failed != simdjson::SUCCESS || !document_.is_object())
      return fail(ErrorCode::kInvalid, "it is no JSON object");
    return document_.get_object().value_unsafe();
  }

 private:
  simdjson::error_code parse(std::string_view line) {
    if (const auto failed = parser_.allocate(std::max(line.size(), parser_.capacity()), kDepth))
      return failed;
    padded_.reserve(line.size() + simdjson::SIMDJSON_PADDING);
    padded_ = line;
    return parser_.parse(padded_.data(), padded_.size(), false).get(document_);
  }

  dom::parser parser_;
  dom::element document_;
  std::string padded_;
};

Status read_text(std::string_view key, dom::element value, std::string_view& out) {
  if (value.get_string().get(out) != simdjson::SUCCESS) return wrong(key, "a string");
  return {};
}

Status read_name(std::string_view key, dom::element value, std::string_view& out) {
  if (Status status = read_text(key, value, out); !status) return status;
  if (out.size() > limits::kNameBytes)
    return wrong(key, "at most " + std::to_string(limits::kNameBytes) + " bytes long");
  return {};
}

Status read_values(dom::element value, TraceLine& line) {
  dom::object values;
  if (value.get_object().get(values) != simdjson::SUCCESS) return wrong("values", "an object");
  line.values.reserve(values.size());
  for (const dom::key_value_pair field : values) {
    double number = 0;
    if (field.value.is_null()) continue;
    if (field.value.get_double().get(number) != simdjson::SUCCESS) {
      std::string_view text;
      const auto special =
          field.value.get_string().get(text) == simdjson::SUCCESS ? special_number(text) : std::nullopt;
      if (!special) return wrong(field.key, "a number, \"NaN\", \"Infinity\" or \"-Infinity\"");
      number = *special;
    }
    line.values.push_back({field.key, number});
  }
  return {};
}

Status read_digests(dom::element value, TraceLine& line) {
  dom::object digests;
  if (value.get_object().get(digests) != simdjson::SUCCESS) return wrong("digests", "an object");
  for (const dom::key_value_pair field : digests) {
    std::string_view text;
    uint64_t number = 0;
    if (field.value.is_null()) continue;
    if (field.value.get_string().get(text) != simdjson::SUCCESS || text.empty() || text.size() > 16)
      return wrong(field.key, "up to 16 hexadecimal digits");
    const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), number, 16);
    if (failed != std::errc() || end != text.data() + text.size())
      return wrong(field.key, "up to 16 hexadecimal digits");
    line.digests.push_back({field.key, number});
  }
  return {};
}

Status read_thread(dom::element value, TraceThread& thread) {
  dom::object fields;
  if (value.get_object().get(fields) != simdjson::SUCCESS) return wrong("threads", "an array of objects");
  for (const dom::key_value_pair field : fields) {
    if (field.value.is_null()) continue;
    if (field.key == "name") {
      if (Status status = read_text("name", field.value, thread.name); !status) return status;
    } else if (field.key == "frames") {
      dom::array frames;
      if (field.value.get_array().get(frames) != simdjson::SUCCESS)
        return wrong("frames", "an array of strings");
      thread.frames.clear();
      for (const dom::element frame : frames)
        if (Status status = read_text("frames", frame, thread.frames.emplace_back()); !status)
          return wrong("frames", "an array of strings");
    }
  }
  return {};
}

Status read_threads(dom::element value, TraceLine& line) {
  dom::array threads;
  if (value.get_array().get(threads) != simdjson::SUCCESS) return wrong("threads", "an array of objects");
  for (const dom::element thread : threads)
    if (Status status = read_thread(thread, line.threads.emplace_back()); !status) return status;
  return {};
}

// A key of several kinds of lines: its name, and the function that reads it.
struct Key {
  std::string_view name;
  Status (*read)(dom::element value, TraceLine& line);
};

Status read_rank(dom::element value, TraceLine& line) {
  uint64_t number = 0;
  if (value.get_uint64().get(number) != simdjson::SUCCESS || number > kRankMax)
    return wrong("rank", "a whole number from 0 to " + std::to_string(kRankMax));
  line.rank = static_cast<uint32_t>(number);
  return {};
}

Status read_time(dom::element value, TraceLine& line) {
  if (value.get_int64().get(line.time_ns) != simdjson::SUCCESS || line.time_ns < 0)
    return wrong("time_ns", "a whole number from 0 on");
  return {};
}

Status read_step(dom::element value, TraceLine& line) {
  if (value.get_int64().get(line.step.emplace()) != simdjson::SUCCESS || *line.step < 0 ||
      *line.step > limits::kStepMax)
    return wrong("step", "a whole number from 0 to " + std::to_string(limits::kStepMax));
  return {};
}

constexpr Key kCommonKeys[] = {
    {"kind", [](dom::element, TraceLine&) -> Status { return {}; }},  // read before the others
    {"job", [](dom::element v, TraceLine& line) { return read_name("job", v, line.job); }},
    {"host", [](dom::element v, TraceLine& line) { return read_name("host", v, line.host); }},
    {"rank", read_rank},
    {"step", read_step},
    {"time_ns", read_time},
    {"name", [](dom::element v, TraceLine& line) { return read_name("name", v, line.name); }},
};
constexpr Key kMetricKeys[] = {{"values", read_values}, {"digests", read_digests}};
constexpr Key kLogKeys[] = {
    {"line", [](dom::element v, TraceLine& line) { return read_text("line", v, line.text); }}};
constexpr Key kStackKeys[] = {{"threads", read_threads}};
constexpr Key kPhaseKeys[] = {
    {"state", [](dom::element v, TraceLine& line) { return read_text("state", v, line.state); }}};

// ---- a finding

PluginFinding& finding_of(TraceLine& line) { return line.finding ? *line.finding : line.finding.emplace(); }

template <std::string PluginFinding::*kMember>
Status read_finding_text(dom::element value, TraceLine& line) {
  std::string_view text;
  if (value.get_string().get(text) != simdjson::SUCCESS)
    return fail(ErrorCode::kInvalid, "a text of the finding must be a string");
  finding_of(line).*kMember = shorten(text, limits::kEvidenceText);
  return {};
}

Status read_severity(dom::element value, TraceLine& line) {
  std::string_view word;
  const bool text = value.get_string().get(word) == simdjson::SUCCESS;
  const auto known = text ? plugin_severity(word) : std::nullopt;
  if (!known) return wrong("severity", "info, warning, error or fatal");
  finding_of(line).severity = *known;
  return {};
}

Status read_finding_state(dom::element value, TraceLine& line) {
  std::string_view word;
  const bool text = value.get_string().get(word) == simdjson::SUCCESS;
  const auto known = text ? plugin_state(word) : std::nullopt;
  if (!known) return wrong("state", "happened, raised or cleared");
  finding_of(line).state = *known;
  return {};
}

Status read_device(dom::element value, TraceLine& line) {
  uint64_t number = 0;
  if (value.get_uint64().get(number) != simdjson::SUCCESS || number >= limits::kDevicesOfHost)
    return wrong("device", "a whole number below " + std::to_string(limits::kDevicesOfHost));
  finding_of(line).device = static_cast<uint32_t>(number);
  return {};
}

Status read_confidence(dom::element value, TraceLine& line) {
  double number = 0;
  if (value.get_double().get(number) != simdjson::SUCCESS || !(number >= 0 && number <= 1))
    return wrong("confidence", "a number from 0 to 1");
  finding_of(line).confidence = number;
  return {};
}

Status read_finding_values(dom::element value, TraceLine& line) {
  if (Status status = read_values(value, line); !status) return status;
  if (line.values.size() > limits::kPluginValues)
    return wrong("values", "at most " + std::to_string(limits::kPluginValues) + " numbers");
  for (const MetricValue& v : line.values)
    finding_of(line).values.emplace_back(shorten(v.name, limits::kNameBytes), v.value);
  return {};
}

constexpr Key kFindingKeys[] = {
    {"plugin", read_finding_text<&PluginFinding::plugin>},
    {"id", read_finding_text<&PluginFinding::id>},
    {"title", read_finding_text<&PluginFinding::title>},
    {"text", read_finding_text<&PluginFinding::text>},
    {"category", read_finding_text<&PluginFinding::category>},
    {"component", read_finding_text<&PluginFinding::component>},
    {"symptom", read_finding_text<&PluginFinding::symptom>},
    {"action", read_finding_text<&PluginFinding::action>},
    {"restart", read_finding_text<&PluginFinding::restart>},
    {"remedy", read_finding_text<&PluginFinding::remedy>},
    {"peer", read_finding_text<&PluginFinding::peer>},
    {"part", read_finding_text<&PluginFinding::part>},
    {"severity", read_severity},
    {"state", read_finding_state},
    {"device", read_device},
    {"confidence", read_confidence},
    {"values", read_finding_values},
};

std::span<const Key> keys_of(TraceKind kind) {
  switch (kind) {
    case TraceKind::kMetric:
      return kMetricKeys;
    case TraceKind::kLog:
      return kLogKeys;
    case TraceKind::kStack:
      return kStackKeys;
    case TraceKind::kPhase:
      return kPhaseKeys;
    case TraceKind::kFinding:
      return kFindingKeys;
    default:
      return {};
  }
}

Result<TraceKind> read_kind(dom::object object) {
  std::string_view kind;
  dom::element value;
  if (object.at_key("kind").get(value) != simdjson::SUCCESS)
    return fail(ErrorCode::kInvalid, "'kind' is missing");
  if (Status status = read_name("kind", value, kind); !status) return tl::unexpected(status.error());
  const auto found = std::find(std::begin(kKindNames), std::end(kKindNames), kind);
  return found == std::end(kKindNames) ? TraceKind::kUnknown
                                       : static_cast<TraceKind>(found - std::begin(kKindNames));
}

Status missing(std::string_view key) {
  return fail(ErrorCode::kInvalid, "'" + std::string(key) + "' is missing");
}

template <class Named>
Status check_once(const std::vector<Named>& all) {
  std::vector<std::string_view> names;
  for (const Named& one : all) names.push_back(one.name);
  std::sort(names.begin(), names.end());
  const auto twice = std::adjacent_find(names.begin(), names.end());
  if (twice == names.end()) return {};
  return fail(ErrorCode::kInvalid, "'" + shorten(*twice, 64) + "' stands there twice");
}

// Checks required keys of the kind, and forbidden combinations.
Status check(const TraceLine& line) {
  switch (line.kind) {
    case TraceKind::kMetric:
      if (!line.rank) return missing("rank");
      if (!line.step) return missing("step");
      if (Status status = check_once(line.values); !status) return status;
      return check_once(line.digests);
    case TraceKind::kStep:
      return line.step ? Status() : missing("step");
    case TraceKind::kPhase:
      if (line.name.empty()) return missing("name");
      if (line.state != "begin" && line.state != "end") return wrong("state", "\"begin\" or \"end\"");
      return {};
    case TraceKind::kEvent:
      return line.name.empty() ? missing("name") : check_once(line.fields);
    case TraceKind::kFinding: {
      const PluginFinding none, &f = line.finding ? *line.finding : none;
      if (f.plugin.empty()) return missing("plugin");
      if (f.id.empty()) return missing("id");
      return f.title.empty() ? missing("title") : check_once(line.values);
    }
    default:
      return check_once(line.fields);
  }
}

Status read_fields(dom::object object, TraceLine& line) {
  const std::span<const Key> own = keys_of(line.kind);
  const bool free_form = line.kind == TraceKind::kEvent || line.kind == TraceKind::kUnknown;
  uint32_t seen = 0, needed = 0;
  for (const Key& key : line.kind == TraceKind::kFinding ? std::span<const Key>() : own)
    needed |= 1u << (std::size(kCommonKeys) + static_cast<size_t>(&key - own.data()));
  for (const dom::key_value_pair field : object) {
    const auto named = [&](const Key& key) { return key.name == field.key; };
    const Key* key = std::find_if(std::begin(kCommonKeys), std::end(kCommonKeys), named);
    size_t bit = static_cast<size_t>(key - std::begin(kCommonKeys));
    if (key == std::end(kCommonKeys)) {
      key = std::find_if(own.data(), own.data() + own.size(), named);
      if (key == own.data() + own.size()) {
        if (free_form) line.fields.push_back({field.key, simdjson::minify(field.value)});
        continue;
      }
      bit += static_cast<size_t>(key - own.data());
    }
    if (field.value.is_null()) continue;
    if (seen & 1u << bit)
      return fail(ErrorCode::kInvalid, "'" + std::string(field.key) + "' stands there twice");
    seen |= 1u << bit;
    if (Status status = key->read(field.value, line); !status) return status;
  }
  if (needed == 0 || (seen & needed) != 0) return {};
  return missing(line.kind == TraceKind::kMetric ? "values" : own[0].name);
}

}  // namespace

std::string_view name_of(TraceKind kind) { return kKindNames[static_cast<size_t>(kind)]; }

Result<TraceLine> parse_trace_line(std::string_view text) {
  thread_local Parser parser;
  if (text.size() > limits::kLineBytes) return fail(ErrorCode::kLimit, "it is longer than a line may be");
  const auto object = parser.object(text);
  if (!object) return tl::unexpected(object.error());
  TraceLine line;
  const auto kind = read_kind(*object);
  if (!kind) return tl::unexpected(kind.error());
  line.kind = *kind;
  if (Status status = read_fields(*object, line); !status) return tl::unexpected(status.error());
  if (Status status = check(line); !status) return tl::unexpected(status.error());
  if (line.kind == TraceKind::kRas) {
    auto state = read_ras_line(*object);
    if (!state) return tl::unexpected(state.error());
    line.ras = std::move(*state);
  }
  return line;
}

MetricRow metric_row(const TraceLine& line, std::string_view host) {
  MetricRow row{host, line.rank.value_or(0), line.step.value_or(0), line.time_ns, {}, {}};
  row.values = line.values;
  row.digests = line.digests;
  return row;
}

PluginFinding plugin_finding(TraceLine&& line, std::string_view host) {
  PluginFinding out = std::move(*line.finding);
  out.job = line.job;
  out.host = host;
  out.rank = line.rank;
  out.time_ns = line.time_ns;
  return out;
}

LoopEvent loop_event(const TraceLine& line, std::string_view host, std::vector<EventField>& fields) {
  fields.clear();
  for (const TraceField& field : line.fields) fields.push_back({field.name, field.json});
  return {host, line.rank, line.step, line.time_ns, line.name, fields};
}

}  // namespace culprit::ingest
