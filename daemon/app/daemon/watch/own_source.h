// A source of lines that the daemon writes itself, as its captures and checks: stored and diagnosed as those
// of a plugin. It goes on where the run before ended. The loop's thread.
#pragma once

#include <string>
#include <string_view>

#include "app/daemon/keep/recorder.h"
#include "model/piece.h"

namespace culprit::app {

class OwnSource {
 public:
  // `recorder`: borrowed; knows the sources of earlier runs and gives numbers to new ones.
  OwnSource(Recorder& recorder, std::string_view path);

  // A batch with these lines; the first one of a new source declares it too.
  PieceBatch batch(std::string lines, TimeNs now);

 private:
  Recorder& recorder_;
  const std::string path_;
  StreamId stream_ = kNoStream;  // kNoStream: not declared
  uint64_t offset_ = 0;
};

// Whether the daemon itself writes the source of this path. No plugin does.
bool is_own_source(std::string_view path);

}  // namespace culprit::app
