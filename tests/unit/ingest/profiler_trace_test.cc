#include "ingest/profiler_trace.h"

#include <fmt/format.h>

#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>

#include "fixtures.h"

using namespace culprit;
using namespace culprit::ingest;

namespace {

const std::atomic<bool> trace_goes_on{false};

std::string kernel(double ts, double dur, const std::string& more = "", const std::string& name = "allreduce",
                   const std::string& group = "1") {
  return fmt::format(
      R"({{"ph":"X","cat":"kernel","name":"ncclDevKernel_AllReduce","pid":3,"tid":7,"ts":{},)"
      R"("dur":{},"args":{{"device":3,"Collective name":"{}","In msg nelems":100,"Out msg nelems":200,)"
      R"("Group size":2,"dtype":"BFloat16","Process Group Name":"{}",)"
      R"("Process Group Description":"TENSOR_MODEL_PARALLEL_GROUP","Process Group Ranks":"[4, 5]"{}}}}})",
      ts, dur, name, group, more);
}

std::string step(uint32_t number, double ts, double dur, const std::string& category = "user_annotation") {
  return fmt::format(R"({{"ph":"X","cat":"{}","name":"ProfilerStep#{}","pid":1,"tid":1,"ts":{},"dur":{}}})",
                     category, number, ts, dur);
}

std::string call(uint64_t id, double ts) {
  return fmt::format(
      R"({{"ph":"X","cat":"cpu_op","name":"record_param_comms","pid":1,"tid":1,"ts":{},"dur":5,"args":{{)"
      R"("External id":{},"Collective name":"allreduce"}}}})",
      ts, id);
}

std::string trace_of(const std::vector<std::string>& events,
                     const std::string& rank = R"("rank":5,"world_size":8,)") {
  std::string out = "{\n\"schemaVersion\":1,\"deviceProperties\":[{\"id\":0}],\"distributedInfo\":{" + rank +
                    R"("backend":"nccl","pg_config":[{"pg_name":"1","ranks":[4,5]},{"pg_name":"x"}]},)" +
                    "\n\"baseTimeNanoseconds\":1763690000000000000,\"traceEvents\":[";
  for (size_t i = 0; i < events.size(); ++i) out += (i > 0 ? ",\n" : "\n") + events[i];
  return out + "],\"traceName\":\"t\"}\n";
}

struct ReadTrace {
  std::vector<CommRecord> joins, records;
  std::string host, problems;
};

ReadTrace read_trace(std::string_view text, const std::string& name = "t.json", const TraceOwner& owner = {},
                     size_t ops_max = SIZE_MAX) {
  auto trace = ProfilerTrace::over(Decompressor::over(text, Compression::kNone, name), name, owner, ops_max,
                                   trace_goes_on);
  ReadTrace out;
  out.host = trace->header().host;
  std::vector<CommRecord> block;
  for (trace->next(block, 2); !block.empty(); trace->next(block, 2))
    for (const CommRecord& one : block) (one.op == CommOp::kJoin ? out.joins : out.records).push_back(one);
  for (const Problem& problem : trace->problems()) out.problems += problem.what + "\n";
  return out;
}

}  // namespace

BOOST_AUTO_TEST_CASE(a_kernel_with_its_group_becomes_a_record) {
  const std::string name = "traces/node-1.example_4242.1763690001.pt.trace.json.gz";
  const ReadTrace read = read_trace(trace_of({kernel(10.5, 2.25)}), name);
  BOOST_REQUIRE_EQUAL(read.records.size(), 1u);
  const CommRecord& one = read.records[0];
  BOOST_TEST(one.rank == 5u);
  BOOST_TEST(one.start_ns == 1763690000000010500u);
  BOOST_TEST(one.end_ns == 1763690000000012750u);
  BOOST_TEST(one.bytes == 400u);
  BOOST_TEST(one.comm_size == 2u);
  BOOST_TEST(one.device == 3u);
  BOOST_TEST((one.op == CommOp::kAllReduce && one.group == CommGroup::kTp));
  BOOST_TEST(one.step == kCommUnknown);
  BOOST_TEST(read.host == "node-1.example");
  BOOST_TEST(read.joins.size() == 1u);
  BOOST_TEST(read.problems == "");
}

