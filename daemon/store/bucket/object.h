// An object of evidence: frames of an archive, unchanged and grouped by log, and an index of what they hold.
// docs/formats.md has the format. ObjectMaker makes objects of an archive's segments, parse_index() reads an
// index; both pure but for the files.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "io/files.h"
#include "store/archive.h"
#include "store/archive_log.h"

namespace culprit::store::bucket {

// Frames of an object; one frame may exceed it. Memory of a maker: about three times as much.
constexpr uint64_t kObjectBytes = 8 << 20;
// A range that is read and verified: small, since a host has some kilobytes in an object of many hosts.
constexpr uint32_t kBlockBytes = 256 << 10;

struct ObjectStream {
  StreamInfo info;
  uint64_t size = 0;  // after this object
  bool ended = false;
  Extent extent;  // without segment; its bytes are in this object but for `holes`
  std::vector<Hole> holes;
};
struct ObjectLog {
  uint64_t epoch = 0;
  std::string host;
  std::vector<ObjectStream> streams;
};
struct ObjectIndex {
  std::vector<ObjectLog> logs;
  BlocksRecord blocks;  // of the bytes before the index
};
// kInvalid: damaged.
Result<ObjectIndex> parse_index(std::string_view bytes);

struct MadeObject {
  std::string bytes;      // header, frames, index
  uint64_t index_at = 0;  // offset of the index
  FramePlace from, to;    // of the archive; `from` may be behind the asked place: what was between is gone
  uint64_t lost_segments = 0;
  std::set<std::string> hosts, jobs;     // in the index; "" is a stream of no job
  std::map<uint64_t, uint64_t> reached;  // by epoch of the log: its last frame here, or the last one skipped
};

// `number` in key and header: the object's of its archive.
struct ObjectName {
  uint64_t archive = 0, epoch = 0, number = 0;
};
std::string prefix_of(uint64_t archive);  // "v1/ARCHIVE/"
std::string key_of(
    const ObjectName& name);  // "v1/ARCHIVE/EPOCH-NUMBER.cul": in the order of epoch and number

// One thread. Keeps the sources of the current segment in memory, as the archive does.
class ObjectMaker {
 public:
  ObjectMaker(io::Files& files, std::string folder) : files_(files), folder_(std::move(folder)) {}
  // The next object after `from`, of at most one segment; nothing: all committed evidence is in objects.
  // `segments`: the archive's, of evidence, with their committed sizes.
  Result<std::optional<MadeObject>> make(const std::vector<ReplayPlan::Part>& segments, FramePlace from,
                                         const ObjectName& name, TimeNs now);

 private:
  struct TakenFrame {
    FrameHeader header;
    std::string bytes;  // header and stored bytes
  };
  Status enter(uint64_t segment, uint64_t until);
  Result<bool> take_next(FramePlace& at, uint64_t size, std::string& out);
  Status gather(FramePlace& at, uint64_t size, std::vector<TakenFrame>& out);
  void take(const TakenFrame& frame, FramePlace place);
  void put_index(MadeObject& out, uint64_t archive, TimeNs now);

  io::Files& files_;
  const std::string folder_;
  uint64_t segment_ = 0, reached_ = 0;    // what logs_ has taken
  std::map<uint64_t, ArchivedLog> logs_;  // by epoch, as far as reached
  std::set<uint64_t> touched_;            // logs of the present object
  Unpacker unpacker_;
  std::string content_;
  ArchiveStats stats_;
};

}  // namespace culprit::store::bucket
