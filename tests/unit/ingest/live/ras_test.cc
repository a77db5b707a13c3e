#include <boost/test/unit_test.hpp>
#include <string>

#include "ingest/live/trace_lines.h"
#include "model/ras_line.h"

using namespace culprit;
using namespace culprit::ingest;

namespace {

RasState state() {
  RasState s;
  s.host = "node-1";
  s.address = "10.0.0.5";
  s.version = "2.28.9";
  s.at_ns = 1'763'690'010 * kNsPerSecond;
  s.json = true;
  s.answers = 7;
  s.still = 3;
  s.still_since_ns = s.at_ns - 20 * kNsPerSecond;
  s.comms_seen = 9;
  s.ranks = 8192;
  s.processes = {{"10.0.0.5", 11}, {"10.0.0.6", 12}};
  s.exited = {{1, 5, 9, true}};
  s.exited_processes = 1;
  s.dead_processes = 1;
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
  comm.since_ns = s.still_since_ns;
  comm.missing.push_back({{3, 1, kRasUnknown, 9}, true, false});
  comm.spreads.push_back({"AllReduce", {{6650, 6, {}}, {6649, 1, {{2, 0, 1, kRasUnknown}}}}});
  comm.phases.push_back({static_cast<uint64_t>(RasPhase::kInit), 7, {}});
  return s;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(ras)

BOOST_AUTO_TEST_CASE(a_state_is_the_same_after_its_line_was_read) {
  const RasState written = state();
  const auto line = parse_trace_line(ras_line(written, "j1"));
  BOOST_REQUIRE_MESSAGE(line, (line ? "" : line.error().text));
  BOOST_TEST((line->kind == TraceKind::kRas));
  BOOST_TEST(line->job == "j1");
  BOOST_REQUIRE(line->ras);
  RasState read = *line->ras;
  read.host = line->host;
  read.at_ns = line->time_ns;
  BOOST_TEST((read == written));
}

BOOST_AUTO_TEST_CASE(a_line_fits_and_counts_the_communicators_that_do_not) {
  RasState large = state();
  RasCommState comm = large.comms[0];
  for (int f = 0; f < 8; ++f) {
    RasSpread& spread = comm.spreads.emplace_back();
    spread.function = std::string(200, 'f');
    for (int g = 0; g < 8; ++g) {
      spread.groups.push_back({1, 16, {}});
      for (uint32_t m = 0; m < 16; ++m) spread.groups.back().listed.push_back({m, 0, 0, m});
    }
  }
  comm.spreads.resize(8);
  large.comms.assign(32, comm);
  const std::string text = ras_line(large, "j1");
  BOOST_TEST(text.size() <= 64u << 10);
  const auto line = parse_trace_line(text);
  BOOST_REQUIRE_MESSAGE(line, (line ? "" : line.error().text));
  BOOST_TEST(line->ras->dropped == large.dropped + 32 - line->ras->comms.size());
}

BOOST_AUTO_TEST_CASE(a_line_with_a_wrong_value_is_refused) {
  const std::pair<const char*, const char*> cases[] = {
      {R"({"kind":"ras","answers":"two"})", "answers"},
      {R"({"kind":"ras","comms":[7]})", "comms"},
      {R"({"kind":"ras","gone":[{"process":0}]})", "process"},
      {R"({"kind":"ras","comms":[{"missing":[{"rank":0,"process":3}]}]})", "process"},
      {R"({"kind":"ras","comms":[{"hash":"no"}]})", "hash"},
      {R"({"kind":"ras","user":-1})", "user"},
  };
  for (const auto& [text, key] : cases) {
    const auto line = parse_trace_line(text);
    BOOST_TEST_CONTEXT(text) {
      BOOST_REQUIRE(!line);
      BOOST_TEST((line.error().text.find(key) != std::string::npos));
    }
  }
}

BOOST_AUTO_TEST_SUITE_END()
