// Any bytes as a message of a sweep, or as its meeting file: what is taken has the same text again.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "app/sweep/launch.h"
#include "app/sweep/messages.h"

using namespace culprit::app::sweeping;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  if (const auto message = parse_message(bytes)) {
    std::string line = to_line(*message);
    line.pop_back();
    const auto again = parse_message(line);
    if (!again || to_line(*again) != line + "\n") std::abort();
  }
  if (const auto meeting = parse_meeting(bytes))
    if (meeting_text(*meeting).size() > bytes.size()) std::abort();
  return 0;
}
