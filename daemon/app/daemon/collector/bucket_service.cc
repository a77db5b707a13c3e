#include "app/daemon/collector/bucket_service.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/hash.h"
#include "base/text.h"

namespace culprit::app {
namespace {

constexpr TimeNs kEveryNs = 10 * kNsPerSecond;
constexpr TimeNs kReadWithinNs = 15 * kNsPerSecond;
constexpr TimeNs kFencedNs = 60 * kNsPerSecond;
constexpr int kBackoffMost = 6;  // 64 s
// Objects that one question looks at, the newest first: an index is some kilobytes, and is cached.
constexpr size_t kObjectsLookedAt = 4000;

// Of the bucket, and not of one object.
bool is_away(const Error& error) { return error.code == ErrorCode::kIo || error.code == ErrorCode::kDenied; }

std::string unhex(std::string_view text) {
  const auto digit = [](char c) { return c <= '9' ? c - '0' : c - 'a' + 10; };
  std::string out;
  for (size_t i = 0; i + 1 < text.size(); i += 2)
    out += static_cast<char>(digit(text[i]) * 16 + digit(text[i + 1]));
  return out;
}

}  // namespace

// Used by the reading worker; its objects also by readers of evidence.
struct BucketService::Reading {
  Reading(std::string conninfo, store::bucket::Bucket bucket,
          std::shared_ptr<store::bucket::ObjectCache> its_cache)
      : rows(std::move(conninfo)), cache(its_cache), objects(std::move(bucket), std::move(its_cache)) {}
  store::postgres::SegmentStore rows;
  std::shared_ptr<store::bucket::ObjectCache> cache;
  store::bucket::ObjectReader objects;

