#include "app/offline/diagnose.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <filesystem>
#include <fstream>

#include "../../../sim/plain_job.h"
#include "model/report_json.h"

using namespace culprit;
using namespace culprit::app;
namespace fs = std::filesystem;

namespace {

struct Folder {
  fs::path path;
  Folder() {
    std::string name = (fs::temp_directory_path() / "culprit-app-XXXXXX").string();
    path = mkdtemp(name.data());
  }
  ~Folder() { fs::remove_all(path); }
  void write(const std::string& name, const std::string& text) const {
    fs::create_directories((path / name).parent_path());
    std::ofstream(path / name, std::ios::binary) << text;
  }
};

// Some megabytes, so that files are read in several pieces.
std::string long_log(int host, size_t lines) {
  std::string text;
  for (size_t i = 0; i < lines; ++i)
    text += fmt::format(
        "2026-11-21 {:02}:{:02}:{:02},000 INFO step={} host {} loaded shard {} of /data/set-{}.bin\n",
        i / 3600 % 24, i / 60 % 60, i % 60, i, host, i * 37 % 1000, i % 13);
  return text;
}

DiagnoseOptions options(const fs::path& path, unsigned threads) {
  DiagnoseOptions o;
  o.paths = {path.string()};
  o.threads = threads;
  return o;
}

std::string answer(const fs::path& path, unsigned threads) {
  ReadProgress progress;
  auto done = diagnose(options(path, threads), progress);
  BOOST_REQUIRE(done.has_value());
  return to_json(done->report);
}

}  // namespace

BOOST_AUTO_TEST_CASE(the_answer_does_not_depend_on_the_number_of_threads) {
  Folder folder;
  for (int h = 0; h < 4; ++h)
    folder.write(fmt::format("node-{}.log", h), long_log(h, h == 0 ? 90'000 : 2'000));
  folder.write("node-2/kern.log",
               "2026-11-21 00:33:00,000 NVRM: Xid (PCI:0000:9b:00): 79, pid=1, GPU has fallen off\n");
  const std::string one = answer(folder.path, 1);
  BOOST_TEST(one == answer(folder.path, 2));
  BOOST_TEST(one == answer(folder.path, 7));
}

BOOST_AUTO_TEST_CASE(files_of_ended_operations_alone_leave_a_hang_open) {
  for (const char* input : {"inspector/plain", "profiler_trace/steps"}) {
    ReadProgress progress;
    const auto done =
        diagnose(options(fs::path(CULPRIT_SOURCE_DIR) / "tests/fuzz/corpus" / input, 1), progress);
    BOOST_REQUIRE(done.has_value());
    BOOST_TEST(std::ranges::any_of(
                   done->report.missing,
                   [](const std::string& one) { return one.starts_with("whether an operation hangs"); }),
               input);
  }
}

BOOST_AUTO_TEST_CASE(a_missing_argument_is_reported_and_the_others_are_read) {
  Folder folder;
  folder.write("a.log", "one\ntwo\n");
  DiagnoseOptions o = options(folder.path, 1);
  o.paths.push_back((folder.path / "no-such").string());
  ReadProgress progress;
  const auto done = diagnose(o, progress);
  BOOST_REQUIRE(done.has_value());
  BOOST_REQUIRE(done->errors.size() == 1u);
  BOOST_TEST(done->errors[0].text.find("no-such") != std::string::npos);
  BOOST_TEST(done->report.job.lines == 2u);
}

BOOST_AUTO_TEST_CASE(a_broken_job_file_is_a_problem_and_the_logs_are_read) {
  Folder folder;
  folder.write("job.toml", "[job\nid = 3\n");
  folder.write("a.log", "one\n");
  ReadProgress progress;
  const auto done = diagnose(options(folder.path, 1), progress);
  BOOST_REQUIRE(done.has_value());
  BOOST_TEST(done->report.problems.size() == 1u);
  BOOST_TEST(done->report.job.lines == 1u);
}

BOOST_AUTO_TEST_CASE(stopping_gives_what_was_known_and_says_so) {
  Folder folder;
  folder.write("a.log", long_log(0, 1000));
  ReadProgress progress;
  progress.stop = true;
  const auto done = diagnose(options(folder.path, 2), progress);
  BOOST_REQUIRE(done.has_value());
  BOOST_TEST(done->report.interrupted);
  BOOST_TEST(done->report.job.lines == 0u);
}

