// How processes end, as their files show it: each job is a few small files, and the report is what counts.
#include <fmt/format.h>

#include <boost/test/unit_test.hpp>

#include "core/engine.h"

using namespace culprit;
using namespace culprit::core;

namespace {

struct File {
  std::string name, text;
  std::optional<uint32_t> rank;
};

Report report_of(const std::vector<File>& files) {
  EngineOptions options;
  options.rules = rules::Ruleset::shipped();
  Engine engine(std::move(options));
  logs::LineParser parser{logs::ParseOptions{}, engine.make_scanner()};
  logs::LogBatch batch;
  for (size_t f = 0; f < files.size(); ++f) {
    SourceInfo info;
    info.file = files[f].name;
    info.rank = files[f].rank;
    Input opened = SourceOpened{info};
    engine.step({&opened, 1}, kNoTime);
    const std::string& text = files[f].text;
    parser.parse({static_cast<SourceId>(f), 0, 0, text, text.size(), true}, info, batch);
    Input lines = LogInput{&batch};
    engine.step({&lines, 1}, kNoTime);
  }
  return engine.report();
}

std::string steps(int n) {
  std::string out;
  for (int s = 0; s < n; ++s)
    out += fmt::format("2026-03-01 09:{:02}:{:02},000 INFO step={} loss=2.1\n", s / 60, s % 60, s);
  return out;
}

std::string uncaught(std::string_view exception) {
  return fmt::format(
      "Traceback (most recent call last):\n  File \"/app/run.py\", line 5, in <module>\n    main()\n"
      "  File \"/app/run.py\", line 3, in main\n    work()\n{}\n",
      exception);
}

const Diagnosis& verdict(const Report& r) {
  BOOST_REQUIRE(r.verdict.has_value());
  return r.diagnoses[*r.verdict];
}

std::string rank_log(int n, std::string_view end) { return steps(n) + std::string(end); }

constexpr std::string_view kLostPeer =
    "RuntimeError: [gloo/transport/tcp/pair.cc:598] Connection closed by peer [10.0.0.2]:4711";

}  // namespace

BOOST_AUTO_TEST_CASE(an_uncaught_exception_that_ends_a_file_without_times_is_a_death) {
  const Report r = report_of(
      {{"job.err", uncaught("ValueError: class 12 is out of range"), {}}, {"job.out", steps(80), {}}});
  const Diagnosis& d = verdict(r);
  BOOST_TEST((d.category == Category::kUser));
  BOOST_TEST(d.title.find("class 12") != std::string::npos);
  BOOST_TEST((d.stage == Stage::kIterative));
}

BOOST_AUTO_TEST_CASE(a_traceback_that_a_function_caught_and_printed_is_no_death) {
  const std::string caught =
      "Traceback (most recent call last):\n  File \"/app/cache.py\", line 9, in load\n    read()\n"
      "ValueError: cache is cold\n";
  BOOST_TEST(!report_of({{"job.err", caught, {}}, {"job.out", steps(80), {}}}).verdict.has_value());
}

BOOST_AUTO_TEST_CASE(a_checkpoint_that_could_not_be_written_is_the_storages_although_all_ranks_end) {
  const std::string writer =
      "Traceback (most recent call last):\n  File \"/lib/torch/serialization.py\", line 4, in save\n"
      "    zip_file.write_record(name)\n"
      "RuntimeError: [enforce fail at inline_container.cc:445] . PytorchStreamWriter failed writing file "
      "data/3: file write failed\n\n"
      "During handling of the above exception, another exception occurred:\n\n" +
      uncaught("RuntimeError: [enforce fail at inline_container.cc:325] . unexpected pos 512 vs 448") +
      "terminate called after throwing an instance of 'c10::Error'\n";
  const Report r = report_of(
      {{"agent.log", uncaught("torch.distributed.elastic.multiprocessing.errors.ChildFailedError: "), {}},
       {"0/stderr.log", writer, 0},
       {"0/stdout.log", steps(30), 0},
       {"1/stderr.log", uncaught(kLostPeer), 1},
       {"1/stdout.log", steps(30), 1}});
  BOOST_TEST((verdict(r).component == Component::kStorage));
}

BOOST_AUTO_TEST_CASE(the_rank_that_says_nothing_while_its_peers_lose_it_is_named_and_nothing_more) {
  const std::string bar = "train:  40%|####      | 40/100 [00:20<00:46,  4.49it/s, loss=2.9]";
  const Report r = report_of({{"rank_0.log", rank_log(41, bar + uncaught(kLostPeer)), 0},
                              {"rank_1.log", rank_log(41, ""), 1},
                              {"rank_2.log", rank_log(41, uncaught(kLostPeer)), 2},
                              {"rank_3.log", rank_log(41, uncaught(kLostPeer)), 3}});
  const Diagnosis& d = verdict(r);
  BOOST_TEST((d.category == Category::kUnknown));
  BOOST_TEST((d.component == Component::kUnknown));
  BOOST_REQUIRE(d.hosts.size() == 1u);
  BOOST_TEST(d.hosts[0].ranks == std::vector<uint32_t>{1}, boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(where_one_rank_tells_its_own_fault_no_silent_one_is_accused) {
  const Report r = report_of({{"rank_0.log", rank_log(41, uncaught(kLostPeer)), 0},
                              {"rank_1.log", rank_log(41, ""), 1},
                              {"rank_2.log", rank_log(41, uncaught("KeyError: 'tokens'")), 2},
                              {"rank_3.log", rank_log(41, uncaught(kLostPeer)), 3}});
  BOOST_TEST((verdict(r).category == Category::kUser));
}

BOOST_AUTO_TEST_CASE(a_bare_assertion_is_known_by_the_programs_line) {
  const Report r = report_of({{"train.log",
                               "Traceback (most recent call last):\n"
                               "  File \"/app/run.py\", line 5, in <module>\n    build()\n"
                               "  File \"/app/data.py\", line 9, in build\n    assert num_samples > 0\n"
                               "AssertionError\n",
                               {}}});
  BOOST_TEST(verdict(r).rule.value_or("") == "framework.megatron.samples");
}

BOOST_AUTO_TEST_CASE(the_launchers_line_names_the_rank_that_crashed) {
  const Report r =
      report_of({{"agent.log",
                  "ERROR:torch.distributed.elastic.multiprocessing.api:failed (exitcode: -11) "
                  "local_rank: 1 (pid: 77) of binary: /usr/bin/python3\n" +
                      uncaught("torch.distributed.elastic.multiprocessing.errors.ChildFailedError: "),
                  {}}});
  const Diagnosis& d = verdict(r);
  BOOST_TEST(d.rule.value_or("") == "pytorch.launcher.crash");
  BOOST_TEST(d.title.find("local rank 1") != std::string::npos);
  BOOST_TEST(!d.stage.has_value());
}
