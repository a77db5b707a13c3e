#include "app/daemon/keep/archive_writer.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "store/segment.h"

namespace culprit::app {
namespace {

// Uncommitted bytes that start a commit earlier: half of what one host may send without an acknowledgement
// (CollectorOptions::credit_bytes).
constexpr uint64_t kCommitBytes = 2 << 20;

store::LogKind log_kind_of(peer::Log log) {
  return log == peer::Log::kCondensed ? store::LogKind::kCondensed : store::LogKind::kEvidence;
}

}  // namespace

void ArchiveWriter::run(ArchiveWork& work) {
  for (ArchiveItem& item : work.items) {
    if (item.work) {
      item.work(archive_);
    } else if (item.answer) {
      greet(item, work.now);
    } else {
      append(work, item);
      if (!work.written) break;
    }
    item.finished = true;
  }
  if (work.commits || archive_.stats().pending_bytes >= kCommitBytes) commit(work);
  work.dirty = !dirty_.empty();
  work.stats = archive_.stats();
}

// Looks up how far the host's logs are stored.
void ArchiveWriter::greet(ArchiveItem& item, TimeNs now) {
  std::vector<peer::LogMark> marks;
  for (const peer::LogBounds& log : item.hello.logs) {
    auto known = archive_.begin({log.epoch, item.hello.host, log_kind_of(log.log)}, now);
    if (!known) {
      item.marks = tl::unexpected(known.error());
      return;
    }
    marks.push_back({log.log, log.epoch, known->has_value(), known->value_or(0)});
    if (*known) committed_[log.epoch] = std::max(committed_[log.epoch], **known);
  }
  item.marks = std::move(marks);
}

// Appends the item's frames in order; after a disk failure the remaining frames are retried later.
void ArchiveWriter::append(ArchiveWork& work, ArchiveItem& item) {
  for (; item.next < item.batch.items.size(); ++item.next) {
    PieceBatch taken;
    const collect::LogItem& one = item.batch.items[item.next];
    const auto log = std::visit([](const auto& i) { return i.log; }, one);
    const uint64_t epoch = item.batch.epochs[static_cast<size_t>(log)];
    const bool to_engine = work.direct && log == peer::Log::kCondensed;
    const Status status = append_one(item, one, to_engine ? &taken : nullptr, work.now);
    if (!status && status.error().code != ErrorCode::kInvalid && status.error().code != ErrorCode::kDenied) {
      work.written = status;
      return;
    }
    dirty_.insert(epoch);
    if (!status) {
      item.outcome = status;
      return;
    }
    if (!taken.pieces.empty() || !taken.opened.empty())
      item.fresh.push_back({item.batch.host, epoch, std::move(taken)});
  }
}

// A host may write only to its own logs, and the announced values must match the frame's header.
Status ArchiveWriter::append_one(const ArchiveItem& item, const collect::LogItem& one, PieceBatch* taken,
                                 TimeNs now) {
  if (const auto* skipped = std::get_if<peer::Skipped>(&one))
    return archive_.skip(item.batch.epochs[static_cast<size_t>(skipped->log)],
                         {skipped->from, skipped->to, now, skipped->reason});
  const auto& frame = std::get<peer::Frame>(one);
  const auto header = store::decode_frame_header(frame.bytes);
  if (!header || header->epoch != item.batch.epochs[static_cast<size_t>(frame.log)] ||
      header->sequence != frame.sequence || static_cast<int>(header->kind) != static_cast<int>(frame.kind))
    return fail(ErrorCode::kInvalid,
                fmt::format("host {}: frame {} of its {} log differs from its announced digest",
                            item.batch.host, frame.sequence, peer::name_of(frame.log)));
  return archive_.append(frame.bytes, now, taken);
}

void ArchiveWriter::commit(ArchiveWork& work) {
  work.commits = true;
  auto moved = archive_.commit(work.now);
  if (!moved) {
    work.written = tl::unexpected(moved.error());
    return;
  }
  for (const store::CommittedLog& log : *moved) {
    committed_[log.epoch] = log.sequence;
    dirty_.insert(log.epoch);
  }
  // Includes logs whose frames were all stored earlier: their hosts wait for an acknowledgement.
  for (const uint64_t epoch : dirty_)
    if (const auto at = committed_.find(epoch); at != committed_.end())
      work.committed.push_back({epoch, at->second});
  dirty_.clear();
}

}  // namespace culprit::app
