#include "app/jobs/job_dumps.h"

#include <utility>

#include "base/heap_account.h"
#include "base/limits.h"
#include "ingest/flight_reader.h"

namespace culprit::app {
namespace {

// After this time the dump is abandoned: a file system hangs, or its process was killed.
constexpr TimeNs kPatience = 60 * kNsPerSecond;
// Memory for a larger text is returned to the kernel after reading.
constexpr size_t kLargeText = 1 << 20;

// Checks the end of a pickle or JSON text. Full reading costs as much as the bytes, so it is not tried after
// every piece.
bool may_be_whole(const PackedText& text) { return text.last_mark() == '.' || text.last_mark() == '}'; }

std::string without_path(std::string what, const std::string& path) {
  if (what.starts_with(path + ": ")) what.erase(0, path.size() + 2);
  return what;
}

}  // namespace

bool begins_file(const Piece& piece) {
  return piece.place && !piece.bytes.empty() && piece.place->offset == piece.bytes.size();
}

JobDumps::~JobDumps() {
  for (auto& [id, file] : files_) close(file);
}

void JobDumps::close(File& file) {
  held_ -= file.text.packed_bytes();
  all_.held -= file.text.packed_bytes();
  file.text = {};
  file.over = true;
}

void JobDumps::discard(File& file, const std::string& why) {
  problems_.push_back({file.path, std::nullopt, "passed over: " + why});
  close(file);
}

void JobDumps::ingest(const StreamInfo& info, const Piece& piece, TimeNs now) {
  if (files_.size() >= limits::kLiveSources && !files_.contains(info.id)) return;
  File& file = files_[info.id];
  const bool begins = begins_file(piece);
  // Late bytes of a file that another file replaced.
  const size_t passed = piece.bytes.size() + (piece.gap ? piece.gap->bytes : 0);
  const bool late = !begins && file.at && piece.place && !piece.bytes.empty() &&
                    !goes_on_in(*file.at, *piece.place, passed);
  if (begins) {
    if (!file.text.empty()) discard(file, "it was overwritten before it was complete");
    file = {};
    file.path = info.path;
  } else if (!late && piece.gap) {
    close(file);  // a gap; ingest_gap() reports it
  }
  if (!late && !piece.bytes.empty()) {
    file.at = piece.place;
    file.last_ns = now;
    append(file, piece.bytes);
  }
  if (!piece.ends) return;
  if (!file.text.empty()) try_to_read(file);
  if (!file.text.empty()) discard(file, file.why + "; the file is gone");
  files_.erase(info.id);
}

void JobDumps::append(File& file, const std::string& bytes) {
  // A dump without its beginning (dropped from the spool or never read) is unusable.
  if (file.over || file.path.empty()) return;
  if (file.text.empty() && all_.left_out && all_.left_out(file.path))
    return discard(file, "the daemon ran out of memory while it read this file");
  if (file.text.size() + bytes.size() > limits::kLiveDumpBytes)
    return discard(file, "it is larger than what is read of a dump");
  if (all_.held + bytes.size() > limits::kLiveDumpsPacked)
    return discard(file, "it and other dumps that are being written take too much memory");
  const uint64_t before = file.text.packed_bytes();
  file.text.append(bytes);
  held_ += file.text.packed_bytes() - before;
  all_.held += file.text.packed_bytes() - before;
  // Tries again only at twice the size, so that failed attempts cost at most as much as a successful one.
  if (may_be_whole(file.text) && file.text.size() >= 2 * file.tried) try_to_read(file);
}

void JobDumps::try_to_read(File& file) {
  if (file.tried == file.text.size()) return;
  file.tried = file.text.size();
  if (all_.reading) all_.reading(file.path);
  auto read = ingest::parse_flight(file.text.unpack(), file.path, limits::kLiveDumpHeld);
  if (all_.reading) all_.reading({});
  if (!read) {
    file.why = without_path(read.error().text, file.path);
  } else if (read->problem) {
    file.why = read->problem->what;
  } else {
    read->dump.written_ns = file.last_ns;
    whole_.push_back(std::move(read->dump));
    close(file);
  }
  if (file.tried >= kLargeText) release_free_memory();
}

bool JobDumps::settle(TimeNs now) {
  for (auto& [id, file] : files_) {
    if (file.text.empty()) continue;
    // If the clock was set back, the dump counts as quiet.
    const TimeNs quiet = now < file.last_ns ? kQuiet : now - file.last_ns;
    if (quiet >= kQuiet) try_to_read(file);
    if (quiet >= kPatience && !file.text.empty()) discard(file, file.why);
    if (!whole_.empty()) return true;
  }
  return false;
}

bool JobDumps::end() {
  for (auto& [id, file] : files_) {
    if (file.text.empty()) continue;
    try_to_read(file);
    if (!file.text.empty()) discard(file, file.why);
    if (!whole_.empty()) return true;
  }
  return false;
}

bool JobDumps::pending(StreamId stream) const {
  const auto known = files_.find(stream);
  return known != files_.end() && !known->second.text.empty();
}

}  // namespace culprit::app
