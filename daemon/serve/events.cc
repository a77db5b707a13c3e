#include "serve/events.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "base/text.h"

namespace culprit::serve {
namespace {

// Proxies and clients close a stream that is silent for a minute. A write also detects a client that left.
constexpr TimeNs kHeartbeatNs = 15 * kNsPerSecond;
// Limit of event clients, so that other requests find a connection.
constexpr size_t kClients = 32;
// Queued bytes per client: a thousand findings. A stopped terminal must not fill the memory.
constexpr size_t kQueueBytes = 256 << 10;
// Events kept for clients that reconnect, such as after a laptop's sleep or a proxy restart.
constexpr size_t kKeptEvents = 512;
constexpr size_t kKeptBytes = 1 << 20;

// A line break would end the field of the event.
std::string one_line(std::string_view text) {
  std::string out(text);
  std::replace_if(
      out.begin(), out.end(), [](char c) { return c == '\n' || c == '\r' || c == '\0'; }, ' ');
  return out;
}

}  // namespace

struct EventHub::Client {
  std::shared_ptr<BodyStream> stream;
  std::string job;  // empty: all
  uint64_t dropped = 0;
};

EventHub::EventHub(io::Env& env)
    : env_(env),
      epoch_(fmt::format("{:x}", env.now(io::Clock::kWall))),
      timer_(env.timer([this] { heartbeat(); })) {
  timer_->start(kHeartbeatNs, kHeartbeatNs);
}

EventHub::~EventHub() {
  for (const auto& client : clients_) client->stream->finish();
}

void EventHub::offer(Client& client, const std::string& text) {
  if (client.stream->queued() + text.size() > kQueueBytes) {
    ++client.dropped;
    ++dropped_;
    return;
  }
  if (client.dropped > 0) {
    client.stream->write(fmt::format("event: dropped\ndata: {{\"events\":{}}}\n\n", client.dropped));
    client.dropped = 0;
  }
  client.stream->write(text);
}

void EventHub::publish(const Event& event) {
  Kept kept{++last_, event.job,
            fmt::format("id: {}-{}\nevent: {}\ndata: {}\n\n", epoch_, last_, one_line(event.kind),
                        one_line(event.json))};
  for (const auto& client : clients_)
    if (client->job.empty() || client->job == event.job) offer(*client, kept.text);
  kept_bytes_ += kept.text.size();
  kept_.push_back(std::move(kept));
  while (kept_.size() > kKeptEvents || kept_bytes_ > kKeptBytes) {
    kept_bytes_ -= kept_.front().text.size();
    kept_.pop_front();
  }
}

void EventHub::subscribe(const Request& request, const Reply& reply) {
  if (clients_.size() >= kClients)
    return reply.send(error_response(503, fmt::format("{} watch already", counted(kClients, "client"))));
  auto client = std::make_shared<Client>();
  if (const auto job = request.query.find("job"); job != request.query.end()) client->job = job->second;
  client->stream = reply.stream({200, "text/event-stream", "", {{"X-Accel-Buffering", "no"}}});
  clients_.push_back(client);
  client->stream->on_closed([this, gone = std::weak_ptr(client)] { clients_.remove(gone.lock()); });
  client->stream->write(": culprit\nretry: 2000\n\n");  // also sends the headers
  const std::string_view last = request.last_event_id;
  const std::string ours = epoch_ + "-";
  uint64_t seen = last_;
  if (last.starts_with(ours))
    std::from_chars(last.data() + ours.size(), last.data() + last.size(), seen);
  else if (!last.empty())
    seen = 0;  // of another daemon run: all kept events are new to it
  if (!kept_.empty() && seen + 1 < kept_.front().number && !last.empty())
    client->dropped = kept_.front().number - seen - 1;
  for (const Kept& kept : kept_)
    if (kept.number > seen && (client->job.empty() || client->job == kept.job)) offer(*client, kept.text);
}

void EventHub::heartbeat() {
  const auto clients = clients_;
  for (const auto& client : clients)
    if (client->stream->queued() == 0) client->stream->write(": heartbeat\n\n");
}

}  // namespace culprit::serve
