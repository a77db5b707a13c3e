#include "ingest/live/ring_reader.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <deque>
#include <map>
#include <string_view>
#include <unordered_map>
#include <utility>

#include <fmt/format.h>

#include "ingest/file.h"
#include "ingest/live/ring_file.h"
#include "ingest/live/safe_open.h"
#include "io/container.h"
#include "io/trusted_path.h"
#include "model/comm.h"

namespace culprit::ingest {
namespace {

// Intervals of reads. A ring of 16,384 records at 100 ns a record is full in 1.6 ms, but a training step
// writes some hundred records in as many ms. Idle rings are read five times a second. With many rings, which
// one user may create, each is read less often: a read costs 3 us.
constexpr TimeNs kBusyNs = 10 * kNsPerMs, kIdleNs = 200 * kNsPerMs, kIdleOneNs = 500 * kNsPerUs;
// Interval without any ring and without a watch: the start of a training process takes longer.
constexpr TimeNs kNoRingsNs = 500 * kNsPerMs;
// Interval of checks of processes, and of the folder even without a hint.
constexpr TimeNs kAliveNs = kNsPerSecond, kListNs = 5 * kNsPerSecond;
// A file being created has its lock and its name within this time, even on a loaded machine.
constexpr TimeNs kMakingNs = 10 * kNsPerSecond;
// Time for which the stacks of a dead process stay for a reader.
constexpr TimeNs kStacksNs = 3600 * kNsPerSecond;
// An ended ring is removed when the store has its end, or after this time.
constexpr TimeNs kRemoveNs = 10 * kNsPerSecond;
// Positions of drops that are reported separately; further ones count with the last.
constexpr size_t kDropPlaces = 16;
// The folder is listed at most every 200 ms, and less often with many names in it.
constexpr TimeNs kListOneNs = 20 * kNsPerUs;
// Least cost of a piece in a round's budget: a ring with ever-changing counts gives endless gaps.
constexpr uint64_t kPieceCost = 4096;

// Position of a source in an earlier run of the daemon.
struct EarlierPosition {
  StreamState state;
  uint64_t next = 0, reported = 0;  // records taken, drops reported
  bool replaced = false;            // another file has the name now
};

// Fills in unknown fields of records from the ring's header. Done before storing: the ring may be deleted
// before the records are read again.
void name_writer(const RingHeader& header, std::string& records) {
  constexpr size_t kRecordRankAt = offsetof(CommRecord, rank), kRecordDeviceAt = offsetof(CommRecord, device);
  const auto fill = [&records](size_t at, uint32_t value) {
    if (std::memcmp(&records[at], &kCommUnknown, sizeof value) == 0)
      std::memcpy(&records[at], &value, sizeof value);
  };
  for (size_t at = 0; at + kRingRecordBytes <= records.size(); at += kRingRecordBytes) {
    fill(at + kRecordRankAt, header.rank);
    fill(at + kRecordDeviceAt, header.device);
  }
}

struct Ring {
  Ring(std::string its_name, const RingName& its_parsed, RingFile its_file)
      : name(std::move(its_name)), parsed(its_parsed), file(std::move(its_file)) {}

  std::string name;
  RingName parsed;
  RingFile file;
  StreamId stream = kNoStream;  // set with the first piece: an empty ring is no source
  uint64_t offset = 0;          // of the evidence
  uint64_t next = 0;            // number of the next record
  uint64_t drops_seen = 0, drops_reported = 0;
  struct Drops {
    uint64_t at = 0, records = 0;
  };
  std::deque<Drops> drops;  // not reported yet; at: before the record of this number
  struct Unstored {
    uint64_t offset = 0, next = 0;
  };
  std::deque<Unstored> unstored;
  std::optional<uint32_t> pid;
  bool lock_seen = false, alive = true, backwards = false;
  bool drained = false, gave = false;  // in this round
  TimeNs pause_ns = kBusyNs, due_ns = 0;
  bool removed = false;
  TimeNs alive_looked_ns = kNoTime;
  TimeNs remove_ns = kNoTime;  // ended: time of the removal, if the store has all of it
  std::optional<Error> broken;

