// The page at `/`: three files that a browser reads, made for the API beside it. Whatever came from logs is
// shown as text and never as markup. Pure; any thread.
#pragma once

#include <vector>

#include "serve/http_server.h"

namespace culprit::serve {

std::vector<Route> page_routes();

}  // namespace culprit::serve
