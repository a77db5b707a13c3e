// Ends of processes in their files: each job is a few small files, and the report counts.
#include <fmt/format.h>

#include <boost/test/unit_test.hpp>

#include "base/text.h"
#include "core/engine.h"

using namespace culprit;
using namespace culprit::core;

namespace {

struct File {
  std::string name, text;
  std::optional<uint32_t> rank, local = {};
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
    info.local = files[f].local;
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

Diagnosis verdict(const Report& r) {
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
  const Diagnosis d = verdict(r);
  BOOST_TEST((d.category == Category::kUser));
  BOOST_TEST(d.title.find("class 12") != std::string::npos);
  BOOST_TEST((d.stage == Stage::kIterative));
}

BOOST_AUTO_TEST_CASE(an_uncaught_exception_that_no_rule_knows_is_the_verdict_in_its_own_words) {
  const std::string gap = uncaught("mylib.errors.ShardGap: shard 17 jumps from record 4410 to 4512");
  struct Case {
    std::string name, log, says;
    std::optional<uint32_t> rank;
  };
  const Case cases[] = {
      {"an unusual name", steps(80) + gap, "ShardGap: shard 17 jumps from record 4410 to 4512", {}},
      {"a name without a message",
       steps(80) + uncaught("mylib.errors.ShardGap"),
       "mylib.errors.ShardGap",
       {}},
      {"before the first step", gap, "ShardGap", {}},
      {"a rank's own file", steps(80) + gap, "ShardGap", 3},
      {"below the launcher's word",
       steps(80) + gap + "srun: error: n01: task 0: Exited with exit code 1\n",
       "ShardGap",
       {}},
      {"below carets",
       steps(80) + "Traceback (most recent call last):\n  File \"/app/run.py\", line 5, in <module>\n"
                   "    main()\n    ~~~~^^\nmylib.ShardGap: shard 17\n",
       "mylib.ShardGap: shard 17",
       {}},
      {"in colours",
       steps(80) + "Traceback (most recent call last):\n  File \x1b[35m\"/app/run.py\"\x1b[0m, line "
                   "\x1b[35m5\x1b[0m, in \x1b[35m<module>\x1b[0m\n    \x1b[31mmain\x1b[0m()\n"
                   "\x1b[1;35mmylib.ShardGap\x1b[0m: \x1b[35mshard 17\x1b[0m\n",
       "mylib.ShardGap: shard 17",
       {}},
      {"at the end of a chain",
       steps(80) +
           "Traceback (most recent call last):\n  File \"/app/run.py\", line 9, in load\n    read()\n"
           "mylib.errors.ShardGap: shard 17\n\n"
           "During handling of the above exception, another exception occurred:\n\n" +
           uncaught("mylib.errors.NoData: none left"),
       "NoData: none left",
       {}},
  };
  for (const Case& c : cases) BOOST_TEST_CONTEXT(c.name) {
      const Diagnosis d = verdict(report_of({{"run.log", c.log, c.rank}}));
      BOOST_TEST(d.title.find(c.says) != std::string::npos, d.title);
      BOOST_TEST(d.confidence < 0.75);
      BOOST_TEST((!d.rule && d.detector == "traceback"));
    }
}

// The same exception in the notation of several libraries.
struct Drawn {
  std::string name, log, says;
};

std::vector<Drawn> drawn_exceptions() {
  return {
      {"a class made within a function", uncaught("__main__.build.<locals>.ShapeSkew: 3 != 4"),
       "__main__.build.<locals>.ShapeSkew: 3 != 4"},
      {"a name of other letters", uncaught("data.\u00dcberlauf: 3 Zeilen"), "data.\u00dcberlauf: 3 Zeilen"},
      {"loguru",
       "2026-03-01 09:01:21.100 | ERROR    | __main__:<module>:5 - An error has been caught in function "
       "'<module>', process 'MainProcess' (71), thread 'MainThread' (14012):\n"
       "Traceback (most recent call last):\n\n> File \"/app/run.py\", line 5, in <module>\n    main()\n"
       "    \u2514 <function main at 0x7f>\n\n  File \"/app/run.py\", line 3, in main\n    work()\n\n"
       "mylib.ShardGap: shard 17\n",
       "mylib.ShardGap: shard 17"},
      {"rich",
       "\u256d\u2500\u2500\u2500 Traceback (most recent call last) \u2500\u2500\u2500\u256e\n"
       "\u2502 /app/run.py:5 in <module>               \u2502\n"
       "\u2502 \u2771 5 main()                            \u2502\n"
       "\u2502 \u256d\u2500 locals \u2500\u256e                          \u2502\n"
       "\u2502 \u2502 x = 3 \u2502                             \u2502\n"
       "\u2502 \u2570\u2500\u2500\u2500\u2500\u2500\u2500\u2500\u2500\u256f                             "
       "\u2502\n"
       "\u2502 /app/run.py:3 in main                   \u2502\n"
       "\u2570\u2500\u2500\u2500\u2500\u2500\u2500\u2500\u2500\u2500\u2500\u2500\u256f\nShardGap: shard 17\n",
       "ShardGap: shard 17"},
      {"rich, in ASCII",
       "+--------- Traceback (most recent call last) ----------+\n| /app/run.py:5 in <module>      |\n"
       "| > 5 main()    |\n+------------------------+\nShardGap: shard 17\n",
       "ShardGap: shard 17"},
      {"a notebook",
       "---------------------------------------------------------------------------\n"
       "ShardGap                                  Traceback (most recent call last)\n"
       "Cell In[9], line 3\n      1 trainer = Trainer(cfg)\n----> 3 trainer.fit()\n\n"
       "File ~/nb/data.py:40, in Data.next(self)\n     38 if not self.left:\n"
       "---> 40     raise ShardGap(\"shard 17\")\n\nShardGap: shard 17\n",
       "ShardGap: shard 17"},
      {"an exception group",
       "  + Exception Group Traceback (most recent call last):\n"
       "  |   File \"/app/run.py\", line 4, in <module>\n  |     asyncio.run(main())\n"
       "  | ExceptionGroup: unhandled errors in a TaskGroup (2 sub-exceptions)\n"
       "  +-+---------------- 1 ----------------\n    | Traceback (most recent call last):\n"
       "    |   File \"/app/data.py\", line 9, in pull\n    |     raise ShardGap(17)\n"
       "    | mylib.ShardGap: shard 17\n    +---------------- 2 ----------------\n"
       "    | Traceback (most recent call last):\n    |   File \"/app/data.py\", line 9, in pull\n"
       "    | mylib.NoData: none\n    +------------------------------------\n",
       "mylib.ShardGap: shard 17"},
      {"torch.multiprocessing.spawn",
       uncaught("torch.multiprocessing.spawn.ProcessRaisedException: ") +
           "\n-- Process 1 terminated with the following error:\nTraceback (most recent call last):\n"
           "  File \"/lib/torch/multiprocessing/spawn.py\", line 90, in _wrap\n    fn(i, *args)\n"
           "  File \"/app/run.py\", line 3, in main\n    work()\nmylib.ShardGap: shard 17\n",
       "mylib.ShardGap: shard 17"},
      {"a worker of a data loader",
       uncaught("mylib.ShardGap: Caught ShardGap in DataLoader worker process 2.") +
           "Original Traceback (most recent call last):\n"
           "  File \"/lib/torch/utils/data/_utils/worker.py\", line 308, in _worker_loop\n    fetch(i)\n"
           "  File \"/app/data.py\", line 3, in get\n    work()\nmylib.ShardGap: shard 17\n",
       "mylib.ShardGap: shard 17"},
  };
}

BOOST_AUTO_TEST_CASE(an_uncaught_exception_is_the_verdict_however_it_is_drawn) {
  for (const Drawn& c : drawn_exceptions()) BOOST_TEST_CONTEXT(c.name) {
      const Diagnosis d = verdict(report_of({{"run.log", steps(80) + c.log, {}}}));
      BOOST_TEST(d.title.ends_with("exception: " + c.says), d.title);
      // The evidence is at the line with its number.
      BOOST_REQUIRE(!d.evidence.empty());
      const std::string log = steps(80) + c.log;
      const std::string_view line = split(log, '\n')[d.evidence[0].line.value_or(1) - 1];
      BOOST_TEST(line.ends_with(d.evidence[0].text), line);
    }
}

BOOST_AUTO_TEST_CASE(an_exception_that_the_job_survived_is_no_verdict_however_it_is_drawn) {
  for (const Drawn& c : drawn_exceptions()) BOOST_TEST_CONTEXT(c.name)
  BOOST_TEST(!report_of({{"run.log", c.log + steps(80), {}}}).verdict.has_value());
}

BOOST_AUTO_TEST_CASE(an_exception_that_names_no_hardware_is_no_verdict_after_a_stated_end) {
  const std::string push = uncaught("mylib.PushError: 401");
  struct Case {
    std::string name, log;
    bool verdict;
  };
  const Case cases[] = {
      {"training completed", "INFO Training completed.\n" + push, false},
      {"done training", "Done training.\n" + push, false},
      {"max_steps", "`Trainer.fit` stopped: `max_steps=80` reached.\n" + push, false},
      {"max_steps of another trainer", "INFO max_steps reached\n" + push, false},
      {"no such statement", "INFO saving\n" + push, true},
      {"the scheduler says that it failed",
       "Done training.\n" + push + "srun: error: n01: task 0: Exited with exit code 1\n", true},
      {"a cause that a rule knows",
       "Done training.\n" + uncaught("OSError: [Errno 28] No space left on device"), true}};
  for (const Case& c : cases) BOOST_TEST_CONTEXT(c.name) {
      const Report r = report_of({{"run.log", steps(80) + c.log, {}}});
      BOOST_TEST(r.verdict.has_value() == c.verdict);
      if (c.verdict) continue;
      BOOST_REQUIRE(!r.missing.empty());
      BOOST_TEST(r.missing[0].find("mylib.PushError: 401") != std::string::npos, r.missing[0]);
    }
}

BOOST_AUTO_TEST_CASE(an_exception_whose_cause_is_cut_off_stays_the_verdict) {
  const std::string log = uncaught("mylib.ShardGap: Caught ShardGap in DataLoader worker process 2.") +
                          "Original Traceback (most recent call last):\n"
                          "  File \"/lib/worker.py\", line 308, in _worker_loop\n";
  const std::string title = verdict(report_of({{"run.log", steps(80) + log, {}}})).title;
  BOOST_TEST(title.find("mylib.ShardGap: Caught ShardGap") != std::string::npos, title);
}

BOOST_AUTO_TEST_CASE(a_traceback_within_a_printed_sample_is_no_failure) {
  const std::string quoted =
      "Traceback (most recent call last):\n  File \"main.py\", line 1, in <module>\n    boom()\n"
      "widgets.GizmoError: gizmo not found\n";
  const std::string sample = "=== sample at step 80 ===\nprompt: why?\ncompletion: It prints\n" + quoted;
  const auto has_verdict = [](std::string_view end) {
    return report_of({{"run.log", rank_log(80, end), {}}}).verdict.has_value();
  };
  BOOST_TEST(!has_verdict(sample + "so install it.\n=== end of sample ===\n"));
  BOOST_TEST(
      report_of({{"run.log", rank_log(80, sample + "=== end of sample ===\n"), {}}}).indicating.empty());
  // A heading of another section does not end a sample.
  BOOST_TEST(has_verdict("prompt: config.toml\n" + quoted + "=== job finished with exit code 1 ===\n"));
  BOOST_TEST(has_verdict(sample));  // no line shows that the sample continues
  BOOST_TEST(has_verdict("=== sample at step 80 ===\ncompletion: Hm.\n=== end of sample ===\n" + quoted));
}

BOOST_AUTO_TEST_CASE(the_iteration_is_the_one_that_the_ranks_own_log_states) {
  // Within one second the other rank prints more steps.
  std::string ahead;
  for (int s = 0; s < 40; ++s)
    ahead += fmt::format("2026-03-01 09:00:{:02},000 INFO step={} loss=2.1\n", s / 4, s);
  std::string own;
  for (int s = 0; s < 37; ++s)
    own += fmt::format("2026-03-01 09:00:{:02},000 INFO step={} loss=2.1\n", s / 4, s);
  const Diagnosis d = verdict(
      report_of({{"rank_0.log", ahead, 0}, {"rank_1.log", own + uncaught("mylib.ShardGap: shard 17"), 1}}));
  BOOST_REQUIRE(d.iteration.has_value());
  BOOST_TEST(*d.iteration == 36);
}

BOOST_AUTO_TEST_CASE(a_log_that_ends_within_a_traceback_is_no_good_end) {
  const std::string whole = uncaught("ValueError: class 12 is out of range");
  const Diagnosis d =
      verdict(report_of({{"run.log", steps(80) + whole.substr(0, whole.rfind("ValueError")), {}}}));
  BOOST_TEST(d.title.find("cut off") != std::string::npos, d.title);
}

BOOST_AUTO_TEST_CASE(an_exception_of_unknown_name_that_the_job_survived_is_no_verdict) {
  const std::string early = uncaught("mylib.errors.ShardGap: shard 17");
  BOOST_TEST(!report_of({{"run.log", early + steps(80), {}}}).verdict.has_value());
}

BOOST_AUTO_TEST_CASE(a_traceback_that_a_function_caught_and_printed_is_no_death) {
  const std::string caught =
      "Traceback (most recent call last):\n  File \"/app/cache.py\", line 9, in load\n    read()\n"
      "ValueError: cache is cold\n";
  BOOST_TEST(!report_of({{"job.err", caught, {}}, {"job.out", steps(80), {}}}).verdict.has_value());
}

BOOST_AUTO_TEST_CASE(a_rank_without_a_prefix_is_numbered_as_its_neighbours_of_one_launcher_are) {
  struct Case {
    std::string name;
    int prefixes[3];  // of local ranks 0, 1 and 2; the exception of local rank 3 has none
    std::optional<uint32_t> rank;
  };
  const Case cases[] = {
      {"one host", {0, 1, 2}, 3}, {"the second host", {8, 9, 10}, 11}, {"no order", {4, 9, 2}, {}}};
  for (const Case& c : cases) BOOST_TEST_CONTEXT(c.name) {
      std::vector<File> files;
      for (int local = 0; local < 3; ++local)
        files.push_back({fmt::format("run/attempt_0/{}/stderr.log", local),
                         fmt::format("[rank{}]: {}\n", c.prefixes[local], kLostPeer),
                         {},
                         uint32_t(local)});
      files.push_back({"run/attempt_0/3/stderr.log", uncaught("KeyError: 'tokens'"), {}, 3u});
      const Diagnosis d = verdict(report_of(files));
      BOOST_REQUIRE(!d.evidence.empty());
      BOOST_TEST((d.evidence[0].rank == c.rank));
    }
}

BOOST_AUTO_TEST_CASE(a_kernels_word_of_waiting_is_a_verdict_only_once_the_job_makes_no_progress) {
  const auto kernel = [](int from, int to) {
    std::string out;
    for (int second = from; second < to; second += 6)
      out += fmt::format(
          "2026-03-01T09:{:02}:{:02}.000000+00:00 n1 kernel: nfs: server fs1 not responding, still "
          "trying\n",
          second / 60, second % 60);
    return out;
  };
  const Report going = report_of({{"run.log", steps(80), {}}, {"kern.log", kernel(61, 80), {}}});
  BOOST_TEST(!going.verdict.has_value());
  BOOST_TEST((going.missing.size() == 1 && going.missing[0].find("fs1") != std::string::npos));
  const Report stopped = report_of({{"run.log", steps(80), {}}, {"kern.log", kernel(79, 900), {}}});
  BOOST_TEST((verdict(stopped).category == Category::kPlatform));
}

BOOST_AUTO_TEST_CASE(a_traceback_below_a_line_that_says_it_will_retry_is_no_failure) {
  const auto log = [](std::string_view before) {
    return steps(80) + fmt::format("2026-03-01 09:01:20,000 WARNING {}\n", before) +
           "Traceback (most recent call last):\n  File \"/app/push.py\", line 41, in push\n    r.check()\n"
           "requests.exceptions.HTTPError: 503 Server Error: Service Unavailable for url: http://m/push\n";
  };
  BOOST_TEST(!report_of({{"run.log", log("upload failed, will retry in 30 s"), {}}}).verdict.has_value());
  BOOST_TEST(report_of({{"run.log", log("upload failed"), {}}}).verdict.has_value());
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
  const Diagnosis d = verdict(r);
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
  const Diagnosis d = verdict(r);
  BOOST_TEST(d.rule.value_or("") == "pytorch.launcher.crash");
  BOOST_TEST(d.title.find("local rank 1") != std::string::npos);
  BOOST_TEST(!d.stage.has_value());
}

// A link that was down an hour before the job is not why it is quiet now; one within its time may be.
BOOST_AUTO_TEST_CASE(what_a_kernel_wrote_long_before_a_job_that_trained_is_not_about_it) {
  const auto diagnosed = [](const char* time) {
    const std::string line = fmt::format(
        "2026-03-01T{}.000000+00:00 node-1 kernel: mlx5_core 0000:9a:00.0 ens9np0: Link down\n", time);
    return report_of({{"node-1/train.log", steps(30), {}}, {"node-1/messages", line, {}}}).diagnoses.size();
  };
  BOOST_TEST(diagnosed("08:00:05") == 0u);
  BOOST_TEST(diagnosed("09:10:31") > 0u);
}
