#include "model/loop_batch.h"

#include <fmt/format.h>

#include <boost/test/unit_test.hpp>
#include <memory>

using namespace culprit;

namespace {

std::string reported(LoopBatch& batch) {
  std::string out;
  batch.each(
      [&](std::span<const MetricRow> rows) {
        out += "[";
        for (const MetricRow& r : rows) {
          out += fmt::format("{}/{}@{}", r.host, r.rank, r.step);
          for (const MetricValue& v : r.values) out += fmt::format(" {}={}", v.name, v.value);
          for (const MetricDigest& d : r.digests) out += fmt::format(" {}:{:x}", d.name, d.value);
          out += ";";
        }
        out += "]";
      },
      [&](const LoopEvent& e) {
        out += fmt::format("{}/{}", e.host, e.name);
        for (const EventField& f : e.fields) out += fmt::format(" {}={}", f.name, f.json);
      });
  return out;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(loop_batch)

BOOST_AUTO_TEST_CASE(rows_and_events_outlive_their_lines_in_the_order_in_which_they_came) {
  LoopBatch batch;
  for (int step = 0; step < 3; ++step) {
    // On the heap and overwritten: later code must not refer to it.
    auto name = std::make_unique<std::string>("a metric with a name that is long");
    auto digest = std::make_unique<std::string>("param");
    const MetricValue values[] = {{*name, 0.5 * step}, {"loss", 1}};
    const MetricDigest digests[] = {{*digest, 0xabcu}};
    MetricRow row;
    row.rank = 7, row.step = step, row.values = values;
    if (step == 1) row.digests = digests;
    batch.add(row);
    if (step == 0) {
      const EventField fields[] = {{"where", "\"same\""}, {"equal", "true"}};
      LoopEvent event;
      event.name = "replay", event.fields = fields, event.host = "other";
      batch.add(event);
    }
    *name = std::string(name->size(), 'x');
    *digest = "xxxxx";
  }
  batch.set_host("node-1");
  LoopBatch moved = std::move(batch);
  BOOST_TEST(reported(moved) ==
             "[node-1/7@0 a metric with a name that is long=0 loss=1;]other/replay where=\"same\" equal=true"
             "[node-1/7@1 a metric with a name that is long=0.5 loss=1 param:abc;"
             "node-1/7@2 a metric with a name that is long=1 loss=1;]");
  moved.clear();
  BOOST_TEST((moved.empty() && reported(moved).empty()));
}

BOOST_AUTO_TEST_SUITE_END()
