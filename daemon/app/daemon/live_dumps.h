// Dumps that processes of one job leave (Flight Recorder), out of the pieces of their files: one says
// something once all of it is there and its reader accepts it. Written anew, a file is another dump. What is
// cut off, damaged or hostile is told as a problem and says nothing: a rank whose last operations are missing
// would look like one that is stuck.
//
// One thread: the engine's or the uplink's worker. No clock: time is that at which a piece was read. Bytes
// are held until their dump is whole, over all jobs at most limits::kLiveDumpBytes.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "model/flight.h"
#include "model/piece.h"
#include "model/report.h"

namespace culprit::app {

class LiveDumps {
 public:
  // `held`: of all jobs together; it outlives this.
  explicit LiveDumps(size_t& held) : held_(held) {}
  LiveDumps(const LiveDumps&) = delete;
  LiveDumps& operator=(const LiveDumps&) = delete;
  ~LiveDumps();

  void take(const StreamInfo& info, const Piece& piece, TimeNs now);
  // What has stood still for a while is tried, and given up after a longer one.
  void settle(TimeNs now);
  // Nothing follows: what is not whole is cut off.
  void end();
  // Bytes of the stream are held.
  bool pending(StreamId stream) const;

  // Since the last call.
  std::vector<FlightDump> take_whole() { return std::exchange(whole_, {}); }
  std::vector<Problem> take_problems() { return std::exchange(problems_, {}); }

 private:
  struct File {
    std::string path, bytes;
    std::optional<FilePlace> at;
    TimeNs last_ns = kNoTime;
    size_t tried = 0;   // bytes when it was read in vain
    bool over = false;  // read or given up: nothing more of this one counts
    std::string why;    // it was read in vain
  };
  void append(File& file, const std::string& bytes);
  void try_to_read(File& file);
  void give_up(File& file, const std::string& why);
  void close(File& file);

  size_t& held_;
  std::map<StreamId, File> files_;
  std::vector<FlightDump> whole_;
  std::vector<Problem> problems_;
};

// Whether the piece is of another file, or of one written anew, from its first byte on.
bool begins_file(const Piece& piece);

}  // namespace culprit::app
