// What the collector does with what agents send: an interface that app implements over the archive and the
// engines, whose work is done on other threads.
//
// Thread: the loop's, calls and answers. The sink outlives its collector, and an answer that comes when the
// connection or the collector is gone does nothing.
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

// In the order in which they came; of one host.
using LogItem = std::variant<peer::Frame, peer::Skipped>;
// What it holds of the memory: a gap without a frame's bytes is some too, and a peer may send millions.
size_t weight(const LogItem& item);

class FrameSink {
 public:
  virtual ~FrameSink() = default;

  // A host is here, its name proven where there is TLS. Asked after everything that was taken of it before:
  // the marks are what is committed then, or will be without another word of the host. An error refuses it
  // (kDenied, kInvalid: for good; others: for now); an epoch belongs to one host.
  using HelloDone = std::function<void(Result<std::vector<peer::LogMark>>)>;
  virtual void hello(const peer::Hello& hello, HelloDone done) = 0;

  // Takes frames; done(ok) when they are appended, so that others may come: until then they count as held,
  // and the host is held up when they are many. It may wait as long as the disk does. Frames that are not
  // what they should be are an error (kInvalid), and the host is refused; after any error nothing of `items`
  // was taken from the frame on that failed, and the host sends again what was not acknowledged.
  // Copies of frames that it has already are dropped by it without a word, and like gaps they are committed:
  // committed() is said after every batch.
  struct Batch {
    std::string host;
    std::array<uint64_t, peer::kLogs.size()> epochs;  // by number of the log
    std::vector<LogItem> items;
    uint64_t bytes = 0;  // weight() of all items
  };
  virtual void take(Batch batch, std::function<void(Status)> done) = 0;

  virtual void status(const std::string& host, const peer::Status& status) = 0;
  virtual void connected(const std::string& host, const peer::Hello& hello, const std::string& address) = 0;
  virtual void disconnected(const std::string& host, const std::string& why) = 0;
  // For the log: somebody was refused. At most once in ten seconds for each reason.
  virtual void refused(peer::Refusal code, const std::string& sentence) = 0;
};

}  // namespace culprit::collect
