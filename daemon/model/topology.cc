#include "model/topology.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/limits.h"
#include "base/text.h"
#include "model/toml.h"
#include "model/toml_text.h"

namespace culprit {
namespace {

// Upper limits: no real job has more hosts, and no real host more ranks.
constexpr size_t kHostsMax = 65'536;
constexpr int64_t kRanksPerHostMax = 4'096;
constexpr int64_t kDegreeMax = 1'000'000;
constexpr size_t kTextMax = 4'096;

// Reads typed keys from a table and keeps the first error, which names the place and the key.
class TopologyReader {
 public:
  explicit TopologyReader(std::string_view name) : name_(name) {}

  const std::optional<Error>& error() const { return error_; }

  const toml::table* table(const toml::table& root, std::string_view key) {
    const toml::node* node = root.get(key);
    if (!node) return nullptr;
    if (!node->is_table()) refuse(*node, fmt::format("'{}' must be a table", key));
    return node->as_table();
  }

  void text(const toml::table& table, std::string_view key, std::optional<std::string>& out) {
    const toml::node* node = table.get(key);
    if (!node) return;
    const auto* value = node->as_string();
    if (!value) return refuse(*node, fmt::format("'{}' must be a string", key));
    if (value->get().size() > kTextMax)
      return refuse(*node, fmt::format("'{}' is longer than {} bytes", key, kTextMax), ErrorCode::kLimit);
    out = value->get();
  }

  void number(const toml::table& table, std::string_view key, int64_t most, std::optional<uint32_t>& out) {
    const toml::node* node = table.get(key);
    if (!node) return;
    const auto* value = node->as_integer();
    if (!value || value->get() < 1 || value->get() > most)
      return refuse(*node, fmt::format("'{}' must be a whole number from 1 to {}", key, most));
    out = static_cast<uint32_t>(value->get());
  }

  void texts(const toml::table& table, std::string_view key, std::vector<std::string>& out) {
    const toml::node* node = table.get(key);
    if (!node) return;
    const toml::array* values = node->as_array();
    if (!values) return refuse(*node, fmt::format("'{}' must be an array of strings", key));
    if (values->size() > kHostsMax)
      return refuse(*node, fmt::format("'{}' has more than {} entries", key, kHostsMax), ErrorCode::kLimit);
    for (const toml::node& value : *values) {
      const auto* one = value.as_string();
      if (!one) return refuse(value, fmt::format("'{}' must hold strings only", key));
      if (one->get().empty() || one->get().size() > kTextMax)
        return refuse(value, fmt::format("'{}' holds a name that is empty or too long", key));
      out.push_back(one->get());
    }
  }

  void refuse(const toml::node& node, std::string_view what, ErrorCode code = ErrorCode::kInvalid) {
    if (error_) return;
    const toml::source_position at = node.source().begin;
    error_ = Error{code, fmt::format("{}:{}:{}: {}", name_, at.line, at.column, what)};
  }

 private:
  std::string_view name_;
  std::optional<Error> error_;
};

void read_job(TopologyReader& reader, const toml::table& table, JobFile& job) {
  reader.text(table, "id", job.id);
  reader.texts(table, "hosts", job.hosts);
  reader.text(table, "host_pattern", job.host_pattern);
  reader.text(table, "rank_pattern", job.rank_pattern);
  reader.number(table, "ranks_per_host", kRanksPerHostMax, job.ranks_per_host);
  // A repeated host would make its ranks ambiguous.
  std::vector<std::string_view> names(job.hosts.begin(), job.hosts.end());
  std::sort(names.begin(), names.end());
  const auto twice = std::adjacent_find(names.begin(), names.end());
  if (twice != names.end())
    reader.refuse(*table.get("hosts"), fmt::format("'hosts' names '{}' twice", shorten(*twice, 100)));
}

void read_parallel(TopologyReader& reader, const toml::table& table, JobFile& job) {
  Parallel parallel;
  const std::pair<std::string_view, uint32_t*> degrees[] = {{"tp", &parallel.tp},
                                                            {"pp", &parallel.pp},
                                                            {"dp", &parallel.dp},
                                                            {"ep", &parallel.ep},
                                                            {"cp", &parallel.cp}};
  for (const auto& [key, degree] : degrees) {
    std::optional<uint32_t> value;
    reader.number(table, key, kDegreeMax, value);
    if (value) *degree = *value;
  }
  job.parallel = parallel;
}

}  // namespace

Result<JobFile> parse_job_file(std::string_view text, std::string_view name) {
  if (text.size() > limits::kJobFileBytes)
    return fail(ErrorCode::kLimit,
                fmt::format("{}: larger than {}", name, format_bytes(limits::kJobFileBytes)));
  if (toml_nested_too_deeply(text))
    return fail(ErrorCode::kInvalid, fmt::format("{}: a key has too many parts", name));
  const toml::parse_result parsed = toml::parse(text);
  if (!parsed) {
    const toml::parse_error& error = parsed.error();
    const toml::source_position at = error.source().begin;
    return fail(ErrorCode::kInvalid,
                fmt::format("{}:{}:{}: {}", name, at.line, at.column, error.description()));
  }
  const toml::table& root = parsed.table();
  JobFile job;
  TopologyReader reader(name);
  if (const toml::table* table = reader.table(root, "job")) read_job(reader, *table, job);
  if (const toml::table* table = reader.table(root, "parallel")) read_parallel(reader, *table, job);
  if (const toml::table* table = reader.table(root, "code")) {
    reader.text(*table, "revision", job.revision);
    reader.text(*table, "last_good", job.last_good);
    reader.text(*table, "pending", job.pending);
  }
  if (reader.error()) return tl::unexpected(*reader.error());
  return job;
}

std::optional<std::string> host_of_rank(const JobFile& job, uint32_t rank) {
  if (!job.ranks_per_host || *job.ranks_per_host == 0) return std::nullopt;
  const size_t host = rank / *job.ranks_per_host;
  if (host >= job.hosts.size()) return std::nullopt;
  return job.hosts[host];
}

std::optional<uint32_t> device_of_rank(const JobFile& job, uint32_t rank) {
  if (!job.ranks_per_host || *job.ranks_per_host == 0) return std::nullopt;
  // If the hosts are known, a rank beyond the last host is not in this job.
  if (!job.hosts.empty() && rank / *job.ranks_per_host >= job.hosts.size()) return std::nullopt;
  return rank % *job.ranks_per_host;
}

std::optional<uint32_t> rank_of_local(const JobFile& job, std::string_view host, uint32_t local) {
  if (!job.ranks_per_host || local >= *job.ranks_per_host) return std::nullopt;
  const auto found = std::find(job.hosts.begin(), job.hosts.end(), host);
  if (found == job.hosts.end()) return std::nullopt;
  return static_cast<uint32_t>(found - job.hosts.begin()) * *job.ranks_per_host + local;
}

}  // namespace culprit
