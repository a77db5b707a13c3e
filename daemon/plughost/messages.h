// Messages between the daemon and a host program, over a stream. Each message has a head with its size. The
// daemon trusts no byte of a message, since a plugin can write to the channel. Values; one thread at a
// time.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/time.h"
#include "model/plugin_finding.h"
#include "plughost/description.h"
#include "plughost/detector.h"

namespace culprit::plughost {

enum class MessageKind : uint16_t {
  // To the host program.
  kCreate = 1,  // CreateRequest
  kEvents = 2,  // a batch of an EventWriter
  kTick = 3,    // int64: the wall clock
  kStop = 4,    // saves the state and ends
  // From it.
  kHello = 16,    // Description
  kRefused = 17,  // a reason: the library is no plugin, or it created no detector
  kReady = 18,    // uint8: whether the state was loaded
  kFinding = 19,  // PluginFinding, without the plugin's name
  kLog = 20,      // uint32 severity, and a text
  kState = 21,    // the saved state, perhaps empty
  kDone = 22,     // Done: kEvents or kTick is finished
};

struct CreateRequest {
  std::string host, version;
  DetectorLimits limits;
  OptionValues options;
  std::string state;  // of an earlier instance; empty: none
};

struct Done {
  MessageKind kind = MessageKind::kEvents;  // or kTick
  int32_t result = 0;
  uint64_t findings_dropped = 0;
};

struct LogLine {
  uint32_t severity = 0;
  std::string text;
};

std::string encode(const CreateRequest& request);
std::string encode(const Description& description);
std::string encode(const PluginFinding& finding);
std::string encode(const LogLine& line);
std::string encode(const Done& done);
// False: malformed. Checks the form alone.
bool decode(std::string_view bytes, CreateRequest& out);
bool decode(std::string_view bytes, Description& out);
bool decode(std::string_view bytes, PluginFinding& out);
bool decode(std::string_view bytes, LogLine& out);
bool decode(std::string_view bytes, Done& out);

// Appends the encoded message to `out`.
void append_message(std::string& out, MessageKind kind, std::string_view payload);
constexpr size_t kMessageHeadBytes = 8;
// Updates the size in the head of the last message, which starts at `at`, after bytes were appended to its
// payload.
void set_message_size(std::string& out, size_t at);

class MessageReader {
 public:
  struct Message {
    MessageKind kind{};
    std::string_view payload;  // valid until room()
  };
  enum class Next : uint8_t { kNone, kMessage, kMalformed };

  // Buffer for the next bytes, with its size; afterwards call added() with the number of bytes read.
  char* room(size_t& size);
  void added(size_t size) { filled_ += size; }
  Next next(Message& out);

 private:
  std::string bytes_;
  size_t begin_ = 0, filled_ = 0;  // the bytes that are not used yet
};

}  // namespace culprit::plughost
