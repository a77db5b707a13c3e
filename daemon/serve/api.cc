#include "serve/api.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>
#include <span>
#include <tuple>

#include "base/limits.h"
#include "base/text.h"
#include "model/json_text.h"
#include "model/json_writer.h"
#include "model/report.h"
#include "serve/line_window.h"
#include "serve/metrics.h"
#include "serve/page.h"

namespace culprit::serve {
namespace {

// Limit of trailers, one per gap; the last one counts the remaining gaps.
constexpr size_t kGapTrailers = 100;
// Bytes read to find a line by its number: a second of disk reads. For lines beyond it, use `culprit
// evidence cat`.
constexpr uint64_t kLineSearchBytes = 256 << 20;
constexpr uint64_t kAround = 5;     // lines before and after
constexpr uint32_t kNowRows = 100;  // default number of rows of /v1/now
constexpr uint32_t kNowRowsMax = 500;
constexpr uint32_t kCostJobsMax = 1000;
constexpr size_t kNameBytes = 4096;            // limit of a job, host or path, as in file systems
constexpr size_t kRuleTextBytes = 2000;        // of each text of a rule
constexpr int64_t kSilenceSeconds = 2 * 3600;  // unless the body says another time
constexpr int64_t kSilenceSecondsMax = 30 * 24 * 3600;
constexpr uint64_t kAdviceMsMax = 24 * 3600 * 1000;

std::optional<std::string> parameter(const Request& request, const std::string& name) {
  const auto at = request.query.find(name);
  return at == request.query.end() ? std::nullopt : std::optional(at->second);
}

// Rejects unknown parameters: a misspelt filter would silently return too much.
Status only(const Request& request, const std::vector<std::string>& known) {
  for (const auto& [name, value] : request.query) {
    if (std::find(known.begin(), known.end(), name) == known.end())
      return fail(ErrorCode::kInvalid,
                  fmt::format("'{}': no such parameter{}", shorten(to_utf8(name), 60),
                              known.empty() ? "" : fmt::format("; known are {}", fmt::join(known, ", "))));
    if (value.size() > kNameBytes)
      return fail(ErrorCode::kInvalid, fmt::format("'{}': longer than {} bytes", name, kNameBytes));
  }
  return {};
}

template <class Number>
Result<std::optional<Number>> number(const Request& request, const std::string& name) {
  const auto text = parameter(request, name);
  if (!text) return std::optional<Number>();
  Number out = 0;
  const auto parsed = std::from_chars(text->data(), text->data() + text->size(), out);
  if (text->empty() || parsed.ec != std::errc() || parsed.ptr != text->data() + text->size())
    return fail(ErrorCode::kInvalid,
                fmt::format("'{}': '{}' is not a whole number", name, shorten(to_utf8(*text), 60)));
  return std::optional(out);
}

ApiSource::Answer json_answer(const Reply& reply, int status = 200) {
  return [reply, status](Result<std::string> body) {
    if (!body) return reply.send(error_response(body.error()));
    if (!body->ends_with('\n')) *body += '\n';
    reply.send({status, "application/json", std::move(*body), {}});
  };
}

// The person who requests a change, from a body that is empty or {"by": "alice"}.
Result<Actor> actor(const Request& request) {
  Actor out{"", request.uid, request.token};
  if (trim(request.body).empty()) return out;
  const auto body = parse_json(request.body);
  if (!body.is_object()) return fail(ErrorCode::kInvalid, "the body: no JSON object");
  if (const auto by = body.find("by"); by != body.end()) {
    if (!by->is_string()) return fail(ErrorCode::kInvalid, "the body: 'by' is no string");
    out.name = shorten(by->get<std::string>(), 200);
  }
  return out;
}

Result<EvidenceQuery> evidence_source(const Request& request) {
  EvidenceQuery out;
  const std::pair<const char*, std::string*> needed[] = {
      {"job", &out.job}, {"host", &out.host}, {"path", &out.path}};
  for (const auto& [name, value] : needed) {
    const auto given = parameter(request, name);
    if (!given) return fail(ErrorCode::kInvalid, fmt::format("'{}' is missing", name));
    *value = *given;
  }
  return out;
}

Result<EvidenceQuery> evidence_query(const Request& request) {
  if (Status status = only(request, {"job", "host", "path", "from_byte", "to_byte"}); !status)
    return tl::unexpected(status.error());
  auto source = evidence_source(request);
  if (!source) return source;
  EvidenceQuery out = std::move(*source);
  const auto from = number<uint64_t>(request, "from_byte"), to = number<uint64_t>(request, "to_byte");
  if (!from || !to) return tl::unexpected((from ? to : from).error());
  out.from_byte = from->value_or(0);
  out.to_byte = to->value_or(UINT64_MAX);
  if (out.from_byte > out.to_byte)
    return fail(ErrorCode::kInvalid,
                fmt::format("'from_byte' {} is greater than 'to_byte' {}", out.from_byte, out.to_byte));
  return out;
}

// Copies the chunks of an EvidenceReader to a client, one at a time. Pending calls keep the copy alive.
class EvidenceCopy : public std::enable_shared_from_this<EvidenceCopy> {
 public:
  EvidenceCopy(std::unique_ptr<EvidenceReader> reader, std::shared_ptr<BodyStream> out)
      : reader_(std::move(reader)), out_(std::move(out)) {}

