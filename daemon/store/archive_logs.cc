#include "store/archive_logs.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace culprit::store {

void ArchiveLogs::add_known(std::map<uint64_t, ArchivedLog> logs) {
  logs_ = std::move(logs);
  for (const auto& [epoch, log] : logs_) {
    of_host_[log.origin.host].push_back(epoch);
    next_row_ = std::max(next_row_, log.row + 1);
  }
}

ArchivedLog& ArchiveLogs::add(const LogOrigin& origin) {
  ArchivedLog& log = logs_[origin.epoch];
  log.origin = origin;
  log.row = next_row_++;
  log.loaded = true;
  of_host_[origin.host].push_back(origin.epoch);
  return log;
}

ArchivedLog* ArchiveLogs::find(uint64_t epoch) {
  const auto found = logs_.find(epoch);
  return found == logs_.end() ? nullptr : &found->second;
}

size_t ArchiveLogs::remove_empty(const LogOrigin& origin) {
  std::vector<uint64_t>& of_host = of_host_[origin.host];
  std::erase_if(of_host, [&](uint64_t epoch) {
    const ArchivedLog& log = logs_.at(epoch);
    const bool empty = !log.in_index && !log.touched && log.origin.kind == origin.kind;
    if (empty) logs_.erase(epoch);
    return empty;
  });
  return of_host.size();
}

Status ArchiveLogs::load(ArchivedLog& log, ArchiveIndex& index) {
  if (log.loaded) return {};
  if (const Status loaded = index.load_streams(log); !loaded) return loaded;
  streams_in_memory_ += log.streams.size();
  return {};
}

bool ArchiveLogs::read(std::string_view content, ArchivedLog& log, LogTaker& taker) {
  const size_t streams = log.streams.size();
  if (!read_records(content, taker)) return false;
  streams_in_memory_ += log.streams.size() - streams;
  return true;
}

void ArchiveLogs::unload(ArchivedLog& log) {
  log.streams.clear();
  log.text_bytes = 0;
  log.loaded = false;
}

// ---- commit

void ArchiveLogs::touch(ArchivedLog& log) {
  if (!std::exchange(log.touched, true)) touched_.push_back(log.origin.epoch);
}

std::vector<ArchivedLog*> ArchiveLogs::touched() {
  std::vector<ArchivedLog*> logs;
  for (const uint64_t epoch : touched_) logs.push_back(&logs_.at(epoch));
  return logs;
}

std::vector<CommittedLog> ArchiveLogs::committed() {
  std::vector<CommittedLog> moved;
  for (const uint64_t epoch : touched_) {
    ArchivedLog& log = logs_.at(epoch);
    for (const StreamId id : log.touched_streams) {
      ArchivedStream& stream = log.streams.at(id);
      stream.touched = false;
      stream.in_index = true;
      stream.extent = {};
    }
    log.touched_streams.clear();
    log.parts.clear();
    log.left_extents.clear();
    log.new_holes.clear();
    log.new_skips.clear();
    log.touched = false;
    log.in_index = true;
    CULPRIT_CHECK(log.sequence >= log.committed);
    if (std::exchange(log.committed, log.sequence) != log.sequence) moved.push_back({epoch, log.sequence});
  }
  touched_.clear();
  if (streams_in_memory_ <= kArchiveStreamsInMemory) return moved;
  for (auto& [epoch, log] : logs_)
    if (log.in_index) unload(log);
  streams_in_memory_ = 0;
  return moved;
}

void ArchiveLogs::forget(const ArchiveIndex::Dropped& dropped) {
  for (const uint64_t epoch : dropped.epochs) {
    const auto found = logs_.find(epoch);
    if (found == logs_.end() || found->second.touched) continue;
    streams_in_memory_ -= std::min(streams_in_memory_, found->second.streams.size());
    unload(found->second);
  }
  for (const uint64_t epoch : dropped.removed) {
    const auto found = logs_.find(epoch);
    if (found == logs_.end()) continue;
    if (found->second.touched) {
      found->second.in_index = false;  // it must be loaded again
      continue;
    }
    std::erase(of_host_[found->second.origin.host], epoch);
    logs_.erase(found);
  }
}

}  // namespace culprit::store
