#include "ingest/live/tailer_names.h"

#include <cerrno>
#include <utility>

namespace culprit::ingest {
namespace {

// Names per folder. A list of this size takes a tenth of a second; further names are reported.
constexpr size_t kEntries = 200'000;
// Lists of one folder per round, for all its sources: one to find new names, one to prove that nothing moved
// meanwhile, and two more attempts.
constexpr int kLists = 4;

}  // namespace

void FolderLister::read(TailFolder& folder) {
  FolderNames& kept = folder.names;
  if (kept.lists++ == 0) named_.push_back(&folder);
  const uint64_t begun = mark();
  Look before, after;
  auto entries = std::make_shared<std::vector<Entry>>();
  kept.error = root_.look(folder.name, before);
  if (kept.error == 0) kept.error = root_.list(folder.name, kEntries, *entries);
  kept.settled = kept.error == 0 && time_.now - before.modified_ns > kSettledNs &&
                 root_.look(folder.name, after) == 0 && after.modified_ns == before.modified_ns;
  kept.sound = kept.settled || (kept.entries && *kept.entries == *entries);
  kept.entries = std::move(entries);
  kept.begun = begun;
  kept.modified_ns = before.modified_ns;
}

std::shared_ptr<const std::vector<Entry>> FolderLister::names(TailFolder& folder, uint64_t since) {
  FolderNames& kept = folder.names;
  Look now;
  if (kept.sound && kept.begun > since) return kept.entries;
  if (kept.settled && root_.look(folder.name, now) == 0 && now.modified_ns == kept.modified_ns)
    return kept.entries;
  while (kept.lists < kLists) {
    read(folder);
    // A folder that may not be listed has no names, now or later.
    const bool ours =
        kept.error == EMFILE || kept.error == ENFILE || kept.error == ENOMEM || kept.error == EIO;
    if (ours) return nullptr;
    if (kept.sound) return kept.entries;
  }
  return nullptr;
}

void FolderLister::forget() {
  for (TailFolder* folder : named_) folder->names = {};
  named_.clear();
}

}  // namespace culprit::ingest
