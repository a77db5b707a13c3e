#include "core/loop_ranks.h"

#include <boost/test/unit_test.hpp>

#include "core/engine.h"

using namespace culprit;
using namespace culprit::core;

namespace {

MetricRow row_of(std::string_view host, uint32_t rank, TimeNs time = kNoTime) {
  MetricRow row;
  row.host = host, row.rank = rank, row.time_ns = time;
  return row;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(loop_ranks)

BOOST_AUTO_TEST_CASE(a_rank_is_where_it_reported_its_last_row_from) {
  LoopRanks ranks;
  ranks.add(row_of("node-0", 0, 20));
  ranks.add(row_of("node-1", 1, 10));
  ranks.add(row_of("", 2));
  ranks.add(row_of("node-2", 1, 30));
  ranks.add(row_of("", 1));
  BOOST_TEST((ranks.host_of(0) == "node-0" && ranks.host_of(1) == "node-2"));
  BOOST_TEST((!ranks.host_of(2) && !ranks.host_of(3)));
  JobSummary job;
  ranks.add_summary(job);
  BOOST_TEST((job.hosts == 3 && job.ranks == 3 && job.first_ns == 10 && job.last_ns == 30));
}

BOOST_AUTO_TEST_CASE(a_device_is_called_by_its_uuid_or_serial_number_where_its_loop_reported_it) {
  struct Case {
    const char *name, *key, *json;
    std::optional<std::string> device;
  };
  for (const Case& c : {Case{"device", "uuid", "\"GPU-1\"", "GPU-1"},
                        {"device", "serial", "123", "123"},
                        {"device", "uuid", "null", {}},
                        {"device", "uuid", "\"\"", {}},
                        {"device", "name", "\"H100\"", {}},
                        {"audit", "uuid", "\"GPU-1\"", {}}}) {
    LoopRanks ranks;
    const EventField fields[] = {{"of", "1"}, {c.key, c.json}};
    LoopEvent event;
    event.name = c.name, event.rank = 3, event.fields = fields;
    ranks.add(event);
    BOOST_TEST((ranks.device_of(3) == c.device), c.name << " " << c.key << " " << c.json);
  }
}

BOOST_AUTO_TEST_CASE(peers_hold_the_same_part_of_the_parameters) {
  JobFile job;
  BOOST_TEST(layout_of(job).peers.empty());
  // rank = tp + 2 * (dp + 2 * pp)
  job.parallel = Parallel{2, 2, 2, 1, 1};
  auto peers = layout_of(job).peers;
  BOOST_TEST(peers.size() == 8u);
  BOOST_TEST((peers[0] == peers[2] && peers[1] == peers[3] && peers[4] == peers[6]));
  BOOST_TEST((peers[0] != peers[1] && peers[0] != peers[4] && peers[1] != peers[5]));
  // Each of two expert shares has its own replicas; context ranks are replicas too.
  job.parallel = Parallel{1, 1, 2, 2, 2};
  peers = layout_of(job).peers;
  BOOST_TEST((peers[0] == peers[2] && peers[1] == peers[3] && peers[0] != peers[1]));
  job.parallel = Parallel{1u << 16, 1u << 16, 1u << 16, 1, 1};
  BOOST_TEST(layout_of(job).peers.empty());
}

BOOST_AUTO_TEST_CASE(metrics_alone_tell_a_jobs_size) {
  JobFile job;
  job.hosts = {"a", "b"};
  job.ranks_per_host = 2;
  Engine engine({job});
  const MetricRow rows[] = {row_of("", 0, 5), row_of("", 3, 9), row_of("c", 1, 7)};
  Input inputs[] = {MetricInput{rows}, NonLogRead{300, 3}};
  engine.step(inputs, kNoTime);
  const Report report = engine.report();
  BOOST_TEST((report.job.hosts == 3 && report.job.ranks == 3 && report.job.bytes == 300));
  BOOST_TEST((report.job.lines == 3 && report.job.first_ns == 5 && report.job.last_ns == 9));
  BOOST_TEST((!report.verdict && report.diagnoses.empty() && report.missing.empty()));
}

BOOST_AUTO_TEST_SUITE_END()
