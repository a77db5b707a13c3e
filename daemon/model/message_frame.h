// The frame of messages between programs: two bytes that name the protocol, type u16, size of the body u32,
// body; numbers little-endian. Pure; a MessageBuffer belongs to one connection. Memory is bounded by the
// received bytes.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/status.h"

namespace culprit {

struct ProtocolMark {
  char bytes[2];
  const char* refusal;  // of other bytes: "what came is none of our messages"
};

constexpr size_t kMessageHeaderBytes = 8;

// A message without its body, with room for `body_bytes`: append the body, and call end_message().
std::string begin_message(const ProtocolMark& mark, uint16_t type, size_t body_bytes);
void end_message(std::string& message);

// Cuts the received bytes of a connection into messages.
class MessageBuffer {
 public:
  // `max`: size limit of the first message's body. `mark` must outlive the buffer.
  MessageBuffer(const ProtocolMark& mark, size_t max) : mark_(&mark), max_(max) {}
  // Size limit of the following messages; a larger message is an error.
  void allow(size_t message_bytes) { max_ = message_bytes; }
  void add(std::string_view bytes);
  size_t held() const { return buffer_.size() - begin_; }  // bytes of messages not returned yet

 protected:
  struct Framed {
    uint16_t type = 0;
    std::string_view body;  // until the next add()
  };
  // nullopt: more bytes are needed. After an error no message follows.
  Result<std::optional<Framed>> next_frame();

 private:
  const ProtocolMark* mark_;
  std::string buffer_;
  size_t begin_ = 0;
  size_t max_;
};

}  // namespace culprit
