// A file in parts: the oldest one goes when another begins.
#include "store/parts_file.h"

#include <unistd.h>

#include <boost/test/unit_test.hpp>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

using namespace culprit;
using namespace culprit::store;

namespace {

struct PartsFolder {
  PartsFolder() {
    char name[] = "/tmp/culprit-parts-XXXXXX";
    BOOST_REQUIRE(::mkdtemp(name) != nullptr);
    path = name;
  }
  ~PartsFolder() { std::filesystem::remove_all(path); }
  std::string path;
};

std::string text_of_part(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

}  // namespace

BOOST_AUTO_TEST_CASE(a_file_in_parts_keeps_the_newest_ones) {
  const PartsFolder folder;
  PartsFile file(folder.path + "/x", 3);
  BOOST_TEST(file.append("a").has_value());
  BOOST_TEST(file.append("b").has_value());
  for (const char* text : {"c", "d", "e"}) {
    BOOST_TEST(file.begin_part().has_value());
    BOOST_TEST(file.append(text).has_value());
  }
  BOOST_TEST(text_of_part(file.part(0)) == "e");
  BOOST_TEST(text_of_part(file.part(1)) == "d");
  BOOST_TEST(text_of_part(file.part(2)) == "c");
  BOOST_TEST(!std::filesystem::exists(file.part(3)));
  using Perms = std::filesystem::perms;
  const Perms others = Perms::group_all | Perms::others_all;
  const Perms perms = std::filesystem::status(file.part(0)).permissions();
  BOOST_TEST(((perms & others) == Perms::none));
}

BOOST_AUTO_TEST_CASE(a_file_in_parts_follows_no_link_and_says_what_failed) {
  const PartsFolder folder;
  PartsFile file(folder.path + "/x", 2);
  std::filesystem::create_symlink(folder.path + "/y", folder.path + "/x");
  const Status status = file.append("a");
  BOOST_REQUIRE(!status.has_value());
  BOOST_TEST(status.error().text.find(folder.path + "/x: ") == 0u);
  BOOST_TEST(!std::filesystem::exists(folder.path + "/y"));
  BOOST_TEST(!PartsFile(folder.path + "/missing/x", 2).append("a").has_value());
}
