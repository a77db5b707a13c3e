#include "app/offline/diagnose.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <functional>
#include <iterator>
#include <map>
#include <numeric>
#include <set>
#include <thread>

#include "app/offline/flights.h"
#include "app/offline/job_split.h"
#include "app/offline/metric_reading.h"
#include "app/offline/ras_answers.h"
#include "app/offline/stack_reading.h"
#include "app/offline/thread_pool.h"
#include "base/limits.h"
#include "base/text.h"
#include "core/logs/placement.h"
#include "core/rules/scan.h"
#include "ingest/comm_file.h"
#include "ingest/text_reader.h"
#include "model/headline.h"

namespace culprit::app {
namespace {

// Stops loading rules when the user stops the reading. A report of data read before the stop still loads
// rules.
std::function<bool()> stop_of(const ReadProgress& progress) {
  return [&progress, ended = progress.stop.load()] { return !ended && progress.stop; };
}

template <class Entry>
void append(std::vector<Entry>& to, std::vector<Entry>&& from) {
  to.insert(to.end(), std::make_move_iterator(from.begin()), std::make_move_iterator(from.end()));
}

// The kind of a file that is recognised but not analysed.
ingest::UnreadKind unread_kind(const ingest::SourceFile& file) {
  if (file.kind == ingest::FileKind::kUnread) return file.unread;
  return {};
}

// One error per argument whose files are all unreadable, with the kinds of these files.
std::vector<Error> unreadable_arguments(const std::vector<ingest::SourceFile>& files) {
  std::map<std::string, std::set<std::string_view>> unread;
  std::map<std::string, size_t> count;
  std::set<std::string> readable;
  for (const ingest::SourceFile& file : files) {
    const ingest::UnreadKind kind = unread_kind(file);
    if (kind.what.empty()) {
      if (file.kind != ingest::FileKind::kEmpty && file.kind != ingest::FileKind::kJob)
        readable.insert(file.argument);
      continue;
    }
    unread[file.argument].insert(kind.what);
    ++count[file.argument];
  }
  std::vector<Error> out;
  for (const auto& [argument, kinds] : unread)
    if (!readable.contains(argument))
      out.push_back(
          Error{ErrorCode::kInvalid, fmt::format("{}: nothing in it can be read: {}: {}", argument,
                                                 counted(count[argument], "file"), fmt::join(kinds, ", "))});
  return out;
}

std::string without_suffix(std::string path) {
  for (std::string_view suffix : {".zst", ".gz", ".xz"})
    if (path.ends_with(suffix)) return path.substr(0, path.size() - suffix.size());
  return path;
}

// Why a job.toml belongs to another job; empty: it belongs to this job.
std::string_view other_job(const ingest::SourceFile& file, bool have_one) {
  if (without_suffix(file.below) != "job.toml")
    return "passed over: only the job.toml of the top folder counts; diagnose another job by its own folder";
  return have_one ? "passed over: another argument has a job.toml too; diagnose one job at a time" : "";
}

Status read_job_file(const ingest::SourceFile& file, JobFiles& out) {
  auto text = ingest::read_small_file(file, limits::kJobFileBytes);
  if (!text) return fail(text.error().code, text.error().text);
  auto job = parse_job_file(*text, file.path);
  if (!job) return fail(job.error().code, job.error().text);
  out.job = std::move(*job);
  return {};
}

// The writer of each file, from the names of all files together. A name such as "gpu7" counts as a host only
// if the job has a second one of the same form.
std::vector<logs::PathOwner> owners_of(const std::vector<ingest::SourceFile>& files,
                                       const logs::Placement& placement, const JobFile& job) {
  std::vector<std::string> paths;
  for (const ingest::SourceFile& file : files) paths.push_back(without_suffix(file.below));
  std::vector<logs::PathOwner> owners = placement.owners(paths, job.hosts);
  for (logs::PathOwner& owner : owners) {
    const bool reported = owner.host && std::ranges::find(job.hosts, *owner.host) != job.hosts.end();
    if (owner.guessed && !reported) owner.host = std::nullopt;
  }
  return owners;
}

SourceInfo source_info(const ingest::SourceFile& file, logs::PathOwner owner,
                       const logs::Placement& placement) {
  SourceInfo info;
  info.file = file.path;
  info.modified_ns = file.modified_ns;
  info.host = std::move(owner.host);
  info.rank = owner.rank;
  info.local = owner.local;
  info.host_wins = placement.has_host_pattern();
  info.rank_wins = placement.has_rank_pattern();
  return info;
}

// A time with a year from the start of one of the largest files; kNoTime: none found.
TimeNs dated_time(const std::vector<LogFile>& files, const Zone& zone) {
  constexpr size_t kFiles = 32;
  constexpr size_t kBytes = 64 << 10;
  std::vector<size_t> largest(files.size());
  std::iota(largest.begin(), largest.end(), size_t{0});
  std::stable_sort(largest.begin(), largest.end(),
                   [&](size_t a, size_t b) { return files[a].file.size > files[b].file.size; });
  if (largest.size() > kFiles) largest.resize(kFiles);
  for (const size_t i : largest) {
    // A stream can be read only once.
    if (files[i].file.stream || files[i].info.modified_ns == kNoTime) continue;
    auto reader = ingest::StreamReader::open(files[i].file, {kBytes, kBytes});
    auto chunk = reader ? reader->next() : std::nullopt;
    if (!chunk) continue;
    // Two parsers with reference dates a year apart: only a time with a year is the same in both.
    constexpr TimeNs kYear = 366 * 24 * 3600 * kNsPerSecond;
    logs::HeaderParser now({zone, files[i].info.modified_ns});
    logs::HeaderParser then({zone, files[i].info.modified_ns - kYear});
    std::string_view text = chunk->bytes;
    while (!text.empty()) {
      const std::string_view line = text.substr(0, text.find('\n'));
      text.remove_prefix(std::min(text.size(), line.size() + 1));
      const logs::Header header = now.parse(line);
      if (header.time_ns != kNoTime && !header.kernel_time && then.parse(line).time_ns == header.time_ns)
        return header.time_ns;
    }
  }
  return kNoTime;
}

// Sets the reference date of times without a year. Copied logs have lost their files' times. If another log
// of the job has a year, the reference is a month after that log's start: jobs run for less than a month.
void date_sources(std::vector<LogFile>& files, const Zone& zone) {
  const TimeNs dated = dated_time(files, zone);
  if (dated == kNoTime) return;
  constexpr TimeNs kMonth = 31 * 24 * 3600 * kNsPerSecond;
  for (LogFile& f : files)
    if (f.info.modified_ns == kNoTime || f.info.modified_ns > dated + kMonth)
      f.info.modified_ns = dated + kMonth;
}

Result<detect::Pool> load_pool(const std::string& path, const ReadProgress& progress) {
  const ingest::SourceList list = ingest::list_sources({path}, &progress.stop);
  if (!list.failed_arguments.empty()) return tl::unexpected(list.failed_arguments[0]);
  if (list.files.size() != 1 || list.files[0].path != path)
    return fail(ErrorCode::kInvalid, path + ": is a folder, not a pool made by `culprit pool build`");
  auto text = ingest::read_small_file(list.files[0], limits::kPoolFileBytes);
  if (!text) return tl::unexpected(text.error());
  return detect::Pool::load(*text, path);
}

// A problem of the report about an unreadable input other than the job's own files.
Problem as_problem(const std::string& file, const Error& error) {
  const bool named = error.text.starts_with(file + ": ");
  return {file, std::nullopt, named ? error.text.substr(file.size() + 2) : error.text};
}

// Reads healthy jobs with the same rules, so that their templates match.
Result<BuiltPool> read_pool(const std::vector<std::string>& jobs, const DiagnoseOptions& options,
                            const std::shared_ptr<rules::Ruleset>& rules, ReadProgress& progress) {
  BuiltPool out;
  for (const std::string& path : jobs) {
    for (const JobPaths& job : split_jobs({path})) {
      DiagnoseOptions own = options;
      own.only = job.files;
      auto files = collect_files(job.paths, own, progress);
      if (!files) return tl::unexpected(files.error());
      for (const Error& error : files->errors) out.problems.push_back(as_problem(path, error));
      append(out.errors, std::move(files->errors));
      append(out.problems, std::move(files->problems));
      progress.bytes_total += files->bytes;
      core::Engine engine({files->job, {}, {}, rules});
      logs::ParseOptions parse = options.parse;  // its times belong to another job
      parse.since_ns = parse.until_ns = kNoTime;
      append(out.problems, read_logs(files->logs, {parse, options.threads}, engine, progress));
      if (progress.stop) return out;
      if (engine.log().events() > 0) engine.add_to(out.pool);  // an empty folder counts as no job
    }
  }
  return out;
}

// The pool named by the options, and the errors of reading it.
Result<BuiltPool> gather_pool(const DiagnoseOptions& options, const std::shared_ptr<rules::Ruleset>& rules,
                              ReadProgress& progress) {
  auto built = read_pool(options.healthy, options, rules, progress);
  if (!built || options.pool_file.empty()) return built;
  if (auto loaded = load_pool(options.pool_file, progress)) {
    loaded->merge(built->pool);
    built->pool = std::move(*loaded);
  } else {
    built->problems.push_back(as_problem(options.pool_file, loaded.error()));
    built->errors.push_back(std::move(loaded.error()));
  }
  return built;
}

}  // namespace

Result<unsigned> thread_count(const char* setting) {
  constexpr unsigned kMost = 256;
  const std::string_view text = setting ? setting : "";
  // Each thread holds some 7 MB of pieces; beyond 16 threads the delivery in order is the bottleneck.
  if (text.empty()) return std::clamp(std::thread::hardware_concurrency(), 1u, 16u);
  unsigned threads = 0;
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), threads);
  if (error == std::errc::result_out_of_range) return kMost;
  if (error != std::errc() || stop != text.data() + text.size() || threads == 0)
    return fail(ErrorCode::kInvalid, fmt::format("CULPRIT_THREADS={}: is no whole number from 1 on", text));
  return std::min(threads, kMost);
}