  void start() {
    out_->on_closed([self = shared_from_this()] { self->stop(); });
    out_->on_ready([self = shared_from_this()] { self->next(); });
  }

 private:
  void next() {
    if (done_) return;
    reader_->next([weak = weak_from_this()](Result<EvidenceChunk> chunk) {
      if (const auto self = weak.lock()) self->on_chunk(std::move(chunk));
    });
  }

  void on_chunk(Result<EvidenceChunk> chunk) {
    if (done_) return;
    // A truncated body shows the client that the evidence is incomplete.
    if (!chunk) {
      out_->abort();
      return stop();
    }
    if (chunk->gap) write_gap(chunk->gap_offset.value_or(chunk->offset), *chunk->gap);
    const bool empty = chunk->bytes.empty();
    out_->write(std::move(chunk->bytes));
    if (chunk->last) {
      if (gaps_ > kGapTrailers)
        out_->trailer("X-Culprit-Gap", fmt::format("and {} more", counted(gaps_ - kGapTrailers, "gap")));
      out_->finish();
      stop();
    } else if (empty) {
      next();
    }
  }

  void write_gap(uint64_t offset, const Gap& gap) {
    if (++gaps_ > kGapTrailers) return;
    std::string text = fmt::format("at byte {}: ", offset);
    if (gap.bytes > 0) text += fmt::format("{} lost: ", counted(gap.bytes, "byte"));
    if (gap.records > 0) text += fmt::format("{} lost: ", counted(gap.records, "record"));
    // The value of a header is one line of ASCII.
    for (const char c : shorten(to_terminal(gap.reason), 300)) text += c >= ' ' && c < 0x7f ? c : '?';
    out_->trailer("X-Culprit-Gap", text);
  }

  // Only marks the copy done: its reader may be the caller and must not be destroyed here.
  void stop() { done_ = true; }

