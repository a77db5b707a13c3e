#include "app/daemon/uplink/uplink.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "app/jobs/job_recognition.h"
#include "base/check.h"
#include "base/random.h"
#include "base/text.h"

namespace culprit::app {
namespace {

// Interval of non-urgent blocks: longer blocks compress better.
constexpr TimeNs kFlushEvery = 60 * kNsPerSecond;
// Interval of blocks for a job whose processes started or ended.
constexpr TimeNs kFlushSoon = 5 * kNsPerSecond;
// Minimum interval of urgent blocks: many of them cost at most two syncs a second.
constexpr TimeNs kFlushApart = kNsPerSecond;
constexpr TimeNs kTickEvery = 5 * kNsPerSecond;
constexpr TimeNs kRetry = kNsPerSecond;
// Interval of dropping marks of sources without evidence.
constexpr TimeNs kForgetEvery = 3600 * kNsPerSecond;
// Size of the condensed spool as a share of the evidence; the condensed log needs a thirtieth at most.
constexpr uint64_t kCondensedShare = 8;
constexpr uint64_t kCondensedLeast = 64 << 20;
// Part of SIGTERM's five seconds.
constexpr TimeNs kFinishWithin = 2 * kNsPerSecond;
constexpr const char* kTriedAgain = "; it is tried again, and what comes waits on this host";
// Time from which a wait is reported: a shorter one may be a busy collector.
constexpr TimeNs kWaitsLong = 60 * kNsPerSecond;

std::string boot_id(io::Files& files) {
  auto file = files.open("/proc/sys/kernel/random/boot_id", io::OpenFor::kRead);
  char text[64];
  const auto size = file ? (*file)->read_at(text, sizeof text, 0) : Result<size_t>(0);
  std::string out(text, size.value_or(0));
  while (!out.empty() && out.back() == '\n') out.pop_back();
  return out;
}

forward::EvidenceOptions evidence_options(const Config& config) {
  forward::EvidenceOptions out;
  constexpr forward::EvidenceMode kModes[] = {forward::EvidenceMode::kAll, forward::EvidenceMode::kFindings,
                                              forward::EvidenceMode::kNone};
  out.mode = kModes[static_cast<size_t>(config.forward.evidence.policy)];
  out.bytes_per_second = config.forward.evidence.budget;
  out.around_ns = config.forward.evidence.around_ns;
  return out;
}

peer::FrameKind frame_kind_of(store::FrameKind kind) {
  if (kind == store::FrameKind::kCheckpointPart) return peer::FrameKind::kCheckpointPart;
  return kind == store::FrameKind::kCheckpointEnd ? peer::FrameKind::kCheckpointEnd : peer::FrameKind::kData;
}

std::string since_text(TimeNs ns) {
  const TimeNs s = ns / kNsPerSecond;
  if (s < 120) return fmt::format("{} s", s);
  if (s < 7200) return fmt::format("{} min", s / 60);
  return s < 48 * 3600 ? fmt::format("{} h", s / 3600) : fmt::format("{} days", s / 86400);
}

}  // namespace

// Reads frames of both logs on a separate thread, so old frames delay neither the store nor condensing.
struct Uplink::Reader {
  Reader(io::Files& files, std::string evidence, uint64_t evidence_epoch, std::string condensed,
         uint64_t condensed_epoch)
      : logs{store::FrameReader(files, std::move(condensed), condensed_epoch),
             store::FrameReader(files, std::move(evidence), evidence_epoch)} {}

