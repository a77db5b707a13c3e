#include "ingest/live/trace_socket.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "base/limits.h"
#include "base/text.h"

namespace culprit::ingest {
namespace {

// Time for which lines are collected: a tenth of a diagnosis's time; at most 50 batches a second for any
// number of writers.
constexpr TimeNs kGatherNs = 20 * kNsPerMs;
// Interval of checks whether a user above its rate may continue.
constexpr TimeNs kHoldNs = 20 * kNsPerMs;
// Limit of bytes read from all clients at shutdown: the kernel holds 200 KB per client; more could not be
// stored in time.
constexpr size_t kDrainBytes = 16 << 20;
// Interval of checks whether a stream without writers ends.
constexpr TimeNs kIdleCheckNs = kTraceLingers / 6;
// A client that reconnects for each broken line must not fill the log.
constexpr TimeNs kTellEveryNs = 10 * kNsPerSecond;
constexpr TimeNs kJobEveryNs = limits::kTraceJobEverySeconds * kNsPerSecond;

// A token bucket: refills evenly up to a limit. It may be overdrawn, because read bytes are not returned.
class Bucket {
 public:
  Bucket(int64_t most, TimeNs unit_ns, int64_t units) : most_(most), unit_ns_(unit_ns), units_(units) {}
  void spend(int64_t n) { left_ -= n; }
  int64_t left(TimeNs now) {
    if (at_ == kNoTime) left_ += most_, at_ = now;
    const auto gained = static_cast<int64_t>(static_cast<double>(now - at_) / static_cast<double>(unit_ns_) *
                                             static_cast<double>(units_));
    if (gained > 0) left_ = std::min(most_, left_ + gained), at_ = now;
    return left_;
  }

 private:
  int64_t most_;
  TimeNs unit_ns_;  // time in which `units_` are refilled
  int64_t units_;
  int64_t left_ = 0;
  TimeNs at_ = kNoTime;
};

struct User {
  size_t clients = 0;
  size_t unfinished_bytes = 0;
  bool held = false;
  Bucket bytes{static_cast<int64_t>(limits::kTraceBytesAtOnce), kNsPerSecond,
               static_cast<int64_t>(limits::kTraceBytesPerSecond)};
  Bucket jobs{static_cast<int64_t>(limits::kTraceJobsPerUser), kJobEveryNs, 1};
};

// One user's lines of one job.
struct UserSource {
  StreamInfo info;
  uint64_t offset = 0;  // of the next byte
  static constexpr size_t kNone = ~size_t{0};
  size_t piece = kNone;  // index of its piece in the collected batch; its lines are appended there
  size_t writers = 0;    // connected clients
  TimeNs idle_ns = 0;    // time without a writer begins, monotonic
};

struct Client {
  std::unique_ptr<io::Stream> stream;
  io::PeerCredentials peer;
  User* user = nullptr;
  UserSource* own = nullptr;         // for lines without a job and for gaps; null: not known yet
  UserSource* last = nullptr;        // of the previous line: usually the same for the next one
  std::set<UserSource*> named = {};  // of jobs named in its lines
  std::string unfinished;            // the beginning of a line
  uint64_t skipped = 0;              // bytes of an overlong line
  bool reported = false;             // a broken line was reported
};

bool is_blank(std::string_view line) { return line.find_first_not_of(" \t\r") == line.npos; }

class Socket final : public TraceSocket {
 public:
  Socket(io::Env& env, TraceSocketOptions options)
      : env_(env),
        options_(std::move(options)),
        gather_(env.timer([this] { flush(); })),
        release_(env.timer([this] { release(); })),
        idle_(env.timer([this] { end_idle(); })) {
    const TimeNs now = env.now(io::Clock::kMonotonic);
    for (StreamState& state : options_.known) {
      const StreamInfo& info = state.info;
      if (info.path != options_.path || info.kind != OriginKind::kSocket || !info.uid || state.ended)
        continue;
      const auto key = std::make_pair(*info.uid, info.job);
      UserSource& source = sources_[key];
      source.info = std::move(state.info);
      source.offset = state.size;
      source.idle_ns = now;
    }
    idle_running_ = !sources_.empty();
    if (idle_running_) idle_->start(kIdleCheckNs, kIdleCheckNs);
    options_.known.clear();
  }

  // Reads the bytes that the kernel holds: writers saw these writes succeed.
  ~Socket() override {
    listener_.reset();
    size_t left = kDrainBytes;
    for (auto& [id, client] : clients_) {
      if (!client.own && !own_source(client, {})) continue;
      left -= std::min(left, client.stream->drain(left));
      if (left == 0) add_gap(*client.own, 0, "the daemon stopped before it had read all");
      cut_off(client, "the daemon stopped within a line");
    }
    clients_.clear();
    flush();
  }

