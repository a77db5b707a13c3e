#include "app/daemon/intake/intake.h"

#include <algorithm>
#include <memory>

#include "app/daemon/intake/batch_parts.h"
#include "base/check.h"

namespace culprit::app {
namespace {

// Pending bytes to the store or the pipeline at which sources pause, and below which they continue: some
// rounds of a tailer, so that store and pipeline do not wait for each other.
constexpr size_t kHoldBytes = 4 << 20;
constexpr size_t kReleaseBytes = 2 << 20;

// Adds a constant, since an empty batch takes room too.
size_t weight(const PieceBatch& batch) { return batch.bytes() + 64; }

}  // namespace

// Sets the job id first, so that store and pipeline have the same id.
void Intake::take(PieceBatch&& batch) {
  if (parts_.name_job)
    for (StreamInfo& opened : batch.opened) parts_.name_job(opened);
  for (PieceBatch& part : parts_of(std::move(batch), store::kBatchBytes)) append(std::move(part));
}

void Intake::append(PieceBatch&& part) {
  const SharedBatch shared = std::make_shared<const PieceBatch>(std::move(part));
  const size_t bytes = weight(*shared);
  AgentCounts& counts = *parts_.counts;
  counts.store_bytes += bytes;
  if (Restore* restore = parts_.restore()) restore->add_uncommitted(shared);
  if (parts_.observe) parts_.observe(shared);
  const bool first = parts_.pipeline->precedes_store();
  if (first) process(shared);
  parts_.recorder->append(shared, [this, bytes] {
    if (Restore* restore = parts_.restore()) restore->appended();
    CULPRIT_CHECK(parts_.counts->store_bytes >= bytes);
    parts_.counts->store_bytes -= bytes;
    resume();
  });
  if (!parts_.restore() && !first) process(shared);
  if (std::max(counts.store_bytes, counts.engine_bytes) >= kHoldBytes) pause();
}

void Intake::process(SharedBatch batch) {
  const size_t bytes = weight(*batch);
  parts_.counts->engine_bytes += bytes;
  parts_.pipeline->append(std::move(batch), [this, bytes] {
    CULPRIT_CHECK(parts_.counts->engine_bytes >= bytes);
    parts_.counts->engine_bytes -= bytes;
    resume();
  });
}

void Intake::hold_for_restore() {
  restore_holds_ = true;
  pause();
}

void Intake::restored(std::vector<SharedBatch>&& rest) {
  for (SharedBatch& batch : rest) process(std::move(batch));
  restore_holds_ = false;
  resume();
}

void Intake::pause() {
  if (held_) return;
  held_ = true;
  ++parts_.counts->holds;
  parts_.pause();
}

void Intake::resume() {
  const AgentCounts& counts = *parts_.counts;
  if (!held_ || restore_holds_ || std::max(counts.store_bytes, counts.engine_bytes) > kReleaseBytes) return;
  held_ = false;
  parts_.resume();
}

}  // namespace culprit::app