  Result<std::vector<forward::SourceFrame>> read(const forward::ReadRequest& request, uint64_t until) {
    store::FrameReader& log = logs[static_cast<size_t>(request.log)];
    std::vector<forward::SourceFrame> out;
    uint64_t after = request.after;
    if (request.with_checkpoint) {
      auto checkpoint = log.checkpoint(std::max(request.after, request.declares_until));
      if (checkpoint && checkpoint->frames.empty() && request.declares_until > request.after)
        checkpoint = log.checkpoint(request.after);
      if (!checkpoint) return tl::unexpected(checkpoint.error());
      // Inside a segment the peer has its checkpoint: it would go back to it.
      if (request.declares_until > 0 && checkpoint->sequence < request.after) checkpoint->frames.clear();
      after = std::max(after, checkpoint->sequence);
      for (store::VerbatimFrame& frame : checkpoint->frames)
        out.push_back({frame_kind_of(frame.header.kind), frame.header.sequence, frame.header.time_ns,
                       std::move(frame.bytes)});
    }
    size_t bytes = 0, frames = 0;
    while (bytes < request.max_bytes && frames < request.max_frames) {
      auto found = log.read({after, until, request.max_bytes - bytes});
      if (!found && frames == 0) return tl::unexpected(found.error());
      if (!found || found->empty()) return out;
      for (store::VerbatimFrame& frame : *found) {
        const store::FrameHeader& header = frame.header;
        if (request.selection.stops_at(header.time_ns, header.declares) || frames == request.max_frames) {
          // A checkpoint without frames would be sent again and again.
          if (frames == 0) out.clear();
          return out;
        }
        const bool selected = request.selection.selects(header.time_ns, header.declares) &&
                              (header.sequence > request.declares_until || header.declares);
        if (!selected) frame.bytes.clear();
        bytes += frame.bytes.size();
        ++frames;
        after = header.sequence;
        out.push_back({peer::FrameKind::kData, header.sequence, header.time_ns, std::move(frame.bytes)});
      }
    }
    return out;
  }