void for_each_piece(const std::vector<LogFile>& files,
                    const std::function<void(const LogFile&, const ingest::ChunkBuffer&)>& take) {
  ingest::ChunkBuffer buffer;
  const auto give = [&](const LogFile& f, ingest::ChunkBuffer&& chunk) {
    take(f, chunk);
    buffer = std::move(chunk);
  };
  for (const LogFile& f : files) {
    if (!ingest::is_stream(f.file)) {
      for (uint64_t c = 0; c < ingest::chunk_count(f.file.size); ++c)
        if (auto chunk = ingest::read_plain_chunk(f.file, c, std::move(buffer))) give(f, std::move(*chunk));
    } else if (auto reader = ingest::StreamReader::open(f.file)) {
      while (auto chunk = reader->next(std::move(buffer))) give(f, std::move(*chunk));
    }
  }
}

TextSize read_text(const std::vector<LogFile>& files) {
  TextSize size;
  for_each_piece(files, [&](const LogFile&, const ingest::ChunkBuffer& chunk) {
    size.bytes += chunk.range_bytes;
    size.lines += static_cast<uint64_t>(std::count(chunk.bytes.begin(), chunk.bytes.end(), '\n'));
  });
  return size;
}

RuleScan scan_rules(const std::vector<LogFile>& files, const rules::Ruleset& set) {
  RuleScan out;
  rules::Scanner scanner(set.matcher());
  for_each_piece(files, [&](const LogFile& f, const ingest::ChunkBuffer& chunk) {
    logs::HeaderParser headers({{}, f.info.modified_ns});
    out.bytes += chunk.range_bytes;
    rules::scan_block(scanner, chunk.bytes, headers, [&](const rules::ScannedLine& line) {
      ++out.looked_at;
      out.matches += line.matches.size();
    });
  });
  return out;
}

