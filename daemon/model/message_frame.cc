#include "model/message_frame.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "base/bytes.h"
#include "base/text.h"

namespace culprit {
namespace {

constexpr size_t kSizeAt = kMessageHeaderBytes - sizeof(uint32_t);
constexpr size_t kBodyOfOthers = 128;  // room for texts, which the caller does not count
constexpr size_t kLargeBuffer = size_t{1} << 20;

}  // namespace

std::string begin_message(const ProtocolMark& mark, uint16_t type, size_t body_bytes) {
  std::string out(mark.bytes, sizeof mark.bytes);
  out.reserve(kMessageHeaderBytes + body_bytes + kBodyOfOthers);
  put(out, type);
  put(out, uint32_t{0});
  return out;
}

void end_message(std::string& message) {
  const auto size = static_cast<uint32_t>(message.size() - kMessageHeaderBytes);
  std::memcpy(message.data() + kSizeAt, &size, sizeof size);
}

void MessageBuffer::add(std::string_view bytes) {
  // Erases consumed bytes once they are at least half of the buffer: each byte moves about once.
  if (begin_ > 0 && begin_ * 2 >= buffer_.size()) {
    buffer_.erase(0, begin_);
    begin_ = 0;
    if (buffer_.empty() && buffer_.capacity() > kLargeBuffer) buffer_ = {};  // memory of one large message
  }
  buffer_ += bytes;
}

Result<std::optional<MessageBuffer::Framed>> MessageBuffer::next_frame() {
  const std::string_view rest = std::string_view(buffer_).substr(begin_);
  // Reports a wrong mark at its first wrong byte: a peer with another protocol may send nothing more and wait
  // for an answer.
  const size_t shown = std::min(rest.size(), sizeof mark_->bytes);
  if (rest.substr(0, shown) != std::string_view(mark_->bytes, shown))
    return fail(ErrorCode::kInvalid,
                fmt::format("{}: {}", mark_->refusal, shorten(to_terminal(rest.substr(0, 16)), 64)));
  if (rest.size() < kMessageHeaderBytes) return std::optional<Framed>();
  const auto type = get_at<uint16_t>(rest, sizeof mark_->bytes);
  const auto size = get_at<uint32_t>(rest, kSizeAt);
  if (size > max_)
    return fail(ErrorCode::kLimit,
                fmt::format("a message of {} bytes came where at most {} are taken", size, max_));
  if (rest.size() - kMessageHeaderBytes < size) return std::optional<Framed>();
  begin_ += kMessageHeaderBytes + size;
  return std::optional(Framed{type, rest.substr(kMessageHeaderBytes, size)});
}

}  // namespace culprit
