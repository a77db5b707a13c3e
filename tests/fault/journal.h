// What a writer wrote, and whether a daemon's evidence accounts for each byte of it. Plain functions; knows
// nothing of the daemon's code.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace culprit::fault {

// A line that any 32 bytes of it identify.
std::string numbered_line(uint64_t number);

struct Evidence {
  std::string bytes;
  std::string others;          // of sources with rotated names
  std::vector<uint64_t> gaps;  // offsets in `bytes`
};

struct Account {
  uint64_t lost = 0;  // covered by gaps
  std::string fault;  // empty: each byte is there once, or a gap covers it
};
// `from`: bytes of the journal before it may be missing without a gap.
Account account_for(const Evidence& evidence, std::string_view journal, uint64_t from);

}  // namespace culprit::fault
