#include "core/detect/comm/sorted_block.h"

#include <algorithm>

namespace culprit::comm {
namespace {

// Blocks of more steps go to their lists record by record: a list of its own costs as much as some records.
constexpr size_t kRunsMax = 64;

class BlockSorter {
 public:
  BlockSorter(uint32_t host, Cluster& cluster, OpenOperations& open)
      : host_(host), cluster_(cluster), open_(open) {}

  SortedBlock sort(std::span<const CommRecord> records) {
    SortedBlock out;
    out.records = records.size();
    while (!records.empty()) {
      size_t n = 1;
      while (n < records.size() && records[n].step == records[0].step) ++n;
      if (out.runs.size() == kRunsMax || !add_run(records.first(n), out)) return {};
      records = records.subspan(n);
    }
    out.sorted = true;
    return out;
  }

 private:
  bool add_run(std::span<const CommRecord> records, SortedBlock& out) {
    if (records[0].step == kCommUnknown) return false;
    SortedBlock::Run& run = out.runs.emplace_back();
    run.step = records[0].step;
    run.records.reserve(records.size());
    for (const CommRecord& r : records) {
      if (r.op == CommOp::kJoin || r.end_ns == 0 || !comm_record_fault(r).empty()) return false;
      const uint32_t rank = cluster_.find_rank(r.rank);
      if (rank == kNone) return false;
      RankInfo& info = cluster_.ranks()[rank];
      if (info.host != host_ || (info.device == kNone && r.device != kNone)) return false;
      const uint32_t slot = cluster_.find_slot(rank, r, info.last_slot);
      if (slot == kNone) return false;
      info.last_slot = slot;
      cluster_.note(rank, slot, r.seq, true);
      open_.note_alive(r);
      const SortedRecord& record = run.records.emplace_back(rank, slot, r);
      out.first_ns = std::min(out.first_ns, record.start);
      out.last_ns = std::max(out.last_ns, record.end);
    }
    return true;
  }

  const uint32_t host_;
  Cluster& cluster_;
  OpenOperations& open_;
};

}  // namespace

void sort_blocks(std::span<const HostRecords> blocks, std::span<const uint32_t> of, Cluster& cluster,
                 OpenOperations& open, std::vector<SortedBlock>& out) {
  const uint32_t host = cluster.find_host(*blocks[of[0]].host);
  if (host == kNone) return;
  BlockSorter sorter(host, cluster, open);
  for (const uint32_t i : of) {
    out[i] = sorter.sort(blocks[i].records);
    if (!out[i].sorted) return;
  }
}

}  // namespace culprit::comm
