// Server-sent events for all watching clients. The last events are kept for clients that reconnect
// (Last-Event-ID). A slow client loses events and receives their number.
//
// Thread: the loop's. Owns its clients' streams.
#pragma once

#include <cstdint>
#include <deque>
#include <list>
#include <memory>
#include <string>

#include "io/env.h"
#include "serve/http_server.h"

namespace culprit::serve {

struct Event {
  std::string kind;  // "finding", "diagnosis", "job"
  std::string job;   // empty: no job
  std::string json;  // on one line
};

class EventHub {
 public:
  explicit EventHub(io::Env& env);
  ~EventHub();
  void publish(const Event& event);
  // Serves GET /v1/events?job=: all events, or those of one job.
  void subscribe(const Request& request, const Reply& reply);
  size_t clients() const { return clients_.size(); }
  uint64_t dropped() const { return dropped_; }

 private:
  struct Client;
  struct Kept {
    uint64_t number;
    std::string job, text;
  };
  void offer(Client& client, const std::string& text);
  void heartbeat();

  io::Env& env_;
  std::string epoch_;  // ids of another daemon run are not valid in this one
  uint64_t last_ = 0, dropped_ = 0;
  std::deque<Kept> kept_;
  size_t kept_bytes_ = 0;
  std::list<std::shared_ptr<Client>> clients_;
  std::unique_ptr<io::Timer> timer_;
};

}  // namespace culprit::serve
