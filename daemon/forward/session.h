// One connection of the forwarder: TLS, Hello, and after Welcome frames, acknowledgements and heartbeats
// until the connection is lost. Used and owned by forwarder.cc only; the loop's thread. After reporting its
// loss to the owner, a session does nothing.
#pragma once

#include <deque>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/thread_owner.h"
#include "forward/forwarder.h"

namespace culprit::forward {

class Session {
 public:
  Session(Forwarder& owner, std::unique_ptr<io::Stream> stream);
  ~Session();

  void appended(peer::Log log);
  void finding();
  void send(const peer::Message& result);
  void bye(const std::string& sentence);

 private:
  // Sent and not acknowledged.
  struct Sent {
    uint64_t to = 0;  // the last sequence of it
    uint64_t bytes = 0;
    TimeNs packed_ns = kNoTime;
    bool skipped = false;
  };
  struct Out {
    uint64_t epoch = 0;
    uint64_t cursor = 0;  // sent or skipped up to here
    bool enabled = false;
    bool reading = false;
    bool waits = false;            // for time or for new frames
    uint64_t elsewhere = 0;        // up to here another collector has the frames
    bool with_checkpoint = false;  // for the next read: the collector does not have earlier declarations
    std::deque<Sent> sent;
    bool archives = false;        // the collector puts the log into object storage
    std::deque<Sent> unarchived;  // acknowledged; only those with a pack time
  };

  void ready(Status status);
  void start();
  void send_hello();
  void on_bytes(std::string_view bytes);
  void on_end(const Error* error);
  void tick();
  Status certificate_holds();
  void beat(TimeNs now);
  void note_stall(TimeNs now);

  bool handle(const peer::Message& message);
  bool welcome(const peer::Welcome& welcome);
  void begin_log(const peer::LogBounds& reported, const peer::LogMark& mark);
  bool acknowledge(const peer::Ack& ack);
  void on_archived(const peer::Archived& archived);
  void decided(Out& out, uint64_t sequence);
  void on_owners(const peer::JobOwners& owners);
  void leave_if_done();

  void pump();
  bool may_read(peer::Log log);
  uint64_t room(peer::Log log) const;
  void read(peer::Log log);
  void on_frames(peer::Log log, Result<std::vector<SourceFrame>> frames);
  void send_frames(peer::Log log, std::vector<SourceFrame> frames);
  void send_frame(peer::Log log, SourceFrame frame);
  // `packed_ns`: of the last of them, if known.
  void skip(peer::Log log, uint64_t to, const char* reason, TimeNs packed_ns = kNoTime);
  void out_of_hand(peer::Log log, Sent sent);

  void write(const peer::Message& message);
  void lose(const std::string& why, bool hopeless = false);
  Out& out(peer::Log log) { return outs_[static_cast<size_t>(log)]; }
  LogProgress& progress(peer::Log log) { return owner_.stats_.logs[static_cast<size_t>(log)]; }

  Forwarder& owner_;
  std::unique_ptr<io::Stream> stream_;
  io::TlsStream* tls_ = nullptr;                           // stream_, if it is one
  std::shared_ptr<const io::TlsCredentials> verified_by_;  // the collector's certificate
  std::unique_ptr<io::Timer> tick_;
  std::shared_ptr<Session*> alive_;  // lets answers of the source check whether the session still exists
  peer::Splitter splitter_;
  std::vector<peer::LogBounds> reported_;  // as sent in Hello
  std::array<Out, peer::kLogs.size()> outs_;
  std::vector<std::string> jobs_;  // as sent in the last Status
  std::string leaves_to_;          // the collector that owns the jobs: nothing more is sent to this one
  TimeNs leaves_ns_ = kNoTime;     // monotonic: since when
  bool open_ = false, dead_ = false, pumping_ = false, again_ = false;
  TimeNs begun_ns_, last_received_ns_, beaten_ns_ = 0;  // monotonic
  TimeNs open_since_ns_ = kNoTime;                      // monotonic
  TimeNs waiting_since_ns_ = kNoTime;                   // monotonic: for an acknowledgement
  uint64_t unacked_bytes_ = 0;
  ThreadOwner thread_;
};

}  // namespace culprit::forward