  std::unique_ptr<EvidenceReader> reader_;
  std::shared_ptr<BodyStream> out_;
  size_t gaps_ = 0;
  bool done_ = false;
};

Reader reader_of(const Request& request) { return {request.uid, request.groups, request.token}; }

void serve_evidence(ApiSource& source, const Request& request, const Reply& reply) {
  const auto query = evidence_query(request);
  if (!query) return reply.send(error_response(query.error()));
  const Reader who = reader_of(request);
  const auto limited = source.limited_to(who);
  ApiSource& seen = limited ? *limited : source;
  seen.evidence(
      *query, [&source, query = *query, who, reply](Result<std::unique_ptr<EvidenceReader>> reader) {
        if (!reader) return reply.send(error_response(reader.error()));
        source.on_evidence_read(query, who);
        auto out = reply.stream(
            {200,
             "application/octet-stream",
             "",
             {{"Content-Disposition", "attachment; filename=\"evidence\""}, {"Trailer", "X-Culprit-Gap"}}});
        std::make_shared<EvidenceCopy>(std::move(*reader), std::move(out))->start();
      });
}

// Reads a source from its beginning until the lines around the requested line are found. Pending calls keep
// the search alive.
class LineSearch : public std::enable_shared_from_this<LineSearch> {
 public:
  LineSearch(std::unique_ptr<EvidenceReader> reader, LineWindow window, Reply reply)
      : reader_(std::move(reader)), window_(std::move(window)), reply_(std::move(reply)) {}

  // A reader may answer within the call; the loop avoids recursion for a long source.
  void next() {
    again_ = true;
    if (asking_) return;
    asking_ = true;
    while (again_ && !done_) {
      again_ = false;
      reader_->next([self = shared_from_this()](Result<EvidenceChunk> chunk) {
        if (!self->done_) self->on_chunk(std::move(chunk));
      });
    }
    asking_ = false;
  }

 private:
  void on_chunk(Result<EvidenceChunk> chunk) {
    if (!chunk) return finish(error_response(chunk.error()));
    window_.add(chunk->bytes, chunk->gap.has_value());
    if (chunk->last || window_.done()) return finish({200, "application/json", window_.finish() + "\n", {}});
    if (window_.read_bytes() > kLineSearchBytes)
      return finish(error_response(503, "the line is too far into the source to look for it here"));
    next();
  }

  // Only marks the search done: its reader ends with the last reference, which the caller may hold.
  void finish(Response response) {
    done_ = true;
    reply_.send(std::move(response));
  }