BOOST_AUTO_TEST_CASE(the_step_of_the_call_counts_not_that_of_the_kernel) {
  const ReadTrace read =
      read_trace(trace_of({step(7, 0, 99), step(8, 100, 100), call(1, 50), call(2, 60), call(3, 150),
                           kernel(120, 5, R"(,"External id":2)"), kernel(90, 5, R"(,"External id":1)"),
                           kernel(160, 5, R"(,"External id":3)")}));
  BOOST_REQUIRE_EQUAL(read.records.size(), 3u);
  BOOST_TEST(read.records[1].step == 7u);
  BOOST_TEST(read.records[2].step == 8u);
  // Numbered within the step, so that ranks agree whose profiles begin at another one.
  BOOST_TEST(read.records[1].seq == 7'000'001u);
  BOOST_TEST(read.records[2].seq == 8'000'000u);
}

BOOST_AUTO_TEST_CASE(the_numbers_of_pytorch_count_where_they_differ) {
  const auto seqs = [](std::vector<int> numbers) {
    std::vector<std::string> events;
    for (const int n : numbers)
      events.push_back(kernel(10.0 * static_cast<double>(events.size()), 1, fmt::format(R"(,"Seq":{})", n)));
    std::vector<uint64_t> out;
    for (const CommRecord& one : read_trace(trace_of(events)).records) out.push_back(one.seq);
    return out;
  };
  BOOST_TEST((seqs({40, 41, 43}) == std::vector<uint64_t>{40, 41, 43}));
  BOOST_TEST((seqs({40, 40, 43}) == std::vector<uint64_t>{0, 1, 2}));  // several of a coalesced call
}

