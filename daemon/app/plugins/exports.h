// Symbols that a shared library exports, from its bytes. A pure function; survives any bytes.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace culprit::app {

// Defined global symbols, sorted, without weak ones: C++ exports its library's templates as weak symbols. The
// error is a reason without a subject.
Result<std::vector<std::string>> exported_symbols(std::string_view library);

}  // namespace culprit::app
