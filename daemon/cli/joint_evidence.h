// What the member that decides about an attempt of several hosts reads for its decision: the reports and logs
// of all hosts, and the checkpoints. Children do the reading: the member shows life meanwhile, and does not
// fail with them. One object for each decision. Blocks; one thread: forks.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "app/run/agreement.h"
#include "base/status.h"
#include "base/time.h"
#include "cli/run_retries.h"
#include "model/report.h"

namespace culprit::cli {

class JointEvidence {
 public:
  // `goes_on`: see in_child(). All are borrowed.
  JointEvidence(const RunAgain& run, const app::Agreement& agreement, std::function<bool()> goes_on)
      : run_(run), agreement_(agreement), goes_on_(std::move(goes_on)) {}

  // The report of all hosts. `attempt`: the attempt's folder, or null.
  std::optional<Report> report(const app::HeldFolder* attempt);

  // The newest whole checkpoint, of a step before `before` if given; nothing: there is none. Reads no
  // checkpoint twice. kIo: it cannot be known in time.
  Result<std::optional<ResumeFrom>> newest(std::optional<int64_t> before);
  // A sentence about newer checkpoints that the last newest() left out; empty: none.
  const std::string& left_out() const { return left_out_; }

 private:
  Result<std::optional<ResumeFrom>> read_newest(std::optional<int64_t> before);
  std::string merged_reports() const;

  const RunAgain& run_;
  const app::Agreement& agreement_;
  const std::function<bool()> goes_on_;
  std::string left_out_;
  std::optional<std::optional<ResumeFrom>> newest_;  // of all checkpoints, once read
};

}  // namespace culprit::cli
