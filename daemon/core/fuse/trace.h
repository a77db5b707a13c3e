// Records how the findings of all detectors became one answer: what each pass added, joined, changed or
// dropped. Compares the findings before and after each pass. Pure.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "core/fuse/pass.h"
#include "model/finding.h"

namespace culprit::core::fuse {

struct PassStep {
  std::string pass, what;  // the pass's name, and a sentence without a full stop
};

class Trace : public PassObserver {
 public:
  void after(std::string_view pass, Parts reads, Parts writes, const Draft& draft) override;
  // Takes the findings after a pass. Weights against single hosts are omitted because of their number.
  void note(std::string_view pass, const std::vector<Finding>& findings);
  std::vector<PassStep> steps() const;

 private:
  struct Face {
    std::string name;  // as used in a sentence
    FindingKind kind = FindingKind::kFault;
    FindingRole role = FindingRole::kRoot;
    double confidence = 0;
    std::vector<std::string> why;
    size_t evidence = 0, found_by = 0;
  };
  static std::map<std::string, Face> faces_of(const std::vector<Finding>& findings);
  void add(std::string_view pass, std::string what);

  std::map<std::string, Face> before_;
  std::vector<PassStep> steps_;
  size_t left_out_ = 0;  // steps beyond the limit
};

}  // namespace culprit::core::fuse
