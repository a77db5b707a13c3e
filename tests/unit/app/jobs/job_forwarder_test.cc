#include "app/jobs/job_forwarder.h"

#include <boost/test/unit_test.hpp>
#include <nlohmann/json.hpp>

#include "core/wire/inputs.h"
#include "live_feed.h"
#include "model/report_json.h"
#include "store/record.h"
#include "store/spool.h"

using namespace culprit;
using namespace culprit::app;

namespace {

constexpr uint64_t kEpoch = 77;

// A collector of one job: an engine, and a reader for each session.
class Remote final : public wire::InputSink {
 public:
  Remote() : engine_(options()) {}

  void take(const std::vector<PieceBatch>& batches) {
    for (const PieceBatch& batch : batches) {
      BOOST_TEST(batch.whole);
      for (const StreamInfo& info : batch.opened) {
        BOOST_TEST(states.emplace(info.id, StreamState{info, 0, {}, false, {}}).second);
        if (info.kind == OriginKind::kCondensed)
          readers_.try_emplace(info.id, wire::rule_finder(shipped().get()));
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
  void on_input(core::Input input, TimeNs now) override { engine_.step({&input, 1}, now); }
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
  std::map<StreamId, wire::InputReader> readers_;
};

JobForwarderOptions feed_options(Remote& remote) {
  JobForwarderOptions out;
  out.host = "node-0";
  out.roots = {"/logs/"};
  out.rules = shipped();
  out.evidence_epoch = kEpoch;
  out.allocate = [&remote] { return remote.allocate(); };
  out.draw_session = [n = uint64_t{1}]() mutable { return n++ * 0x9e3779b97f4a7c15; };
  return out;
}

// The evidence of a host: three files divided at any bytes, one of them with a gap, a trace socket and the
// kernel.
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

// Three jobs with one file each, one of them soon silent, and the kernel, whose messages belong to all jobs.
std::vector<PieceBatch> evidence_of_jobs() {
  std::vector<PieceBatch> out(31);
  std::map<StreamId, uint64_t> at;
  for (StreamId id = 0; id < 4; ++id) {
    StreamInfo info;
    info.id = id;
    info.kind = id < 3 ? OriginKind::kFile : OriginKind::kKernel;
    info.job = id < 3 ? fmt::format("job-{}", id) : "";
    info.path = id < 3 ? fmt::format("/logs/{}/train.log", id) : "/dev/kmsg";
    info.boot_ns = kStart - 1000 * kNsPerSecond;
    out[0].opened.push_back(info);
  }
  const auto add = [&](size_t batch, StreamId stream, std::string bytes) {
    Piece piece;
    piece.stream = stream;
    piece.offset = at[stream];
    piece.time_ns = kStart + static_cast<TimeNs>(batch) * kNsPerSecond;
    piece.bytes = std::move(bytes);
    at[stream] += piece.bytes.size();
    out[batch].pieces.push_back(std::move(piece));
  };
  for (size_t i = 1; i < out.size(); ++i) {
    const auto s = static_cast<int64_t>(i);
    add(i, i % 3 == 2 && i > 3 ? 0 : static_cast<StreamId>(i % 3), step_line(s));
    add(i, 3, fmt::format("6,{},{},-;eth0: link is up {}\n", s, 1'000'000'000 + s * 1'000'000, s));
  }
  return out;
}

size_t take_all(JobForwarder& feed, const PieceBatch& batch, uint64_t sequence) {
  const size_t next = feed.ingest(batch, {0, sequence}, kStart);
  BOOST_TEST(next == batch.pieces.size());
  return next;
}

// Kills the forwarder after a batch, with a flush after every `every`th batch before it, and restarts it on
// the stored state. Returns the number of batches before its position.
uint64_t feed_killed(const std::vector<PieceBatch>& batches, size_t killed, size_t every, Remote& remote) {
  auto feed = std::make_unique<JobForwarder>(feed_options(remote));
  for (size_t i = 0; i <= killed; ++i) {
    take_all(*feed, batches[i], i);
    if (i % every == every / 2) remote.take(feed->flush(i + 1, kStart));
  }
  feed = std::make_unique<JobForwarder>(feed_options(remote));
  feed->resume(remote.known(), kStart);
  const uint64_t behind = feed->resume_behind();
  // Sources are declared as in a segment's checkpoint.
  PieceBatch opened;
  opened.opened = batches[0].opened;
  take_all(*feed, opened, behind);
  for (size_t i = behind; i < batches.size(); ++i) {
    PieceBatch batch;
    batch.pieces = batches[i].pieces;
    take_all(*feed, batch, i);
  }
  remote.take(feed->flush(batches.size(), kStart));
  return behind;
}

std::string local(const std::vector<PieceBatch>& batches) {
  LiveOptions options = live_options();
  LiveJobs jobs(std::move(options));
  for (const PieceBatch& batch : batches) jobs.ingest(batch, kStart);
  return without_ids(report_of(jobs, "j", kStart));
}

}  // namespace

BOOST_AUTO_TEST_SUITE(host_feed)

BOOST_AUTO_TEST_CASE(what_a_collector_is_reported_gives_the_report_that_the_host_would_give) {
  for (const size_t size : {size_t{5}, size_t{64}, size_t{1} << 20}) {
    const auto batches = evidence(size);
    const std::string expected = local(batches);
    BOOST_TEST(expected.find("nvidia.xid.79") != std::string::npos);
    for (const size_t every : {size_t{1}, size_t{10}, size_t{100'000}}) {
      Remote remote;
      JobForwarder feed(feed_options(remote));
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

// Killed after each batch, with a flush after some of them: flushed batches are stored, later ones are read
// again.
BOOST_AUTO_TEST_CASE(killed_anywhere_nothing_is_reported_twice_or_left_out) {
  for (const size_t size : {size_t{37}, size_t{700}}) {
    const auto batches = evidence(size);
    Remote whole;
    JobForwarder once(feed_options(whole));
    for (size_t i = 0; i < batches.size(); ++i) take_all(once, batches[i], i);
    whole.take(once.flush(batches.size(), kStart));
    const size_t step = std::max<size_t>(1, batches.size() / 60);
    for (size_t killed = 0; killed < batches.size(); killed += step) {
      Remote remote;
      BOOST_TEST(feed_killed(batches, killed, 7, remote) <= killed + 1);
      BOOST_TEST(remote.lines() == whole.lines(), "killed behind " << killed << ", pieces of " << size);
      BOOST_TEST_REQUIRE(remote.report().find("nvidia.xid.79") != std::string::npos);
    }
  }
}

// Dumps of two ranks in pieces; the second rank waits for a peer that did not enter. The collector's report
// names that peer.
BOOST_AUTO_TEST_CASE(dumps_reach_the_collector_once_whole_wherever_the_agent_is_killed) {
  const auto text = [](bool waits) {
    return fmt::format(
        R"({{"version":"2.9","pg_config":{{"0":{{"name":"0","desc":"default_pg","ranks":"[0, 1]"}}}},"entries":[)"
        R"({{"process_group":["0","default_pg"],"collective_seq_id":{},"profiling_name":"nccl:all_reduce",)"
        R"("time_created_ns":{},"state":"{}","is_p2p":false}}]}})",
        waits ? 8 : 7, kStart + 90 * kNsPerSecond, waits ? "scheduled" : "completed");
  };
  std::vector<PieceBatch> batches(1);
  for (StreamId id = 0; id < 3; ++id) {
    StreamInfo info;
    info.id = id;
    info.kind = id < 2 ? OriginKind::kDump : OriginKind::kFile;
    info.job = "j";
    info.path = id < 2 ? fmt::format("/dumps/nccl_trace_rank_{}", id) : "/logs/node-0/train.log";
    batches[0].opened.push_back(info);
  }
  uint64_t log_bytes = 0;
  for (StreamId id = 0; id < 2; ++id) {
    const std::string dump = text(id == 0);
    for (size_t at = 0; at < dump.size(); at += 100) {
      Piece line, piece;
      line.stream = 2;
      line.offset = log_bytes;
      line.bytes = step_line(static_cast<int64_t>(batches.size()));
      line.time_ns = kStart;
      log_bytes += line.bytes.size();
      piece.stream = id;
      piece.offset = at;
      piece.bytes = dump.substr(at, 100);
      piece.time_ns = kStart;
      piece.place = FilePlace{1, id + 1, 0, 0, at + piece.bytes.size(), 0, 0};
      batches.emplace_back().pieces = {std::move(line), std::move(piece)};
    }
  }
  for (size_t killed = 0; killed < batches.size(); ++killed) {
    Remote remote;
    feed_killed(batches, killed, 2, remote);
    const auto report = nlohmann::json::parse(remote.report());
    BOOST_REQUIRE_MESSAGE(!report["hang"].is_null(), "killed behind " << killed);
    BOOST_REQUIRE(report["hang"]["suspects"].size() == 1u);
    BOOST_TEST(report["hang"]["suspects"][0]["rank"] == 1);
    BOOST_TEST(report["hang"]["suspects"][0]["host"] == "node-0");
    BOOST_TEST(remote.lines() == batches.size() - 1);
  }
}

// A flush of several jobs is several frames, and a kill may separate them; also in the first flush after the
// restart.
BOOST_AUTO_TEST_CASE(killed_within_a_flush_nothing_is_reported_twice_or_left_out) {
  const auto batches = evidence_of_jobs();
  const size_t half = batches.size() / 2;
  const auto options = [](Remote& remote) {
    JobForwarderOptions out = feed_options(remote);
    out.part_bytes = 1;  // a frame for each job
    return out;
  };
  Remote whole;
  JobForwarder once(options(whole));
  for (size_t i = 0; i < batches.size(); ++i) take_all(once, batches[i], i);
  whole.take(once.flush(batches.size(), kStart));
  BOOST_TEST(whole.lines() > 3 * 20u);
  const auto flush_in_part = [](Remote& remote, JobForwarder& feed, size_t parts, uint64_t sequence) {
    std::vector<PieceBatch> all = feed.flush(sequence, kStart);
    BOOST_TEST(all.size() >= 3u);
    all.resize(std::min(parts, all.size()));
    remote.take(all);
  };
  const auto again = [&](Remote& remote, size_t until) {
    auto feed = std::make_unique<JobForwarder>(options(remote));
    feed->resume(remote.known(), kStart);
    PieceBatch opened;
    opened.opened = batches[0].opened;
    const uint64_t behind = feed->resume_behind();
    take_all(*feed, opened, behind);
    for (size_t i = behind; i < until; ++i) {
      PieceBatch batch;
      batch.pieces = batches[i].pieces;
      take_all(*feed, batch, i);
    }
    return feed;
  };
  for (size_t first = 0; first <= 4; ++first)
    for (size_t second = 0; second <= 4; ++second) {
      Remote remote;
      JobForwarder feed(options(remote));
      for (size_t i = 0; i < half; ++i) {
        take_all(feed, batches[i], i);
        if (i == half / 2) remote.take(feed.flush(i + 1, kStart));
      }
      flush_in_part(remote, feed, first, half);
      const auto next = again(remote, batches.size() - 3);
      flush_in_part(remote, *next, second, batches.size() - 3);
      const auto last = again(remote, batches.size());
      remote.take(last->flush(batches.size(), kStart));
      BOOST_TEST(remote.lines() == whole.lines(), "killed behind " << first << " and " << second << " parts");
    }
}

// The report of a collector's job; blocks of the first sessions may be missing.
BOOST_AUTO_TEST_CASE(a_long_session_continues_in_another_and_is_readable_from_there) {
  struct Outcome {
    std::string report;
    uint64_t lines, lost, sources;
  };
  const auto batches = evidence(37);
  const auto play = [&](uint64_t session_bytes, StreamId removed) {
    Remote ids;
    JobForwarderOptions options = feed_options(ids);
    options.session_bytes = session_bytes;
    JobForwarder feed(std::move(options));
    LiveOptions collector = live_options();
    collector.host = "collector";
    collector.roots = {};
    LiveJobs jobs(std::move(collector));
    for (size_t i = 0; i < batches.size(); ++i) {
      take_all(feed, batches[i], i);
      if (i % 20 != 19 && i + 1 < batches.size()) continue;
      for (PieceBatch& part : feed.flush(i + 1, kStart)) {
        std::erase_if(part.pieces, [&](const Piece& piece) { return piece.stream == removed; });
        jobs.ingest(RemoteBatch{"node-0", 1, std::move(part)}, kStart);
      }
    }
    const auto all = jobs.jobs();
    return Outcome{without_ids(report_of(jobs, "j", kStart)), jobs.counts().lines,
                   jobs.counts().remote_blocks_lost, all.empty() ? 0 : all[0].sources};
  };
  const Outcome one = play(uint64_t{1} << 30, kNoStream), many = play(1, kNoStream);
  BOOST_TEST(one.report.find("nvidia.xid.79") != std::string::npos);
  BOOST_TEST(many.report == one.report);
  BOOST_TEST((many.lines == one.lines && many.sources == one.sources && many.lost == 0u));
  BOOST_TEST(play(uint64_t{1} << 30, 0).lines == 0u);
  const Outcome rest = play(1, 0);
  BOOST_TEST((rest.lines > 0u && rest.lines < one.lines && rest.lost == 0u));
  BOOST_TEST(rest.report.find("nvidia.xid.79") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(marks_of_very_many_sources_stand_in_one_frame_with_the_block) {
  Remote remote;
  JobForwarder feed(feed_options(remote));
  PieceBatch batch;
  for (StreamId id = 0; id < 16'000; ++id) {
    StreamInfo info;
    info.id = id;
    info.job = "j";
    info.path = fmt::format("/logs/node-0/{}{}.log", std::string(100, 'x'), id);
    batch.opened.push_back(info);
    Piece piece;
    piece.stream = id;
    piece.bytes = step_line(id % 100);
    batch.pieces.push_back(std::move(piece));
  }
  size_t flushes = 0;
  for (size_t next = 0; next < batch.pieces.size(); ++flushes) {
    next = feed.ingest(batch, {next, 0}, kStart);
    const auto parts = feed.flush(0, kStart);
    BOOST_REQUIRE(parts.size() == 1u);
    BOOST_TEST(parts[0].bytes() < 6u << 20);
    remote.take(parts);
  }
  BOOST_TEST(flushes > 1u);
  BOOST_TEST(remote.states.size() == 16'000 + 2u);
}

// The maximum number of sources of one job, each with an unfinished line.
PieceBatch very_many_sources(const std::string& text, bool opens, uint64_t offset) {
  PieceBatch out;
  for (StreamId id = 0; id < limits::kLiveSources; ++id) {
    StreamInfo info;
    info.id = id;
    info.job = "j";
    info.path = fmt::format("/logs/node-0/{}{}.log", std::string(100, 'x'), id);
    if (opens) out.opened.push_back(std::move(info));
    Piece piece;
    piece.stream = id;
    piece.offset = offset;
    piece.time_ns = kStart;
    piece.bytes = text;
    out.pieces.push_back(std::move(piece));
  }
  return out;
}

BOOST_AUTO_TEST_CASE(a_session_begun_again_and_its_end_fit_into_frames_with_very_many_sources) {
  Remote remote;
  JobForwarderOptions options = feed_options(remote);
  options.session_bytes = 1;
  JobForwarder feed(std::move(options));
  const auto flush = [&](uint64_t sequence) {
    const auto parts = feed.flush(sequence, kStart);
    for (const PieceBatch& part : parts) BOOST_TEST(store::encoded_size_max(part) <= store::kBatchBytes);
    remote.take(parts);
  };
  const std::string text = step_line(1) + "no end";
  const PieceBatch all = very_many_sources(text, true, 0);
  for (size_t next = 0; next < all.pieces.size(); flush(1)) next = feed.ingest(all, {next, 0}, kStart);
  BOOST_TEST(remote.lines() == limits::kLiveSources);
  // A source is declared only before its first record.
  const uint64_t before = feed.counts().block_bytes;
  PieceBatch one;
  one.pieces.push_back(all.pieces[7]);
  one.pieces[0].offset = text.size();
  one.pieces[0].bytes = " but here\n";
  take_all(feed, one, 1);
  flush(2);
  BOOST_TEST(feed.counts().block_bytes - before < 1000u);
  BOOST_TEST(remote.lines() == limits::kLiveSources + 1);
  feed.renew();
  flush(3);
  BOOST_TEST(remote.lines() + feed.counts().dropped_lines == 2 * limits::kLiveSources);
  BOOST_TEST(feed.counts().dropped_lines > 0u);
  // The ends of all their marks, too.
  JobForwarder again(feed_options(remote));
  again.resume(remote.known(), kStart);
  again.keep_only({});
  const auto parts = again.flush(4, kStart);
  for (const PieceBatch& part : parts) BOOST_TEST(store::encoded_size_max(part) <= store::kBatchBytes);
  BOOST_TEST(parts.size() > 1u);
}

BOOST_AUTO_TEST_CASE(what_stood_in_a_batch_that_was_not_kept_is_reported_again_and_the_rest_goes_on) {
  Remote remote;
  JobForwarder feed(feed_options(remote));
  const auto batches = evidence(37);
  std::vector<size_t> refused = {1, 4, 5};
  size_t flushes = 0;
  for (size_t i = 0; i < batches.size(); ++i) {
    take_all(feed, batches[i], i);
    if (i % 10 != 9 && i + 1 < batches.size()) continue;
    const auto parts = feed.flush(i + 1, kStart);
    const bool is_stored = std::find(refused.begin(), refused.end(), flushes++) == refused.end();
    if (is_stored)
      remote.take(parts);
    else
      for (const PieceBatch& part : parts) feed.refused(part);
  }
  BOOST_TEST(flushes > 8u);
  BOOST_TEST(feed.counts().blocks_refused == refused.size());
  // Each source has its mark, though the batch with its declaration is gone.
  std::set<uint64_t> marked;
  for (const StreamState& state : remote.known())
    if (state.info.kind == OriginKind::kMark && state.place) marked.insert(state.place->inode);
  BOOST_TEST((marked == std::set<uint64_t>{0, 1, 2, 3, 4, UINT64_MAX}));
  BOOST_TEST(remote.lines() > 100u);
}

BOOST_AUTO_TEST_CASE(what_lives_is_reported_when_it_changes_and_now_and_then) {
  Remote remote;
  JobForwarderOptions options = feed_options(remote);
  std::optional<bool> lives;
  options.alive = [&](const std::string&) { return lives; };
  options.ended_after_ns = 120 * kNsPerSecond;
  JobForwarder feed(std::move(options));
  const auto batches = evidence(1 << 20);
  take_all(feed, batches[0], 0);
  take_all(feed, batches[2], 0);  // a file that continues
  TimeNs now = kStart;
  const auto after = [&](int seconds) {
    for (int s = 0; s < seconds; ++s) feed.tick(now += kNsPerSecond);
    remote.take(feed.flush(1, now));
    return remote.lives;
  };
  BOOST_TEST(after(100).empty());  // unknown
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

BOOST_AUTO_TEST_CASE(names_of_one_user_do_not_keep_another_users_job_from_the_collector) {
  Remote remote;
  JobForwarderOptions options = feed_options(remote);
  options.jobs_max = 4;
  JobForwarder forwarder(options);
  StreamId next = 0;
  const auto write = [&](const std::string& job, uint32_t uid, TimeNs now) {
    PieceBatch batch;
    StreamInfo& info = batch.opened.emplace_back();
    info.id = next++;
    info.kind = OriginKind::kSocket;
    info.job = job;
    info.path = "/run/trace.sock";
    info.uid = uid;
    Piece& piece = batch.pieces.emplace_back();
    piece.stream = info.id;
    piece.bytes = "{\"kind\":\"step\",\"step\":1}\n";
    piece.time_ns = now;
    forwarder.ingest(batch, {0, 1}, now);
  };
  for (int i = 0; i < 5; ++i) write(fmt::format("m{}", i), 2000, kStart + i);
  BOOST_TEST(forwarder.jobs().size() == 4u);
  write("alice", 1000, kStart + 10);
  forwarder.flush(1, kStart + 10);
  const std::vector<std::string> retained = {"alice", "m1", "m2", "m3"};
  BOOST_TEST(forwarder.jobs() == retained, boost::test_tools::per_element());
  BOOST_TEST(forwarder.counts().bytes_refused > 0u);
}

BOOST_AUTO_TEST_CASE(a_session_has_one_owner_and_another_users_file_begins_one_without) {
  Remote remote;
  JobForwarder forwarder(feed_options(remote));
  LiveOptions options = live_options();
  options.host = "collector";
  LiveJobs collector(std::move(options));
  std::vector<PieceBatch> sent;
  StreamId next = 0;
  const auto write = [&](uint32_t uid, int64_t second, OriginKind kind = OriginKind::kSocket) {
    PieceBatch batch;
    StreamInfo& info = batch.opened.emplace_back();
    info.id = next++;
    info.kind = kind;
    info.job = "j";
    info.path = kind == OriginKind::kFile ? "/logs/j.log" : "/run/trace.sock";
    info.uid = uid;
    Piece& piece = batch.pieces.emplace_back();
    piece.stream = info.id;
    piece.bytes = fmt::format("{{\"kind\":\"log\",\"line\":\"hello {}\"}}\n", second);
    piece.time_ns = kStart + second * kNsPerSecond;
    forwarder.ingest(batch, {0, 1}, piece.time_ns);
  };
  const auto flush = [&](int64_t second) {
    for (PieceBatch& part : forwarder.flush(1, kStart + second * kNsPerSecond)) {
      sent.push_back(part);
      collector.ingest(RemoteBatch{"node-0", kEpoch, std::move(part)}, kStart + second * kNsPerSecond);
    }
  };
  write(1000, 1);
  flush(2);
  write(0, 3);
  write(1000, 4);
  write(2000, 5, OriginKind::kFile);
  flush(6);
  std::vector<std::optional<Principal>> owners;
  for (const PieceBatch& part : sent)
    for (const StreamInfo& info : part.opened)
      if (info.kind == OriginKind::kCondensed) owners.push_back(info.uid);
  BOOST_REQUIRE(owners.size() == 2u);
  BOOST_TEST((owners[0] == 1000u && !owners[1]));
  BOOST_TEST(collector.counts().remote_blocks == 3u);
  BOOST_TEST(collector.counts().remote_blocks_lost == 0u);
  BOOST_TEST(collector.counts().lines == 4u, "every line of both users");
}

BOOST_AUTO_TEST_CASE(marks_of_sources_that_are_gone_end) {
  Remote remote;
  const auto batches = evidence(1 << 20);
  {
    JobForwarder feed(feed_options(remote));
    for (const PieceBatch& batch : batches) take_all(feed, batch, 0);
    remote.take(feed.flush(1, kStart));
  }
  const auto marks = [&] {
    return std::count_if(remote.states.begin(), remote.states.end(), [](const auto& state) {
      return state.second.info.kind == OriginKind::kMark && !state.second.ended;
    });
  };
  BOOST_TEST(marks() == 6);  // one mark for each
  JobForwarder feed(feed_options(remote));
  feed.resume(remote.known(), kStart);
  feed.keep_only({1, 2});
  remote.take(feed.flush(1, kStart));
  BOOST_TEST(marks() == 3);
}

BOOST_AUTO_TEST_SUITE_END()
