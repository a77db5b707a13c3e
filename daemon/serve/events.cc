#include "serve/events.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "base/text.h"
#include "serve/cloud_event.h"

namespace culprit::serve {
namespace {

// Heartbeat interval: proxies and clients close a stream after a minute of silence. The write also detects
// a client that left.
constexpr TimeNs kHeartbeatNs = 15 * kNsPerSecond;
// Limit of event clients, so that connections remain for other requests.
constexpr size_t kClients = 32;
// Queued bytes per client: a thousand findings. A suspended terminal must not fill the memory.
constexpr size_t kQueueBytes = 256 << 10;
// Events retained for clients that reconnect, for example after a laptop's sleep or a proxy restart.
constexpr size_t kRetainedEvents = 512;
constexpr size_t kRetainedBytes = 1 << 20;

// Replaces line breaks: they would end the field of the event.
std::string one_line(std::string_view text) {
  std::string out(text);
  std::replace_if(
      out.begin(), out.end(), [](char c) { return c == '\n' || c == '\r' || c == '\0'; }, ' ');
  return out;
}

// The header takes precedence: a reconnect sends it, with a later id than the address.
std::string last_id_of(const Request& request) {
  const auto after = request.query.find("after");
  return request.last_event_id.empty() && after != request.query.end() ? after->second
                                                                       : request.last_event_id;
}

}  // namespace

struct EventHub::Client {
  std::shared_ptr<BodyStream> stream;
  std::string job;     // empty: all
  bool cloud = false;  // CloudEvents
  uint64_t dropped = 0;
  bool wants(const Event& event) const { return job.empty() || job == event.job; }
};

EventHub::EventHub(io::Env& env, std::string_view host)
    : env_(env),
      source_(cloud_source(host)),
      epoch_(fmt::format("{:x}", env.now(io::Clock::kWall))),
      timer_(env.timer([this] { heartbeat(); })) {
  timer_->start(kHeartbeatNs, kHeartbeatNs);
}

EventHub::~EventHub() {
  for (const auto& client : clients_) client->stream->finish();
}

std::string EventHub::id_of(const RetainedEvent& retained) const {
  return fmt::format("{}-{}", epoch_, retained.number);
}

std::string EventHub::text_of(const RetainedEvent& retained, bool cloud) const {
  const Event& e = retained.event;
  const std::string id = id_of(retained);
  const std::string data =
      cloud ? to_json(CloudEvent{id, source_, e.kind, e.job, e.time_ns, e.json}) : e.json;
  return fmt::format("id: {}\nevent: {}\ndata: {}\n\n", id, e.kind, data);
}

// This event is made for one client, so its id must differ from those of retained events.
std::string EventHub::dropped_json(uint64_t events, bool cloud) {
  const std::string json = fmt::format("{{\"events\":{}}}", events);
  if (!cloud) return json;
  const std::string id = fmt::format("{}-dropped-{}", epoch_, ++drops_);
  return to_json(CloudEvent{id, source_, "dropped", "", env_.now(io::Clock::kWall), json});
}

void EventHub::tell_dropped(Client& client) {
  if (client.dropped == 0) return;
  client.stream->write(
      fmt::format("event: dropped\ndata: {}\n\n", dropped_json(client.dropped, client.cloud)));
  client.dropped = 0;
}

void EventHub::offer(Client& client, const RetainedEvent& retained) {
  std::string text = text_of(retained, client.cloud);
  if (client.stream->queued() + text.size() > kQueueBytes) {
    ++client.dropped;
    ++dropped_;
    return;
  }
  tell_dropped(client);
  client.stream->write(std::move(text));
}

void EventHub::publish(const Event& event) {
  RetainedEvent retained{++last_, event};
  retained.event.kind = one_line(event.kind);
  retained.event.json = one_line(event.json);
  if (retained.event.time_ns == kNoTime) retained.event.time_ns = env_.now(io::Clock::kWall);
  for (const auto& client : clients_)
    if (client->wants(event)) offer(*client, retained);
  retained_bytes_ += retained.bytes();
  retained_.push_back(std::move(retained));
  while (retained_.size() > kRetainedEvents || retained_bytes_ > kRetainedBytes) {
    retained_bytes_ -= retained_.front().bytes();
    retained_.pop_front();
  }
}

// Number of the last event that a client saw. 0 for an id of an earlier daemon run: all retained events are
// new to the client.
uint64_t EventHub::seen_by(const std::string& last_id) const {
  const std::string ours = epoch_ + "-";
  uint64_t seen = 0;
  if (last_id.starts_with(ours))
    std::from_chars(last_id.data() + ours.size(), last_id.data() + last_id.size(), seen);
  return seen;
}

// The retained events as one JSON array, for clients that poll.
void EventHub::send_batch(const Request& request, const Reply& reply) {
  Client wanted;
  if (const auto job = request.query.find("job"); job != request.query.end()) wanted.job = job->second;
  const std::string last = last_id_of(request);
  const uint64_t seen = seen_by(last);
  std::string out;
  const auto add = [&](const std::string& json) { out += (out.empty() ? "[" : ",") + json; };
  if (!last.empty() && !retained_.empty() && seen + 1 < retained_.front().number)
    add(dropped_json(retained_.front().number - seen - 1, true));
  for (const RetainedEvent& retained : retained_) {
    const Event& e = retained.event;
    if (retained.number > seen && wanted.wants(e))
      add(to_json(CloudEvent{id_of(retained), source_, e.kind, e.job, e.time_ns, e.json}));
  }
  reply.send({200, kCloudEventBatch, (out.empty() ? "[" : out) + "]\n", {}});
}

void EventHub::subscribe(const Request& request, const Reply& reply) {
  const auto format = request.query.find("format");
  const std::string form = format == request.query.end() ? "" : format->second;
  if (form == "cloudevents-batch") return send_batch(request, reply);
  if (!form.empty() && form != "cloudevents")
    return reply.send(error_response(400, "'format' is neither cloudevents nor cloudevents-batch"));
  if (clients_.size() >= kClients)
    return reply.send(error_response(503, fmt::format("{} watch already", counted(kClients, "client"))));
  auto client = std::make_shared<Client>();
  client->cloud = !form.empty();
  if (const auto job = request.query.find("job"); job != request.query.end()) client->job = job->second;
  client->stream = reply.stream({200, "text/event-stream", "", {{"X-Accel-Buffering", "no"}}});
  clients_.push_back(client);
  client->stream->on_closed([this, removed = std::weak_ptr(client)] { clients_.remove(removed.lock()); });
  client->stream->write(": culprit\nretry: 2000\n\n");  // also sends the headers
  const std::string last = last_id_of(request);
  const uint64_t seen = last.empty() ? last_ : seen_by(last);
  if (!retained_.empty() && seen + 1 < retained_.front().number && !last.empty())
    client->dropped = retained_.front().number - seen - 1;
  for (const RetainedEvent& retained : retained_)
    if (retained.number > seen && client->wants(retained.event)) offer(*client, retained);
}

void EventHub::heartbeat() {
  const auto clients = clients_;
  for (const auto& client : clients)
    if (client->stream->queued() == 0) client->stream->write(": heartbeat\n\n");
}

}  // namespace culprit::serve
