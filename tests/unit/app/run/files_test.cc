// Folders, logs and ends of runs.
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>

#include "app/run/armed.h"
#include "app/run/disk_facts.h"
#include "app/run/end_log.h"
#include "app/run/error_files.h"
#include "app/run/folder.h"
#include "app/run/members.h"
#include "app/run/output_log.h"
#include "app/run/private_daemon.h"

namespace culprit::app {
namespace {

namespace fs = std::filesystem;

struct Place {
  fs::path root;
  std::map<std::string, std::string> variables;
  Place() {
    char name[] = "/tmp/culprit-unit-run.XXXXXX";
    root = ::mkdtemp(name);
    variables = {{"XDG_STATE_HOME", (root / "state").string()}, {"XDG_RUNTIME_DIR", root.string()}};
  }
  ~Place() {
    std::error_code ignored;
    fs::remove_all(root, ignored);
  }
  Lookup lookup() const {
    return [this](std::string_view name) -> std::optional<std::string> {
      const auto found = variables.find(std::string(name));
      return found == variables.end() ? std::nullopt : std::optional(found->second);
    };
  }
  Result<RunFolder> make(Launch& launch, const std::string& dir = "") const {
    return RunFolder::create({dir, "", lookup()}, launch);
  }
  HeldFolder held() const {
    auto out = HeldFolder::open(root.string());
    BOOST_REQUIRE(out.has_value());
    return std::move(*out);
  }
};

Launch launch_of(const std::string& job) {
  Launch out;
  out.job = job;
  out.host = "node-1";
  out.log = "output";
  return out;
}

std::string content(const fs::path& path) {
  std::ostringstream out;
  out << std::ifstream(path).rdbuf();
  return out.str();
}

BOOST_AUTO_TEST_CASE(a_run_has_closed_folders_and_removes_what_it_need_not_keep) {
  const Place place;
  Launch launch = launch_of("train");
  std::string runtime, rings, path;
  {
    auto folder = place.make(launch);
    BOOST_REQUIRE(folder.has_value());
    runtime = folder->runtime(), rings = folder->rings(), path = folder->path();
    for (const std::string& one : {path, runtime, rings, folder->logs().path(), folder->private_folder()}) {
      struct stat info {};
      BOOST_REQUIRE_EQUAL(::stat(one.c_str(), &info), 0);
      BOOST_TEST((info.st_mode & 0777) == 0700u, one);
    }
    BOOST_TEST(runtime.starts_with(place.root.string()));
  }
  BOOST_TEST(!fs::exists(runtime));
  BOOST_TEST(!fs::exists(rings));
  BOOST_TEST(fs::exists(path));
}

BOOST_AUTO_TEST_CASE(a_second_run_of_a_name_gets_a_folder_and_a_name_of_its_own) {
  const Place place;
  Launch first = launch_of("train"), second = launch_of("train");
  const auto one = place.make(first), two = place.make(second);
  BOOST_REQUIRE((one.has_value() && two.has_value()));
  BOOST_TEST(first.job == "train");
  BOOST_TEST(second.job == "train-2");
  BOOST_TEST(one->runtime() != two->runtime());
}

BOOST_AUTO_TEST_CASE(a_name_that_another_took_for_sockets_or_rings_gives_way_to_the_next) {
  const Place place;
  std::string runtime, rings;
  {
    Launch launch = launch_of("train");
    auto folder = place.make(launch);
    BOOST_REQUIRE(folder.has_value());
    runtime = folder->runtime(), rings = folder->rings();
    folder->remove();
  }
  for (const std::string& taken : {runtime, rings}) std::ofstream(taken) << "taken";
  {
    Launch first = launch_of("train"), second = launch_of("train");
    first.in_team = second.in_team = true;
    second.member = second.local = 1;
    const auto one = place.make(first), two = place.make(second);
    BOOST_REQUIRE((one.has_value() && two.has_value()));
    BOOST_TEST(one->runtime() == runtime + "-2");
    BOOST_TEST(one->rings() == rings + "-2");
    BOOST_TEST((two->runtime() == one->runtime() && two->rings() == one->rings()));
    BOOST_TEST(one->note() == "");
  }
  BOOST_TEST((!fs::exists(runtime + "-2") && !fs::exists(rings + "-2")));
  for (const std::string& taken : {runtime, rings}) {
    BOOST_TEST(content(taken) == "taken");
    fs::remove(taken);
  }
}

BOOST_AUTO_TEST_CASE(without_a_folder_for_sockets_the_reasons_name_those_tried) {
  Place place;
  std::string name;
  {
    Launch launch = launch_of("train");
    auto folder = place.make(launch);
    BOOST_REQUIRE(folder.has_value());
    name = fs::path(folder->runtime()).filename();
    BOOST_TEST(folder->no_runtime() == "");
    folder->remove();
  }
  // A file stands in the place of each folder that would do.
  std::vector<std::string> taken;
  for (int n = 1; n <= 8; ++n) {
    taken.push_back("/tmp/" + name + (n > 1 ? "-" + std::to_string(n) : ""));
    std::ofstream(taken.back()) << "taken";
  }
  place.variables["XDG_RUNTIME_DIR"] = "/proc/none";
  place.variables["TMPDIR"] = "/" + std::string(100, 't');
  Launch launch = launch_of("train");
  const auto folder = place.make(launch);
  for (const std::string& path : taken) fs::remove(path);
  BOOST_REQUIRE(folder.has_value());
  BOOST_TEST(folder->runtime() == "");
  const std::string why = folder->no_runtime();
  for (const char* part :
       {"/proc/none: ", "ttt: its path is too long", "/tmp: is no folder of this user", "XDG_RUNTIME_DIR"})
    BOOST_TEST(why.find(part) != why.npos, why);
}

BOOST_AUTO_TEST_CASE(a_kept_run_is_found_by_its_name) {
  const Place place;
  BOOST_TEST((stored_run("train", place.lookup()) == "" && stored_runs_root(place.lookup()) == ""));
  Launch launch = launch_of("train");
  const auto folder = place.make(launch);
  BOOST_REQUIRE(folder.has_value());
  BOOST_TEST(stored_run("train", place.lookup()) == folder->inputs().path());
  BOOST_TEST(stored_runs_root(place.lookup()) == folder->root().path());
  for (const char* name : {"other", "", "..", "../run/train", "-rf"})
    BOOST_TEST(stored_run(name, place.lookup()) == "", name);
}

BOOST_AUTO_TEST_CASE(members_of_a_team_share_the_folder) {
  const Place place;
  Launch first = launch_of("team"), second = launch_of("team");
  first.in_team = second.in_team = true;
  first.members = second.members = 2;
  second.member = second.local = 1;
  const auto one = place.make(first), two = place.make(second);
  BOOST_REQUIRE((one.has_value() && two.has_value()));
  BOOST_TEST(one->path() == two->path());
  BOOST_TEST(one->runtime() == two->runtime());
}

BOOST_AUTO_TEST_CASE(a_team_that_runs_again_gets_a_new_folder) {
  const Place place;
  for (const char* name : {"team", "team-2"}) {
    Launch launch = launch_of("team");
    launch.in_team = true, launch.members = 2;
    const auto folder = place.make(launch);
    BOOST_REQUIRE(folder.has_value());
    BOOST_TEST(launch.job == name);
  }
  // One that was no member before joins no run that has reported.
  std::ofstream(fs::path(place.variables.at("XDG_STATE_HOME")) / "culprit/run/team/members/reports") << "";
  Launch launch = launch_of("team");
  launch.in_team = true, launch.member = 1;
  const auto folder = place.make(launch);
  BOOST_TEST(launch.job == "team-2");
}

BOOST_AUTO_TEST_CASE(hosts_that_see_one_folder_by_chance_remove_their_own_parts_alone) {
  const Place place;
  Launch one = launch_of("team"), other = launch_of("team");
  one.in_team = other.in_team = true;
  other.host = "node-1.example", other.member = 1;
  auto first = place.make(one), second = place.make(other);
  BOOST_REQUIRE((first.has_value() && second.has_value()));
  Members members(first->members(), one, false);
  BOOST_REQUIRE(Members(second->members(), other, false).tell({0, 9, false, false}).has_value());
  BOOST_TEST(members.ends().empty());
  BOOST_REQUIRE(members.tell({0, 0, false, false}).has_value());
  BOOST_TEST(members.all_ended(members.ends()));
  first->remove();
  BOOST_TEST(!fs::exists(first->logs().path()));
  BOOST_TEST(fs::exists(second->logs().path()));
  second->remove();
  BOOST_TEST(!fs::exists(second->path()));
}

BOOST_AUTO_TEST_CASE(a_link_in_place_of_a_team_s_folder_is_refused) {
  const Place place;
  fs::create_directories(place.root / "runs");
  fs::create_directories(place.root / "elsewhere");
  fs::create_directory_symlink(place.root / "elsewhere", place.root / "runs/team");
  Launch launch = launch_of("team");
  launch.in_team = true;
  BOOST_TEST(!place.make(launch, (place.root / "runs").string()).has_value());
  BOOST_TEST(fs::is_empty(place.root / "elsewhere"));
}

BOOST_AUTO_TEST_CASE(a_root_where_others_may_rename_gets_logs_alone_and_the_rest_at_the_end) {
  const Place place;
  const fs::path team = place.root / "team";
  fs::create_directories(team);
  fs::permissions(team, fs::perms(0777));
  Launch launch = launch_of("train");
  std::string runtime;
  {
    const auto folder = place.make(launch, team.string());
    BOOST_REQUIRE(folder.has_value());
    runtime = folder->runtime();
    BOOST_TEST(folder->exposed());
    for (const std::string& one : {folder->private_folder(), folder->files(), folder->dumps()})
      BOOST_TEST(one.starts_with(runtime + "/"), one);
    BOOST_TEST(!fs::exists(team / "train/private"));
    std::ofstream(folder->dumps() + "/nccl_trace_rank_0") << "dump";
    fs::create_symlink("/etc/passwd", folder->files() + "/link");
    BOOST_TEST(folder->collect() == 0u);
    BOOST_TEST(content(folder->logs().path() + "/dumps/nccl_trace_rank_0") == "dump");
    BOOST_TEST(!fs::exists(folder->logs().path() + "/link"));
    const std::string config = private_config(*folder, launch, {});
    for (const std::string& one : {runtime + "/files/*/*.log", runtime + "/files/*/dumps/*",
                                   runtime + "/private/node-1/state", folder->logs().path() + "/*.log"})
      BOOST_TEST(config.find("\"" + one + "\"") != std::string::npos, config);
  }
  BOOST_TEST(!fs::exists(runtime));
}

BOOST_AUTO_TEST_CASE(a_run_keeps_to_its_folder_when_another_takes_its_path) {
  const Place place;
  const fs::path team = place.root / "team";
  fs::create_directories(team);
  fs::permissions(team, fs::perms(0777));
  Launch launch = launch_of("train");
  auto folder = place.make(launch, team.string());
  BOOST_REQUIRE(folder.has_value());
  BOOST_TEST(folder->logs().is_there());
  fs::rename(team / "train", team / "away");
  fs::create_directories(team / "train/job/node-1");
  std::ofstream(team / "train/job/node-1/precious") << "x";
  BOOST_TEST(!folder->logs().is_there());
  BOOST_REQUIRE(folder->logs().write("output.log", "ours").has_value());
  BOOST_TEST(content(team / "away/job/node-1/output.log") == "ours");
  BOOST_TEST(!fs::exists(team / "train/job/node-1/output.log"));
  folder->remove();
  BOOST_TEST(fs::exists(team / "train/job/node-1/precious"));
  BOOST_TEST(fs::is_empty(team / "away"));
}

BOOST_AUTO_TEST_CASE(a_shared_run_has_no_private_part_in_the_shared_folder) {
  const Place place;
  Launch launch = launch_of("train");
  const auto folder = RunFolder::create({"", (place.root / "shared").string(), place.lookup()}, launch);
  BOOST_REQUIRE(folder.has_value());
  BOOST_TEST(!folder->exposed());
  BOOST_TEST(folder->private_folder().starts_with(folder->runtime() + "/private/"));
  BOOST_TEST(!fs::exists(folder->path() + "/private"));
  BOOST_TEST(folder->dumps() == folder->logs().path() + "/dumps");
}

BOOST_AUTO_TEST_CASE(a_root_that_is_no_folder_gives_way_to_one_in_tmp_unless_it_was_named) {
  Place place;
  std::ofstream(place.root / "state") << "a file";
  place.variables["TMPDIR"] = place.root.string();
  Launch launch = launch_of("train");
  const auto folder = place.make(launch);
  BOOST_REQUIRE(folder.has_value());
  BOOST_TEST(folder->note().find("state") != std::string::npos);
  BOOST_TEST(!place.make(launch, (place.root / "state").string()).has_value());
}

BOOST_AUTO_TEST_CASE(older_runs_are_removed_and_those_that_run_stay) {
  const Place place;
  std::vector<std::string> paths;
  for (const char* name : {"a", "b", "c"}) {
    Launch launch = launch_of(name);
    const auto folder = place.make(launch);
    BOOST_REQUIRE(folder.has_value());
    paths.push_back(folder->path());
    fs::last_write_time(folder->members().path(), fs::file_time_type::clock::now() - std::chrono::hours(9));
  }
  Launch launch = launch_of("runs");
  const auto running = place.make(launch);
  BOOST_REQUIRE(running.has_value());
  fs::last_write_time(running->members().path(), fs::file_time_type::clock::now() - std::chrono::hours(99));
  fs::create_directories(fs::path(running->root().path()) / "of the user/members");
  BOOST_TEST(remove_old_runs(running->root(), 1, place.lookup()).size() == 2u);
  BOOST_TEST(fs::exists(running->path()));
  BOOST_TEST(fs::exists(fs::path(running->root().path()) / "of the user"));
}

// As a run that SIGKILL ends: nothing removes its folders. Returns the rings.
std::string killed_run(const Place& place) {
  int ends[2];
  BOOST_REQUIRE(::pipe2(ends, O_CLOEXEC) == 0);
  const pid_t child = ::fork();
  BOOST_REQUIRE(child >= 0);
  if (child == 0) {
    Launch launch = launch_of("killed");
    const auto folder = place.make(launch);
    const std::string rings = folder ? folder->rings() : "";
    const bool output = ::write(ends[1], rings.data(), rings.size()) >= 0;
    ::_exit(output ? 0 : 1);
  }
  ::close(ends[1]);
  char rings[300] = {};
  const ssize_t size = ::read(ends[0], rings, sizeof rings - 1);
  ::close(ends[0]);
  BOOST_REQUIRE(::waitpid(child, nullptr, 0) == child);
  BOOST_REQUIRE(size > 0);
  return rings;
}

BOOST_AUTO_TEST_CASE(rings_of_a_killed_run_are_removed_by_the_next_one_also_below_another_root) {
  const Place first, second;
  const std::string rings = killed_run(first);
  std::ofstream(rings + "/1") << "a ring";
  fs::remove_all(first.root / "state");
  Launch launch = launch_of("next");
  const auto folder = second.make(launch);
  BOOST_REQUIRE(folder.has_value());
  BOOST_TEST(!fs::exists(rings));
  BOOST_TEST(fs::exists(folder->rings()));
}

BOOST_AUTO_TEST_CASE(what_a_run_uses_on_this_host_stays_where_its_folder_has_no_locks) {
  const Place place;
  Launch launch = launch_of("train"), other = launch_of("other");
  const auto running = place.make(launch);
  BOOST_REQUIRE(running.has_value());
  // As on a network without locks: the members count as ended.
  for (const std::string& name : running->members().names(9)) running->members().remove(name);
  const auto next = place.make(other);
  BOOST_REQUIRE(next.has_value());
  BOOST_TEST(remove_old_runs(next->root(), 9, place.lookup()).empty());
  for (const std::string& path : {running->rings(), running->runtime(), running->pipes()})
    BOOST_TEST(fs::exists(path), path);
}

BOOST_AUTO_TEST_CASE(the_last_member_knows_that_all_have_ended_and_one_reports) {
  const Place place;
  Launch launch = launch_of("team");
  launch.members = 2;
  const HeldFolder held = place.held();
  Members first(held, launch, true);
  launch.member = 1;
  Members second(held, launch, true);
  BOOST_REQUIRE(first.tell({3, 0, false, false}).has_value());
  BOOST_TEST(!first.all_ended(first.ends()));
  BOOST_REQUIRE(second.tell({0, 9, true, false}).has_value());
  const auto ends = second.ends();
  BOOST_TEST(second.all_ended(ends));
  int sum = 0;
  for (const MemberEnd& one : ends) sum += one.status;
  BOOST_TEST(sum == 3 + 137);
  BOOST_TEST(first.claim());
  BOOST_TEST(!second.claim());
}

BOOST_AUTO_TEST_CASE(the_log_has_what_was_added_and_is_bounded) {
  const Place place;
  const std::string path = (place.root / "output.log").string();
  {
    const HeldFolder held = place.held();
    OutputLog log(held, {"output.log"}, 100);
    for (int i = 0; i < 5; ++i) {
      log.add(0, std::string(39, static_cast<char>('a' + i)) + "\n");
      log.finish(60'000);
    }
    BOOST_TEST(log.counters().written == 200u);
    BOOST_TEST(log.counters().dropped == 0u);
  }
  BOOST_TEST(content(path) == std::string(39, 'e') + "\n");
  BOOST_TEST(content(path + ".1") == std::string(39, 'c') + "\n" + std::string(39, 'd') + "\n");
}

BOOST_AUTO_TEST_CASE(a_log_that_cannot_be_written_is_counted_and_told) {
  const auto nowhere = HeldFolder::open("/proc");
  BOOST_REQUIRE(nowhere.has_value());
  OutputLog log(*nowhere, {"output.log"}, 100);
  log.add(0, "12345");
  log.finish(60'000);
  BOOST_TEST(log.counters().dropped == 5u);
  BOOST_TEST(log.counters().trouble.find("output.log") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(each_stream_that_is_not_copied_is_named_once) {
  const auto nowhere = HeldFolder::open("/proc");
  BOOST_REQUIRE(nowhere.has_value());
  OutputLog log(*nowhere, {"output.out.log", "output.err.log"}, 100);
  for (const size_t stream : {0, 1, 0, 1}) {
    log.add(stream, "12345");
    log.finish(60'000);
  }
  const std::string trouble = log.counters().trouble;
  for (const char* name : {"output.out.log", "output.err.log"})
    BOOST_TEST((trouble.find(name) != trouble.npos && trouble.find(name) == trouble.rfind(name)), trouble);
}

BOOST_AUTO_TEST_CASE(no_variable_of_the_user_is_replaced) {
  const ArmedPlaces places{"/d", "/p", "/l", "/e", "/t", "/r", "job"};
  const auto armed = [&](const std::map<std::string, std::string>& user) {
    std::map<std::string, std::string> out;
    for (const ArmedVariable& v : armed_variables(places, [&](std::string_view name) {
           const auto found = user.find(std::string(name));
           return found == user.end() ? std::nullopt : std::optional(found->second);
         }))
      out[v.name] = v.value;
    return out;
  };
  const auto all = armed({});
  BOOST_TEST(all.at("TORCH_FR_DUMP_TEMP_FILE") == "/d/nccl_trace_rank_");
  BOOST_TEST(all.at("NCCL_DEBUG_FILE") == "/l/nccl.%h.%p.log");
  for (const auto& [name, value] : all) BOOST_TEST(!armed({{name, ""}}).contains(name), name);
  // One setting has two names over versions, and a user's NCCL_DEBUG goes where the user reads it.
  BOOST_TEST(!armed({{"TORCH_NCCL_TRACE_BUFFER_SIZE", "0"}}).contains("TORCH_FR_BUFFER_SIZE"));
  BOOST_TEST(!armed({{"NCCL_DEBUG", "INFO"}}).contains("NCCL_DEBUG_FILE"));
}

BOOST_AUTO_TEST_CASE(a_kill_is_a_line_of_the_log_unless_the_user_asked_for_it) {
  const CommandEnd killed{0, 9, false, 0};
  BOOST_TEST(end_lines(killed, "python3", 1'763'690'000'000'000'000, {}, {}) ==
             "2025-11-21T01:53:20.000Z culprit run: python3 was killed by signal 9 (SIGKILL)\n");
  for (const CommandEnd& asked : {CommandEnd{0, 15, false, 15}, CommandEnd{1, 0, false, 15}})
    BOOST_TEST(end_lines(asked, "python3", 0, {}, {})
                   .ends_with("python3 was asked to end: SIGTERM was sent to culprit run\n"));
  BOOST_TEST(end_lines({0, 0, false, 15}, "python3", 0, {}, {}).empty());
  BOOST_TEST(end_lines({0, 2, true, 0}, "python3", 0, {}, {}).empty());
  BOOST_TEST(end_lines({0, 0, false, 0}, "python3", 0, {}, {}).empty());
  BOOST_TEST(end_lines({1, 0, false, 0}, "python3", 0, {}, {}).ends_with("python3 ended with exit code 1\n"));
  const std::string of_memory = end_lines(killed, "p", 0, MemoryKills{"/a", 1}, MemoryKills{"/a", 2});
  BOOST_TEST(of_memory.find("Task in /a killed as a result of limit of /a") != std::string::npos);
  const auto others = [&](uint64_t before, uint64_t after) {
    return end_lines(killed, "p", 0, MemoryKills{"", 0, before}, MemoryKills{"", 0, after});
  };
  BOOST_TEST(others(4, 4).ends_with("(SIGKILL), and the kernel killed nothing for memory\n"));
  BOOST_TEST(others(4, 5).ends_with("(SIGKILL)\n"));
}

BOOST_AUTO_TEST_CASE(a_write_that_found_no_space_is_followed_by_what_the_file_system_has_free) {
  const auto says = [](const std::string& tail, std::map<std::string, Room> disks) {
    const std::string lines = disk_lines(tail, "/work", 0, [&](const std::string& path) {
      const auto it = disks.find(path);
      return it == disks.end() ? std::nullopt : std::optional(it->second);
    });
    return lines.substr(std::min(lines.size(), std::string("1970-01-01T00:00:00.000Z culprit run: ").size()));
  };
  const std::string full = "OSError: [Errno 28] No space left on device: '/data/ckpt/a.pt'\n";
  const std::string quota = "cp: error writing '/data/b': Disk quota exceeded\n";
  constexpr uint64_t kGb = 1'000'000'000;
  BOOST_TEST(says(full, {{"/data", {kGb, kGb / 2, 500, 0}}}) ==
             "the file system of /data has no free inode: 0 of 500; 500.0 MB of 1.0 GB free\n");
  BOOST_TEST(says(full, {{"/data", {kGb, 0, 500, 9}}}).starts_with("the file system of /data has no room"));
  BOOST_TEST(says(quota, {{"/data", {kGb, kGb / 2, 0, 0}}}).starts_with("the file system of /data has room"));
  BOOST_TEST(says("No space left on device\n", {{"/work", {kGb, 0, 5, 5}}})
                 .starts_with("the file system of /work has no room"));
  BOOST_TEST(says("ValueError: /data/x\n", {{"/data", {kGb, 0, 5, 5}}}) == "");
}

BOOST_AUTO_TEST_CASE(an_exception_that_a_rank_recorded_becomes_its_log) {
  const Place place;
  const fs::path rank = place.root / "torchrun/none_x/attempt_0/2";
  fs::create_directories(rank);
  std::ofstream(rank / "error.json") << R"({"message": {"message": "KeyError: 'x'", "extraInfo":
    {"py_callstack": "Traceback:\nKeyError: 'x'\n", "timestamp": "1795721288"}}})";
  BOOST_TEST(replace_error_files((place.root / "torchrun").string(), place.held(), 8) == 1u);
  const std::string text = content(place.root / "rank_10.error.log");
  BOOST_TEST(text.starts_with("2026-11-26T"));
  BOOST_TEST(text.ends_with("Traceback:\nKeyError: 'x'\n"));
  BOOST_TEST(!fs::exists(rank / "error.json"));
  for (const char* broken : {"", "[]", "{", R"({"message": 3})", R"({"message": {"extraInfo": 7}})"})
    BOOST_TEST(log_of_error(broken).find("KeyError") == std::string::npos);
}

BOOST_AUTO_TEST_CASE(a_path_with_signs_of_a_glob_or_of_toml_stands_for_itself) {
  const Place place;
  const fs::path odd = place.root / "a[b]*\"\\{c}";
  fs::create_directories(odd);
  Launch launch = launch_of("train");
  const auto folder = place.make(launch, odd.string());
  BOOST_REQUIRE(folder.has_value());
  const std::string config = private_config(*folder, launch, {});
  BOOST_TEST(config.find("a[[]b][*]\\\"\\\\[{]c[}]") != std::string::npos);
}

}  // namespace
}  // namespace culprit::app
