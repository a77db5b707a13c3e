#include "core/diagnose/confidence.h"

#include <boost/test/unit_test.hpp>

using namespace culprit;
using namespace culprit::diagnose;

BOOST_AUTO_TEST_CASE(a_sign_that_leaves_open_who_acts_says_no_more_than_a_catch_all) {
  Finding known;
  known.rule = "a.rule";
  known.role = FindingRole::kRoot;
  known.category = Category::kHardware;
  known.fatal = true;
  Finding general = known, open = known, cascade = known;
  general.general = true;
  open.category = Category::kUnknown;
  cascade.role = FindingRole::kCascade;
  BOOST_TEST(confidence_of_rule(open) == confidence_of_rule(general));
  BOOST_TEST(confidence_of_rule(general) < confidence_of_rule(known));
  BOOST_TEST(confidence_of_rule(cascade) < confidence_of_rule(general));
}
