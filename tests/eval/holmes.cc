// The rule of Holmes (NSDI'25) without its learnt thresholds, as a baseline: eval_holmes FOLDER of .comm
// files. An operation is abnormal if it takes longer than the quartiles of the job's own past allow. In an
// abnormal collective the rank with a normal duration came last. These counts are summed over communication
// groups and steps. Prints the five ranks with the highest sums, highest first, and their hosts, as one JSON
// object.
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "base/bytes.h"
#include "model/comm.h"

namespace {

using culprit::CommRecord;

struct Operation {
  uint64_t comm = 0, seq = 0, start_ns = 0, ns = 0;
  uint32_t rank = 0, step = 0, ordinal = 0;
  uint16_t op = 0;
  bool abnormal = false;
};

// Too few for quartiles below this.
constexpr size_t kPastMin = 3;
constexpr size_t kReported = 5;

bool read(const std::filesystem::path& path, std::vector<Operation>& out,
          std::map<uint32_t, std::string>& hosts) {
  std::ifstream in(path, std::ios::binary);
  const std::string bytes((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
  const auto header = culprit::parse_comm_header(bytes);
  if (!header) return false;
  for (size_t at = culprit::kCommHeaderBytes; at + culprit::kCommRecordBytes <= bytes.size();
       at += culprit::kCommRecordBytes) {
    const auto one = culprit::get_at<CommRecord>(bytes, at);
    if (!culprit::comm_record_fault(one).empty() || !culprit::is_synchronising(one.op) || one.end_ns == 0)
      continue;
    hosts.try_emplace(one.rank, header->host);
    out.push_back({one.comm, one.seq, one.start_ns, one.end_ns - one.start_ns, one.rank, one.step, 0,
                   static_cast<uint16_t>(one.op), false});
  }
  return true;
}

// Numbers an operation among those of its kind in its step: only operations of one number are comparable.
// Without steps all operations of a communicator are.
void number(std::vector<Operation>& all) {
  std::sort(all.begin(), all.end(), [](const Operation& a, const Operation& b) {
    return std::tie(a.rank, a.comm, a.op, a.step, a.seq) < std::tie(b.rank, b.comm, b.op, b.step, b.seq);
  });
  for (size_t i = 1; i < all.size(); ++i) {
    const Operation& before = all[i - 1];
    Operation& one = all[i];
    if (one.step != culprit::kCommUnknown && std::tie(one.rank, one.comm, one.op, one.step) ==
                                                 std::tie(before.rank, before.comm, before.op, before.step))
      one.ordinal = before.ordinal + 1;
  }
}

void mark(std::vector<Operation>& all) {
  std::sort(all.begin(), all.end(), [](const Operation& a, const Operation& b) {
    return std::tie(a.rank, a.comm, a.op, a.ordinal, a.seq) <
           std::tie(b.rank, b.comm, b.op, b.ordinal, b.seq);
  });
  std::vector<uint64_t> past;
  for (size_t i = 0; i < all.size(); ++i) {
    Operation& one = all[i];
    if (i > 0 && std::tie(one.rank, one.comm, one.op, one.ordinal) !=
                     std::tie(all[i - 1].rank, all[i - 1].comm, all[i - 1].op, all[i - 1].ordinal))
      past.clear();
    if (past.size() >= kPastMin) {
      const uint64_t low = past[past.size() / 4], high = past[past.size() * 3 / 4];
      one.abnormal =
          static_cast<double>(one.ns) > static_cast<double>(high) + 1.5 * static_cast<double>(high - low);
    }
    if (!one.abnormal) past.insert(std::upper_bound(past.begin(), past.end(), one.ns), one.ns);
  }
}

std::map<uint32_t, double> normal_among_abnormal(std::vector<Operation>& all) {
  std::sort(all.begin(), all.end(), [](const Operation& a, const Operation& b) {
    return std::tie(a.comm, a.seq) < std::tie(b.comm, b.seq);
  });
  std::map<uint32_t, double> score;
  for (size_t from = 0, to = 0; from < all.size(); from = to) {
    size_t abnormal = 0;
    for (to = from;
         to < all.size() && std::tie(all[to].comm, all[to].seq) == std::tie(all[from].comm, all[from].seq);
         ++to)
      abnormal += all[to].abnormal;
    if (abnormal == 0 || abnormal == to - from) continue;
    const double weight = static_cast<double>(abnormal) / static_cast<double>(to - from);
    for (size_t i = from; i < to; ++i) score[all[i].rank] += all[i].abnormal ? -weight : weight;
  }
  return score;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return std::fprintf(stderr, "usage: eval_holmes FOLDER\n"), 2;
  std::vector<Operation> all;
  std::map<uint32_t, std::string> hosts;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(argv[1], error)) {
    if (entry.path().extension() != ".comm") continue;
    if (!read(entry.path(), all, hosts))
      return std::fprintf(stderr, "%s: no trace\n", entry.path().c_str()), 2;
  }
  if (error) return std::fprintf(stderr, "%s: %s\n", argv[1], error.message().c_str()), 2;
  number(all);
  mark(all);
  std::vector<std::pair<double, uint32_t>> best;
  for (const auto& [rank, score] : normal_among_abnormal(all))
    if (score > 0) best.push_back({-score, rank});
  std::sort(best.begin(), best.end());
  best.resize(std::min(best.size(), kReported));
  std::string ranks, names;
  for (const auto& [score, rank] : best) {
    ranks += (ranks.empty() ? "" : ", ") + std::to_string(rank);
    names += (names.empty() ? "\"" : ", \"") + std::to_string(rank) + "\": \"" + hosts[rank] + "\"";
  }
  std::printf("{\"top\": [%s], \"hosts\": {%s}}\n", ranks.c_str(), names.c_str());
}
