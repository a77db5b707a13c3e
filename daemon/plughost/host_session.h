// The plugin's end of the channel: executes the daemon's messages on one plugin, and answers. The host
// program connects it with a socket; for a plugin in the daemon's own process it is called directly.
//
// One thread calls it. `send` is called from any thread, one call at a time.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

#include "plughost/events.h"
#include "plughost/messages.h"

namespace culprit::plughost {

class HostSession {
 public:
  using Send = std::function<void(MessageKind kind, std::string_view payload)>;

  HostSession(std::string name, Send send, CodeOfPlugin code_of_plugin = nullptr)
      : name_(std::move(name)), send_(std::move(send)), code_of_plugin_(code_of_plugin) {}

  // Opens the library, and sends kHello or kRefused. The descriptor is borrowed.
  void open(int descriptor);
  // False after the last message or a malformed one.
  bool handle(MessageKind kind, std::string_view payload);

 private:
  void send(MessageKind kind, std::string_view payload);
  void refuse(const Error& error) { send(MessageKind::kRefused, error.text); }
  bool create(std::string_view payload);
  bool observe(std::string_view payload);
  bool tick(std::string_view payload);
  bool stop();
  void done(MessageKind kind, int32_t result);

  const std::string name_;
  std::mutex mutex_;
  const Send send_;
  const CodeOfPlugin code_of_plugin_;
  std::optional<Library> library_;
  std::unique_ptr<Detector> detector_;
  EventReader events_;
};

}  // namespace culprit::plughost
