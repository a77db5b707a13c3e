// Keys of the cluster's ledger. With a database: tests/e2e/shared_parts.cc.
#include "store/postgres/ledger_store.h"

#include <boost/test/unit_test.hpp>
#include <set>

using namespace culprit::store::postgres;

BOOST_AUTO_TEST_SUITE(ledger_of_members)

BOOST_AUTO_TEST_CASE(any_name_is_a_key_of_its_own_that_the_database_takes) {
  BOOST_TEST(ledger_key("slurm/4711") == "slurm/4711");
  const std::string names[] = {
      "a\xff", "a\xfe", std::string("a\0", 2), std::string(5000, 'a'), std::string(5001, 'a'), "a"};
  std::set<std::string> keys;
  for (const std::string& name : names) {
    const std::string key = ledger_key(name);
    BOOST_TEST(key.size() <= 500u);
    BOOST_TEST(key.find('\0') == key.npos);
    keys.insert(key);
  }
  BOOST_TEST(keys.size() == std::size(names));
}

BOOST_AUTO_TEST_SUITE_END()
