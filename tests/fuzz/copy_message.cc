// Any bytes of a connection, cut anywhere: they give messages or an error, the same for every cut, and each
// decoded message is encoded to the same bytes.
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "model/copies.h"

namespace {

using namespace culprit;

void require(bool condition) {
  if (!condition) std::abort();
}

struct Outcome {
  std::vector<copies::Message> messages;
  std::string error;
  bool operator==(const Outcome&) const = default;
};

Outcome split(std::string_view bytes, size_t step) {
  Outcome outcome;
  copies::Splitter splitter;
  splitter.allow(copies::kMessageBytes);
  for (size_t at = 0; outcome.error.empty() && at < bytes.size(); at += step) {
    splitter.add(bytes.substr(at, step));
    for (;;) {
      auto message = splitter.next();
      if (!message) outcome.error = message.error().text;
      if (!message || !*message) break;
      outcome.messages.push_back(std::move(**message));
    }
    require(splitter.held() <= bytes.size());
  }
  return outcome;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  const Outcome whole = split(bytes, size + 1), byte_by_byte = split(bytes, 1);
  require(whole.messages == byte_by_byte.messages && whole.error.empty() == byte_by_byte.error.empty());
  for (const copies::Message& message : whole.messages) {
    if (std::holds_alternative<copies::Unknown>(message)) continue;
    const Outcome again = split(copies::encode(message), 7);
    require(again.error.empty() && again.messages.size() == 1 && again.messages[0] == message);
  }
  return 0;
}
