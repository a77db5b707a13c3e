#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <boost/test/unit_test.hpp>
#include <filesystem>

#include "failing_files.h"
#include "fixtures.h"

using namespace culprit;
using namespace culprit::io;
using namespace culprit::io::testing;

BOOST_AUTO_TEST_SUITE(files)

namespace {

std::string content(FileHandle& file) {
  std::string bytes(1 << 16, '\0');
  const auto n = file.read_at(bytes.data(), bytes.size(), 0);
  BOOST_REQUIRE(n);
  bytes.resize(*n);
  return bytes;
}

std::unique_ptr<FileHandle> opened(Files& files, const std::string& path, OpenFor what) {
  auto file = files.open(path, what);
  BOOST_REQUIRE_MESSAGE(file, (file ? "" : file.error().text));
  return std::move(*file);
}

mode_t mode_of(const std::string& path) {
  struct stat status;
  BOOST_REQUIRE_EQUAL(::stat(path.c_str(), &status), 0);
  return status.st_mode & 07777;
}

}  // namespace

BOOST_AUTO_TEST_CASE(what_is_appended_is_read_again_over_opening_and_truncation) {
  Folder folder;
  Files& files = real_files();
  auto file = opened(files, folder / "f", OpenFor::kCreate);
  BOOST_TEST(mode_of(folder / "f") == mode_t(0600));
  BOOST_REQUIRE(file->append("hello "));
  BOOST_REQUIRE(file->append("world"));
  BOOST_REQUIRE(file->append(""));
  BOOST_REQUIRE(file->sync());
  BOOST_TEST(content(*file) == "hello world");
  file.reset();
  BOOST_TEST(!files.open(folder / "f", OpenFor::kCreate).has_value());
  file = opened(files, folder / "f", OpenFor::kAppend);
  BOOST_REQUIRE(file->truncate(5));
  BOOST_REQUIRE(file->append("!"));
  BOOST_TEST(content(*opened(files, folder / "f", OpenFor::kRead)) == "hello!");
  const auto status = file->status();
  BOOST_REQUIRE(status);
  BOOST_TEST(status->size == 6u);
  struct stat direct;
  ::stat((folder / "f").c_str(), &direct);
  BOOST_TEST(status->inode == direct.st_ino);
  BOOST_TEST(status->device == direct.st_dev);
  BOOST_TEST(status->modified_ns == direct.st_mtim.tv_sec * kNsPerSecond + direct.st_mtim.tv_nsec);
}

BOOST_AUTO_TEST_CASE(reading_gives_less_only_at_the_end) {
  Folder folder;
  auto file = opened(real_files(), folder / "f", OpenFor::kCreate);
  BOOST_REQUIRE(file->append("0123456789"));
  char out[8];
  const struct {
    uint64_t offset;
    size_t size, gives;
  } cases[] = {{0, 8, 8}, {4, 8, 6}, {10, 8, 0}, {100, 8, 0}, {3, 0, 0}};
  for (const auto& row : cases) {
    const auto n = file->read_at(out, row.size, row.offset);
    BOOST_REQUIRE(n);
    BOOST_TEST(*n == row.gives);
  }
}

BOOST_AUTO_TEST_CASE(a_handle_is_not_inherited_by_programs_that_are_started) {
  Folder folder;
  auto file = opened(real_files(), folder / "f", OpenFor::kCreate);
  int found = 0;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    std::error_code removed;
    if (std::filesystem::read_symlink(entry.path(), removed) != folder / "f") continue;
    ++found;
    BOOST_TEST((::fcntl(std::stoi(entry.path().filename()), F_GETFD) & FD_CLOEXEC) != 0);
  }
  BOOST_TEST(found == 1);
}

BOOST_AUTO_TEST_CASE(a_folder_is_made_with_those_above_it_for_its_owner_alone) {
  Folder folder;
  Files& files = real_files();
  BOOST_REQUIRE(files.make_folder(folder / "a/b/c"));
  BOOST_REQUIRE(files.make_folder(folder / "a/b/c"));
  BOOST_REQUIRE(files.make_folder(folder / "a/b/d/"));
  for (const char* name : {"a", "a/b", "a/b/c", "a/b/d"}) BOOST_TEST(mode_of(folder / name) == mode_t(0700));
  auto file = opened(files, folder / "f", OpenFor::kCreate);
  const Status status = files.make_folder(folder / "f/x");
  BOOST_REQUIRE(!status);
  BOOST_TEST(status.error().text == (folder / "f") + ": is there already and is no folder");
}

