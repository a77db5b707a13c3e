// Losses and gradients in logs that become NaN or infinite, from lines to the report.
#include <fmt/format.h>

#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>
#include <functional>

#include "core/engine.h"

using namespace culprit;
using namespace culprit::core;

namespace {

struct LogCase {
  std::string name;
  std::function<std::string(int)> line;  // of iteration 1, 2, ...
  int lines = 0;
  std::string title;  // a part of the title; empty: no numeric diagnosis
  std::string why = {};
};
std::ostream& operator<<(std::ostream& out, const LogCase& c) { return out << c.name; }

std::string megatron(int i, const std::string& loss, const std::string& norm, double rate = 6e-5) {
  return fmt::format(
      " iteration {:8}/    5000 | learning rate: {:.3E} | global batch size:   256 | lm loss: {} | loss "
      "scale: "
      "1.0 | grad norm: {} | number of skipped iterations:   0 | number of nan iterations:   0 |",
      i, rate, loss, norm);
}
std::string overflow(int i, int first) {
  const int scale = std::max(1, 65536 >> std::min(20, i - first));
  return fmt::format("[deepspeed] OVERFLOW! Rank 0 Skipping step. Attempted loss scale: {}, reducing to {}",
                     scale, std::max(1, scale / 2));
}
std::string nanogpt(int i, const std::string& loss) {
  return fmt::format("iter {}: loss {}, time 12.3ms", i, loss);
}
std::string number(int i) { return fmt::format("{:.4f}", 2 + 3.0 / i); }

const std::vector<LogCase> kLogs = {
    {"loss and norm", [](int i) { return megatron(i, i < 60 ? number(i) : "nan", i < 60 ? "1.2" : "nan"); },
     80, "The loss became NaN at iteration 60"},
    {"three norms in a row", [](int i) { return megatron(i, number(i), i < 60 ? "1.2" : "nan"); }, 62,
     "The gradient norm became NaN at iteration 60"},
    {"a rate that leapt before",
     [](int i) { return megatron(i, i < 60 ? number(i) : "nan", "1.2", i < 59 ? 6e-5 : 600); }, 80,
     "The loss became NaN at iteration 60", "the learning rate went from 6e-05 to 600 at iteration 59"},
    {"a spike before", [](int i) { return nanogpt(i, i < 55   ? number(i)
                                                     : i < 60 ? "9.5"
                                                              : "nan"); }, 80,
     "The loss became NaN at iteration 60", "the loss rose before"},
    {"no number in between", [](int i) { return nanogpt(i, i < 60 ? number(i) : "inf"); }, 70,
     "The loss became infinite at iteration 60"},
    {"the smallest scale",
     [](int i) { return i < 60 ? fmt::format("steps: {} loss: {}", i, number(i)) : overflow(i, 60); }, 90,
     "Gradients overflow at the smallest loss scale"},
    {"never finite", [](int i) { return nanogpt(i, "nan"); }, 30, "The loss is NaN from the first line on"},
    // No faults:
    {"the search for a scale",
     [](int i) { return i < 9 ? overflow(i, 1) : fmt::format("steps: {} loss: {}", i, number(i)); }, 60, ""},
    {"a handful of overflows in a run",
     [](int i) {
       return i % 20 == 0
                  ? std::string("OVERFLOW! Rank 0 Skipping step. Attempted loss scale: 1024, reducing to 512")
                  : fmt::format("steps: {} loss: {}", i, number(i));
     },
     100, ""},
    {"recovered", [](int i) { return nanogpt(i, i < 40 || i > 45 ? number(i) : "nan"); }, 80, ""},
    {"one norm, with its skip", [](int i) { return megatron(i, number(i), i == 40 ? "inf" : "1.2"); }, 80,
     ""},
    {"an evaluation without a class",
     [](int i) {
       return i % 10 == 0 ? fmt::format("step {}: {{'eval_loss': nan, 'eval_f1_class_7': nan}}", i)
                          : nanogpt(i, number(i));
     },
     80, ""},
};

const std::shared_ptr<rules::Ruleset>& shipped() {
  static const auto set = rules::Ruleset::shipped();
  return set;
}

Report diagnose(const std::string& text) {
  EngineOptions options;
  options.rules = shipped();
  Engine engine(std::move(options));
  logs::LineParser parser{logs::ParseOptions{}, engine.make_scanner()};
  logs::LogBatch batch;
  SourceInfo info;
  info.file = "train.log";
  Input opened = SourceOpened{info};
  engine.step({&opened, 1}, kNoTime);
  parser.parse({0, 0, 0, text, text.size(), true}, info, batch);
  Input lines = LogInput{&batch};
  engine.step({&lines, 1}, kNoTime);
  return engine.report();
}

}  // namespace

BOOST_DATA_TEST_CASE(lost_numbers_are_found_in_logs_with_what_came_before, kLogs) {
  std::string text;
  for (int i = 1; i <= sample.lines; ++i)
    text += fmt::format("2026-11-21 02:{:02}:{:02},000 {}\n", i / 60, i % 60, sample.line(i));
  const Report r = diagnose(text);
  const auto at = std::find_if(r.diagnoses.begin(), r.diagnoses.end(),
                               [](const Diagnosis& d) { return d.symptom == Symptom::kNumeric; });
  if (sample.title.empty()) {
    BOOST_TEST((at == r.diagnoses.end()));
    return;
  }
  BOOST_REQUIRE((at != r.diagnoses.end()));
  BOOST_TEST(at->title.find(sample.title) != std::string::npos, at->title);
  BOOST_TEST((at->category == Category::kUser));
  BOOST_TEST(at->hosts.empty());
  BOOST_TEST(!at->evidence.empty());
  BOOST_TEST(r.numerics.size() == 1u);
  std::string why;
  for (const std::string& sentence : at->why) why += sentence + "; ";
  BOOST_TEST(why.find(sample.why) != std::string::npos, why);
}
