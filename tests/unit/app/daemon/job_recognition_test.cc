#include "app/jobs/job_recognition.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <boost/test/unit_test.hpp>
#include <filesystem>
#include <fstream>

#include "../../io/fake_env.h"
#include "app/daemon/intake/process_watch.h"

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

  ProcessView look() const { return look_at_processes({root.string(), 0, {}}); }
  std::function<std::shared_ptr<const ProcessView>(TimeNs)> looks() const {
    return [this](TimeNs) { return std::make_shared<const ProcessView>(look()); };
  }

  fs::path root;
};

std::string environment(const std::string& entry) {
  return std::string("HOME=/root\0", 11) + entry + '\0' + std::string("X=1\0", 4);
}

}  // namespace

BOOST_AUTO_TEST_SUITE(job_recognition)

BOOST_AUTO_TEST_CASE(the_job_of_a_process_is_recognised) {
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
      {"the manager's group before the variable", environment("SLURM_JOB_ID=1"), "0::/slurm/job_2\n", "2"},
      {"the variable before a unit", environment("SLURM_JOB_ID=1"), "0::/system.slice/run-r0.service\n", "1"},
      {"docker, cgroupfs", "", "0::/docker/" + std::string(64, 'a') + "\n", "docker-aaaaaaaaaaaa"},
      {"docker, systemd", "", "0::/system.slice/docker-" + std::string(64, 'b') + ".scope\n",
       "docker-bbbbbbbbbbbb"},
      {"podman", "", "0::/machine.slice/libpod-" + std::string(64, 'c') + ".scope\n", "libpod-cccccccccccc"},
      {"no container", "", "0::/docker/buildkit\n", std::nullopt},
  };
  for (const auto& c : kCases) {
    Proc proc;
    proc.write(50, "environ", c.environ);
    proc.write(50, "cgroup", c.cgroup);
    BOOST_TEST((job_of_process(proc.root.string(), 50) == c.job), c.name);
  }
}

// A user may create groups of any name below the own manager.
BOOST_AUTO_TEST_CASE(a_group_that_a_user_made_is_no_jobs) {
  const std::string made = "0::/user.slice/user-1001.slice/user@1001.service/";
  const std::string container = made + "libpod-" + std::string(64, 'c') + ".scope\n";
  Proc proc;
  proc.write(50, "cgroup", made + "slurm/job_123\n");
  proc.write(60, "cgroup", container);
  for (const uint32_t pid : {50u, 60u}) proc.write(pid, "stat", std::to_string(pid) + " (a) S 1 1 1 0\n");
  const ProcessView view = proc.look();
  BOOST_TEST(view.processes.at(50).job == "");
  BOOST_TEST(view.processes.at(60).job == "libpod-cccccccccccc");
  BOOST_TEST(view.processes.at(60).by_user);
}

BOOST_AUTO_TEST_CASE(the_ranks_of_a_job_are_those_that_its_process_counts) {
  const std::pair<std::string, uint32_t> kCases[] = {
      {environment("WORLD_SIZE=64"), 64},
      {environment("SLURM_NTASKS=8") + environment("WORLD_SIZE=64"), 64},
      {environment("OMPI_COMM_WORLD_SIZE=16"), 16},
      {environment("WORLD_SIZE=many"), 0},
      {environment("MY_WORLD_SIZE=7"), 0},
      {"", 0},
  };
  for (const auto& [text, world] : kCases) {
    Proc proc;
    proc.write(50, "environ", text);
    BOOST_TEST(world_of_process(proc.root.string(), 50) == world, text);
  }
  BOOST_TEST(world_of_process(Proc().root.string(), 51) == 0u);
}

BOOST_AUTO_TEST_CASE(parents_are_checked_if_a_process_has_no_job) {
  Proc proc;
  proc.write(10, "environ", environment("SLURM_JOB_ID=77"));
  proc.write(20, "stat", "20 (a) b) c) S 10 20 20 0\n");
  proc.write(30, "stat", "30 (python) S 20 30 30 0\n");
  BOOST_TEST(job_of_process(proc.root.string(), 30).value_or("") == "77");
  // A process that is its own parent ends the search.
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
  const auto jobs = JobRecognition::create({"", "", proc.looks()});
  BOOST_REQUIRE(jobs.has_value());
  BOOST_TEST(jobs->of_file(log.string()) == "4711");
  BOOST_TEST(jobs->of_file((proc.root / "other.log").string()) == kDefaultJob);
}

