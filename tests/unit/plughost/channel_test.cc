// The bytes between daemon and plugin.
#include <culprit/plugin.h>

#include "base/limits.h"
#include "fixture.h"
#include "plughost/messages.h"

namespace culprit::plughost::testing {
namespace {

// One event of each kind.
std::string one_of_each() {
  EventWriter writer;
  EventHead head{CULPRIT_EVENT_LOG, 5, "job", "node-1", "/var/log/x", 7, 3};
  const std::string_view parameters[] = {"79", std::string_view("a\0b", 3)};
  writer.line(head, std::string_view("Xid 79 \0 end", 12), "Xid <_>", parameters, 42);
  head.kind = CULPRIT_EVENT_KERNEL;
  writer.line(head, "", "", {}, 0);
  head.kind = CULPRIT_EVENT_METRIC;
  writer.metric(head, "loss", 2.5, 9);
  head.kind = CULPRIT_EVENT_COMM;
  CommRecord record;
  record.start_ns = 1;
  record.end_ns = 2;
  record.comm = 3;
  record.seq = 4;
  record.bytes = 5;
  record.rank = 6;
  record.peer = kCommUnknown;
  record.comm_size = 8;
  record.op = CommOp::kAllGather;
  record.group = CommGroup::kTp;
  record.device = 1;
  writer.comm(head, record);
  head.kind = CULPRIT_EVENT_STEP;
  writer.step(head, "checkpoint", 12, CULPRIT_STEP_BEGIN);
  head.kind = CULPRIT_EVENT_STACK;
  const std::string_view frames[] = {"train.py:forward:120", "train.py:main:3"};
  const StackThread threads[] = {{"MainThread", frames}, {"loader", {}}};
  writer.stack(head, threads);
  head.kind = CULPRIT_EVENT_COUNTER;
  writer.counter(head, "psi", .25);
  BOOST_TEST(writer.count() == 7u);
  return writer.take();
}

template <class Body>
const Body& body(const EventReader& reader, size_t i) {
  const auto* out = static_cast<const Body*>(reader.events()[i]->body);
  BOOST_TEST(out->size == sizeof(Body));
  return *out;
}

BOOST_AUTO_TEST_CASE(each_kind_of_event_arrives_as_it_was_written) {
  const std::string bytes = one_of_each();
  EventReader reader;
  BOOST_REQUIRE(reader.read(bytes));
  BOOST_REQUIRE_EQUAL(reader.count(), 7u);
  const culprit_event& first = *reader.events()[0];
  BOOST_TEST(first.size == sizeof(culprit_event));
  BOOST_TEST(first.kind == static_cast<uint32_t>(CULPRIT_EVENT_LOG));
  BOOST_TEST(first.version == 1u);
  BOOST_TEST(first.time_ns == 5);
  BOOST_TEST(first.job == std::string("job"));
  BOOST_TEST(first.host == std::string("node-1"));
  BOOST_TEST(first.source == std::string("/var/log/x"));
  BOOST_TEST(first.rank == 7);
  BOOST_TEST(first.device == 3);
  const auto& line = body<culprit_line>(reader, 0);
  BOOST_TEST(std::string(line.text, line.text_bytes) == std::string("Xid 79 \0 end", 12));
  BOOST_TEST(line.message_template == std::string("Xid <_>"));
  BOOST_TEST(line.parameter_count == 2u);
  BOOST_TEST(line.parameters[0] == std::string("79"));
  BOOST_TEST(line.line == 42u);
  BOOST_TEST(body<culprit_line>(reader, 1).parameter_count == 0u);
  BOOST_TEST(body<culprit_metric>(reader, 2).value == 2.5);
  BOOST_TEST(body<culprit_metric>(reader, 2).step == 9);
  const auto& comm = body<culprit_comm>(reader, 3);
  BOOST_TEST(reader.events()[3]->rank == 6);
  BOOST_TEST(reader.events()[3]->device == 1);
  BOOST_TEST(comm.peer == CULPRIT_NONE);
  BOOST_TEST(comm.step == CULPRIT_NONE);
  BOOST_TEST(comm.op == 2u);
  BOOST_TEST(comm.group == 3u);
  BOOST_TEST(comm.seq == 4u);
  BOOST_TEST(body<culprit_step>(reader, 4).phase == std::string("checkpoint"));
  BOOST_TEST(body<culprit_step>(reader, 4).state == static_cast<uint32_t>(CULPRIT_STEP_BEGIN));
  const auto& stack = body<culprit_stack>(reader, 5);
  BOOST_REQUIRE_EQUAL(stack.thread_count, 2u);
  BOOST_TEST(stack.threads[0]->frames[1] == std::string("train.py:main:3"));
  BOOST_TEST(stack.threads[1]->frame_count == 0u);
  BOOST_TEST(body<culprit_counter>(reader, 6).name == std::string("psi"));
}

BOOST_AUTO_TEST_CASE(a_batch_is_filtered_by_kind) {
  const std::string bytes = one_of_each();
  std::string some;
  BOOST_TEST(select_events(bytes, ~uint64_t{0}, &some) == 7u);
  BOOST_TEST(some == bytes);
  some.clear();
  const uint64_t kinds = CULPRIT_BIT(CULPRIT_EVENT_METRIC) | CULPRIT_BIT(CULPRIT_EVENT_COUNTER);
  BOOST_TEST(select_events(bytes, kinds, &some) == 2u);
  EventReader reader;
  BOOST_REQUIRE(reader.read(some));
  BOOST_TEST(reader.count() == 2u);
  BOOST_TEST(reader.events()[1]->kind == static_cast<uint32_t>(CULPRIT_EVENT_COUNTER));
}

BOOST_AUTO_TEST_CASE(damaged_events_are_refused_whole) {
  const std::string bytes = one_of_each();
  EventReader reader;
  size_t shorter_batches = 0;
  for (size_t size = 1; size < bytes.size(); ++size) {
    if (reader.read(std::string_view(bytes).substr(0, size)))
      ++shorter_batches;
    else
      BOOST_TEST(reader.count() == 0u);
  }
  BOOST_TEST(shorter_batches == 6u);  // cut between two of the seven records
  for (size_t at = 0; at < bytes.size(); ++at) {
    std::string damaged = bytes;
    damaged[at] = static_cast<char>(damaged[at] ^ 0x81);
    if (!reader.read(damaged)) BOOST_TEST(reader.count() == 0u);
  }
}

BOOST_AUTO_TEST_CASE(long_texts_are_cut_so_that_a_record_has_a_bound) {
  EventWriter writer;
  EventHead head{CULPRIT_EVENT_LOG, 0, "", "", "", -1, -1};
  const std::string text(10 << 20, 'x');
  const std::vector<std::string_view> parameters(10'000, text);
  writer.line(head, text, text, parameters, 1);
  head.kind = CULPRIT_EVENT_STACK;
  const StackThread thread{text, parameters};
  const std::vector<StackThread> threads(10'000, thread);
  writer.stack(head, threads);
  BOOST_TEST(writer.bytes() < size_t{2} << 20);
  BOOST_TEST(writer.is_full());
  EventReader reader;
  BOOST_TEST(reader.read(writer.take()));
}

BOOST_AUTO_TEST_CASE(messages_survive_any_cut_of_the_stream) {
  std::string stream;
  append_message(stream, MessageKind::kState, "state");
  append_message(stream, MessageKind::kLog, "");
  append_message(stream, MessageKind::kHello, std::string(100'000, 'h'));
  for (const size_t piece : {size_t{1}, size_t{7}, size_t{4096}, stream.size()}) {
    MessageReader reader;
    std::vector<size_t> sizes;
    for (size_t at = 0; at < stream.size();) {
      size_t room = 0;
      char* to = reader.room(room);
      const size_t size = stream.copy(to, std::min(piece, room), at);
      reader.added(size);
      at += size;
      MessageReader::Message message;
      while (reader.next(message) == MessageReader::Next::kMessage) sizes.push_back(message.payload.size());
    }
    BOOST_TEST(sizes == (std::vector<size_t>{5, 0, 100'000}), boost::test_tools::per_element());
  }
}

BOOST_AUTO_TEST_CASE(a_message_over_the_limit_is_malformed) {
  std::string stream;
  append_message(stream, MessageKind::kState, "");
  stream[3] = 1;  // 16 MiB
  MessageReader reader;
  size_t room = 0;
  stream.copy(reader.room(room), stream.size());
  reader.added(stream.size());
  MessageReader::Message message;
  BOOST_TEST((reader.next(message) == MessageReader::Next::kMalformed));
  reader.room(room);
  BOOST_TEST(room < 2 * limits::kPluginMessageBytes, "a size that it claims takes no memory");
}

BOOST_AUTO_TEST_CASE(a_finding_and_a_description_survive_the_channel) {
  PluginFinding finding;
  finding.id = "gpu.ecc";
  finding.title = "title";
  finding.peer = "node-2";
  finding.part = "nvlink 3";
  finding.rank = 3;
  finding.time_ns = 99;
  finding.confidence = .5;
  finding.severity = PluginSeverity::kFatal;
  finding.state = PluginState::kCleared;
  finding.values = {{"t", 1.5}, {"u", -2}};
  PluginFinding out;
  BOOST_REQUIRE(decode(encode(finding), out));
  BOOST_TEST(out.id == finding.id);
  BOOST_TEST(out.peer == finding.peer);
  BOOST_TEST(out.part == finding.part);
  BOOST_TEST(out.rank.value() == 3u);
  BOOST_TEST(!out.device.has_value());
  BOOST_TEST((out.values == finding.values));
  BOOST_TEST((out.severity == finding.severity && out.state == finding.state));
  Description description{
      "x", "1", "v", "a", 1, 0, 2, 100, {{"o", "1", "about", 0, 2, CULPRIT_OPTION_INTEGER}}};
  Description read;
  BOOST_REQUIRE(decode(encode(description), read));
  BOOST_TEST((read == description));
  BOOST_TEST(!decode(encode(description) + "x", read));
}

}  // namespace
}  // namespace culprit::plughost::testing
