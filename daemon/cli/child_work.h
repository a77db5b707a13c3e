// Work in a child process, for work that may block, take long or fail on hostile input, while this process
// does something else every moment. Blocks; one thread: forks.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "base/time.h"

namespace culprit::cli {

// What `work` returned in a child. Meanwhile calls `goes_on` again and again; it pauses by itself, and false
// ends the child. Nothing: the child failed, was ended, or ran longer than `within`.
std::optional<std::string> in_child(const std::function<std::string()>& work, TimeNs within,
                                    const std::function<bool()>& goes_on);

// All that is in the descriptor, from its beginning.
std::string text_of_descriptor(int fd);

}  // namespace culprit::cli