BOOST_AUTO_TEST_CASE(what_is_configured_wins_then_the_path_then_the_process) {
  Proc proc;
  proc.write(60, "environ", environment("SLURM_JOB_ID=4711"));
  const auto at = [&](const std::string& job, const std::string& pattern) {
    auto made = JobRecognition::create({job, pattern, proc.looks()});
    BOOST_REQUIRE(made.has_value());
    return std::move(*made);
  };
  BOOST_TEST(at("own", "(?P<job>x)").of_file("/logs/x.log") == "own");
  BOOST_TEST(at("", "/(?<job>[^/]+)/rank").of_file("/logs/j7/rank_0.log") == "j7");
  BOOST_TEST(at("", "/(?<job>[^/]+)/rank").of_file("/logs/none.log") == kDefaultJob);
}

BOOST_AUTO_TEST_CASE(a_wrong_pattern_is_reported) {
  for (const char* const pattern : {"(", "no group", "(?P<host>x)"}) {
    const auto made = JobRecognition::create({"", pattern});
    BOOST_REQUIRE(!made.has_value());
    BOOST_TEST(made.error().text.starts_with("job_pattern '"), made.error().text);
  }
}

// The view of an unprivileged daemon of another user's process: group, owner and times.
BOOST_AUTO_TEST_CASE(without_open_files_the_owner_decides) {
  constexpr TimeNs kBoot = 1'763'000'000 * kNsPerSecond;
  const auto process = [](const std::string& job, uint32_t uid, uint64_t start_s, bool barred = true) {
    ProcessView::Process out;
    out.job = job;
    out.uid = uid;
    out.start_ticks = start_s * static_cast<uint64_t>(::sysconf(_SC_CLK_TCK));
    out.barred = barred;
    return out;
  };
  ProcessView view;
  view.boot_ns = kBoot;
  view.processes[10] = process("4711", 1000, 100);
  view.processes[11] = process("4712", 1001, 100);
  view.processes[12] = process("4713", 1001, 5000);
  view.processes[13] = process("4714", 1002, 100, false);
  view.processes[14] = process("4715", 0, 100);
  const auto at = [&](int64_t seconds) { return kBoot + seconds * kNsPerSecond; };
  const struct {
    const char* name;
    std::string path;
    uint32_t uid;
    TimeNs modified_ns;
    std::optional<std::string> job;
  } kCases[] = {
      {"the only job of the owner", "/logs/a.log", 1000, at(200), "4711"},
      {"written before it began", "/logs/a.log", 1000, at(50), std::nullopt},
      {"one of two by its name", "/logs/slurm-4713.out", 1001, at(6000), "4713"},
      {"a number within another is none", "/logs/slurm-14713.out", 1001, at(6000), std::nullopt},
      {"one of two by its time", "/logs/a.log", 1001, at(200), "4712"},
      {"one of two", "/logs/a.log", 1001, at(6000), std::nullopt},
      {"its files are open and this is none", "/logs/a.log", 1002, at(200), std::nullopt},
      {"root writes for all", "/logs/a.log", 0, at(200), std::nullopt},
      {"of no user", "/logs/a.log", 1003, at(200), std::nullopt},
  };
  for (const auto& c : kCases)
    BOOST_TEST((job_of_file(view, c.path, {1, 2, c.uid, at(0), c.modified_ns}) == c.job), c.name);
}

// As root, which may change its uid: valid for the hardened unit.
BOOST_AUTO_TEST_CASE(without_rights_groups_decide_and_environments_are_unreadable) {
  if (::geteuid() != 0) {
    BOOST_TEST_MESSAGE("root alone can become somebody else");
    return;
  }
  Proc proc;
  proc.write(60, "cgroup", "0::/system.slice/slurmstepd.scope/job_4711/step_0\n");
  proc.write(60, "environ", environment("SLURM_JOB_ID=4711"));
  proc.write(60, "stat", "60 (python) S 1 60 60 0\n");
  fs::create_directories(proc.root / "60/fd");
  ::chmod((proc.root / "60/environ").c_str(), 0400);
  ::chmod((proc.root / "60/fd").c_str(), 0500);
  ::chmod(proc.root.c_str(), 0755);
  BOOST_REQUIRE(::seteuid(65534) == 0);
  const ProcessView view = proc.look();
  BOOST_REQUIRE(::seteuid(0) == 0);
  BOOST_REQUIRE(view.processes.contains(60));
  BOOST_TEST(view.processes.at(60).job == "4711");
  BOOST_TEST(view.processes.at(60).barred);
  BOOST_TEST(!proc.look().processes.at(60).barred);
}

