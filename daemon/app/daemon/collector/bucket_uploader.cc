#include "app/daemon/collector/bucket_uploader.h"

#include <fmt/format.h>

#include "base/clock.h"
#include "base/crash_point.h"
#include "base/hash.h"
#include "core/cluster/partition.h"
#include "store/bucket/sha256.h"

namespace culprit::app {
namespace {

// Of one call: then the archive's new segments are looked at.
constexpr int kObjectsMost = 8;
// Interval of removing old rows: 100,000 talkative hosts store 1,400 in a minute.
constexpr TimeNs kPruneEveryNs = 3600 * kNsPerSecond, kPruneAgainNs = 60 * kNsPerSecond;

uint64_t bits_of(const std::set<std::string>& names) {
  uint64_t out = 0;
  for (const std::string& name : names) out |= name_bit(name);
  return out;
}

}  // namespace

uint64_t name_bit(const std::string& name) { return uint64_t{1} << cluster::partition_of(name); }

BucketUploader::BucketUploader(io::Files& files, Options options)
    : BucketUploader(files, options, std::make_unique<store::bucket::Bucket>(options.bucket),
                     std::make_unique<store::postgres::SegmentStore>(options.conninfo)) {}

BucketUploader::BucketUploader(io::Files& files, Options options,
                               std::unique_ptr<store::bucket::Bucket> bucket,
                               std::unique_ptr<store::postgres::SegmentStore> rows)
    : options_(std::move(options)),
      its_bucket_(std::move(bucket)),
      its_rows_(std::move(rows)),
      bucket_(*its_bucket_),
      rows_(*its_rows_),
      maker_(files, options_.folder) {}

void BucketUploader::run(UploadPlan& plan) {
  plan.status = take(plan);
  for (int n = 0; plan.status && !plan.fenced; ++n) {
    if (n == kObjectsMost) {
      plan.more = true;
      break;
    }
    auto made = maker_.make(plan.segments, {mark_->segment, mark_->at},
                            {plan.archive, mark_->epoch, mark_->number + 1}, plan.now);
    if (!made) plan.status = tl::unexpected(made.error());
    plan.all = made && !*made;
    if (!made || !*made) break;
    plan.status = upload(plan, **made);
  }
  if (plan.all) plan.archived = plan.committed;
  if (plan.status && !plan.fenced) prune();
  if (mark_ && !plan.all) plan.waiting_bytes = waiting(plan);
  // Whether a put or a row came before its error is unknown. The next round asks, in an epoch of its own: no
  // key is ever put twice with different bytes.
  if (plan.fenced || !plan.status) mark_.reset();
}

// An object of an earlier epoch without a row is never read: it is removed. Those of later epochs are another
// process's, which may have added their rows since.
Status BucketUploader::take(UploadPlan& plan) {
  if (!mark_) {
    auto mark = rows_.take(hex64(plan.archive), options_.member);
    if (!mark) return tl::unexpected(mark.error());
    mark_ = std::move(*mark);
    swept_ = false;
  }
  if (!plan.segments.empty()) {
    const store::ReplayPlan::Part& last = plan.segments.back();
    const bool is_behind =
        last.segment < mark_->segment || (last.segment == mark_->segment && last.size < mark_->at);
    if (is_behind)
      return fail(
          ErrorCode::kInvalid,
          fmt::format("{}: a copy of an older archive: the bucket has it up to segment {}, this disk up "
                      "to segment {}; move it aside and restart",
                      options_.folder, mark_->segment, last.segment));
  }
  if (swept_) return {};
  const Status swept = sweep(plan);
  swept_ = swept.has_value();
  return swept;
}

Status BucketUploader::sweep(const UploadPlan& plan) {
  // The row of the last object is too old: which ones have rows is not known.
  if (mark_->number > 0 && mark_->last_key.empty()) return {};
  const std::string own = store::bucket::key_of({plan.archive, mark_->epoch, 0});
  for (std::string after = mark_->last_key;;) {
    const auto left = bucket_.list(store::bucket::prefix_of(plan.archive), after);
    if (!left) return tl::unexpected(left.error());
    for (const std::string& key : left->keys) {
      if (key >= own) return {};
      if (const Status removed = bucket_.remove(key); !removed) return removed;
      after = key;
    }
    if (!left->more || left->keys.empty()) return {};
  }
}

void BucketUploader::prune() {
  const TimeNs now = steady_now();
  if (options_.max_age_ns == 0 || (prune_ns_ != kNoTime && now < prune_ns_)) return;
  const auto pruned = rows_.prune(options_.max_age_ns);
  const bool more = pruned && *pruned == store::postgres::SegmentStore::kPrunedAtOnce;
  prune_ns_ = now + (more ? kPruneAgainNs : kPruneEveryNs);
}

Status BucketUploader::upload(UploadPlan& plan, const store::bucket::MadeObject& object) {
  using store::bucket::hex;
  using store::bucket::sha256;
  const std::string sum = sha256(object.bytes);
  store::postgres::ObjectRow row;
  row.archive = hex64(plan.archive);
  row.number = mark_->number + 1;
  row.epoch = mark_->epoch;
  row.member = options_.member;
  row.key = store::bucket::key_of({plan.archive, row.epoch, row.number});
  row.bytes = object.bytes.size();
  row.index_at = object.index_at;
  row.sha256 = hex(sum);
  row.index_sha256 = hex(sha256(std::string_view(object.bytes).substr(object.index_at)));
  row.hosts = bits_of(object.hosts);
  row.jobs = bits_of(object.jobs);
  row.from_segment = object.from.segment;
  row.from_at = object.from.at;
  row.to_segment = object.to.segment;
  row.to_at = object.to.at;
  crash_point("bucket.before_put");
  if (const Status put = bucket_.put(row.key, object.bytes, sum); !put) return put;
  crash_point("bucket.after_put");
  const auto added = rows_.add(row);
  if (!added) return tl::unexpected(added.error());
  crash_point("bucket.after_row");
  if (!*added) {
    plan.fenced = true;
    return {};
  }
  mark_->number = row.number;
  mark_->segment = row.to_segment;
  mark_->at = row.to_at;
  for (const auto& [epoch, sequence] : object.reached) plan.archived[epoch] = sequence;
  ++plan.objects;
  plan.bytes += row.bytes;
  plan.lost_segments += object.lost_segments;
  return {};
}

uint64_t BucketUploader::waiting(const UploadPlan& plan) const {
  uint64_t out = 0;
  for (const store::ReplayPlan::Part& part : plan.segments) {
    if (part.segment < mark_->segment) continue;
    const uint64_t done = part.segment == mark_->segment ? mark_->at : store::kSegmentHeaderBytes;
    out += part.size - std::min(part.size, done);
  }
  return out;
}

}  // namespace culprit::app
