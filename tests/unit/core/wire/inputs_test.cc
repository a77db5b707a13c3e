#include "core/wire/inputs.h"

#include <fmt/format.h>

#include <boost/test/unit_test.hpp>

#include "base/limits.h"
#include "core/wire/flight.h"
#include "model/report_json.h"

using namespace culprit;
using namespace culprit::core;
using namespace culprit::wire;

namespace {

constexpr uint64_t kSession = 77;

const std::shared_ptr<rules::Ruleset>& shipped() {
  static const auto set = rules::Ruleset::shipped();
  return set;
}

// An engine with the output of a reader, and all other calls of the reader.
struct Collector final : InputSink {
  Engine engine;
  InputReader reader;
  SourceId next = 0;
  std::vector<std::string> reported;
  std::optional<ras::RasInput> ras;

  explicit Collector(const std::shared_ptr<rules::Ruleset>& rules = shipped())
      : engine({{}, {}, {}, rules}), reader(rule_finder(rules.get())) {}
  SourceId open(SourceInfo info, TimeNs now) override {
    reported.push_back(fmt::format("open {} {} {}", info.file, info.host.value_or("-"), now));
    if (info.user) reported.back() += " of " + to_string(*info.user);
    Input input = SourceOpened{std::move(info)};
    engine.step({&input, 1}, now);
    return next++;
  }
  void on_input(Input input, TimeNs now) override {
    if (std::holds_alternative<ProblemSeen>(input))
      reported.push_back(std::get<ProblemSeen>(input).problem.what);
    if (std::holds_alternative<detect::ProgressSeen>(input))
      reported.push_back(fmt::format("step {} {}", std::get<detect::ProgressSeen>(input).step, now));
    if (std::holds_alternative<detect::PhaseSeen>(input))
      reported.push_back("phase " + std::get<detect::PhaseSeen>(input).name);
    if (const auto* exited = std::get_if<detect::RankExited>(&input))
      reported.push_back(fmt::format("exited {} {} {}", exited->rank, exited->host, exited->pid.value_or(0)));
    if (const auto* reporting = std::get_if<ReceivedTraceCount>(&input))
      reported.push_back(
          fmt::format("heard {} {}", static_cast<int>(reporting->of), reporting->user.value_or(0).value));
    if (const auto* output = std::get_if<FindingInput>(&input))
      reported.push_back(fmt::format("{} of {} at {}:{} by {}", finding_line(output->finding),
                                     output->finding.host, output->file, output->offset,
                                     output->user.value_or(0).value));
    if (const auto* output = std::get_if<ras::RasInput>(&input)) ras = *output;
    engine.step({&input, 1}, now);
  }
  void ends(bool failed, TimeNs) override { reported.push_back(failed ? "failed" : "ended"); }
  void alive(bool alive, TimeNs) override { reported.push_back(alive ? "alive" : "gone"); }
};

// A host's agent with one source, and an engine that gets the same input without condensing.
struct Agent {
  Engine engine{{{}, {}, {}, shipped()}};
  logs::LineParser parser{logs::ParseOptions{}, engine.make_scanner()};
  logs::LogBatch batch;
  InputWriter writer{kSession};
  SourceInfo info;

  Agent() {
    info.file = "node-1.log";
    info.host = "node-1";
    writer.set_rules(shipped().get());
    give(SourceOpened{info});
  }
  void give(Input input) {
    writer.add(input, kNsPerSecond);
    engine.step({&input, 1}, kNsPerSecond);
  }
  void lines(std::string_view text, bool last = false) {
    parser.parse({0, 0, 0, text, text.size(), last}, info, batch);
    give(LogInput{&batch});
  }
};

std::string read(Collector& to, std::string_view block) {
  const Status status = to.reader.read(block, to);
  return status ? "" : status.error().text;
}

std::string steps(int from, int to) {
  std::string out;
  for (int s = from; s < to; ++s)
    out += fmt::format("2026-11-21 02:{:02}:{:02},{:03} INFO step={} loss=2.{}\n", s / 60, s % 60,
                       s * 7 % 1000, s, s % 10);
  return out;
}

constexpr std::string_view kTraceback =
    "[rank3]: Traceback (most recent call last):\n"
    "[rank3]:   File \"train.py\", line 12, in <module>\n"
    "[rank3]:     loss.backward()\n"
    "[rank3]: torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB\n";
constexpr std::string_view kXid =
    "2026-11-21 02:01:40,500 kernel: NVRM: Xid (PCI:0000:9b:00): 79, pid=1, GPU has fallen off the bus.\n";
constexpr std::string_view kList =
    "Root Cause (first observed failure):\n"
    "[0]:\n"
    "  time      : 2026-11-21_02:12:09\n"
    "  host      : node-1\n"
    "  rank      : 3 (local_rank: 3)\n"
    "  exitcode  : 1 (pid: 4711)\n";

std::string counting(int n) {
  std::string out;
  for (int i = 0; i < n; ++i) out += fmt::format("2026-11-21 02:00:{:02} INFO window {} closed\n", i, 3 * i);
  return out;
}

}  // namespace

