// Sends one checkpoint to another host: connects, offers the manifest, sends what the other side lacks, and
// has it committed. Each file is read once; its digest is that of the bytes sent. A file that changes
// meanwhile ends the copy with an error.
//
// Thread: the loop's, which also reads the files: it has no other work. Owned by the caller; destroying it
// ends the connection, and a later attempt continues where it ended.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "base/status.h"
#include "base/time.h"
#include "io/env.h"
#include "io/tls.h"
#include "model/copies.h"
#include "respond/checkpoint/digest.h"
#include "respond/checkpoint/source_file.h"

namespace culprit::respond::checkpoint {

struct CopySenderOptions {
  std::string to;  // HOST:PORT
  std::string host;
  std::shared_ptr<const io::TlsCredentials> tls;  // null: plain, to loopback only
  uint64_t rate = 0;                              // bytes read in a second
  TimeNs silence_ns = 120 * kNsPerSecond;         // without a sign of life while waiting for one
  TimeNs handshake_ns = 20 * kNsPerSecond;
};

struct CopySent {
  uint64_t sent = 0, read = 0;  // bytes
  bool was_complete = false;    // the other host had the copy already
};

class CopySender {
 public:
  // `done` is called once, never from within. After it the object does nothing.
  CopySender(io::Env& env, CopySenderOptions options, copies::Manifest manifest,
             std::function<void(Result<CopySent>)> done);
  ~CopySender();

  const copies::Manifest& manifest() const { return manifest_; }
  const CopySent& progress() const { return progress_; }
  // Held: nothing more is read or sent. The other side waits for 15 minutes.
  void hold(bool held);

 private:
  enum class State : uint8_t { kConnecting, kHandshake, kHello, kOffered, kSending, kCommitted, kEnded };

  void connected(Result<std::unique_ptr<io::Stream>> stream);
  void open(std::unique_ptr<io::Stream> stream);
  void on_bytes(std::string_view bytes);
  void handle(const copies::Message& message);
  void accepted(const copies::Accepted& accepted);
  void pump();
  bool next_file();
  Status send_part();
  Status end_file();
  bool may_send() const;
  void refill();
  void tick();
  void write(const copies::Message& message);
  void end(Result<CopySent> result);
  TimeNs mono() const { return env_.now(io::Clock::kMonotonic); }

  io::Env& env_;
  const CopySenderOptions options_;
  copies::Manifest manifest_;
  std::function<void(Result<CopySent>)> done_;
  State state_ = State::kConnecting;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
  std::unique_ptr<io::Connecting> connecting_;
  std::unique_ptr<io::Stream> stream_;
  std::unique_ptr<io::Timer> tick_, wait_;
  copies::Splitter splitter_;
  std::vector<uint64_t> have_;
  size_t file_ = 0, stored_ = 0;  // index of the current file; files that the other side confirmed
  std::optional<SourceFile> source_;
  uint64_t mark_ = 0;    // of the current file, at its opening
  uint64_t offset_ = 0;  // read of the current file
  Sha256 hash_;
  std::string buffer_;
  uint64_t data_sent_ = 0, data_acked_ = 0;
  bool held_ = false;
  bool posted_ = false;  // a pump() comes
  double tokens_ = 0;
  TimeNs refilled_ns_ = 0, began_ns_ = 0, received_ns_ = 0;
  CopySent progress_;
};

}  // namespace culprit::respond::checkpoint
