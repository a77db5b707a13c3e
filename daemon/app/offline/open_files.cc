#include "app/offline/open_files.h"

#include <sys/resource.h>

#include <algorithm>

namespace culprit::app {

size_t descriptors_for(size_t wanted) {
  constexpr rlim_t kOthers = 64;
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return kOthers;
  if (limit.rlim_cur < wanted + kOthers) {
    limit.rlim_cur = std::min<rlim_t>(limit.rlim_max, wanted + kOthers);
    setrlimit(RLIMIT_NOFILE, &limit);
    getrlimit(RLIMIT_NOFILE, &limit);
  }
  return limit.rlim_cur > 2 * kOthers ? limit.rlim_cur - kOthers : kOthers;
}

}  // namespace culprit::app
