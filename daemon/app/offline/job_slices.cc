#include "app/offline/job_slices.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/logs/line_parser.h"
#include "ingest/text_reader.h"

namespace culprit::app {
namespace {

// Consecutive lines with the same time: end offset and time.
struct Run {
  uint64_t end = 0;
  TimeNs time_ns = kNoTime;
};

Status read_times(const LogFile& file, logs::LineParser& parser, std::vector<Run>& runs) {
  auto reader = ingest::StreamReader::open(file.file);
  if (!reader) return tl::unexpected(reader.error());
  logs::LogBatch batch;
  uint64_t at = 0;
  TimeNs time = kNoTime;
  while (const auto chunk = reader->next()) {
    const std::string_view text = chunk->bytes;
    parser.parse({0, 0, 0, text, text.size(), false}, file.info, batch);
    size_t begin = 0;
    for (const logs::LineRecord& line : batch.lines) {
      if (line.own_time) time = line.time_ns;
      const size_t newline = text.find('\n', begin);
      begin = newline == text.npos ? text.size() : newline + 1;
      if (runs.empty() || runs.back().time_ns != time) runs.push_back({0, time});
      runs.back().end = at + begin;
    }
    at += text.size();
  }
  return {};
}

// Longest silence of a played job; longer gaps are shortened to this. PyTorch ends a hanging collective after
// 10 to 30 minutes by default, and jobs then log, so a longer gap has no meaning. Otherwise a single line
// from a clock set to 1970 would give a gap of years.
constexpr TimeNs kGapMost = 3600 * kNsPerSecond;

class PlayClock {
 public:
  explicit PlayClock(const std::vector<std::vector<Run>>& files) {
    std::vector<TimeNs> times;
    for (const auto& runs : files)
      for (const Run& run : runs)
        if (run.time_ns != kNoTime) times.push_back(run.time_ns);
    std::sort(times.begin(), times.end());
    if (!times.empty()) skips_.emplace_back(times.front(), times.front());
    for (size_t i = 1; i < times.size(); ++i)
      if (const TimeNs gap = times[i] - times[i - 1]; gap > kGapMost)
        skips_.emplace_back(times[i], skips_.back().second + gap - kGapMost);
  }
  TimeNs at(TimeNs time) const {
    const auto behind = std::upper_bound(skips_.begin(), skips_.end(), time,
                                         [](TimeNs t, const auto& skip) { return t < skip.first; });
    return time - std::prev(behind)->second;
  }

 private:
  std::vector<std::pair<TimeNs, TimeNs>> skips_;  // start time, and the total time skipped before this start
};

void cut(uint32_t file, const std::vector<Run>& runs, const PlayClock& clock, TimeNs step, SlicedJob& out) {
  int64_t slot = 0;
  JobSlice slice{file, 0, 0, false};
  const auto put = [&] { out.slices[{slot, out.host_of_file[file]}].push_back(slice); };
  for (const Run& run : runs) {
    const int64_t own = run.time_ns == kNoTime ? 0 : clock.at(run.time_ns) / step;
    if (own > slot) {
      if (slice.end > slice.begin) put();
      slice.begin = slice.end;
      slot = own;
    }
    slice.end = run.end;
  }
  slice.last = true;
  put();
}

}  // namespace

Result<SlicedJob> slice_job(const std::string& folder, TimeNs step_ns) {
  ReadProgress progress;
  DiagnoseOptions options;
  options.paths = {folder};
  auto files = collect_files(options.paths, options, progress);
  if (!files) return tl::unexpected(files.error());
  if (!files->errors.empty()) return tl::unexpected(files->errors.front());
  SlicedJob job;
  job.files = std::move(*files);
  std::map<std::string, uint32_t> hosts;
  logs::LineParser parser{logs::ParseOptions{}};
  std::vector<std::vector<Run>> runs(job.files.logs.size());
  for (size_t f = 0; f < runs.size(); ++f) {
    const LogFile& file = job.files.logs[f];
    const std::string host = file.info.host.value_or("");
    const auto [at, fresh] = hosts.try_emplace(host, static_cast<uint32_t>(job.hosts.size()));
    if (fresh) job.hosts.push_back(host);
    job.host_of_file.push_back(at->second);
    if (Status read = read_times(file, parser, runs[f]); !read) return tl::unexpected(read.error());
  }
  const PlayClock clock(runs);
  for (uint32_t f = 0; f < runs.size(); ++f) cut(f, runs[f], clock, step_ns, job);
  return job;
}

}  // namespace culprit::app