  bool ended() const { return remove_ns != kNoTime; }
};

struct Opened {
  int descriptor = -1;
  struct stat status {};
  ~Opened() {
    if (descriptor >= 0) close(descriptor);
  }
};

}  // namespace

class RingReader::Impl {
 public:
  Impl(RingOptions options, std::span<const StreamState> known);
  RingRead round(const Round& round);
  void committed(StreamId stream, uint64_t evidence_offset);

  RingStats stats;

 private:
  // The folder.
  void look_at_folder(const Round& round, RingRead* out);
  std::optional<std::vector<std::string>> list(int folder, RingRead* out);
  void meet(const std::string& name, const RingName& parsed, int folder, RingRead* out);
  void add(const std::string& name, const RingName& parsed, RingFile file);
  bool has_room(uint32_t uid, const std::string& name, RingRead* out);
  void refuse(const std::string& name, uint64_t inode, Error error, RingRead* out);
  void forget_absent(const std::vector<std::string>& names);
  void sweep_unfinished(const std::string& name, const RingName& parsed, int folder, TimeNs now);
  void sweep_stacks(const std::string& name, const RingName& parsed, int folder, TimeNs now);
  void unlink_file(const std::string& name, int folder);
  void end_absent_known(const std::vector<std::string>& names, const Round& round, RingRead* out);
  void report(bool* reported, Error error, RingRead* out);
  std::string path_of(const std::string& name) const { return options_.folder + "/" + name; }

  // A ring.
  void look_alive(Ring* ring, TimeNs now);
  bool drain_piece(Ring* ring, const Round& round, uint64_t bytes_max, RingRead* out);
  bool look_at_counts(Ring* ring, RingRange* range);
  void skip(Ring* ring, uint64_t to, const Round& round, RingRead* out);
  bool read_records(Ring* ring, RingRange range, const Round& round, RingRead* out);
  void emit(Ring* ring, const Round& round, Piece piece, RingRead* out);
  void discard(Ring* ring, const Round& round, RingRead* out);
  void end(Ring* ring, const Round& round, RingRead* out);
  void remove(Ring* ring);
  std::vector<size_t> due(TimeNs now);
  void rest(Ring* ring, TimeNs now);
  void finish(const Round& round, bool more, RingRead* out);