  Status listen() {
    auto listener = env_.listen("unix:" + options_.path, 0666,
                                [this](std::unique_ptr<io::Stream> stream) { connected(std::move(stream)); });
    if (!listener) return tl::unexpected(listener.error());
    listener_ = std::move(*listener);
    return {};
  }

  void pause_all() override {
    paused_ = true;
    for (auto& [id, client] : clients_) client.stream->pause();
  }
  void resume_all() override {
    paused_ = false;
    for (auto& [id, client] : clients_)
      if (!client.user->held && client.own) client.stream->resume();
  }
  TraceStats stats() const override {
    TraceStats stats = stats_;
    stats.clients = clients_.size();
    stats.descriptors_missing = listener_->descriptors_missing();
    return stats;
  }

 private:
  void connected(std::unique_ptr<io::Stream> stream) {
    const auto peer = stream->peer();
    if (!peer || !admitted(*peer)) {
      ++stats_.refused;
      return;
    }
    User& user = users_[peer->who()];
    ++user.clients;
    const uint64_t id = next_client_++;
    Client& client = clients_[id];
    client = {std::move(stream), *peer, &user, nullptr, nullptr, {}, {}, 0, false};
    client.stream->start({[this, &client](std::string_view bytes) { received(client, bytes); },
                          [this, id](const Error*) { left(id); }});
    client.stream->pause();  // until its job is known
    if (!options_.job_of) return begin(id, {});
    options_.job_of(*peer, [this, id, there = std::weak_ptr<int>(there_)](const std::string& job) {
      if (!there.expired()) begin(id, job);
    });
  }

  bool admitted(const io::PeerCredentials& peer) const {
    const auto user = users_.find(peer.who());
    return clients_.size() < limits::kTraceClients &&
           (user == users_.end() || user->second.clients < limits::kTraceClientsPerUser);
  }

  // The job of the client is known: starts reading, or refuses the client if there are too many sources.
  void begin(uint64_t id, const std::string& job) {
    const auto found = clients_.find(id);
    if (found == clients_.end()) return;  // the client disconnected meanwhile
    Client& client = found->second;
    if (!own_source(client, job)) {
      ++stats_.refused;
      return forget(id);
    }
    ++stats_.accepted;
    if (!paused_ && !client.user->held) client.stream->resume();
  }

  // Sets the source of lines without a job. False: too many sources.
  bool own_source(Client& client, const std::string& job) {
    client.own = client.last = find_source(client.peer, job.empty() ? options_.job : job);
    if (client.own) ++client.own->writers;
    return client.own != nullptr;
  }

  void left(uint64_t id) {
    Client& client = clients_.find(id)->second;
    cut_off(client, "the writer went away within a line");
    if (client.own) leave(client.own);
    for (UserSource* source : client.named) leave(source);
    forget(id);
    gather();
  }

  void forget(uint64_t id) {
    const auto found = clients_.find(id);
    const Principal who = found->second.peer.who();
    User& user = *found->second.user;
    // Once there are many users, those without clients are forgotten, with their rates.
    if (--user.clients == 0 && !user.held && users_.size() > limits::kTraceClients) users_.erase(who);
    clients_.erase(found);
  }

  void leave(UserSource* source) {
    if (--source->writers > 0) return;
    if (!idle_running_) idle_->start(kIdleCheckNs, kIdleCheckNs);
    idle_running_ = true;
    source->idle_ns = env_.now(io::Clock::kMonotonic);
  }

  void end_idle() {
    const TimeNs now = env_.now(io::Clock::kMonotonic);
    idle_running_ = false;
    for (auto it = sources_.begin(); it != sources_.end();) {
      UserSource& source = it->second;
      if (source.writers == 0 && now - source.idle_ns >= kTraceLingers) {
        it = end(it);
        continue;
      }
      idle_running_ = idle_running_ || source.writers == 0;
      ++it;
    }
    if (!idle_running_) idle_->stop();
    flush();
  }

  using Sources = std::map<std::pair<Principal, std::string>, UserSource>;
  Sources::iterator end(Sources::iterator at) {
    UserSource& source = at->second;
    if (source.info.id != kNoStream) {
      Piece* piece = source.piece == UserSource::kNone ? &new_piece(source) : &held_.pieces[source.piece];
      piece->ends = true;
    }
    std::erase(touched_, &source);
    return sources_.erase(at);
  }

