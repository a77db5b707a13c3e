// Errors as values. A function that can fail returns Result<T>; the error is one sentence that names the
// subject and the reason ("runs/a.log: permission denied"). Nothing here throws.
#pragma once

#include <string>
#include <tl/expected.hpp>
#include <utility>

namespace culprit {

enum class ErrorCode {
  kInvalid,   // the input breaks its format
  kNotFound,  // the named object does not exist
  kDenied,    // no permission to read or write the object
  kLimit,     // a limit of base/limits.h was reached
  kIo,        // the system failed
  kBusy,      // the same work is already running
  kTooSoon,   // the same request was made a moment ago
};

struct [[nodiscard]] Error {
  ErrorCode code = ErrorCode::kInvalid;
  std::string text;  // one sentence, no final full stop, subject first
};

template <class T>
using Result = tl::expected<T, Error>;
using Status = Result<void>;

inline tl::unexpected<Error> fail(ErrorCode code, std::string text) {
  return tl::unexpected<Error>(Error{code, std::move(text)});
}

}  // namespace culprit
