// Passes a mail to a program with the interface of sendmail. Blocking: for a worker's thread.
#pragma once

#include <atomic>
#include <string>
#include <vector>

#include "base/status.h"
#include "base/time.h"

namespace culprit::respond {

struct MailHandover {
  std::string program;  // absolute path
  std::vector<std::string> to;
  std::string text;  // with headers
  TimeNs within_ns = 30 * kNsPerSecond;
  const std::atomic<bool>* stop = nullptr;  // ends it early; borrowed
};

// Runs PROGRAM -i -- TO... with an almost empty environment; kills it after `within_ns`. Refuses a program
// that users other than root and this process's user could change (io/trusted_path.h). Other errors have
// the exit status and the first line of standard error.
Status hand_over(const MailHandover& mail);

}  // namespace culprit::respond
