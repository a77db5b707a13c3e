// What the system refused, as an Error: the subject and the system's own words. Any thread.
#pragma once

#include <string>

#include "base/status.h"

namespace culprit::io {

// `code` is a value of errno.
Error system_error(const std::string& subject, int code);
inline tl::unexpected<Error> system_failure(const std::string& subject, int code) {
  return tl::unexpected<Error>(system_error(subject, code));
}

}  // namespace culprit::io