Result<JobFiles> collect_files(const std::vector<std::string>& paths, const DiagnoseOptions& options,
                               const ReadProgress& progress) {
  JobFiles out;
  ingest::SourceList list = ingest::list_sources(paths, &progress.stop);
  if (!options.only.empty()) {
    const auto other = [&](const std::string& path) { return !options.only.contains(path); };
    std::erase_if(list.files, [&](const ingest::SourceFile& file) { return other(file.path); });
    std::erase_if(list.problems, [&](const Problem& problem) { return other(problem.file); });
  }
  out.errors = std::move(list.failed_arguments);
  out.problems = std::move(list.problems);
  out.unreadable = unreadable_arguments(list.files);
  bool have_job = false;
  for (const ingest::SourceFile& file : list.files) {
    if (file.kind != ingest::FileKind::kJob) continue;
    if (const std::string_view why = other_job(file, have_job); !why.empty()) {
      out.problems.push_back({file.path, std::nullopt, std::string(why)});
      continue;
    }
    have_job = true;
    if (Status status = read_job_file(file, out); !status)
      out.problems.push_back({file.path, std::nullopt, status.error().text});
  }
  logs::PlacementOptions patterns{options.host_pattern, options.rank_pattern};
  if (patterns.host_pattern.empty()) patterns.host_pattern = out.job.host_pattern.value_or("");
  if (patterns.rank_pattern.empty()) patterns.rank_pattern = out.job.rank_pattern.value_or("");
  auto placement = logs::Placement::create(patterns);
  if (!placement) return fail(placement.error().code, placement.error().text);
  std::vector<logs::PathOwner> owners = owners_of(list.files, *placement, out.job);
  for (size_t i = 0; i < list.files.size(); ++i) {
    const ingest::SourceFile& file = list.files[i];
    if (file.kind == ingest::FileKind::kJob || file.kind == ingest::FileKind::kEmpty) continue;
    if (file.kind == ingest::FileKind::kComm || file.kind == ingest::FileKind::kInspector) {
      (file.kind == ingest::FileKind::kComm ? out.comm.traces : out.comm.inspector).push_back(file);
      out.bytes += file.size;
      continue;
    }
    if (const ingest::UnreadKind unread = unread_kind(file); !unread.what.empty()) {
      out.problems.push_back({file.path, std::nullopt,
                              fmt::format("{}: {}", unread.lost ? "lost" : "passed over", unread.what)});
      if (!unread.instead.empty()) out.instead.emplace(unread.instead);
      continue;
    }
    if (file.kind == ingest::FileKind::kRas) {
      out.ras.push_back(file);
      out.bytes += file.size;
      continue;
    }
    const bool stacks = file.kind == ingest::FileKind::kStacks || file.kind == ingest::FileKind::kStacksJson;
    auto& list_of_kind = stacks                                           ? out.stacks
                         : file.kind == ingest::FileKind::kFlightRecorder ? out.flights
                         : file.kind == ingest::FileKind::kProfiler       ? out.comm.profiles
                         : file.kind == ingest::FileKind::kMetrics        ? out.metrics
                                                                          : out.logs;
    list_of_kind.push_back({file, source_info(file, std::move(owners[i]), *placement)});
    out.bytes += file.size;
  }
  date_sources(out.logs, options.parse.zone);
  return out;
}

