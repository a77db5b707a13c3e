// Passes the output of a child unchanged to our standard output and standard error. If ours is a terminal,
// the child writes to a pseudo-terminal with the same settings and size, so that it prints as to a terminal.
// If both of ours are the same, the child's are too.
//
// One thread. Never waits for a reader: unwritten output waits here, and the child waits with it.
#pragma once

#include <poll.h>

#include <array>
#include <cstddef>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "base/time.h"

namespace culprit::app {

class Relay {
 public:
  using Output = std::function<void(size_t stream, std::string_view bytes)>;

  Relay() = default;
  ~Relay();
  Relay(const Relay&) = delete;

  Status open();
  // Called in the child, before it runs the command.
  void connect_child() const;
  void close_child_ends();
  void copy_window_size() const;

  bool has_two_streams() const { return channels_.size() > 1; }
  bool is_open() const;
  bool has_pending() const;
  TimeNs last_read_ns() const { return last_read_ns_; }

  // Adds the descriptors to wait for, and moves bytes of ready ones; both in the same order.
  void add_polled(std::vector<pollfd>& polled) const;
  void move(std::span<const pollfd> polled, TimeNs now, const Output& output);
  // Writes to standard error; on a terminal, on a separate line.
  void tell(std::string_view text);

 private:
  struct Channel {
    int from = -1, child = -1, to = -1;
    bool terminal = false;
    std::string pending = {};  // read but not completely written
    size_t written = 0;        // written bytes of `pending`
    bool in_line = false;      // the last written byte did not end a line
    bool closed() const { return from < 0 && pending.empty(); }
  };
  Status add_channel(int to);
  void read(Channel& channel, size_t stream, const Output& output);
  static void write(Channel& channel);

  std::vector<Channel> channels_;
  TimeNs last_read_ns_ = 0;
};

}  // namespace culprit::app
