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
// Memory of the item. A gap without bytes counts too: a peer may send millions.
size_t weight(const LogItem& item);

class FrameSink {
 public:
  virtual ~FrameSink() = default;

  // A host connected; with TLS its name is verified. Called after all its earlier frames were taken. The
  // marks are committed then, or will be without further messages of the host. An error refuses the host
  // (kDenied, kInvalid: for good; others: for now). An epoch belongs to one host.
  using HelloDone = std::function<void(Result<std::vector<peer::LogMark>>)>;
  virtual void hello(const peer::Hello& hello, HelloDone done) = 0;

  // Takes frames, and calls done(ok) once they are appended. Until then they count as held, and many held
  // frames stop reading from the host. It may take as long as the disk does. Malformed frames are an error
  // (kInvalid), and the host is refused. After an error, the failed frame and all later `items` are not
  // taken; the host resends frames without an acknowledgement. Duplicate frames are dropped silently and,
  // like gaps, count as committed: committed() follows every batch.
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
  // For the log: a peer was refused. At most once in ten seconds per reason.
  virtual void refused(peer::Refusal code, const std::string& sentence) = 0;
};

}  // namespace culprit::collect