  RingOptions options_;
  std::map<std::string, EarlierPosition> known_;  // by path; not found in the folder yet
  std::vector<std::unique_ptr<Ring>> rings_;      // served in turn, starting at turn_
  size_t turn_ = 0;
  std::unordered_map<StreamId, Ring*> by_stream_;
  std::map<std::string, Ring*> by_name_;  // the ring that has the name now
  std::map<uint32_t, size_t> of_uid_;
  struct Refused {
    uint64_t inode = 0;
    bool retry = false;
  };
  std::map<std::string, Refused> refused_;
  std::map<std::string, TimeNs> making_;  // first sight; of stacks: first sight without a process
  timespec changed_{};                    // modification time of the folder at the last listing
  int listings_due_ = 1;
  TimeNs listed_ns_ = kNoTime, list_pause_ns_ = 0;
  size_t unread_ = 0;  // names skipped in this listing for lack of room
  bool reported_folder_ = false, reported_full_ = false, reported_descriptors_ = false,
       reported_names_ = false;
};

RingReader::Impl::Impl(RingOptions options, std::span<const StreamState> known)
    : options_(std::move(options)) {
  for (const StreamState& state : known) {
    if (state.info.kind != OriginKind::kRing) continue;
    EarlierPosition place{state, state.size / kRingRecordBytes, 0};
    if (state.place) {
      const RingPlace at = RingPlace::from(*state.place);
      place.next = at.next;
      place.reported = at.drops;
    }
    known_.insert_or_assign(state.info.path, std::move(place));
  }
}

// ---- the folder

void RingReader::Impl::report(bool* reported, Error error, RingRead* out) {
  if (!*reported) out->problems.push_back(std::move(error));
  *reported = true;
}

void RingReader::Impl::look_at_folder(const Round& round, RingRead* out) {
  Opened folder;
  const Result<int> opened = io::open_trusted_folder(options_.folder, geteuid(), io::Writers::kWatched);
  if (!opened) {
    report(&reported_folder_, {opened.error().code, options_.folder + ": " + opened.error().text}, out);
    return;
  }
  folder.descriptor = *opened;
  if (fstat(folder.descriptor, &folder.status) != 0) {
    report(&reported_folder_, system_error(options_.folder, errno), out);
    return;
  }
  reported_folder_ = false;
  out->local = rings_.empty() && is_local_file_system(folder.descriptor);
  // The time has the resolution of a kernel tick: a second listing follows a change.
  const timespec& changed = folder.status.st_mtim;
  if (changed.tv_sec != changed_.tv_sec || changed.tv_nsec != changed_.tv_nsec) listings_due_ = 2;
  const bool overdue = listed_ns_ == kNoTime || round.now_mono - listed_ns_ >= kListNs;
  if (!overdue && (listings_due_ == 0 || round.now_mono - listed_ns_ < list_pause_ns_)) return;
  listings_due_ = std::max(0, listings_due_ - 1);
  changed_ = changed;
  listed_ns_ = round.now_mono;
  const std::optional<std::vector<std::string>> names = list(folder.descriptor, out);
  if (!names) return;
  list_pause_ns_ = kIdleNs + static_cast<TimeNs>(names->size()) * kListOneNs;
  unread_ = 0;
  forget_absent(*names);
  for (const std::string& name : *names) {
    const std::optional<RingName> parsed = parse_ring_name(name);
    if (parsed && parsed->making)
      sweep_unfinished(name, *parsed, folder.descriptor, round.now_mono);
    else if (const std::optional<RingName> stacks = parse_stacks_name(name))
      sweep_stacks(name, *stacks, folder.descriptor, round.now_mono);
    else if (parsed)
      meet(name, *parsed, folder.descriptor, out);
    else if (name.ends_with(".ring") && !refused_.contains(name))
      refuse(name, 0, {ErrorCode::kInvalid, name + ": not a ring's name, <pid>-<tid>-<start>.ring"}, out);
  }
  if (unread_ == 0) reported_full_ = false;
  stats.unread = unread_;
  end_absent_known(*names, round, out);
}

std::optional<std::vector<std::string>> RingReader::Impl::list(int folder, RingRead* out) {
  std::vector<std::string> names;
  const int copy = fcntl(folder, F_DUPFD_CLOEXEC, 0);
  DIR* entries = copy < 0 ? nullptr : fdopendir(copy);
  if (!entries) {
    if (copy >= 0) close(copy);
    report(&reported_descriptors_, system_error(options_.folder, errno), out);
    return std::nullopt;
  }
  while (const dirent* entry = readdir(entries)) {
    const std::string_view name = entry->d_name;
    if (!name.ends_with(".ring") && !name.ends_with(".ring.tmp") && !name.ends_with(".stacks")) continue;
    if (names.size() == limits::kRingNames) {
      report(&reported_names_,
             {ErrorCode::kLimit, fmt::format("{}: more than {} files: the others are not looked at",
                                             options_.folder, limits::kRingNames)},
             out);
      break;
    }
    names.emplace_back(name);
  }
  closedir(entries);
  std::sort(names.begin(), names.end());
  return names;
}

void RingReader::Impl::meet(const std::string& name, const RingName& parsed, int folder, RingRead* out) {
  struct stat status {};
  if (fstatat(folder, name.c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0) return;  // deleted meanwhile
  const auto open_ring = by_name_.find(name);
  if (open_ring != by_name_.end() && open_ring->second->file.inode() == status.st_ino) return;
  const auto refused = refused_.find(name);
  const bool again = refused != refused_.end() && refused->second.inode == status.st_ino;
  if (again && !refused->second.retry) return;
  if (!has_room(status.st_uid, name, out)) return;
  Result<RingFile> file = RingFile::open(folder, name);
  if (file) {
    reported_descriptors_ = false;
    refused_.erase(name);
    add(name, parsed, std::move(*file));
  } else if (file.error().code == ErrorCode::kLimit) {
    report(&reported_descriptors_, std::move(file.error()), out);
  } else if (file.error().code != ErrorCode::kNotFound && !again) {
    refuse(name, status.st_ino, std::move(file.error()), out);
  }
}

bool RingReader::Impl::has_room(uint32_t uid, const std::string& name, RingRead* out) {
  const auto found = of_uid_.find(uid);
  const size_t of_uid = found == of_uid_.end() ? 0 : found->second;
  const bool uid_full = of_uid >= options_.files_of_uid_max;
  if (rings_.size() < options_.files_max && !uid_full) return true;
  ++unread_;
  report(&reported_full_,
         {ErrorCode::kLimit,
          fmt::format("{}: {} rings are open{}: it and others are not read", path_of(name),
                      uid_full ? of_uid : rings_.size(), uid_full ? fmt::format(" of user {}", uid) : "")},
         out);
  return false;
}

void RingReader::Impl::refuse(const std::string& name, uint64_t inode, Error error, RingRead* out) {
  refused_[name] = {inode, error.code == ErrorCode::kDenied};
  ++stats.refused;
  error.text = options_.folder + "/" + error.text;
  if (error.code == ErrorCode::kDenied)
    error.text += "; the folder must hand the daemon's group on: systemd-tmpfiles --create culprit.conf";
  out->problems.push_back(std::move(error));
}

void RingReader::Impl::add(const std::string& name, const RingName& parsed, RingFile file) {
  auto ring = std::make_unique<Ring>(name, parsed, std::move(file));
  const RingCounts& counts = ring->file.header().counts;
  // An unknown ring: the data of an earlier daemon was lost with its store.
  ring->next = std::min(counts.read, counts.written);
  const auto known = known_.find(path_of(name));
  if (known != known_.end()) {
    const std::optional<FilePlace>& place = known->second.state.place;
    const bool same = !place || (place->inode == ring->file.inode() && place->device == ring->file.device());
    if (same) {
      ring->next = known->second.next;
      ring->drops_seen = ring->drops_reported = known->second.reported;
      // The daemon died between a commit and this point: without room a full ring would drop its next record.
      if (counts.read < ring->next && ring->next <= counts.written)
        if (const Status set = ring->file.set_read(ring->next); !set) ring->broken = set.error();
    }
    if (same && !known->second.state.ended) {
      ring->stream = known->second.state.info.id;
      ring->offset = known->second.state.size;
      ring->pid = known->second.state.info.pid;
      by_stream_[ring->stream] = ring.get();
    }
    known->second.replaced = !same;
    if (same) known_.erase(known);
  }
  by_name_[name] = ring.get();
  ++of_uid_[ring->file.uid()];
  rings_.push_back(std::move(ring));
  stats.rings = rings_.size();
}

// Forgets deleted names, so that they are new when they return. A ring without a name is still read: its
// producer has it open.
void RingReader::Impl::forget_absent(const std::vector<std::string>& names) {
  const auto absent = [&](const auto& entry) {
    return !std::binary_search(names.begin(), names.end(), entry.first);
  };
  std::erase_if(refused_, absent);
  std::erase_if(making_, absent);
  std::erase_if(by_name_, absent);
}

// Removes temporary files of processes that died during the creation of a ring.
void RingReader::Impl::sweep_unfinished(const std::string& name, const RingName& parsed, int folder,
                                        TimeNs now) {
  const auto [seen, is_new] = making_.try_emplace(name, now);
  if (is_new || now - seen->second < kMakingNs || find_ring_process(options_.proc, parsed).alive) return;
  unlink_file(name, folder);
}

// Removes the stacks of a killed process, which could not remove them itself. A living process holds a lock
// on the file, also from within a container, where its pid has no meaning on the host.
void RingReader::Impl::sweep_stacks(const std::string& name, const RingName& parsed, int folder, TimeNs now) {
  Opened file;
  // Checked before the open: opening a device has side effects.
  if (fstatat(folder, name.c_str(), &file.status, AT_SYMLINK_NOFOLLOW) != 0) return;
  if (!S_ISREG(file.status.st_mode)) return;
  file.descriptor = openat(folder, name.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
  if (file.descriptor < 0) return;
  if (producer_of(file.descriptor) || find_ring_process(options_.proc, parsed).alive) {
    making_.erase(name);
    return;
  }
  const TimeNs since = making_.try_emplace(name, now).first->second;
  if (now - since >= kStacksNs) unlink_file(name, folder);
}

void RingReader::Impl::unlink_file(const std::string& name, int folder) {
  struct stat status {};
  if (fstatat(folder, name.c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0 || !S_ISREG(status.st_mode)) return;
  if (unlinkat(folder, name.c_str(), 0) == 0) ++stats.removed;
}

// Ends the sources of an earlier run whose ring no longer exists.
void RingReader::Impl::end_absent_known(const std::vector<std::string>& names, const Round& round,
                                        RingRead* out) {
  for (auto it = known_.begin(); it != known_.end();) {
    const auto& [path, known] = *it;
    const std::string name = path.substr(path.rfind('/') + 1);
    if (!known.replaced && std::binary_search(names.begin(), names.end(), name)) {
      ++it;
      continue;
    }
    Piece piece;
    piece.stream = known.state.info.id;
    piece.offset = known.state.size;
    piece.time_ns = round.now;
    piece.gap = Gap{0, 0, "the ring was gone when the daemon came back: what it still held is not known"};
    piece.ends = true;
    if (!known.state.ended) out->batch.pieces.push_back(std::move(piece));
    it = known_.erase(it);
  }
}

// ---- a ring

void RingReader::Impl::look_alive(Ring* ring, TimeNs now) {
  if (!ring->alive || (ring->alive_looked_ns != kNoTime && now - ring->alive_looked_ns < kAliveNs)) return;
  ring->alive_looked_ns = now;
  if (const std::optional<uint32_t> holder = ring->file.lock_holder()) {
    ring->lock_seen = true;
    if (*holder != 0) ring->pid = *holder;
    return;
  }
  // The lock is gone: the producer closed its ring or ended.
  const RingProcess process =
      ring->lock_seen ? RingProcess{} : find_ring_process(options_.proc, ring->parsed);
  ring->alive = process.alive;
  // The pid in the name is untrusted: it counts only if the process has the owner of the file.
  if (process.alive && process.uid == ring->file.uid()) ring->pid = static_cast<uint32_t>(ring->parsed.pid);
}

// False if there is nothing to read now. Also counts drops and detects a file that is no longer a ring.
bool RingReader::Impl::look_at_counts(Ring* ring, RingRange* range) {
  const Result<RingCounts> counts = ring->file.counts();
  if (!counts) {
    ring->broken = counts.error();
    return false;
  }
  if (counts->dropped > ring->drops_seen) {
    const uint64_t more = counts->dropped - ring->drops_seen;
    const uint64_t at = std::max(counts->written, ring->next);
    const bool join =
        !ring->drops.empty() && (ring->drops.back().at == at || ring->drops.size() >= kDropPlaces);
    if (join)
      ring->drops.back().records += more;
    else
      ring->drops.push_back({at, more});
    stats.dropped += more;
    ring->drops_seen = counts->dropped;
  }
  *range = ring_range(*counts, ring->file.header().capacity, ring->next);
  // Requires two sightings, since a count may be read in the middle of a change.
  if (range->backwards && std::exchange(ring->backwards, true))
    ring->broken = Error{ErrorCode::kInvalid, "its count of records went backwards"};
  if (!range->backwards) ring->backwards = false;
  return !range->backwards;
}

void RingReader::Impl::emit(Ring* ring, const Round& round, Piece piece, RingRead* out) {
  if (ring->stream == kNoStream) {
    const RingFile& file = ring->file;
    const RingOwner owner{path_of(ring->name), file.header().job, file.uid(), ring->pid};
    StreamInfo info;
    info.id = ring->stream = options_.allocate();
    info.kind = OriginKind::kRing;
    info.job = options_.job_of ? options_.job_of(owner) : owner.header_job;
    info.path = owner.path;
    info.uid = owner.uid;
    if (owner.pid && ring->alive) info.uid = io::principal_of(owner.uid, *owner.pid);
    info.pid = owner.pid;
    info.opened_ns = round.now;
    by_stream_[info.id] = ring;
    out->batch.opened.push_back(std::move(info));
  }
  piece.stream = ring->stream;
  piece.offset = ring->offset;
  piece.time_ns = round.now;
  piece.place = RingPlace{ring->file.device(), ring->file.inode(), ring->drops_reported, ring->next}.stored();
  ring->offset += piece.bytes.size();
  stats.records += piece.bytes.size() / kRingRecordBytes;
  if (!piece.ends) ring->unstored.push_back({ring->offset, ring->next});
  out->batch.pieces.push_back(std::move(piece));
}

void RingReader::Impl::skip(Ring* ring, uint64_t to, const Round& round, RingRead* out) {
  const uint64_t lost = to - ring->next;
  stats.lost += lost;
  ring->next = to;
  Piece piece;
  piece.gap =
      Gap{lost * kRingRecordBytes, lost, "records of the ring were overwritten before they were read"};
  emit(ring, round, std::move(piece), out);
}

// Reads the records, and emits only those that were not overwritten during the read. Producers of ring.h
// never overwrite them.
bool RingReader::Impl::read_records(Ring* ring, RingRange range, const Round& round, RingRead* out) {
  Piece piece;
  if (const Status read = ring->file.read(range.first, range.count, &piece.bytes); !read) {
    ring->broken = read.error();
    return false;
  }
  RingRange now;
  if (!look_at_counts(ring, &now)) return false;
  if (now.first > ring->next) {
    const uint64_t torn = std::min(now.first, range.first + range.count) - ring->next;
    skip(ring, ring->next + torn, round, out);
    piece.bytes.erase(0, torn * kRingRecordBytes);
  }
  name_writer(ring->file.header(), piece.bytes);
  ring->next = range.first + range.count;
  if (!piece.bytes.empty()) emit(ring, round, std::move(piece), out);
  return true;
}

// Emits one piece, or a gap, of at most `bytes_max`. False if the ring has no more records now.
bool RingReader::Impl::drain_piece(Ring* ring, const Round& round, uint64_t bytes_max, RingRead* out) {
  RingRange range;
  if (ring->broken || !look_at_counts(ring, &range)) return false;
  if (range.first > ring->next) {
    skip(ring, range.first, round, out);
    return true;
  }
  if (!ring->drops.empty() && ring->drops.front().at <= ring->next) {
    const uint64_t records = ring->drops.front().records;
    ring->drops.pop_front();
    ring->drops_reported += records;
    Piece piece;
    piece.gap = Gap{records * kRingRecordBytes, records, "the ring was full: its process dropped records"};
    emit(ring, round, std::move(piece), out);
    return true;
  }
  ring->drained = range.count == 0;
  if (ring->drained) return false;
  range.count = std::min({range.count, bytes_max / kRingRecordBytes,
                          static_cast<uint64_t>(limits::kPieceBytes / kRingRecordBytes)});
  if (!ring->drops.empty()) range.count = std::min(range.count, ring->drops.front().at - ring->next);
  return range.count > 0 && read_records(ring, range, round, out);
}

// The file is no longer a ring: its remaining content is lost, and later content is not read.
void RingReader::Impl::discard(Ring* ring, const Round& round, RingRead* out) {
  refuse(ring->name, ring->file.inode(),
         {ErrorCode::kInvalid, ring->name + ": no ring any more: " + ring->broken->text}, out);
  ring->alive = false;
  if (ring->stream == kNoStream) {
    ring->remove_ns = round.now_mono;
    return;
  }
  Piece piece;
  piece.gap = Gap{0, 0, "the ring's file was spoilt: " + ring->broken->text};
  emit(ring, round, std::move(piece), out);
  end(ring, round, out);
}

void RingReader::Impl::end(Ring* ring, const Round& round, RingRead* out) {
  ring->remove_ns = round.now_mono;
  if (ring->stream == kNoStream) return;
  ring->remove_ns += kRemoveNs;
  Piece piece;
  piece.ends = true;
  emit(ring, round, std::move(piece), out);
}

void RingReader::Impl::remove(Ring* ring) {
  Opened folder;
  folder.descriptor = io::open_trusted_folder(options_.folder, geteuid(), io::Writers::kWatched).value_or(-1);
  const char* name = ring->name.c_str();
  const bool named =
      folder.descriptor >= 0 && fstatat(folder.descriptor, name, &folder.status, AT_SYMLINK_NOFOLLOW) == 0 &&
      folder.status.st_ino == ring->file.inode() && folder.status.st_dev == ring->file.device();
  if (named && !ring->broken && unlinkat(folder.descriptor, name, 0) == 0) ++stats.removed;
  by_stream_.erase(ring->stream);
  const auto by_name = by_name_.find(ring->name);
  if (by_name != by_name_.end() && by_name->second == ring) by_name_.erase(by_name);
  if (--of_uid_[ring->file.uid()] == 0) of_uid_.erase(ring->file.uid());
  ring->removed = true;
}

// ---- rounds

RingReader::RingRead RingReader::Impl::round(const Round& round) {
  RingRead out;
  look_at_folder(round, &out);
  // Each ring in turn gets a piece, starting after the last one of the previous round: no ring can starve
  // another.
  std::vector<size_t> busy = due(round.now_mono);
  uint64_t left = round.budget_bytes;
  while (!busy.empty() && left >= kRingRecordBytes) {
    std::vector<size_t> still;
    for (const size_t at : busy) {
      if (left < kRingRecordBytes) break;
      Ring* ring = rings_[at].get();
      const uint64_t before = ring->offset;
      turn_ = at + 1;
      if (!drain_piece(ring, round, left, &out)) {
        rest(ring, round.now_mono);
        continue;
      }
      ring->gave = true;
      still.push_back(at);
      left -= std::min(left, std::max(ring->offset - before, kPieceCost));
    }
    busy = std::move(still);
  }
  finish(round, left < kRingRecordBytes, &out);
  return out;
}

// The rings to read now, in turn. Rings that are due soon are included, so that the daemon wakes up less
// often.
std::vector<size_t> RingReader::Impl::due(TimeNs now) {
  std::vector<size_t> found;
  for (size_t i = 0; i < rings_.size(); ++i) {
    const size_t at = (turn_ + i) % rings_.size();
    Ring* ring = rings_[at].get();
    ring->drained = ring->gave = false;
    if (ring->ended() || ring->due_ns - ring->pause_ns / 4 > now) continue;
    look_alive(ring, now);
    found.push_back(at);
  }
  return found;
}

// Schedules the next read of a ring without further records.
void RingReader::Impl::rest(Ring* ring, TimeNs now) {
  const TimeNs most = kIdleNs + static_cast<TimeNs>(rings_.size()) * kIdleOneNs;
  ring->pause_ns = ring->gave ? kBusyNs : std::min(2 * ring->pause_ns, most);
  ring->due_ns = now + ring->pause_ns;
}

void RingReader::Impl::finish(const Round& round, bool more, RingRead* out) {
  // The folder is checked as often as an idle ring; without rings, a watch reports its changes.
  const TimeNs without_rings = round.watched && listings_due_ == 0 ? kListNs : kNoRingsNs;
  out->next_ns = round.now_mono + (rings_.empty() ? without_rings : kIdleNs);
  for (const auto& ring : rings_) {
    if (ring->broken && !ring->ended())
      discard(ring.get(), round, out);
    else if (!ring->alive && ring->drained && !ring->ended())
      end(ring.get(), round, out);
    if (!ring->ended()) out->next_ns = std::min(out->next_ns, ring->due_ns);
    if (ring->ended() && ring->unstored.empty() && round.now_mono >= ring->remove_ns) remove(ring.get());
  }
  std::erase_if(rings_, [](const auto& ring) { return ring->removed; });
  stats.rings = rings_.size();
  out->more = more;
  if (more) out->next_ns = round.now_mono;
  out->next_ns = std::max(out->next_ns, round.now_mono);
}

void RingReader::Impl::committed(StreamId stream, uint64_t evidence_offset) {
  const auto found = by_stream_.find(stream);
  if (found == by_stream_.end()) return;
  Ring* ring = found->second;
  std::optional<uint64_t> read;
  while (!ring->unstored.empty() && ring->unstored.front().offset <= evidence_offset) {
    read = ring->unstored.front().next;
    ring->unstored.pop_front();
  }
  if (read && !ring->broken)
    if (const Status set = ring->file.set_read(*read); !set) ring->broken = set.error();
  if (ring->ended() && ring->unstored.empty()) remove(ring);
}

RingReader::RingReader(RingOptions options, std::span<const StreamState> known)
    : impl_(std::make_unique<Impl>(std::move(options), known)) {}
RingReader::~RingReader() = default;
RingReader::RingRead RingReader::round(const Round& round) { return impl_->round(round); }
void RingReader::committed(StreamId stream, uint64_t evidence_offset) {
  impl_->committed(stream, evidence_offset);
}
const RingStats& RingReader::stats() const { return impl_->stats; }

}  // namespace culprit::ingest
