#include "serve/page.h"

#include <string>

namespace culprit::serve {
namespace {

const char* type_of(std::string_view name) {
  if (name.ends_with(".html")) return "text/html; charset=utf-8";
  return name.ends_with(".css") ? "text/css; charset=utf-8" : "text/javascript; charset=utf-8";
}

}  // namespace

std::vector<Route> page_routes() {
  std::vector<Route> out;
  for (const PageFile& file : page_files())
    out.push_back({"GET", file.name == "index.html" ? "/" : "/" + std::string(file.name),
                   [file](const Request&, const Reply& reply) {
                     reply.send({200, type_of(file.name), std::string(file.text), {}});
                   },
                   Role::kNone});
  return out;
}

}  // namespace culprit::serve
