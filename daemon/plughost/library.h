// A plugin's library in this process: opened, and its description checked. dlopen runs its constructors
// before any check, so the daemon does this only for plugins that are configured to run in it.
//
// The library is never unloaded: threads of its own may still run in it.
#pragma once

#include <string>
#include <string_view>

#include "base/status.h"
#include "plughost/description.h"

namespace culprit::plughost {

struct Library {
  const culprit_plugin* plugin = nullptr;
  Description description;
};

// `descriptor`: of the open file, borrowed. `name`: the file's name without ".so". The error is a reason
// without a subject.
Result<Library> open_library(int descriptor, std::string_view name);

}  // namespace culprit::plughost
