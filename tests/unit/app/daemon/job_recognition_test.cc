#include "app/daemon/job_recognition.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <boost/test/unit_test.hpp>
#include <filesystem>
#include <fstream>

using namespace culprit;
using namespace culprit::app;

namespace {

namespace fs = std::filesystem;

// A folder like /proc.
struct Proc {
  Proc() : root(fs::temp_directory_path() / ("culprit-proc-" + std::to_string(::getpid()))) {
    fs::remove_all(root);
    fs::create_directories(root / "self");
  }
  ~Proc() { fs::remove_all(root); }

  void write(uint32_t pid, const std::string& file, const std::string& text) const {
    const fs::path path = root / std::to_string(pid) / file;
    fs::create_directories(path.parent_path());
    std::ofstream(path, std::ios::binary) << text;
  }
  void open_file(uint32_t pid, int fd, const fs::path& target, const std::string& flags) const {
    const fs::path folder = root / std::to_string(pid);
    fs::create_directories(folder / "fd");
    fs::create_symlink(target, folder / "fd" / std::to_string(fd));
    write(pid, "fdinfo/" + std::to_string(fd), "pos:\t0\nflags:\t" + flags + "\nmnt_id:\t30\n");
  }

  fs::path root;
};

std::string environment(const std::string& entry) {
  return std::string("HOME=/root\0", 11) + entry + '\0' + std::string("X=1\0", 4);
}

}  // namespace

BOOST_AUTO_TEST_SUITE(job_recognition)

BOOST_AUTO_TEST_CASE(a_process_tells_its_job) {
  const struct {
    const char* name;
    std::string environ, cgroup;
    std::optional<std::string> job;
  } kCases[] = {
      {"slurm's variable", environment("SLURM_JOB_ID=4711"), "0::/\n", "4711"},
      {"not another variable", environment("MY_SLURM_JOB_ID=4711"), "0::/\n", std::nullopt},
      {"no path in a name", environment("SLURM_JOB_ID=../../etc"), "0::/\n", std::nullopt},
      {"no empty name", environment("SLURM_JOB_ID="), "0::/\n", std::nullopt},
      {"cgroup v2", "", "0::/system.slice/slurmstepd.scope/job_123/step_0/user/task_0\n", "123"},
      {"cgroup v1", "", "12:devices:/\n9:memory:/slurm/uid_1000/job_123/step_batch\n", "123"},
      {"a folder that is named like one", "", "0::/user.slice/job_123\n", std::nullopt},
      {"a pod, systemd", "",
       "0::/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-"
       "pod0d1ff6a2_3f44_4c1c_9e1e_0a1b2c3d4e5f.slice/cri-containerd-ab.scope\n",
       "pod-0d1ff6a2-3f44-4c1c-9e1e-0a1b2c3d4e5f"},
      {"a pod, cgroupfs", "", "0::/kubepods/besteffort/pod0d1ff6a2-3f44-4c1c-9e1e-0a1b2c3d4e5f/ab12\n",
       "pod-0d1ff6a2-3f44-4c1c-9e1e-0a1b2c3d4e5f"},
      {"systemd-run", "", "0::/system.slice/run-r0a1b2c.service\n", "run-r0a1b2c"},
      {"a service", "", "0::/system.slice/cron.service\n", std::nullopt},
      {"a session", "", "0::/user.slice/user-1000.slice/session-3.scope\n", std::nullopt},
      {"nothing readable", "", "", std::nullopt},
      {"the variable before the group", environment("SLURM_JOB_ID=1"), "0::/slurm/job_2\n", "1"},
  };
  for (const auto& c : kCases) {
    Proc proc;
    proc.write(50, "environ", c.environ);
    proc.write(50, "cgroup", c.cgroup);
    BOOST_TEST((job_of_process(proc.root.string(), 50) == c.job), c.name);
  }
}

