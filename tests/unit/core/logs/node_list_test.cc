#include "core/logs/node_list.h"

#include <fmt/ranges.h>

#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>

namespace culprit::logs {
namespace {

struct Listed {
  std::string line, hosts;
};
std::ostream& operator<<(std::ostream& out, const Listed& l) { return out << l.line; }

const Listed kLines[] = {
    {"SLURM_JOB_NODELIST=n[01-03],m7", "n01 n02 n03 m7"},
    {"export SLURM_NODELIST='gpu-[8-9,12]'", "gpu-8 gpu-9 gpu-12"},
    {"SLURM_JOB_NODELIST: rack[1-2]node[1-2]", "rack1node1 rack1node2 rack2node1 rack2node2"},
    {"SLURM_JOB_NODELIST=", ""},
    {"SLURM_JOB_NODELIST is not set", ""},
    {"SLURM_JOB_NODELIST=n[3-1]", ""},
    {"SLURM_JOB_NODELIST=n[1-", ""},
    {"SLURM_JOB_NODELIST=n[0-999999999]", ""},
    {"SLURM_JOB_NODELIST=n[0-999][0-999]", ""},
    {"NODELIST=a,b", ""},
};

}  // namespace

BOOST_AUTO_TEST_SUITE(node_list)

BOOST_DATA_TEST_CASE(a_line_with_the_schedulers_list_names_the_hosts_of_the_job,
                     boost::unit_test::data::make(kLines)) {
  BOOST_TEST(fmt::format("{}", fmt::join(nodes_listed_in(sample.line), " ")) == sample.hosts);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace culprit::logs
