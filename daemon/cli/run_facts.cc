#include "cli/run_facts.h"

#include <fmt/format.h>
#include <re2/re2.h>

#include <filesystem>
#include <fstream>

#include "base/text.h"
#include "cli/near.h"
#include "cli/remote.h"
#include "core/engine.h"
#include "model/json_text.h"
#include "model/report_json_read.h"

namespace culprit::cli {
namespace {

constexpr size_t kStatedNames = 200, kStatedValues = 8;
constexpr uint64_t kStatingLines = 200'000;  // limit per file: versions and settings are at the start of a
                                             // log
constexpr std::streamsize kReportFileBytes = 512 << 20;

struct Side {
  RunFacts* facts;
  app::JobFiles files;
};

void add_value(std::map<std::string, std::set<std::string>>& to, const std::string& name, std::string value) {
  if (!to.contains(name) && to.size() >= kStatedNames) return;
  std::set<std::string>& values = to[name];
  if (values.size() < kStatedValues) values.insert(std::move(value));
}

Result<RunFacts> of_report_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::string text(1 << 20, '\0'), all;
  while (file.read(text.data(), static_cast<std::streamsize>(text.size())), file.gcount() > 0) {
    all.append(text, 0, static_cast<size_t>(file.gcount()));
    if (all.size() > static_cast<size_t>(kReportFileBytes))
      return fail(ErrorCode::kLimit, path + ": too large");
  }
  auto report = report_from_json(all);
  if (!report) return fail(report.error().code, path + ": " + report.error().text);
  RunFacts out{path, std::move(*report), {}, {}, false, {}, {}, false};
  return out;
}

Result<RunFacts> of_daemon(const std::string& name, const app::ClientOptions& options) {
  auto client = app::Client::make(options);
  if (!client) return tl::unexpected(client.error());
  std::string job = name;
  std::optional<uint32_t> run;
  if (const size_t at = name.rfind('@'); at != name.npos && at + 1 < name.size() && name.size() - at <= 10 &&
                                         name.find_first_not_of("0123456789", at + 1) == name.npos) {
    job = name.substr(0, at);
    run = static_cast<uint32_t>(std::stoul(name.substr(at + 1)));
  }
  const auto text = client->get(report_path(job, run, true));
  if (!text) return fail(text.error().code, with_meant_job(*client, text.error(), job));
  auto report = report_from_json(*text);
  if (!report) return fail(report.error().code, client->server() + ": " + report.error().text);
  RunFacts out{name, std::move(*report), {}, {}, false, {}, {}, false};
  const Json json = parse_ordered_json(*text);
  const Json activity = json.value("/charts/activity"_json_pointer, Json());
  if (!activity.is_object()) return out;
  for (const Json& point : activity.value("progress", Json::array()))
    if (point.is_array() && point.size() == 2 && point[0].is_number_integer() && point[1].is_number_integer())
      out.progress.emplace_back(point[0].get<TimeNs>(), point[1].get<int64_t>());
  for (const Json& host : activity.value("hosts", Json::array()))
    if (host.is_object() && host.contains("host") && host["host"].is_string())
      out.hosts.insert(host["host"].get<std::string>());
  out.knows_hosts = out.hosts.size() == out.report.job.hosts;
  return out;
}

Result<RunFacts> of_files(const std::string& path, const app::DiagnoseOptions& options) {
  app::DiagnoseOptions own = options;
  own.paths = {path};
  app::ReadProgress progress;
  auto done = app::diagnose(own, progress);
  if (!done) return tl::unexpected(done.error());
  RunFacts out{path, std::move(done->report), {}, {}, true, {}, {}, true};
  out.progress = out.report.activity.progress;
  for (const HostActivity& host : out.report.activity.hosts) out.hosts.insert(host.host);
  return out;
}

bool is_file(const std::string& name) {
  std::error_code error;
  return std::filesystem::exists(name, error);
}

Result<RunFacts> read_run(const std::string& name, const app::DiagnoseOptions& options,
                          const app::ClientOptions& client) {
  if (!is_file(name)) {
    auto job = of_daemon(name, client);
    if (job || job.error().code != ErrorCode::kNotFound) return job;
    return fail(ErrorCode::kNotFound, fmt::format("{} is neither a file or folder nor a known job: {}", name,
                                                  job.error().text + stored_run_hint(name)));
  }
  return name.ends_with(".json") ? of_report_file(name) : of_files(name, options);
}

// Reads the logs of both runs into common templates, so that equal messages have equal texts.
Status count_messages(TwoRuns& runs, const app::DiagnoseOptions& options) {
  app::ReadProgress progress;
  std::vector<app::LogFile> logs;
  size_t first = 0;
  for (const RunFacts* facts : {&runs.before, &runs.after}) {
    auto files = app::collect_files({facts->name}, options, progress);
    if (!files) return tl::unexpected(files.error());
    for (app::LogFile& file : files->logs) logs.push_back(std::move(file));
    if (facts == &runs.before) first = logs.size();
  }
  core::Engine engine({{}, {}, {}});
  std::vector<core::Input> opened;
  for (const app::LogFile& file : logs) opened.emplace_back(core::SourceOpened{file.info});
  engine.step(opened, kNoTime);
  std::vector<std::pair<uint64_t, uint64_t>> counts;  // by form
  std::vector<uint64_t> seen(logs.size());
  const app::TakeBatch take = [&](logs::LogBatch& batch) {
    RunFacts& facts = batch.source < first ? runs.before : runs.after;
    core::Input input = core::LogInput{&batch};
    engine.step({&input, 1}, kNoTime);
    const std::vector<uint32_t>& forms = engine.log().last_forms();
    for (const logs::LineRecord& line : batch.lines) {
      if (seen[batch.source]++ < kStatingLines) add_stated(batch.message(line), facts);
      if (line.form == logs::kNoForm) continue;
      const uint32_t form = forms[line.form];
      if (counts.size() <= form) counts.resize(form + 1);
      ++(batch.source < first ? counts[form].first : counts[form].second);
    }
  };
  const std::vector<Problem> problems =
      app::parse_logs(logs, {options.parse, options.threads}, take, progress);
  for (const Problem& p : problems) runs.errors.push_back({ErrorCode::kInvalid, p.file + ": " + p.what});
  const logs::JobLog& log = engine.settled_log();
  std::map<logs::ClusterId, MessageCount> by_cluster;
  for (size_t form = 0; form < counts.size(); ++form) {
    MessageCount& count = by_cluster[log.miner().resolve(log.forms()[form].cluster)];
    count.before += counts[form].first;
    count.after += counts[form].second;
  }
  for (auto& [cluster, count] : by_cluster) {
    count.text = log.miner().text(cluster);
    runs.messages.push_back(std::move(count));
  }
  return {};
}

}  // namespace

