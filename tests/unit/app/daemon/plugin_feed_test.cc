#include "app/daemon/intake/plugin_feed.h"

#include <fmt/format.h>

#include <boost/test/unit_test.hpp>
#include <cstring>

#include "culprit/plugin.h"
#include "model/comm.h"

using namespace culprit;
using namespace culprit::app;

namespace {

constexpr uint64_t kAll = ~uint64_t{0};
constexpr TimeNs kAt = 1'763'690'000 * kNsPerSecond;

// What one source gives, as a text per event.
struct Fed {
  PluginFeed feed{"node-1"};
  bool opened = false;

  std::vector<std::string> add(OriginKind kind, std::string bytes, uint64_t kinds = kAll) {
    PieceBatch batch;
    if (!std::exchange(opened, true)) {
      StreamInfo info;
      info.id = 7;
      info.kind = kind;
      info.job = "j1";
      info.path = "/logs/a.log";
      batch.opened.push_back(info);
    }
    Piece piece;
    piece.stream = 7;
    piece.bytes = std::move(bytes);
    piece.time_ns = kAt;
    batch.pieces.push_back(std::move(piece));
    plughost::EventWriter writer;
    feed.add(batch, kinds, writer);
    const std::string events = writer.take();
    plughost::EventReader reader;
    BOOST_REQUIRE(reader.read(events));
    std::vector<std::string> out;
    for (size_t i = 0; i < reader.count(); ++i) out.push_back(text_of(*reader.events()[i]));
    return out;
  }

  static std::string text_of(const culprit_event& e) {
    const std::string head = fmt::format("{} {} rank {}", e.job, e.source, e.rank);
    switch (e.kind) {
      case CULPRIT_EVENT_LOG:
      case CULPRIT_EVENT_KERNEL: {
        const auto& line = *static_cast<const culprit_line*>(e.body);
        std::string out = fmt::format("{}: {} [{}]", head, line.text, line.message_template);
        for (uint64_t i = 0; i < line.parameter_count; ++i) out += fmt::format(" {}", line.parameters[i]);
        return out;
      }
      case CULPRIT_EVENT_METRIC: {
        const auto& metric = *static_cast<const culprit_metric*>(e.body);
        return fmt::format("{}: {} {} at {}", head, metric.name, metric.value, metric.step);
      }
      case CULPRIT_EVENT_COUNTER: {
        const auto& counter = *static_cast<const culprit_counter*>(e.body);
        return fmt::format("{}: counter {} {}", head, counter.name, counter.value);
      }
      case CULPRIT_EVENT_STEP: {
        const auto& step = *static_cast<const culprit_step*>(e.body);
        return fmt::format("{}: step {} '{}' {}", head, step.step, step.phase, step.state);
      }
      case CULPRIT_EVENT_STACK: {
        const auto& stack = *static_cast<const culprit_stack*>(e.body);
        return fmt::format("{}: {} in {}", head, stack.threads[0]->name, stack.threads[0]->frames[0]);
      }
      case CULPRIT_EVENT_COMM: {
        const auto& comm = *static_cast<const culprit_comm*>(e.body);
        return fmt::format("{}: op {} seq {}", head, comm.op, comm.seq);
      }
      default:
        return "?";
    }
  }
};

using Texts = std::vector<std::string>;

}  // namespace

BOOST_AUTO_TEST_SUITE(plugin_feed)

