// The record of advice in the folder of the rings: who can read it, how it changes, and what a hostile user
// of the host can do to it.
#include "respond/advice_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <boost/test/unit_test.hpp>

#include <filesystem>
#include <fstream>
#include <functional>
#include <sstream>

#include "culprit/advice.h"

using namespace culprit;

namespace {

constexpr uint32_t kNobody = 65534;

struct Rings {
  Rings() {
    char made[] = "/dev/shm/culprit-advice-XXXXXX";
    BOOST_REQUIRE(::mkdtemp(made) != nullptr);
    path = made;
    BOOST_REQUIRE(::chmod(made, 03777) == 0);
  }
  ~Rings() { std::filesystem::remove_all(path); }
  Result<uint64_t> put(uint64_t id, uint32_t uid = ::geteuid(), const std::string& job = "llama") const {
    return respond::put_advice({path, uid, job},
                               {id, AdviceKind::kSaveNow, 0, 5, 60000, AdviceReason::kDevice},
                               respond::since_boot_ns());
  }
  std::string file(uint32_t uid = ::geteuid(), const std::string& job = "llama") const {
    return path + "/advice/" + advice_file_name(uid, job);
  }
  std::optional<AdviceRecord> read() const {
    std::ifstream in(file(), std::ios::binary);
    std::stringstream bytes;
    bytes << in.rdbuf();
    return decode_advice(bytes.str());
  }
  std::string path;
};

// Whether a process of this user succeeds.
template <class Work>
bool as_user(uint32_t uid, const Work& work) {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(::setgid(uid) == 0 && ::setuid(uid) == 0 && work() ? 0 : 1);
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

bool can_open(const std::string& path, int flags) {
  const int file = ::open(path.c_str(), flags | O_CLOEXEC);
  if (file >= 0) ::close(file);
  return file >= 0;
}

}  // namespace

BOOST_AUTO_TEST_CASE(advice_is_made_and_then_changed_in_place) {
  const Rings rings;
  BOOST_TEST(rings.put(7).value() == 7u);
  BOOST_REQUIRE(rings.read());
  struct stat before {
  }, after{};
  BOOST_REQUIRE(::stat(rings.file().c_str(), &before) == 0);
  BOOST_TEST(rings.put(9).value() == 9u);
  BOOST_REQUIRE(::stat(rings.file().c_str(), &after) == 0);
  BOOST_TEST(before.st_ino == after.st_ino);  // processes have mapped it
  BOOST_TEST(rings.read()->advice.id == 9u);
  BOOST_TEST(rings.read()->sequence == 4u);
}

BOOST_AUTO_TEST_CASE(the_id_of_advice_only_grows) {
  const Rings rings;
  BOOST_TEST(rings.put(7).value() == 7u);
  BOOST_TEST(rings.put(7).value() == 8u);
  BOOST_TEST(rings.put(3).value() == 9u);
}

BOOST_AUTO_TEST_CASE(a_half_written_record_is_completed) {
  const Rings rings;
  BOOST_REQUIRE(rings.put(7));
  {
    std::fstream file(rings.file(), std::ios::binary | std::ios::in | std::ios::out);
    file.put(3);  // the daemon was killed meanwhile
  }
  BOOST_TEST(!rings.read());
  BOOST_REQUIRE(rings.put(8));
  BOOST_REQUIRE(rings.read());
  BOOST_TEST(rings.read()->advice.id == 8u);
}

BOOST_AUTO_TEST_CASE(a_file_of_another_size_is_replaced) {
  const Rings rings;
  BOOST_REQUIRE(rings.put(7));
  std::filesystem::resize_file(rings.file(), 10);
  BOOST_REQUIRE(rings.put(8));
  BOOST_TEST(rings.read()->advice.id == 8u);
}

BOOST_AUTO_TEST_CASE(links_in_place_of_the_record_are_not_followed) {
  const Rings rings;
  BOOST_REQUIRE(rings.put(7));
  const std::string other = rings.path + "/other";
  std::ofstream(other) << "untouched";
  std::filesystem::remove(rings.file());
  std::filesystem::create_symlink(other, rings.file());
  BOOST_REQUIRE(rings.put(8));
  BOOST_TEST(!std::filesystem::is_symlink(rings.file()));
  BOOST_TEST(std::filesystem::file_size(other) == 9u);
}

BOOST_AUTO_TEST_CASE(only_the_user_of_the_job_can_read_its_advice_and_no_user_can_write_it) {
  if (::geteuid() != 0) return;
  const Rings rings;
  BOOST_REQUIRE(rings.put(7, kNobody));
  const std::string file = rings.file(kNobody);
  BOOST_TEST(as_user(kNobody, [&] { return can_open(file, O_RDONLY); }));
  BOOST_TEST(!as_user(kNobody, [&] { return can_open(file, O_RDWR); }));
  BOOST_TEST(!as_user(33, [&] { return can_open(file, O_RDONLY); }));
  BOOST_TEST(!as_user(33, [&] { return ::unlink(file.c_str()) == 0; }));
  BOOST_TEST(!as_user(33, [&] { return can_open(rings.path + "/advice/forged", O_RDWR | O_CREAT); }));
}

BOOST_AUTO_TEST_CASE(a_user_who_takes_the_folders_name_first_hides_no_advice) {
  if (::geteuid() != 0) return;
  const Rings rings;
  const std::string folder = rings.path + "/advice";
  const std::function<bool()> squats[] = {
      [&] { return ::mkdir(folder.c_str(), 0777) == 0; },
      [&] { return ::symlink("/tmp", folder.c_str()) == 0; },
      [&] { return can_open(folder, O_RDWR | O_CREAT); },
  };
  for (const auto& squat : squats) {
    BOOST_REQUIRE(as_user(33, squat));
    BOOST_REQUIRE(rings.put(7));
    BOOST_TEST(rings.read().has_value());
    std::filesystem::remove_all(folder);
  }
}

BOOST_AUTO_TEST_CASE(there_is_no_advice_in_another_users_rings) {
  if (::geteuid() != 0) return;
  const Rings rings;
  BOOST_TEST(as_user(33, [&] { return !rings.put(7).has_value(); }));
  BOOST_TEST(!respond::put_advice({"/nonexistent", 0, "llama"}, {7, AdviceKind::kStop}, 1).has_value());
}

BOOST_AUTO_TEST_CASE(jobs_have_records_of_their_own) {
  const Rings rings;
  BOOST_REQUIRE(rings.put(7, ::geteuid(), "one"));
  BOOST_REQUIRE(rings.put(9, ::geteuid(), "two"));
  BOOST_TEST(rings.file(0, "one") != rings.file(0, "two"));
  BOOST_TEST(std::filesystem::exists(rings.file(::geteuid(), "one")));
  BOOST_TEST(std::filesystem::exists(rings.file(::geteuid(), "two")));
}

BOOST_AUTO_TEST_CASE(the_reader_in_c_gives_what_the_daemon_writes) {
  const Rings rings;
  culprit_advice_reader reader = culprit_advice_open();
  culprit_advice advice;
  const auto read = [&](int64_t step) {
    reader.look_ns = 0;  // as a second later
    return culprit_advice_read(&reader, rings.path.c_str(), "llama", step, &advice) != 0;
  };
  BOOST_TEST(!read(5));
  BOOST_REQUIRE(rings.put(7));
  BOOST_TEST(!read(4));  // not before its step
  BOOST_REQUIRE(read(5));
  BOOST_TEST(advice.id == 7u);
  BOOST_TEST(advice.kind == CULPRIT_SAVE_NOW);
  culprit_advice_done(&reader, advice.id);
  BOOST_TEST(!read(6));
  BOOST_REQUIRE(rings.put(8));
  BOOST_TEST(read(6));
  culprit_advice_reader later = culprit_advice_open();  // of a process that began afterwards
  BOOST_TEST(!culprit_advice_read(&later, rings.path.c_str(), "llama", 6, &advice));
  std::fstream file(rings.file(), std::ios::binary | std::ios::in | std::ios::out);
  file.put(3).flush();  // it is being written
  culprit_advice_done(&reader, 8);
  BOOST_TEST(!read(7));
  culprit_advice_close(&later);
  culprit_advice_close(&reader);
}
