#include "store/bucket/s3.h"

#include <boost/test/unit_test.hpp>

#include "store/bucket/object.h"
#include "store/bucket/sha256.h"

using namespace culprit;
using namespace culprit::store::bucket;

BOOST_AUTO_TEST_CASE(a_request_names_its_bucket_in_the_path_or_in_the_host_and_sorts_its_query) {
  const Place path{"https://s3.example:9000/", "evidence", "eu-1", false};
  Place host = path;
  host.host_style = true;
  const struct {
    Place place;
    Asked asked;
    const char* url;
  } rows[] = {
      {path, {"PUT", "v1/a/1.cul", {}, "00", {}}, "https://s3.example:9000/evidence/v1/a/1.cul"},
      {host, {"PUT", "v1/a/1.cul", {}, "00", {}}, "https://evidence.s3.example:9000/v1/a/1.cul"},
      {path,
       {"GET", "", {{"prefix", "v1/a/"}, {"list-type", "2"}}, "00", {}},
       "https://s3.example:9000/evidence?list-type=2&prefix=v1%2Fa%2F"},
      {host,
       {"GET", "", {{"start-after", "a b"}}, "00", {}},
       "https://evidence.s3.example:9000/?start-after=a%20b"},
  };
  for (const auto& row : rows) BOOST_TEST(request_of(row.place, {"k", "s", ""}, row.asked).url == row.url);
}

BOOST_AUTO_TEST_CASE(a_request_has_the_hash_of_its_body_its_range_and_the_token_of_a_session) {
  const Place place{"http://h", "bbb", "r", false};
  const auto put = request_of(place, {"k", "s:s", "t"}, {"PUT", "a", {}, "abcd", {}});
  const std::vector<std::string> of_put{"x-amz-content-sha256: abcd", "x-amz-security-token: t",
                                        "Content-Type: application/octet-stream"};
  BOOST_TEST(put.headers == of_put, boost::test_tools::per_element());
  BOOST_TEST(put.method == "PUT");
  BOOST_REQUIRE(put.signature.has_value());
  BOOST_TEST(put.signature->secret == "s:s");
  BOOST_TEST(put.signature->region == "r");
  const auto get = request_of(place, {"k", "s", ""}, {"GET", "a", {}, "00", "5-9"});
  const std::vector<std::string> of_get{"x-amz-content-sha256: 00", "Range: bytes=5-9"};
  BOOST_TEST(get.headers == of_get, boost::test_tools::per_element());
  BOOST_TEST(get.method == "");
}

BOOST_AUTO_TEST_CASE(keys_have_characters_that_all_servers_sign_alike) {
  for (const char* good : {"v1/0123456789abcdef/0000000001-000000000001.cul", "A_b.c-d"})
    BOOST_TEST(is_key(good), good);
  for (const char* bad : {"", "/a", "a b", "a+b", "a=b", "a/../b", "a%20", "\xc3\xa4"})
    BOOST_TEST(!is_key(bad), bad);
  BOOST_TEST(is_key(key_of({~uint64_t{0}, 12, 34})));
  BOOST_TEST(key_of({0xab, 12, 34}) == "v1/00000000000000ab/0000000012-000000000034.cul");
  BOOST_TEST(key_of({1, 2, 9'999}) < key_of({1, 10, 1}));  // a list is in the order of epochs
}

BOOST_AUTO_TEST_CASE(credentials_are_those_of_the_default_profile) {
  const auto plain = parse_credentials("aws_access_key_id=K\naws_secret_access_key = S=1\n", "f");
  BOOST_REQUIRE(plain.has_value());
  BOOST_TEST((plain->key == "K" && plain->secret == "S=1" && plain->token.empty()));
  const auto profiles = parse_credentials(
      "[other]\naws_access_key_id = X\r\n[default]\r\n# no\naws_access_key_id = K\r\n"
      "aws_secret_access_key = S\r\naws_session_token = T\n[last]\naws_secret_access_key = Y\n",
      "f");
  BOOST_REQUIRE(profiles.has_value());
  BOOST_TEST((profiles->key == "K" && profiles->secret == "S" && profiles->token == "T"));
  for (const char* bad :
       {"", "aws_access_key_id = K\n", "[x]\naws_access_key_id=K\naws_secret_access_key=S\n"})
    BOOST_TEST(!parse_credentials(bad, "f").has_value(), bad);
}

BOOST_AUTO_TEST_CASE(an_error_of_a_server_is_its_code_and_message) {
  const auto error = parse_error(
      "<?xml version='1.0' encoding='UTF-8'?>\n<Error><Code>SignatureDoesNotMatch</Code><Message>a &lt;b&gt; "
      "&amp; c</Message><RequestId>tx</RequestId></Error>");
  BOOST_TEST(error.code == "SignatureDoesNotMatch");
  BOOST_TEST(error.message == "a <b> & c");
  for (const char* none : {"", "<html>", "<Error>", "<Error><Code>", "<Code>A</Code>"})
    BOOST_TEST(parse_error(none).code == "", none);
}

BOOST_AUTO_TEST_CASE(a_list_is_its_keys_and_whether_more_follow) {
  const auto listing = parse_listing(
      "<ListBucketResult xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\"><Name>b</Name>"
      "<IsTruncated>true</IsTruncated><Contents><Key>a/1</Key><Size>3</Size></Contents>"
      "<Contents><Key>a/2</Key></Contents></ListBucketResult>");
  BOOST_REQUIRE(listing.has_value());
  const std::vector<std::string> keys{"a/1", "a/2"};
  BOOST_TEST(listing->keys == keys, boost::test_tools::per_element());
  BOOST_TEST(listing->more);
  BOOST_TEST(parse_listing("<ListBucketResult/>")->keys.empty());
  BOOST_TEST(!parse_listing("<Error><Code>NoSuchBucket</Code></Error>").has_value());
}

BOOST_AUTO_TEST_CASE(sha256_is_that_of_the_standard) {
  BOOST_TEST(hex(sha256("")) == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  BOOST_TEST(hex(sha256("abc")) == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}
