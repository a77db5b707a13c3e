// Jobs of collectors that share them, in lists of several servers.
#include "cli/shared_jobs.h"

#include <boost/test/unit_test.hpp>

namespace culprit::cli {
namespace {

Json item(const char* server, const char* cluster, const char* rest = R"("first_ns":10,"last_ns":90)") {
  return Json::parse(std::string(R"({"id":"j","server":")") + server + "\"" +
                     (*cluster ? std::string(R"(,"cluster":)") + cluster : std::string()) + "," + rest + "}");
}

std::string best_of(std::vector<Json> all) {
  Json::array_t items(all.begin(), all.end());
  keep_best(items);
  std::string out;
  for (const Json& one : items) out += one["server"].get<std::string>() + ";";
  return out;
}

constexpr const char* kOwner = R"({"member":"b","owner":true,"as_of_ns":null})";
constexpr const char* kOwn = R"({"member":"a","owner":false,"as_of_ns":null})";
constexpr const char* kOld = R"({"member":"b","owner":false,"as_of_ns":50})";
constexpr const char* kNew = R"({"member":"b","owner":false,"as_of_ns":60})";

BOOST_AUTO_TEST_SUITE(jobs_that_are_shared)

BOOST_AUTO_TEST_CASE(a_job_is_listed_once_and_its_owner_answers) {
  const struct {
    const char* what;
    std::vector<Json> items;
    const char* expected;
  } cases[] = {
      {"the owner wins", {item("A", kNew), item("B", kOwner), item("C", kOld)}, "B;"},
      {"then the newest", {item("A", kOld), item("C", kNew)}, "C;"},
      {"the same twice", {item("A", kNew), item("C", kNew)}, "A;"},
      {"then another's own", {item("A", kOwn), item("C", kOld)}, "C;"},
      {"an earlier run stays", {item("A", kOwn, R"("first_ns":1,"last_ns":9)"), item("B", kOwner)}, "A;B;"},
      {"runs of one collector stay",
       {item("A", kOwner, R"("first_ns":1,"last_ns":20)"), item("A", kOwner)},
       "A;A;"},
      {"without a cluster they are two jobs", {item("A", ""), item("B", "")}, "A;B;"},
      {"another cell's job stays", {item("A", ""), item("B", kOwner), item("C", kNew)}, "A;B;"},
  };
  for (const auto& c : cases) BOOST_TEST(best_of(c.items) == c.expected, c.what << ": " << best_of(c.items));
}

BOOST_AUTO_TEST_CASE(it_is_said_from_where_and_of_when_an_answer_is) {
  const auto text_of = [](const char* cluster) { return origin_text(item("A", cluster), Zone()); };
  BOOST_TEST(text_of("") == "");
  BOOST_TEST(text_of(kOwner) == "");
  BOOST_TEST(text_of(R"({"member":"b","as_of_ns":1763690000000000000})") ==
             "as of 2025-11-21 01:53:20, from b");
  BOOST_TEST(text_of(R"({"member":"b","as_of_ns":0,"database_away_since_ns":60000000000})") ==
             "as of 1970-01-01 00:00:00, from b; the database does not answer since 1970-01-01 00:01:00");
  BOOST_TEST(text_of(R"({"member":"b","as_of_ns":null,"unpublished_since_ns":60000000000})")
                 .starts_with("unpublished since 1970-01-01 00:01:00"));
  BOOST_TEST(as_of_field(item("A", ""), Zone()) == "");
  BOOST_TEST(as_of_field(item("A", kOwn), Zone()) == "now");
  BOOST_TEST(as_of_field(item("A", R"({"member":"b","as_of_ns":0})"), Zone()) ==
             "1970-01-01 00:00:00, from b");
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace culprit::cli
