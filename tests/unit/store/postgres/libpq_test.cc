// What store/postgres declares of libpq itself, and what it says without a database.
#include <boost/test/unit_test.hpp>

#if __has_include(<postgresql/libpq-fe.h>)
#include <postgresql/libpq-fe.h>
static_assert(CONNECTION_OK == 0 && PGRES_POLLING_FAILED == 0 && PGRES_POLLING_READING == 1 &&
              PGRES_POLLING_WRITING == 2 && PGRES_POLLING_OK == 3 && PGRES_COMMAND_OK == 1 &&
              PGRES_TUPLES_OK == 2);
#endif

#include "store/postgres/cluster_store.h"

using namespace culprit;
using namespace culprit::store::postgres;

BOOST_AUTO_TEST_CASE(a_database_that_is_away_is_an_error_within_the_limit) {
  ClusterStore store({"host=127.0.0.1 port=9 user=culprit", "a", "a:1"});
  const auto answer = store.round({});
  BOOST_REQUIRE(!answer);
  BOOST_TEST(!answer.error().text.empty());
}

BOOST_AUTO_TEST_CASE(without_a_connection_nothing_is_reserved) {
  ClusterStore store({"host=127.0.0.1 port=9 user=culprit", "a", "a:1"});
  const auto done = store.reserve({"isolate n1", "o", "4711", "isolate", "n1", "d-0001", {3, 1}, "", false});
  BOOST_REQUIRE(!done);
  BOOST_TEST(done.error().text == "there is no connection to the database");
}
