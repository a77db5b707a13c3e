// An agent's logs and a collector's store in memory, with both ends of a connection in one NetEnv.
#pragma once

#include <boost/test/unit_test.hpp>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "../io/net_env.h"
#include "collect/collector.h"
#include "forward/forwarder.h"

namespace culprit::forward::testing {

using io::testing::Link;
using io::testing::NetEnv;
using peer::Log;

constexpr const char* kAddress = "collector:7421";

// Frames are texts; a checkpoint is "checkpoint SEQUENCE".
class MemorySource final : public FrameSource {
 public:
  explicit MemorySource(NetEnv& env_in) : env(env_in) { logs[0].epoch = 1001, logs[1].epoch = 1002; }

  struct MemoryLog {
    uint64_t epoch = 0, first = 1;
    std::vector<SourceFrame> frames;  // from sequence 1
    std::vector<bool> declares, unreadable;
    uint64_t acknowledged = 0, fell_behind = 0, archived_until = 0;
    std::optional<uint64_t> archived;  // the last
    uint64_t next() const { return frames.size() + 1; }
  };
  NetEnv& env;
  MemoryLog logs[2];
  bool later = false;  // answers arrive through the loop
  bool failing = false;
  uint64_t reads = 0, largest_answer = 0;

  MemoryLog& of(Log log) { return logs[static_cast<size_t>(log)]; }
  uint64_t add(Log log, std::string bytes, bool declares = false) {
    MemoryLog& to = of(log);
    const uint64_t sequence = to.next();
    to.frames.push_back({peer::FrameKind::kData, sequence, env.wall_ns, std::move(bytes)});
    to.declares.push_back(declares);
    to.unreadable.push_back(false);
    return sequence;
  }

  peer::LogBounds bounds(Log log) const override {
    const MemoryLog& of = logs[static_cast<size_t>(log)];
    return {log, of.epoch, of.first, of.next()};
  }
  void read(ReadRequest request, Done done) override {
    ++reads;
    Result<std::vector<SourceFrame>> answer = collect(request);
    if (failing) answer = fail(ErrorCode::kIo, "/s/1.seg: input/output error");
    if (!later) return done(std::move(answer));
    env.post([done = std::move(done), answer = std::move(answer)] { done(answer); });
  }
  std::pair<std::string, std::vector<int64_t>> asked_steps;  // the last
  std::pair<std::string, uint32_t> asked_stacks;             // the last
  std::optional<culprit::peer::EndTasks> asked_end;
  void acknowledged(Log log, uint64_t sequence) override {
    of(log).acknowledged = std::max(sequence, of(log).acknowledged);
  }
  uint64_t archived(Log log, std::optional<uint64_t> sequence) override {
    of(log).archived = sequence;
    return of(log).archived_until = std::max(of(log).archived_until, sequence.value_or(0));
  }
  void steps_wanted(const std::string& job, const std::vector<int64_t>& steps) override {
    asked_steps = {job, steps};
  }
  void end_tasks(const peer::EndTasks& request) override { asked_end = request; }
  void stacks_wanted(const peer::StacksWanted& w) override { asked_stacks = {w.job, w.sample}; }
  void fell_behind(Log log, uint64_t committed) override { of(log).fell_behind = committed; }

 private:
  std::vector<SourceFrame> collect(const ReadRequest& request) {
    const MemoryLog& from = of(request.log);
    std::vector<SourceFrame> frames;
    uint64_t after = request.after;
    if (request.with_checkpoint && std::max(request.declares_until + 1, from.first) < from.next())
      after = std::max(after, request.declares_until);
    uint64_t sequence = std::max(after + 1, from.first), bytes = 0;
    if (request.with_checkpoint && sequence < from.next())
      frames.push_back({peer::FrameKind::kCheckpointEnd, sequence - 1, env.wall_ns,
                        "checkpoint " + std::to_string(sequence - 1)});
    for (; sequence < from.next() && frames.size() < request.max_frames; ++sequence) {
      SourceFrame frame = from.frames[sequence - 1];
      if (from.unreadable[sequence - 1]) continue;
      const bool declares = from.declares[sequence - 1];
      if (request.selection.stops_at(frame.packed_ns, declares)) break;
      if (!request.selection.selects(frame.packed_ns, declares)) frame.bytes.clear();
      if (sequence <= request.declares_until && !declares) frame.bytes.clear();
      if (bytes > 0 && bytes + frame.bytes.size() > request.max_bytes) break;
      bytes += frame.bytes.size();
      frames.push_back(std::move(frame));
    }
    largest_answer = std::max(largest_answer, bytes);
    return frames;
  }
};

// Checks what the archive would: frames of an epoch in order, without holes.
class MemorySink final : public collect::FrameSink {
 public:
  struct Stored {
    std::string host;
    uint64_t last = 0, committed = 0;
    std::string bytes;               // of all data frames
    std::vector<std::string> order;  // "7", "gap 3-5: reason", "checkpoint 4"
  };
  std::map<uint64_t, Stored> epochs;
  collect::Collector* collector = nullptr;
  bool commits = true;               // at once
  bool holds = false;                // delays answers until let_go()
  Status refuses;                    // error of on_batch(), if set
  std::optional<uint64_t> archived;  // of evidence; nothing: none of it is put into a bucket
  std::vector<std::string> events;
  std::vector<std::string> arrivals;  // log and sequence, in order over all
  std::map<std::string, peer::Status> states;
  uint64_t held_max = 0;

