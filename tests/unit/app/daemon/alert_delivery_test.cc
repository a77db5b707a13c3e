// What is refused before anything is sent.
#include "app/daemon/alerts/alert_delivery.h"

#include <sys/stat.h>

#include <boost/test/unit_test.hpp>

#include "../fixtures.h"

using namespace culprit;
using namespace culprit::app;

namespace {

std::string secret(const test::Folder& folder, const std::string& name, const std::string& text) {
  const std::string path = folder.write(name, text);
  BOOST_REQUIRE_EQUAL(::chmod(path.c_str(), 0600), 0);
  return path;
}

std::string refusal(const std::string& url, bool with_headers) {
  const test::Folder folder;
  AlertConfig to;
  to.name = "a";
  to.url_file = secret(folder, "url", url + "\n");
  if (with_headers) to.headers_file = secret(folder, "headers", "Authorization: Bearer t0ken\n");
  const std::string why = trouble_of(to);
  return why.starts_with(to.url_file) ? why.substr(to.url_file.size()) : why;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(alert_delivery)

BOOST_AUTO_TEST_CASE(an_address_from_a_file_shows_no_secret_on_the_way) {
  BOOST_CHECK_EQUAL(refusal("http://hooks.example/x", true),
                    ": its http address would show the secrets on the way: use https");
  BOOST_CHECK_EQUAL(refusal("http://hooks.example/x", false), "");
  BOOST_CHECK_EQUAL(refusal("https://hooks.example/x", true), "");
  BOOST_CHECK_EQUAL(refusal("http://127.0.0.1:9093", true), "");
  BOOST_CHECK_EQUAL(refusal("http://[::1]/x", true), "");
  BOOST_CHECK_EQUAL(refusal("http://127.0.0.1.example/x", true),
                    ": its http address would show the secrets on the way: use https");
}

BOOST_AUTO_TEST_SUITE_END()