BOOST_AUTO_TEST_CASE(lines_come_whole_with_their_template_and_parameters) {
  Fed fed;
  BOOST_TEST(fed.add(OriginKind::kFile, "2026-11-21 02:12:09,000 [rank3]: took 12 ms, lo") == Texts());
  const Texts expected = {
      "j1 /logs/a.log rank 3: 2026-11-21 02:12:09,000 [rank3]: took 12 ms, loss 2.5 [took <*>, loss <*>] "
      "12 ms 2.5"};
  BOOST_TEST(fed.add(OriginKind::kFile, "ss 2.5\n") == expected, boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(lines_of_the_trace_socket_become_events_of_their_kind) {
  Fed fed;
  const std::string lines =
      R"({"kind":"metric","rank":2,"step":7,"values":{"loss":2.5,"host/runnable_per_core":3}})"
      "\n"
      R"({"kind":"step","rank":2,"step":8})"
      "\n"
      R"({"kind":"phase","name":"checkpoint","state":"begin"})"
      "\n"
      R"({"kind":"stack","rank":2,"threads":[{"name":"main","frames":["a.py:f:3"]}]})"
      "\n"
      R"({"kind":"log","rank":2,"line":"hello 5"})"
      "\nrubbish\n";
  const Texts expected = {"j1 trace rank 2: loss 2.5 at 7",    "j1 trace rank 2: counter runnable_per_core 3",
                          "j1 trace rank 2: step 8 '' 0",      "j1 trace rank -1: step -1 'checkpoint' 1",
                          "j1 trace rank 2: main in a.py:f:3", "j1 trace rank 2: hello 5 [hello <*>] 5"};
  BOOST_TEST(fed.add(OriginKind::kSocket, lines) == expected, boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(records_and_messages_of_the_kernel_are_events) {
  CommRecord record;
  record.rank = 5;
  record.seq = 3;
  record.op = CommOp::kAllReduce;
  record.start_ns = 10;
  record.end_ns = 20;
  std::string bytes(sizeof record, '\0');
  std::memcpy(bytes.data(), &record, sizeof record);
  Fed ring;
  BOOST_TEST(ring.add(OriginKind::kRing, bytes) == Texts{"j1 ring rank 5: op 1 seq 3"});
  Fed kernel;
  const Texts given = kernel.add(OriginKind::kKernel, "4,7,1010000000,-;eth0: link is down\n");
  BOOST_REQUIRE(given.size() == 1u);
  BOOST_TEST(given[0].find("eth0: link is down") != std::string::npos);
  Fed journal;
  const std::string cursor = R"({"__CURSOR":"s=0dc1c2ee46a344f7995904de0d1e9368;i=1;t=1;x=1",)";
  const Texts entries = journal.add(
      OriginKind::kJournal,
      cursor + R"("_TRANSPORT":"kernel","SYSLOG_FACILITY":"0","MESSAGE":"eth1: link is down"})" + "\n" +
          cursor +
          R"("_TRANSPORT":"journal","_UID":"0","_SYSTEMD_UNIT":"init.scope","SYSLOG_IDENTIFIER":"systemd",)" +
          R"("MESSAGE":"of a service"})" + "\n");
  BOOST_REQUIRE(entries.size() == 1u);
  BOOST_TEST(entries[0].find("eth1: link is down") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(only_wanted_kinds_are_events) {
  Fed fed;
  const std::string lines = R"({"kind":"metric","rank":2,"step":7,"values":{"loss":2.5}})"
                            "\n"
                            R"({"kind":"step","rank":2,"step":8})"
                            "\n";
  BOOST_TEST(fed.add(OriginKind::kSocket, lines, CULPRIT_BIT(CULPRIT_EVENT_STEP)) ==
             Texts{"j1 trace rank 2: step 8 '' 0"});
  Fed file;
  BOOST_TEST(file.add(OriginKind::kFile, "a line\n", CULPRIT_BIT(CULPRIT_EVENT_STEP)) == Texts());
}

BOOST_AUTO_TEST_CASE(parameters_stand_in_the_place_of_the_holes) {
  const struct {
    std::string_view form, message;
    Texts expected;
  } cases[] = {
      {"took <*> ms", "took  12\tms", {"12"}},
      {"<*> of <*>", "3 of 4", {"3", "4"}},
      {"no holes", "no holes", {}},
      {"all: <*>", "all: a b c", {"a b c"}},
      {"<*>", "everything", {"everything"}},
      {"other words <*>", "does not fit", {}},
      {"", "", {}},
  };
  for (const auto& c : cases) {
    const auto given = parameters_of(c.form, c.message);
    BOOST_TEST(Texts(given.begin(), given.end()) == c.expected, c.form);
  }
}

BOOST_AUTO_TEST_SUITE_END()
