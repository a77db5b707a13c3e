// What is made of a report for the database. With a database: tests/e2e/shared_parts.cc.
#include "store/postgres/report_store.h"

#include <boost/test/unit_test.hpp>

using namespace culprit;
using namespace culprit::store::postgres;

BOOST_AUTO_TEST_SUITE(report_store)

BOOST_AUTO_TEST_CASE(a_report_is_the_same_after_it_was_packed) {
  std::string text = "{\"schema\":\"culprit.report/1\"";
  for (int i = 0; i < 1000; ++i) text += ",\"line" + std::to_string(i) + "\":\"x\"";
  const std::string packed = pack_report(text);
  BOOST_TEST(packed.size() < text.size() / 3);
  BOOST_TEST((unpack_report(packed) == text));
}

BOOST_AUTO_TEST_CASE(what_is_damaged_or_too_large_is_not_unpacked) {
  const std::string packed = pack_report(std::string(100'000, 'a') + "b");
  BOOST_TEST(!unpack_report("").has_value());
  BOOST_TEST(!unpack_report("no frame").has_value());
  BOOST_TEST(!unpack_report(packed.substr(0, packed.size() - 3)).has_value());
  BOOST_TEST(!unpack_report(pack_report(std::string(kReportBytes + 1, 'a'))).has_value());
}

BOOST_AUTO_TEST_CASE(any_id_of_a_job_is_a_key) {
  const std::pair<std::string, std::string> same[] = {{"train", "train"},
                                                      {"ml/\"llama\" {1,2}\\", "ml/\"llama\" {1,2}\\"}};
  for (const auto& [id, key] : same) BOOST_TEST(report_key(id) == key);
  const std::string nul("a\0b", 3), lengthy(2000, 'x');
  for (const std::string& id : {nul, lengthy, std::string("\xff")}) {
    const std::string key = report_key(id);
    BOOST_TEST(key.size() <= 500u);
    BOOST_TEST((key.find('\0') == key.npos));
    BOOST_TEST(report_key(id) == key);
  }
  BOOST_TEST(report_key(lengthy) != report_key(lengthy + "y"));
}

BOOST_AUTO_TEST_CASE(a_database_that_is_away_is_an_error) {
  ReportStore store("host=127.0.0.1 port=9 user=culprit", "a");
  BOOST_TEST(!store.put({}, {3, 1}).has_value());
  BOOST_TEST(!store.keys().has_value());
}

BOOST_AUTO_TEST_SUITE_END()
