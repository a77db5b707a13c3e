#include "app/daemon/collector/collector_service.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "app/daemon/collector/host_about.h"
#include "base/check.h"
#include "base/text.h"
#include "io/descriptors.h"

namespace culprit::app {
namespace {

// The first frame after a quiet period goes to the engine at once. Frames within this time after it are
// appended, given to the engine and committed together. Each separate work costs wake-ups of three threads, a
// sync, a transaction and a check of all jobs.
constexpr TimeNs kGatherNs = 200 * kNsPerMs;
// Number of queued bytes from which frames do not wait.
constexpr uint64_t kGatherBytes = 1 << 20;
// Limit of bytes per work of the worker, which limits the wait of queries.
constexpr uint64_t kWorkBytes = 8 << 20;
// The same limit in number of small frames and gaps, which cost some 20 us each.
constexpr size_t kWorkItems = 4096;
// Of a condensed log, for the second reading: some 50 ms, for which answers and new frames wait.
constexpr uint64_t kSecondPartBytes = 128 << 10;
constexpr TimeNs kArchiveRetryNs = kNsPerSecond;
constexpr TimeNs kRetainEveryNs = 60 * kNsPerSecond;
// If one work of the archive takes longer, the disk hangs.
constexpr TimeNs kArchiveStuckNs = 30 * kNsPerSecond;
// Limits of queued block bytes for the engine that pause and resume frames. A block byte represents about
// thirty bytes of logs.
constexpr size_t kEngineHold = 32 << 20, kEngineRelease = 16 << 20;
// Findings within this interval share one request for evidence. Also limits the requests stored for a
// disconnected host.
constexpr TimeNs kOneTimeNs = 5 * kNsPerSecond;
constexpr TimeNs kNoteEveryNs = 60 * kNsPerSecond;
constexpr size_t kWantedPerHost = 32, kWantedHosts = 16'384;
constexpr const char* kNothingAcknowledged = "nothing is acknowledged to agents until it can be written";

// The fields of `hosts` for a disconnected host.
HostAbout about_of(const HostFacts& f) {
  HostAbout out{f.program, f.address, f.clock_ahead_ns, f.left, {}, {}};
  if (f.status) out.dropped_bytes = f.status->dropped_bytes, out.dropped_records = f.status->dropped_records;
  return out;
}

}  // namespace

CollectorService::CollectorService(io::Env& env, CollectorServiceOptions options)
    : env_(env),
      options_(std::move(options)),
      files_(io::real_files()),
      folder_(options_.state_dir + "/archive") {}

CollectorService::~CollectorService() { collector_.reset(); }

Result<std::unique_ptr<CollectorService>> CollectorService::open(io::Env& env,
                                                                 CollectorServiceOptions options) {
  std::unique_ptr<CollectorService> c(new CollectorService(env, std::move(options)));
  CollectorService* self = c.get();
  store::ArchiveOptions archive{.folder = c->folder_};
  if (c->options_.max_bytes > 0) archive.max_bytes = c->options_.max_bytes;
  archive.max_age_ns = c->options_.max_age_ns;
  auto opened = store::Archive::open(c->files_, archive);
  if (!opened) return tl::unexpected(opened.error());
  c->archive_ = std::move(*opened);
  c->writer_ = std::make_unique<ArchiveWriter>(*c->archive_);
  c->stats_ = c->archive_->stats();
  if (!c->archive_->moved_aside().empty())
    c->options_.report_error(
        fmt::format("{}: the archive's index was damaged; it is kept there, and a new one was "
                    "made of the segments",
                    c->archive_->moved_aside()));
  if (c->stats_.cut_bytes > 0 || c->stats_.damaged_frames > 0)
    c->options_.report_error(
        fmt::format("archive: {} bytes behind the last sound frame were cut, {} damaged frames left out; "
                    "agents send again "
                    "what was not acknowledged",
                    c->stats_.cut_bytes, c->stats_.damaged_frames));
  c->options_.limits.known = c->known_addresses();
  c->options_.limits.hosts = c->known_hosts();
  auto worker = env.worker("archive");
  if (!worker) return tl::unexpected(worker.error());
  c->worker_ = std::move(*worker);
  c->commit_timer_ = env.timer([self] {
    self->commit_waits_ = false;
    self->commit_due_ = true;
    self->pump();
  });
  c->retry_timer_ = env.timer([self] {
    self->retry_waits_ = false;
    self->pump();
  });
  c->retain_timer_ = env.timer([self] {
    self->report_lost_blocks();
    self->retain();
  });
  c->retain_timer_->start(kRetainEveryNs, kRetainEveryNs);
  c->listen_timer_ = env.timer([self] { self->listen(); });
  if (c->options_.config == nullptr) return c;
  const auto query = [self](auto work, auto done) { self->query(std::move(work), std::move(done)); };
  const auto archived_bytes = [self] { return self->stats_.stored_bytes; };
  const auto archived = [self](const auto& logs) {
    for (const auto& [epoch, sequence] : logs) {
      uint64_t& known = self->archived_[epoch];
      if (sequence <= known) continue;
      known = sequence;
      if (self->collector_) self->collector_->archived(epoch, sequence);
    }
  };
  auto bucket =
      BucketService::start(env, {c->options_.config, c->folder_, &c->files_, c->options_.cluster_ready, query,
                                 archived_bytes, archived, c->options_.report_error, c->options_.info});
  if (!bucket) return tl::unexpected(bucket.error());
  c->bucket_ = std::move(*bucket);
  return c;
}

// Hosts that were connected before a restart, which are expected first.
std::vector<std::pair<std::string, TimeNs>> CollectorService::known_addresses() {
  std::vector<std::pair<std::string, TimeNs>> out;
  const auto rows = archive_->hosts();
  if (!rows) return out;
  for (const store::HostRow& row : *rows) {
    if (row.seen_ns == kNoTime) continue;
    if (auto address = host_about(row.about).address) out.emplace_back(std::move(*address), row.seen_ns);
  }
  return out;
}

std::vector<std::string> CollectorService::known_hosts() {
  std::vector<std::string> out;
  if (const auto rows = archive_->hosts())
    for (const store::HostRow& row : *rows) out.push_back(row.host);
  return out;
}

void CollectorService::listen() {
  if (collector_ || stopping_) return;
  collect::CollectorOptions options = options_.limits;
  options.listen = options_.listen;
  options.tls = options_.tls;
  options.program = CULPRIT_VERSION;
  options.connections = std::min(options.connections, io::input_descriptors() / 4 * 3);
  options.unknown_connections = std::min(options.unknown_connections, options.connections / 4);
  auto started = collect::Collector::start(env_, std::move(options), *this);
  if (started) {
    collector_ = std::move(*started);
    listen_trouble_.clear();
    options_.info(fmt::format("agents may connect to {}{}", collector_->address(),
                              options_.tls ? "" : ", without TLS: their names are not proven"));
    return;
  }
  if (started.error().text != listen_trouble_)
    options_.report_error(started.error().text + "; the rest works");
  listen_trouble_ = started.error().text;
  listen_timer_->start(5 * kNsPerSecond);
}

// ---- interface of collect

void CollectorService::hello(const peer::Hello& hello, HelloDone done) {
  CULPRIT_CHECK(owner_.here());
  ArchiveItem item;
  item.hello = hello;
  item.answer = std::move(done);
  if (bucket_)
    item.answer = [this, done = std::move(item.answer)](Result<std::vector<peer::LogMark>> marks) {
      if (!marks) return done(std::move(marks));
      for (peer::LogMark& mark : *marks)
        if (mark.log == peer::Log::kEvidence) {
          const auto known = archived_.find(mark.epoch);
          mark.archived = known == archived_.end() ? 0 : known->second;
        }
      done(std::move(marks));
    };
  queue_.push_back(std::move(item));
  begin_work();
}

void CollectorService::on_batch(Batch batch, std::function<void(Status)> done) {
  CULPRIT_CHECK(owner_.here());
  ArchiveItem item;
  item.batch = std::move(batch);
  item.done = std::move(done);
  gathered_bytes_ += item.batch.bytes;
  gathered_items_ += item.batch.items.size();
  queue_.push_back(std::move(item));
  if (!commit_waits_ || gathered_bytes_ >= kGatherBytes || gathered_items_ >= kWorkItems) begin_work();
}

void CollectorService::query(std::function<void(store::Archive&)> work, std::function<void()> done) {
  CULPRIT_CHECK(owner_.here());
  enqueue(std::move(work), std::move(done));
  begin_work();
}

void CollectorService::enqueue(std::function<void(store::Archive&)> work, std::function<void()> done) {
  ArchiveItem item;
  item.work = std::move(work);
  item.worked = std::move(done);
  // Queries do not wait for a failing disk or for the engine.
  if (paused_ || retry_waits_ || counters_.engine_bytes > kEngineRelease)
    worker_->submit([this, work = std::move(item.work)] { work(*archive_); }, std::move(item.worked));
  else
    queue_.push_back(std::move(item));
}

void CollectorService::status(const std::string& host, const peer::Status& status) {
  CULPRIT_CHECK(owner_.here());
  HostFacts& facts = hosts_[host];
  facts.status = status;
  const TimeNs now = env_.now(io::Clock::kWall);
  facts.seen_ns = now;
  if (facts.noted_ns != kNoTime && now - facts.noted_ns < kNoteEveryNs) return;
  facts.noted_ns = now;
  note(facts);
}

// Stores the state of a host that may remain disconnected after a restart. The write waits for the next work,
// at the latest retain(): only a commit makes it durable.
void CollectorService::note(const HostFacts& facts) {
  enqueue([host = facts.host, now = facts.seen_ns, about = to_json(about_of(facts))](
              store::Archive& archive) { archive.note_host(host, now, about); },
          {});
}

void CollectorService::connected(const std::string& host, const peer::Hello& hello,
                                 const std::string& address) {
  const TimeNs now = env_.now(io::Clock::kWall);
  HostFacts& facts = hosts_[host];
  facts.host = host;
  facts.connected = true;
  facts.address = address;
  facts.program = hello.program;
  facts.boot_id = hello.boot_id;
  facts.since_ns = facts.seen_ns = now;
  facts.clock_ahead_ns = hello.time_ns - now;
  facts.left.clear();
  options_.info(fmt::format("host {} is connected from {}, with culpritd {}", to_terminal(host), address,
                            to_terminal(hello.program)));
  facts.noted_ns = now;
  note(facts);
  report_agent(host, kNoTime);
  if (options_.presence) options_.presence(host, hello.boot_id);
  if (const auto wanted = wanted_.find(host); wanted != wanted_.end())
    for (const peer::Wanted& one : wanted->second) collector_->want(host, one);
}

void CollectorService::disconnected(const std::string& host, const std::string& why) {
  CULPRIT_CHECK(owner_.here());
  HostFacts& facts = hosts_[host];
  facts.connected = false;
  if (options_.presence) options_.presence(host, "");
  facts.left = why;
  facts.since_ns = facts.seen_ns = env_.now(io::Clock::kWall);
  if (!stopping_) {  // a stop of the collector is not the host's reason
    note(facts);
    report_agent(host, facts.since_ns);
  }
  options_.info(fmt::format("host {} is not connected any more: {}", to_terminal(host), to_terminal(why)));
}

// Reports the connection state to the engine, so that a silent agent does not look like a silent host.
void CollectorService::report_agent(const std::string& host, TimeNs away_since) {
  options_.engine->change([host, away_since](std::span<LiveJobs* const> all, TimeNs) {
    for (LiveJobs* live : all) live->agent_away(host, away_since);
  });
}

void CollectorService::refused(peer::Refusal code, const std::string& sentence) {
  CULPRIT_CHECK(owner_.here());
  options_.report_error(
      fmt::format("an agent is refused ({}): {}", peer::name_of(code), to_terminal(sentence)));
}

void CollectorService::want(const std::vector<std::string>& hosts, TimeNs at, const std::string& reason) {
  CULPRIT_CHECK(owner_.here());
  const peer::Wanted wanted{at, at, reason};
  for (const std::string& host : hosts) {
    if (!wanted_.contains(host) && wanted_.size() >= kWantedHosts) {
      ++counters_.wants_untaken;
      continue;
    }
    std::deque<peer::Wanted>& of_host = wanted_[host];
    // A time within an earlier request is already covered.
    const TimeNs reported = of_host.empty() ? kNoTime : of_host.back().to_ns;
    if (reported != kNoTime && at >= reported && at - reported < kOneTimeNs) continue;
    if (of_host.size() == kWantedPerHost) of_host.pop_front();
    of_host.push_back(wanted);
    ++counters_.wants;
    if (!collector_ || !collector_->want(host, wanted)) ++counters_.wants_untaken;
  }
}

size_t CollectorService::ask(const std::vector<std::string>& hosts, const peer::Message& request) {
  CULPRIT_CHECK(owner_.here());
  Counters::Asked& asked = std::holds_alternative<peer::StepsWanted>(request)    ? counters_.steps
                           : std::holds_alternative<peer::StacksWanted>(request) ? counters_.stacks
                           : std::holds_alternative<peer::CheckHost>(request)    ? counters_.checks
                           : std::holds_alternative<peer::AlignHost>(request)    ? counters_.alignments
                           : std::holds_alternative<peer::AlignJudged>(request)  ? counters_.judged
                           : std::holds_alternative<peer::Advise>(request)       ? counters_.advice
                                                                                 : counters_.ends;
  size_t sent = 0;
  for (const std::string& host : hosts) {
    ++asked.times;
    collector_ && collector_->want(host, request) ? ++sent : ++asked.unsent;
  }
  return sent;
}

// ---- the archive's worker

void CollectorService::begin_work() {
  work_due_ = true;
  pump();
}

// The worker does one work at a time for the archive, in the order of arrival.
void CollectorService::pump() {
  CULPRIT_CHECK(owner_.here());
  if (busy_since_ns_ != kNoTime || retry_waits_ || (!work_due_ && !commit_due_)) return;
  auto work = std::make_shared<ArchiveWork>();
  uint64_t bytes = 0;
  size_t items = 0;
  const bool holds = paused_ || counters_.engine_bytes > kEngineHold;
  while (!holds && !queue_.empty() && bytes < kWorkBytes && items < kWorkItems) {
    bytes += queue_.front().batch.bytes;
    items += queue_.front().batch.items.size();
    work->items.push_back(std::move(queue_.front()));
    queue_.pop_front();
  }
  if (queue_.empty()) gathered_bytes_ = gathered_items_ = 0;
  work_due_ = !queue_.empty();
  work->commits = std::exchange(commit_due_, false);
  if (work->items.empty() && !work->commits) return;
  work->now = env_.now(io::Clock::kWall);
  work->direct = direct_;
  busy_since_ns_ = env_.now(io::Clock::kMonotonic);
  worker_->submit([this, work] { writer_->run(*work); },
                  [this, work] {
                    busy_since_ns_ = kNoTime;
                    worked(*work);
                  });
}

void CollectorService::worked(ArchiveWork& work) {
  CULPRIT_CHECK(owner_.here());
  const bool failed = !work.written;
  // Items that the disk rejected return to the front of the queue.
  for (auto item = work.items.rbegin(); item != work.items.rend(); ++item)
    if (!item->finished) queue_.push_front(std::move(*item));
  if (failed) {
    commit_due_ = commit_due_ || work.commits;
    work_due_ = retry_waits_ = true;
    retry_timer_->start(kArchiveRetryNs);
  } else if (work.dirty) {
    commit_after(kGatherNs);
  }
  std::vector<RemoteBatch> fresh;
  for (ArchiveItem& item : work.items)
    std::move(item.fresh.begin(), item.fresh.end(), std::back_inserter(fresh));
  if (!fresh.empty()) feed_engine(std::move(fresh));
  for (ArchiveItem& item : work.items) {
    if (!item.finished) continue;
    if (item.answer) item.answer(std::move(item.marks));
    if (item.done) item.done(item.outcome);
    if (item.worked) item.worked();
  }
  acknowledge(work);
  if (!failed) pump();
}

void CollectorService::acknowledge(const ArchiveWork& work) {
  CULPRIT_CHECK(owner_.here());
  if (work.stats.orphans > 0 && stats_.orphans == 0)
    options_.report_error(
        "archive: a host sent bytes of a source that no frame of it declared; they are "
        "stored, but cannot be read (culprit_archive_undeclared_pieces_total)");
  stats_ = work.stats;
  // A successful append may be in memory only, so it does not prove that the disk works.
  if (!work.written || work.commits) report_status(work.written);
  if (work.commits) ++(work.written ? counters_.commits : counters_.failed_commits);
  if (!collector_) return;
  for (const store::CommittedLog& log : work.committed) collector_->committed(log.epoch, log.sequence);
}

void CollectorService::commit_after(TimeNs after) {
  if (std::exchange(commit_waits_, true)) return;
  commit_timer_->start(after);
}

// Queues all batches as one work, so that time-dependent checks run once.
void CollectorService::feed_engine(std::vector<RemoteBatch>&& batches) {
  size_t bytes = 0;
  for (const RemoteBatch& batch : batches) bytes += batch.weight();
  if (counters_.engine_bytes <= kEngineHold && counters_.engine_bytes + bytes > kEngineHold)
    ++counters_.engine_holds;
  counters_.engine_bytes += bytes;
  options_.engine->query(
      [all = std::make_shared<const std::vector<RemoteBatch>>(std::move(batches))](LiveJobs& live,
                                                                                   TimeNs now) {
        for (const RemoteBatch& batch : *all) live.ingest(batch, now);
      },
      [this, bytes] {
        counters_.engine_bytes -= bytes;
        if (counters_.engine_bytes <= kEngineRelease) pump();
      });
}

// Reports each change of the status once.
void CollectorService::report_status(const Status& status) {
  CULPRIT_CHECK(owner_.here());
  const std::string now = status ? "" : status.error().text;
  if (now == trouble_) return;
  if (!now.empty() && trouble_.empty())
    options_.report_error(fmt::format("{}; {}", now, kNothingAcknowledged));
  if (now.empty()) options_.report_error("archive: it can be written again");
  trouble_ = now;
}

// ---- replay after a restart

void CollectorService::restore(Reading reading, std::function<void(bool passed_over)> done) {
  CULPRIT_CHECK(owner_.here());
  ArchiveRestoreOptions options;
  options.engine = [this, again = reading.again](auto work, auto worked) {
    again ? options_.engine->query_second(std::move(work), std::move(worked))
          : options_.engine->query(std::move(work), std::move(worked));
  };
  if (reading.again) {
    options.part_bytes = kSecondPartBytes;
  } else {
    options.whole_bytes = options_.read_twice_above;
    direct_ = false;
    counters_.restoring = true;
  }
  options.archive = archive_.get();
  options.writer = writer_.get();
  options.worker = worker_.get();
  options.folder = folder_;
  options.ended = std::move(reading.ended_jobs);
  options.report_error = options_.report_error;
  options.committed = [this](const ArchiveWork& work) { acknowledge(work); };
  options.pause = [this] { paused_ = true; };
  options.done = [this, done = std::move(done)](bool passed_over) {
    restore_.reset();
    done(passed_over);
  };
  restore_ = std::make_unique<ArchiveRestore>(env_, files_, std::move(options));
  restore_->begin();
}

void CollectorService::go_on() {
  CULPRIT_CHECK(owner_.here());
  counters_.restoring = false;
  direct_ = true;
  paused_ = false;
  pump();
}

// ---- the rest

void CollectorService::retain() {
  CULPRIT_CHECK(owner_.here());
  if (paused_ || stopping_) return;
  auto status = std::make_shared<Status>();
  const TimeNs now = env_.now(io::Clock::kWall);
  const auto running = std::make_shared<std::vector<std::string>>();
  options_.engine->query(
      [running](LiveJobs& live, TimeNs) {
        for (const LiveJobSummary& job : live.jobs())
          if (job.state == JobState::kRunning) running->push_back(job.id);
      },
      [this, status, running, now] {
        query([status, running, now](store::Archive& archive) { *status = archive.retain(*running, now); },
              [this, status] {
                if (!*status) options_.report_error(status->error().text);
              });
      });
}

// At most once a minute: a sender of invalid blocks usually sends many.
void CollectorService::report_lost_blocks() {
  const LiveCounts& counts = options_.engine->counts();
  const uint64_t lost = counts.remote_blocks_lost - std::exchange(reported_lost_, counts.remote_blocks_lost);
  if (lost == 0) return;
  options_.report_error(fmt::format(
      "{} of what agents saw cannot be read, the last of host {}: jobs miss it until these agents "
      "start from zero; the evidence is kept",
      counted(lost, "block"), to_terminal(counts.remote_lost_of)));
}

void CollectorService::set_tls(std::shared_ptr<const io::TlsCredentials> tls) {
  options_.tls = tls;
  if (collector_) collector_->set_tls(std::move(tls));
}

void CollectorService::set_retention(uint64_t max_bytes, TimeNs max_age_ns) {
  query([=](store::Archive& archive) { archive.set_retention(max_bytes, max_age_ns); }, {});
}

void CollectorService::stop(std::function<void()> done) {
  CULPRIT_CHECK(owner_.here());
  stopping_ = true;
  if (bucket_) bucket_->stop();
  if (restore_) restore_->stop();
  if (collector_) collector_->stop();
  retain_timer_->stop();
  commit_timer_->stop();
  retry_timer_->stop();
  const TimeNs now = env_.now(io::Clock::kWall);
  auto status = std::make_shared<Status>();
  // Frames in memory are unacknowledged: their agents send them again.
  for (ArchiveItem& item : queue_)
    if (item.work)
      worker_->submit([this, work = std::move(item.work)] { work(*archive_); }, std::move(item.worked));
  std::erase_if(queue_, [](const ArchiveItem& item) { return !item.answer && item.batch.items.empty(); });
  worker_->submit(
      [this, now, status] {
        if (auto moved = archive_->commit(now); !moved) *status = tl::unexpected(moved.error());
      },
      [this, status, done = std::move(done)] {
        if (!*status) options_.report_error(status->error().text);
        done();
      });
}

void CollectorService::abandon() { worker_->abandon(); }

std::optional<std::string> CollectorService::unhealthy(TimeNs mono) const {
  if (!trouble_.empty()) return "the archive cannot be written: " + trouble_;
  if (!listen_trouble_.empty()) return "agents cannot connect: " + listen_trouble_;
  if (busy_since_ns_ != kNoTime && mono - busy_since_ns_ > kArchiveStuckNs)
    return fmt::format("the archive has not come back for {}", format_duration(mono - busy_since_ns_));
  return std::nullopt;
}

std::vector<HostFacts> CollectorService::hosts() const {
  std::map<std::string, TimeNs> received;
  if (collector_)
    for (const collect::HostConnection& c : collector_->hosts()) received[c.host] = c.last_received_ns;
  std::vector<HostFacts> out;
  for (const auto& [name, facts] : hosts_) {
    out.push_back(facts);
    if (const auto at = received.find(name); at != received.end()) out.back().seen_ns = at->second;
  }
  return out;
}

collect::CollectorStats CollectorService::connections() const {
  return collector_ ? collector_->stats() : collect::CollectorStats();
}
std::string CollectorService::address() const { return collector_ ? collector_->address() : ""; }

CollectorService::Counters CollectorService::counters() const {
  Counters counters = counters_;
  counters.waiting = queue_.size();
  if (restore_ && !counters_.restoring)
    counters.read_again_bytes = restore_->bytes_read(), counters.to_read_again_bytes = restore_->bytes();
  return counters;
}

}  // namespace culprit::app
