#include "app/daemon/uplink/uplink.h"

#include <unistd.h>

#include <boost/test/unit_test.hpp>
#include <filesystem>

#include "../jobs/live_feed.h"
#include "io/uv/env.h"

using namespace culprit;
using namespace culprit::app;

namespace {

namespace fs = std::filesystem;

// An agent's store and uplink in a folder; no collector listens at its address.
class Host {
 public:
  Host() : folder_(fs::temp_directory_path() / fmt::format("culprit-uplink-{}", ::getpid())) {
    fs::remove_all(folder_);
    config_.state_dir = folder_;
    config_.role = DaemonRole::kAgent;
    config_.host.name = "node-0";
    config_.forward.to = {"127.0.0.1:1"};
    start();
  }
  ~Host() {
    stop();
    fs::remove_all(folder_);
  }

  void start() {
    RecorderOptions recorder;
    recorder.state_dir = folder_;
    recorder.watch = &watch_;
    recorder.hold = true;
    recorder.report_error = [](const std::string&) {};
    recorder.committed = [](const std::vector<store::CommittedOffset>&, uint64_t) {};
    recorder_ = std::move(*Recorder::open(*env_, std::move(recorder)));
    UplinkOptions options;
    options.config = &config_;
    options.recorder = recorder_.get();
    options.watch = &watch_;
    options.feed.host = "node-0";
    options.feed.rules = shipped();
    options.report_error = [](const std::string&) {};
    options.status = [] { return peer::Status(); };
    uplink_ = std::move(*Uplink::start(*env_, std::move(options)));
  }
  // Condenses and writes everything, as at SIGTERM.
  void finish() {
    uplink_->finish([this] { env_->stop(); });
    env_->run();
  }
  void stop() {
    uplink_.reset();
    recorder_.reset();
  }

  void write(PieceBatch batch) {
    const auto shared = std::make_shared<const PieceBatch>(std::move(batch));
    uplink_->append(shared, {});
    recorder_->append(shared, {});
  }
  // Returns when the batch and all earlier ones are condensed.
  void write_and_wait(PieceBatch batch) {
    const auto shared = std::make_shared<const PieceBatch>(std::move(batch));
    uplink_->append(shared, [this] { env_->stop(); });
    recorder_->append(shared, {});
    env_->run();
  }
  void secure() {
    recorder_->secure([this](Result<uint64_t> done) {
      BOOST_TEST(done.has_value());
      env_->stop();
    });
    env_->run();
  }
  std::vector<forward::SourceFrame> read(forward::ReadRequest request) {
    std::vector<forward::SourceFrame> out;
    uplink_->read(std::move(request), [&](Result<std::vector<forward::SourceFrame>> frames) {
      BOOST_REQUIRE(frames.has_value());
      out = std::move(*frames);
      env_->stop();
    });
    env_->run();
    return out;
  }
  Uplink& uplink() { return *uplink_; }
  Recorder& recorder() { return *recorder_; }

 private:
  const fs::path folder_;
  Config config_;
  SelfWatch watch_;
  std::unique_ptr<io::Env> env_ = io::make_uv_env();
  std::unique_ptr<Recorder> recorder_;
  std::unique_ptr<Uplink> uplink_;
};

PieceBatch lines(StreamId stream, uint64_t& offset, int count, bool opens) {
  PieceBatch out;
  if (opens) {
    StreamInfo info;
    info.id = stream;
    info.job = "j";
    info.path = "/logs/train.log";
    out.opened.push_back(std::move(info));
  }
  Piece piece;
  piece.stream = stream;
  piece.offset = offset;
  piece.time_ns = kStart;
  for (int i = 0; i < count; ++i) piece.bytes += step_line(i);
  offset += piece.bytes.size();
  out.pieces.push_back(std::move(piece));
  return out;
}

forward::ReadRequest request(peer::Log log, uint64_t after) {
  forward::ReadRequest out;
  out.log = log;
  out.after = after;
  out.max_bytes = 1 << 20;
  out.max_frames = 100;
  return out;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(uplink)

BOOST_AUTO_TEST_CASE(only_synced_frames_are_to_be_sent_and_both_logs_have_theirs) {
  Host host;
  uint64_t offset = 0;
  host.write(lines(host.recorder().allocate(), offset, 100, true));
  BOOST_TEST(host.uplink().bounds(peer::Log::kEvidence).next == 1u);
  host.secure();
  BOOST_TEST(host.uplink().bounds(peer::Log::kEvidence).next == 2u);
  BOOST_TEST(host.uplink().bounds(peer::Log::kCondensed).next == 1u);
  host.finish();
  BOOST_TEST(host.uplink().bounds(peer::Log::kCondensed).next == 2u);
  BOOST_TEST(host.uplink().counters().feed.lines == 100u);
  for (const peer::Log log : peer::kLogs) {
    forward::ReadRequest all = request(log, 0);
    all.with_checkpoint = true;
    const auto frames = host.read(all);
    BOOST_TEST_REQUIRE(frames.size() == 2u);
    BOOST_TEST((frames[0].kind == peer::FrameKind::kCheckpointEnd));
    BOOST_TEST(frames[1].sequence == 1u);
    BOOST_TEST(host.read(request(log, 1)).empty());
  }
}

BOOST_AUTO_TEST_CASE(frames_that_are_not_selected_come_without_their_bytes) {
  Host host;
  uint64_t offset = 0;
  const StreamId stream = host.recorder().allocate();
  for (int i = 0; i < 3; ++i) {
    host.write(lines(stream, offset, 10, i == 0));
    host.secure();
  }
  forward::ReadRequest none = request(peer::Log::kEvidence, 0);
  none.selection.all = false;
  none.selection.until_ns = std::numeric_limits<TimeNs>::max();
  const auto frames = host.read(none);
  BOOST_TEST_REQUIRE(frames.size() == 3u);
  BOOST_TEST(!frames[0].bytes.empty());  // it declares the stream
  BOOST_TEST(frames[1].bytes.empty());
  BOOST_TEST(frames[2].sequence == 3u);
  none.selection.until_ns = 0;
  BOOST_TEST(host.read(none).size() == 1u);
  none.after = 1;
  BOOST_TEST(host.read(none).empty());
}

BOOST_AUTO_TEST_CASE(after_an_end_without_a_word_what_was_not_condensed_is_read_from_the_evidence) {
  Host host;
  uint64_t offset = 0;
  const StreamId stream = host.recorder().allocate();
  host.write(lines(stream, offset, 10, true));
  host.secure();
  host.stop();  // nothing was flushed
  host.start();
  host.write_and_wait(lines(stream, offset, 5, false));
  host.finish();
  BOOST_TEST(host.uplink().counters().feed.lines == 15u);
  host.stop();
  host.start();
  host.finish();
  BOOST_TEST(host.uplink().counters().feed.lines == 0u);
  BOOST_TEST(host.uplink().counters().caught_up);
}

BOOST_AUTO_TEST_SUITE_END()
