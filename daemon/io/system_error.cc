#include "io/system_error.h"

#include <cctype>
#include <cerrno>
#include <system_error>

namespace culprit::io {

Error system_error(const std::string& subject, int number) {
  std::string reason = std::generic_category().message(number);
  // Lower case after the subject: "Permission denied", "Input/output error". No reason begins with a proper
  // name.
  if (!reason.empty()) reason[0] = static_cast<char>(std::tolower(static_cast<unsigned char>(reason[0])));
  ErrorCode code = ErrorCode::kIo;
  if (number == ENOENT || number == ENOTDIR) code = ErrorCode::kNotFound;
  if (number == EACCES || number == EPERM) code = ErrorCode::kDenied;
  return Error{code, (subject.empty() ? "\"\"" : subject) + ": " + reason};
}

}  // namespace culprit::io