  // Makes room by ending the sources that were without writers for the longest time. Ends many at once, since
  // the search costs a pass over all sources.
  bool make_room() {
    std::vector<Sources::iterator> idle;
    for (auto it = sources_.begin(); it != sources_.end(); ++it)
      if (it->second.writers == 0) idle.push_back(it);
    const size_t many = std::min(idle.size(), limits::kTraceSources / 16);
    const auto older = [](Sources::iterator a, Sources::iterator b) {
      return a->second.idle_ns < b->second.idle_ns;
    };
    if (many < idle.size())
      std::nth_element(idle.begin(), idle.begin() + static_cast<std::ptrdiff_t>(many), idle.end(), older);
    for (size_t i = 0; i < many; ++i) end(idle[i]);
    gather();
    return many > 0;
  }

  void received(Client& client, std::string_view bytes) {
    stats_.bytes += bytes.size();
    User& user = *client.user;
    const TimeNs now = env_.now(io::Clock::kMonotonic);
    user.bytes.spend(static_cast<int64_t>(bytes.size()));
    if (user.bytes.left(now) < 0) pause_user(user);
    while (!bytes.empty()) {
      const auto* newline = static_cast<const char*>(std::memchr(bytes.data(), '\n', bytes.size()));
      if (newline == nullptr) {
        keep_unfinished(client, bytes);
        break;
      }
      const auto size = static_cast<size_t>(newline - bytes.data()) + 1;
      finish_line(client, bytes.substr(0, size));
      bytes.remove_prefix(size);
    }
    gather();
  }

  // `rest` ends with the newline.
  void finish_line(Client& client, std::string_view rest) {
    if (client.skipped != 0) {
      stats_.dropped_bytes += rest.size();
      add_gap(*client.own, client.skipped + rest.size(), "a line that was too long");
      client.skipped = 0;
      return;
    }
    if (client.unfinished.empty()) return take_line(client, rest);
    client.user->unfinished_bytes -= client.unfinished.size();
    std::string line = std::exchange(client.unfinished, {});  // frees it: most clients are idle
    line += rest;
    take_line(client, line);
  }

  void keep_unfinished(Client& client, std::string_view bytes) {
    const size_t size = client.unfinished.size() + bytes.size();
    if (client.skipped == 0 && size <= limits::kLineBytes &&
        client.user->unfinished_bytes + bytes.size() <= limits::kTraceUnfinishedBytes) {
      client.unfinished += bytes;
      client.user->unfinished_bytes += bytes.size();
      return;
    }
    client.user->unfinished_bytes -= client.unfinished.size();
    client.skipped += size;
    stats_.dropped_bytes += size;
    client.unfinished = {};
  }

  void take_line(Client& client, std::string_view line) {
    const std::string_view text = line.substr(0, line.size() - 1);
    if (text.size() > limits::kLineBytes) {
      stats_.dropped_bytes += line.size();
      return add_gap(*client.own, line.size(), "a line that was too long");
    }
    if (is_blank(text)) return add(*client.own, line);
    const auto parsed = parse_trace_line(text);
    if (!parsed) {
      ++stats_.broken;
      report_broken(client, parsed.error().text);
      return add(*client.own, line);
    }
    ++stats_.lines[static_cast<size_t>(parsed->kind)];
    if (parsed->job.empty() || parsed->job == client.own->info.job) return add(*client.own, line, *parsed);
    if (parsed->job != client.last->info.job) {
      UserSource* named = named_source(client, std::string(parsed->job));
      if (named == nullptr) {
        stats_.dropped_bytes += line.size();
        return add_gap(*client.own, line.size(), "a line of one job more than a user may name");
      }
      client.last = named;
      if (client.named.insert(named).second) ++named->writers;
    }
    add(*client.last, line, *parsed);
  }

  void add(UserSource& source, std::string_view line, const TraceLine& parsed) {
    if (parsed.kind == TraceKind::kEvent && options_.on_event) options_.on_event(parsed, source.info);
    add(source, line);
  }

  void report_broken(Client& client, const std::string& why) {
    if (client.reported || !options_.report_error) return;
    client.reported = true;
    const TimeNs now = env_.now(io::Clock::kMonotonic);
    if (reported_ns_ != kNoTime && now - reported_ns_ < kTellEveryNs) {
      ++unreported_;
      return;
    }
    reported_ns_ = now;
    std::string more;
    if (const uint64_t others = std::exchange(unreported_, 0); others > 0)
      more = "; so did " + counted(others, "other client") + " since the last time";
    options_.report_error(options_.path + ": a line of process " + std::to_string(client.peer.pid) + " of " +
                          to_string(client.peer.who()) + " is kept and not understood: " + why + more);
  }

  UserSource* named_source(Client& client, const std::string& job) {
    Bucket& jobs = client.user->jobs;
    const bool is_new = !sources_.contains({client.peer.who(), job});
    if (is_new && jobs.left(env_.now(io::Clock::kMonotonic)) <= 0) return nullptr;
    UserSource* source = find_source(client.peer, job);
    if (is_new && source != nullptr) jobs.spend(1);
    return source;
  }