Result<BuiltPool> build_pool(const std::vector<std::string>& jobs, const DiagnoseOptions& options,
                             ReadProgress& progress) {
  std::vector<Error> errors;
  const auto rules = rules_or_library(options.rules, stop_of(progress), errors);
  auto out = read_pool(jobs, options, rules, progress);
  if (out) append(out->errors, std::move(errors));
  return out;
}

namespace {

// The selected job if traces name several.
struct PickedJob {
  std::string job;       // empty: no job is named
  bool nameless = true;  // include records without a job
  bool asks = true;      // list the other jobs, since no job was requested
  bool there = true;     // records of the job exist
  std::vector<std::string> others = {};
};

// Removes files of other jobs from `files`. A file without a job belongs to job.toml's job, else to the only
// named job.
PickedJob pick_job(JobFiles& files, const std::string& wanted) {
  PickedJob out;
  out.asks = wanted.empty();
  std::vector<std::set<std::string>> named;
  std::set<std::string> all;
  for (const LogFile& file : files.metrics) all.merge(std::set(named.emplace_back(jobs_named(file))));
  const std::string own = files.job.id.value_or("");
  if (all.empty()) return out;
  if (!own.empty()) all.insert(own);
  out.job = !wanted.empty() ? wanted : !own.empty() ? own : *all.begin();
  if (wanted.empty())
    for (const std::string& job : all)
      if (job != out.job) out.others.push_back(job);
  if (!files.job.id) files.job.id = out.job;
  out.there = all.contains(out.job);
  const bool only = all.size() < 2 && out.there;
  out.nameless = own.empty() ? only : own == out.job;
  if (only) return out;
  std::vector<LogFile> metrics;
  for (size_t i = 0; i < files.metrics.size(); ++i)
    if (named[i].empty() || named[i].contains(out.job) || !out.there)
      metrics.push_back(std::move(files.metrics[i]));
  files.metrics = std::move(metrics);
  std::erase_if(files.comm.traces, [&](const ingest::SourceFile& file) {
    const auto trace =
        file.stream ? Result<ingest::CommFile>(fail(ErrorCode::kInvalid, "")) : ingest::CommFile::open(file);
    const std::string job = trace ? trace->header().job : "";
    return job.empty() ? !out.nameless : job != out.job;
  });
  if (out.nameless) return out;
  files.job.id = out.job;
  const size_t left_out = files.logs.size() + files.flights.size() + files.ras.size() + files.stacks.size() +
                          files.comm.inspector.size() + files.comm.profiles.size();
  if (left_out > 0)
    files.problems.push_back(
        {"", std::nullopt,
         fmt::format("{} of no known job left out next to those of {}", counted(left_out, "file"), out.job)});
  files.logs.clear();
  files.flights.clear();
  files.ras.clear();
  files.comm.inspector.clear();
  files.comm.profiles.clear();
  files.stacks.clear();
  return out;
}

// A stream can be read only once: its records of other jobs are skipped and reported, so that the user can
// request these jobs.
std::vector<Problem> read_metrics_of(const JobFiles& files, const MetricReading& reading, PickedJob& picked,
                                     core::Engine& engine, ReadProgress& progress) {
  MetricsRead read = read_metrics(files.metrics, reading, engine, progress);
  const bool stream = std::any_of(files.metrics.begin(), files.metrics.end(),
                                  [](const LogFile& file) { return file.file.stream != nullptr; });
  if (stream && picked.asks) {
    read.other_jobs.merge(std::set(picked.others.begin(), picked.others.end()));
    picked.others.clear();
    if (!read.other_jobs.empty())
      read.problems.push_back(
          {"", std::nullopt,
           fmt::format("lines of other jobs are left out, since a stream is read once: {}",
                       fmt::join(read.other_jobs, ", "))});
  } else if (!stream) {
    for (const std::string& job : read.other_jobs)
      if (std::find(picked.others.begin(), picked.others.end(), job) == picked.others.end())
        picked.others.push_back(job);
  }
  if (read.nameless > 0)
    read.problems.push_back({"", std::nullopt,
                             fmt::format("{} that name no job are left out next to those of {}",
                                         counted(read.nameless, "line"), picked.job)});
  picked.there = picked.there || read.taken > 0;
  return std::move(read.problems);
}

// Formats that write an operation when it ends cannot show one that hangs. Empty: another input can.
std::string ended_alone(const JobFiles& files) {
  const bool ended = !files.comm.inspector.empty() || !files.comm.profiles.empty();
  if (!ended || !files.comm.traces.empty() || !files.flights.empty() || !files.ras.empty()) return {};
  return "whether an operation hangs: NCCL Inspector and PyTorch's profiler write only those that ended; "
         "Flight Recorder dumps and stacks show it";
}

// If all paths are empty, each path is a problem, so that a script sees which paths were empty.
void tell_empty(const DiagnoseOptions& options, Diagnosed& out) {
  const JobSummary& job = out.report.job;
  if (job.bytes > 0 || job.lines > 0 || job.ranks > 0 || !out.report.problems.empty() || !out.errors.empty())
    return;
  for (const std::string& path : options.paths)
    out.report.problems.push_back({path == "-" ? "standard input" : path, std::nullopt,
                                   "nothing was read: there is no byte in it", About::kCulprit});
}

}  // namespace

