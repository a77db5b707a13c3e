// One connection of the collector, from its first byte to its end. Used and owned by collector.cc only;
// shared with pending calls. The loop's thread.
#pragma once

#include <array>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/thread_owner.h"
#include "collect/collector.h"

namespace culprit::collect {

class Session : public std::enable_shared_from_this<Session> {
 public:
  enum class State : uint8_t { kTls, kHello, kAsking, kOpen, kClosing, kClosed };

  Session(Collector& owner, std::unique_ptr<io::Stream> stream);
  void begin();
  // `late`: the loop stalled, so handshakes must not time out. `verifies`: remaining certificates that may
  // be verified again in this sweep.
  void sweep(TimeNs now, bool late, size_t& verifies);
  void refuse(peer::Refusal code, const std::string& sentence);
  void close(const std::string& why);
  void bye(const std::string& sentence);
  void committed(uint64_t epoch, uint64_t sequence);
  void archived(uint64_t epoch, uint64_t sequence);
  bool want(const peer::Message& wanted);
  void taken(uint64_t bytes, const Status& status);
  void read_or_not();

  State state() const { return state_; }
  const peer::Hello& hello() const { return hello_; }
  std::string who() const;
  const std::string& network() const { return network_; }
  bool has_begun() const;  // handshake begun: with TLS a whole first message, else one byte
  bool is_silent(TimeNs now) const;
  size_t partial_bytes() const { return splitter_.held(); }
  HostConnection facts() const;

 private:
  // Progress of a log.
  struct In {
    uint64_t epoch = 0;
    bool open = false;
    uint64_t cursor = 0;     // received or skipped up to here
    uint64_t committed = 0;  // as the sink reported
    uint64_t acked = 0;      // acknowledged to the agent
    uint64_t archived = 0;   // in object storage
    uint64_t archived_sent = 0;
  };

  void ready(Status status);
  void start();
  void on_bytes(std::string_view bytes);
  void handle(peer::Message message);
  void on_hello(peer::Hello hello);
  void answered(Result<std::vector<peer::LogMark>> marks);
  void on_frame(peer::Frame frame);
  void on_skipped(peer::Skipped skipped);
  void keep(LogItem item);
  bool fits(peer::Log log, uint64_t first, const char* what);
  void hand_on();
  void acknowledge();
  Status certificate_holds(size_t& verifies);
  void leave(const std::string& why);
  void write(const peer::Message& message);
  bool has_room() const;

  Collector& owner_;
  std::unique_ptr<io::Stream> stream_;
  io::TlsStream* tls_ = nullptr;  // stream_, if it is one
  std::string address_, network_;
  std::shared_ptr<const io::TlsCredentials> verified_by_;  // the peer's certificate
  State state_ = State::kHello;
  peer::Splitter splitter_;
  peer::Hello hello_;
  peer::Version version_;
  std::array<In, peer::kLogs.size()> ins_;
  FrameSink::Batch batch_;
  uint64_t held_bytes_ = 0;  // received and not appended
  bool paused_ = false;
  TimeNs begun_ns_, last_received_ns_, pinged_ns_ = 0;  // monotonic
  TimeNs since_ns_ = kNoTime;                           // wall clock
  TimeNs clock_ahead_ns_ = 0, closes_ns_ = 0;
  uint64_t frames_ = 0, bytes_ = 0, duplicates_ = 0;
  ThreadOwner thread_;
};

}  // namespace culprit::collect