BOOST_AUTO_TEST_CASE(a_folder_of_jobs_with_a_job_file_each_is_as_many_jobs_of_the_pool) {
  Folder folder;
  for (const char* n : {"0", "1", "2"}) {
    folder.write(fmt::format("{}/job.toml", n), "[job]\nid = \"j\"\n");
    folder.write(fmt::format("{}/node-1.log", n), "all is well\n");
  }
  ReadProgress progress;
  const auto pool = build_pool({folder.path.string()}, options(folder.path, 1), progress);
  BOOST_REQUIRE(pool.has_value());
  BOOST_TEST(pool->pool.jobs == 3u);
}

BOOST_AUTO_TEST_CASE(a_healthy_job_or_pool_that_cannot_be_read_is_reported_and_the_report_made_without_it) {
  Folder folder;
  folder.write("job/a.log", "one\n");
  folder.write("broken.pool", "no pool\n");
  DiagnoseOptions o = options(folder.path / "job", 1);
  const std::string healthy = (folder.path / "no-such").string(),
                    pool = (folder.path / "broken.pool").string();
  o.healthy = {healthy};
  o.pool_file = pool;
  ReadProgress progress;
  const auto done = diagnose(o, progress);
  BOOST_REQUIRE(done.has_value());
  BOOST_TEST(done->anything);
  BOOST_TEST(done->errors.size() == 2u);
  BOOST_TEST(done->report.job.lines == 1u);
  BOOST_REQUIRE(done->report.problems.size() == 2u);
  BOOST_TEST(done->report.problems[0].file == pool);
  BOOST_TEST(done->report.problems[1].file == healthy);
}

BOOST_AUTO_TEST_CASE(only_the_first_job_file_of_a_top_folder_counts_and_the_others_are_reported) {
  Folder folder;
  for (const char* name : {"one", "two", "one/nested"})
    folder.write(fmt::format("{}/job.toml", name), fmt::format("[job]\nid = \"{}\"\n", name));
  DiagnoseOptions o = options(folder.path / "one", 1);
  o.paths.push_back((folder.path / "two").string());
  ReadProgress progress;
  const auto done = diagnose(o, progress);
  BOOST_REQUIRE(done.has_value());
  BOOST_TEST(done->report.job.id.value_or("") == "one");
  BOOST_TEST(done->report.job.lines == 0u);
  BOOST_REQUIRE(done->report.problems.size() == 2u);
  BOOST_TEST(done->report.problems[0].file.ends_with("one/nested/job.toml"));
  BOOST_TEST(done->report.problems[1].file.ends_with("two/job.toml"));
}

BOOST_AUTO_TEST_CASE(the_answer_of_traces_does_not_depend_on_the_number_of_threads) {
  Folder folder;
  plain::Faults faults;
  faults.work = [](uint32_t rank, uint32_t) { return rank == 9 ? 1.5 : 1.0; };
  plain::Job job({4, 4, 4, 8, 2, 8}, {}, faults);
  std::vector<std::string> files(job.hosts());
  for (uint32_t h = 0; h < job.hosts(); ++h) files[h] = comm_header_bytes({fmt::format("node-{}", h), "job"});
  for (int s = 0; s < 12; ++s) {
    const auto step = job.step();
    for (uint32_t h = 0; h < job.hosts(); ++h)
      files[h].append(reinterpret_cast<const char*>(step[h].data()), step[h].size() * kCommRecordBytes);
  }
  for (uint32_t h = 0; h < job.hosts(); ++h) folder.write(fmt::format("node-{}.comm", h), files[h]);
  const std::string one = answer(folder.path, 1);
  BOOST_TEST(one.find("\"rank\":9,") != std::string::npos);
  BOOST_TEST(answer(folder.path, 2) == one);
  BOOST_TEST(answer(folder.path, 7) == one);
}

BOOST_AUTO_TEST_CASE(threads_are_a_whole_number_or_refused) {
  for (const char* setting : {"abc", "2abc", "0", "-1", " 2", "1.5"}) {
    BOOST_TEST_CONTEXT(setting) BOOST_TEST(!thread_count(setting).has_value());
  }
  const std::pair<const char*, unsigned> rows[] = {{"1", 1}, {"7", 7}, {"1000", 256}, {"99999999999", 256}};
  for (const auto& [setting, threads] : rows) BOOST_TEST(thread_count(setting).value_or(0) == threads);
  BOOST_TEST(thread_count(nullptr).value_or(0) > 0u);
}

