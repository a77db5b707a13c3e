// Signs: the lines of known kinds of fault in a job, one sign for each template, with what they say. Whether
// a sign was survived (the job went on) is decided here too. Pure.
#pragma once

#include <string>
#include <vector>

#include "core/detect/analysis.h"
#include "core/detect/view.h"
#include "model/report.h"

namespace culprit::diagnose {

struct Sign {
  const detect::TemplateScore* score = nullptr;
  logs::ShapeKind kind = logs::ShapeKind::kPlain;
  std::string name;  // "kernel: Xid", "KeyError"
  std::string title;
  Category category = Category::kUnknown;
  Component component = Component::kUnknown;
  Symptom symptom = Symptom::kCrash;
  ActionKind action = ActionKind::kNone;
  std::string remedy;
  bool of_host = true;  // where few hosts have it, it is theirs
  bool cascade = false;
  bool fatal = false;                         // by its kind: no job goes on after it
  std::vector<const logs::FaultLine*> lines;  // the first ones, in time
};

// Best explanation first: causes before cascades, then the earliest.
std::vector<Sign> find_signs(const detect::View& view, const detect::Analysis& analysis);

}  // namespace culprit::diagnose
