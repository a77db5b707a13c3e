#include "core/diagnose/words.h"

#include <algorithm>
#include <array>
#include <string_view>

namespace culprit::diagnose {
namespace {

struct Row {
  Component component;
  std::array<std::string_view, 10> words;  // lower case; each matches at the beginning of a word
};

// Specific before general: a text counts for the first row with one of its words.
constexpr Row kRows[] = {
    {Component::kNvlink, {"nvlink", "nvswitch", "sxid"}},
    {Component::kPcie, {"pcie", "pciehp", "aer:", "link width", "gt/s"}},
    {Component::kStorage,
     {"nfs", "lustre", "checkpoint", "fsync", "filesystem", "file system", "disk", "shard", "i/o"}},
    {Component::kNetwork,
     {"mlx", "infiniband", "carrier", "link up", "link down", "nic ", "port ", "roce", "rdma"}},
    {Component::kHostMemory, {"rss", "oom", "out of memory", "swap", "memcg", "cgroup"}},
    {Component::kCpu, {"mce", "machine check", "cpu ", "microcode"}},
    {Component::kGpuMemory, {"ecc", "hbm", "row remap", "dbe", "sbe"}},
    {Component::kDriver, {"driver", "nvml", "nvrm: api"}},
    {Component::kGpu,
     {"gpu", "xid", "nvrm", "device", "clock", "pstate", "temperature", "npu", "accelerator"}},
};

bool begins_word(std::string_view text, std::string_view word) {
  for (size_t at = text.find(word); at != text.npos; at = text.find(word, at + 1)) {
    const char before = at == 0 ? ' ' : text[at - 1];
    if (!(before >= 'a' && before <= 'z')) return true;
  }
  return false;
}

}  // namespace

Component component_by_words(std::span<const std::string> texts) {
  std::array<int, std::size(kRows)> votes{};
  for (std::string text : texts) {
    for (char& c : text)
      if (c >= 'A' && c <= 'Z') c = static_cast<char>(c + 32);
    for (size_t r = 0; r < std::size(kRows); ++r) {
      bool found = false;
      for (const std::string_view word : kRows[r].words)
        found = found || (!word.empty() && begins_word(text, word));
      if (!found) continue;
      ++votes[r];
      break;
    }
  }
  const auto best = std::max_element(votes.begin(), votes.end());
  return *best == 0 ? Component::kUnknown : kRows[best - votes.begin()].component;
}

}  // namespace culprit::diagnose