BOOST_AUTO_TEST_CASE(an_engine_fed_with_blocks_reports_what_one_fed_with_lines_does) {
  const std::vector<std::pair<const char*, std::vector<std::string>>> cases = {
      {"steps", {steps(0, 50), steps(50, 100)}},
      {"no times", {"one\ntwo 1\n\n  three\n", "two 2\n"}},
      {"a traceback that a block's end cuts",
       {steps(0, 20), std::string(kTraceback.substr(0, 90)), std::string(kTraceback.substr(90))}},
      {"a rule's line", {steps(0, 100) + std::string(kXid)}},
      {"a launcher's list", {steps(0, 20) + std::string(kList), "2026-11-21 02:20:00,000 INFO over\n"}},
      {"chained tracebacks",
       {std::string(kTraceback) +
        "[rank3]: During handling of the above exception, another exception occurred:\n" +
        std::string(kTraceback)}},
      {"ignored exceptions",
       {"Exception ignored in: <function f at 0x1>\n" + std::string(kTraceback.substr(0, 42)) +
        "\nValueError: no\n"}},
      {"what counts without a word", {counting(30), counting(30)}},
      {"bars", {" 10%|#   | 10/100 [00:10<01:30]\n 20%|##  | 20/100 [00:20<01:20]\n"}},
      {"levels", {"2026-11-21 02:00:00 INFO link 1\n", "2026-11-21 02:00:01 ERROR link 2\n"}},
      {"a long line", {std::string(70'000, 'x') + "\n" + std::string(5000, 'y') + " failed\n"}},
  };
  for (const auto& [name, pieces] : cases) {
    Agent agent;
    Collector collector;
    for (size_t i = 0; i < pieces.size(); ++i) {
      agent.lines(pieces[i], i + 1 == pieces.size());
      BOOST_TEST(read(collector, agent.writer.flush(kNoTime)) == "");
    }
    BOOST_TEST_CONTEXT(name) {
      BOOST_TEST(to_json(collector.engine.report()) == to_json(agent.engine.report()));
      BOOST_TEST(collector.engine.log().events() == agent.engine.log().events());
      BOOST_TEST(collector.engine.log().forms().size() == agent.engine.log().forms().size());
    }
  }
}

BOOST_AUTO_TEST_CASE(remembered_shapes_are_those_of_their_forms_and_bounded) {
  FormShapes shapes;
  for (int round = 0; round < 2; ++round)
    for (const std::string form : {"ValueError: <*>", "iteration <*>/<*>", "CUDA error: out of memory"}) {
      const logs::FormShape expected = logs::shape_of(form), given = shapes.of(form);
      BOOST_TEST((given.kind == expected.kind && given.progress == expected.progress));
      BOOST_TEST((given.words == expected.words && given.stage == expected.stage));
    }
  BOOST_TEST(shapes.size() == 3u);
  for (int i = 0; i < 100'000; ++i) shapes.of(fmt::format("form {}", i));
  BOOST_TEST(shapes.size() < FormShapes::kBytes / 96);
}

BOOST_AUTO_TEST_CASE(all_other_inputs_arrive_with_their_times_in_order) {
  Agent agent;
  agent.give(ProblemSeen{{"a.log", 7, "10 bytes of it are missing here"}});
  agent.give(detect::ProgressSeen{12, 3});
  agent.give(detect::PhaseSeen{"checkpoint", true, 3});
  agent.give(detect::RankExited{3, "node-1", 4711});
  agent.writer.alive(true, kNsPerSecond);
  agent.writer.ends(true, kNsPerSecond);
  BOOST_TEST(agent.writer.urgent());
  Collector collector;
  BOOST_TEST(read(collector, agent.writer.flush(kNsPerSecond)) == "");
  const std::vector<std::string> expected = {"open node-1.log node-1 1000000000",
                                             "10 bytes of it are missing here",
                                             "step 12 1000000000",
                                             "phase checkpoint",
                                             "exited 3 node-1 4711",
                                             "alive",
                                             "failed"};
  BOOST_TEST(collector.reported == expected, boost::test_tools::per_element());
  BOOST_TEST(agent.writer.empty(kNsPerSecond));
}

BOOST_AUTO_TEST_CASE(findings_of_plugins_arrive_whole) {
  PluginFinding f;
  f.plugin = "net_health";
  f.id = "net.link_flap";
  f.title = "A link goes down again and again";
  f.text = "mlx5_0 was down for 14 s in 3 flaps";
  f.category = "hardware";
  f.component = "network";
  f.symptom = "hang";
  f.action = "check";
  f.remedy = "Change the cable.";
  f.host = "node-1";
  f.peer = "node-2";
  f.part = "mlx5_0/1";
  f.rank = 9;
  f.device = 1;
  f.time_ns = kNsPerSecond;
  f.confidence = 0.8;
  f.severity = PluginSeverity::kError;
  f.state = PluginState::kRaised;
  f.values = {{"flaps", 3}, {"down_s", 14.5}};
  Agent agent;
  agent.give(FindingInput{f, "plugin/net_health", 70, 12'003});
  BOOST_TEST(agent.writer.urgent());
  Collector collector;
  BOOST_TEST(read(collector, agent.writer.flush(kNsPerSecond)) == "");
  BOOST_TEST(collector.reported.at(1) == finding_line(f) + " of node-1 at plugin/net_health:70 by 12003");
}

BOOST_AUTO_TEST_CASE(states_of_ras_arrive_whole) {
  RasState s;
  s.host = "node-1";
  s.address = "10.0.0.5";
  s.version = "2.28.9";
  s.at_ns = kNsPerSecond;
  s.json = true;
  s.answers = 7;
  s.still = 3;
  s.still_since_ns = 500;
  s.comms_seen = 9;
  s.ranks = 8192;
  s.processes = {{"10.0.0.5", 11}, {"10.0.0.6", 12}};
  s.exited = {{1, 5, 9, true}};
  s.exited_processes = s.dead_processes = 1;
  s.dropped = 2;
  s.user = 12'003;
  RasCommState& comm = s.comms.emplace_back();
  comm.hash = 0xfedcba9876543210u;
  comm.secondary = "0x1:0x2";
  comm.size = 8;
  comm.reporting = 7;
  comm.missing_ranks = 1;
  comm.errors = 2;
  comm.members = {0, 2, 4, 6, 9, 10, 11, 12};
  comm.answers = 3;
  comm.missing.push_back({{3, 1, kRasUnknown, 9}, true, false});
  comm.spreads.push_back({"AllReduce", {{6650, 6, {}}, {6649, 1, {{2, 0, 1, kRasUnknown}}}}});
  comm.phases.push_back({static_cast<uint64_t>(RasPhase::kInit), 7, {}});
  Agent agent;
  agent.give(ras::RasInput{s, "ras", 70});
  BOOST_TEST(agent.writer.urgent());
  Collector collector;
  BOOST_TEST(read(collector, agent.writer.flush(kNsPerSecond)) == "");
  BOOST_REQUIRE(collector.ras);
  BOOST_TEST((collector.ras->state == s));
  BOOST_TEST(collector.ras->file == "ras");
  BOOST_TEST(collector.ras->offset.value() == 70u);
}

BOOST_AUTO_TEST_CASE(the_users_behind_sources_and_data_arrive) {
  Agent agent;
  SourceInfo of_user = agent.info;
  of_user.user = 12'002;
  SourceInfo of_pod = agent.info;
  of_pod.user = Principal::pod("3f2a51e8c9d0b7");
  agent.give(SourceOpened{of_user});
  agent.give(SourceOpened{of_pod});
  agent.give(ReceivedTraceCount{ReceivedTraceCount::Of::kLoop, 12'003});
  agent.give(ReceivedTraceCount{ReceivedTraceCount::Of::kDumps, std::nullopt});
  Collector collector;
  BOOST_TEST(read(collector, agent.writer.flush(kNsPerSecond)) == "");
  const std::vector<std::string> expected = {
      "open node-1.log node-1 1000000000", "open node-1.log node-1 1000000000 of uid 12002",
      "open node-1.log node-1 1000000000 of pod:3f2a51e8c9d0", "heard 1 12003", "heard 2 0"};
  BOOST_TEST(collector.reported == expected, boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(a_block_out_of_order_or_of_another_session_is_refused_and_changes_nothing) {
  Agent agent;
  const std::string first = agent.writer.flush(kNoTime);
  agent.lines(steps(0, 3));
  const std::string second = agent.writer.flush(kNoTime);
  Collector collector;
  BOOST_TEST(read(collector, second).find("number 1 of session 4d came where 0") != std::string::npos);
  BOOST_TEST(read(collector, first) == "");
  BOOST_TEST(read(collector, first).find("number 0") != std::string::npos);
  BOOST_TEST(read(collector, InputWriter(kSession + 1).flush(kNoTime)).find("session 4e") !=
             std::string::npos);
  BOOST_TEST(collector.engine.log().lines() == 0u);
  BOOST_TEST(read(collector, second) == "");
  BOOST_TEST(collector.engine.log().lines() == 3u);
}

BOOST_AUTO_TEST_CASE(a_block_that_is_cut_or_damaged_is_refused_or_read_and_nothing_else) {
  Agent agent;
  agent.lines(steps(0, 20) + std::string(kXid) + std::string(kTraceback), true);
  const std::string block = agent.writer.flush(kNoTime);
  for (size_t size = 0; size < block.size(); ++size) {
    Collector collector(nullptr);
    BOOST_TEST(read(collector, std::string_view(block).substr(0, size)) != "");
  }
  for (size_t at = 0; at < block.size(); ++at) {
    std::string damaged = block;
    damaged[at] = static_cast<char>(damaged[at] ^ (1 << at % 8));
    Collector collector(nullptr);
    read(collector, damaged);
    BOOST_TEST(collector.engine.log().lines() <= limits::kWireLines);
  }
}

BOOST_AUTO_TEST_CASE(hits_of_rules_that_the_reader_lacks_are_left_out_and_reported) {
  Agent agent;
  agent.lines(steps(0, 5) + std::string(kXid), true);
  Collector collector(nullptr);
  BOOST_TEST(read(collector, agent.writer.flush(kNoTime)) == "");
  BOOST_TEST(collector.engine.log().rule_lines().empty());
  BOOST_TEST_REQUIRE(collector.reader.troubles().size() == 1u);
  BOOST_TEST(collector.reader.troubles()[0].find("nvidia.xid.79") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(notes_and_versions_of_the_future_are_passed_over_or_refused) {
  PackedWriter block;
  block.byte(1);
  block.put_word(kSession);
  block.number(0);
  block.number(2);
  block.byte(200), block.number(0), block.text("what a later version says");
  block.byte(6), block.number(0), block.text("\1and more");
  block.byte(0);
  block.number(0);
  Collector collector;
  BOOST_TEST(read(collector, block.bytes()) == "");
  BOOST_TEST(collector.reported == std::vector<std::string>{"alive"}, boost::test_tools::per_element());
  BOOST_TEST(collector.reader.troubles().size() == 1u);
  std::string other = block.bytes();
  other[0] = 2;
  BOOST_TEST(read(collector, other) == "condensed block: version 2 is not known here");
}

BOOST_AUTO_TEST_CASE(what_is_grave_is_urgent_and_what_is_usual_is_not) {
  Agent agent;
  agent.lines(steps(0, 5));
  BOOST_TEST(!agent.writer.urgent());
  agent.lines(kXid);
  BOOST_TEST(agent.writer.urgent());
  agent.writer.flush(kNoTime);
  BOOST_TEST(!agent.writer.urgent());
  agent.lines("2026-11-21 02:03:00,000 INFO the disk failed badly\n");
  BOOST_TEST(agent.writer.urgent());
}

BOOST_AUTO_TEST_CASE(the_last_lines_of_progress_are_reported_once_it_stopped) {
  Agent agent;
  const TimeNs s = kNsPerSecond;
  Collector collector;
  const auto flush = [&](TimeNs now) { BOOST_TEST(read(collector, agent.writer.flush(now)) == ""); };
  agent.lines(steps(0, 5));
  flush(10 * s);
  const auto last = [&] {
    const auto& list = collector.engine.log().last_progress();
    return list.empty() ? std::string() : list.back().text;
  };
  BOOST_TEST(last() == "step=4 loss=2.4");
  agent.lines(steps(5, 9));
  flush(20 * s);
  BOOST_TEST(last() == "step=4 loss=2.4");
  BOOST_TEST(agent.writer.empty(30 * s));
  BOOST_TEST(!agent.writer.empty(50 * s));
  flush(50 * s);
  BOOST_TEST(last() == "step=8 loss=2.8");
  BOOST_TEST(collector.engine.log().last_progress().back().place.line == 9u);
}

namespace {

FlightDump some_dump() {
  FlightDump dump;
  dump.rank = 131;
  dump.host = "node-16";
  dump.host_guessed = true;
  dump.file = "/tmp/nccl_trace_rank_131";
  dump.version = "2.9";
  dump.written_ns = 9 * kNsPerSecond;
  dump.words = {"", "all_reduce", "[[4]]", "train.py:step:3"};
  dump.stacks = {{}, {3}};
  std::vector<uint32_t> even;
  for (uint32_t r = 0; r < 4096; ++r) even.push_back(2 * r + 1);
  dump.groups = {
      {"0", "default_pg", even, 8, std::nullopt}, {"7", "", {}, {}, -1}, {"9", "x", {5, 6, 9}, {}, {}}};
  for (int64_t i = 0; i < 4; ++i) {
    FlightOp op;
    op.group = static_cast<uint32_t>(i % 3);
    op.name = 1;
    op.in_sizes = op.dtypes = i % 2 ? 2 : 0;
    op.seq = 7 - 3 * i;
    op.created_ns = i == 1 ? kNoTime : (5 - i) * kNsPerSecond;
    op.state = static_cast<FlightState>(i % 3);
    op.p2p = i == 2;
    op.done = i < 2;
    op.stack = i == 3 ? 1 : 0;
    dump.ops.push_back(op);
  }
  return dump;
}

struct DumpSink final : InputSink {
  std::vector<FlightDump> dumps;
  SourceId open(SourceInfo, TimeNs) override { return 0; }
  void on_input(Input input, TimeNs) override {
    if (auto* seen = std::get_if<FlightInput>(&input)) dumps.push_back(std::move(seen->dump));
  }
  void ends(bool, TimeNs) override {}
  void alive(bool, TimeNs) override {}
};

}  // namespace

BOOST_AUTO_TEST_CASE(dumps_arrive_whole_and_hurry) {
  const FlightDump dump = some_dump();
  DumpSink sink;
  InputWriter writer(kSession);
  writer.add(FlightInput{dump}, kNsPerSecond);
  BOOST_TEST(writer.urgent());
  const std::string block = writer.flush(kNsPerSecond);
  BOOST_TEST(!writer.urgent());
  BOOST_TEST(block.size() < 400u);
  InputReader reader(nullptr);
  BOOST_REQUIRE(reader.read(block, sink));
  BOOST_REQUIRE(sink.dumps.size() == 1u);
  const FlightDump& there = sink.dumps[0];
  BOOST_TEST((there.rank == dump.rank && there.host == dump.host && there.host_guessed));
  BOOST_TEST(
      (there.file == dump.file && there.version == dump.version && there.written_ns == dump.written_ns));
  BOOST_TEST((there.words == dump.words && there.stacks == dump.stacks));
  BOOST_REQUIRE(there.groups.size() == dump.groups.size());
  for (size_t g = 0; g < dump.groups.size(); ++g) {
    const FlightGroup &a = dump.groups[g], &b = there.groups[g];
    BOOST_TEST((a.name == b.name && a.description == b.description && a.ranks == b.ranks));
    BOOST_TEST((a.enqueued == b.enqueued && a.completed == b.completed));
  }
  BOOST_REQUIRE(there.ops.size() == dump.ops.size());
  for (size_t i = 0; i < dump.ops.size(); ++i) {
    const FlightOp &a = dump.ops[i], &b = there.ops[i];
    BOOST_TEST((a.group == b.group && a.name == b.name && a.in_sizes == b.in_sizes && a.dtypes == b.dtypes));
    BOOST_TEST((a.seq == b.seq && a.created_ns == b.created_ns && a.state == b.state && a.stack == b.stack));
    BOOST_TEST((a.p2p == b.p2p && a.done == b.done));
  }
}

BOOST_AUTO_TEST_CASE(a_damaged_dump_is_refused_or_consistent) {
  InputWriter writer(kSession);
  writer.add(FlightInput{some_dump()}, kNsPerSecond);
  const std::string block = writer.flush(kNsPerSecond);
  // Any damage is refused, or gives records with valid indices.
  for (size_t at = 10; at < block.size(); ++at)
    for (const int value : {0x00, 0x7f, 0xff}) {
      std::string bad = block;
      bad[at] = static_cast<char>(value);
      DumpSink taken;
      InputReader other(nullptr);
      if (!other.read(bad, taken)) continue;
      for (const FlightDump& d : taken.dumps)
        for (const FlightOp& op : d.ops)
          BOOST_TEST((op.group < d.groups.size() && op.name < d.words.size() && op.stack < d.stacks.size()));
    }
}

BOOST_AUTO_TEST_CASE(a_usual_line_takes_a_few_bytes) {
  Agent agent;
  agent.lines(steps(0, 200));
  agent.writer.flush(kNoTime);
  agent.lines(steps(200, 1200));
  const size_t bytes = agent.writer.flush(kNoTime).size();
  BOOST_TEST(bytes < 7000u);  // of 46,000: per line a form, a writer, a time of two bytes, a number
  BOOST_TEST(agent.writer.counts().lines == 1200u);
}

namespace {

// Records of a host of four ranks in a step; one rank works half as long again, and the others wait for it.
std::vector<CommRecord> comm_step(uint32_t host, uint32_t step) {
  std::vector<CommRecord> out;
  for (uint32_t rank = 4 * host; rank < 4 * host + 4; ++rank)
    for (uint32_t k = 0; k < 16; ++k) {
      CommRecord r;
      const uint64_t end = 1'790'000'000'000'000'000 + (16 * step + k + 1) * 20 * kNsPerMs;
      r.end_ns = end;
      const uint64_t jitter = (rank * 7 + step * 5 + k * 3) % 11 * 10'000;
      r.start_ns = end - (rank == 5 ? 1 : 6) * kNsPerMs - jitter;
      r.comm = 9;
      r.seq = 16 * step + k;
      r.bytes = 1 << 20;
      r.rank = rank;
      r.step = step;
      r.comm_size = 8;
      r.op = CommOp::kAllReduce;
      r.group = CommGroup::kDp;
      r.device = rank % 4;
      out.push_back(r);
    }
  return out;
}

}  // namespace

BOOST_AUTO_TEST_CASE(records_of_two_hosts_arrive_as_vectors_and_name_the_slow_rank) {
  EngineOptions options;
  options.live = true;
  Engine engine(std::move(options));
  struct Sink final : InputSink {
    explicit Sink(Engine& e) : engine(e) {}
    SourceId open(SourceInfo, TimeNs) override { return 0; }
    void on_input(Input input, TimeNs now) override { engine.step({&input, 1}, now); }
    void ends(bool, TimeNs) override {}
    void alive(bool, TimeNs) override {}
    Engine& engine;
  } sink(engine);
  InputWriter writers[] = {InputWriter(1), InputWriter(2)};
  InputReader readers[] = {InputReader(nullptr), InputReader(nullptr)};
  size_t bytes = 0;
  for (uint32_t block = 0; block < 4; ++block)
    for (uint32_t host = 0; host < 2; ++host) {
      for (uint32_t step = 10 * block; step < 10 * block + 10; ++step) {
        const auto records = comm_step(host, step);
        writers[host].add(CommInput{fmt::format("node-{}", host), records}, kNsPerSecond);
      }
      BOOST_TEST(!writers[host].urgent());
      BOOST_TEST(!writers[host].empty(kNsPerSecond));
      const std::string text = writers[host].flush(kNsPerSecond);
      bytes += text.size();
      BOOST_REQUIRE(readers[host].read(text, sink));
    }
  const Report report = engine.report();
  BOOST_REQUIRE(report.irregularities.size() == 1u);
  const Irregularity& slow = report.irregularities[0];
  BOOST_TEST((slow.kind == SlowPart::kGpu));
  BOOST_REQUIRE(slow.suspects.size() == 1u);
  BOOST_TEST(slow.suspects[0].rank.value_or(0) == 5u);
  BOOST_TEST(slow.suspects[0].host.value_or("") == "node-1");
  BOOST_TEST(engine.iteration().value_or(0) >= 36);
  BOOST_TEST(bytes < 8u * 40 * 64);
}

// A host reports the positions of its ranks at once when no record arrives, and withdraws them when the ranks
// continue.
BOOST_AUTO_TEST_CASE(ranks_that_stand_still_are_reported_at_once) {
  InputWriter writer(1);
  auto records = comm_step(0, 0);
  for (CommRecord& r : records)
    if (r.seq == 15) r.end_ns = 0;
  writer.add(CommInput{"node-0", records}, kNsPerSecond);
  writer.tick(2 * kNsPerSecond);
  BOOST_TEST(!writer.urgent());  // records may be in flight
  writer.tick(10 * kNsPerSecond);
  BOOST_TEST(writer.urgent());
  (void)writer.flush(10 * kNsPerSecond);
  BOOST_TEST(!writer.urgent());
  writer.tick(20 * kNsPerSecond);
  BOOST_TEST(writer.empty(20 * kNsPerSecond));  // once
  writer.add(CommInput{"node-0", comm_step(0, 1)}, 21 * kNsPerSecond);
  BOOST_TEST(!writer.empty(21 * kNsPerSecond));
}

// A few bytes that claim a million ranks stay a few bytes in memory, and a block has a limited number of
// ranks.
BOOST_AUTO_TEST_CASE(ranks_of_a_dumps_groups_are_runs_and_those_of_a_block_are_counted_together) {
  const auto with = [](std::initializer_list<RankList::Run> runs) {
    FlightDump dump;
    dump.words = {""};
    dump.stacks = {{}};
    dump.groups.push_back({"0", "default_pg", {}, 1, 1});
    for (const RankList::Run& run : runs) dump.groups[0].ranks.add(run);
    return *pack_flight(dump);
  };
  constexpr uint32_t kMost = limits::kCommRanks;
  size_t room = kMost + 10;
  const std::string whole = with({{0, 1, kMost}});
  BOOST_TEST(whole.size() < 100u);
  PackedReader first(whole), second(whole);
  const FlightDump read = unpack_flight(first, room);
  BOOST_REQUIRE(first.ok());
  BOOST_TEST(read.groups[0].ranks.runs().size() == 1u);
  BOOST_TEST(read.groups[0].ranks.size() == kMost);
  BOOST_TEST(room == 10u);
  unpack_flight(second, room);
  BOOST_TEST(!second.ok());
  for (const auto& [bytes, sound] : {std::pair(with({{0, 2, 3}, {5, 1, 2}}), true),
                                     {with({{0, 1, 4}, {3, 1, 2}}), false},
                                     {with({{kMost - 1, 1, 2}}), false}}) {
    PackedReader in(bytes);
    room = 10;
    unpack_flight(in, room);
    BOOST_TEST(in.ok() == sound);
  }
}
