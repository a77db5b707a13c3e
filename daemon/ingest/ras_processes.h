// The processes of a RAS answer while it is parsed: each is stored once. One thread; borrows the table.
#pragma once

#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/limits.h"
#include "model/ras.h"

namespace culprit::ingest {

class RasProcessTable {
 public:
  // `most`: maximum of stored processes.
  RasProcessTable(std::vector<RasProcess>& table, size_t most) : table_(table), most_(most) {}

  // The index of the process; kRasUnknown for a host that NCCL does not know, or beyond the limit.
  uint32_t index(std::string_view host, uint32_t pid) {
    if (host.empty() || host == "unknown" || host.size() > limits::kNameBytes) return kRasUnknown;
    // Ranks of one host follow each other.
    if (host != last_host_) {
      last_host_ = host;
      host_ = hosts_.try_emplace(last_host_, static_cast<uint32_t>(hosts_.size())).first->second;
    }
    const uint64_t key = uint64_t{host_} << 32 | pid;
    const auto known = of_.find(key);
    if (known != of_.end()) return known->second;
    if (table_.size() >= most_) return kRasUnknown;
    const auto at = static_cast<uint32_t>(table_.size());
    table_.push_back({last_host_, pid});
    of_.emplace(key, at);
    return at;
  }

 private:
  std::vector<RasProcess>& table_;
  const size_t most_;
  std::string last_host_;
  uint32_t host_ = 0;
  std::unordered_map<std::string, uint32_t> hosts_;
  std::unordered_map<uint64_t, uint32_t> of_;
};

}  // namespace culprit::ingest
