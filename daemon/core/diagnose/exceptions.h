// What the kind of a Python exception says of where the fault lies. Only until rules take it over. Pure.
#pragma once

#include <string_view>

#include "model/report.h"

namespace culprit::diagnose {

struct ExceptionKind {
  Category category = Category::kUser;
  Component component = Component::kUserCode;
  bool of_host = false;  // the environment's: on one host alone it is that host's fault
  bool cascade = false;  // says only that something else failed: a peer, a child, a signal
};

// `text` is the exception's line: "torch.cuda.OutOfMemoryError: CUDA out of memory. ...".
ExceptionKind exception_kind(std::string_view text);

// "OutOfMemoryError" of the line above.
std::string_view exception_name(std::string_view text);

}  // namespace culprit::diagnose
