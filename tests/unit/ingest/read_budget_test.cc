// Every reader of untrusted bytes holds at most limits::kHeldPerByte for each byte that it read.
#include "base/read_budget.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <utility>
#include <vector>

#include "ingest/flight_reader.h"
#include "ingest/ras_reader.h"
#include "ingest/stack_reader.h"

using namespace culprit;
using namespace culprit::ingest;
using namespace std::string_literals;

BOOST_AUTO_TEST_SUITE(read_budget)

namespace {

constexpr size_t kBytes = 4 << 20;

std::string times(std::string_view part, size_t bytes = kBytes) {
  std::string out;
  while (out.size() < bytes) out += part;
  return out;
}

struct Outcome {
  uint64_t held = 0;  // at most
  std::string error;
};

template <class Read>
Outcome outcome(const Read& read) {
  HeapAccount account;
  Outcome out;
  const HeapScope counted(&account);
  if (const auto got = read(); !got) out.error = got.error().text;
  out.held = account.drain_peak();
  return out;
}

// Entries with 30 frames each, as torch writes them.
std::string honest_json(size_t entries) {
  std::string out =
      R"({"version":"2.9","pg_config":{"0":{"name":"0","desc":"d","ranks":"[0, 1]"}},"entries":[)";
  for (size_t i = 0; i < entries; ++i) {
    out += fmt::format(
        R"({}{{"record_id":{},"pg_id":0,"process_group":["0","default_pg"],"collective_seq_id":{},"p2p_seq_id":0,)"
        R"("op_id":{},"profiling_name":"nccl:all_reduce","time_created_ns":{},"input_sizes":[[1024,512]],)"
        R"("input_dtypes":["Float"],"state":"completed","retired":true,"is_p2p":false,"frames":[)",
        i ? "," : "", i, i, i, 1'700'000'000'000'000'000 + static_cast<int64_t>(i));
    for (size_t f = 0; f < 30; ++f)
      out += fmt::format(R"({}{{"name":"f{}","filename":"/opt/train/module_{}.py","line":{}}})", f ? "," : "",
                         f % 7, f % 11, i % 100 + f);
    out += "]}";
  }
  return out + "]}";
}

}  // namespace

BOOST_AUTO_TEST_CASE(hostile_bytes_are_refused_within_the_budget) {
  const std::string entry =
      "\x80\x02}(U\x07"s
      "entries](}q\x00(U\x05"s
      "stateU\x00U\x05"s
      "pg_idK\x00U\x06"s
      "seq_idK\x00u"s;
  const struct {
    const char* name;
    std::string text;
  } kDumps[] = {
      {"tuples of one", "\x80\x02(" + times("\x88\x85") + "t."},
      {"tuples in tuples", "\x80\x02N" + times("\x85") + "."},
      {"empty lists", "\x80\x02(" + times("]") + "l."},
      {"empty texts", "\x80\x02(" + times("U\x00"s) + "l."},
      {"remembered values", "\x80\x04N" + times("\x94") + "."},
      {"one entry again and again", entry + times("h\x00"s) + "eu."},
      {"lists that grow by one", "\x80\x02]q\x00"s + times("h\x00Nah\x00Na]0"s) + "."},
      {"JSON ones", "{\"entries\":[" + times("1,") + "1]}"},
      {"JSON lists", "{\"entries\":[" + times("[],") + "1]}"},
      {"JSON objects", "{\"entries\":[" + times("{\"a\":{}},") + "1]}"},
      {"JSON negative numbers", "{\"entries\":[" + times("-1,") + "1]}"},
      {"JSON groups", "{\"pg_config\":{" + times("\"\":{},") + "\"a\":1}}"},
  };
  for (const auto& dump : kDumps) {
    const uint64_t allowed = limits::kHeldPerByte * dump.text.size() + limits::kHeldFree + (64 << 10);
    const Outcome got = outcome([&] { return parse_flight(dump.text, "x_dump_3"); });
    BOOST_TEST(got.held <= allowed, dump.name << ": " << got.held << " of " << dump.text.size());
    const Outcome capped = outcome([&] { return parse_flight(dump.text, "x_dump_3", 2 << 20); });
    BOOST_TEST(capped.held <= (2u << 20) + (64u << 10), dump.name << ": " << capped.held);
    const Outcome stacks = outcome([&] { return parse_stacks(dump.text, "rank_3.json"); });
    BOOST_TEST(stacks.held <= allowed, dump.name << " as stacks: " << stacks.held);
  }
}

BOOST_AUTO_TEST_CASE(answers_of_ras_are_refused_within_the_budget) {
  const struct {
    const char* name;
    std::string text;
    std::string error;
  } kAnswers[] = {
      {"ones", "{\"communicators\":[" + times("1,") + "1]}", ""},
      {"empty communicators", "{\"communicators\":[" + times("{},") + "1]}", ""},
      {"ranks without end", "{\"communicators\":[{\"ranks\":[" + times("{\"rank\":1},") + "1]}]}", ""},
      {"a text without end", "{\"a\":\"" + times("x") + "\"}",
       "is no answer of NCCL's RAS: it has no communicators"},
      {"nested", "{\"communicators\":" + times("["), "is nested too deeply"},
      {"its own text form", times("NCCL version 2.28.3\n"), ""},
  };
  for (const auto& answer : kAnswers) {
    const uint64_t allowed = limits::kHeldPerByte * answer.text.size() + limits::kHeldFree + (64 << 10);
    const Outcome got = outcome([&] { return parse_ras(answer.text); });
    BOOST_TEST(got.held <= std::min(allowed, limits::kRasHeld + (64 << 10)), answer.name << ": " << got.held);
    if (!answer.error.empty()) BOOST_TEST(got.error == answer.error, answer.name << ": " << got.error);
    const Outcome capped = outcome([&] {
      std::string_view text = answer.text;
      return parse_ras([&] { return std::exchange(text, {}); }, {.held = 64 << 10});
    });
    BOOST_TEST(capped.held <= 2 * answer.text.size() + (256u << 10), answer.name << ": " << capped.held);
  }
  // Of ones nothing is kept, however many there are.
  BOOST_TEST(outcome([&] { return parse_ras(kAnswers[0].text); }).held < 256u << 10);
}

BOOST_AUTO_TEST_CASE(honest_dumps_need_half_of_the_budget) {
  const std::string text = honest_json(2000);
  const Outcome got = outcome([&] { return parse_flight(text, "x_dump_3"); });
  BOOST_TEST(got.error.empty(), got.error);
  BOOST_TEST_MESSAGE("honest: " << static_cast<double>(got.held) / static_cast<double>(text.size()));
  BOOST_TEST(got.held < text.size() * limits::kHeldPerByte / 2);
}

BOOST_AUTO_TEST_CASE(what_exceeds_the_budget_is_an_error_with_its_subject) {
  const auto read = [] { return Result<std::string>(std::string(100'000, 'x')); };
  const auto refused = ReadBudget(0, 50'000).run(read, "x_dump_3: ");
  BOOST_REQUIRE(!refused);
  BOOST_TEST((refused.error().code == ErrorCode::kLimit));
  BOOST_TEST(refused.error().text == "x_dump_3: takes more memory than its size allows");
  BOOST_TEST(ReadBudget(0, 200'000).run(read)->size() == 100'000u);
}

BOOST_AUTO_TEST_SUITE_END()
