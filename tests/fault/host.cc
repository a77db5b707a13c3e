#include "host.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "base/check.h"
#include "shim.h"
#include "store/evidence.h"

namespace culprit::fault {
namespace {

namespace fs = std::filesystem;

// Batches that wait while the disk fails, before the tailer pauses.
constexpr size_t kWaiting = 2;

TimeNs wall_now() {
  return std::chrono::system_clock::now().time_since_epoch() / std::chrono::nanoseconds(1);
}

// A disk in memory where there is one: some thousand starts of a daemon that syncs.
std::string new_folder() {
  std::string name =
      fs::is_directory("/dev/shm") ? "/dev/shm/culprit-fault-XXXXXX" : "/tmp/culprit-fault-XXXXXX";
  CULPRIT_CHECK(::mkdtemp(name.data()) != nullptr);
  return name;
}

std::string bytes_of(const std::string& path) {
  std::ostringstream out;
  out << std::ifstream(path, std::ios::binary).rdbuf();
  return out.str();
}

// As gzip does while it runs.
void compress_half(const std::string& path) {
  if (!fs::exists(path)) return;
  fs::copy_file(path, path + ".whole");
  const gzFile file = ::gzopen((path + ".whole.gz").c_str(), "wb1");
  const std::string bytes = bytes_of(path);
  CULPRIT_CHECK(file != nullptr && ::gzwrite(file, bytes.data(), static_cast<unsigned>(bytes.size())) >= 0);
  ::gzclose(file);
  const std::string packed = bytes_of(path + ".whole.gz");
  std::ofstream(path + ".gz", std::ios::binary) << packed.substr(0, packed.size() / 2);
  fs::remove(path + ".whole");
  fs::remove(path + ".whole.gz");
}

// As gzip does: the time of the last write stays.
void compress(const std::string& path) {
  struct stat before;
  CULPRIT_CHECK(::stat(path.c_str(), &before) == 0);
  const std::string bytes = bytes_of(path), packed = path + ".gz";
  const gzFile file = ::gzopen(packed.c_str(), "wb1");
  CULPRIT_CHECK(file != nullptr && ::gzwrite(file, bytes.data(), static_cast<unsigned>(bytes.size())) >= 0);
  ::gzclose(file);
  const timespec times[2] = {before.st_atim, before.st_mtim};
  CULPRIT_CHECK(::utimensat(AT_FDCWD, packed.c_str(), times, 0) == 0);
  fs::remove(path);
}

class Running {
 public:
  Running() { running = true; }
  ~Running() { running = false; }
};

}  // namespace

Host::Host(const std::string& pattern) : folder_(new_folder()), pattern_(pattern) {
  fs::create_directory(folder_ + "/logs");
}
Host::~Host() {
  daemon_.reset();
  fs::remove_all(folder_);
}

// ---- the writer

std::string Host::part(int number) const { return fmt::format("{}.{}", log(), number); }

void Host::write(int lines) {
  std::string text;
  for (int i = 0; i < lines; ++i) text += numbered_line(line_++);
  std::ofstream(log(), std::ios::binary | std::ios::app) << text;
  journal_ += text;
}

void Host::create_later() {
  int last = 0;
  while (fs::exists(part(last + 1)) || fs::exists(part(last + 1) + ".gz")) ++last;
  for (int n = last; n > 0; --n)
    for (const char* end : {"", ".gz"})
      if (fs::exists(part(n) + end)) fs::rename(part(n) + end, part(n + 1) + end);
  fs::rename(log(), part(1));
  file_begin_ = journal_.size();
}

void Host::rename_away() {
  create_later();
  std::ofstream(log(), std::ios::app).flush();
}

void Host::truncate_copied() {
  int last = 0;
  while (fs::exists(part(last + 1))) ++last;
  for (int n = last; n > 0; --n) fs::rename(part(n), part(n + 1));
  fs::copy_file(log(), part(1));
  fs::resize_file(log(), 0);
  file_begin_ = journal_.size();
}

void Host::compress_older() {
  for (int n = 2; fs::exists(part(n)) || fs::exists(part(n) + ".gz"); ++n)
    if (fs::exists(part(n))) compress(part(n));
}

void Host::turn(Turn how) {
  const int step = turns_++;
  if (how == Turn::kRename) {
    rename_away();
    write(10);
  } else if (how == Turn::kCopy) {
    truncate_copied();
    write(10);
  } else if (step % 3 == 0) {
    rename_away();
    write(10);
  } else if (step % 3 == 1) {
    compress_half(part(2));
  } else {
    compress_older();
  }
}

// ---- the daemon

bool Host::start() {
  if (daemon_) return true;
  auto daemon = std::make_unique<Daemon>();
  store::SpoolOptions options{.folder = folder_ + "/spool", .max_bytes = 64 << 20};
  options.fair = true;
  auto spool = store::Spool::open(io::real_files(), options, wall_now());
  if (!spool) return false;  // the daemon ends, and is started again
  daemon->spool = std::move(*spool);
  ingest::TailOptions tail;
  tail.glob = folder_ + "/logs/" + pattern_;
  tail.allocate = [spool = daemon->spool.get()] { return spool->allocate(); };
  tail.stored_until_ns = daemon->spool->stored_until_ns();
  std::vector<StreamState> known;
  for (store::StoredStream& retained : daemon->spool->streams()) known.push_back(std::move(retained.state));
  auto tailer = ingest::Tailer::make(std::move(tail), known);
  CULPRIT_CHECK(tailer.has_value());
  daemon->tailer = std::move(*tailer);
  daemon_ = std::move(daemon);
  return true;
}

void Host::note_first_seen() {
  if (daemon_->tailer->stats().files > 0 && seen_from_ == UINT64_MAX) seen_from_ = file_begin_;
}

// As the recorder does: a batch waits until the spool takes it.
bool Host::store(bool commits) {
  bool idle = true;
  while (!daemon_->waiting.empty()) {
    const Status appended = daemon_->spool->append(daemon_->waiting.front(), wall_now());
    if (!appended && appended.error().code != ErrorCode::kInvalid) return false;
    refused_ = refused_ || !appended;
    daemon_->waiting.pop_front();
    idle = false;
  }
  if (!commits) return idle;
  return daemon_->spool->commit(wall_now()).has_value() && daemon_->spool->sync() && idle;
}

// Returns whether nothing was to do.
bool Host::round(const Rounds& rounds) {
  bool idle = true;
  mono_ += rounds.each_ns;
  if (daemon_->waiting.size() < kWaiting) {
    ingest::TailRound next;
    next.now = wall_now();
    next.now_mono = mono_;
    next.changed = {folder_ + "/logs"};
    ingest::TailOutcome outcome = daemon_->tailer->round(next);
    note_first_seen();
    idle = !outcome.more && outcome.batch.pieces.empty() && outcome.batch.opened.empty();
    if (!outcome.batch.pieces.empty() || !outcome.batch.opened.empty())
      daemon_->waiting.push_back(std::move(outcome.batch));
  }
  return store(rounds.commits) && idle;
}

void Host::run(const Rounds& rounds) {
  for (int i = 0; i < rounds.count; ++i) {
    const Running calls;
    if (start()) (void)round(rounds);
    if (killed()) {
      daemon_.reset();
      arm({});
    }
  }
}

void Host::kill() { daemon_.reset(); }

void Host::settle() {
  // A file that could not be read is tried again after 10 seconds.
  for (int quiet = 0, i = 0; quiet < 4 && i < 200; ++i) {
    CULPRIT_CHECK(start());
    quiet = round({.each_ns = quiet < 2 ? 1100 * kNsPerMs : 11 * kNsPerSecond}) ? quiet + 1 : 0;
  }
}

Account Host::account() {
  Evidence evidence;
  const std::vector<store::StoredStream> streams = daemon_->spool->streams_of("", log());
  const store::EvidenceReader reader(io::real_files(), folder_ + "/spool");
  const store::EvidenceSink sink{[&](std::string_view bytes) {
                                   evidence.bytes += bytes;
                                   return true;
                                 },
                                 [&](const store::EvidenceGap& gap) { evidence.gaps.push_back(gap.offset); }};
  const auto read = reader.read({streams}, sink);
  CULPRIT_CHECK(read.has_value());
  for (const store::StoredStream& retained : daemon_->spool->streams()) {
    if (retained.state.info.path == log()) continue;
    const store::EvidenceSink other{[&](std::string_view bytes) {
                                      evidence.others += bytes;
                                      return true;
                                    },
                                    {}};
    CULPRIT_CHECK(reader.read({{retained}}, other).has_value());
  }
  return account_for(evidence, journal_, std::min<uint64_t>(seen_from_, journal_.size()));
}

}  // namespace culprit::fault
