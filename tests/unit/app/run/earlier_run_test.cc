// Whether a run whose name is used again has ended.
#include "app/run/earlier_run.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <boost/test/unit_test.hpp>
#include <filesystem>
#include <fstream>

#include "app/run/folder.h"

namespace culprit::app {
namespace {

namespace fs = std::filesystem;
using State = EarlierRun::State;

constexpr TimeNs kWatch = 15 * kNsPerSecond;

struct EarlierPlace {
  fs::path root;
  EarlierPlace() {
    char name[] = "/tmp/culprit-unit-earlier.XXXXXX";
    root = ::mkdtemp(name);
    fs::create_directories(root / "big/members");
    fs::create_directories(root / "big/agreement/attempt-2");
    fs::permissions(root / "big", fs::perms(0700));
    fs::permissions(root / "big/members", fs::perms(0700));
  }
  ~EarlierPlace() {
    std::error_code ignored;
    fs::remove_all(root, ignored);
  }
  fs::path add(const std::string& name) const {
    const fs::path path = root / "big" / name;
    const fs::path part = path.string() + ".part";
    std::ofstream(part) << "";
    fs::rename(part, path);
    return path;
  }
  HeldFolder run() const {
    auto out = HeldFolder::open((root / "big").string());
    BOOST_REQUIRE(out.has_value());
    return std::move(*out);
  }
  Result<RunFolder> join(const char* host, Launch& launch) const {
    launch.job = "big", launch.host = host, launch.log = "output";
    launch.in_team = launch.shows_life = true, launch.members = 2;
    const Lookup lookup = [this](std::string_view) { return std::optional(root.string()); };
    return RunFolder::create({"", root.string(), lookup, 0}, launch);
  }
};

int state(State is) { return static_cast<int>(is); }

}  // namespace

BOOST_AUTO_TEST_SUITE(earlier_run)

BOOST_AUTO_TEST_CASE(a_run_without_locks_or_signs_of_life_while_it_is_watched_has_ended) {
  const EarlierPlace place;
  place.add("members/n1.0.lock");
  place.add("agreement/attempt-2/alive.n1");
  const HeldFolder run = place.run();
  EarlierRun earlier(run, kWatch);
  BOOST_TEST(state(earlier.look(0)) == state(State::kUnclear));
  BOOST_TEST(state(earlier.look(kWatch - 1)) == state(State::kUnclear));
  BOOST_TEST(state(earlier.look(kWatch)) == state(State::kEnded));
}

BOOST_AUTO_TEST_CASE(a_new_sign_of_life_or_a_held_lock_shows_an_active_run) {
  const EarlierPlace place;
  const fs::path lock = place.add("members/n1.0.lock");
  place.add("agreement/attempt-2/alive.n1");
  const HeldFolder run = place.run();
  EarlierRun earlier(run, kWatch), other(run, kWatch);
  BOOST_TEST(state(earlier.look(0)) == state(State::kUnclear));
  BOOST_TEST(state(other.look(0)) == state(State::kUnclear));
  place.add("agreement/attempt-2/alive.n2");
  BOOST_TEST(state(earlier.look(1)) == state(State::kActive));
  const int fd = ::open(lock.c_str(), O_RDWR | O_CLOEXEC);
  BOOST_REQUIRE(::flock(fd, LOCK_EX) == 0);
  BOOST_TEST(state(other.look(kWatch)) == state(State::kActive));
  ::close(fd);
}

BOOST_AUTO_TEST_CASE(a_run_that_no_member_has_entered_is_active) {
  const EarlierPlace place;
  const HeldFolder run = place.run();
  EarlierRun earlier(run, kWatch);
  BOOST_TEST(state(earlier.look(0)) == state(State::kActive));
}

// n1 of the killed run comes again, and n3 is new: both must meet in one run.
BOOST_AUTO_TEST_CASE(hosts_that_come_after_a_killed_run_meet_in_a_new_one) {
  const EarlierPlace place;
  for (const char* host : {"n1", "n2"}) place.add(std::string("members/") + host + ".0.lock");
  Launch old_host, new_host, last;
  const auto one = place.join("n1", old_host), two = place.join("n3", new_host),
             three = place.join("n4", last);
  BOOST_REQUIRE((one.has_value() && two.has_value() && three.has_value()));
  BOOST_TEST(old_host.job == "big-2");
  BOOST_TEST(new_host.job == "big-2");
  BOOST_TEST(last.job == "big-2");
  BOOST_TEST(two->note().starts_with("an earlier run has the name big; this one is big-2"));
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace culprit::app
