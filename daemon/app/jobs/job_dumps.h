// Flight Recorder dumps of one job's processes, assembled from the pieces of their files. A dump counts once
// it is complete and its reader accepts it. A file that is written again is another dump. Cut, damaged or
// hostile dumps are reported as problems and not used: a rank without its last operations would look stuck.
//
// One thread: the engine's or the uplink's worker. No clock: the time is the read time of a piece. Incomplete
// dumps are buffered compressed, at most limits::kLiveDumpsPacked over all jobs. One dump at a time is read,
// within limits::kLiveDumpHeld.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "app/jobs/packed_text.h"
#include "base/time.h"
#include "model/flight.h"
#include "model/piece.h"
#include "model/report.h"

namespace culprit::app {

// A file without new bytes for this time is quiet: three rounds of a tailer. A process writes a dump or a
// line without such pauses.
constexpr TimeNs kQuiet = kNsPerSecond;

// Of all jobs on a host.
struct DumpReading {
  size_t held = 0;  // compressed bytes of incomplete dumps
  // Called with the file before it is read, and with "" afterwards. May be empty.
  std::function<void(std::string_view path)> reading = {};
  // Whether to skip the file because memory ran out in it before. Empty: reads all files.
  std::function<bool(std::string_view path)> left_out = {};
};

class JobDumps {
 public:
  // `all` outlives this.
  explicit JobDumps(DumpReading& all) : all_(all) {}
  JobDumps(const JobDumps&) = delete;
  JobDumps& operator=(const JobDumps&) = delete;
  ~JobDumps();

  void ingest(const StreamInfo& info, const Piece& piece, TimeNs now);
  // Reads dumps that have not grown for a while, up to the first complete one; abandons a dump after a longer
  // time. Returns whether a dump is complete: take it, and call again.
  bool settle(TimeNs now);
  // No more data follows: abandons incomplete dumps. Returns the same as settle().
  bool end();
  // Whether bytes of the stream are buffered.
  bool pending(StreamId stream) const;
  // Buffered bytes of this job, compressed.
  uint64_t bytes() const { return held_; }

  // Complete dumps since the last call.
  std::vector<FlightDump> take_whole() { return std::exchange(whole_, {}); }
  std::vector<Problem> take_problems() { return std::exchange(problems_, {}); }

 private:
  struct File {
    std::string path;
    PackedText text;
    std::optional<FilePlace> at;
    TimeNs last_ns = kNoTime;
    size_t tried = 0;   // size at the last failed attempt
    bool over = false;  // read or abandoned: later bytes are ignored
    std::string why;    // why the last attempt failed
  };
  void append(File& file, const std::string& bytes);
  void try_to_read(File& file);
  void discard(File& file, const std::string& why);
  void close(File& file);

  DumpReading& all_;
  std::map<StreamId, File> files_;
  uint64_t held_ = 0;
  std::vector<FlightDump> whole_;
  std::vector<Problem> problems_;
};

// Whether the piece starts a file: another one, or the same one written again.
bool begins_file(const Piece& piece);

}  // namespace culprit::app
