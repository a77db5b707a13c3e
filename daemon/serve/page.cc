#include "serve/page.h"

namespace culprit::serve {
namespace web {
extern const char *const k_index_html, *const k_page_css, *const k_page_js;
}

std::vector<Route> page_routes() {
  const auto file = [](const char* pattern, const char* type, const char* text) {
    return Route{"GET", pattern,
                 [type, text](const Request&, const Reply& reply) {
                   reply.send({200, type, text, {}});
                 },
                 Role::kNone};
  };
  return {file("/", "text/html; charset=utf-8", web::k_index_html),
          file("/page.css", "text/css; charset=utf-8", web::k_page_css),
          file("/page.js", "text/javascript; charset=utf-8", web::k_page_js)};
}

}  // namespace culprit::serve