  std::array<store::FrameReader, 2> logs;  // by peer::Log
};

Uplink::Uplink(io::Env& env, UplinkOptions options)
    : env_(env),
      options_(std::move(options)),
      files_(options_.recorder->files()),
      folder_(options_.config->state_dir + "/condensed") {}

Uplink::~Uplink() = default;

Result<std::unique_ptr<Uplink>> Uplink::start(io::Env& env, UplinkOptions options) {
  std::unique_ptr<Uplink> uplink(new Uplink(env, std::move(options)));
  if (const Status opened = uplink->open(); !opened) return tl::unexpected(opened.error());
  return uplink;
}

Status Uplink::open() {
  const Config& config = *options_.config;
  Recorder& recorder = *options_.recorder;
  store::SpoolOptions spool{.folder = folder_};
  spool.max_bytes = std::max(kCondensedLeast, config.spool.max_size / kCondensedShare);
  spool.hold = true;
  auto opened = store::Spool::open(files_, spool, env_.now(io::Clock::kWall));
  if (!opened) return tl::unexpected(opened.error());
  spool_ = std::move(*opened);
  JobForwarderOptions feed = options_.feed;
  feed.evidence_epoch = recorder.frames().epoch;
  feed.allocate = [this] { return spool_->allocate(); };
  feed.draw_session = random_number;
  feed.ended_after_ns = config.jobs.ended_after_ns;
  feed_ = std::make_unique<JobForwarder>(std::move(feed));
  std::vector<StreamState> known;
  for (store::StoredStream& stored : spool_->streams()) known.push_back(std::move(stored.state));
  feed_->resume(known, env_.now(io::Clock::kWall));
  std::set<StreamId> evidence;
  for (const StreamState& state : recorder.known()) evidence.insert(state.info.id);
  feed_->keep_only(evidence);
  replay_from_ = feed_->resume_behind();
  replayed_ = recorder.known_sequence() <= replay_from_;
  replay_ = std::make_shared<store::Replay>(files_, recorder.spool_folder());
  replay_->begin_behind(replay_from_);
  reported_ = report(env_.now(io::Clock::kWall));
  acknowledged_ = {spool_->acknowledged(), recorder.frames().acknowledged};
  archived_ = freed_ = acknowledged_;
  readers_ = std::make_shared<Reader>(files_, recorder.spool_folder(), recorder.frames().epoch, folder_,
                                      spool_->epoch());
  auto worker = env_.worker("condense");
  if (!worker) return tl::unexpected(worker.error());
  worker_ = std::move(*worker);
  auto reading = env_.worker("uplink");
  if (!reading) return tl::unexpected(reading.error());
  reading_ = std::move(*reading);
  beat_timer_ = env_.timer([this] { beat(); });
  pause_timer_ = env_.timer([this] {
    pausing_ = false;
    pump();
  });
  finish_timer_ = env_.timer([this] { finished(); });
  connect();
  flushed_ns_ = env_.now(io::Clock::kMonotonic);
  beat_timer_->start(0, kNsPerSecond);
  return {};
}

// ---- the connection

void Uplink::connect() {
  const Config& config = *options_.config;
  forward_.to = config.forward.to;
  forward_.host = config.host.name;
  forward_.boot_id = boot_id(files_);
  forward_.program = CULPRIT_VERSION;
  forward_.seed = random_number();
  forward_.evidence = evidence_options(config);
  load_tls();
  if (config.forward.tls.used() && !tls_) return;  // retried by beat()
  forward_.tls = tls_;
  const auto status = [this] {
    peer::Status out = options_.status();
    const store::SpoolStats evidence = options_.recorder->counters().spool;
    out.logs = {{peer::Log::kCondensed, reported_.stats.bytes, 0, kNoTime},
                {peer::Log::kEvidence, evidence.bytes, 0, kNoTime}};
    out.jobs = reported_.jobs;
    std::erase(out.jobs, kDefaultJob);  // what names no job has no owner
    if (out.jobs.size() > peer::kStatusJobs) out.jobs.resize(peer::kStatusJobs);
    return out;
  };
  forwarder_ = std::make_unique<forward::Forwarder>(env_, forward_, *this, status);
  forwarder_->start();
}

// Blocks: reads some kilobytes of files.
void Uplink::load_tls() {
  const TlsFiles& files = options_.config->forward.tls;
  if (!files.used()) return;
  auto loaded = io::TlsCredentials::load({files.cert, files.key, files.ca, files.crl});
  tls_trouble_ = loaded ? "" : loaded.error().text;
  report_error(of_tls_, tls_trouble_, "the certificates can be read again");
  if (loaded) tls_ = std::move(*loaded);
}

void Uplink::report_error(ErrorReport& of, const std::string& trouble, const char* mended) {
  const auto words = of.look(trouble, mended, env_.now(io::Clock::kMonotonic));
  if (words) options_.report_error("forward: " + *words);
}

peer::LogBounds Uplink::bounds(peer::Log log) const {
  const Recorder::Frames& frames = log_frames(log);
  const uint64_t next = std::max(frames.synced, raised_[index(log)]) + 1;
  return {log, frames.epoch, std::min(frames.first, next), next};
}

void Uplink::read(forward::ReadRequest request, Done done) {
  CULPRIT_CHECK(owner_.here());
  const uint64_t until = log_frames(request.log).synced;
  // A collector that lacks deleted blocks cannot read the sessions that they began.
  const bool lacks = request.with_checkpoint && request.after + 1 < bounds(request.log).first;
  if (lacks && request.log == peer::Log::kCondensed) worker_->submit([this] { feed_->renew(); });
  auto frames = std::make_shared<Result<std::vector<forward::SourceFrame>>>();
  reading_->submit([readers = readers_, request, until, frames] { *frames = readers->read(request, until); },
                   [frames, done = std::move(done)] { done(std::move(*frames)); });
}

const Recorder::Frames& Uplink::log_frames(peer::Log log) const {
  return log == peer::Log::kCondensed ? reported_.frames : options_.recorder->frames();
}

void Uplink::acknowledged(peer::Log log, uint64_t sequence) {
  CULPRIT_CHECK(owner_.here());
  const size_t i = index(log);
  acknowledged_[i] = std::max(acknowledged_[i], sequence);
  look_at_waiting();
  const uint64_t safe = archives_[i] ? std::min(acknowledged_[i], archived_[i]) : acknowledged_[i];
  freed_[i] = std::max(freed_[i], safe);
  if (log == peer::Log::kEvidence) return options_.recorder->acknowledged(acknowledged_[i], freed_[i]);
  auto frames = std::make_shared<Recorder::Frames>();
  auto stats = std::make_shared<store::SpoolStats>();
  worker_->submit(
      [this, sequence = freed_[i], frames, stats] {
        spool_->retain_after(sequence);
        *frames = frames_of(*spool_);
        *stats = spool_->stats();
      },
      [this, frames, stats] {
        reported_.frames = *frames;
        reported_.stats = *stats;
      });
}

uint64_t Uplink::archived(peer::Log log, std::optional<uint64_t> sequence) {
  CULPRIT_CHECK(owner_.here());
  uint64_t& known = archived_[index(log)];
  archives_[index(log)] = sequence.has_value();
  if (!sequence) return known;
  known = std::max(known, std::min(*sequence, bounds(log).next - 1));
  acknowledged(log, acknowledged_[index(log)]);
  return known;
}

void Uplink::look_at_waiting() {
  for (const peer::Log log : peer::kLogs)
    waits_[index(log)].look(log_frames(log).written, acknowledged_[index(log)], env_.now(io::Clock::kWall));
}

// The disk lost synced frames. Later frames get numbers above the collector's; sessions that lost a block
// end.
void Uplink::fell_behind(peer::Log log, uint64_t committed) {
  CULPRIT_CHECK(owner_.here());
  options_.report_error(
      fmt::format("forward: the collector has more of the {} log than this host: its disk lost what "
                  "was synced; what comes now is sent",
                  peer::name_of(log)));
  raised_[index(log)] = committed;
  const auto reopen = [this] {
    if (forwarder_) forwarder_->reopened();
  };
  if (log == peer::Log::kEvidence) {
    options_.recorder->query(
        [committed](store::Spool& spool, records::Records&) { spool.raise_sequence(committed); }, reopen);
    return;
  }
  worker_->submit(
      [this, committed] {
        spool_->raise_sequence(committed);
        feed_->renew();
      },
      reopen);
}

void Uplink::steps_wanted(const std::string& job, const std::vector<int64_t>& steps) {
  CULPRIT_CHECK(owner_.here());
  auto hurries = std::make_shared<bool>(false);
  worker_->submit(
      [this, job, steps, hurries] {
        feed_->answer(job, steps);
        *hurries = feed_->hurries();
      },
      [this, hurries] {
        reported_.hurries = reported_.hurries || *hurries;
        reported_.empty = reported_.empty && !*hurries;
      });
}

void Uplink::stacks_wanted(const peer::StacksWanted& wanted) {
  CULPRIT_CHECK(owner_.here());
  if (options_.stacks_wanted) options_.stacks_wanted(wanted);
}

void Uplink::end_tasks(const peer::EndTasks& request) {
  CULPRIT_CHECK(owner_.here());
  if (options_.end_tasks) options_.end_tasks(request);
}

void Uplink::check_host(const peer::Message& request) {
  CULPRIT_CHECK(owner_.here());
  if (options_.check_host) options_.check_host(request);
}

void Uplink::advise(const peer::Advise& request) {
  CULPRIT_CHECK(owner_.here());
  if (options_.advise) options_.advise(request);
}

void Uplink::send(const peer::Message& result) {
  CULPRIT_CHECK(owner_.here());
  if (forwarder_) forwarder_->send(result);
}

void Uplink::evidence_synced() {
  CULPRIT_CHECK(owner_.here());
  if (forwarder_) forwarder_->appended(peer::Log::kEvidence);
}

// ---- condensing: one work at a time

void Uplink::append(SharedBatch batch, std::function<void()> done) {
  CULPRIT_CHECK(owner_.here());
  // All frames written so far belong to earlier batches.
  waiting_.push_back({std::move(batch), options_.recorder->frames().written, 0, std::move(done)});
  pump();
}

void Uplink::pump() {
  CULPRIT_CHECK(owner_.here());
  if (busy_ || pausing_) return;
  if (reported_.unwritten) return work("a block again", [this](TimeNs now) { write(now); });
  if (flush_due()) return flush();
  if (!current_ && replayed_ && !waiting_.empty()) {
    current_ = std::make_shared<Waiting>(std::move(waiting_.front()));
    waiting_.pop_front();
  }
  if (current_) return ingest_current();
  if (stopping_) return finished();
  if (!replayed_) replay_part();
}

void Uplink::work(std::string what, std::function<void(TimeNs)> work, std::function<void()> done) {
  CULPRIT_CHECK(owner_.here());
  busy_ = true;
  auto reported = std::make_shared<WorkReport>();
  const TimeNs now = env_.now(io::Clock::kWall);
  options_.watch->started(SelfWatch::Part::kEngine, env_.now(io::Clock::kMonotonic), std::move(what));
  worker_->submit(
      [this, work = std::move(work), reported, now] {
        work(now);
        *reported = report(now);
      },
      [this, reported, done = std::move(done)] {
        options_.watch->done(SelfWatch::Part::kEngine, env_.now(io::Clock::kMonotonic));
        busy_ = false;
        worked(*reported);
        if (done) done();
        pump();
      });
}

// Runs on the worker.
Uplink::WorkReport Uplink::report(TimeNs now) {
  WorkReport out;
  out.empty = feed_->empty(now);
  out.full = feed_->full();
  out.urgent = feed_->urgent();
  out.hurries = feed_->hurries();
  out.counts = feed_->counts();
  out.jobs = feed_->jobs();
  out.stats = spool_->stats();
  out.frames = frames_of(*spool_);
  out.written = written_;
  out.refused = std::exchange(refused_, {});
  out.unwritten = !unwritten_.empty();
  return out;
}

void Uplink::worked(const WorkReport& reported) {
  CULPRIT_CHECK(owner_.here());
  const bool more = reported.frames.synced > reported_.frames.synced;
  reported_ = reported;
  report_error(of_disk_, reported.written ? "" : reported.written.error().text + "; sources are held back",
               "the condensed log can be written again");
  if (!reported.refused.empty())
    report_error(of_refused_,
                 fmt::format("{}; the collector misses what was in it, {} blocks so far", reported.refused,
                             reported.counts.blocks_refused),
                 "");
  if (reported.unwritten) {
    pausing_ = true;
    pause_timer_->start(kRetry);
  }
  if (more && forwarder_) forwarder_->appended(peer::Log::kCondensed);
}

// Replays one frame of evidence that the previous process had not condensed.
void Uplink::replay_part() {
  struct Part {
    PieceBatch batch;
    Result<bool> whole = false;
  };
  auto part = std::make_shared<Part>();
  work(
      "evidence of before",
      [this, part](TimeNs) {
        store::ReplayVisitor visitor;
        visitor.wanted = [&](const StreamInfo& info) {
          part->batch.opened.push_back(info);
          return true;
        };
        visitor.piece = [&](const Piece& piece) {
          part->batch.pieces.push_back(piece);
          return true;
        };
        part->whole = replay_->advance(options_.recorder->known_sequence(), 1, visitor);
      },
      [this, part] {
        current_ = std::make_shared<Waiting>();
        current_->batch = std::make_shared<const PieceBatch>(std::move(part->batch));
        current_->before = replay_from_;
        if (part->whole && !*part->whole) return;
        if (!part->whole) options_.report_error(part->whole.error().text);
        replayed_ = true;
        const store::ReadDamage damage = replay_->damage();
        if (damage.frames > 0)
          options_.report_error(
              fmt::format("spool: {}; {} damaged frames are left out", damage.first, damage.frames));
        replay_.reset();
      });
}

void Uplink::ingest_current() {
  work(
      fmt::format("a batch of {} bytes", current_->batch->bytes()),
      [this, current = current_, next = waiting_.empty() ? nullptr : waiting_.front().batch](TimeNs now) {
        current->taken = feed_->ingest(*current->batch, {current->taken, current->before, next}, now);
      },
      [this] {
        if (current_->taken < current_->batch->pieces.size()) return;
        const auto done = std::move(current_->done);
        current_.reset();
        if (done) done();
      });
}

bool Uplink::flush_due() const {
  const bool last = stopping_ && (replayed_ ? waiting_.empty() && !current_ : !current_);
  if (reported_.full || (last && !reported_.empty)) return true;
  const TimeNs since = env_.now(io::Clock::kMonotonic) - flushed_ns_;
  if (reported_.urgent && since >= kFlushApart) return true;
  if (reported_.hurries && since >= kFlushSoon) return true;
  return !reported_.empty && since >= kFlushEvery;
}

void Uplink::flush() {
  CULPRIT_CHECK(owner_.here());
  busy_ = true;
  options_.recorder->secure([this](Result<uint64_t> sequence) {
    busy_ = false;
    if (!sequence) {
      pausing_ = true;
      pause_timer_->start(kRetry);
      return;
    }
    // The mark must not pass the frames of waiting batches.
    uint64_t whole = *sequence;
    for (const Waiting& waiting : waiting_) whole = std::min(whole, waiting.before);
    if (current_) whole = std::min(whole, current_->before);
    if (!replayed_) whole = replay_from_;
    flushed_ns_ = env_.now(io::Clock::kMonotonic);
    const bool urgent = reported_.urgent;
    work(
        "a block",
        [this, whole](TimeNs now) {
          feed_->tick(now);
          for (PieceBatch& part : feed_->flush(whole, now)) unwritten_.push_back(std::move(part));
          write(now);
        },
        [this, urgent] {
          if (urgent && forwarder_) forwarder_->finding(env_.now(io::Clock::kWall));
        });
  });
}

// Runs on the worker. A block that the spool rejects for good is lost and reported; it does not count as a
// disk failure.
void Uplink::write(TimeNs now) {
  written_ = {};
  while (written_ && !unwritten_.empty()) {
    written_ = spool_->append(unwritten_.front(), now);
    if (!written_ && written_.error().code == ErrorCode::kInvalid) {
      refused_ = written_.error().text;
      feed_->refused(unwritten_.front());
      written_ = {};
    }
    if (written_) unwritten_.pop_front();
  }
  if (auto committed = spool_->commit(now); !committed) written_ = tl::unexpected(committed.error());
  if (const Status synced = spool_->sync(); written_ && !synced) written_ = synced;
}

void Uplink::beat() {
  CULPRIT_CHECK(owner_.here());
  const TimeNs now = env_.now(io::Clock::kMonotonic);
  look_at_waiting();
  if (options_.config->forward.tls.used() && !tls_) connect();
  if (forwarder_) {
    const forward::ForwarderStats stats = forwarder_->stats();
    const bool away = stats.phase != forward::Phase::kOpen && !stats.last_error.empty();
    // The state is unknown during a connection attempt.
    if (away || stats.phase == forward::Phase::kOpen)
      report_error(of_link_, away ? stats.last_error + kTriedAgain : "", "connected to the collector");
  }
  if (!busy_ && !pausing_ && !reported_.jobs.empty() &&
      (ticked_ns_ == kNoTime || now - ticked_ns_ >= kTickEvery)) {
    ticked_ns_ = now;
    return work("a tick", [this](TimeNs wall) { feed_->tick(wall); });
  }
  if (now - forgot_ns_ >= kForgetEvery && replayed_) {
    if (std::exchange(forgot_ns_, now) > 0) forget_removed();
  }
  pump();
}

void Uplink::forget_removed() {
  auto known = std::make_shared<std::set<StreamId>>();
  options_.recorder->query(
      [known](store::Spool& spool, records::Records&) {
        for (const StreamState& state : spool.appended()) known->insert(state.info.id);
      },
      [this, known] { worker_->submit([this, known] { feed_->keep_only(*known); }); });
}

void Uplink::reload(const Config& config, std::shared_ptr<rules::Ruleset> rules) {
  CULPRIT_CHECK(owner_.here());
  if (forwarder_) forwarder_->set_evidence(evidence_options(config));
  if (tls_) {
    load_tls();
    if (forwarder_) forwarder_->set_tls(tls_);
  }
  worker_->submit([this, rules = std::move(rules), ended = config.jobs.ended_after_ns] {
    feed_->reload_rules(rules);
    feed_->set_ended_after(ended);
  });
}

void Uplink::finish(std::function<void()> done) {
  CULPRIT_CHECK(owner_.here());
  stopping_ = true;
  finish_done_ = std::move(done);
  finish_timer_->start(kFinishWithin);
  pump();
}

void Uplink::finished() {
  if (!finish_done_) return;
  finish_timer_->stop();
  beat_timer_->stop();
  if (forwarder_) forwarder_->stop();
  pausing_ = true;
  std::exchange(finish_done_, nullptr)();
}

UplinkCounters Uplink::counters() const {
  UplinkCounters out;
  const TimeNs now = env_.now(io::Clock::kWall);
  if (forwarder_) out.forward = forwarder_->stats();
  const Recorder::Counters evidence = options_.recorder->counters();
  out.condensed = reported_.stats;
  out.unarchived_bytes = evidence.spool.received_bytes;
  out.given_up_bytes = evidence.spool.given_up_bytes;
  out.frames = {reported_.frames, options_.recorder->frames()};
  out.feed = reported_.counts;
  out.jobs = reported_.jobs.size();
  out.caught_up = replayed_;
  out.trouble = reported_.written ? "" : reported_.written.error().text;
  if (tls_) out.certificate_expires_ns = tls_->expires_ns();
  for (const peer::Log log : peer::kLogs) {
    if (log_frames(log).written <= acknowledged_[index(log)]) continue;
    out.waiting_bytes +=
        log == peer::Log::kCondensed ? reported_.stats.waiting_bytes : evidence.spool.waiting_bytes;
    const TimeNs since = waits_[index(log)].since_ns();
    if (since == kNoTime) continue;  // set by the next beat
    out.waits_since_ns = out.waits_since_ns == kNoTime ? since : std::min(out.waits_since_ns, since);
  }
  const bool waits = out.waits_since_ns != kNoTime && now - out.waits_since_ns >= kWaitsLong;
  out.sentence = !tls_trouble_.empty() ? tls_trouble_ : out.forward.sentence();
  if (waits)
    out.sentence =
        fmt::format("the collector has not acknowledged for {}; {} wait; {}",
                    since_text(now - out.waits_since_ns), format_bytes(out.waiting_bytes), out.sentence);
  return out;
}

}  // namespace culprit::app