BOOST_AUTO_TEST_CASE(names_are_listed_in_order_and_moved_and_removed) {
  Folder folder;
  Files& files = real_files();
  for (const char* name : {"b", "a", ".c"}) opened(files, folder / name, OpenFor::kCreate);
  BOOST_TEST(*files.list(folder.path) == (std::vector<std::string>{".c", "a", "b"}),
             boost::test_tools::per_element());
  BOOST_REQUIRE(files.rename(folder / "b", folder / "a"));
  BOOST_REQUIRE(files.remove(folder / ".c"));
  BOOST_REQUIRE(files.sync_folder(folder.path));
  BOOST_TEST(*files.list(folder.path) == std::vector<std::string>{"a"}, boost::test_tools::per_element());
  const auto disk = files.space(folder.path);
  BOOST_REQUIRE(disk);
  BOOST_TEST(disk->free > 0u);
  BOOST_TEST(disk->used > 0u);
}

BOOST_AUTO_TEST_CASE(each_refusal_names_the_path_and_the_reason) {
  Folder folder;
  Files& files = real_files();
  const std::string none = folder / "none", reason = ": no such file or directory";
  std::vector<std::pair<Error, std::string>> reported;
  reported.emplace_back(files.open(none, OpenFor::kRead).error(), none + reason);
  reported.emplace_back(files.open(none, OpenFor::kAppend).error(), none + reason);
  reported.emplace_back(files.rename(none, none + "2").error(), none + " to " + none + "2" + reason);
  reported.emplace_back(files.remove(none).error(), none + reason);
  reported.emplace_back(files.list(none).error(), none + reason);
  reported.emplace_back(files.sync_folder(none).error(), none + reason);
  reported.emplace_back(files.space(none).error(), none + reason);
  for (const auto& [error, text] : reported) {
    BOOST_TEST(error.text == text);
    BOOST_TEST((error.code == ErrorCode::kNotFound));
  }
  auto file = opened(files, none, OpenFor::kCreate);
  auto reader = opened(files, none, OpenFor::kRead);
  BOOST_TEST(reader->append("x").error().text == none + ": bad file descriptor");
  BOOST_TEST(reader->truncate(0).error().text == none + ": invalid argument");
}

BOOST_AUTO_TEST_CASE(a_write_that_a_limit_cuts_short_is_an_error) {
  Folder folder;
  auto file = opened(real_files(), folder / "f", OpenFor::kCreate);
  // The limit of the file size needs no disk: the first write is partial.
  rlimit before;
  ::getrlimit(RLIMIT_FSIZE, &before);
  const rlimit small = {10, before.rlim_max};
  ::signal(SIGXFSZ, SIG_IGN);
  ::setrlimit(RLIMIT_FSIZE, &small);
  const Status status = file->append("0123456789abcdef");
  ::setrlimit(RLIMIT_FSIZE, &before);
  BOOST_REQUIRE(!status);
  BOOST_TEST(status.error().text == (folder / "f") + ": file too large");
  BOOST_TEST(content(*file) == "0123456789");
}

BOOST_AUTO_TEST_CASE(failing_files_fail_where_they_are_asked_to) {
  Folder folder;
  FailingFiles files;
  auto file = opened(files, folder / "f", OpenFor::kCreate);
  BOOST_TEST(files.calls() == 1u);
  files.fail(2, ENOSPC);
  BOOST_TEST(file->append("a").has_value());
  BOOST_TEST(file->append("b").error().text == (folder / "f") + ": no space left on device");
  BOOST_TEST(file->append("c").has_value());
  files.fail("sync", 1, EIO, true);
  BOOST_TEST(file->append("d").has_value());
  BOOST_TEST(!file->sync().has_value());
  BOOST_TEST(!file->sync().has_value());
  files.heal();
  BOOST_TEST(file->sync().has_value());
  files.tear(2, 3, EIO);
  BOOST_TEST(file->append("e").has_value());
  BOOST_TEST(!file->append("12345").has_value());
  BOOST_TEST(content(*file) == "acde123");
  files.fail(1, EIO, true);
  BOOST_TEST(!files.list(folder.path).has_value());
  BOOST_TEST(!files.space(folder.path).has_value());
}

BOOST_AUTO_TEST_SUITE_END()
