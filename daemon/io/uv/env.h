// The real Env, on libuv. The calling thread becomes the loop thread and must call run(). From then on the
// process ignores SIGPIPE: a closed peer is an error of its stream. All objects of the Env must be destroyed
// first; the Env's destructor checks this.
#pragma once

#include <memory>

#include "io/env.h"

namespace culprit::io {

std::unique_ptr<Env> make_uv_env();

}  // namespace culprit::io