BOOST_AUTO_TEST_CASE(a_files_numbered_name_is_a_hosts_where_it_has_company) {
  const auto host = [](const std::vector<std::string>& names) {
    Folder folder;
    for (const std::string& name : names) folder.write(name, "hello\n");
    const auto files = collect_files({folder.path.string()}, {}, ReadProgress{});
    BOOST_REQUIRE(files.has_value());
    return files->logs.at(0).info.host.value_or("-");
  };
  BOOST_TEST(host({"hostile3.log"}) == "-");
  BOOST_TEST(host({"hostile3.log", "other9.log"}) == "-");
  BOOST_TEST(host({"gpu7.log", "gpu12.log"}) == "gpu7");
  BOOST_TEST(host({"gpu7.log", "gpu8/kern.log"}) == "gpu7");
  BOOST_TEST(host({"node-3.log"}) == "node-3");
}

BOOST_AUTO_TEST_CASE(the_users_pattern_wins_over_the_lines_for_every_command) {
  Folder folder;
  folder.write("a-left.log", "node-17: hello\n");
  DiagnoseOptions o;
  for (const bool pattern : {false, true}) {
    if (pattern) o.host_pattern = "a-(?<host>[a-z]+)";
    const auto files = collect_files({folder.path.string()}, o, ReadProgress{});
    BOOST_REQUIRE(files.has_value());
    core::Engine engine({});
    ReadProgress progress;
    read_logs(files->logs, {o.parse, 1}, engine, progress);
    BOOST_TEST(*engine.settled_log().writers().at(0).host == (pattern ? "left" : "node-17"));
  }
}

namespace {

// A rank's dump: the world waits in operation 12, which a stuck rank did not enter.
std::string flight_dump(bool stuck) {
  const std::string entry =
      R"({"pg_id":0,"process_group":["0","default_pg"],"collective_seq_id":12,"profiling_name":"nccl:all_reduce",)"
      R"("time_created_ns":1795219320000000000,"state":"scheduled","retired":false,"is_p2p":false})";
  return fmt::format(
      R"({{"version":"2.9","pg_config":{{"0":{{"name":"0","desc":"default_pg","ranks":"[0, 1, 2, 3]"}}}},)"
      R"("pg_status":{{"0":{{"last_enqueued_collective":"{}","last_completed_collective":"11"}}}},"entries":[{}]}})",
      stuck ? 11 : 12, stuck ? "" : entry);
}

}  // namespace

BOOST_AUTO_TEST_CASE(dumps_next_to_logs_tell_the_rank_that_hangs) {
  Folder folder;
  folder.write("job.toml", "[job]\nhosts = [\"node-0\", \"node-1\"]\nranks_per_host = 2\n");
  for (int h = 0; h < 2; ++h) folder.write(fmt::format("node-{}.log", h), long_log(h, 100));
  for (int r = 0; r < 4; ++r) folder.write(fmt::format("dumps/_dump_{}", r), flight_dump(r == 2));
  folder.write("dumps/_dump_9",
               "\x80\x02"
               "cos\nsystem\n.");
  ReadProgress progress;
  auto done = diagnose(options(folder.path, 3), progress);
  BOOST_REQUIRE(done.has_value());
  const Report& r = done->report;
  BOOST_REQUIRE((r.hang && r.hang->suspects.size() == 1));
  const Suspect& s = r.hang->suspects[0];
  BOOST_TEST((s.host == "node-1" && s.rank == 2u && s.device == 0u));
  BOOST_REQUIRE(r.verdict.has_value());
  const Diagnosis& d = r.diagnoses[*r.verdict];
  BOOST_TEST((d.detector == "comm" && d.symptom == Symptom::kHang));
  BOOST_REQUIRE(d.hosts.size() == 1u);
  BOOST_TEST((d.hosts[0].host == "node-1" && d.action.targets.empty()));  // the rank lives: its program
  BOOST_TEST(d.evidence[0].file == (folder.path / "dumps/_dump_2").string());
  BOOST_REQUIRE(r.problems.size() == 1u);
  BOOST_TEST(r.problems[0].what.starts_with("is refused: opcode GLOBAL"), r.problems[0].what);
  BOOST_TEST(answer(folder.path, 1) == answer(folder.path, 4));
}