BOOST_AUTO_TEST_CASE(parents_tell_where_a_process_does_not) {
  Proc proc;
  proc.write(10, "environ", environment("SLURM_JOB_ID=77"));
  proc.write(20, "stat", "20 (a) b) c) S 10 20 20 0\n");
  proc.write(30, "stat", "30 (python) S 20 30 30 0\n");
  BOOST_TEST(job_of_process(proc.root.string(), 30).value_or("") == "77");
  // One that is its own parent ends the search.
  proc.write(40, "stat", "40 (loop) S 40 40 40 0\n");
  BOOST_TEST(!job_of_process(proc.root.string(), 40));
}

BOOST_AUTO_TEST_CASE(a_file_is_of_the_process_that_writes_it) {
  Proc proc;
  const fs::path log = proc.root / "train.log";
  std::ofstream(log) << "x\n";
  proc.write(50, "environ", environment("SLURM_JOB_ID=reader"));
  proc.open_file(50, 3, log, "0100000");
  proc.write(60, "environ", environment("SLURM_JOB_ID=4711"));
  proc.open_file(60, 5, log, "0102001");
  const auto jobs = JobRecognition::create({"", "", proc.root.string()});
  BOOST_REQUIRE(jobs.has_value());
  BOOST_TEST(jobs->of_file(log.string()) == "4711");
  BOOST_TEST(jobs->of_file((proc.root / "other.log").string()) == kDefaultJob);
}

BOOST_AUTO_TEST_CASE(what_is_configured_wins_then_the_path_then_the_process) {
  Proc proc;
  proc.write(60, "environ", environment("SLURM_JOB_ID=4711"));
  const auto at = [&](const std::string& job, const std::string& pattern) {
    auto made = JobRecognition::create({job, pattern, proc.root.string()});
    BOOST_REQUIRE(made.has_value());
    return std::move(*made);
  };
  BOOST_TEST(at("own", "(?P<job>x)").of_file("/logs/x.log") == "own");
  BOOST_TEST(at("own", "").of_process(60) == "own");
  BOOST_TEST(at("", "/(?<job>[^/]+)/rank").of_file("/logs/j7/rank_0.log") == "j7");
  BOOST_TEST(at("", "/(?<job>[^/]+)/rank").of_file("/logs/none.log") == kDefaultJob);
  BOOST_TEST(at("", "").of_process(60, "claimed") == "4711");
  BOOST_TEST(at("", "").of_process(99, std::string("claimed\0\0", 9)) == "claimed");
  BOOST_TEST(at("", "").of_process(99) == kDefaultJob);
}

BOOST_AUTO_TEST_CASE(a_wrong_pattern_is_told) {
  for (const char* const pattern : {"(", "no group", "(?P<host>x)"}) {
    const auto made = JobRecognition::create({"", pattern, "/proc"});
    BOOST_REQUIRE(!made.has_value());
    BOOST_TEST(made.error().text.starts_with("job_pattern '"), made.error().text);
  }
}

BOOST_AUTO_TEST_CASE(a_job_is_gone_when_its_processes_are) {
  Proc proc;
  const fs::path log = proc.root / "train.log";
  std::ofstream(log) << "x\n";
  struct stat status;
  BOOST_REQUIRE(::stat(log.c_str(), &status) == 0);
  JobAliveness jobs(proc.root.string());
  proc.write(60, "environ", environment("SLURM_JOB_ID=4711"));
  proc.write(70, "environ", "");
  proc.open_file(70, 3, log, "0100001");
  proc.write(80, "environ", "");
  jobs.follow_file("configured", status.st_dev, status.st_ino);
  jobs.follow_process("sender", 80);
  constexpr int64_t kSecond = 1'000'000'000;
  for (const char* const job : {"4711", "configured", "sender"})
    BOOST_TEST((jobs.alive(job, 0) == true), job);
  BOOST_TEST(!jobs.alive("never seen", 0).has_value());
  for (const char* const pid : {"60", "70", "80"}) fs::remove_all(proc.root / pid);
  BOOST_TEST((jobs.alive("4711", kSecond / 2) == true), "one look counts for a second");
  for (const char* const job : {"4711", "configured", "sender"})
    BOOST_TEST((jobs.alive(job, kSecond) == false), job);
}

BOOST_AUTO_TEST_SUITE_END()
