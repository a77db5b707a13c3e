// The page at `/`: three files for a browser, which use the API. They hold no data and need no role: the
// browser gets the script that sends the token. Text from logs is shown as text, never as markup. Pure; any
// thread.
#pragma once

#include <vector>

#include "serve/http_server.h"

namespace culprit::serve {

std::vector<Route> page_routes();

}  // namespace culprit::serve
