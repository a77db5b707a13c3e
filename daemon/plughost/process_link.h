// A plugin in a separate process: the program culprit-plugin-host, over a socket pair. See host_link.h.
#pragma once

#include <deque>

#include "io/child.h"
#include "io/descriptors.h"
#include "plughost/host_link.h"

namespace culprit::plughost {

struct ProcessOptions {
  std::string host_program, name;
  int library = -1;  // its descriptor, borrowed
  uint64_t memory_bytes = 0;
  std::vector<std::string> environment = {};  // "NAME=value", besides PATH, LANG, LC_ALL and TZ
};

class ProcessLink final : public HostLink {
 public:
  // An error is a reason without a subject.
  static Result<std::unique_ptr<HostLink>> start(const ProcessOptions& options);
  ~ProcessLink() override;  // kills it
  ProcessLink(const ProcessLink&) = delete;
  ProcessLink& operator=(const ProcessLink&) = delete;

  void send(MessageKind kind, std::string_view payload) override;
  void send_first(MessageKind kind, std::string_view payload) override;
  bool send_events(std::string_view records, size_t count) override;
  size_t queued_events() const override { return queued_events_; }
  uint64_t begun() const override { return begun_; }
  State exchange(const Handlers& handlers) override;
  void add_descriptors(std::vector<pollfd>& out) const override;
  void kill() override;
  bool ended(std::string& how) override;
  Use use() override;
  int pid() const override { return child_.pid(); }

 private:
  struct Queued {
    std::string bytes;
    MessageKind kind{};
    size_t events = 0;
  };
  ProcessLink(io::Child child, io::Descriptor channel, io::Descriptor output)
      : child_(std::move(child)), channel_(std::move(channel)), output_(std::move(output)) {}
  bool flush();
  State receive(const Handlers& handlers);
  void read_output(const Handlers& handlers);

  io::Child child_;
  io::Descriptor channel_, output_;
  std::deque<Queued> queue_;
  size_t sent_ = 0;  // bytes of the first in the queue
  size_t queued_bytes_ = 0, queued_events_ = 0;
  uint64_t begun_ = 0;
  MessageReader reader_;
  bool malformed_ = false;  // nothing is read any more
  std::string line_;        // of the output, not complete
  std::string how_;
  Use use_;
};

}  // namespace culprit::plughost
