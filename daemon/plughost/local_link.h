// A plugin in this process. Calls run at once; their answers are delivered by the next exchange(). A crash
// of the plugin ends this process. See host_link.h.
#pragma once

#include <deque>
#include <mutex>
#include <optional>
#include <utility>

#include "plughost/host_link.h"
#include "plughost/host_session.h"

namespace culprit::plughost {

class LocalLink final : public HostLink {
 public:
  // `entering`: called with the name before the plugin's code runs, and with "" after it.
  LocalLink(std::string name, int library, std::function<void(std::string_view)> entering);
  ~LocalLink() override;

  void send(MessageKind kind, std::string_view payload) override;
  void send_first(MessageKind kind, std::string_view payload) override { send(kind, payload); }
  bool send_events(std::string_view records, size_t) override;
  size_t queued_events() const override { return 0; }
  uint64_t begun() const override { return begun_; }
  State exchange(const Handlers& handlers) override;
  void add_descriptors(std::vector<pollfd>&) const override {}
  void kill() override { over_ = true; }
  bool ended(std::string& how) override;
  Use use() override { return {cpu_ns_, 0}; }
  TimeNs longest_call_ns() const override { return longest_call_ns_; }
  uint64_t take_lost_lines() override;

 private:
  template <class Call>
  void enter(Call call);

  const std::string name_;
  const std::function<void(std::string_view)> entering_;
  std::mutex mutex_;  // of the next two: the plugin's threads may log
  std::deque<std::pair<MessageKind, std::string>> answers_;
  uint64_t lost_lines_ = 0;
  std::optional<HostSession> session_;
  uint64_t begun_ = 0, cpu_ns_ = 0;
  TimeNs longest_call_ns_ = 0;
  bool over_ = false;
  bool failed_ = false;
};

}  // namespace culprit::plughost
