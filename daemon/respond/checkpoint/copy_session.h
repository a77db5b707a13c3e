// One connection of the server. Used and owned by copy_server.cc only; the loop's thread.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "respond/checkpoint/copy_server.h"

namespace culprit::respond::checkpoint {

class CopySession : public std::enable_shared_from_this<CopySession> {
 public:
  CopySession(CopyServer& owner, bool local, std::string from)
      : owner_(owner),
        local_(local),
        began_ns_(owner.mono()),
        received_ns_(began_ns_),
        from_(std::move(from)) {}

  void begin(std::unique_ptr<io::Stream> stream);
  void sweep(TimeNs now);
  void close();
  // Whether this connection is storing this copy of the host.
  bool stores(const std::string& host, const std::string& id) const;
  // A newer connection stores the copy.
  void give_way();
  // Limits hold for each network, and each user of this host.
  const std::string& from() const { return from_; }
  bool is_local() const { return local_; }

 private:
  enum class State : uint8_t { kHandshake, kHello, kOpen, kStoring, kServing, kRelay, kLeaving, kEnded };

  void started();
  void on_bytes(std::string_view bytes);
  void handle_messages();
  bool catches_up(const copies::Message& message);
  void handle(const copies::Message& message);
  void hello(const copies::Hello& hello);
  Status identify(const copies::Hello& hello);
  void offer(const copies::Offer& offer);
  void data(const copies::Data& data);
  void file_end(const copies::FileEnd& end);
  void commit();
  void list();
  void get(const copies::Get& get);
  void fetch(const copies::Fetch& fetch);
  void pump();
  void answer();
  bool may_read(const CopyStore::Copy& copy) const;
  void store_failed(const Error& error);

  void relay(const std::string& to);
  void relay_connected(Result<std::unique_ptr<io::Stream>> stream);
  void relay_open();

  void write(const copies::Message& message);
  void refuse(const std::string& sentence, bool full = false);
  void end_with(const copies::Refused& refused);

  CopyServer& owner_;
  const bool local_;
  State state_ = State::kHandshake;
  TimeNs began_ns_ = 0, received_ns_ = 0, refused_ns_ = 0;
  std::string from_;
  std::string host_;             // of the other side
  std::optional<uint32_t> uid_;  // who asks; nothing: root, or an agent for itself
  std::unique_ptr<io::Stream> stream_;
  io::TlsStream* tls_ = nullptr;  // stream_, if it is one
  copies::Splitter splitter_;

  std::unique_ptr<IncomingCopy> incoming_;
  bool catching_up_ = false;
  std::optional<copies::Message> waiting_;  // until what was stored before is hashed
  uint64_t received_bytes_ = 0;

  std::optional<copies::Manifest> manifest_;  // being restored
  std::string id_, of_host_;
  std::unique_ptr<io::FileHandle> file_;
  uint32_t file_index_ = 0;
  uint64_t offset_ = 0, sent_ = 0, acked_ = 0;
  bool posted_ = false;  // a pump() comes

  std::unique_ptr<io::Connecting> connecting_;
  std::unique_ptr<io::Stream> pending_, upstream_;  // before and after its handshake
  std::string to_;
};

}  // namespace culprit::respond::checkpoint
