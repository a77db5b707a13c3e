// Any bytes as a ring's file, and any changes by its owner while it is open. An input is a header of 328
// bytes, the file's size in records (u16), flags (bit 0: its process is dead), and steps of 9 bytes: kind
// (u8), value (u64). For any input, pieces are consecutive, have whole records, and stay within the budget;
// no piece follows the end of a source.
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <string>

#include <fmt/format.h>

#include "base/limits.h"
#include "ingest/live/ring_file.h"
#include "ingest/live/ring_reader.h"

namespace {

using namespace culprit;
using namespace culprit::ingest;

void require(bool condition) {
  if (!condition) std::abort();
}

class Host {
 public:
  Host(const std::string& folder, bool dead)
      : path_(folder + fmt::format("/{}-1-{}.ring", getpid(), 1ull << 62)) {
    options_.folder = folder;
    options_.allocate = [this] { return next_++; };
    if (dead) options_.proc = "/nowhere";
    restart();
  }

  void restart() {
    std::vector<StreamState> known;
    for (const auto& [id, state] : streams_) known.push_back(state);
    reader_ = std::make_unique<RingReader>(options_, known);
  }

  void round(size_t budget) {
    now_ += 300 * kNsPerMs;
    const RingReader::RingRead out = reader_->round({now_, now_, budget});
    require(out.batch.bytes() <= budget);
    require(out.next_ns >= now_);
    for (const StreamInfo& info : out.batch.opened) {
      require(!streams_.contains(info.id));
      streams_[info.id].info = info;
    }
    for (const Piece& piece : out.batch.pieces) {
      StreamState& state = streams_.at(piece.stream);
      require(!state.ended && piece.offset == state.size);
      require(piece.bytes.size() % 64 == 0 && piece.bytes.size() <= limits::kPieceBytes);
      require(!piece.bytes.empty() || piece.gap || piece.ends);
      state.size += piece.bytes.size();
      state.place = piece.place;
      state.ended = piece.ends;
    }
  }

  void commit() {
    for (const auto& [id, state] : streams_) reader_->committed(id, state.size);
  }

  const std::string& path() const { return path_; }

 private:
  std::string path_;
  RingOptions options_;
  std::unique_ptr<RingReader> reader_;
  std::map<StreamId, StreamState> streams_;
  StreamId next_ = 0;
  TimeNs now_ = 1000 * kNsPerSecond;
};

void put(const std::string& path, uint64_t at, uint64_t value, size_t size) {
  std::fstream out(path, std::ios::binary | std::ios::in | std::ios::out);
  out.seekp(static_cast<std::streamoff>(at));
  out.write(reinterpret_cast<const char*>(&value), static_cast<std::streamsize>(size));
}

void step(Host* host, uint8_t what, uint64_t value) {
  std::error_code ignored;
  const uint64_t small = value % (1 << 16);
  switch (what % 10) {
    case 0:
      return put(host->path(), 64, value, 8);
    case 1:
      return put(host->path(), 128, value, 8);
    case 2:
      return put(host->path(), 192, value, 8);
    case 3:
      return std::filesystem::resize_file(host->path(), small, ignored);
    case 4:
      return put(host->path(), small % 400, value >> 16, 1);
    case 5:
      return host->commit();
    case 6:
      return host->restart();
    case 7:
      return host->round(small);
    case 8:
      std::filesystem::remove(host->path(), ignored);
      return;
    default:
      std::filesystem::rename(host->path(), host->path() + ".tmp", ignored);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  const auto name = parse_ring_name(bytes);
  require(!name || bytes.find(".ring") != std::string_view::npos);
  const auto header = parse_ring_header(bytes, size < 338 ? size : 1 << 20);
  require(!header || (header->capacity > 0 && header->capacity <= limits::kRingRecords));
  if (size < kRingHeaderUsed + 3) return 0;
  char folder[] = "/tmp/culprit-fuzz-ring-XXXXXX";
  require(mkdtemp(folder) != nullptr);
  {
    uint16_t records;
    std::memcpy(&records, data + kRingHeaderUsed, 2);
    Host host(folder, data[kRingHeaderUsed + 2] & 1);
    std::ofstream(host.path(), std::ios::binary).write(bytes.data(), kRingHeaderUsed);
    std::filesystem::resize_file(host.path(), kRingHeaderBytes + 64 * (records % 1024));
    host.round(1 << 20);
    size_t at = kRingHeaderUsed + 3;
    for (int steps = 0; steps < 64 && at + 9 <= size; ++steps, at += 9) {
      uint64_t value;
      std::memcpy(&value, data + at + 1, 8);
      step(&host, data[at], value);
      host.round(1 << 20);
    }
    for (int i = 0; i < 3; ++i) {
      host.commit();
      host.round(1 << 20);
    }
  }
  std::filesystem::remove_all(folder);
  return 0;
}
