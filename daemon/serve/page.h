// The page at `/`: files for a browser, which use the API. They contain no data and need no role: the
// browser needs the scripts before it can send a token. The page shows text from logs as text, never as
// markup. Pure; any thread.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "serve/http_server.h"

namespace culprit::serve {

struct PageFile {
  std::string_view name, text;  // "page.js"
};
// The files of serve/web.
std::span<const PageFile> page_files();
// A route for each file; index.html is `/`.
std::vector<Route> page_routes();

}  // namespace culprit::serve