  std::unique_ptr<EvidenceReader> reader_;
  LineWindow window_;
  Reply reply_;
  bool done_ = false, asking_ = false, again_ = false;
};

void serve_lines(ApiSource& source, const Request& request, const Reply& reply) {
  if (Status status = only(request, {"job", "host", "path", "line", "around"}); !status)
    return reply.send(error_response(status.error()));
  const auto query = evidence_source(request);
  if (!query) return reply.send(error_response(query.error()));
  const auto line = number<uint64_t>(request, "line"), around = number<uint64_t>(request, "around");
  if (!line || !around) return reply.send(error_response((line ? around : line).error()));
  if (line->value_or(0) == 0) return reply.send(error_response(400, "'line' is missing; lines count from 1"));
  const Reader who = reader_of(request);
  const auto limited = source.limited_to(who);
  (limited ? *limited : source)
      .evidence(*query,
                [&source, query = *query, who, reply, window = LineWindow(**line, around->value_or(kAround))](
                    Result<std::unique_ptr<EvidenceReader>> reader) {
                  if (!reader) return reply.send(error_response(reader.error()));
                  source.on_evidence_read(query, who);
                  std::make_shared<LineSearch>(std::move(*reader), window, reply)->next();
                });
}

void serve_now(ApiSource& source, const Request& request, ApiSource::Answer answer) {
  const auto limit = number<uint32_t>(request, "limit"), from = number<uint32_t>(request, "from");
  if (!limit || !from) return answer(tl::unexpected((limit ? from : limit).error()));
  source.now({std::min(limit->value_or(kNowRows), kNowRowsMax), from->value_or(0),
              parameter(request, "q").value_or(""), parameter(request, "state").value_or("")},
             std::move(answer));
}

using Ask = std::function<void(ApiSource&, const Request&, ApiSource::Answer)>;

// A read-only route with a JSON answer; `known`: its allowed parameters.
struct Reading {
  std::string pattern;
  std::vector<std::string> known;
  Ask ask;
};

// The handler gets the view of the source that the requesting reader may see.
Route route_of(ApiSource& source, Reading reading) {
  return {"GET", std::move(reading.pattern),
          [&source, known = std::move(reading.known), ask = std::move(reading.ask)](const Request& request,
                                                                                    const Reply& reply) {
            if (Status status = only(request, known); !status)
              return reply.send(error_response(status.error()));
            const auto limited = source.limited_to(reader_of(request));
            ask(limited ? *limited : source, request, json_answer(reply));
          },
          Role::kRead};
}

using Change = std::function<void(const Request&, const Actor&, ApiSource::Answer)>;

Route changing(std::string pattern, std::vector<std::string> known, Change change, int status = 200) {
  return {"POST", std::move(pattern),
          [known = std::move(known), change = std::move(change), status](const Request& request,
                                                                         const Reply& reply) {
            if (const Status sound = only(request, known); !sound)
              return reply.send(error_response(sound.error()));
            const auto by = actor(request);
            if (!by) return reply.send(error_response(by.error()));
            change(request, *by, json_answer(reply, status));
          },
          Role::kOperate};
}

void serve_health(ApiSource& source, const Reply& reply) {
  const Health health = source.health();
  JsonWriter w;
  w.object([&] {
    w.field("ok", health.ok);
    w.field("sentence", health.sentence);
  });
  reply.send({health.ok ? 200 : 503, "application/json", w.finish() + "\n", {}});
}

// Everyone gets the daemon's metrics. Only readers get those of jobs, which contain job names.
void serve_metrics(ApiSource& source, const Request& request, const Reply& reply) {
  const auto of = source.limited_to(reader_of(request));
  const auto own = [&source, reply, role = request.role, who = reader_of(request)](const std::string& text) {
    const auto send = [reply, text](const std::string& of_jobs) {
      reply.send({200, kMetricsContentType, text + of_jobs, {}});
    };
    if (role < Role::kRead) return send("");
    const auto limited = source.limited_to(who);
    (limited ? *limited : source).job_metrics([](const std::string&) { return true; }, send);
  };
  (of ? *of : source).metrics(own);
}

void serve_diagnoses(ApiSource& source, const Request& request, ApiSource::Answer answer) {
  const auto since = number<TimeNs>(request, "since_ns");
  if (!since) return answer(tl::unexpected(since.error()));
  const auto run = number<uint32_t>(request, "run");
  if (!run) return answer(tl::unexpected(run.error()));
  source.diagnoses({parameter(request, "job"), *run, *since}, std::move(answer));
}

void serve_report(ApiSource& source, const Request& request, ApiSource::Answer answer) {
  const auto run = number<uint32_t>(request, "run");
  if (!run) return answer(tl::unexpected(run.error()));
  const auto charts = number<uint32_t>(request, "charts");
  if (!charts) return answer(tl::unexpected(charts.error()));
  source.report({{request.names.at("job"), *run}, charts->value_or(0) != 0}, std::move(answer));
}

Change judging(ApiSource& source, bool right) {
  return [&source, right](const Request& request, const Actor& by, ApiSource::Answer answer) {
    const auto run = number<uint32_t>(request, "run");
    if (!run) return answer(tl::unexpected(run.error()));
    source.judge({{request.names.at("job"), *run},
                  request.names.at("id"),
                  right,
                  parameter(request, "rule").value_or("")},
                 by, std::move(answer));
  };
}

bool is_word(const std::string& text, std::span<const std::string_view> words) {
  return text.empty() || std::find(words.begin(), words.end(), text) != words.end();
}

// Reads a person's texts for a rule; any other member, except "by", is an error.
Status read_rule_texts(const std::string& body, RuleRequest& out) {
  if (trim(body).empty()) return {};
  const std::pair<const char*, std::string*> texts[] = {
      {"title", &out.title},       {"cause", &out.cause},         {"remedy", &out.remedy},
      {"category", &out.category}, {"component", &out.component}, {"action", &out.action},
      {"line", &out.line}};
  const auto json = parse_json(body);
  for (const auto& [name, value] : json.items()) {
    if (name == "by") continue;
    const auto* const at = std::find_if(std::begin(texts), std::end(texts),
                                        [&](const auto& text) { return name == text.first; });
    if (at == std::end(texts))
      return fail(ErrorCode::kInvalid,
                  fmt::format("the body: '{}': no such member", shorten(to_utf8(name), 60)));
    if (!value.is_string() || value.template get_ref<const std::string&>().size() > kRuleTextBytes)
      return fail(ErrorCode::kInvalid,
                  fmt::format("the body: '{}' is no string of at most {} bytes", name, kRuleTextBytes));
    *at->second = value.template get<std::string>();
  }
  const std::tuple<const char*, const std::string&, std::span<const std::string_view>> words[] = {
      {"category", out.category, words_of<Category>()},
      {"component", out.component, words_of<Component>()},
      {"action", out.action, words_of<ActionKind>()}};
  for (const auto& [name, text, known] : words)
    if (!is_word(text, known))
      return fail(ErrorCode::kInvalid,
                  fmt::format("the body: '{}' is none of {}", name, fmt::join(known, ", ")));
  return {};
}

Change making_rule(ApiSource& source) {
  return [&source](const Request& request, const Actor& by, ApiSource::Answer answer) {
    const auto run = number<uint32_t>(request, "run");
    if (!run) return answer(tl::unexpected(run.error()));
    const auto dry = number<uint32_t>(request, "dry");
    if (!dry) return answer(tl::unexpected(dry.error()));
    RuleRequest asked{
        .of = {request.names.at("job"), *run}, .id = request.names.at("id"), .dry = dry->value_or(0) != 0};
    if (const Status sound = read_rule_texts(request.body, asked); !sound)
      return answer(tl::unexpected(sound.error()));
    source.make_rule(asked, by, std::move(answer));
  };
}

Change capturing(ApiSource& source) {
  return [&source](const Request& request, const Actor& by, ApiSource::Answer answer) {
    const auto rounds = number<uint32_t>(request, "rounds");
    if (!rounds) return answer(tl::unexpected(rounds.error()));
    const uint32_t n = rounds->value_or(1);
    if (n < 1 || n > limits::kStackSamples)
      return answer(
          fail(ErrorCode::kInvalid, fmt::format("'rounds': {} is not 1 to {}", n, limits::kStackSamples)));
    source.capture(request.names.at("job"), n, by, std::move(answer));
  };
}

// {"advice", "value", "step", "lasts_ms"}; a token that only reads advises no job.
Result<AdviceRequest> advice_of(const Request& request) {
  AdviceRequest out;
  out.job = request.names.at("job");
  if (request.role < Role::kOperate) {
    if (!request.uid) return fail(ErrorCode::kDenied, "this needs a token that operates");
    out.only_uid = request.uid;
  }
  const auto body = parse_json(request.body);
  if (!body.is_object()) return fail(ErrorCode::kInvalid, "the body: no JSON object");
  const auto kind = body.find("advice"), value = body.find("value"), step = body.find("step"),
             lasts = body.find("lasts_ms");
  const auto known = kind != body.end() && kind->is_string()
                         ? advice_kind(kind->get_ref<const std::string&>())
                         : std::nullopt;
  if (!known) return fail(ErrorCode::kInvalid, "the body: 'advice' is no kind of advice");
  out.advice.kind = *known;
  if (value != body.end() && !value->is_number())
    return fail(ErrorCode::kInvalid, "the body: 'value' is no number");
  if (value != body.end()) out.advice.argument = value->get<double>();
  if (step != body.end() && !step->is_number_unsigned())
    return fail(ErrorCode::kInvalid, "the body: 'step' is no step");
  if (step != body.end())
    out.advice.effective_step =
        static_cast<int64_t>(std::min<uint64_t>(step->get<uint64_t>(), kAdviceStepMax + uint64_t{1}));
  if (lasts != body.end() && (!lasts->is_number_unsigned() || lasts->get<uint64_t>() > kAdviceMsMax))
    return fail(ErrorCode::kInvalid, "the body: 'lasts_ms' is no time of at most a day");
  if (lasts != body.end()) out.advice.lasts_ms = lasts->get<uint32_t>();
  return out;
}

Change ending_maintenance(ApiSource& source) {
  return [&source](const Request& request, const Actor& by, ApiSource::Answer answer) {
    const std::string& text = request.names.at("id");
    int64_t id = 0;
    const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), id);
    if (error != std::errc() || stop != text.data() + text.size())
      return answer(fail(ErrorCode::kNotFound, "no maintenance window " + shorten(to_utf8(text), 60)));
    source.end_maintenance(id, by, std::move(answer));
  };
}

