// Decisions of several processes by files in one folder.
#include "app/run/agreement.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <boost/test/unit_test.hpp>
#include <filesystem>
#include <fstream>
#include <random>
#include <vector>

#include "app/run/attempt_plan.h"

namespace culprit::app {
namespace {

namespace fs = std::filesystem;

struct SharedPlace {
  fs::path root;
  SharedPlace() {
    char name[] = "/tmp/culprit-unit-agree.XXXXXX";
    root = ::mkdtemp(name);
  }
  ~SharedPlace() {
    std::error_code ignored;
    fs::remove_all(root, ignored);
  }
  Agreement open(const std::string& host) const {
    const auto held = HeldFolder::open(root.string());
    BOOST_REQUIRE(held.has_value());
    auto out = Agreement::open(*held, host);
    BOOST_REQUIRE(out.has_value());
    BOOST_REQUIRE(out->enter(1).has_value());
    return std::move(*out);
  }
  fs::path file(const std::string& name) const { return root / "agreement/attempt-1" / name; }
};

}  // namespace

BOOST_AUTO_TEST_SUITE(agreement)

BOOST_AUTO_TEST_CASE(the_first_proposal_wins_and_all_read_it) {
  const SharedPlace place;
  Agreement one = place.open("n1"), two = place.open("n2");
  BOOST_TEST(!one.settled("decision").has_value());
  const auto first = one.settle("decision", "of n1"), second = two.settle("decision", "of n2");
  BOOST_REQUIRE((first.has_value() && second.has_value()));
  BOOST_TEST(first->won);
  BOOST_TEST(!second->won);
  BOOST_TEST(second->text == "of n1");
  BOOST_TEST(two.settled("decision").value() == "of n1");
}

BOOST_AUTO_TEST_CASE(a_member_reads_what_each_other_one_wrote_and_only_once) {
  const SharedPlace place;
  Agreement one = place.open("n1.a"), two = place.open("n2.end");
  BOOST_TEST(one.write("end", "1").has_value());
  BOOST_TEST(two.write("end", "2").has_value());
  BOOST_TEST(two.write("ready", "no end").has_value());
  const auto known = one.read_new("end", std::map<std::string, int>());
  BOOST_TEST(known.size() == 2);
  BOOST_TEST(known.at("n1.a").text == "1");
  BOOST_TEST(known.at("n2.end").text == "2");
  BOOST_TEST(known.at("n1.a").changed_ns <= known.at("n2.end").changed_ns);  // one clock
  BOOST_TEST(one.read_new("end", known).empty());
}

BOOST_AUTO_TEST_CASE(a_member_that_decides_is_silent_only_as_long_as_it_writes_nothing_new) {
  const SharedPlace place;
  Agreement one = place.open("n1"), two = place.open("n2");
  BOOST_TEST(two.write("decides", "", false).has_value());
  BOOST_TEST((one.hosts_with("decides") == std::vector<std::string>{"n2"}));
  BOOST_TEST(one.silence("decides", "n2") == 0);  // watched from now on
  BOOST_TEST(one.silence("decides", "n2") > 0);
  BOOST_TEST(two.write("decides", "", false).has_value());
  BOOST_TEST(one.silence("decides", "n2") == 0);
  two.withdraw("decides");
  BOOST_TEST(one.hosts_with("decides").empty());
}

BOOST_AUTO_TEST_CASE(links_pipes_folders_and_huge_files_are_not_read) {
  const SharedPlace place;
  Agreement one = place.open("n1");
  std::ofstream(place.root / "secret") << "text";
  fs::create_symlink(place.root / "secret", place.file("end.link"));
  fs::create_symlink(place.root / "secret", place.file("decision"));
  BOOST_TEST(::mkfifo(place.file("end.pipe").c_str(), 0600) == 0);
  fs::create_directory(place.file("end.folder"));
  std::ofstream(place.file("end.huge")) << "x";
  fs::resize_file(place.file("end.huge"), kRecordBytes + 1);
  BOOST_TEST(one.read_new("end", std::map<std::string, int>()).empty());
  BOOST_TEST(!one.settled("decision").has_value());
}

BOOST_AUTO_TEST_CASE(a_folder_that_others_may_write_to_is_refused) {
  const SharedPlace place;
  fs::create_directory(place.root / "agreement");
  fs::permissions(place.root / "agreement", fs::perms::all);
  const auto held = HeldFolder::open(place.root.string());
  BOOST_REQUIRE(held.has_value());
  BOOST_TEST(!Agreement::open(*held, "n1").has_value());
}

BOOST_AUTO_TEST_CASE(a_host_is_lost_only_after_it_was_watched_for_long_enough) {
  const SharedPlace place;
  Agreement one = place.open("n1"), two = place.open("n2");
  BOOST_TEST(!one.is_lost("n2", kNsPerSecond));
  BOOST_TEST(!one.is_lost("n3", kNsPerSecond));
  BOOST_TEST(one.is_lost("n3", 0));
  BOOST_TEST(one.is_lost("n2", 0));
  BOOST_TEST(two.write("alive", "").has_value());
  BOOST_TEST(one.is_lost("n2", 0));  // a new sign of life, of just now
  BOOST_TEST(!one.is_lost("n2", kNsPerSecond));
}

// Four members propose at once, and one is killed at a random moment of it.
BOOST_AUTO_TEST_CASE(members_that_propose_at_once_agree_even_if_one_is_killed) {
  constexpr int kMembers = 4, kRounds = 50;
  std::minstd_rand random(7);
  int decided = 0, victim_won = 0;
  for (int round = 0; round < kRounds; ++round) {
    const SharedPlace place;
    int go[2];
    BOOST_REQUIRE(::pipe2(go, O_CLOEXEC) == 0);
    std::vector<pid_t> members;
    for (int i = 0; i < kMembers; ++i) {
      const pid_t pid = ::fork();
      BOOST_REQUIRE(pid >= 0);
      if (pid > 0) {
        members.push_back(pid);
        continue;
      }
      ::close(go[1]);
      const std::string host = "n" + std::to_string(i);
      Agreement own = place.open(host);
      char byte = 0;
      (void)!::read(go[0], &byte, 1);  // all begin when the parent closes its end
      const auto settled = own.settle("decision", "of " + host);
      (void)own.write("read", settled ? settled->text + (settled->won ? "!" : "") : "error");
      ::_exit(0);
    }
    ::close(go[0]);
    ::close(go[1]);
    ::usleep(random() % 1500);
    ::kill(members[0], SIGKILL);
    for (const pid_t pid : members) ::waitpid(pid, nullptr, 0);
    const Agreement judge = place.open("judge");
    const auto agreed = judge.settled("decision");
    BOOST_REQUIRE(agreed.has_value());
    int winners = 0;
    for (const auto& [host, entry] : judge.read_new("read", std::map<std::string, int>())) {
      winners += entry.text.ends_with('!');
      BOOST_TEST(entry.text.starts_with(*agreed));
    }
    ++decided;
    victim_won += *agreed == "of n0";
    BOOST_TEST(winners <= 1);
    if (*agreed != "of n0") BOOST_TEST(winners == 1);
  }
  BOOST_TEST_MESSAGE(decided << " decisions in " << kRounds << " rounds, " << victim_won
                             << " of the killed one");
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace culprit::app
