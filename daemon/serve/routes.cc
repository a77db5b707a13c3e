#include "serve/routes.h"

#include "base/text.h"

namespace culprit::serve {
namespace {

bool matches(const std::vector<std::string>& parts, const std::vector<std::string>& path,
             std::map<std::string, std::string>& names) {
  if (parts.size() != path.size()) return false;
  for (size_t i = 0; i < parts.size(); ++i) {
    const std::string& part = parts[i];
    if (!part.starts_with('{')) {
      if (part != path[i]) return false;
    } else if (path[i].empty()) {
      return false;
    } else {
      names[part.substr(1, part.size() - 2)] = path[i];
    }
  }
  return true;
}

}  // namespace

RouteTable::RouteTable(std::vector<Route> routes) {
  for (Route& route : routes) {
    Row row{std::move(route), {}};
    const std::string_view pattern = std::string_view(row.route.pattern).substr(1);
    if (!pattern.empty())
      for (std::string_view part : split(pattern, '/')) row.parts.emplace_back(part);
    rows_.push_back(std::move(row));
  }
}

RouteTable::Match RouteTable::find(std::string_view method, const std::vector<std::string>& path) const {
  Match out;
  for (const Row& row : rows_) {
    std::map<std::string, std::string> names;
    if (!matches(row.parts, path, names)) continue;
    if (!out.allow.empty()) out.allow += ", ";
    out.allow += row.route.method == "GET" ? "GET, HEAD" : row.route.method;
    if (row.route.method != method) continue;
    out.route = &row.route;
    out.names = std::move(names);
  }
  return out;
}

}  // namespace culprit::serve
