// How the `culprit run` of one job tell each other of their ends, by files in the folder that they share. The
// last one, or one that failed and waited, reports for all. Blocking; one thread.
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
  int status = 0;            // as a shell has it
  bool interrupted = false;  // Ctrl-C
};

class Members {
 public:
  // `shared`: the folder has the members of all hosts, else those of this host alone.
  // `folder` is borrowed.
  Members(const HeldFolder& folder, const Launch& launch, bool shared);

  Status tell(const CommandEnd& end);
  std::vector<MemberEnd> ends() const;
  bool all_ended(const std::vector<MemberEnd>& ends) const { return ends.size() >= expected_; }
  uint32_t expected() const { return expected_; }
  // True once, to one member: that one reports and clears up.
  bool claim() const;

 private:
  const HeldFolder& folder_;
  uint32_t member_, expected_;
  std::string host_;
  bool shared_;
};

}  // namespace culprit::app
