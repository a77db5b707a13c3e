// Metrics and events on their way to a collector: all values arrive exactly.
#include "core/wire/loop.h"

#include <fmt/format.h>

#include <bit>
#include <boost/test/unit_test.hpp>
#include <cmath>
#include <limits>
#include <random>

#include "base/limits.h"
#include "core/wire/inputs.h"

using namespace culprit;
using namespace culprit::core;
using namespace culprit::wire;

namespace {

// All input of a sink as text, with the bits of values.
struct SentRows final : InputSink {
  std::string text;
  uint64_t bytes = 0, lines = 0;
  std::vector<std::string> problems;
  SourceId open(SourceInfo, TimeNs) override { return 0; }
  void on_input(Input input, TimeNs now) override {
    if (const auto* metrics = std::get_if<MetricInput>(&input))
      for (const MetricRow& row : metrics->rows) text += line_of(row, now);
    if (const auto* reported = std::get_if<EventInput>(&input)) text += line_of(reported->event, now);
    if (const auto* read = std::get_if<NonLogRead>(&input)) bytes += read->bytes, lines += read->lines;
    if (const auto* seen = std::get_if<ProblemSeen>(&input)) problems.push_back(seen->problem.what);
  }
  void ends(bool, TimeNs) override {}
  void alive(bool, TimeNs) override {}

  static std::string line_of(const MetricRow& row, TimeNs now) {
    std::string out = fmt::format("{} {} {} {} {}", now, row.host, row.rank, row.step, row.time_ns);
    for (const MetricValue& v : row.values)
      out += fmt::format(" {}={:x}", v.name, std::bit_cast<uint64_t>(v.value));
    for (const MetricDigest& d : row.digests) out += fmt::format(" {}:{:x}", d.name, d.value);
    return out + "\n";
  }
  static std::string line_of(const LoopEvent& e, TimeNs now) {
    std::string out = fmt::format("{} {} {} {} {} {}", now, e.host, e.name, e.rank ? *e.rank : -1,
                                  e.step ? *e.step : -1, e.time_ns);
    for (const EventField& f : e.fields) out += fmt::format(" {}={}", f.name, f.json);
    return out + "\n";
  }
};

struct Sent {
  InputWriter writer{77};
  InputReader reader{nullptr};
  SentRows there;
  std::string expected;
  size_t bytes = 0;

