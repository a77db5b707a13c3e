// The table of passes says what each pass writes. Checked on every case from the field.
#include <fmt/format.h>

#include <boost/test/unit_test.hpp>
#include <filesystem>
#include <map>
#include <set>

#include "app/offline/diagnose.h"
#include "app/offline/pipeline.h"
#include "core/fuse/pass.h"
#include "model/report_json.h"

namespace culprit::app {
namespace {

namespace fs = std::filesystem;
using core::fuse::Draft;
using core::fuse::Part;
using core::fuse::Parts;

std::string joined(const std::vector<std::string>& texts) {
  std::string out;
  for (const std::string& text : texts) out += text + "\n";
  return out;
}

// A text that differs where the part differs.
std::map<Part, std::string> state_of(const Draft& d) {
  const Report& r = d.report;
  std::string findings, problems;
  for (const Finding& f : d.analysis.findings)
    findings += fmt::format("{}|{}|{}|{}|{}|{}|{}\n", f.rule, f.title, static_cast<int>(f.kind),
                            static_cast<int>(f.role), f.confidence, joined(f.why), f.evidence.size());
  for (const Problem& p : r.problems) problems += p.file + p.what + "\n";
  Report diagnosed;
  diagnosed.diagnoses = r.diagnoses;
  diagnosed.suspects = r.suspects;
  diagnosed.indicating = r.indicating;
  diagnosed.verdict = r.verdict;
  Report hang;
  hang.hang = r.hang;
  return {
      {Part::kOutcome, fmt::format("{} {} {}", d.analysis.outcome.ended_well,
                                   d.analysis.outcome.last_progress_ns, d.analysis.outcome.last_iteration)},
      {Part::kFindings, findings},
      {Part::kHang, to_json(hang)},
      {Part::kSigns,
       fmt::format("{} {} {}", d.signs.unproven.size(), d.signs.witnesses.size(), d.left_out.has_value())},
      {Part::kOpen, joined(d.open) + joined(r.missing) + joined(r.notes)},
      {Part::kProblems, problems},
      {Part::kCharts, fmt::format("{} {} {} {} {}", r.irregularities.size(), r.numerics.size(),
                                  r.comm.steps.size(), r.curves.steps.size(), r.stacks.has_value())},
      {Part::kDiagnoses, to_json(diagnosed)},
      {Part::kJob, fmt::format("{} {} {} {}", r.job.hosts, r.job.ranks, r.job.bytes, r.job.lines)},
  };
}

class Guard : public core::fuse::PassObserver {
 public:
  void after(std::string_view pass, Parts reads, Parts writes, const Draft& draft) override {
    if (!written_.has_all_of(reads)) offences.insert(fmt::format("{} reads what nothing wrote", pass));
    written_ = written_ | writes;
    std::map<Part, std::string> now = state_of(draft);
    for (const auto& [part, text] : now)
      if (text != before_[part]) {
        ++changes_;
        if (!empty_ && !writes.has(part))
          offences.insert(fmt::format("{} writes part {}", pass, static_cast<int>(part)));
      }
    BOOST_TEST(names_.insert(std::string(pass)).second, pass << " is there once");
    before_ = std::move(now);
    empty_ = false;
  }
  size_t changes() const { return changes_; }
  size_t passes() const { return names_.size(); }
  std::set<std::string> offences;

 private:
  bool empty_ = true;  // before the first pass
  size_t changes_ = 0;
  Parts written_ = {};
  std::map<Part, std::string> before_;
  std::set<std::string> names_;
};

BOOST_AUTO_TEST_CASE(a_pass_writes_what_its_row_says_and_nothing_else) {
  size_t cases = 0, changes = 0;
  for (const fs::directory_entry& one : fs::directory_iterator(CULPRIT_SOURCE_DIR "/tests/regress/cases")) {
    Guard guard;
    DiagnoseOptions options;
    options.paths = {(one.path() / "input").string()};
    options.passes = &guard;
    ReadProgress progress;
    const auto done = diagnose(options, progress);
    BOOST_TEST_REQUIRE(done.has_value(), one.path().string());
    for (const std::string& offence : guard.offences)
      BOOST_ERROR(one.path().filename().string() + ": " + offence);
    cases += guard.passes() > 0;
    changes += guard.changes();
  }
  BOOST_TEST(cases > 50u);
  BOOST_TEST(changes > 5 * cases, "the passes do something");
}

}  // namespace
}  // namespace culprit::app