Change handling(ApiSource& source, AlertOrder::What what) {
  return [&source, what](const Request& request, const Actor& by, ApiSource::Answer answer) {
    AlertOrder order{what, request.names.at("key"), 0};
    if (what == AlertOrder::What::kSilence) {
      int64_t seconds = kSilenceSeconds;
      const auto body = parse_json(request.body);
      if (const auto given = body.find("for_s"); body.is_object() && given != body.end())
        seconds = given->is_number_integer() ? given->get<int64_t>() : -1;
      if (seconds < 0 || seconds > kSilenceSecondsMax)
        return answer(
            fail(ErrorCode::kInvalid,
                 fmt::format("the body: 'for_s' is no whole number from 0 to {}", kSilenceSecondsMax)));
      order.for_ns = seconds * kNsPerSecond;
    }
    source.handle_alert(order, by, std::move(answer));
  };
}

void serve_alerts(ApiSource& source, const Request& request, ApiSource::Answer answer) {
  const auto run = number<uint32_t>(request, "run");
  if (!run) return answer(tl::unexpected(run.error()));
  source.alerts({parameter(request, "job"), parameter(request, "key"), *run}, std::move(answer));
}

void serve_cost(RecoverySource& source, const Request& request, ApiSource::Answer answer) {
  const auto jobs = number<uint32_t>(request, "jobs");
  if (!jobs) return answer(tl::unexpected(jobs.error()));
  source.cost(std::min(jobs->value_or(0), kCostJobsMax), std::move(answer));
}

