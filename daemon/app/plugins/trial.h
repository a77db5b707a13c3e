// A plugin in its host program, driven step by step: each call waits for its answer. One thread.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "plughost/host_link.h"

namespace culprit::app {

class Trial {
 public:
  struct Options {
    std::string host_program, name;
    int library = -1;  // borrowed
    plughost::DetectorLimits limits;
    plughost::OptionValues values;
    std::vector<std::string> environment = {};
  };
  explicit Trial(Options options) : options_(std::move(options)) {}

  // Each call returns false after a failure; problem() has the reason.
  bool load();
  bool create(const std::string& state = {});
  // `kinds`: the only kinds that are sent.
  bool observe(std::string_view records, uint64_t kinds);
  bool tick(TimeNs wall);
  bool stop();

  const std::string& problem() const { return problem_; }
  // The plugin itself refused: no detector, or an error. Otherwise it crashed.
  bool refused() const { return refused_; }
  const plughost::Description& description() const { return description_; }
  const std::vector<std::string>& findings() const { return findings_; }  // encoded
  // lines of the plugin's log and output
  const std::vector<std::string>& lines() const { return lines_; }
  uint64_t findings_dropped() const { return findings_dropped_; }
  const std::string& state() const { return state_; }
  bool loaded_state() const { return loaded_state_; }
  uint64_t events() const { return events_; }
  TimeNs observing_ns() const {
    return observing_ns_;
  }  // time of all calls of observe, including the transfer
  TimeNs longest_ns() const { return longest_ns_; }
  uint64_t memory_bytes() const { return link_ ? link_->use().memory_bytes : 0; }

 private:
  bool wait(plughost::MessageKind answer);
  void receive(plughost::MessageKind kind, std::string_view payload);
  bool give_up(std::string problem);

  const Options options_;
  std::unique_ptr<plughost::HostLink> link_;
  plughost::Description description_;
  std::vector<std::string> findings_, lines_;
  std::string state_, problem_;
  bool refused_ = false, loaded_state_ = false;
  plughost::MessageKind answered_{};
  uint64_t findings_dropped_ = 0, events_ = 0;
  TimeNs observing_ns_ = 0, longest_ns_ = 0;
};

}  // namespace culprit::app
