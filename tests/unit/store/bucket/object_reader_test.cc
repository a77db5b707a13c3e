#include "store/bucket/object_reader.h"

#include <boost/test/unit_test.hpp>

#include "../memory_files.h"
#include "store/bucket/sha256.h"

using namespace culprit;
using namespace culprit::store::bucket;
using culprit::store::testing::MemoryFiles;

BOOST_AUTO_TEST_CASE(the_cache_holds_its_size_keeps_what_is_used_and_trusts_no_byte) {
  MemoryFiles files;
  const auto text = [](char c) { return std::string(100, c); };
  const auto key = [](char c) { return std::string(1, c) + ".part"; };
  {
    ObjectCache cache(files, "/cache", 350);
    for (const char c : {'a', 'b', 'c'}) cache.put(key(c), text(c));
    BOOST_TEST(cache.get(key('a'), sha256(text('a'))).has_value());
    cache.put(key('d'), text('d'));  // b makes room
    BOOST_TEST(cache.bytes() == 300u);
    BOOST_TEST(!cache.get(key('b'), sha256(text('b'))).has_value());
    BOOST_TEST(cache.get(key('a'), sha256(text('a'))).value_or("") == text('a'));
    cache.put(key('x'), std::string(351, 'x'));
    BOOST_TEST(!cache.get(key('x'), sha256(std::string(351, 'x'))).has_value());
  }
  ObjectCache again(files, "/cache", 350);
  BOOST_TEST(again.bytes() == 300u);
  BOOST_TEST(again.get(key('c'), sha256(text('c'))).has_value());
  BOOST_TEST(
      !again.get(key('c'), sha256(text('x'))).has_value());  // other bytes than its row says: forgotten
  BOOST_TEST(again.bytes() == 200u);
}
