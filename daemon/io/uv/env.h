// The real world, on libuv. The calling thread becomes the loop's; run() must be called by it. SIGPIPE is
// ignored from then on in the whole process: a peer that goes away is an error of its stream and no signal.
// Everything made by the Env must be gone before it: its destructor checks that.
#pragma once

#include <memory>

#include "io/env.h"

namespace culprit::io {

std::unique_ptr<Env> make_uv_env();

}  // namespace culprit::io
