#include "ingest/live/watch_glob.h"

#include <boost/test/unit_test.hpp>

#include "ingest/live/rotated_name.h"

using namespace culprit;
using namespace culprit::ingest;

BOOST_AUTO_TEST_SUITE(watch_glob)

BOOST_AUTO_TEST_CASE(a_pattern_takes_what_a_shell_would) {
  struct Case {
    const char *pattern, *below;
    bool takes;
  };
  const Case cases[] = {
      {"/r/*.log", "a.log", true},
      {"/r/*.log", "a.logs", false},
      {"/r/*.log", "sub/a.log", false},
      {"/r/*.log", ".a.log", false},
      {"/r/.*.log", ".a.log", true},
      {"/r/**/*.log", "a.log", true},
      {"/r/**/*.log", "a/b/c.log", true},
      {"/r/**/*.log", ".a/c.log", false},
      {"/r/**/x/*.log", "a/x/b.log", true},
      {"/r/**/x/*.log", "a/b.log", false},
      {"/r/**", "a/b", true},
      {"/r/job?/r[0-9].log", "job1/r7.log", true},
      {"/r/r[!0-9].log", "r7.log", false},
      {"/r/r[]x].log", "r].log", true},
      {"/r/{a,b{c,d}}.log", "bd.log", true},
      {"/r/{a,b{c,d}}.log", "b.log", false},
      {"/r/{x/y,z}/*", "x/y/1", true},
      {"/r/[a", "[a", true},
      {"/r/a*b*c", "aXbbXc", true},
      {"/r/a*b*c", "aXbbX", false},
  };
  for (const Case& one : cases) {
    const auto glob = WatchGlob::parse(one.pattern);
    BOOST_REQUIRE(glob.has_value());
    BOOST_CHECK_EQUAL(glob->root(), "/r");
    BOOST_CHECK_MESSAGE(glob->takes_path(one.below) == one.takes, one.pattern << " on " << one.below);
  }
}

BOOST_AUTO_TEST_CASE(a_pattern_that_is_none_is_an_error_that_names_it) {
  for (const std::string pattern :
       {"a.log", "/r/", "/r/../x", "/r/*/../x", "", "/{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}"}) {
    const auto glob = WatchGlob::parse(pattern);
    BOOST_REQUIRE_MESSAGE(!glob.has_value(), pattern);
    BOOST_CHECK(glob.error().text.find("\"" + pattern + "\"") != std::string::npos);
  }
}

BOOST_AUTO_TEST_CASE(a_hostile_name_costs_no_more_than_its_length_times_the_pattern) {
  // Backtracking into every star would not end in a reasonable time.
  BOOST_CHECK(!name_matches("*a*a*a*a*a*a*a*a*a*a*b", std::string(255, 'a')));
}

BOOST_AUTO_TEST_CASE(rotated_names_tell_their_base) {
  struct Case {
    const char *name, *base;
  };
  const Case cases[] = {
      {"x.log.1", "x.log"},
      {"x.log-20261121", "x.log"},
      {"x.log.2026-11-21_02-00-00", "x.log"},
      {"x.1.log", "x.log"},
      {"x-2026-11-21.log", "x.log"},
      {"x.log.old", "x.log"},
      {"x.log.12.gz", "x.log"},
      {"x.log-20261121.zst", "x.log"},
      {"x-2026-11-21-1.log.xz", "x.log"},
      {"x.log.1a", ""},
      {"x.log", ""},
      {"rank-a.log", ""},
  };
  for (const Case& one : cases) {
    const auto forms = rotated_forms(one.name);
    const bool found = std::any_of(forms.begin(), forms.end(), [&](const RotatedName& form) {
      return form.base == one.base && !form.mark.empty();
    });
    BOOST_CHECK_MESSAGE(found == (*one.base != '\0'), one.name);
  }
}

BOOST_AUTO_TEST_SUITE_END()
