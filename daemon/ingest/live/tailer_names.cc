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
  FolderNames& retained = folder.names;
  if (retained.lists++ == 0) named_.push_back(&folder);
  const uint64_t begun = mark();
  Look before, after;
  auto entries = std::make_shared<std::vector<Entry>>();
  retained.error = root_.look(folder.name, before);
  if (retained.error == 0) retained.error = root_.list(folder.name, kEntries, *entries);
  retained.settled = retained.error == 0 && time_.now - before.modified_ns > kSettledNs &&
                     root_.look(folder.name, after) == 0 && after.modified_ns == before.modified_ns;
  retained.sound = retained.settled || (retained.entries && *retained.entries == *entries);
  retained.entries = std::move(entries);
  retained.begun = begun;
  retained.modified_ns = before.modified_ns;
}

std::shared_ptr<const std::vector<Entry>> FolderLister::names(TailFolder& folder, uint64_t since) {
  FolderNames& retained = folder.names;
  Look now;
  if (retained.sound && retained.begun > since) return retained.entries;
  if (retained.settled && root_.look(folder.name, now) == 0 && now.modified_ns == retained.modified_ns)
    return retained.entries;
  while (retained.lists < kLists) {
    read(folder);
    // A folder that may not be listed has no names, now or later.
    const bool ours = retained.error == EMFILE || retained.error == ENFILE || retained.error == ENOMEM ||
                      retained.error == EIO;
    if (ours) return nullptr;
    if (retained.sound) return retained.entries;
  }
  return nullptr;
}

void FolderLister::forget() {
  for (TailFolder* folder : named_) folder->names = {};
  named_.clear();
}

}  // namespace culprit::ingest