BOOST_AUTO_TEST_CASE(another_process_of_the_same_number_is_none_of_the_jobs) {
  Proc proc;
  const auto begin = [&](const char* start, const char* state) {
    proc.write(60, "stat",
               std::string("60 (a) ") + state + " 1 1 1 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 " + start + " 0\n");
  };
  JobAliveness jobs;
  begin("100", "S");
  jobs.follow_process("j", 60);
  jobs.on_view(proc.look());
  BOOST_TEST((jobs.alive("j") == true));
  begin("200", "S");
  jobs.on_view(proc.look());
  BOOST_TEST((jobs.alive("j") == false));
  jobs.follow_process("k", 60);
  jobs.on_view(proc.look());
  begin("200", "Z");
  jobs.on_view(proc.look());
  BOOST_TEST((jobs.alive("k") == false), "a zombie is gone");
}

BOOST_AUTO_TEST_CASE(a_look_is_bounded_and_says_nothing_of_those_it_did_not_see) {
  Proc proc;
  for (uint32_t pid = 100; pid < 200; ++pid) proc.write(pid, "stat", "1 (a) S 1 1 1 0\n");
  TimeNs now = 0;
  const ProcessView view =
      look_at_processes({proc.root.string(), 0, [&] { return now += kNsPerMs; }, 50 * kNsPerMs});
  BOOST_TEST(view.cut);
  JobAliveness jobs;
  jobs.follow_process("j", 100);
  jobs.on_view(proc.look());
  BOOST_TEST((jobs.alive("j") == true));
  ProcessView nothing;
  nothing.cut = true;
  jobs.on_view(nothing);
  BOOST_TEST(!jobs.alive("j").has_value());
}

// The processes that a capture may look into.
BOOST_AUTO_TEST_CASE(the_processes_of_a_job_are_those_that_it_shows_and_their_descendants) {
  ProcessView view;
  const auto add = [&](uint32_t pid, uint32_t parent, uint32_t uid,
                       const char* job) -> ProcessView::Process& {
    return view.processes[pid] = {pid * 10, parent, uid, false, job, false, false};
  };
  add(10, 1, 1000, "j");  // in the control group
  add(11, 10, 1000, "j");
  add(20, 1, 1000, "");                         // its ring
  add(21, 20, 1000, "");                        // a worker of it
  add(30, 1, 1000, "");                         // writes its log
  add(40, 1, 1000, "j").by_environment = true;  // the same user says so
  add(50, 1, 2000, "j").by_environment = true;  // another user claims the job
  add(60, 10, 1000, "other");                   // started by the job, of another one
  add(70, 1, 1000, "");
  view.writers[{8, 1}] = 30;
  JobAliveness jobs;
  jobs.follow_process("j", 20);
  jobs.follow_file("j", 8, 1);
  jobs.on_view(view);
  std::vector<uint32_t> pids;
  for (const auto& process : jobs.processes_of("j", view)) {
    pids.push_back(process.pid);
    BOOST_TEST(process.start_ticks == process.pid * 10);
  }
  BOOST_TEST(pids == (std::vector<uint32_t>{10, 11, 20, 21, 30, 40}), boost::test_tools::per_element());
  // A later process with the number of a ring's is not the job's.
  view.processes[20].start_ticks = 7;
  BOOST_TEST(jobs.processes_of("j", view).size() == 4u);
}

BOOST_AUTO_TEST_CASE(the_processes_of_a_pod_are_its_jobs) {
  ProcessView view;
  view.processes[10] = {100, 1, 0, false, "pod-a", false, false};
  view.processes[11] = {110, 10, 1000, false, "pod-a", false, false};
  view.processes[20] = {200, 1, 1000, false, "pod-b", false, false};
  JobAliveness jobs;
  jobs.follow_pod("pod-a", "train_llama");
  jobs.on_view(view);
  BOOST_TEST((jobs.alive("train_llama") == true));
  BOOST_TEST(jobs.job_of(11, view) == "train_llama");
  BOOST_TEST(jobs.job_of(20, view) == "pod-b");
  BOOST_TEST(jobs.users_of("train_llama") == (std::set<uint32_t>{0, 1000}), boost::test_tools::per_element());
  BOOST_TEST(jobs.processes_of("train_llama", view).size() == 2u);
  view.processes.erase(10);
  view.processes.erase(11);
  jobs.on_view(view);
  BOOST_TEST((jobs.alive("train_llama") == false));
}

