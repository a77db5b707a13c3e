// What a plugin may write to its channel, and events for plugins: any bytes are decoded or refused.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "plughost/detector.h"
#include "plughost/events.h"
#include "plughost/messages.h"

using namespace culprit::plughost;

namespace {

uint64_t sum = 0;  // of what a plugin would read

void read_text(const char* text) {
  for (; *text != '\0'; ++text) sum += static_cast<unsigned char>(*text);
}

void read_event(const culprit_event& event) {
  read_text(event.job);
  read_text(event.host);
  read_text(event.source);
  if (event.kind == CULPRIT_EVENT_LOG || event.kind == CULPRIT_EVENT_KERNEL) {
    const auto& line = *static_cast<const culprit_line*>(event.body);
    for (uint64_t i = 0; i <= line.text_bytes; ++i) sum += static_cast<unsigned char>(line.text[i]);
    read_text(line.message_template);
    for (uint64_t i = 0; i < line.parameter_count; ++i) read_text(line.parameters[i]);
  }
  if (event.kind == CULPRIT_EVENT_STACK) {
    const auto& stack = *static_cast<const culprit_stack*>(event.body);
    for (uint64_t i = 0; i < stack.thread_count; ++i) {
      read_text(stack.threads[i]->name);
      for (uint64_t f = 0; f < stack.threads[i]->frame_count; ++f) read_text(stack.threads[i]->frames[f]);
    }
  }
}

void events(std::string_view bytes) {
  EventReader reader;
  const bool sound = reader.read(bytes);
  for (size_t i = 0; i < reader.count(); ++i) read_event(*reader.events()[i]);
  std::string all;
  const size_t count = select_events(bytes, ~uint64_t{0}, &all);
  if (sound && (count != reader.count() || all != bytes)) std::abort();
  select_events(bytes, CULPRIT_BIT(CULPRIT_EVENT_COMM), &all);
}

template <class T>
void decode_as(std::string_view payload) {
  T value;
  if (!decode(payload, value)) return;
  T again;  // what was decoded is written as it was
  if (!decode(encode(value), again) || encode(again) != encode(value)) std::abort();
}

void message(const MessageReader::Message& of) {
  switch (of.kind) {
    case MessageKind::kCreate:
      return decode_as<CreateRequest>(of.payload);
    case MessageKind::kEvents:
      return events(of.payload);
    case MessageKind::kHello: {
      Description description;
      if (decode(of.payload, description) && check_description(description, "x"))
        (void)resolve_options(description, {{"a", "1"}});
      return decode_as<Description>(of.payload);
    }
    case MessageKind::kFinding: {
      culprit::PluginFinding finding;
      if (decode(of.payload, finding)) sum += finding_fault(finding).size();
      return decode_as<culprit::PluginFinding>(of.payload);
    }
    case MessageKind::kLog:
      return decode_as<LogLine>(of.payload);
    case MessageKind::kDone:
      return decode_as<Done>(of.payload);
    default:
      return;
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::string_view bytes(reinterpret_cast<const char*>(data), size);
  if (bytes.empty()) return 0;
  if (bytes[0] == 'E') {
    events(bytes.substr(1));
    return 0;
  }
  // A stream in pieces, as recv gives them.
  const size_t piece = static_cast<size_t>(static_cast<unsigned char>(bytes[0])) + 1;
  bytes.remove_prefix(1);
  MessageReader reader;
  while (!bytes.empty()) {
    size_t room = 0;
    char* to = reader.room(room);
    const size_t taken = bytes.copy(to, std::min(room, piece));
    reader.added(taken);
    bytes.remove_prefix(taken);
    MessageReader::Message next;
    MessageReader::Next state;
    while ((state = reader.next(next)) == MessageReader::Next::kMessage) message(next);
    if (state == MessageReader::Next::kMalformed) return 0;
  }
  return 0;
}