Result<Diagnosed> diagnose(const DiagnoseOptions& options, ReadProgress& progress) {
  auto files = collect_files(options.paths, options, progress);
  if (!files) return tl::unexpected(files.error());
  if (!files->job.id && !options.id.empty()) files->job.id = options.id;
  if (!options.note.empty()) files->problems.push_back({"", std::nullopt, options.note});
  PickedJob picked = pick_job(*files, options.job);
  progress.bytes_total += files->bytes;
  const std::string no_hang = ended_alone(*files);
  std::vector<Error> errors;
  // Without input for rules the library is not compiled: compiling takes long.
  const bool text = !files->logs.empty() || !files->metrics.empty() || !options.rules.paths.empty() ||
                    !options.healthy.empty();
  const auto rules = text ? rules_or_library(options.rules, stop_of(progress), errors) : nullptr;
  auto built = gather_pool(options, rules, progress);
  if (!built) return tl::unexpected(built.error());
  core::EngineOptions engine_options{files->job, std::move(built->pool), options.steps, rules};
  ThreadPool pool(options.threads);
  engine_options.parallel = pool.parallel();
  engine_options.passes = options.passes;
  core::Engine engine(std::move(engine_options));
  std::vector<Problem> problems = read_logs(files->logs, {options.parse, options.threads}, engine, progress);
  append(problems, read_flights(files->flights, options.threads, engine, progress));
  append(problems, read_ras_answers(files->ras, engine, progress));
  const TakeStacks to_engine = [&](core::Input input) { engine.step({&input, 1}, kNoTime); };
  append(problems, read_stack_files(files->stacks, files->job, options.threads, to_engine, progress));
  const MetricReading metrics{options.parse, picked.job, picked.nameless,
                              static_cast<SourceId>(files->logs.size())};
  append(problems, read_metrics_of(*files, metrics, picked, engine, progress));
  append(problems, read_comm(std::move(files->comm), files->job, engine, progress, options.threads));
  append(problems, std::move(files->problems));
  append(problems, std::move(built->problems));
  if (rules)
    for (OpenRule& open : open_rules(*rules))
      problems.push_back({std::move(open.file), std::nullopt, std::move(open.what), About::kCulprit});
  std::vector<core::Input> reported;
  for (Problem& p : problems) reported.emplace_back(core::ProblemSeen{std::move(p)});
  engine.step(reported, kNoTime);
  Diagnosed out{engine.report(), std::move(files->errors), true, std::move(picked.others)};
  if (!picked.there) out.report.job.id.reset();
  // False if none of the arguments exists.
  out.anything = out.errors.size() < options.paths.size();
  append(out.errors, std::move(files->unreadable));
  if (!options.note.empty() && !out.report.verdict) out.report.missing.push_back(options.note);
  if (!no_hang.empty() && !out.report.verdict) out.report.missing.push_back(no_hang);
  tell_empty(options, out);
  if (out.report.diagnoses.empty() && !out.report.missing.empty())
    for (const std::string& what : files->instead) out.report.missing.push_back(what);
  append(out.errors, std::move(built->errors));
  append(out.errors, std::move(errors));
  out.report.interrupted = progress.stop;
  conclude(out.report);
  return out;
}

}  // namespace culprit::app