BOOST_AUTO_TEST_CASE(a_job_that_two_users_only_claim_has_no_processes_to_look_into) {
  ProcessView view;
  const auto claims = [&](uint32_t pid, uint32_t uid) {
    view.processes[pid] = {pid * 10, 1, uid, false, "j", false, false};
    view.processes[pid].by_environment = true;
  };
  claims(10, 1000);
  claims(11, 1000);
  JobAliveness jobs;
  jobs.on_view(view);
  BOOST_TEST(jobs.processes_of("j", view).size() == 2u);
  claims(12, 2000);
  jobs.on_view(view);
  BOOST_TEST(jobs.processes_of("j", view).empty());
}

BOOST_AUTO_TEST_CASE(a_control_group_shows_a_job_and_an_environment_does_not) {
  ProcessView view;
  view.processes[60].job = "grouped";
  view.processes[70].job = "named";
  view.processes[70].by_environment = true;
  view.processes[80].job = "made";
  view.processes[80].by_user = true;
  JobAliveness jobs;
  jobs.on_view(view);
  BOOST_TEST(jobs.shows("grouped"));
  BOOST_TEST(!jobs.shows("named"));
  BOOST_TEST(!jobs.shows("made"));
  jobs.on_view({});
  BOOST_TEST(!jobs.shows("grouped"));
}

BOOST_AUTO_TEST_CASE(looks_take_no_more_than_their_share_and_what_is_old_says_nothing) {
  Proc proc;
  proc.write(60, "cgroup", "0::/slurm/job_4711\n");
  proc.write(60, "stat", "60 (a) S 1 1 1 0\n");
  io::testing::FakeEnv env;
  auto watch = std::move(*ProcessWatch::start(env, true, proc.root.string()));
  env.run();
  BOOST_TEST(watch->counters().looks == 1u);
  for (int i = 0; i < 100; ++i) {
    BOOST_TEST((watch->alive("4711") == true));
    env.run();
  }
  env.advance(2 * kNsPerSecond);
  env.run();
  BOOST_TEST(watch->counters().looks == 2u, "once a second");
  env.monotonic_ns += 61 * kNsPerSecond;
  BOOST_TEST(!watch->alive("4711").has_value(), "until the next look");
  env.run();
  BOOST_TEST((watch->alive("4711") == true));
  std::string job;
  watch->job_of(60, [&](std::string reported) { job = std::move(reported); });
  BOOST_TEST(job.empty(), "asked on another thread");
  env.run();
  BOOST_TEST(job == "4711");
}

BOOST_AUTO_TEST_CASE(a_question_that_hangs_is_answered_in_a_second) {
  Proc proc;
  io::testing::FakeEnv env;
  auto watch = std::move(*ProcessWatch::start(env, true, proc.root.string()));
  int answers = 0;
  watch->job_of(60, [&](const std::string& reported) { answers += reported.empty(); });
  env.advance(2 * kNsPerSecond);  // no completed work reaches the loop
  BOOST_TEST(answers == 1);
  env.run();
  BOOST_TEST(answers == 1);
}

BOOST_AUTO_TEST_CASE(a_job_is_gone_when_its_processes_are) {
  Proc proc;
  const fs::path log = proc.root / "train.log";
  std::ofstream(log) << "x\n";
  struct stat status;
  BOOST_REQUIRE(::stat(log.c_str(), &status) == 0);
  JobAliveness jobs;
  proc.write(60, "environ", environment("SLURM_JOB_ID=4711"));
  proc.write(70, "environ", "");
  proc.open_file(70, 3, log, "0100001");
  proc.write(80, "environ", "");
  jobs.follow_file("configured", status.st_dev, status.st_ino);
  jobs.follow_process("sender", 80);
  jobs.on_view(proc.look());
  for (const char* const job : {"4711", "configured", "sender"}) BOOST_TEST((jobs.alive(job) == true), job);
  BOOST_TEST(!jobs.alive("never seen").has_value());
  for (const char* const pid : {"60", "70", "80"}) fs::remove_all(proc.root / pid);
  jobs.on_view(proc.look());
  for (const char* const job : {"4711", "configured", "sender"}) BOOST_TEST((jobs.alive(job) == false), job);
}

BOOST_AUTO_TEST_SUITE_END()
