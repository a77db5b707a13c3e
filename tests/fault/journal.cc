#include "journal.h"

#include <fmt/format.h>

#include <algorithm>

namespace culprit::fault {
namespace {

constexpr size_t kProbe = 32;
const size_t kLine = numbered_line(0).size();

size_t common_size(std::string_view a, std::string_view b) {
  const auto end = std::mismatch(
      a.begin(), a.begin() + static_cast<std::ptrdiff_t>(std::min(a.size(), b.size())), b.begin());
  return static_cast<size_t>(end.first - a.begin());
}

// Whether each of the lines is there, in any order.
bool is_in(const std::string& others, std::string_view lines) {
  for (; !lines.empty(); lines.remove_prefix(std::min(lines.size(), kLine)))
    if (others.find(lines.substr(0, kLine)) == std::string::npos) return false;
  return true;
}

}  // namespace

std::string numbered_line(uint64_t number) {
  return fmt::format("a{0:09} b{0:09} c{0:09} d{0:09}\n", number);
}

Account account_for(const Evidence& evidence, std::string_view journal, uint64_t from) {
  Account account;
  std::vector<uint64_t> gaps = evidence.gaps;
  const std::string_view bytes = evidence.bytes;
  uint64_t at = 0, place = 0;  // in the evidence, in the journal
  const auto lost_up_to = [&](uint64_t end) {
    const uint64_t begin = std::max(place, std::min(from, end));
    place = end;
    if (is_in(evidence.others, journal.substr(begin, end - begin))) return true;
    const auto gap = std::find_if(gaps.begin(), gaps.end(),
                                  [&](uint64_t offset) { return offset >= at && offset < at + kLine; });
    if (gap == gaps.end()) {
      account.fault = fmt::format("{} bytes from {} on are lost without a gap", end - begin, begin);
      return false;
    }
    gaps.erase(gap);
    account.lost += end - begin;
    return true;
  };
  while (at < bytes.size()) {
    const size_t same = common_size(bytes.substr(at), journal.substr(place));
    at += same;
    place += same;
    if (at == bytes.size()) break;
    // Two lines begin alike: the loss may begin up to a line earlier.
    const uint64_t back = std::min(place % kLine, at);
    at -= back;
    place -= back;
    const std::string_view probe = bytes.substr(at, kProbe);
    const size_t ahead = journal.find(probe, place);
    if (ahead == journal.npos) {
      const size_t behind = journal.find(probe);
      account.fault =
          behind == journal.npos
              ? fmt::format("at {} of the evidence stand bytes that no writer wrote", at)
              : fmt::format("at {} of the evidence, after byte {}, comes byte {}", at, place, behind);
      return account;
    }
    if (!lost_up_to(ahead)) return account;
  }
  if (place < journal.size() && !lost_up_to(journal.size())) return account;
  for (size_t line = 0; line + kLine <= evidence.others.size(); line += kLine)
    if (bytes.find(evidence.others.substr(line, kLine)) != bytes.npos)
      account.fault = fmt::format("{} bytes of another source are stored twice", evidence.others.size());
  return account;
}

}  // namespace culprit::fault
