// Hosts with spools that are sent to an archive as by a forwarder, and the content of the archive.
#pragma once

#include <stdlib.h>
#include <unistd.h>

#include <filesystem>

#include "fixture.h"
#include "store/archive.h"
#include "store/archive_replay.h"
#include "store/frames.h"

namespace culprit::store::testing {

// For archive.db; removed with the test.
class TempFolder {
 public:
  TempFolder() {
    // In memory if possible: each commit waits for a disk.
    const bool memory = access("/dev/shm", W_OK) == 0;
    std::string name = std::string(memory ? "/dev/shm" : "/tmp") + "/culprit-archive-XXXXXX";
    BOOST_REQUIRE(mkdtemp(name.data()) != nullptr);
    path_ = name;
  }
  ~TempFolder() { std::filesystem::remove_all(path_); }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

inline ArchiveOptions archive_options(const TempFolder& folder, uint64_t segment_bytes = 16 << 10) {
  ArchiveOptions options;
  options.folder = folder.path();
  options.segment_bytes = segment_bytes;
  return options;
}
inline std::unique_ptr<Archive> open_archive(io::Files& files, const ArchiveOptions& options) {
  auto archive = Archive::open(files, options);
  BOOST_REQUIRE_MESSAGE(archive.has_value(), (archive ? "" : archive.error().text));
  return std::move(*archive);
}

// A host with one log. Its streams are 0, 1, ...: "/log/<id>" of job "j1".
class Host {
 public:
  explicit Host(std::string name, LogKind kind = LogKind::kEvidence, SpoolOptions options = small_options())
      : origin{0, std::move(name), kind} {
    options.hold = true;
    spool = open_spool(files, options);
    origin.epoch = spool->epoch();
    reader.emplace(files, kFolder, origin.epoch);
  }

  // `frames` frames of `size` bytes, of each of its streams in turn; they are synced.
  void write(int frames, uint64_t size = 500, StreamId streams = 2) {
    for (int i = 0; i < frames; ++i) {
      PieceBatch batch;
      const StreamId id = static_cast<StreamId>(written++) % streams;
      if (sizes.count(id) == 0) batch.opened = {stream_info(id, "/log/" + std::to_string(id))};
      batch.pieces = {piece_of(id, sizes[id], size)};
      sizes[id] += size;
      must(spool->append(batch, 1));
      must_commit(*spool);
    }
    must(spool->sync());
  }

  std::vector<VerbatimFrame> frames(uint64_t after) {
    auto found = reader->read({after, spool->synced_sequence(), 1 << 30});
    BOOST_REQUIRE(found.has_value());
    return std::move(*found);
  }

  // From the position of the archive; false if it takes no more for now.
  bool send(Archive& archive, TimeNs now = 1) {
    const auto at = archive.begin(origin, now);
    if (!at) return false;
    uint64_t after = at->value_or(0);
    if (!*at && spool->first_sequence() > 1) {
      const uint64_t first = spool->first_sequence();
      if (!archive.skip(origin.epoch, {1, first - 1, now, "dropped before it was sent"})) return false;
      const auto checkpoint = reader->checkpoint(first - 1);
      BOOST_REQUIRE(checkpoint.has_value());
      for (const VerbatimFrame& frame : checkpoint->frames)
        if (!archive.append(frame.bytes, now)) return false;
      after = first - 1;
    }
    for (const VerbatimFrame& frame : frames(after))
      if (!archive.append(frame.bytes, now)) return false;
    return true;
  }
  bool send_and_commit(Archive& archive, TimeNs now = 1) {
    return send(archive, now) && archive.commit(now).has_value();
  }

  MemoryFiles files;
  LogOrigin origin;
  std::unique_ptr<Spool> spool;
  std::optional<FrameReader> reader;
  std::map<StreamId, uint64_t> sizes;
  int written = 0;
};

inline Given read_stored(io::Files& files, const std::string& folder, const StoredStream& stored) {
  Given given;
  EvidenceSink sink;
  sink.bytes = [&](std::string_view bytes) {
    given.bytes += bytes;
    return true;
  };
  sink.gap = [&](const EvidenceGap& gap) {
    BOOST_TEST(gap.offset == given.bytes.size());
    given.gaps.push_back(gap);
    given.bytes.append(gap.in_range, '.');
  };
  const auto damage = EvidenceReader(files, folder).read({{stored}, 0, UINT64_MAX}, sink);
  BOOST_REQUIRE(damage.has_value());
  given.damage = *damage;
  return given;
}

inline std::vector<HostStream> stored_of(Archive& archive, const Host& host, const std::string& path = {}) {
  auto stored =
      archive.stored({.host = host.origin.host, .job = "j1", .path = path, .kind = host.origin.kind});
  BOOST_REQUIRE_MESSAGE(stored.has_value(), (stored ? "" : stored.error().text));
  return std::move(*stored);
}

// All bytes of the host are stored, once and in order.
inline void check_whole(Archive& archive, io::Files& files, const std::string& folder, const Host& host) {
  const auto stored = stored_of(archive, host);
  BOOST_TEST(stored.size() == host.sizes.size());
  for (const HostStream& stream : stored) {
    const StreamId id = stream.stored.state.info.id;
    const Given given = read_stored(files, folder, stream.stored);
    BOOST_TEST((given.bytes == bytes_of(id, 0, host.sizes.at(id))));
    BOOST_TEST(given.gaps.empty());
    BOOST_TEST(given.damage.frames == 0u);
  }
}

}  // namespace culprit::store::testing