  void hello(const peer::Hello& hello, HelloDone done) override {
    std::vector<peer::LogMark> marks;
    for (const peer::LogBounds& reported : hello.logs) {
      const auto at = epochs.find(reported.epoch);
      if (at != epochs.end() && at->second.host != hello.host)
        return done(fail(ErrorCode::kDenied, "the log is of " + at->second.host));
      marks.push_back(
          {reported.log, reported.epoch, at != epochs.end(), at == epochs.end() ? 0 : at->second.committed});
      if (reported.log == Log::kEvidence) marks.back().archived = archived;
    }
    done(std::move(marks));
  }
  void on_batch(Batch batch, std::function<void(Status)> done) override {
    if (!refuses) return done(refuses);
    for (collect::LogItem& item : batch.items) store(batch, item);
    if (commits && !holds) commit();
    if (!holds) return done({});
    waiting_.push_back(std::move(done));
  }
  void let_go() {
    holds = false;
    for (auto& done : std::exchange(waiting_, {})) done({});
  }
  void commit() {
    for (auto& [epoch, stored] : epochs) {
      stored.committed = stored.last;
      if (collector != nullptr) collector->committed(epoch, stored.committed);
    }
  }
  void status(const std::string& host, const peer::Status& status) override { states[host] = status; }
  void connected(const std::string& host, const peer::Hello&, const std::string&) override {
    events.push_back(host + " connected");
  }
  void disconnected(const std::string& host, const std::string& why) override {
    events.push_back(host + " disconnected: " + why);
  }
  void refused(peer::Refusal code, const std::string& sentence) override {
    events.push_back(std::string("refused ") + peer::name_of(code) + ": " + sentence);
  }

 private:
  void store(const Batch& batch, collect::LogItem& item) {
    const Log log = std::visit([](const auto& i) { return i.log; }, item);
    Stored& to = epochs[batch.epochs[static_cast<size_t>(log)]];
    to.host = batch.host;
    if (const auto* skipped = std::get_if<peer::Skipped>(&item)) {
      BOOST_TEST(skipped->from == to.last + 1);
      to.last = skipped->to;
      to.order.push_back("gap " + std::to_string(skipped->from) + "-" + std::to_string(skipped->to) + ": " +
                         skipped->reason);
      return;
    }
    const auto& frame = std::get<peer::Frame>(item);
    if (frame.kind != peer::FrameKind::kData) {
      to.order.push_back(frame.bytes);
      return;
    }
    arrivals.push_back(std::string(peer::name_of(log)) + " " + std::to_string(frame.sequence));
    if (frame.sequence <= to.last) return;
    BOOST_TEST(frame.sequence == to.last + 1);
    to.last = frame.sequence;
    to.bytes += frame.bytes;
    to.order.push_back(std::to_string(frame.sequence));
  }
  std::vector<std::function<void(Status)>> waiting_;
};

struct Pair {
  NetEnv env;
  MemorySource source{env};
  MemorySink sink;
  ForwarderOptions agent;
  std::vector<std::string> jobs;  // that the agent reports
  collect::CollectorOptions receiver;
  std::unique_ptr<collect::Collector> collector;
  std::unique_ptr<Forwarder> forwarder;

  Pair() {
    receiver.listen = kAddress;
    agent.to = {kAddress};
    agent.host = "node-3", agent.boot_id = "boot-1", agent.program = receiver.program = "0.1.0";
    agent.seed = 7;
  }
  void start_collector() {
    auto started = collect::Collector::start(env, receiver, sink);
    BOOST_REQUIRE(started);
    collector = std::move(*started);
    sink.collector = collector.get();
  }
  void stop_collector() {
    sink.collector = nullptr;
    collector.reset();
  }
  void start_agent() {
    forwarder = std::make_unique<Forwarder>(env, agent, source, [this] {
      peer::Status status;
      status.jobs = jobs;
      return status;
    });
    forwarder->start();
    env.read();
  }
  void start() { start_collector(), start_agent(); }
  void add(Log log, std::string bytes, bool declares = false) {
    source.add(log, std::move(bytes), declares);
    forwarder->appended(log);
    env.read();
  }
  void pass(int64_t seconds) { env.advance(seconds * kNsPerSecond); }
  MemorySink::Stored& stored(Log log) { return sink.epochs[source.of(log).epoch]; }
  std::string all(Log log) {
    std::string bytes;
    for (const SourceFrame& frame : source.of(log).frames) bytes += frame.bytes;
    return bytes;
  }
  bool complete(Log log) {
    return stored(log).bytes == all(log) && stored(log).committed + 1 == source.of(log).next();
  }
};

}  // namespace culprit::forward::testing