std::vector<Reading> readings() {
  using S = ApiSource&;
  using R = const Request&;
  using A = ApiSource::Answer;
  return {
      {"/v1/status", {}, [](S s, R, A answer) { s.status(std::move(answer)); }},
      {"/v1/now",
       {"limit", "from", "q", "state"},
       [](S s, R r, A answer) { serve_now(s, r, std::move(answer)); }},
      {"/v1/jobs", {}, [](S s, R, A answer) { s.jobs(std::move(answer)); }},
      {"/v1/jobs/{job}/report",
       {"run", "charts"},
       [](S s, R r, A answer) { serve_report(s, r, std::move(answer)); }},
      {"/v1/diagnoses",
       {"job", "since_ns", "run"},
       [](S s, R r, A answer) { serve_diagnoses(s, r, std::move(answer)); }},
      {"/v1/suspects",
       {"job"},
       [](S s, R r, A answer) { s.suspects(parameter(r, "job"), std::move(answer)); }},
      {"/v1/hosts", {}, [](S s, R, A answer) { s.hosts(std::move(answer)); }},
      {"/v1/devices", {}, [](S s, R, A answer) { s.devices(std::move(answer)); }},
      {"/v1/rules", {}, [](S s, R, A answer) { s.rules(std::move(answer)); }},
      {"/v1/rules/{rule}", {}, [](S s, R r, A answer) { s.rule(r.names.at("rule"), std::move(answer)); }},
      {"/v1/plugins", {}, [](S s, R, A answer) { s.plugins(std::move(answer)); }},
      {"/v1/about", {}, [](S s, R, A answer) { s.about(std::move(answer)); }},
      {"/v1/pool", {}, [](S s, R, A answer) { s.pool(std::move(answer)); }},
      {"/v1/pool/log", {}, [](S s, R, A answer) { s.pool_log(std::move(answer)); }},
      {"/v1/alerts",
       {"job", "run", "key"},
       [](S s, R r, A answer) { serve_alerts(s, r, std::move(answer)); }},
      {"/v1/maintenance", {}, [](S s, R, A answer) { s.maintenance(std::move(answer)); }},
      {"/v1/sources", {"job"}, [](S s, R r, A answer) { s.sources(parameter(r, "job"), std::move(answer)); }},
  };
}

}  // namespace

