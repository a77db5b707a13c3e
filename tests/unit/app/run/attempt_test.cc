#include "app/run/attempt.h"
#include "app/run/attempt_json.h"

#include <fmt/ranges.h>

#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>
#include <nlohmann/json.hpp>

namespace culprit::app {
namespace {

struct Words {
  std::string words, resume, filled;
};
std::ostream& operator<<(std::ostream& out, const Words& w) { return out << w.words; }

const Words kWords[] = {
    {"train.py --resume {resume} --seed {attempt}", "/c/12", "train.py --resume /c/12 --seed 2"},
    {"train.py --resume {resume} -v", "", "train.py -v"},
    {"train.py --resume={resume}", "", "train.py"},
    {"train.py ckpt={resume}", "", "train.py ckpt="},
    {"train.py --port {port} {other}", "", "train.py --port 4321 {other}"},
    {"--nproc-per-node {ngpus} --on {gpus}", "", "--nproc-per-node 2 --on GPU-a,GPU-b"},
};

Report failed(std::string rule, std::string title, Restart kind, int64_t iteration) {
  Report r;
  Diagnosis d;
  d.rule = std::move(rule);
  d.title = std::move(title);
  d.confidence = 0.88;
  d.iteration = iteration;
  d.restart = {kind, true, "why", {}, {}};
  r.diagnoses.push_back(std::move(d));
  r.verdict = 0;
  return r;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(attempt)

BOOST_DATA_TEST_CASE(words_of_the_command_are_filled_in_and_an_option_without_a_checkpoint_goes,
                     boost::unit_test::data::make(kWords)) {
  std::vector<std::string> words;
  std::istringstream text(sample.words);
  for (std::string word; text >> word;) words.push_back(word);
  BOOST_TEST(fmt::format("{}", fmt::join(filled(words, {2, sample.resume, 4321, {"GPU-a", "GPU-b"}, {}, 0}),
                                         " ")) == sample.filled);
}

BOOST_AUTO_TEST_CASE(words_of_the_command_name_the_hosts_and_this_one) {
  Placeholders values;
  values.hosts = {"n3", "n1"};
  values.node_rank = 1;
  const auto words =
      filled({"{hosts}", "{nhosts}", "--node-rank={node_rank}", "tcp://{master}:{port}"}, values);
  BOOST_TEST(fmt::format("{}", fmt::join(words, " ")) == "n3,n1 2 --node-rank=1 tcp://n3:{port}");
  BOOST_TEST(filled({"{hosts}"}, {}).front() == "{hosts}");
}

BOOST_AUTO_TEST_CASE(a_failure_has_one_root_whatever_its_numbers_and_progress_beyond_the_best_step) {
  const auto first = failure_of(failed("a.b", "Port 29500 is in use", Restart::kSame, 7), "n1", std::nullopt);
  const auto second = failure_of(failed("a.b", "Port 29501 is in use", Restart::kSame, 7), "n1", 7);
  BOOST_TEST(first.root == "a.b: Port # is in use");
  BOOST_TEST(first.root == second.root);
  BOOST_TEST((first.progress == recover::Progress::kMade));
  BOOST_TEST((second.progress == recover::Progress::kNone));
  BOOST_TEST((failure_of(std::nullopt, "n1", 7).progress == recover::Progress::kUnknown));
}

BOOST_AUTO_TEST_CASE(an_older_checkpoint_is_from_before_the_fault_and_the_one_that_was_used) {
  BOOST_TEST((older_than(20, 17) == 17));
  BOOST_TEST((older_than(10, 17) == 10));
  BOOST_TEST((older_than(std::nullopt, 17) == 17));
  BOOST_TEST((older_than(10, std::nullopt) == 10));
  BOOST_TEST(!older_than(std::nullopt, std::nullopt).has_value());
}

BOOST_AUTO_TEST_CASE(a_scheduler_that_counts_learns_whether_another_attempt_helps) {
  recover::Failure f;
  recover::Decision stop, again;
  stop.code = recover::kWillNotHelp;
  again.again = true;
  BOOST_TEST(verdict_code(f, stop) == 0);  // the cause is not known
  f.advice.kind = Restart::kNever;
  BOOST_TEST(verdict_code(f, stop) == recover::kWillNotHelp);
  f.advice.kind = Restart::kLater;
  BOOST_TEST(verdict_code(f, again) == recover::kElsewhereHelps);
  BOOST_TEST(verdict_code(f, stop) == recover::kWillNotHelp);  // its attempts are used up
}

BOOST_AUTO_TEST_CASE(a_line_of_the_ledger_is_one_object) {
  Attempt a;
  a.headline = "GPU has \"fallen\"\n off";
  a.to = 17;
  const std::string line = ledger_line(a);
  BOOST_TEST(std::ranges::count(line, '\n') == 1);
  const auto read = nlohmann::json::parse(line);
  BOOST_TEST(read["to"] == 17);
  BOOST_TEST(read["from"].is_null());
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace culprit::app
