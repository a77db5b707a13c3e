// `culprit checkpoint plan` and `restore`, and the copies in `culprit checkpoint list`. Blocking; one thread.
#pragma once

#include <string>
#include <vector>

#include "cli/verbs.h"
#include "model/copies.h"

namespace culprit::cli {

void add_checkpoint_restore(Command& checkpoint, Run& run);
void add_checkpoint_plan(Command& checkpoint, Run& run);

// The state of this host's copies below the folder; empty: there are none, or no daemon answers.
std::vector<copies::Copied> copies_below(const std::string& root);
// "gpu-42:7444"; "-": no copy.
std::string copy_text(const std::vector<copies::Copied>& all, const std::string& root,
                      const std::string& path);

}  // namespace culprit::cli
