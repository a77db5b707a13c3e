#include "plughost/supervisor.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <limits>

#include "base/bytes.h"
#include "base/limits.h"
#include "base/text.h"
#include "plughost/events.h"
#include "plughost/local_link.h"
#include "plughost/process_link.h"

namespace culprit::plughost {
namespace {

constexpr TimeNs kSampleNs = kNsPerSecond;
constexpr TimeNs kDyingLookNs = 10 * kNsPerMs;
constexpr TimeNs kNever = std::numeric_limits<TimeNs>::max();
// A flood is reported again after this long.
constexpr TimeNs kFloodNs = 600 * kNsPerSecond;
// Multiple of the CPU limit at which a plugin is killed. Above the limit it gets no events, so further CPU
// time is its own doing.
constexpr double kCpuKill = 1.5;
// Findings of an instance that is not ready.
constexpr size_t kEarlyMax = 1024;

struct Title {
  std::string_view kind, title;
};
constexpr Title kTitles[] = {
    {"crashed", "A plugin crashed"},
    {"hung", "A plugin did not return from a call"},
    {"memory", "A plugin used more memory than it may"},
    {"cpu", "A plugin used more processor time than it may"},
    {"malformed", "A plugin damaged its channel to the daemon"},
    {"failed", "A plugin reported an error"},
    {"refused", "A plugin was refused"},
};

std::string_view title_of(std::string_view kind) {
  for (const Title& row : kTitles)
    if (row.kind == kind) return row.title;
  return "A plugin failed";
}

}  // namespace

Supervisor::Supervisor(Setup setup)
    : table_(std::move(setup.table)),
      asked_(table_),
      path_(std::move(setup.path)),
      options_(*setup.options),
      found_(std::move(setup.found)),
      log_(std::move(setup.log)),
      state_file_(options_.state_folder, table_.name) {}

Supervisor::~Supervisor() = default;

// ---- start

Result<Supervisor::Instance> Supervisor::launch(TimeNs mono) {
  auto library = io::open_trusted_file(path_, options_.trusted_uid);
  if (!library) return tl::unexpected(library.error());
  Instance out;
  ++starts_;
  if (table_.own_process) {
    ProcessOptions process;
    process.host_program = options_.host_program;
    process.name = table_.name;
    process.library = *library;
    process.memory_bytes = table_.memory_bytes;
    process.environment = table_.environment;
    auto link = ProcessLink::start(process);
    ::close(*library);
    if (!link) return tl::unexpected(link.error());
    out.link = std::move(*link);
  } else {
    out.link = std::make_unique<LocalLink>(table_.name, *library, options_.entering);
    ::close(*library);
  }
  out.waiting_since = mono;
  return out;
}

void Supervisor::start(TimeNs mono) {
  mono_ = mono;
  auto launched = launch(mono);
  if (!launched) return refuse(launched.error().text);
  current_ = std::move(*launched);
  samples_.clear();
  next_sample_ = mono;
  withheld_ = false;
  state_ = State::kStarting;
}

// Refuses the plugin for a reason that only a person can remove: a retry is useless.
void Supervisor::refuse(const std::string& why) {
  state_ = State::kRefused;
  reason_ = why;
  release_pending();
  release_early(current_);
  replaced_.clear();
  forget();
  report("refused", title_of("refused"), fmt::format("plugin {}: {}", table_.name, why),
         PluginState::kRaised);
  raised_ = "refused";
  discard(current_);
}

void Supervisor::discard(Instance& instance) {
  release_early(instance);
  if (instance.link) {
    instance.link->kill();
    discarded_.push_back(std::move(instance.link));
  }
  instance = {};
}

// Publishes the early findings: they are evidence, whatever happens to the instance.
void Supervisor::release_early(Instance& of) {
  for (PluginFinding& finding : std::exchange(of.early, {})) found_(std::move(finding));
}

void Supervisor::replace(std::string path, PluginTable table, bool other_file, TimeNs mono) {
  mono_ = mono;
  path_ = std::move(path);
  const bool same_table = table == asked_;
  asked_ = std::move(table);
  if (!table_.own_process && same_table && state_ == State::kRunning) {
    // The old file may still be loaded, and loading the new one would return the old one.
    log_(CULPRIT_WARNING,
         fmt::format("plugin {} changed; it runs in this process, so the change takes effect "
                     "at the next start of culpritd",
                     table_.name));
    return;
  }
  if (!other_file && state_ == State::kRunning) {
    const auto fit = resolve_options(*current_.description, asked_.options);
    if (!fit) return keep_options(fit.error().text);
    if (!std::exchange(keeps_, {}).empty()) reason_.clear();
    if (asked_ == table_) return;  // back to what is in effect
  }
  keeps_.clear();
  table_ = asked_;
  failures_.clear();
  if (state_ == State::kDying || state_ == State::kEnding) return;  // it starts again after its end
  if (state_ != State::kRunning) {
    discard(current_);
    return start(mono);
  }
  if (candidate_) drop_candidate("");
  auto launched = launch(mono);
  if (!launched) {
    reason_ = "the new version is refused: " + launched.error().text;
    log_(CULPRIT_ERR, fmt::format("plugin {}: {}; the earlier one runs on", table_.name, reason_));
    return;
  }
  candidate_ = std::move(*launched);
}

void Supervisor::keep_options(const std::string& why) {
  reason_ = keeps_ = "keeps its earlier options: " + why;
  report("refused", "A plugin refused its new options", fmt::format("plugin {} {}", table_.name, keeps_));
}

// Drops the candidate; the current instance continues. Empty `why`: a newer candidate replaces it.
void Supervisor::drop_candidate(const std::string& why) {
  discard(*candidate_);
  candidate_.reset();
  if (why.empty()) return;
  reason_ = "the new version is refused: " + why;
  report("refused", title_of("refused"),
         fmt::format("plugin {}: {}; the earlier one runs on", table_.name, reason_));
}

void Supervisor::candidate_round() {
  std::string refused;
  HostLink::Handlers handlers;
  handlers.output = [&](std::string_view line) { log_line(CULPRIT_INFO, line); };
  handlers.message = [&](MessageKind kind, std::string_view payload) {
    if (kind == MessageKind::kRefused) refused = shorten(payload, limits::kEvidenceText);
    if (kind != MessageKind::kHello || candidate_->description) return;
    candidate_options_.clear();
    if (const Status sound = check_hello(payload, *candidate_, candidate_options_); !sound)
      refused = sound.error().text;
  };
  const HostLink::State state = candidate_->link->exchange(handlers);
  if (!refused.empty()) return drop_candidate(refused);
  if (state != HostLink::State::kOpen) return drop_candidate("it ended while it was loaded");
  if (!candidate_->description) {
    if (table_.call_ns > 0 && mono_ - candidate_->waiting_since >= table_.call_ns)
      drop_candidate("it does not finish loading");
    return;
  }
  if (state_ != State::kRunning) return;
  // kStop follows the batches that are already queued.
  current_.link->send(MessageKind::kStop, {});
  state_ = State::kEnding;
  replacing_ = true;
}

// ---- messages

Status Supervisor::check_hello(std::string_view payload, Instance& of, OptionValues& options) const {
  Description description;
  if (!decode(payload, description)) return fail(ErrorCode::kInvalid, "its description is malformed");
  if (const Status sound = check_description(description, table_.name); !sound) return sound;
  auto resolved = resolve_options(description, table_.options);
  if (!resolved) return tl::unexpected(resolved.error());
  options = std::move(*resolved);
  of.description = std::move(description);
  return {};
}

void Supervisor::hello(std::string_view payload) {
  OptionValues options;
  if (state_ != State::kStarting || current_.description)
    return fail_with({"malformed", "it introduced itself twice"});
  if (const Status sound = check_hello(payload, current_, options); !sound) return refuse(sound.error().text);
  if (saved_.empty()) saved_ = state_file_.take();
  current_.waiting_since = kNoTime;
  create(options);
}

void Supervisor::create(const OptionValues& options) {
  CreateRequest request;
  request.host = options_.host;
  request.version = options_.version;
  request.limits = {table_.memory_bytes, table_.cpu_ppm, table_.findings_per_minute, table_.call_ns};
  request.options = options;
  request.state = std::exchange(saved_, {});
  current_.link->send(MessageKind::kCreate, encode(request));
}

void Supervisor::receive(MessageKind kind, std::string_view payload) {
  if (failure_ || state_ == State::kRefused) return;  // what follows a failure is not looked at
  switch (kind) {
    case MessageKind::kHello:
      return hello(payload);
    case MessageKind::kRefused: {
      const std::string why = shorten(to_utf8(payload), limits::kEvidenceText);
      // Before kHello, the file itself is wrong. Later, a missing dependency may still become available.
      return current_.description ? fail_with({"failed", why}) : refuse(why);
    }
    case MessageKind::kReady:
      return ready(payload);
    case MessageKind::kFinding:
      return finding(payload);
    case MessageKind::kLog: {
      LogLine line;
      if (!decode(payload, line)) return fail_with({"malformed", "a line for the log is malformed"});
      return log_line(line.severity, line.text);
    }
    case MessageKind::kDone:
      return done(payload);
    case MessageKind::kState:
      if (state_ != State::kEnding || payload.size() > limits::kPluginStateBytes)
        return fail_with({"malformed", "it sent a state that was not asked for"});
      ++current_.answered;
      current_.gave_state = true;
      saved_ = payload;
      return;
    default:
      return fail_with({"malformed", "it sent an unknown message"});
  }
}

void Supervisor::ready(std::string_view payload) {
  if (state_ != State::kStarting || !current_.description || current_.ready || payload.size() != 1)
    return fail_with({"malformed", "it answered what it was not asked"});
  current_.ready = true;
  description_ = *current_.description;
  ++current_.answered;
  current_.next_tick = mono_;
  state_ = State::kRunning;
  reason_ = keeps_;
  const bool loaded = payload[0] != 0;
  if (!loaded) forget();
  release_early(current_);
  release_pending();
  const int pid = current_.link->pid();
  const std::string place = pid == 0 ? "in this process" : fmt::format("as process {}", pid);
  std::string earlier = std::exchange(replaced_, {});
  if (!earlier.empty())
    earlier = fmt::format(", in place of version {} and {} its state", earlier, loaded ? "with" : "without");
  const std::string& version = description_.version;
  log_(CULPRIT_INFO, fmt::format("plugin {}{} runs {}{}", table_.name,
                                 version.empty() ? "" : ": version " + version, place, earlier));
  if (!raised_.empty())
    report(std::exchange(raised_, {}), "A plugin runs again",
           fmt::format("plugin {} runs again", table_.name), PluginState::kCleared);
}

void Supervisor::done(std::string_view payload) {
  Done done;
  if (!decode(payload, done) || current_.answered >= current_.link->begun())
    return fail_with({"malformed", "it answered what it was not asked"});
  ++current_.answered;
  current_.waiting_since = kNoTime;
  if (done.kind == MessageKind::kTick) current_.tick_pending = false;
  if (done.findings_dropped > current_.findings_dropped) {
    findings_dropped_ += done.findings_dropped - current_.findings_dropped;
    current_.findings_dropped = done.findings_dropped;
    if (flood_reported_ == kNoTime || mono_ - flood_reported_ >= kFloodNs) {
      flood_reported_ = mono_;
      report("flood", "A plugin reported more findings than it may, or invalid ones",
             fmt::format("plugin {}: {} were dropped; at most {} per minute are let through", table_.name,
                         counted(findings_dropped_, "finding"), table_.findings_per_minute));
    }
  }
  if (done.result < 0)
    fail_with({"failed", fmt::format("{} returned {}", done.kind == MessageKind::kTick ? "tick" : "observe",
                                     done.result)});
}

void Supervisor::finding(std::string_view payload) {
  PluginFinding out;
  // The host program drops malformed findings, so the plugin wrote to the channel itself.
  if (!decode(payload, out) || !finding_fault(out).empty())
    return fail_with({"malformed", "a finding is malformed"});
  new_minute();
  // Twice the limit, because minutes begin at different times in the daemon and the host program.
  if (table_.findings_per_minute > 0 && ++findings_of_minute_ > 2 * table_.findings_per_minute)
    return fail_with({"malformed", "findings came past their limit"});
  out.plugin = table_.name;
  if (out.time_ns == kNoTime) out.time_ns = wall_;
  if (!current_.ready && current_.early.size() >= kEarlyMax) {
    ++findings_dropped_;
    return;
  }
  ++findings_;
  if (!current_.ready) return current_.early.push_back(std::move(out));
  found_(std::move(out));
}

void Supervisor::log_line(uint32_t severity, std::string_view text) {
  new_minute();
  if (++lines_of_minute_ > limits::kPluginLinesPerMinute) {
    ++lines_dropped_;
    if (lines_of_minute_ > limits::kPluginLinesPerMinute + 1) return;
    return log_(CULPRIT_WARNING,
                fmt::format("plugin {}: further lines of this minute are dropped", table_.name));
  }
  log_(severity, fmt::format("plugin {}: {}", table_.name, shorten(to_utf8(text), limits::kEvidenceText)));
}

void Supervisor::new_minute() {
  if (mono_ - minute_ < kMinuteNs) return;
  minute_ = mono_;
  findings_of_minute_ = lines_of_minute_ = 0;
}

// ---- failures

void Supervisor::report(std::string_view id, std::string_view title, std::string text, PluginState state) {
  PluginFinding out;
  out.plugin = table_.name;
  out.id = fmt::format("culprit.plugin.{}", id);
  out.title = title;
  out.text = shorten(to_utf8(text), limits::kEvidenceText);
  out.category = "platform";
  out.action = "none";
  out.time_ns = wall_;
  out.confidence = 1;
  out.severity = PluginSeverity::kWarning;
  out.state = state;
  log_(state == PluginState::kCleared ? CULPRIT_INFO : CULPRIT_WARNING,
       fmt::format("{}: {}", out.title, out.text));
  found_(std::move(out));
}

// The raised states are lost: no instance has them in memory, and no later one will read them from the
// file.
void Supervisor::forget() {
  saved_.clear();
  state_file_.remove();
  found_(plugin_forgot(table_.name, wall_));
}

void Supervisor::say_end(int pid) const {
  if (stopping_ == End::kOfDaemon) return;
  const std::string process = pid == 0 ? "" : fmt::format(" (process {})", pid);
  const std::string version = description_.version.empty() ? "" : ": version " + description_.version;
  log_(CULPRIT_INFO, fmt::format("plugin {}{}{} ended, as {}", table_.name, version, process,
                                 stopping_ == End::kRemoved ? "its file is gone" : "it is disabled"));
}

void Supervisor::fail_with(Failure failure) {
  if (failure_ || !current_.link) return;
  failure_ = std::move(failure);
  current_.link->kill();
  state_ = State::kDying;
}

// The process has ended: starts the next instance, waits, or is over.
void Supervisor::reaped(const std::string& how) {
  const uint64_t lost = current_.link->queued_events();
  events_ -= std::min(events_, lost);
  dropped_ += lost;
  cpu_before_ns_ += current_.link->use().cpu_ns;
  use_ = {};
  const bool ended_well = state_ == State::kEnding && current_.gave_state && !failure_;
  const bool replaced = ended_well && candidate_ && candidate_->description;
  release_early(current_);
  if (stopping_) return end();
  current_ = {};
  if (ended_well) {
    replaced_ = description_.version;
    if (!replaced) return start(mono_);
    current_ = std::move(*candidate_);
    candidate_.reset();
    current_.waiting_since = kNoTime;
    samples_.clear();
    state_ = State::kStarting;
    return create(candidate_options_);
  }
  if (candidate_) drop_candidate("");  // the next start takes the new file anyway
  if (!failure_) failure_ = Failure{"crashed", how};
  count_failure(std::move(*failure_));
}

// Its process is gone, if it had one.
void Supervisor::end() {
  state_ = State::kOver;
  say_end(current_.link ? current_.link->pid() : 0);
  if (stopping_ != End::kOfDaemon) {
    forget();
  } else if (current_.gave_state) {
    if (const Status retained = state_file_.keep(saved_); !retained)
      log_(CULPRIT_WARNING,
           fmt::format("plugin {}: its state is lost: {}", table_.name, retained.error().text));
  }
  current_ = {};
  failure_.reset();
}

void Supervisor::count_failure(Failure failure) {
  failure_.reset();
  replaced_.clear();
  release_pending();
  reason_ = failure.why;
  ++failures_total_;
  failures_.push_back(mono_);
  while (mono_ - failures_.front() > kFailuresNs) failures_.pop_front();
  report(failure.kind, title_of(failure.kind),
         fmt::format("plugin {}: {}; failure {} of {} within {}", table_.name, failure.why, failures_.size(),
                     kFailuresMax, format_duration(kFailuresNs)));
  forget();
  if (failures_.size() >= kFailuresMax) {
    state_ = State::kQuarantined;
    raised_ = "quarantined";
    reason_ = fmt::format("{}; {} failures within {} min; a reload tries again", failure.why,
                          failures_.size(), kFailuresNs / kMinuteNs);
    report("quarantined", "A plugin is quarantined",
           fmt::format("plugin {} failed {} times within {}, at last: {}; it starts again when its file or "
                       "table changes, or at a reload",
                       table_.name, failures_.size(), format_duration(kFailuresNs), failure.why),
           PluginState::kRaised);
    return;
  }
  state_ = State::kWaiting;
  resume_at_ = mono_ + std::min(kMostWaitNs, kFirstWaitNs << (failures_.size() - 1));
}

// To the new version, if it runs.
void Supervisor::release_pending() {
  const std::string records = std::exchange(pending_, {});
  const size_t count = std::exchange(pending_count_, 0);
  replacing_ = false;
  if (count == 0) return;
  std::string selected;
  const size_t wanted = select_events(records, description_.events, &selected);
  const bool runs = state_ == State::kRunning && current_.link->send_events(selected, wanted);
  (runs ? events_ : dropped_) += runs ? wanted : count;
}

void Supervisor::check_deadline() {
  if (!current_.link || failure_) return;
  const bool waits =
      !current_.description || state_ == State::kEnding || current_.link->begun() > current_.answered;
  if (!waits)
    current_.waiting_since = kNoTime;
  else if (current_.waiting_since == kNoTime)
    current_.waiting_since = mono_;
  if (table_.call_ns == 0) return;
  TimeNs took = current_.link->longest_call_ns();
  if (waits) took = std::max(took, mono_ - current_.waiting_since);
  if (took >= table_.call_ns)
    fail_with({"hung", fmt::format("a call did not return within {}", format_duration(table_.call_ns))});
}

void Supervisor::sample() {
  if (!current_.link || failure_ || mono_ < next_sample_) return;
  next_sample_ = mono_ + kSampleNs;
  use_ = current_.link->use();
  if (table_.memory_bytes > 0 && use_.memory_bytes > table_.memory_bytes)
    return fail_with(
        {"memory", fmt::format("it used {} of memory, {} are allowed", format_bytes(use_.memory_bytes),
                               format_bytes(table_.memory_bytes))});
  samples_.push_back({mono_, use_.cpu_ns});
  while (mono_ - samples_.front().mono > kMinuteNs) samples_.pop_front();
  if (table_.cpu_ppm == 0) return;
  const auto used = static_cast<double>(use_.cpu_ns - std::min(use_.cpu_ns, samples_.front().cpu_ns));
  const double allowed = static_cast<double>(table_.cpu_ppm) * 1e-6 * static_cast<double>(kMinuteNs);
  const bool over = used > allowed;
  if (over && !withheld_)
    log_(CULPRIT_WARNING,
         fmt::format("plugin {} used {} of processor time within a minute, {} are allowed: it "
                     "gets no events until it is below",
                     table_.name, format_duration(static_cast<TimeNs>(used)),
                     format_duration(static_cast<TimeNs>(allowed))));
  withheld_ = over;
  if (used > kCpuKill * allowed)
    fail_with({"cpu", fmt::format("it used {} of processor time within a minute, {} are allowed",
                                  format_duration(static_cast<TimeNs>(used)),
                                  format_duration(static_cast<TimeNs>(allowed)))});
}

// ---- rounds

void Supervisor::exchange() {
  HostLink::Handlers handlers;
  handlers.message = [this](MessageKind kind, std::string_view payload) { receive(kind, payload); };
  handlers.output = [this](std::string_view line) { log_line(CULPRIT_INFO, line); };
  const HostLink::State state = current_.link->exchange(handlers);
  if (!current_.link) return;
  lines_dropped_ += current_.link->take_lost_lines();  // beyond those of a minute
  if (failure_) return;
  if (state == HostLink::State::kMalformed)
    return fail_with({"malformed", "it wrote to its channel to the daemon"});
  if (state == HostLink::State::kClosed) {
    current_.link->kill();  // an exit status from before stays
    if (state_ != State::kEnding) state_ = State::kDying;
  }
}

void Supervisor::tick_if_due() {
  if (state_ != State::kRunning || current_.description->tick_ms == 0 || current_.tick_pending) return;
  if (mono_ < current_.next_tick) return;
  current_.next_tick = mono_ + static_cast<TimeNs>(current_.description->tick_ms) * kNsPerMs;
  std::string payload;
  put(payload, wall_);
  current_.tick_pending = true;
  current_.link->send_first(MessageKind::kTick, payload);
}

// A child of the plugin may keep the channel open after the plugin has ended.
void Supervisor::reap_if_ended() {
  std::string how;
  if (!current_.link || !current_.link->ended(how)) return;
  exchange();  // what it sent before
  if (!current_.link) return;
  if (how.empty()) how = "it exited";
  // The daemon itself kills a plugin whose channel is closed.
  if (how == "SIGKILL ended it" || how == fmt::format("it exited with status {}", kExitChannel))
    how = "it closed its channel to the daemon, or was killed";
  reaped(how);
}

TimeNs Supervisor::round(TimeNs wall, TimeNs mono) {
  wall_ = wall;
  mono_ = mono;
  std::string how;
  std::erase_if(discarded_, [&](auto& link) { return link->ended(how); });
  if (state_ == State::kWaiting && resume_at_ != kNoTime && mono >= resume_at_) start(mono);
  if (current_.link) {
    tick_if_due();
    exchange();
  }
  if (candidate_) candidate_round();
  check_deadline();
  sample();
  reap_if_ended();
  if (state_ == State::kDying || state_ == State::kEnding || !discarded_.empty()) return mono + kDyingLookNs;
  if (state_ == State::kWaiting) return resume_at_ == kNoTime ? kNever : resume_at_;
  if (!current_.link) return kNever;
  TimeNs due = next_sample_;
  if (state_ == State::kRunning && current_.description->tick_ms != 0 && !current_.tick_pending)
    due = std::min(due, current_.next_tick);
  if (table_.call_ns > 0 && current_.waiting_since != kNoTime)
    due = std::min(due, current_.waiting_since + table_.call_ns);
  return due;
}

void Supervisor::observe(std::string_view events) {
  const uint64_t kinds = wanted();
  if (kinds == 0) return;
  std::string selected;
  const size_t all = select_events(events, ~uint64_t{0}, nullptr);
  const size_t count = select_events(events, kinds, nullptr);
  if (count == 0) return;
  if (count != all) {
    select_events(events, kinds, &selected);
    events = selected;
  }
  if (replacing_ && pending_.size() + events.size() <= limits::kPluginMessageBytes) {
    pending_ += events;
    pending_count_ += count;
    return;
  }
  const bool runs = state_ == State::kRunning && !withheld_;
  (runs && current_.link->send_events(events, count) ? events_ : dropped_) += count;
}

// Not 0 while the plugin waits for a restart, so that the events it misses are counted.
uint64_t Supervisor::wanted() const {
  const bool idle = state_ == State::kQuarantined || state_ == State::kRefused || state_ == State::kOver;
  return idle ? 0 : description_.events;
}

void Supervisor::add_descriptors(std::vector<pollfd>& out) const {
  if (current_.link) current_.link->add_descriptors(out);
  if (candidate_) candidate_->link->add_descriptors(out);
}

void Supervisor::stop(End why, TimeNs mono) {
  mono_ = mono;
  if (state_ == State::kOver) return;
  if (!stopping_) stopping_ = why;
  if (candidate_) drop_candidate("");
  if (!current_.link) {
    end();
  } else if (state_ == State::kRunning) {
    current_.link->send(MessageKind::kStop, {});
    state_ = State::kEnding;
  } else if (state_ != State::kEnding) {
    current_.link->kill();
    state_ = State::kDying;
  }
}

// ---- what is known

PluginRow Supervisor::row() const {
  static constexpr std::string_view kStates[] = {"starting", "running",     "ending",  "ending",
                                                 "waiting",  "quarantined", "refused", "ended"};
  PluginRow out;
  out.name = table_.name;
  out.version = description_.version;
  out.vendor = description_.vendor;
  out.about = description_.about;
  out.kinds = description_.events;
  out.path = path_;
  out.state = kStates[static_cast<size_t>(state_)];
  out.reason = reason_;
  out.own_process = table_.own_process;
  out.pid = current_.link ? current_.link->pid() : 0;
  out.starts = starts_;
  out.failures = failures_total_;
  out.events = events_;
  out.queued = current_.link ? current_.link->queued_events() : 0;
  out.dropped = dropped_;
  out.findings = findings_;
  out.findings_dropped = findings_dropped_;
  out.lines_dropped = lines_dropped_;
  out.cpu_ns = cpu_before_ns_ + use_.cpu_ns;
  out.memory_bytes = use_.memory_bytes;
  return out;
}

}  // namespace culprit::plughost
