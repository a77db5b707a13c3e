// The interface of plugins over versions: a host of this version and one of the next minor version, each with
// a plugin built for this one and one built for the next.
#include <boost/test/data/test_case.hpp>

#include "../../unit/plughost/fixture.h"

namespace culprit::plughost::testing {
namespace {

struct Side {
  const char* file;
  int minor;
};
std::ostream& operator<<(std::ostream& out, const Side& side) { return out << "1." << side.minor; }

constexpr int kNow = CULPRIT_ABI_MINOR;
const Side kHosts[] = {{CULPRIT_TEST_PLUGIN_HOST, kNow}, {CULPRIT_TEST_PLUGIN_HOST_11, kNow + 1}};
const Side kPlugins[] = {{CULPRIT_TEST_MATRIX, kNow}, {CULPRIT_TEST_MATRIX_11, kNow + 1}};

BOOST_DATA_TEST_CASE(a_host_and_a_plugin_of_different_minor_versions_work_together,
                     boost::unit_test::data::make(kHosts) * boost::unit_test::data::make(kPlugins), host,
                     plugin) {
  World world;
  world.host_program = host.file;
  world.table.name = "matrix";
  std::filesystem::remove(world.plugin_folder() + "/actor.so");
  world.install(plugin.file, "matrix");
  world.begin();
  world.until_state("running", "matrix");
  EventWriter writer;
  const EventHead head{CULPRIT_EVENT_LOG, 77, "job-1", "node-1", "x", 5, 2};
  for (const char* text : {"first", "second", "third"}) writer.line(head, text, text, {}, 1);
  world.plugins->observe(writer.take());
  const PluginFinding found = world.finding("matrix.seen");
  BOOST_TEST(found.title == "a title");
  BOOST_TEST(found.text == "third");
  BOOST_TEST(found.job == "job-1");
  BOOST_TEST(found.host == "node-1");
  BOOST_TEST(found.rank.value() == 5u);
  BOOST_TEST(found.device.value() == 2u);
  BOOST_TEST(found.time_ns == 77);
  BOOST_TEST(found.confidence == .25);
  BOOST_REQUIRE_EQUAL(found.values.size(), 3u);
  BOOST_TEST(found.values[0].second == plugin.minor);
  // A plugin sees the new members only where both sides know them.
  BOOST_TEST(found.values[1].second == (host.minor > kNow && plugin.minor > kNow ? 3 : 0));
  BOOST_TEST(found.values[2].second == 3);
}

}  // namespace
}  // namespace culprit::plughost::testing
