#include "app/checkpoint/comm_groups.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "ingest/comm_file.h"
#include "ingest/source_list.h"

namespace culprit::app {
namespace {

// Of each trace: communicators are used in each step, and a step rarely has more records.
constexpr size_t kRecords = 200'000;
constexpr size_t kRecordsRead = 4096;
constexpr size_t kComms = 100'000;

struct Found {
  std::map<std::string, uint32_t> lowest_rank;  // of each host
  // By id and kind: a job that starts again may give an id to another group.
  std::map<std::pair<uint64_t, CommGroup>, std::set<std::string>> comms;
  std::vector<std::string> problems;
};

void read(const ingest::SourceFile& source, Found& found) {
  auto file = ingest::CommFile::open(source);
  if (!file) return found.problems.push_back(file.error().text);
  const std::string host = file->header().host;
  std::vector<CommRecord> records;
  for (size_t n = 0; n < kRecords; n += records.size()) {
    file->next(records, kRecordsRead);
    if (records.empty()) break;
    for (const CommRecord& record : records) {
      if (!comm_record_fault(record).empty()) continue;
      const auto at = found.lowest_rank.try_emplace(host, record.rank).first;
      at->second = std::min(at->second, record.rank);
      if (record.group == CommGroup::kWorld || found.comms.size() >= kComms) continue;
      found.comms[{record.comm, record.group}].insert(host);
    }
  }
  for (const Problem& problem : file->problems())
    found.problems.push_back(problem.file + ": " + problem.what);
}

}  // namespace

Result<CommGroups> read_comm_groups(const std::string& folder) {
  const ingest::SourceList list = ingest::list_sources({folder});
  if (!list.failed_arguments.empty()) return tl::unexpected(list.failed_arguments.front());
  Found found;
  for (const ingest::SourceFile& source : list.files)
    if (source.kind == ingest::FileKind::kComm) read(source, found);
  if (found.lowest_rank.empty() && !found.problems.empty())
    return fail(ErrorCode::kInvalid, found.problems.front());
  if (found.lowest_rank.empty())
    return fail(ErrorCode::kNotFound, folder + ": has no communication trace to tell the groups from");
  if (found.lowest_rank.size() > checkpoint::kPlanHosts)
    return fail(ErrorCode::kLimit, folder + ": has too many hosts");
  std::vector<std::pair<uint32_t, std::string>> order;
  for (const auto& [host, rank] : found.lowest_rank) order.emplace_back(rank, host);
  std::ranges::sort(order);
  CommGroups out;
  out.problems = std::move(found.problems);
  std::map<std::string, uint32_t> index;
  for (const auto& [_, host] : order) {
    index[host] = static_cast<uint32_t>(out.hosts.size());
    out.hosts.push_back(host);
  }
  std::set<std::pair<CommGroup, std::vector<uint32_t>>> groups;
  for (const auto& [key, hosts] : found.comms) {
    // The world of a job whose traces name no kinds.
    const bool is_world = key.second == CommGroup::kUnknown && hosts.size() == out.hosts.size();
    if (hosts.size() < 2 || is_world) continue;
    std::vector<uint32_t> numbers;
    for (const std::string& host : hosts) numbers.push_back(index[host]);
    std::ranges::sort(numbers);
    groups.emplace(key.second, std::move(numbers));
  }
  for (const auto& [kind, hosts] : groups)
    out.groups.push_back(
        {kind == CommGroup::kUnknown ? "communicator" : std::string(to_string(kind)), hosts});
  return out;
}

}  // namespace culprit::app
