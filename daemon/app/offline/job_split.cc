#include "app/offline/job_split.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <optional>

#include "base/text.h"
#include "base/time.h"
#include "core/logs/file_name.h"
#include "core/logs/header.h"
#include "core/logs/placement.h"
#include "ingest/recognise.h"

namespace culprit::app {
namespace {

namespace fs = std::filesystem;

// A folder with more files counts as one job: walking it to split it would take too long.
constexpr size_t kFilesMost = 100'000;
constexpr size_t kFilesTimed = 12;        // files per job that are read to find its time range
constexpr size_t kTimedBytes = 64 << 10;  // bytes at a file's start and end

// Outermost folders at or below `path` with a job.toml of their own, sorted by name.
void find_jobs(const fs::path& path, int depth, std::vector<std::string>& jobs,
               std::vector<std::string>& rest) {
  constexpr int kDepth = 4;  // simulate's layout within a folder per day or user
  std::error_code error;
  if (!fs::is_directory(path, error) || fs::exists(path / "job.toml", error)) {
    (fs::is_directory(path, error) ? jobs : rest).push_back(path.string());
    return;
  }
  std::vector<std::string> inner, others;
  std::set<fs::path> entries;
  if (depth < kDepth)
    for (fs::directory_iterator it(path, error), end; !error && it != end; it.increment(error))
      entries.insert(it->path());
  for (const fs::path& entry : entries)
    if (!fs::is_symlink(entry, error)) find_jobs(entry, depth + 1, inner, others);
  if (inner.empty()) {
    rest.push_back(path.string());
    return;
  }
  jobs.insert(jobs.end(), inner.begin(), inner.end());
  rest.insert(rest.end(), others.begin(), others.end());
}

struct JobFileName {
  std::string path;   // path as listed
  std::string below;  // path below the argument, or below the common folder
  std::optional<std::string> host;
  std::optional<uint32_t> rank = {};
};

// All regular files below the paths; nullopt if a path is a stream or there are too many files.
std::optional<std::vector<JobFileName>> walk(const std::vector<std::string>& paths) {
  std::vector<JobFileName> out;
  std::error_code error;
  for (const std::string& path : paths) {
    const fs::file_status status = fs::status(path, error);
    const std::string name = fs::path(path).filename().string();
    if (fs::is_regular_file(status)) {
      out.push_back({path, name, {}});
      continue;
    }
    if (!fs::is_directory(status)) return std::nullopt;
    const std::string folder = paths.size() > 1 ? (name.empty() ? path : name) + "/" : "";
    const std::string begin = path.ends_with('/') ? path : path + "/";
    for (fs::recursive_directory_iterator it(path, error), end; !error && it != end; it.increment(error)) {
      if (it->is_symlink(error) || !it->is_regular_file(error)) continue;
      const std::string full = it->path().string();
      out.push_back({full, folder + full.substr(std::min(begin.size(), full.size())), {}});
      if (out.size() > kFilesMost) return std::nullopt;
    }
  }
  std::ranges::sort(out, [](const auto& a, const auto& b) { return natural_less(a.below, b.below); });
  return out;
}

void place(std::vector<JobFileName>& files) {
  auto placement = logs::Placement::create({});
  if (!placement) return;
  std::vector<std::string> paths;
  for (const JobFileName& file : files) paths.push_back(file.below);
  const std::vector<logs::PathOwner> owners = placement->owners(paths);
  for (size_t i = 0; i < files.size(); ++i)
    if (!owners[i].guessed) files[i].host = owners[i].host, files[i].rank = owners[i].rank;
}

using Files = std::vector<const JobFileName*>;

struct Span {
  TimeNs first = kNoTime, last = kNoTime;
  void add(TimeNs time) {
    if (first == kNoTime || time < first) first = time;
    if (last == kNoTime || time > last) last = time;
  }
};

// Adds the times at the start and the end of a plain file.
void add_times(const std::string& path, Span& span) {
  std::ifstream in(path, std::ios::binary);
  std::string text(kTimedBytes, '\0');
  for (const bool tail : {false, true}) {
    if (tail) {
      in.clear();
      in.seekg(0, std::ios::end);
      const auto size = static_cast<int64_t>(in.tellg());
      in.seekg(std::max<int64_t>(0, size - static_cast<int64_t>(kTimedBytes)));
    }
    text.resize(kTimedBytes);
    in.read(text.data(), static_cast<std::streamsize>(kTimedBytes));
    text.resize(static_cast<size_t>(std::max<std::streamsize>(in.gcount(), 0)));
    if (ingest::compression_of(text) != ingest::Compression::kNone) return;
    logs::HeaderParser parser({{}, kNoTime});
    for (const std::string_view line : split(text, '\n')) {
      const logs::Header header = parser.parse(line);
      if (header.time_ns != kNoTime && !header.kernel_time) span.add(header.time_ns);
    }
  }
}

Span span_of(const Files& files) {
  Span span;
  const size_t stride = std::max<size_t>(1, files.size() / kFilesTimed);
  for (size_t i = 0; i < files.size(); i += stride) add_times(files[i]->path, span);
  return span;
}

// Whether the time ranges of the groups do not overlap; false if a time is unknown.
bool are_apart(const std::map<std::string, Files>& groups) {
  std::vector<std::pair<TimeNs, TimeNs>> spans;
  for (const auto& [name, files] : groups) {
    const Span span = span_of(files);
    if (span.first == kNoTime) return false;
    spans.emplace_back(span.first, span.last);
  }
  std::ranges::sort(spans);
  for (size_t i = 1; i < spans.size(); ++i)
    if (spans[i].first <= spans[i - 1].second) return false;
  return true;
}

std::set<std::string> hosts_of(const Files& files) {
  std::set<std::string> hosts;
  for (const JobFileName* file : files)
    if (file->host) hosts.insert(*file->host);
  return hosts;
}

// Whether two of the groups have a common host, or no hosts at all.
bool share_hosts(const std::map<std::string, Files>& groups) {
  std::set<std::string> seen;
  size_t without = 0;
  for (const auto& [name, files] : groups) {
    const std::set<std::string> hosts = hosts_of(files);
    without += hosts.empty();
    for (const std::string& host : hosts)
      if (!seen.insert(host).second) return true;
  }
  return without > 1;
}

// The hosts by rank, if file ranks are numbered over all hosts: several hosts, and each rank on one host.
std::map<uint32_t, std::string> global_ranks(const Files& files) {
  std::map<uint32_t, std::string> out;
  std::set<std::string> hosts;
  for (const JobFileName* file : files) {
    if (!file->host || !file->rank) continue;
    hosts.insert(*file->host);
    if (out.try_emplace(*file->rank, *file->host).first->second != *file->host) return {};
  }
  return hosts.size() > 1 ? out : std::map<uint32_t, std::string>();
}

// Whether each group numbers its ranks over all its hosts, and one rank is on different hosts in two groups:
// a job has each rank once.
bool repeat_ranks(const std::map<std::string, Files>& groups) {
  std::map<uint32_t, std::string> seen;
  bool repeated = false;
  for (const auto& [name, files] : groups) {
    const std::map<uint32_t, std::string> ranks = global_ranks(files);
    if (ranks.empty()) return false;
    for (const auto& [rank, host] : ranks) repeated |= seen.try_emplace(rank, host).first->second != host;
  }
  return repeated;
}

std::vector<JobPaths> as_jobs(const std::vector<std::string>& paths, const std::vector<JobFileName>& all,
                              const std::map<std::string, Files>& groups) {
  std::vector<JobPaths> out;
  std::set<std::string> rest;
  for (const JobFileName& file : all) rest.insert(file.path);
  for (const auto& [id, files] : groups) {
    JobPaths job{paths, {}, id, ""};
    for (const JobFileName* file : files) {
      job.files.insert(file->path);
      rest.erase(file->path);
    }
    out.push_back(std::move(job));
  }
  std::ranges::sort(out, [](const auto& a, const auto& b) { return natural_less(a.id, b.id); });
  if (!rest.empty()) out.push_back({paths, std::move(rest), "", ""});
  return out;
}

std::string doubt(std::string_view what, const std::map<std::string, Files>& groups) {
  constexpr size_t kShown = 4;
  std::vector<std::string> names;
  for (const auto& [name, files] : groups)
    if (names.size() < kShown) names.push_back(name);
  return fmt::format("which files belong together: {} ({}{}) may be of as many jobs; diagnose one at a time",
                     what, fmt::join(names, ", "), groups.size() > kShown ? ", …" : "");
}

// The job number in a name; empty for dates and times.
std::string job_number(const logs::FileName& name) {
  const bool date = name.job.size() == 8 && name.job.starts_with("20");
  return name.job.size() > 8 || date ? "" : std::string(name.job);
}

// Splits by the job numbers of Slurm, PBS or LSF in file names. A number without a word such as "slurm" may
// be a process id, since the processes of one job run at the same time, on different hosts.
std::vector<JobPaths> by_number(const std::vector<std::string>& paths, const std::vector<JobFileName>& all) {
  std::map<std::string, Files> groups;
  bool named = true;
  for (const JobFileName& file : all) {
    std::string number;
    bool word = false;
    const std::vector<std::string_view> parts = split(file.below, '/');
    for (size_t i = 0; i < parts.size(); ++i) {
      const logs::FileName name =
          logs::read_file_name(i + 1 == parts.size() ? logs::file_stem(parts[i]) : parts[i]);
      if (const std::string found = job_number(name); !found.empty()) number = found, word = name.job_word;
    }
    if (number.empty()) continue;
    groups[number].push_back(&file);
    named = named && word;
  }
  if (groups.size() < 2) return {};
  const bool shared = share_hosts(groups);
  if (!named) {
    const bool several =
        std::ranges::all_of(groups, [](const auto& g) { return hosts_of(g.second).size() > 1; });
    std::set<std::string> hosts;
    for (const auto& [number, files] : groups) hosts.merge(hosts_of(files));
    if (!shared || (!several && hosts.size() > 1)) return {};
  }
  if (named ? shared || are_apart(groups) : are_apart(groups)) return as_jobs(paths, all, groups);
  if (!named) return {};
  return {
      {paths, {}, "", doubt(fmt::format("the {} numbers of jobs in their names", groups.size()), groups)}};
}

// Kind of a folder according to its name.
enum class FolderKind : uint8_t { kRun, kPart, kDate, kOther };
FolderKind kind_of_folder(std::string_view name) {
  constexpr std::string_view kRuns[] = {"run", "exp", "experiment", "trial", "job", "sweep", "seed"};
  constexpr std::string_view kParts[] = {
      "attempt", "restart", "try",    "retry",   "part", "phase",  "stage",  "epoch",     "rank",
      "local",   "gpu",     "device", "log",     "logs", "stdout", "stderr", "worker",    "node",
      "host",    "dmesg",   "stacks", "version", "step", "old",    "backup", "checkpoint"};
  if (name.empty() || (name[0] >= '0' && name[0] <= '9')) return FolderKind::kDate;
  const size_t end = name.find_first_of("0123456789_-.");
  const std::string_view word = name.substr(0, end);
  if (std::ranges::find(kParts, word) != std::end(kParts)) return FolderKind::kPart;
  return std::ranges::find(kRuns, word) != std::end(kRuns) ? FolderKind::kRun : FolderKind::kOther;
}

// Splits by sibling folders with the same files: the folders are runs of one program, unless they are hosts
// or parts of a run.
std::vector<JobPaths> by_folder(const std::vector<std::string>& paths, const std::vector<JobFileName>& all) {
  std::map<std::string, Files> groups;
  size_t above = all.empty() ? 0 : all[0].below.rfind('/') + 1;  // start of the name in the common folder
  for (const JobFileName& file : all) {
    while (above > 0 && !file.below.starts_with(all[0].below.substr(0, above)))
      above = above < 2 ? 0 : all[0].below.rfind('/', above - 2) + 1;
  }
  for (const JobFileName& file : all) {
    const size_t slash = file.below.find('/', above);
    if (slash == std::string::npos) return {};
    groups[file.below.substr(above, slash - above)].push_back(&file);
  }
  if (groups.size() < 2) return {};
  std::set<std::string> first;
  bool runs = true, dates = false;
  for (const auto& [name, files] : groups) {
    const FolderKind kind = kind_of_folder(name);
    if (kind == FolderKind::kPart || logs::read_file_name(name).form >= logs::HostForm::kNumbered) return {};
    runs = runs && kind == FolderKind::kRun;
    dates = dates || kind == FolderKind::kDate;
    std::set<std::string> inner;
    for (const JobFileName* file : files)
      inner.insert(logs::host_stem(std::string_view(file->below).substr(above + name.size())));
    if (first.empty()) first = inner;
    const auto common = std::ranges::count_if(inner, [&](const auto& path) { return first.contains(path); });
    if (2 * static_cast<size_t>(common) < std::max(inner.size(), first.size())) return {};
  }
  if (!share_hosts(groups))
    return repeat_ranks(groups) ? as_jobs(paths, all, groups) : std::vector<JobPaths>();
  if (runs) return as_jobs(paths, all, groups);
  if (!are_apart(groups)) return {};
  if (!dates) return as_jobs(paths, all, groups);
  return {{paths, {}, "", doubt(fmt::format("{} folders of times that do not meet", groups.size()), groups)}};
}

}  // namespace

std::vector<JobPaths> split_jobs(const std::vector<std::string>& paths) {
  std::vector<std::string> jobs, rest;
  for (const std::string& path : paths) find_jobs(path, 0, jobs, rest);
  std::vector<JobPaths> out;
  if (jobs.size() >= 2) {
    for (std::string& job : jobs) out.push_back({{std::move(job)}, {}, "", ""});
    if (!rest.empty()) out.push_back({std::move(rest), {}, "", ""});
    return out;
  }
  if (jobs.empty())
    if (auto files = walk(paths)) {
      place(*files);
      out = by_number(paths, *files);
      if (out.empty()) out = by_folder(paths, *files);
    }
  if (out.empty()) out.push_back({paths, {}, "", ""});
  return out;
}

}  // namespace culprit::app
