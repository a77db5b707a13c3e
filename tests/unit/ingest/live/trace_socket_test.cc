#include "ingest/live/trace_socket.h"

#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <thread>

#include "../../io/fake_env.h"
#include "../../io/fixtures.h"
#include "base/limits.h"

using namespace culprit;
using namespace culprit::ingest;
using io::testing::FakeEnv;
using io::testing::FakePeer;

BOOST_AUTO_TEST_SUITE(trace_socket)

namespace {

constexpr TimeNs kMs = kNsPerMs;
const std::string kPath = "/run/culprit/trace.sock";

std::string heartbeat(int step, const std::string& job = "") {
  return R"({"kind":"step",)" + (job.empty() ? "" : R"("job":")" + job + "\",") + R"("step":)" +
         std::to_string(step) + "}\n";
}

// A socket in an environment without sockets, and the delivered batches.
struct Bench {
  explicit Bench(TraceSocketOptions options = {}) {
    options.path = kPath;
    options.allocate = [this] { return next_stream++; };
    options.take = [this](PieceBatch&& batch) {
      for (StreamInfo& info : batch.opened) opened.push_back(info);
      for (Piece& piece : batch.pieces) {
        BOOST_TEST(piece.offset == sizes[piece.stream]);
        sizes[piece.stream] += piece.bytes.size();
        evidence[piece.stream] += piece.bytes;
        if (piece.gap) gaps.push_back(*piece.gap);
        pieces.push_back(std::move(piece));
      }
      ++batches;
      if (on_batch) on_batch();
    };
    for (const StreamState& state : options.known) sizes[state.info.id] = state.size;
    socket = std::move(*TraceSocket::open(env, std::move(options)));
  }
  std::shared_ptr<FakePeer> connect(uint32_t uid = 1000, uint32_t pid = 42) {
    return env.connect("unix:" + kPath, io::PeerCredentials{pid, uid, uid});
  }
  void settle() { env.advance(25 * kMs); }

  FakeEnv env;
  StreamId next_stream = 10;
  std::vector<StreamInfo> opened;
  std::vector<Piece> pieces;
  std::vector<Gap> gaps;
  std::map<StreamId, std::string> evidence;
  std::map<StreamId, uint64_t> sizes;
  int batches = 0;
  std::function<void()> on_batch;
  std::unique_ptr<TraceSocket> socket;
};

TraceSocketOptions of_job(const std::string& job) {
  TraceSocketOptions options;
  options.job = job;
  return options;
}

}  // namespace