Api::Api(io::Env& env, ApiSource& source, std::string_view host) : source_(source), events_(env, host) {}

// Only for readers who may see all jobs, because the events cover all jobs.
void Api::serve_events(const Request& request, const Reply& reply) {
  if (Status status = only(request, {"job", "format", "after"}); !status)
    return reply.send(error_response(status.error()));
  if (source_.limited_to(reader_of(request)))
    return reply.send(error_response(403, "events are for readers who may see all jobs"));
  events_.subscribe(request, reply);
}

// The routes exist without a controller too: who may not use them learns nothing from them.
void Api::add_recovery(std::vector<Route>& routes) {
  using R = const Request&;
  using A = ApiSource::Answer;
  const auto none = [](const A& answer) {
    answer(fail(ErrorCode::kNotFound, "there is no controller here: it needs act.scheduler"));
  };
  using Words = std::vector<std::string>;
  const auto reading = [&](std::string pattern, std::function<void(RecoverySource&, R, A)> ask,
                           Words known = {}) {
    routes.push_back(
        {"GET", std::move(pattern),
         [this, none, ask = std::move(ask), known = std::move(known)](R request, const Reply& reply) {
           if (Status status = only(request, known); !status)
             return reply.send(error_response(status.error()));
           if (source_.limited_to(reader_of(request)))
             return reply.send(error_response(403, "the controller is for readers who may see all jobs"));
           if (!recovery_) return none(json_answer(reply));
           ask(*recovery_, request, json_answer(reply));
         },
         Role::kRead});
  };
  using S = RecoverySource&;
  reading("/v1/recovery", [](S s, R, A answer) { s.overview(std::move(answer)); });
  reading("/v1/recovery/machines", [](S s, R, A answer) { s.machines(std::move(answer)); });
  reading("/v1/recovery/cost", serve_cost, {"jobs"});
  reading("/v1/recovery/actions", [](S s, R, A answer) { s.actions(std::move(answer)); });
  reading("/v1/recovery/notes",
          [](S s, R r, A answer) { s.notes(parameter(r, "kind").value_or(""), std::move(answer)); },
          {"kind"});
  reading("/v1/jobs/{job}/decision",
          [](S s, R r, A answer) { s.decision(r.names.at("job"), std::move(answer)); });
  using What = RecoveryOrder::What;
  const auto ordering = [&](std::string pattern, What what) {
    routes.push_back(changing(std::move(pattern), {}, [this, none, what](R r, const Actor& by, A answer) {
      if (!recovery_) return none(answer);
      recovery_->order({what, what == What::kReset ? "" : r.names.at("id")}, by, std::move(answer));
    }));
  };
  ordering("/v1/recovery/reset", What::kReset);
  ordering("/v1/recovery/{id}/approve", What::kApprove);
  ordering("/v1/recovery/{id}/decline", What::kDecline);
  ordering("/v1/recovery/{id}/undo", What::kUndo);
  ordering("/v1/recovery/{id}/check", What::kCheck);
}

// Users may advise their own jobs, so that the role decides less than who asks.
Route Api::advice_route() {
  return {"POST", "/v1/jobs/{job}/advice",
          [this](const Request& request, const Reply& reply) {
            if (const Status sound = only(request, {}); !sound)
              return reply.send(error_response(sound.error()));
            if (!advice_) return reply.send(error_response(404, "this daemon advises no jobs"));
            if (const Status allowed = advice_->allowed(); !allowed)
              return reply.send(error_response(allowed.error()));
            const auto by = actor(request);
            const auto asked = advice_of(request);
            if (!by || !asked) return reply.send(error_response(by ? asked.error() : by.error()));
            advice_->advise(*asked, *by, json_answer(reply, 202));
          },
          Role::kRead};
}

