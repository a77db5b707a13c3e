// Evidence in a simulated cluster: the frames of agents, the archive of each member, as store/archive writes
// its segments, and one reading of all objects of the bucket.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "cluster_places.h"
#include "sim/sim_files.h"
#include "store/archive.h"

namespace culprit::sim {

struct AgentFrame {
  uint64_t sequence = 0, offset = 0, bytes = 0;
};

// A host with one log and one source in it.
struct Agent {
  std::string host, job;
  uint64_t epoch = 0;
  std::vector<AgentFrame> frames;  // by sequence, from 1
  uint64_t acknowledged = 0;       // the last frame
  size_t target = 0;               // node that it sends to
  uint64_t owner_epoch = 0;        // the newest that it heard of
  uint64_t asked = 0;              // number of the present batch; 0: none
  TimeNs until_ns = 0;

  uint64_t bytes() const { return frames.empty() ? 0 : frames.back().offset + frames.back().bytes; }
  uint64_t acknowledged_bytes() const {
    return acknowledged == 0 ? 0 : frames[acknowledged - 1].offset + frames[acknowledged - 1].bytes;
  }
};
// Bytes [from, from + size) of an agent's source.
std::string evidence_of(uint64_t epoch, uint64_t from, uint64_t size);

// Where a frame is in an archive.
struct Copy {
  uint64_t agent = 0, sequence = 0, segment = 0, at = 0;
};

// The archive of one member on its disk; it survives the member's processes, but not its disk.
class SimArchive {
 public:
  SimArchive(SimFiles& files, uint64_t id);
  // Frames first.. of the agent; what is stored is dropped, and what was left out before them is noted.
  void append(const Agent& agent, uint64_t first, uint64_t last, TimeNs now);
  // All that was appended is durable.
  void commit();
  void drop_oldest();
  std::vector<store::ReplayPlan::Part> segments() const { return committed_; }
  uint64_t id() const { return id_; }
  const std::string& folder() const { return folder_; }
  const std::vector<Copy>& copies() const { return copies_; }
  bool has_dropped(uint64_t segment) const { return segment < first_segment_; }
  bool wiped = false;

 private:
  struct Log {
    uint64_t sequence = 0, size = 0, declared_in = 0;
    bool begun = false;
  };
  void ensure_segment(TimeNs now);
  void write(std::string_view bytes);
  void put_own(const Agent& agent, Log& log, std::string_view raw, TimeNs now);

  SimFiles& files_;
  const uint64_t id_;
  const std::string folder_;
  std::unique_ptr<io::FileHandle> file_;
  uint64_t segment_ = 0, size_ = 0, first_segment_ = 1;
  std::vector<store::ReplayPlan::Part> parts_, committed_;
  std::map<uint64_t, Log> logs_;  // by epoch
  std::vector<Copy> copies_;
};

// Reads all objects that have a row, as a member without an archive of its own would. Each acknowledged byte
// that an object has must be read, as it was sent, and each other one be in a gap.
void check_reading(const std::vector<Agent>& agents, const std::vector<std::unique_ptr<SimArchive>>& archives,
                   const Database& database, const Stored& stored, Account& account);

}  // namespace culprit::sim
