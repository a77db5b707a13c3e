// Files, folders and links of several users below a folder of its own in /tmp, for tests of what others could
// change. Needs root. One thread.
#pragma once

#include <sys/stat.h>
#include <unistd.h>

#include <boost/test/unit_test.hpp>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "io/descriptors.h"

namespace culprit::testing {

// Files of several users, which needs root.
class UserTree {
 public:
  UserTree() {
    std::string name = "/tmp/culprit-path-XXXXXX";
    BOOST_REQUIRE(::mkdtemp(name.data()) != nullptr);
    path_ = name;
    BOOST_REQUIRE(::chmod(name.c_str(), 0755) == 0);
  }
  ~UserTree() { std::filesystem::remove_all(path_); }
  std::string operator/(const std::string& below) const { return path_ + "/" + below; }
  void folder(const std::string& below, uid_t owner, mode_t mode = 0755) const {
    BOOST_REQUIRE(::mkdir((*this / below).c_str(), 0755) == 0);
    set(below, owner, mode);
  }
  void file(const std::string& below, uid_t owner, mode_t mode = 0644) const {
    std::ofstream(*this / below) << "x";
    set(below, owner, mode);
  }
  void link(const std::string& below, const std::string& target, uid_t owner) const {
    BOOST_REQUIRE(::symlink(target.c_str(), (*this / below).c_str()) == 0);
    BOOST_REQUIRE(::lchown((*this / below).c_str(), owner, owner) == 0);
  }
  // "ok", or why it was not opened, with this folder's own path cut out.
  std::string told(const Result<int>& opened) const {
    if (opened) return io::Descriptor(*opened), "ok";
    std::string text = opened.error().text;
    for (size_t at; (at = text.find(path_)) != text.npos;) text.erase(at, path_.size());
    return text;
  }

 private:
  void set(const std::string& below, uid_t owner, mode_t mode) const {
    BOOST_REQUIRE(::lchown((*this / below).c_str(), owner, owner) == 0);
    BOOST_REQUIRE(::chmod((*this / below).c_str(), mode) == 0);
  }
  std::string path_;
};

inline bool is_root() {
  if (::geteuid() == 0) return true;
  BOOST_TEST_MESSAGE("passed over: needs root, to make files of other users");
  return false;
}

}  // namespace culprit::testing
