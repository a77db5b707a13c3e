// The collector's output: an interface that app implements over the archive and the engines, which work on
// other threads.
//
// Thread: the loop's, for calls and answers. The sink outlives its collector. An answer after the connection
// or the collector ended has no effect.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <string>
#include <variant>
#include <vector>

#include "base/status.h"
#include "model/peer.h"

namespace culprit::collect {

// Of one host, in order of arrival.
using LogItem = std::variant<peer::Frame, peer::Skipped>;
// Memory of the item. A gap without bytes counts too, because a peer may send millions of gaps.
size_t weight(const LogItem& item);

class FrameSink {
 public:
  virtual ~FrameSink() = default;

  // A host connected; with TLS, its name is verified. Called after the sink took all earlier frames of the
  // host. The returned marks are committed, or will be without further messages of the host. An error
  // refuses the host (kDenied, kInvalid: permanently; others: temporarily). An epoch belongs to one host.
  using HelloDone = std::function<void(Result<std::vector<peer::LogMark>>)>;
  virtual void hello(const peer::Hello& hello, HelloDone done) = 0;

  // Takes frames, and calls done(ok) once they are appended. Until then the frames count as held; with many
  // held frames, the host is not read. The call may take as long as the disk does. Malformed frames are an
  // error (kInvalid), and the host is refused. After an error, the failed frame and all later `items` are
  // not stored; the host resends unacknowledged frames. Duplicate frames are dropped silently and, like
  // gaps, count as committed: committed() follows every batch.
  struct Batch {
    std::string host;
    std::array<uint64_t, peer::kLogs.size()> epochs;  // indexed by log
    std::vector<LogItem> items;
    uint64_t bytes = 0;  // weight() of all items
  };
  virtual void on_batch(Batch batch, std::function<void(Status)> done) = 0;

  virtual void status(const std::string& host, const peer::Status& status) = 0;
  virtual void connected(const std::string& host, const peer::Hello& hello, const std::string& address) = 0;
  virtual void disconnected(const std::string& host, const std::string& why) = 0;
  // A peer was refused; for the log. Called at most once in ten seconds per reason.
  virtual void refused(peer::Refusal code, const std::string& sentence) = 0;
};

}  // namespace culprit::collect
