// Server-sent events for all connected clients. The last events are retained for clients that reconnect
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
  std::string kind;          // "finding", "diagnosis", "job"
  std::string job;           // empty: no job
  std::string json;          // on one line
  TimeNs time_ns = kNoTime;  // creation time of the event; kNoTime: the time of publishing
};

class EventHub {
 public:
  // `host`: for the source of CloudEvents.
  explicit EventHub(io::Env& env, std::string_view host = "localhost");
  ~EventHub();
  void publish(const Event& event);
  // Serves GET /v1/events?job=&format=&after=: all events, or those of one job.
  void subscribe(const Request& request, const Reply& reply);
  size_t clients() const { return clients_.size(); }
  uint64_t dropped() const { return dropped_; }

 private:
  struct Client;
  struct RetainedEvent {
    uint64_t number;
    Event event;
    size_t bytes() const { return event.kind.size() + event.job.size() + event.json.size(); }
  };
  void offer(Client& client, const RetainedEvent& retained);
  void tell_dropped(Client& client);
  std::string id_of(const RetainedEvent& retained) const;
  std::string text_of(const RetainedEvent& retained, bool cloud) const;
  std::string dropped_json(uint64_t events, bool cloud);
  uint64_t seen_by(const std::string& last_id) const;
  void send_batch(const Request& request, const Reply& reply);
  void heartbeat();

  io::Env& env_;
  std::string source_;
  std::string epoch_;  // ids of an earlier daemon run are invalid in this one
  uint64_t last_ = 0, dropped_ = 0, drops_ = 0;
  std::deque<RetainedEvent> retained_;
  size_t retained_bytes_ = 0;
  std::list<std::shared_ptr<Client>> clients_;
  std::unique_ptr<io::Timer> timer_;
};

}  // namespace culprit::serve