BOOST_AUTO_TEST_CASE(of_two_dumps_of_a_rank_the_later_counts) {
  Folder folder;
  for (int r = 0; r < 4; ++r) folder.write(fmt::format("b/_dump_{}", r), flight_dump(r == 2));
  folder.write("a/_dump_1", flight_dump(true));  // from a time before the hang
  ReadProgress progress;
  auto done = diagnose(options(folder.path, 2), progress);
  BOOST_REQUIRE((done && done->report.hang));
  BOOST_REQUIRE(done->report.hang->suspects.size() == 1u);
  BOOST_TEST((done->report.hang->suspects[0].rank == 2u && !done->report.hang->suspects[0].host));
  BOOST_REQUIRE(done->report.problems.size() == 1u);
  BOOST_TEST(done->report.problems[0].what == "passed over: rank 1 left a later dump too");
}

BOOST_AUTO_TEST_CASE(real_dumps_name_exactly_the_ranks_that_were_stuck) {
  const char* data = std::getenv("CULPRIT_DATA");
  if (!data) {
    BOOST_TEST_MESSAGE("CULPRIT_DATA is not set: passed over");
    return;
  }
  const std::vector<std::pair<std::string, std::vector<uint32_t>>> cases = {{"gpu_error_1st", {12, 14}},
                                                                            {"lock_gil_1st", {9, 14}}};
  for (const auto& [name, ranks] : cases) {
    Folder folder;
    fs::copy(fs::path(data) / "flight-recorder" / name, folder.path / "run");
    ReadProgress progress;
    auto done = diagnose(options(folder.path, 2), progress);
    BOOST_REQUIRE((done && done->report.hang));
    std::vector<uint32_t> named;
    for (const Suspect& s : done->report.hang->suspects) {
      BOOST_TEST(!s.host);
      named.push_back(*s.rank);
    }
    BOOST_TEST(named == ranks, boost::test_tools::per_element());
    BOOST_TEST(done->report.suspects.size() == 2u);
    BOOST_TEST(done->report.verdict.has_value());
  }
}

