#include "app/daemon/live_dumps.h"

#include <utility>

#include "base/limits.h"
#include "ingest/flight_reader.h"

namespace culprit::app {
namespace {

// Five rounds of a tailer: whoever writes a dump writes it in one go.
constexpr TimeNs kQuiet = kNsPerSecond;
// A file system that hangs for longer does not come back for it; a process that was killed never does.
constexpr TimeNs kPatience = 60 * kNsPerSecond;

// As a pickle and a JSON text do. Reading costs as much as the bytes, so not after every piece.
bool may_be_whole(const std::string& bytes) {
  const size_t last = bytes.find_last_not_of(" \t\r\n");
  return last != bytes.npos && (bytes[last] == '.' || bytes[last] == '}');
}

std::string without_path(std::string what, const std::string& path) {
  if (what.starts_with(path + ": ")) what.erase(0, path.size() + 2);
  return what;
}

}  // namespace

bool begins_file(const Piece& piece) {
  return piece.place && !piece.bytes.empty() && piece.place->offset == piece.bytes.size();
}

LiveDumps::~LiveDumps() {
  for (auto& [id, file] : files_) close(file);
}

void LiveDumps::close(File& file) {
  held_ -= file.bytes.size();
  file.bytes = {};
  file.over = true;
}

void LiveDumps::give_up(File& file, const std::string& why) {
  problems_.push_back({file.path, std::nullopt, "passed over: " + why});
  close(file);
}

void LiveDumps::take(const StreamInfo& info, const Piece& piece, TimeNs now) {
  if (files_.size() >= limits::kLiveSources && !files_.contains(info.id)) return;
  File& file = files_[info.id];
  const bool begins = begins_file(piece);
  // Written to a file that another has followed: no part of this one.
  const size_t passed = piece.bytes.size() + (piece.gap ? piece.gap->bytes : 0);
  const bool late = !begins && file.at && piece.place && !piece.bytes.empty() &&
                    !goes_on_in(*file.at, *piece.place, passed);
  if (begins) {
    if (!file.bytes.empty()) give_up(file, "it was overwritten before it was complete");
    file = {};
    file.path = info.path;
  } else if (!late && piece.gap) {
    close(file);  // a part of it is missing: take_gap() tells
  }
  if (!late && !piece.bytes.empty()) {
    file.at = piece.place;
    file.last_ns = now;
    append(file, piece.bytes);
  }
  if (!piece.ends) return;
  if (!file.bytes.empty()) try_to_read(file);
  if (!file.bytes.empty()) give_up(file, file.why + "; the file is gone");
  files_.erase(info.id);
}

void LiveDumps::append(File& file, const std::string& bytes) {
  // What is read in the middle (the beginning was dropped from the spool, or never seen) is no dump.
  if (file.over || file.path.empty()) return;
  if (held_ + bytes.size() > limits::kLiveDumpBytes)
    return give_up(file, "it and other dumps that are being written take too much memory");
  file.bytes += bytes;
  held_ += bytes.size();
  // Twice as much as last time, so that reading in vain costs no more than once more.
  if (may_be_whole(file.bytes) && file.bytes.size() >= 2 * file.tried) try_to_read(file);
}

void LiveDumps::try_to_read(File& file) {
  if (file.tried == file.bytes.size()) return;
  file.tried = file.bytes.size();
  auto read = ingest::parse_flight(file.bytes, file.path);
  if (!read) {
    file.why = without_path(read.error().text, file.path);
  } else if (read->problem) {
    file.why = read->problem->what;
  } else {
    read->dump.written_ns = file.last_ns;
    whole_.push_back(std::move(read->dump));
    close(file);
  }
}

void LiveDumps::settle(TimeNs now) {
  for (auto& [id, file] : files_) {
    if (file.bytes.empty()) continue;
    // A clock that was set back lets no dump wait for it.
    const TimeNs quiet = now < file.last_ns ? kQuiet : now - file.last_ns;
    if (quiet >= kQuiet) try_to_read(file);
    if (quiet >= kPatience && !file.bytes.empty()) give_up(file, file.why);
  }
}

void LiveDumps::end() {
  for (auto& [id, file] : files_) {
    if (file.bytes.empty()) continue;
    try_to_read(file);
    if (!file.bytes.empty()) give_up(file, file.why);
  }
}

bool LiveDumps::pending(StreamId stream) const {
  const auto known = files_.find(stream);
  return known != files_.end() && !known->second.bytes.empty();
}

}  // namespace culprit::app
