// Lists of objects, page by page. Blocking; any thread.
#pragma once

#include <functional>
#include <string>

#include "base/status.h"
#include "respond/kubernetes/api.h"
#include "respond/kubernetes/objects.h"

namespace culprit::respond::kubernetes {

struct ListRequest {
  std::string path;  // "/api/v1/pods?labelSelector=a", with a query or without
  size_t most = 20'000;
  int page = 250;
  size_t page_bytes = 16 << 20;
};

// Calls `add` with each object. A list whose next page has expired (410) begins again, at most three times,
// after `again`. An error: no answer, a refusal, more than `most` objects, or no list; then what was added is
// incomplete. `retry_after`: when the server asked to come back.
struct ListFailure {
  std::string text;
  std::optional<TimeNs> retry_after_ns;
  bool busy = false;  // no answer, 429 or 5xx
};
tl::expected<void, ListFailure> list_objects(const ApiCall& call, const ListRequest& request, Pace& pace,
                                             const std::function<void()>& again,
                                             const std::function<void(const Json&)>& add);

}  // namespace culprit::respond::kubernetes