BOOST_AUTO_TEST_CASE(lines_become_evidence_exactly_as_they_came) {
  Bench bench(of_job("configured"));
  auto client = bench.connect();
  const std::string text =
      heartbeat(1) + "\n  \r\nnot json \xff\n" + R"({"kind":"new kind"})" + "\r\n" + heartbeat(2);
  for (const char c : text) client->send(std::string_view(&c, 1));
  bench.settle();
  BOOST_REQUIRE(bench.opened.size() == 1u);
  const StreamInfo& info = bench.opened[0];
  BOOST_TEST(info.id == 10u);
  BOOST_TEST((info.kind == OriginKind::kSocket));
  BOOST_TEST(info.job == "configured");
  BOOST_TEST(info.path == kPath);
  BOOST_TEST((info.uid == 1000u));
  BOOST_TEST((info.pid == 42u));
  BOOST_TEST(info.opened_ns == 1'763'700'000 * kNsPerSecond);
  BOOST_TEST(bench.evidence[10] == text);
  const TraceStats stats = bench.socket->stats();
  BOOST_TEST(stats.lines[size_t(TraceKind::kStep)] == 2u);
  BOOST_TEST(stats.lines[size_t(TraceKind::kUnknown)] == 1u);
  BOOST_TEST(stats.broken == 1u);
  BOOST_TEST(stats.bytes == text.size());
  BOOST_TEST(stats.dropped_lines == 0u);
  BOOST_TEST(bench.gaps.empty());
}

BOOST_AUTO_TEST_CASE(a_client_whose_lines_are_broken_is_reported_once_and_not_in_a_storm) {
  TraceSocketOptions options;
  std::vector<std::string> reported;
  options.report_error = [&](const std::string& sentence) { reported.push_back(sentence); };
  Bench bench(std::move(options));
  auto one = bench.connect(1000, 1), two = bench.connect(1000, 2), three = bench.connect(1001, 3);
  one->send("broken\nbroken\n{}\n");
  two->send("broken\n");
  bench.settle();
  const std::string what = " is kept and not understood: it is no JSON object";
  BOOST_REQUIRE(reported.size() == 1u);
  BOOST_TEST(reported[0] == kPath + ": a line of process 1 of uid 1000" + what);
  bench.env.advance(11'000 * kMs);
  one->send("broken\n");
  three->send("broken\n");
  bench.settle();
  BOOST_REQUIRE(reported.size() == 2u);
  BOOST_TEST(reported[1] == kPath + ": a line of process 3 of uid 1001" + what +
                                "; so did 1 other client since the last time");
}

BOOST_AUTO_TEST_CASE(a_line_belongs_to_the_job_that_it_names_else_to_its_process_else_to_the_configured_one) {
  TraceSocketOptions options = of_job("configured");
  options.job_of = [](const io::PeerCredentials& peer, const std::function<void(std::string)>& answer) {
    answer(peer.pid == 1 ? "of-pid-1" : "");
  };
  Bench bench(std::move(options));
  auto one = bench.connect(1000, 1), two = bench.connect(1000, 2), other = bench.connect(1001, 3);
  one->send(heartbeat(1) + heartbeat(2, "named") + "broken\n");
  two->send(heartbeat(3) + heartbeat(4, "named"));
  other->send(heartbeat(5, "named"));
  bench.settle();
  const struct {
    std::string job, bytes;
    uint32_t uid, pid;
  } expected[] = {
      {"of-pid-1", heartbeat(1) + "broken\n", 1000, 1},
      {"named", heartbeat(2, "named") + heartbeat(4, "named"), 1000, 1},
      {"configured", heartbeat(3), 1000, 2},
      {"named", heartbeat(5, "named"), 1001, 3},
  };
  BOOST_REQUIRE(bench.opened.size() == std::size(expected));
  for (size_t i = 0; i < std::size(expected); ++i) {
    BOOST_TEST(bench.opened[i].job == expected[i].job);
    BOOST_TEST((bench.opened[i].uid == expected[i].uid));
    BOOST_TEST((bench.opened[i].pid == expected[i].pid));
    BOOST_TEST(bench.evidence[bench.opened[i].id] == expected[i].bytes);
  }
}

BOOST_AUTO_TEST_CASE(a_client_is_read_once_its_job_is_known_and_others_meanwhile) {
  TraceSocketOptions options = of_job("configured");
  std::function<void(std::string)> late;
  options.job_of = [&](const io::PeerCredentials& peer, std::function<void(std::string)> answer) {
    if (peer.pid == 1) return void(late = std::move(answer));
    answer("");
  };
  Bench bench(std::move(options));
  auto one = bench.connect(1000, 1), two = bench.connect(1000, 2);
  one->send(heartbeat(1));
  two->send(heartbeat(2));
  bench.settle();
  BOOST_REQUIRE(bench.opened.size() == 1u);
  BOOST_TEST(bench.opened[0].job == "configured");
  BOOST_TEST(one->waiting() > 0u);
  late("of-pid-1");
  bench.settle();  // it is read
  bench.settle();  // and delivered
  BOOST_REQUIRE(bench.opened.size() == 2u);
  BOOST_TEST(bench.opened[1].job == "of-pid-1");
  BOOST_TEST(bench.evidence[bench.opened[1].id] == heartbeat(1));
  // Lines without an answer are delivered at the end; a late answer has no effect.
  auto three = bench.connect(1000, 1);
  three->send(heartbeat(3));
  bench.socket.reset();
  late("of-pid-1");
  BOOST_TEST(bench.evidence[bench.opened[0].id] == heartbeat(2) + heartbeat(3));
}

BOOST_AUTO_TEST_CASE(a_stream_without_writers_ends_after_a_while_and_short_connections_share_one) {
  Bench bench(of_job("j"));
  for (int i = 0; i < 1000; ++i) {
    auto client = bench.connect(1000, 100 + i);
    client->send(heartbeat(i));
    client->hang_up();
    bench.env.advance(kNsPerSecond / 10);
  }
  BOOST_TEST(bench.opened.size() == 1u);
  const auto ended = [&] {
    return std::count_if(bench.pieces.begin(), bench.pieces.end(), [](const Piece& p) { return p.ends; });
  };
  BOOST_TEST(ended() == 0);
  bench.env.advance(kTraceLingers * 2);
  BOOST_TEST(ended() == 1);
  BOOST_TEST(bench.pieces.back().ends);
  bench.connect()->send(heartbeat(1));
  bench.env.advance(kTraceLingers * 3);
  BOOST_TEST(bench.opened.size() == 2u, "who comes later begins another");
  BOOST_TEST(ended() == 1, "its writer is connected");
}

BOOST_AUTO_TEST_CASE(users_that_come_and_go_take_a_bounded_number_of_streams) {
  Bench bench(of_job("j"));
  for (uint32_t uid = 0; uid < 100'000; ++uid) {
    auto client = bench.connect(uid);
    client->send("\n");
    client->hang_up();
  }
  bench.settle();
  const auto ended =
      std::count_if(bench.pieces.begin(), bench.pieces.end(), [](const Piece& p) { return p.ends; });
  BOOST_TEST(bench.opened.size() == 100'000u, "each is heard");
  BOOST_TEST(bench.opened.size() - static_cast<size_t>(ended) <= limits::kTraceSources);
  bench.env.advance(kTraceLingers * 2);
  for (const Piece& piece : bench.pieces) BOOST_REQUIRE(piece.stream != kNoStream);
  BOOST_TEST(std::count_if(bench.pieces.begin(), bench.pieces.end(), [](const Piece& p) { return p.ends; }) ==
             100'000);
}

BOOST_AUTO_TEST_CASE(what_the_store_has_goes_on_at_its_end) {
  StreamState state;
  state.info = {7, OriginKind::kSocket, "j", kPath, 1000, 5, 1, kNoTime};
  state.size = 1234;
  StreamState elsewhere = state;
  elsewhere.info.id = 8, elsewhere.info.uid = 1001, elsewhere.info.path = "/another.sock";
  TraceSocketOptions options;
  options.known = {state, elsewhere};
  Bench bench(std::move(options));
  bench.connect(1000)->send(heartbeat(1, "j"));
  bench.connect(1001)->send(heartbeat(1, "j"));
  bench.settle();
  BOOST_REQUIRE(bench.pieces.size() == 2u);
  BOOST_TEST(bench.pieces[0].stream == 7u);
  BOOST_TEST(bench.pieces[0].offset == 1234u);
  BOOST_TEST(bench.pieces[1].stream == 10u);
  BOOST_REQUIRE(bench.opened.size() == 1u);  // the known one was declared long ago
  BOOST_TEST(bench.opened[0].id == 10u);
}

BOOST_AUTO_TEST_CASE(lines_gather_for_a_few_milliseconds) {
  Bench bench;
  auto one = bench.connect(), two = bench.connect();
  for (int i = 0; i < 100; ++i) one->send(heartbeat(i)), two->send(heartbeat(i));
  BOOST_TEST(bench.batches == 0);
  bench.settle();
  BOOST_TEST(bench.batches == 1);
  BOOST_TEST(bench.pieces.size() == 1u);
  bench.settle();
  BOOST_TEST(bench.batches == 1);  // and no batch without lines
}

BOOST_AUTO_TEST_CASE(much_is_handed_on_at_once_in_pieces_of_whole_lines) {
  Bench bench;
  auto client = bench.connect();
  std::string text;
  for (int i = 0; text.size() < limits::kTraceHeldBytes; ++i) text += heartbeat(i);
  client->send(text);
  BOOST_TEST(bench.batches == 1);
  bench.settle();
  BOOST_TEST(bench.evidence[10] == text);
  for (const Piece& piece : bench.pieces) {
    BOOST_TEST(piece.bytes.size() <= limits::kPieceBytes);
    BOOST_TEST(piece.bytes.back() == '\n');
  }
}

BOOST_AUTO_TEST_CASE(a_line_that_is_too_long_is_a_gap_where_it_stood) {
  for (const size_t step : {size_t{1} << 20, size_t{1000}, size_t{65'536}}) {  // bytes per write
    Bench bench;
    auto client = bench.connect();
    const std::string fits = std::string(limits::kLineBytes, 'x').append(1, '\n');
    const std::string beyond = std::string(limits::kLineBytes + 1, 'y').append(1, '\n');
    const std::string text = heartbeat(1) + fits + beyond + beyond + heartbeat(2) + beyond;
    for (size_t at = 0; at < text.size(); at += step) client->send(text.substr(at, step));
    bench.settle();
    BOOST_TEST((bench.evidence[10] == heartbeat(1) + fits + heartbeat(2)));
    BOOST_REQUIRE(bench.gaps.size() == 2u);
    BOOST_TEST(bench.gaps[0].bytes == 2 * beyond.size());
    BOOST_TEST(bench.gaps[0].records == 2u);
    BOOST_TEST(bench.gaps[0].reason == "a line that was too long");
    BOOST_TEST(bench.gaps[1].records == 1u);
    const auto second = std::find_if(bench.pieces.begin(), bench.pieces.end(),
                                     [](const Piece& piece) { return piece.gap.has_value(); });
    BOOST_TEST(second->bytes == heartbeat(2));  // the gap precedes the following line
    const TraceStats stats = bench.socket->stats();
    BOOST_TEST(stats.dropped_lines == 3u);
    BOOST_TEST(stats.dropped_bytes == 3 * beyond.size());
  }
}

BOOST_AUTO_TEST_CASE(a_client_that_leaves_within_a_line_leaves_a_gap) {
  for (const bool failed : {false, true}) {
    Bench bench;
    auto client = bench.connect();
    client->send(heartbeat(1) + "{\"kind\"");
    if (failed) client->fail({ErrorCode::kIo, "a connection: reset"});
    if (!failed) client->hang_up();
    BOOST_TEST(!client->is_open());
    bench.settle();
    BOOST_TEST(bench.evidence[10] == heartbeat(1));
    BOOST_REQUIRE(bench.gaps.size() == 1u);
    BOOST_TEST(bench.gaps[0].bytes == 7u);
    BOOST_TEST(bench.gaps[0].records == 1u);
    BOOST_TEST(bench.gaps[0].reason == "the writer went away within a line");
    BOOST_TEST(bench.socket->stats().clients == 0u);
    BOOST_TEST(bench.socket->stats().dropped_bytes == 7u);
  }
}

BOOST_AUTO_TEST_CASE(a_client_that_leaves_within_a_line_that_is_too_long_leaves_one_gap) {
  Bench bench;
  auto client = bench.connect();
  client->send(std::string(100'000, 'x'));
  client->send(std::string(100'000, 'x'));
  client->hang_up();
  bench.settle();
  BOOST_REQUIRE(bench.gaps.size() == 1u);
  BOOST_TEST(bench.gaps[0].bytes == 200'000u);
  BOOST_TEST(bench.socket->stats().dropped_bytes == 200'000u);
}

BOOST_AUTO_TEST_CASE(what_was_sent_while_nothing_was_read_is_taken_at_the_end) {
  Bench bench;
  auto client = bench.connect();
  bench.socket->pause_all();
  client->send(heartbeat(1) + heartbeat(2));
  BOOST_TEST(client->waiting() > 0u);
  bench.socket.reset();
  BOOST_TEST(bench.evidence[10] == heartbeat(1) + heartbeat(2));
  BOOST_TEST(bench.gaps.empty());
}

BOOST_AUTO_TEST_CASE(what_is_held_is_handed_on_at_the_end) {
  Bench bench;
  auto whole = bench.connect(), within = bench.connect();
  whole->send(heartbeat(1));
  within->send("{");
  bench.socket.reset();
  BOOST_TEST(bench.evidence[10] == heartbeat(1));
  BOOST_REQUIRE(bench.gaps.size() == 1u);
  BOOST_TEST(bench.gaps[0].reason == "the daemon stopped within a line");
  BOOST_TEST(!whole->is_open());
}

BOOST_AUTO_TEST_CASE(a_pause_holds_up_all_clients_also_new_ones) {
  Bench bench;
  auto client = bench.connect();
  bench.socket->pause_all();
  auto late = bench.connect();
  client->send(heartbeat(1)), late->send(heartbeat(2));
  bench.settle();
  BOOST_TEST(bench.batches == 0);
  bench.socket->resume_all();
  bench.settle();
  bench.settle();
  BOOST_TEST(bench.evidence[10] == heartbeat(1) + heartbeat(2));
}

BOOST_AUTO_TEST_CASE(a_pause_may_be_asked_for_while_lines_are_handed_on) {
  Bench bench;
  auto client = bench.connect();
  bench.on_batch = [&] { bench.socket->pause_all(); };
  std::string text;
  for (int i = 0; text.size() < 3 * limits::kTraceHeldBytes; ++i) text += heartbeat(i);
  client->send(text);
  BOOST_TEST(bench.batches == 1);
  BOOST_TEST(client->waiting() > limits::kTraceHeldBytes);
  bench.on_batch = nullptr;
  bench.socket->resume_all();
  bench.settle();
  bench.settle();
  BOOST_TEST((bench.evidence[10] == text));
}

BOOST_AUTO_TEST_CASE(a_user_who_floods_is_held_up_to_the_rate_and_others_are_not) {
  Bench bench;
  auto flood = bench.connect(1000), flood_too = bench.connect(1000), other = bench.connect(1001);
  std::string text;
  while (text.size() < 20 * limits::kTraceBytesAtOnce) text.append(4000, 'x').append(1, '\n');
  flood->send(text);
  BOOST_TEST(flood->is_paused());
  BOOST_TEST(flood_too->is_paused());
  BOOST_TEST(bench.connect(1000)->is_paused());
  BOOST_TEST(!other->is_paused());
  BOOST_TEST(bench.socket->stats().bytes <= limits::kTraceBytesAtOnce + (64 << 10));
  other->send(heartbeat(1));
  const TimeNs began = bench.env.monotonic_ns;
  bench.env.advance(2 * kNsPerSecond);
  const uint64_t most = limits::kTraceBytesAtOnce + 2 * limits::kTraceBytesPerSecond + (1 << 20);
  BOOST_TEST(bench.socket->stats().bytes <= most);
  BOOST_TEST(bench.socket->stats().bytes >= most - (2 << 20));
  while (flood->waiting() > 0 && bench.env.monotonic_ns < began + 60 * kNsPerSecond)
    bench.env.advance(kNsPerSecond);
  bench.settle();
  BOOST_TEST(bench.sizes[10] == text.size());  // delayed, and not lost
  BOOST_TEST(bench.evidence[11] == heartbeat(1));
  BOOST_TEST(!flood->is_paused());
  BOOST_TEST(bench.socket->stats().held_up > 1u);
}

BOOST_AUTO_TEST_CASE(a_user_who_is_held_up_does_not_go_on_in_a_pause) {
  Bench bench;
  auto flood = bench.connect();
  flood->send(std::string(2 * limits::kTraceBytesAtOnce, '\n'));
  bench.socket->pause_all();
  bench.env.advance(10 * kNsPerSecond);
  BOOST_TEST(flood->is_paused());
  bench.socket->resume_all();
  BOOST_TEST(!flood->is_paused());
}

BOOST_AUTO_TEST_CASE(connections_are_limited_for_each_user_and_over_all) {
  Bench bench;
  std::vector<std::shared_ptr<FakePeer>> clients;
  for (uint32_t uid = 0; uid < 10; ++uid)
    for (size_t i = 0; i <= limits::kTraceClientsPerUser; ++i) clients.push_back(bench.connect(uid));
  const auto open = [&](uint32_t uid) {
    const size_t each = limits::kTraceClientsPerUser + 1;
    return std::count_if(clients.begin() + uid * each, clients.begin() + (uid + 1) * each,
                         [](const auto& client) { return client->is_open(); });
  };
  BOOST_TEST(size_t(open(0)) == limits::kTraceClientsPerUser);
  BOOST_TEST(open(9) == 0);
  TraceStats stats = bench.socket->stats();
  BOOST_TEST(stats.clients == limits::kTraceClients);
  BOOST_TEST(stats.accepted == limits::kTraceClients);
  BOOST_TEST(stats.refused == clients.size() - limits::kTraceClients);
  clients[0]->hang_up();
  BOOST_TEST(bench.connect(9)->is_open());                                   // there is room again
  BOOST_TEST(!bench.env.connect("unix:" + kPath, std::nullopt)->is_open());  // no client without credentials
}

BOOST_AUTO_TEST_CASE(unfinished_lines_of_a_user_are_limited_together) {
  Bench bench;
  std::vector<std::shared_ptr<FakePeer>> clients;
  const std::string half(limits::kLineBytes - 1, 'x');
  for (size_t i = 0; i < 40 && bench.socket->stats().dropped_bytes == 0; ++i) {
    for (size_t n = 0; n < 8; ++n) clients.push_back(bench.connect()), clients.back()->send(half);
    bench.env.advance(kNsPerSecond);
  }
  BOOST_TEST(bench.socket->stats().dropped_bytes > 0u);
  BOOST_TEST(clients.size() >= limits::kTraceUnfinishedBytes / limits::kLineBytes);
  BOOST_TEST(clients.size() <= limits::kTraceUnfinishedBytes / limits::kLineBytes + 8);
  auto other = bench.connect(1001);
  clients.front()->send("\n");
  other->send(half), other->send("\n");
  bench.settle();
  BOOST_TEST(bench.sizes[11] == half.size() + 1);
  BOOST_TEST(bench.sizes[10] == half.size() + 1);
  for (auto& client : clients) client->send("\n" + heartbeat(1));
  bench.settle();
  uint64_t missing = 0;
  for (const Gap& gap : bench.gaps) missing += gap.bytes;
  // Every byte that was not kept is in a gap: one line of each client, and one newline more of the first.
  BOOST_TEST(bench.sizes[10] + missing == clients.size() * (half.size() + 1 + heartbeat(1).size()) + 1);
}

BOOST_AUTO_TEST_CASE(jobs_that_a_user_names_are_limited_and_more_come_with_time) {
  Bench bench;
  auto client = bench.connect();
  const auto name = [&](const std::string& job) {
    client->send(heartbeat(1, job));
    bench.settle();
  };
  for (size_t i = 0; i < limits::kTraceJobsPerUser; ++i) name("job-" + std::to_string(i));
  BOOST_TEST(bench.opened.size() == limits::kTraceJobsPerUser);
  name("one-more");
  BOOST_TEST(bench.opened.size() == limits::kTraceJobsPerUser + 1);  // the user's own stream has the gap
  BOOST_TEST(bench.opened.back().job == "");
  BOOST_REQUIRE(bench.gaps.size() == 1u);
  BOOST_TEST(bench.gaps[0].reason == "a line of one job more than a user may name");
  BOOST_TEST(bench.gaps[0].bytes == heartbeat(1, "one-more").size());
  name("job-3");
  BOOST_TEST(bench.gaps.size() == 1u);  // known jobs continue
  bench.env.advance(limits::kTraceJobEverySeconds * kNsPerSecond);
  name("one-more");
  BOOST_TEST(bench.opened.back().job == "one-more");
  bench.connect(1001)->send(heartbeat(1, "another-user"));
  bench.settle();
  BOOST_TEST(bench.opened.back().job == "another-user");
}

BOOST_AUTO_TEST_CASE(a_path_that_is_served_is_an_error) {
  Bench bench;
  TraceSocketOptions options;
  options.path = kPath;
  const auto second = TraceSocket::open(bench.env, std::move(options));
  BOOST_REQUIRE(!second);
  BOOST_TEST(second.error().text == "unix:" + kPath + ": another process serves it");
}

BOOST_AUTO_TEST_CASE(real_clients_of_a_real_socket_are_heard) {
  io::testing::Folder folder;
  io::testing::RealLoop loop;
  constexpr int kClients = 20, kLines = 500;
  uint64_t received = 0;
  std::vector<int> next(kClients, 0);
  int wrong = 0;
  TraceSocketOptions options = of_job("j");
  options.path = folder / "trace.sock";
  options.allocate = [] { return StreamId{1}; };
  std::unique_ptr<TraceSocket> socket;
  options.take = [&](PieceBatch&& batch) {
    for (const Piece& piece : batch.pieces)
      for (size_t at = 0; at < piece.bytes.size();) {
        const size_t end = piece.bytes.find('\n', at);
        const auto line = parse_trace_line(std::string_view(piece.bytes).substr(at, end - at));
        wrong += !line || line->step != next[*line->rank]++;
        at = end + 1, ++received;
      }
    if (received == kClients * kLines) loop.env->stop();
  };
  socket = std::move(*TraceSocket::open(*loop.env, std::move(options)));
  std::vector<std::thread> threads;
  for (int rank = 0; rank < kClients; ++rank)
    threads.emplace_back([&, rank] {
      io::testing::Client client(io::testing::Client::to_unix(folder / "trace.sock"));
      for (int step = 0; step < kLines; ++step)
        client.send(R"({"kind":"step","rank":)" + std::to_string(rank) + R"(,"step":)" +
                    std::to_string(step) + "}\n");
    });
  loop.run();
  for (auto& thread : threads) thread.join();
  BOOST_TEST(wrong == 0);
  BOOST_TEST(received == uint64_t{kClients * kLines});
  BOOST_TEST(socket->stats().accepted == uint64_t{kClients});
}

BOOST_AUTO_TEST_SUITE_END()