void add_stated(std::string_view line, RunFacts& facts) {
  static const re2::RE2 kVersion(
      R"((?i)\b(nccl|rccl|cudnn|cuda(?: driver| runtime)?|nvidia driver|driver|torch|pytorch|python|deepspeed|transformers|megatron(?:-core)?|apex|triton|ucx|libfabric|kernel)[\s_.-]*version[\s_:='"]*v?(\d+(?:\.\d+)+[\w.+-]*))");
  static const re2::RE2 kPinned(
      R"((?i)\b(torch|nccl|transformers|deepspeed|megatron-core|apex|triton)==(\d[\w.+-]*))");
  static const re2::RE2 kSetting(
      R"(\b((?:NCCL|RCCL|TORCH|PYTORCH|CUDA|UCX|OMP|FI|GLOO|NVTE|HSA|HCCL)_[A-Z0-9_]+)(?:\s*=\s*| set by environment to | set to )([^\s,;]+))");
  constexpr size_t kLineBytes = 2048, kValueBytes = 120;
  line = line.substr(0, kLineBytes);
  const auto add = [&](const re2::RE2& pattern, auto& to, bool lower) {
    re2::StringPiece rest(line.data(), line.size());
    std::string name, value;
    while (re2::RE2::FindAndConsume(&rest, pattern, &name, &value)) {
      if (lower)
        for (char& c : name) c = static_cast<char>(c >= 'A' && c <= 'Z' ? c + ('a' - 'A') : c);
      while (value.ends_with('.')) value.pop_back();
      add_value(to, name == "pytorch" ? "torch" : name, shorten(value, kValueBytes));
    }
  };
  if (line.find("ersion") != line.npos || line.find("ERSION") != line.npos)
    add(kVersion, facts.versions, true);
  if (line.find("==") != line.npos) add(kPinned, facts.versions, true);
  if (line.find('_') != line.npos) add(kSetting, facts.settings, false);
}

Result<TwoRuns> read_two_runs(const std::string& before, const std::string& after,
                              const app::DiagnoseOptions& options, const app::ClientOptions& client) {
  TwoRuns out;
  for (const auto& [name, facts] : {std::pair(&before, &out.before), std::pair(&after, &out.after)}) {
    auto read = read_run(*name, options, client);
    if (!read) return tl::unexpected(read.error());
    *facts = std::move(*read);
  }
  if (out.before.has_logs && out.after.has_logs)
    if (Status counted = count_messages(out, options); !counted) out.errors.push_back(counted.error());
  return out;
}

}  // namespace culprit::cli