// Users who see their own jobs alone learn nothing of the other members.
Route Api::cluster_route() {
  return {"GET", "/v1/cluster",
          [this](const Request& request, const Reply& reply) {
            if (Status status = only(request, {}); !status) return reply.send(error_response(status.error()));
            if (source_.limited_to(reader_of(request)))
              return reply.send(error_response(403, "the cluster is for readers who may see all jobs"));
            json_answer(reply)(cluster_ ? cluster_() : R"({"member":null,"items":[]})");
          },
          Role::kRead};
}

std::vector<Route> Api::routes() {
  ApiSource& s = source_;
  using R = const Request&;
  using A = ApiSource::Answer;
  std::vector<Route> out = page_routes();
  out.push_back({"GET", "/healthz", [&s](R, const Reply& reply) { serve_health(s, reply); }, Role::kNone});
  out.push_back(
      {"GET", "/metrics", [&s](R r, const Reply& reply) { serve_metrics(s, r, reply); }, Role::kNone});
  for (Reading& reading : readings()) out.push_back(route_of(s, std::move(reading)));
  out.push_back(
      {"GET", "/v1/evidence", [&s](R r, const Reply& reply) { serve_evidence(s, r, reply); }, Role::kRead});
  out.push_back({"GET", "/v1/evidence/lines", [&s](R r, const Reply& reply) { serve_lines(s, r, reply); },
                 Role::kRead});
  out.push_back(
      {"GET", "/v1/events", [this](R r, const Reply& reply) { serve_events(r, reply); }, Role::kRead});
  out.push_back(changing("/v1/jobs/{job}/diagnoses/{id}/confirm", {"run", "rule"}, judging(s, true)));
  out.push_back(changing("/v1/jobs/{job}/diagnoses/{id}/refute", {"run"}, judging(s, false)));
  out.push_back(changing("/v1/jobs/{job}/diagnoses/{id}/rule", {"run", "dry"}, making_rule(s)));
  out.push_back(changing("/v1/jobs/{job}/capture", {"rounds"}, capturing(s), 202));
  out.push_back(changing("/v1/hosts/{host}/clear", {}, [&s](R r, const Actor& by, A answer) {
    s.clear(r.names.at("host"), by, std::move(answer));
  }));
  out.push_back(
      changing("/v1/reload", {}, [&s](R, const Actor& by, A answer) { s.reload(by, std::move(answer)); }));
  out.push_back(changing("/v1/pool/{job}/forget", {}, [&s](R r, const Actor& by, A answer) {
    s.forget_taught(r.names.at("job"), by, std::move(answer));
  }));
  out.push_back(changing("/v1/alerts/test", {"receiver"}, [&s](R r, const Actor& by, A answer) {
    s.test_alert(parameter(r, "receiver").value_or(""), by, std::move(answer));
  }));
  using What = AlertOrder::What;
  out.push_back(changing("/v1/alerts/{key}/acknowledge", {}, handling(s, What::kAcknowledge)));
  out.push_back(changing("/v1/alerts/{key}/silence", {}, handling(s, What::kSilence)));
  out.push_back(changing("/v1/alerts/{key}/repaired", {}, handling(s, What::kRepaired)));
  out.push_back(changing("/v1/maintenance", {}, [&s](R r, const Actor& by, A answer) {
    s.add_maintenance(r.body, by, std::move(answer));
  }));
  out.push_back(changing("/v1/maintenance/{id}/end", {}, ending_maintenance(s)));
  out.push_back(advice_route());
  out.push_back(cluster_route());
  add_recovery(out);
  return out;
}

}  // namespace culprit::serve