BOOST_AUTO_TEST_CASE(sends_have_their_peer_and_a_count_of_their_own) {
  const ReadTrace read =
      read_trace(trace_of({kernel(1, 1, R"(,"Dst Rank":4)", "send"), kernel(3, 1, R"(,"Src Rank":4)", "recv"),
                           kernel(5, 1, R"(,"Dst Rank":4)", "send"), kernel(7, 1, "", "send")}));
  BOOST_REQUIRE_EQUAL(read.records.size(), 3u);
  BOOST_TEST(read.records[1].peer == 4u);
  BOOST_TEST(read.records[1].seq == 0u);
  BOOST_TEST(read.records[2].seq == 1u);
  BOOST_TEST(read.problems.find("1 collective kernel without a process group") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(groups_are_the_same_on_their_members_only) {
  const auto comm = [](const std::string& config, const std::string& listed) {
    std::string text = trace_of({kernel(1, 1)});
    text.replace(text.find("[4,5]"), 5, config);
    text.replace(text.find("[4, 5]"), 6, listed);
    return read_trace(text).records.at(0).comm;
  };
  BOOST_TEST(comm("[4,5]", "[4, 5]") == comm("[5,4]", "[4, 5, ...]"));
  BOOST_TEST(comm("[4,5]", "[4, 5]") != comm("[6,7]", "[6, 7]"));
}

namespace {

struct OddTrace {
  std::string name, text, problem;
  size_t records = 0;
  TraceOwner owner = {};
};
std::ostream& operator<<(std::ostream& out, const OddTrace& c) { return out << c.name; }

std::string without(std::string text, const std::string& key) {
  return text.erase(text.find(key), key.size());
}

std::vector<OddTrace> odd_traces() {
  const std::string one = kernel(1, 1), other = kernel(5, 1);
  const std::string whole = trace_of({one, other, kernel(9, 1)});
  std::string hole = whole, quote = whole;
  hole.replace(hole.find(other) + 40, 60, std::string(60, '\0'));
  quote.erase(quote.find(other) + 8, 1);
  return {
      {"cut off", whole.substr(0, whole.size() - 100), "ends early", 2},
      {"cut off within the head", whole.substr(0, 60), "ends early", 0},
      {"a hole of zeros", hole, "damaged place", 2},
      {"a quote is missing", quote, "damaged place", 2},
      {"an event too long", trace_of({one, kernel(2, 1, ",\"x\":\"" + std::string(100'000, 'x') + "\"")}),
       "1 event passed over: too long", 1},
      {"nested without end",
       trace_of({one, "{\"cat\":\"Collective name\",\"a\":" + std::string(3000, '[') +
                          std::string(3000, ']') + "}"}),
       "1 event could not be read", 1},
      {"times beyond all clocks",
       trace_of({one, kernel(1e300, 1), kernel(1, 1e300), kernel(-1, 1), kernel(9.223372035e15, 6.04e11)}),
       "4 events could not be read", 1},
      {"no rank", trace_of({one}, ""), "its rank is unknown"},
      {"the rank of the path", trace_of({one}, ""), "", 1, {"n1", 3}},
      {"a rank beyond all jobs", trace_of({one}, "\"rank\":99999999,"), "its rank is unknown"},
      {"kernels without a group",
       trace_of({R"({"ph":"X","cat":"kernel","name":"ncclDevKernel_AllReduce","ts":1,"dur":1,"args":{}})"}),
       "PyTorch 2.3 and later"},
      {"calls without kernels", trace_of({call(1, 5)}), "ProfilerActivity.CUDA"},
      {"no communication", trace_of({R"({"ph":"X","cat":"kernel","name":"gemm","ts":1,"dur":1})"}),
       "without communication"},
      {"no events", trace_of({}), "without communication"},
      {"the whole is a list", "[" + kernel(1.76e15, 1) + "]", "", 1, {"", 2}},
      {"no base of the clock", without(whole, "baseTime"), "baseTimeNanoseconds is missing or damaged"},
      {"times without a base and others", without(trace_of({one, kernel(1.76e15, 1)}), "baseTime"),
       "1 operation at times of no calendar", 1},
      {"groups too long", trace_of({one}, R"("rank":5,"x":")" + std::string(3 << 20, 'x') + "\","),
       "1 event passed over: too long"},
  };
}

}  // namespace

BOOST_DATA_TEST_CASE(an_odd_trace_gives_what_it_has_and_says_the_rest,
                     boost::unit_test::data::make(odd_traces()), c) {
  const ReadTrace read = read_trace(c.text, "t.json", c.owner);
  BOOST_TEST(read.records.size() == c.records);
  if (c.problem.empty())
    BOOST_TEST(read.problems == "");
  else
    BOOST_TEST(read.problems.find(c.problem) != std::string::npos, read.problems);
}

namespace {

struct DamagedTrace {
  std::string place;  // zeros begin here
  size_t bytes = 0;
  size_t records = 3;
};
std::ostream& operator<<(std::ostream& out, const DamagedTrace& c) { return out << c.place; }

const std::vector<DamagedTrace> damaged_traces = {
    {"{\n\"schema", 20},   {"schemaVersion", 30}, {"deviceProperties\":[", 24},
    {"\"id\":0", 5},       {"pg_config", 30},     {"pg_name", 5},
    {"5,\"world_size", 1}, {"odd\":[", 3, 2},     {"odd\":[{", 2, 2}};

}  // namespace

BOOST_DATA_TEST_CASE(damage_before_or_within_the_events_costs_no_others,
                     boost::unit_test::data::make(damaged_traces), c) {
  std::string text = trace_of({kernel(1, 1, R"(,"odd":[{"a":[1]}],"b":{})"), kernel(3, 1), kernel(5, 1)});
  text.replace(text.find(c.place), c.bytes, std::string(c.bytes, '\0'));
  const ReadTrace read = read_trace(text, "t.json", {"n1", 5});
  BOOST_TEST(read.records.size() == c.records);
  for (const CommRecord& one : read.records) BOOST_TEST(one.start_ns > 1763690000000000000u);
  BOOST_TEST(read.problems.find("damaged place") != std::string::npos, read.problems);
  BOOST_TEST(read.problems.find("ends early") == std::string::npos, read.problems);
}

BOOST_AUTO_TEST_CASE(operations_beyond_the_limit_are_counted) {
  const ReadTrace read = read_trace(trace_of({kernel(1, 1), kernel(3, 1), kernel(5, 1)}), "t.json", {}, 2);
  BOOST_TEST(read.records.size() == 2u);
  BOOST_TEST(read.problems.find("1 operation beyond the limit") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(any_cut_and_any_piece_size_gives_the_same_events) {
  // The reader's buffer ends within events.
  std::vector<std::string> events;
  for (int i = 0; i < 3000; ++i) events.push_back(kernel(10 * i, 1, ",\"x\":\"a\\\"b\""));
  const ReadTrace read = read_trace(trace_of(events));
  BOOST_TEST(read.records.size() == 3000u);
  BOOST_TEST(read.problems == "");
}

BOOST_AUTO_TEST_CASE(only_names_of_the_trace_handler_give_a_host) {
  BOOST_TEST(host_of_trace("a/b_c_12.34.pt.trace.json") == "b_c");
  BOOST_TEST(host_of_trace("b_12.34.pt.trace.json.gz") == "b");
  BOOST_TEST(host_of_trace("rank0.pt.trace.json") == "");
  BOOST_TEST(host_of_trace("_12.34.pt.trace.json") == "");
  BOOST_TEST(host_of_trace("trace.json") == "");
}
