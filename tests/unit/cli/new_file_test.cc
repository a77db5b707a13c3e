// Files that the command line writes, in folders where others write too.
#include "cli/new_file.h"

#include <sys/stat.h>

#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <vector>

using namespace culprit;
using namespace culprit::cli;

namespace {

class NewFileFolder {
 public:
  NewFileFolder() {
    std::string name = (std::filesystem::temp_directory_path() / "culprit-new-file-XXXXXX").string();
    BOOST_REQUIRE(::mkdtemp(name.data()) != nullptr);
    path_ = name;
  }
  NewFileFolder(const NewFileFolder&) = delete;
  ~NewFileFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  std::string path(const std::string& name) const { return path_ + "/" + name; }
  std::vector<std::string> names() const {
    std::vector<std::string> out;
    for (const auto& entry : std::filesystem::directory_iterator(path_))
      out.push_back(entry.path().filename().string());
    std::sort(out.begin(), out.end());
    return out;
  }
  std::string content(const std::string& name) const {
    std::ifstream file(path(name), std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }

 private:
  std::string path_;
};

}  // namespace

BOOST_AUTO_TEST_SUITE(new_file)

BOOST_AUTO_TEST_CASE(an_unfinished_file_leaves_nothing_and_the_old_one_stays) {
  NewFileFolder folder;
  std::ofstream(folder.path("a")) << "old";
  {
    auto file = NewFile::create(folder.path("a"), 0600);
    BOOST_REQUIRE(file.has_value());
    BOOST_TEST(file->write("new").has_value());
    BOOST_TEST(folder.names().size() == 2u);
  }
  BOOST_TEST((folder.names() == std::vector<std::string>{"a"}));
  BOOST_TEST(folder.content("a") == "old");
}

BOOST_AUTO_TEST_CASE(a_finished_file_replaces_the_old_one_with_its_own_mode) {
  NewFileFolder folder;
  std::ofstream(folder.path("a")) << "old";
  auto file = NewFile::create(folder.path("a"), 0600);
  BOOST_REQUIRE(file.has_value());
  BOOST_TEST((file->write("ne").has_value() && file->write("w").has_value() && file->finish().has_value()));
  BOOST_TEST((folder.names() == std::vector<std::string>{"a"}));
  BOOST_TEST(folder.content("a") == "new");
  struct stat info {};
  BOOST_REQUIRE(::stat(folder.path("a").c_str(), &info) == 0);
  BOOST_TEST((info.st_mode & 0777) == 0600u);
}

BOOST_AUTO_TEST_CASE(a_link_in_place_of_the_file_is_replaced_and_not_followed) {
  NewFileFolder folder;
  std::ofstream(folder.path("precious")) << "x";
  std::filesystem::create_symlink("precious", folder.path("a"));
  std::filesystem::create_symlink("precious", folder.path("a.part"));
  auto file = NewFile::create(folder.path("a"), 0600);
  BOOST_REQUIRE(file.has_value());
  BOOST_TEST((file->write("new").has_value() && file->finish().has_value()));
  BOOST_TEST(folder.content("precious") == "x");
  BOOST_TEST(!std::filesystem::is_symlink(folder.path("a")));
}

BOOST_AUTO_TEST_CASE(a_failure_names_the_path_and_leaves_nothing) {
  NewFileFolder folder;
  std::filesystem::create_directory(folder.path("is_a_folder"));
  {
    auto file = NewFile::create(folder.path("is_a_folder"), 0600);
    BOOST_REQUIRE(file.has_value());
    const Status finished = file->finish();
    BOOST_REQUIRE(!finished.has_value());
    BOOST_TEST(finished.error().text.starts_with(folder.path("is_a_folder") + ": "));
  }
  BOOST_TEST((folder.names() == std::vector<std::string>{"is_a_folder"}));
  BOOST_TEST(!NewFile::create(folder.path("missing/a"), 0600).has_value());
  BOOST_TEST(!NewFile::create(folder.path(""), 0600).has_value());
}

BOOST_AUTO_TEST_SUITE_END()
