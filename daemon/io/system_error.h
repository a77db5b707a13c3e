// A failed system call as an Error: the subject and the message of the system. Any thread.
#pragma once

#include <string>

#include "base/status.h"

namespace culprit::io {

// "subject: permission denied", with the matching code; `number` is a value of errno.
Error system_error(const std::string& subject, int number);
inline tl::unexpected<Error> system_failure(const std::string& subject, int number) {
  return tl::unexpected<Error>(system_error(subject, number));
}

}  // namespace culprit::io
