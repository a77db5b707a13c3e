// A peer that sends any bytes: to a collector ('A' first) or to a forwarder (anything else). The second byte
// determines how the bytes are cut. Frames are accepted in order and without holes or not at all, no bytes
// stay held, other connections continue, and every wait ends by a time-out.
#include <cstdint>
#include <cstdlib>
#include <map>
#include <string>
#include <string_view>

#include "../unit/io/net_env.h"
#include "collect/collector.h"
#include "forward/forwarder.h"

namespace {

using namespace culprit;
using io::testing::NetEnv;

const std::string kAddress = "collector:7421";

void require(bool condition) {
  if (!condition) std::abort();
}

class Sink final : public collect::FrameSink {
 public:
  collect::Collector* collector = nullptr;
  std::map<uint64_t, uint64_t> last;  // by epoch
  int connected_now = 0;

  void hello(const peer::Hello& hello, HelloDone done) override {
    std::vector<peer::LogMark> marks;
    for (const peer::LogBounds& reported : hello.logs)
      marks.push_back({reported.log, reported.epoch, last.contains(reported.epoch), last[reported.epoch]});
    done(std::move(marks));
  }
  void on_batch(Batch batch, std::function<void(Status)> done) override {
    for (const collect::LogItem& item : batch.items) {
      const peer::Log log = std::visit([](const auto& i) { return i.log; }, item);
      uint64_t& position = last[batch.epochs[static_cast<size_t>(log)]];
      if (const auto* skipped = std::get_if<peer::Skipped>(&item)) {
        require(skipped->from == position + 1 && skipped->to >= skipped->from);
        position = skipped->to;
      } else if (const auto& frame = std::get<peer::Frame>(item); frame.kind == peer::FrameKind::kData) {
        require(frame.sequence == position + 1 && !frame.bytes.empty());
        position = frame.sequence;
      } else {
        require(frame.sequence <= position);
      }
    }
    done({});
    for (const uint64_t epoch : batch.epochs) collector->committed(epoch, last[epoch]);
  }
  void status(const std::string&, const peer::Status&) override {}
  void connected(const std::string&, const peer::Hello&, const std::string&) override { ++connected_now; }
  void disconnected(const std::string&, const std::string&) override { --connected_now; }
  void refused(peer::Refusal, const std::string& sentence) override { require(!sentence.empty()); }
};

class Source final : public forward::FrameSource {
 public:
  static constexpr uint64_t kFrames = 40;
  uint64_t acknowledged_to[2] = {0, 0};
  peer::LogBounds bounds(peer::Log log) const override {
    return {log, 71 + static_cast<uint64_t>(log), 1, kFrames + 1};
  }
  void read(forward::ReadRequest request, Done done) override {
    std::vector<forward::SourceFrame> frames;
    for (uint64_t s = request.after + 1; s <= kFrames && frames.size() < 8; ++s)
      frames.push_back({peer::FrameKind::kData, s, 5, std::string(100, 'x')});
    done(std::move(frames));
  }
  void acknowledged(peer::Log log, uint64_t sequence) override {
    require(sequence <= kFrames);
    acknowledged_to[static_cast<size_t>(log)] = sequence;
  }
  void steps_wanted(const std::string&, const std::vector<int64_t>&) override {}
  void stacks_wanted(const peer::StacksWanted&) override {}
  void end_tasks(const peer::EndTasks&) override {}
  void fell_behind(peer::Log, uint64_t committed) override { require(committed > kFrames); }
};

void to_collector(NetEnv& env, std::string_view bytes) {
  Sink sink;
  collect::CollectorOptions options;
  options.listen = kAddress;
  auto collector = *collect::Collector::start(env, options, sink);
  sink.collector = collector.get();
  Source source;
  forward::ForwarderOptions agent;
  agent.to = {kAddress}, agent.host = "node-1", agent.boot_id = "b";
  forward::Forwarder good(env, agent, source, nullptr);
  good.start();
  env.read();
  auto rogue = env.dial(kAddress);
  rogue->start({[](std::string_view) {}, [](const Error*) {}});
  rogue->write(std::string(bytes));
  env.advance(100 * kNsPerSecond);
  // It may have the name and boot of the other agent; by then it is silent.
  const collect::CollectorStats stats = collector->stats();
  require(stats.held_bytes == 0 && stats.connections == 1 && stats.hosts == 1 && sink.connected_now == 1);
  require(source.acknowledged_to[0] == Source::kFrames);
}

void to_forwarder(NetEnv& env, std::string_view bytes) {
  std::unique_ptr<io::Stream> accepted;
  auto listener = *env.listen(kAddress, 0, [&](std::unique_ptr<io::Stream> stream) {
    accepted = std::move(stream);
    accepted->start({[](std::string_view) {}, [](const Error*) {}});
    accepted->write(std::string(bytes));
  });
  Source source;
  forward::ForwarderOptions agent;
  agent.to = {kAddress}, agent.host = "node-1", agent.boot_id = "b";
  forward::Forwarder forwarder(env, agent, source, nullptr);
  forwarder.start();
  env.read();
  env.advance(100 * kNsPerSecond);
  require(!forwarder.stats().last_error.empty());  // at least: the peer was silent
  require(forwarder.stats().attempts > 1 && forwarder.stats().attempts < 200);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 2) return 0;
  NetEnv env;
  env.largest_read = 1 + data[1] * 16;
  const std::string_view bytes(reinterpret_cast<const char*>(data + 2), size - 2);
  data[0] == 'A' ? to_collector(env, bytes) : to_forwarder(env, bytes);
  return 0;
}