  void give(const std::vector<MetricRow>& rows, TimeNs now = kNsPerSecond) {
    for (const MetricRow& row : rows) expected += SentRows::line_of(row, now);
    writer.add(MetricInput{rows}, now);
  }
  void flush() {
    const std::string block = writer.flush(kNsPerSecond);
    bytes += block.size();
    BOOST_REQUIRE(reader.read(block, there));
  }
};

MetricRow row_of(uint32_t rank, int64_t step, std::span<const MetricValue> values) {
  MetricRow row;
  row.host = "node-1", row.rank = rank, row.step = step, row.values = values;
  row.time_ns =
      static_cast<TimeNs>(1'763'690'000'000'000'000u + static_cast<uint64_t>(step) * 700'000'000u + rank);
  return row;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(wire_loop)

BOOST_AUTO_TEST_CASE(values_and_digests_arrive_to_the_last_bit_over_blocks) {
  Sent sent;
  std::mt19937_64 random(1);
  constexpr double kInf = std::numeric_limits<double>::infinity();
  const double odd[] = {0.0, -0.0, 1, -1, kInf, -kInf, std::nan(""), 0.1, 1e-320, 1e308, 2.31, 0.1f};
  for (int block = 0; block < 3; ++block) {
    for (int step = 0; step < 20; ++step)
      for (uint32_t rank = 0; rank < 4; ++rank) {
        std::vector<MetricValue> values = {{"loss", odd[random() % std::size(odd)]},
                                           {"grad_norm", std::bit_cast<double>(random())}};
        if (step % 3 == 0) values.push_back({rank % 2 ? "late/a" : "late/b", 3});
        const std::vector<MetricDigest> digests = {{"param", random() % 2 ? 7 : random()}, {"loss", 1}};
        MetricRow row = row_of(rank, step * (block ? 1 : 1'000'000'000'000), values);
        if (step % 5 == 0) row.digests = digests;
        if (step % 7 == 0) row.time_ns = kNoTime;
        if (rank == 3) row.host = block == 1 ? "" : "node-2";
        sent.give({row});
      }
    sent.flush();
  }
  BOOST_TEST(sent.there.text == sent.expected);
  BOOST_TEST(sent.there.problems.empty());
}

BOOST_AUTO_TEST_CASE(events_and_what_was_read_arrive) {
  Sent sent;
  const EventField fields[] = {{"where", "\"same\""}, {"equal", "false"}, {"deep", "{\"a\":[1]}"}};
  for (const bool bare : {false, true}) {
    LoopEvent event;
    event.host = "node-1", event.name = "replay";
    if (!bare) event.rank = 0, event.step = 12, event.time_ns = 5, event.fields = fields;
    sent.expected += SentRows::line_of(event, 9);
    sent.writer.add(EventInput{event}, 9);
  }
  sent.writer.add(NonLogRead{100, 2}, 9);
  sent.writer.add(NonLogRead{10, 1}, 9);
  sent.flush();
  BOOST_TEST(sent.there.text == sent.expected);
  BOOST_TEST((sent.there.bytes == 110 && sent.there.lines == 3));
}

// A row costs the bits of its values; parts that ranks have in common cost almost nothing.
BOOST_AUTO_TEST_CASE(names_cost_once_and_replicas_that_agree_a_byte) {
  Sent sent;
  std::mt19937_64 random(1);
  std::uniform_real_distribution<double> chance(0, 1);
  std::vector<std::string> names;
  for (int i = 0; i < 50; ++i) names.push_back(fmt::format("grad_norm/layer.{}", i));
  constexpr size_t kSteps = 100, kRanks = 8;
  for (size_t step = 0; step < kSteps; ++step) {
    std::vector<MetricValue> values;
    for (const std::string& name : names) values.push_back({name, chance(random)});
    std::vector<MetricRow> rows;
    for (uint32_t rank = 0; rank < kRanks; ++rank)
      rows.push_back(row_of(rank, static_cast<int64_t>(step), values));
    sent.give(rows, static_cast<TimeNs>(step) * kNsPerSecond);
  }
  sent.flush();
  BOOST_TEST(sent.there.text == sent.expected);
  const double per_step = static_cast<double>(sent.bytes) / kSteps;
  BOOST_TEST(per_step < 50 * 8 + 50 * 7 + 8 * 40, per_step << " bytes a step");
}

BOOST_AUTO_TEST_CASE(a_flood_of_names_or_rows_is_bounded_counted_and_reported) {
  Sent sent;
  std::vector<std::string> names;
  for (size_t i = 0; i < limits::kLoopNames + 10; ++i) names.push_back(fmt::format("n{}", i));
  names.push_back(std::string(limits::kNameBytes + 1, 'x'));
  size_t values_reported = 0;
  for (const std::string& name : names) {
    const MetricValue value[] = {{name, 1}};
    sent.writer.add(MetricInput{std::vector<MetricRow>{row_of(0, 1, value)}}, 0);
  }
  sent.flush();
  for (size_t at = 0; (at = sent.there.text.find('=', at)) != std::string::npos; ++at) ++values_reported;
  BOOST_TEST(values_reported == limits::kLoopNames);
  BOOST_TEST_REQUIRE(sent.there.problems.size() == 1u);
  BOOST_TEST(sent.there.problems[0] ==
             "11 values of metrics are left out: names too long, or beyond the first 4096 of the session");
  BOOST_TEST(sent.writer.dropped_notes() == 11u);
  // Ten times the limit per second.
  std::vector<MetricValue> many;
  for (size_t i = 0; i < 1000; ++i) many.push_back({names[i], static_cast<double>(i)});
  sent.there.text.clear();
  for (int i = 0; i < 1200; ++i) {
    sent.writer.add(MetricInput{std::vector<MetricRow>{row_of(0, i, many)}}, 20 * kNsPerSecond);
    if (sent.writer.full()) sent.flush();
  }
  sent.writer.add(MetricInput{std::vector<MetricRow>{row_of(0, 1, {many.data(), 1})}}, 21 * kNsPerSecond);
  sent.flush();
  BOOST_TEST(sent.there.problems.back().find("of metrics are left out: no more than 1.0 MB a second") !=
                 std::string::npos,
             sent.there.problems.back());
  const auto rows = std::count(sent.there.text.begin(), sent.there.text.end(), '\n');
  BOOST_TEST((rows > 100 && rows < 130), rows);
}

// A row without values takes four bytes of a block, a field of an event two.
BOOST_AUTO_TEST_CASE(what_a_block_makes_its_reader_hold_is_bounded_whatever_it_says) {
  const auto rows = [](uint64_t count) {
    PackedWriter out;
    out.text("node-1");
    out.number(0);
    out.number(count);
    for (uint64_t i = 0; i < count; ++i) out.raw(std::string_view("\0\0\0\1", 4));
    return out.finish();
  };
  const auto event = [](uint64_t fields) {
    PackedWriter out;
    out.raw(std::string_view("\0\0\0\0\0\0", 6));
    out.number(fields);
    out.raw(std::string(2 * fields, '\0'));
    return out.finish();
  };
  LoopUnpacker unpacker;
  LoopBatch held;
  const auto read_row = [&](const std::string& bytes) {
    PackedReader in(bytes);
    return unpacker.rows(in, held);
  };
  const auto read_event = [&](const std::string& bytes) {
    PackedReader in(bytes);
    return unpacker.event(in, held);
  };
  BOOST_TEST(read_row(rows(kLoopValues / 16)));
  BOOST_TEST(!read_row(rows(kLoopValues / 4)));
  unpacker.begin_block();
  int events = 0;
  for (; events < 1000 && read_event(event(5000)); ++events) held.clear();
  BOOST_TEST(events == 29);
}

// Short records that exceed the limit of one block arrive in the next one.
BOOST_AUTO_TEST_CASE(a_flood_of_short_records_arrives) {
  Sent sent;
  std::vector<EventField> fields(5, {"a", "1"});
  LoopEvent event;
  event.name = "note", event.fields = fields;
  for (int i = 0; i < 60'000; ++i) {
    const TimeNs now = i / 20'000 * kNsPerSecond;
    sent.give({row_of(0, i, {})}, now);
    if (i % 4 == 0) {
      sent.expected += SentRows::line_of(event, now);
      sent.writer.add(EventInput{event}, now);
    }
    if (sent.writer.full()) sent.flush();
  }
  sent.flush();
  BOOST_TEST((sent.there.text == sent.expected));
  BOOST_TEST(sent.writer.dropped_notes() == 0u);
}

BOOST_AUTO_TEST_CASE(steps_that_no_loop_counts_to_are_refused) {
  for (const bool too_far : {false, true}) {
    const MetricValue value[] = {{"loss", 1}};
    MetricRow row = row_of(0, 1, value);
    LoopEvent event;
    event.name = "replay";
    row.step = limits::kStepMax + too_far;
    event.step = row.step;
    for (const Input& input : {Input(MetricInput{{&row, 1}}), Input(EventInput{event}),
                               Input(detect::ProgressSeen{row.step, 0})}) {
      InputWriter writer(77);
      InputReader reader(nullptr);
      SentRows reported;
      writer.add(input, 1);
      BOOST_TEST(reader.read(writer.flush(1), reported).has_value() == !too_far);
    }
  }
}

BOOST_AUTO_TEST_CASE(notes_that_are_cut_or_damaged_are_refused_or_read_and_nothing_else) {
  InputWriter writer(77);
  const MetricValue values[] = {{"loss", 2.31}, {"grad_norm", 0.81}};
  const MetricDigest digests[] = {{"param", 0x9f86d081884c7d65}};
  MetricRow row = row_of(3, 120, values);
  row.digests = digests;
  const EventField fields[] = {{"equal", "true"}};
  LoopEvent event;
  event.name = "audit", event.fields = fields;
  for (int i = 0; i < 3; ++i) writer.add(MetricInput{{&row, 1}}, 1);
  writer.add(EventInput{event}, 1);
  writer.add(NonLogRead{7, 1}, 1);
  const std::string block = writer.flush(1);
  for (size_t size = 0; size < block.size(); ++size) {
    SentRows reported;
    InputReader reader(nullptr);
    BOOST_TEST(!reader.read(std::string_view(block).substr(0, size), reported));
    BOOST_TEST(reported.text.empty());
  }
  for (size_t at = 0; at < block.size(); ++at)
    for (int bit = 0; bit < 8; ++bit) {
      std::string damaged = block;
      damaged[at] = static_cast<char>(damaged[at] ^ (1 << bit));
      SentRows reported;
      InputReader reader(nullptr);
      if (!reader.read(damaged, reported)) BOOST_TEST(reported.text.empty());
    }
}

BOOST_AUTO_TEST_SUITE_END()
