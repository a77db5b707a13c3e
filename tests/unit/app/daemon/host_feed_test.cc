#include "app/daemon/host_feed.h"

#include <boost/test/unit_test.hpp>

#include "core/wire.h"
#include "live_feed.h"
#include "model/report_json.h"

using namespace culprit;
using namespace culprit::app;

namespace {

constexpr uint64_t kEpoch = 77;

// A collector of one job: an engine, and a reader for each session.
class Remote final : public core::InputSink {
 public:
  Remote() : engine_(options()) {}

  void take(const std::vector<PieceBatch>& batches) {
    for (const PieceBatch& batch : batches) {
      BOOST_TEST(batch.whole);
      for (const StreamInfo& info : batch.opened) {
        BOOST_TEST(states.emplace(info.id, StreamState{info, 0, {}, false, {}}).second);
        if (info.kind == OriginKind::kCondensed)
          readers_.try_emplace(info.id, core::rule_finder(shipped().get()));
      }
      for (const Piece& piece : batch.pieces) {
        StreamState& state = states.at(piece.stream);
        BOOST_TEST(piece.offset == state.size);
        BOOST_TEST(!state.ended);
        advance(state, piece);
        if (piece.bytes.empty()) continue;
        BOOST_TEST((state.info.kind == OriginKind::kCondensed));
        const Status read = readers_.at(piece.stream).read(piece.bytes, *this);
        BOOST_TEST(read.has_value(), (read ? "" : read.error().text));
      }
    }
  }

  SourceId open(SourceInfo info, TimeNs now) override {
    core::Input input = core::SourceOpened{std::move(info)};
    engine_.step({&input, 1}, now);
    return next_++;
  }
  void take(core::Input input, TimeNs now) override { engine_.step({&input, 1}, now); }
  void ends(bool failed, TimeNs) override { ended = failed ? "failed" : "ended"; }
  void alive(bool is, TimeNs) override { lives.push_back(is); }

  std::string report() {
    Report report = engine_.report();
    report.activity = {};
    return without_ids(to_json(report));
  }
  uint64_t lines() const { return engine_.log().lines(); }
  std::vector<StreamState> known() const {
    std::vector<StreamState> out;
    for (const auto& [id, state] : states) out.push_back(state);
    return out;
  }
  StreamId allocate() { return streams_++; }

  std::map<StreamId, StreamState> states;
  std::string ended;
  std::vector<bool> lives;