  // Null: too many sources.
  UserSource* find_source(const io::PeerCredentials& peer, const std::string& job) {
    const auto key = std::make_pair(peer.who(), job);
    const auto found = sources_.find(key);
    if (found != sources_.end()) return &found->second;
    if (sources_.size() >= limits::kTraceSources && !make_room()) return nullptr;
    UserSource& source = sources_[key];
    source.info.kind = OriginKind::kSocket;
    source.info.job = job;
    source.info.path = options_.path;
    source.info.uid = peer.who();
    source.info.pid = peer.pid;
    return &source;
  }

  Piece& new_piece(UserSource& source) {
    const TimeNs now = env_.now(io::Clock::kWall);
    if (source.info.id == kNoStream) {
      source.info.id = options_.allocate();
      source.info.opened_ns = now;
      held_.opened.push_back(source.info);
    }
    source.piece = held_.pieces.size();
    touched_.push_back(&source);
    Piece& piece = held_.pieces.emplace_back();
    piece.stream = source.info.id;
    piece.offset = source.offset;
    piece.time_ns = now;
    return piece;
  }

  void add(UserSource& source, std::string_view line) {
    Piece* piece = source.piece == UserSource::kNone ? nullptr : &held_.pieces[source.piece];
    if (piece == nullptr ||
        (!piece->bytes.empty() && piece->bytes.size() + line.size() > limits::kPieceBytes))
      piece = &new_piece(source);
    piece->bytes += line;
    source.offset += line.size();
    held_bytes_ += line.size();
  }

  void add_gap(UserSource& source, uint64_t bytes, const char* reason) {
    ++stats_.dropped_lines;
    Piece* piece = source.piece == UserSource::kNone ? nullptr : &held_.pieces[source.piece];
    const bool same = piece != nullptr && piece->bytes.empty() && piece->gap && piece->gap->reason == reason;
    if (!same) {
      piece = &new_piece(source);
      piece->gap = Gap{0, 0, reason};
    }
    piece->gap->bytes += bytes;
    piece->gap->records += 1;
  }

  // Reports the beginning of an unfinished line as a gap.
  void cut_off(Client& client, const char* reason) {
    const size_t unfinished = client.unfinished.size();
    if (unfinished == 0 && client.skipped == 0) return;
    stats_.dropped_bytes += unfinished;
    client.user->unfinished_bytes -= unfinished;
    add_gap(*client.own, client.skipped + unfinished, reason);
  }

  void gather() {
    if (held_bytes_ >= limits::kTraceHeldBytes) return flush();
    if (held_.pieces.empty() || gathering_) return;
    gathering_ = true;
    gather_->start(kGatherNs);
  }

  // Must be the last action of a callback: the receiver may pause the socket.
  void flush() {
    gathering_ = false;
    gather_->stop();
    if (held_.pieces.empty()) return;
    for (UserSource* source : touched_) source->piece = UserSource::kNone;
    touched_.clear();
    held_bytes_ = 0;
    options_.take(std::exchange(held_, {}));
  }

  void pause_user(User& user) {
    if (user.held) return;
    user.held = true;
    ++stats_.held_up;
    for (auto& [id, client] : clients_)
      if (client.user == &user) client.stream->pause();
    release_->start(kHoldNs, kHoldNs);
  }

  void release() {
    const TimeNs now = env_.now(io::Clock::kMonotonic);
    bool any = false;
    for (auto& [uid, user] : users_) {
      if (user.held && user.bytes.left(now) > 0) user.held = false;
      any |= user.held;
    }
    if (!any) release_->stop();
    if (!paused_) resume_all();
  }

  io::Env& env_;
  TraceSocketOptions options_;
  TraceStats stats_;
  std::map<Principal, User> users_;
  Sources sources_;  // by writer and job
  std::map<uint64_t, Client> clients_;
  uint64_t next_client_ = 0;
  PieceBatch held_;
  uint64_t held_bytes_ = 0;
  std::vector<UserSource*> touched_;  // with a piece in held_
  bool gathering_ = false, paused_ = false, idle_running_ = false;
  // lets callbacks detect that the socket was destroyed
  const std::shared_ptr<int> there_ = std::make_shared<int>();
  TimeNs reported_ns_ = kNoTime;  // time of the last reported broken line
  uint64_t unreported_ = 0;       // clients with a broken line since then
  std::unique_ptr<io::Timer> gather_, release_, idle_;
  std::unique_ptr<io::Listener> listener_;
};

}  // namespace

Result<std::unique_ptr<TraceSocket>> TraceSocket::open(io::Env& env, TraceSocketOptions options) {
  auto socket = std::make_unique<Socket>(env, std::move(options));
  if (Status status = socket->listen(); !status) return tl::unexpected(status.error());
  return socket;
}

}  // namespace culprit::ingest