  struct Opened {
    std::vector<store::bucket::StoredObject> objects;
    std::vector<store::BlocksRecord> blocks;
    std::optional<Error> away;  // since an object was asked for
  };
  struct Own {
    std::string archive;                  // hex
    uint64_t first_segment = UINT64_MAX;  // none: all is in objects alone
  };
  void find(const store::StoredQuery& query, const Own& own, Found& found, Opened& opened);
};

void BucketService::Reading::find(const store::StoredQuery& query, const Own& own, Found& found,
                                  Opened& opened) {
  std::vector<store::bucket::FoundObject> of;
  std::vector<store::bucket::UnreadObject> unread;
  const uint64_t hosts = query.host.empty() ? ~uint64_t{0} : name_bit(query.host);
  const uint64_t jobs = query.job.empty() ? ~uint64_t{0} : name_bit(query.job) | name_bit("");
  const auto all = rows.find(hosts, jobs, kObjectsLookedAt);
  if (!all) unread.push_back({"", 0, all.error().text});
  for (const store::postgres::ObjectRow& row : all ? *all : std::vector<store::postgres::ObjectRow>()) {
    // What this archive still has itself.
    if (row.archive == own.archive && row.from_segment >= own.first_segment) continue;
    store::bucket::StoredObject object{row.key, row.number, row.bytes, row.index_at, unhex(row.index_sha256)};
    auto index = objects.index(object);
    if (!index) {
      unread.push_back({row.archive, row.number, index.error().text});
      if (is_away(index.error())) break;  // the others are as little there
      continue;
    }
    store::bucket::restrict_to(index->logs, query);
    if (index->logs.empty()) continue;
    of.push_back({opened.objects.size(), row.archive, row.number, std::move(index->logs)});
    opened.objects.push_back(std::move(object));
    opened.blocks.push_back(std::move(index->blocks));
  }
  if (all && all->size() == kObjectsLookedAt)
    unread.push_back({all->back().archive, all->back().number,
                      fmt::format("only the newest {} objects were looked at", kObjectsLookedAt)});
  store::bucket::merge(found.streams, of, unread);
  if (!unread.empty()) found.unread = unread.front().why;
}

BucketService::BucketService(io::Env& env, BucketServiceOptions options)
    : env_(env), options_(std::move(options)) {
  const Config::Cluster& cluster = options_.config->cluster;
  state_.bucket = cluster.bucket.name;
  const std::string member = cluster.name.empty() ? options_.config->host.name : cluster.name;
  io::Files& files = *options_.files;
  uploader_ = std::make_shared<BucketUploader>(
      files, BucketUploader::Options{bucket_options(), cluster.database, member, options_.archive_folder,
                                     cluster.bucket.max_age_ns});
  store::bucket::BucketOptions reads = bucket_options();
  reads.on_try = {};
  reads.tries = 2;  // a person waits
  reads.within_ns = kReadWithinNs;
  reading_ =
      std::make_shared<Reading>(cluster.database, store::bucket::Bucket(std::move(reads)),
                                std::make_shared<store::bucket::ObjectCache>(
                                    files, options_.config->state_dir + "/bucket", cluster.bucket.cache));
}

BucketService::~BucketService() {
  stop();
  for (const auto& worker : {&worker_, &reader_})
    if (*worker && (*worker)->queued() > 0) (*worker)->abandon();
}

store::bucket::BucketOptions BucketService::bucket_options() const {
  const Config::Cluster::Bucket& bucket = options_.config->cluster.bucket;
  store::bucket::BucketOptions out;
  out.place = {bucket.url, bucket.name, bucket.region, bucket.style == BucketStyle::kHost};
  out.credentials_file = bucket.credentials;
  out.ca_file = bucket.ca;
  out.keep_going = [going = going_] { return going->load(); };
  out.on_try = [puts = puts_] { ++*puts; };
  return out;
}

Result<std::unique_ptr<BucketService>> BucketService::start(io::Env& env, BucketServiceOptions options) {
  const Config::Cluster& cluster = options.config->cluster;
  if (!cluster.used() || !cluster.bucket.used()) return nullptr;
  std::unique_ptr<BucketService> out(new BucketService(env, std::move(options)));
  for (const auto& [to, name] : {std::pair(&out->worker_, "bucket"), {&out->reader_, "bucket-read"}}) {
    auto worker = env.worker(name);
    if (!worker) return tl::unexpected(worker.error());
    *to = std::move(*worker);
  }
  out->timer_ = env.timer([self = out.get()] { self->beat(); });
  out->timer_->start(kNsPerSecond, kNsPerSecond);
  return out;
}

void BucketService::stop() {
  *going_ = false;
  if (timer_) timer_->stop();
}

// ---- putting

void BucketService::beat() {
  const TimeNs now = env_.now(io::Clock::kMonotonic);
  if (at_work_ || !*going_ || now < next_ns_ || (looked_ns_ == kNoTime && !options_.ready())) return;
  const uint64_t bytes = options_.archived_bytes();
  const uint64_t fresh = bytes - looked_bytes_;
  const bool waits = fresh > 0 || state_.waiting_bytes > 0;
  const bool due = looked_ns_ == kNoTime || now - looked_ns_ >= kEveryNs;
  if (!more_ && fresh < store::bucket::kObjectBytes && !(waits && due)) return;
  at_work_ = true;
  looked_ns_ = now;
  looked_bytes_ = bytes;
  const auto plan = std::make_shared<UploadPlan>();
  plan->now = env_.now(io::Clock::kWall);
  options_.query(
      [plan](store::Archive& archive) {
        plan->archive = archive.epoch();
        plan->committed = archive.evidence_logs();
        if (auto segments = archive.evidence_segments())
          plan->segments = std::move(*segments);
        else
          plan->status = tl::unexpected(segments.error());
      },
      [this, plan] {
        if (!plan->status || !*going_) return finish(*plan);
        worker_->submit([uploader = uploader_, plan] { uploader->run(*plan); },
                        [this, plan] { finish(*plan); });
      });
}

void BucketService::finish(const UploadPlan& plan) {
  at_work_ = false;
  more_ = plan.more;
  state_.objects += plan.objects;
  state_.bytes += plan.bytes;
  if (plan.status || plan.waiting_bytes > 0) state_.waiting_bytes = plan.waiting_bytes;
  if (plan.objects > 0) state_.put_ns = plan.now;
  if (!plan.archived.empty()) options_.archived(plan.archived);
  if (plan.lost_segments > 0)
    options_.report_error(fmt::format(
        "bucket {}: {} of the archive {} deleted before all of it was in an object", state_.bucket,
        counted(plan.lost_segments, "segment"), plan.lost_segments == 1 ? "was" : "were"));
  state_.lost_segments += plan.lost_segments;
  const TimeNs now = env_.now(io::Clock::kMonotonic);
  if (plan.fenced) {
    next_ns_ = now + kFencedNs;
    return note(fail(ErrorCode::kBusy,
                     "another process uploads this archive: is this member's name or "
                     "state_dir used twice?"));
  }
  failures_ = plan.status ? 0 : std::min(failures_ + 1, kBackoffMost);
  state_.failures += !plan.status;
  next_ns_ = plan.status ? 0 : now + (kNsPerSecond << failures_);
  more_ = more_ || !plan.status;
  note(plan.status);
}

// Said once when it begins and once when it ends.
void BucketService::note(const Status& status) {
  if (!*going_) return;
  const bool was = !state_.trouble.empty();
  state_.trouble = status ? "" : status.error().text;
  if (!status && !was) {
    state_.trouble_since_ns = env_.now(io::Clock::kWall);
    options_.report_error(state_.trouble + "; evidence waits in the archive until it is in the bucket");
  }
  if (status && was) {
    state_.trouble_since_ns = kNoTime;
    options_.info(fmt::format("bucket {}: evidence is put again", state_.bucket));
  }
}

BucketService::State BucketService::state() const {
  State out = state_;
  out.puts = *puts_;
  out.cache_bytes = reading_->cache->bytes();
  return out;
}

// ---- reading

void BucketService::find(const store::StoredQuery& query, std::vector<store::HostStream> streams,
                         std::function<void(Found)> done) {
  const auto found = std::make_shared<Found>();
  const auto opened = std::make_shared<Reading::Opened>();
  found->streams = std::move(streams);
  found->open_object = [reading = reading_, opened](uint64_t n) -> Result<store::SegmentReader> {
    if (opened->away) return tl::unexpected(*opened->away);
    auto object = reading->objects.open(opened->objects.at(n), opened->blocks.at(n));
    if (!object && is_away(object.error())) opened->away = object.error();
    return object;
  };
  const auto own = std::make_shared<Reading::Own>();
  options_.query(
      [own](store::Archive& archive) {
        own->archive = hex64(archive.epoch());
        const auto segments = archive.evidence_segments();
        if (segments && !segments->empty()) own->first_segment = segments->front().segment;
      },
      [this, query, found, opened, own, done = std::move(done)] {
        reader_->submit(
            [reading = reading_, query, found, opened, own] { reading->find(query, *own, *found, *opened); },
            [found, done] { done(std::move(*found)); });
      });
}

}  // namespace culprit::app