 private:
  static core::EngineOptions options() {
    core::EngineOptions out;
    out.job.id = "j";
    out.rules = shipped();
    out.live = true;
    return out;
  }
  core::Engine engine_;
  SourceId next_ = 0;
  StreamId streams_ = 0;
  std::map<StreamId, core::InputReader> readers_;
};

FeedOptions feed_options(Remote& remote) {
  FeedOptions out;
  out.host = "node-0";
  out.roots = {"/logs/"};
  out.rules = shipped();
  out.evidence_epoch = kEpoch;
  out.allocate = [&remote] { return remote.allocate(); };
  out.draw_session = [n = uint64_t{1}]() mutable { return n++ * 0x9e3779b97f4a7c15; };
  return out;
}

// The evidence of a host: three files cut anywhere, one of them with a hole, a trace socket and the kernel.
std::vector<PieceBatch> evidence(size_t size) {
  struct Source {
    StreamInfo info;
    std::string bytes;
    size_t at = 0;
  };
  std::vector<Source> sources(5);
  for (size_t i = 0; i < sources.size(); ++i) {
    StreamInfo& info = sources[i].info;
    info.id = static_cast<StreamId>(i);
    info.kind = i < 3 ? OriginKind::kFile : i == 3 ? OriginKind::kSocket : OriginKind::kKernel;
    info.job = i == 4 ? "" : "j";
    info.path = i < 3 ? fmt::format("/logs/node-{}/train.log", i) : i == 3 ? "/run/trace.sock" : "/dev/kmsg";
    info.uid = 1000;
    info.boot_ns = kStart - 1000 * kNsPerSecond;
    std::string& bytes = sources[i].bytes;
    for (int64_t s = 0; s < 40; ++s)
      if (i < 3)
        bytes += step_line(s);
      else if (i == 3)
        bytes += fmt::format("{{\"kind\":\"log\",\"line\":\"loader {} is ready\",\"rank\":{}}}\n", s, s % 4);
      else
        bytes += fmt::format("6,{},{},-;eth0: link is up {}\n", s, 1'000'000'000 + s * 1'000'000, s);
    if (i == 2)
      bytes += xid_line(kStart + 40 * kNsPerSecond) + "RuntimeError: CUDA error: unknown error\nno end";
  }
  std::vector<PieceBatch> out(1);
  for (const Source& source : sources) out[0].opened.push_back(source.info);
  for (bool more = true; more;) {
    more = false;
    for (Source& source : sources) {
      if (source.at == source.bytes.size()) continue;
      Piece piece;
      piece.stream = source.info.id;
      piece.offset = source.at;
      piece.time_ns = kStart + static_cast<TimeNs>(out.size()) * kNsPerSecond;
      size_t n = std::min(size, source.bytes.size() - source.at);
      // Pieces of the kernel are whole records.
      if (source.info.kind == OriginKind::kKernel) n = source.bytes.find('\n', source.at) + 1 - source.at;
      piece.bytes = source.bytes.substr(source.at, n);
      if (source.info.id == 1 && source.at > 0 && source.at <= size)
        piece.gap = Gap{100, 0, "it was truncated"};
      source.at += n;
      piece.ends = source.info.id == 0 && source.at == source.bytes.size();
      out.emplace_back().pieces.push_back(std::move(piece));
      more = true;
    }
  }
  return out;
}

size_t take_all(HostFeed& feed, const PieceBatch& batch, uint64_t sequence) {
  const size_t next = feed.take(batch, {0, sequence}, kStart);
  BOOST_TEST(next == batch.pieces.size());
  return next;
}

std::string local(const std::vector<PieceBatch>& batches) {
  LiveOptions options = live_options();
  LiveJobs jobs(std::move(options));
  for (const PieceBatch& batch : batches) jobs.take(batch, kStart);
  return without_ids(jobs.report_json("j", kStart).value_or(""));
}

}  // namespace

BOOST_AUTO_TEST_SUITE(host_feed)

BOOST_AUTO_TEST_CASE(what_a_collector_is_told_gives_the_report_that_the_host_would_give) {
  for (const size_t size : {size_t{5}, size_t{64}, size_t{1} << 20}) {
    const auto batches = evidence(size);
    const std::string expected = local(batches);
    BOOST_TEST(expected.find("nvidia.xid.79") != std::string::npos);
    for (const size_t every : {size_t{1}, size_t{10}, size_t{100'000}}) {
      Remote remote;
      HostFeed feed(feed_options(remote));
      for (size_t i = 0; i < batches.size(); ++i) {
        take_all(feed, batches[i], i);
        if (i % every == 0) remote.take(feed.flush(i + 1, kStart));
      }
      remote.take(feed.flush(batches.size(), kStart));
      BOOST_TEST(feed.empty(kStart));
      BOOST_TEST(remote.report() == expected, "pieces of " << size << ", a flush every " << every);
    }
  }
}

// Killed behind each batch, with a flush at some of them: what was flushed is there, all else is given again.
BOOST_AUTO_TEST_CASE(killed_anywhere_nothing_is_told_twice_or_left_out) {
  for (const size_t size : {size_t{37}, size_t{700}}) {
    const auto batches = evidence(size);
    Remote whole;
    HostFeed once(feed_options(whole));
    for (size_t i = 0; i < batches.size(); ++i) take_all(once, batches[i], i);
    whole.take(once.flush(batches.size(), kStart));
    const size_t step = std::max<size_t>(1, batches.size() / 60);
    for (size_t killed = 0; killed < batches.size(); killed += step) {
      Remote remote;
      auto feed = std::make_unique<HostFeed>(feed_options(remote));
      for (size_t i = 0; i <= killed; ++i) {
        take_all(*feed, batches[i], i);
        if (i % 7 == 3) remote.take(feed->flush(i + 1, kStart));
      }
      feed = std::make_unique<HostFeed>(feed_options(remote));
      feed->resume(remote.known(), kStart);
      const uint64_t behind = feed->resume_behind();
      BOOST_TEST(behind <= killed + 1);
      // Sources are told as a segment's checkpoint does.
      PieceBatch opened;
      opened.opened = batches[0].opened;
      take_all(*feed, opened, behind);
      for (size_t i = behind; i < batches.size(); ++i) {
        PieceBatch batch;
        batch.pieces = batches[i].pieces;
        take_all(*feed, batch, i);
      }
      remote.take(feed->flush(batches.size(), kStart));
      BOOST_TEST(remote.lines() == whole.lines(), "killed behind " << killed << ", pieces of " << size);
      BOOST_TEST_REQUIRE(remote.report().find("nvidia.xid.79") != std::string::npos);
    }
  }
}

BOOST_AUTO_TEST_CASE(what_lives_is_told_when_it_changes_and_now_and_then) {
  Remote remote;
  FeedOptions options = feed_options(remote);
  std::optional<bool> lives;
  options.alive = [&](const std::string&) { return lives; };
  options.ended_after_ns = 120 * kNsPerSecond;
  HostFeed feed(std::move(options));
  const auto batches = evidence(1 << 20);
  take_all(feed, batches[0], 0);
  take_all(feed, batches[2], 0);  // a file that goes on
  TimeNs now = kStart;
  const auto after = [&](int seconds) {
    for (int s = 0; s < seconds; ++s) feed.tick(now += kNsPerSecond);
    remote.take(feed.flush(1, now));
    return remote.lives;
  };
  BOOST_TEST(after(100).empty());  // nobody knows
  lives = true;
  BOOST_TEST(after(1) == std::vector<bool>{true});
  BOOST_TEST(after(31) == (std::vector<bool>{true, true}));
  lives = false;
  feed.tick(now += kNsPerSecond);
  BOOST_TEST(feed.hurries());
  BOOST_TEST(after(1) == (std::vector<bool>{true, true, false}));
  BOOST_TEST(feed.jobs().empty());  // silent for longer than ended_after
  BOOST_TEST(std::count_if(remote.states.begin(), remote.states.end(), [](const auto& state) {
               return state.second.info.kind == OriginKind::kCondensed && state.second.ended;
             }) == 1);
}

BOOST_AUTO_TEST_CASE(marks_of_sources_that_are_gone_end) {
  Remote remote;
  const auto batches = evidence(1 << 20);
  {
    HostFeed feed(feed_options(remote));
    for (const PieceBatch& batch : batches) take_all(feed, batch, 0);
    remote.take(feed.flush(1, kStart));
  }
  const auto marks = [&] {
    return std::count_if(remote.states.begin(), remote.states.end(), [](const auto& state) {
      return state.second.info.kind == OriginKind::kMark && !state.second.ended;
    });
  };
  BOOST_TEST(marks() == 6);  // one of all
  HostFeed feed(feed_options(remote));
  feed.resume(remote.known(), kStart);
  feed.keep_only({1, 2});
  remote.take(feed.flush(1, kStart));
  BOOST_TEST(marks() == 3);
}

BOOST_AUTO_TEST_SUITE_END()
