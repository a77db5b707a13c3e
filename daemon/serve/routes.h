// Finds the handler of a request. Pure; any thread.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "serve/http_server.h"

namespace culprit::serve {

class RouteTable {
 public:
  explicit RouteTable(std::vector<Route> routes);
  struct Match {
    const Route* route = nullptr;              // null: none
    std::map<std::string, std::string> names;  // values of "{job}" and others
    std::string allow;                         // methods of the path; empty: no such path
  };
  Match find(std::string_view method, const std::vector<std::string>& path) const;

 private:
  struct Row {
    Route route;
    std::vector<std::string> parts;
  };
  std::vector<Row> rows_;
};

}  // namespace culprit::serve
