#define BOOST_TEST_MODULE culprit
#include <boost/test/unit_test.hpp>