namespace {

std::string metric(const std::string& job, int rank, int step,
                   const std::string& values = R"({"loss":2.5})") {
  return fmt::format(R"({{"kind":"metric"{},"host":"node-{}","rank":{},"step":{},"time_ns":{},"values":{}}})",
                     job.empty() ? "" : fmt::format(R"(,"job":"{}")", job), rank / 2, rank, step,
                     1'763'690'000'000'000'000 + int64_t{step} * 1'000'000'000, values) +
         "\n";
}

Diagnosed diagnosed(const DiagnoseOptions& o) {
  ReadProgress progress;
  auto done = diagnose(o, progress);
  BOOST_REQUIRE(done.has_value());
  return std::move(*done);
}

std::vector<std::string> problems_of(const Report& report) {
  std::vector<std::string> out;
  for (const Problem& p : report.problems)
    out.push_back(fmt::format("{} {} {}", fs::path(p.file).filename().string(),
                              p.offset ? static_cast<int64_t>(*p.offset) : -1, p.what));
  return out;
}

}  // namespace

BOOST_AUTO_TEST_CASE(metrics_tell_hosts_ranks_and_what_was_read) {
  Folder folder;
  std::string text;
  for (int step = 0; step < 300; ++step)
    for (int rank = 0; rank < 4; ++rank) text += metric("a", rank, step);
  folder.write("metrics.ndjson", text);
  const Report report = diagnosed(options(folder.path, 1)).report;
  BOOST_TEST((report.job.ranks == 4 && report.job.hosts == 2 && report.job.id == "a"));
  BOOST_TEST((report.job.lines == 1200 && report.job.bytes == text.size()));
  BOOST_TEST((report.job.last_ns - report.job.first_ns == 299 * kNsPerSecond));
  BOOST_TEST(report.problems.empty());
  BOOST_TEST(!report.verdict);
}

BOOST_AUTO_TEST_CASE(bad_lines_of_metrics_are_reported_with_their_place_and_the_others_read) {
  Folder folder;
  const std::string good = metric("a", 0, 1), bare = metric("a", 1, 1, R"({"loss":NaN})");
  const std::string text = good + metric("a", 2, 1, R"({"loss":"2.5"})") + bare +
                           R"({"kind":"metric","rank":"3","step":1,"values":{}})" + "\nno json\n" + good +
                           good.substr(0, good.size() / 2);
  folder.write("m.ndjson", text);
  const Report report = diagnosed(options(folder.path, 1)).report;
  BOOST_TEST(report.job.ranks == 2u);
  BOOST_TEST(report.job.lines == 7u);
  const auto problems = problems_of(report);
  BOOST_TEST_REQUIRE(problems.size() == 3u);
  BOOST_TEST(problems[0].starts_with(
                 fmt::format("m.ndjson {} 1 line not understood: 'loss' must be a number", good.size())),
             problems[0]);
  BOOST_TEST(problems[1].find("'rank' must be a whole number") != std::string::npos, problems[1]);
  BOOST_TEST(problems[2].find("2 lines not understood: it is no JSON object; the first: no json") !=
                 std::string::npos,
             problems[2]);
}

BOOST_AUTO_TEST_CASE(other_kinds_of_lines_in_a_file_of_metrics_say_what_they_do_live) {
  Folder folder;
  std::string text = metric("", 0, 1);
  text +=
      R"({"kind":"log","host":"node-7","rank":3,"line":"NVRM: Xid (PCI:0000:9b:00): 79, pid=1, GPU has fallen off the bus."})"
      "\n";
  text += R"({"kind":"event","name":"weather","sunny":true})"
          "\n"
          R"({"kind":"step","rank":0,"step":2})"
          "\n"
          R"({"kind":"phase","name":"evaluation","state":"begin"})"
          "\n"
          R"({"kind":"stack","rank":0,"threads":[]})"
          "\n";
  folder.write("m.ndjson", text + metric("", 1, 1));
  folder.write("train.log", "2026-11-21 00:00:00,000 INFO step=1\n");
  const Report report = diagnosed(options(folder.path, 1)).report;
  BOOST_REQUIRE(!report.diagnoses.empty());
  BOOST_TEST(report.diagnoses[0].rule.value_or("") == "nvidia.xid.79");
  BOOST_TEST(report.diagnoses[0].hosts[0].host.value_or("") == "node-7");
  BOOST_TEST((report.job.lines == 8 && report.problems.empty()));
}

BOOST_AUTO_TEST_CASE(each_job_that_lines_name_has_a_report_of_its_own) {
  Folder folder;
  folder.write("a.ndjson", metric("a", 0, 1) + metric("a", 1, 1));
  folder.write("mixed.ndjson", metric("b", 0, 1) + metric("a", 2, 1) + metric("b", 1, 2) + metric("b", 2, 2));
  DiagnoseOptions o = options(folder.path, 1);
  Diagnosed first = diagnosed(o);
  BOOST_TEST(first.report.job.id.value_or("") == "a");
  BOOST_TEST(first.report.job.ranks == 3u);
  BOOST_TEST(first.other_jobs == std::vector<std::string>{"b"}, boost::test_tools::per_element());
  o.job = "b";
  Diagnosed second = diagnosed(o);
  BOOST_TEST((second.report.job.id == "b" && second.report.job.ranks == 3));
  BOOST_TEST(second.other_jobs == std::vector<std::string>{"a"}, boost::test_tools::per_element());
  // With a job.toml the other files belong to its job.
  folder.write("job.toml", "[job]\nid = \"b\"\n");
  folder.write("nameless.ndjson", metric("", 7, 1));
  Diagnosed own = diagnosed(options(folder.path, 1));
  BOOST_TEST((own.report.job.id == "b" && own.report.job.ranks == 4));
  BOOST_TEST(own.other_jobs == std::vector<std::string>{"a"}, boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(traces_of_communication_count_as_read) {
  Folder folder;
  std::string trace(kCommHeaderBytes + 2 * kCommRecordBytes, '\0');
  trace.replace(0, 8, "CULPCOMM");
  trace[8] = 1, trace[12] = 64;
  trace.replace(16, 6, "node-0");
  folder.write("node-0.comm", trace);
  BOOST_TEST(diagnosed(options(folder.path, 1)).report.job.bytes == trace.size());
}
