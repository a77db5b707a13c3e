// Exchanges the ends of all `culprit run` processes of one job, by files in their shared folder. The last
// member, or one that failed and waited, reports for all. Blocking; one thread.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "app/run/child.h"
#include "app/run/held_folder.h"
#include "app/run/launch.h"

namespace culprit::app {

struct MemberEnd {
  uint32_t member = 0;
  std::string host;
  int status = 0;            // exit status as in a shell
  bool interrupted = false;  // Ctrl-C
};

class Members {
 public:
  // `shared`: the folder has the members of all hosts; otherwise only this host's. `folder` is borrowed.
  Members(const HeldFolder& folder, const Launch& launch, bool shared);

  Status tell(const CommandEnd& end);
  std::vector<MemberEnd> ends() const;
  bool all_ended(const std::vector<MemberEnd>& ends) const { return ends.size() >= expected_; }
  uint32_t expected() const { return expected_; }
  // True once, for one member, which then reports and cleans up.
  bool claim() const;

 private:
  const HeldFolder& folder_;
  uint32_t member_, expected_;
  std::string host_;
  bool shared_;
};

}  // namespace culprit::app
