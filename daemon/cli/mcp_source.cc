#include "cli/mcp_source.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "app/config/rule_files.h"
#include "app/offline/job_split.h"
#include "base/text.h"
#include "cli/hosts.h"
#include "cli/jobs_table.h"
#include "cli/narrative.h"
#include "cli/near.h"
#include "cli/remote.h"
#include "cli/scheduler_text.h"
#include "cli/shared_jobs.h"
#include "cli/spelling.h"
#include "core/rules/near.h"
#include "model/json_text.h"
#include "model/report_json_read.h"

namespace culprit::cli {
namespace {

constexpr size_t kNearRules = 5;

const Diagnosis* diagnosis_of(const Report& report, const std::string& id) {
  if (id.empty()) return leading(report);
  for (const Diagnosis& d : report.diagnoses)
    if (d.id == id) return &d;
  return nullptr;
}

Result<std::string> why_of(const Report& report, const std::string& id) {
  const Diagnosis* d = diagnosis_of(report, id);
  if (!d && id.empty()) return report.headline;
  if (!d) {
    std::vector<std::string> ids;
    for (const Diagnosis& one : report.diagnoses) ids.push_back(one.id);
    return fail(ErrorCode::kNotFound, id + ": no such diagnosis" + did_you_mean(id, ids, "'"));
  }
  std::string out = fmt::format("{}: {} ({})\n{}\n{}\n\nReasons\n", d->id, sentence_of(*d, report.job),
                                percent(d->confidence), classified(*d, {}), reported_by(*d));
  for (const std::string& why : d->why) out += "- " + why + "\n";
  out += "\nEvidence\n";
  for (const Evidence& e : d->evidence)
    out += fmt::format("{} host {}\n    {}\n", address(e), e.host.value_or("unknown"), e.text);
  return out;
}

std::string against_host(const Report& report, const std::string& host) {
  const auto names = [&](const Suspect& s) { return s.host == host; };
  if (const Diagnosis* best = leading(report); best && std::ranges::any_of(best->hosts, names))
    return fmt::format("{} is named by the leading diagnosis {}: {}\n", host, best->id,
                       sentence_of(*best, report.job));
  std::string out;
  for (const Diagnosis& d : report.diagnoses)
    if (std::ranges::any_of(d.hosts, names))
      out += fmt::format("{} names {}, but with {} only: {}\n", d.id, host, percent(d.confidence),
                         sentence_of(d, report.job));
  for (const Suspect& s : report.suspects) {
    if (!names(s)) continue;
    out += fmt::format("{} is a suspect of score {:.2f}, not the cause by itself:\n", host, s.score);
    for (const std::string& why : s.why) out += "- " + why + "\n";
  }
  return out.empty() ? fmt::format("Nothing in the report is held against {}.\n", host) : out;
}

std::string near_line(const std::string& line) {
  const app::LoadedRules loaded = app::load_rules({});
  if (!loaded.set) return "The rules cannot be read.\n";
  std::string out = "The nearest rules to this line, and what each lacks:\n";
  for (const rules::NearRule& near :
       rules::nearest_rules(*loaded.set, {line}, rules::TextSource::kLog, kNearRules)) {
    const rules::Rule& rule = loaded.set->rules()[near.rule];
    const std::string lacks = near.stop != rules::NearRule::Stop::kWording ? "its wording is in the line"
                              : near.missing.empty()                       ? "wants: " + near.wanted
                                                                           : "lacks: " + near.missing;
    out += fmt::format("- {} ({}): {}\n", rule.id, rule.title, lacks);
  }
  return out;
}

Result<std::string> why_not_of(const Report& report, const std::string& host, const std::string& line) {
  std::string out;
  if (!host.empty()) out += against_host(report, host);
  if (!line.empty()) out += near_line(line.substr(0, 4096));
  if (!out.empty()) return out;
  for (const std::string& what : report.missing) out += "- " + what + "\n";
  return out.empty() ? "Nothing is missing for the verdict: " + report.headline
                     : "What would tell more\n" + out;
}

std::string numbered(uint64_t number, bool here, std::string_view text) {
  return fmt::format("{} {:>7}  {}\n", here ? '>' : ' ', number, text);
}

class OfDaemon final : public McpSource {
 public:
  explicit OfDaemon(app::Client client) : client_(std::move(client)) {}

  Result<std::string> jobs() override {
    const auto items = get_items(client_, "/v1/jobs");
    if (!items) return tl::unexpected(items.error());
    std::vector<std::vector<std::string>> rows{{"JOB", "RUN", "STATE", "HOSTS", "FOUND"}};
    for (const Json& job : *items)
      rows.push_back({text_field(job, "id"), text_field(job, "run"), state_of_job(job),
                      text_field(job, "hosts"), found_in_job(job)});
    return table(rows, false);
  }
  Result<std::string> hosts() override {
    auto items = get_items(client_, "/v1/hosts");
    if (!items) return tl::unexpected(items.error());
    return hosts_text(worst_first(std::move(*items)), Zone(), false);
  }
  Result<std::string> report(const std::string& job) override {
    const auto read = fetch(job);
    if (!read) return tl::unexpected(read.error());
    RenderOptions options;
    options.origin = origin_;
    options.scheduler = scheduler_;
    return render_text(*read, options);
  }
  Result<std::string> why(const std::string& job, const std::string& id) override {
    const auto read = fetch(job);
    if (!read) return tl::unexpected(read.error());
    return why_of(*read, id);
  }
  Result<std::string> why_not(const std::string& job, const std::string& host,
                              const std::string& line) override {
    const auto read = fetch(job);
    if (!read) return tl::unexpected(read.error());
    return why_not_of(*read, host, line);
  }
  Result<std::string> evidence(const Place& place) override {
    const auto job = chosen(place.job);
    if (!job) return tl::unexpected(job.error());
    std::string host = place.host;
    if (host.empty()) {
      const auto items = get_items(client_, "/v1/sources?job=" + app::url_escaped(*job));
      if (!items) return tl::unexpected(items.error());
      for (const Json& item : *items)
        if (item.value("path", Json()) == place.path && item.value("host", Json()).is_string())
          host = item["host"].get<std::string>();
    }
    const auto got =
        get_json(client_, fmt::format("/v1/evidence/lines?job={}&host={}&path={}&line={}&around={}",
                                      app::url_escaped(*job), app::url_escaped(host),
                                      app::url_escaped(place.path), place.line, place.around));
    if (!got) return tl::unexpected(got.error());
    std::string out;
    uint64_t number = got->value("first", uint64_t{1});
    for (const Json& text : got->value("lines", Json::array()))
      out += numbered(number, number == place.line, text.is_string() ? text.get<std::string>() : ""),
          ++number;
    return out.empty() ? Result<std::string>(fail(ErrorCode::kNotFound, "there is no such line")) : out;
  }

 private:
  // The job, or the only one.
  Result<std::string> chosen(const std::string& job) {
    if (!job.empty()) return job;
    const auto items = get_items(client_, "/v1/jobs");
    if (!items) return tl::unexpected(items.error());
    std::set<std::string> names;
    for (const Json& item : *items)
      if (item.value("id", Json()).is_string()) names.insert(item["id"].get<std::string>());
    if (names.size() == 1) return *names.begin();
    return fail(ErrorCode::kInvalid,
                fmt::format("job is missing: there are {}; `jobs` lists them", names.size()));
  }
  Result<Report> fetch(const std::string& job) {
    const auto name = chosen(job);
    if (!name) return tl::unexpected(name.error());
    const auto text = client_.get(report_path(*name, std::nullopt));
    if (!text) return fail(text.error().code, with_meant_job(client_, text.error(), *name));
    const Json json = parse_ordered_json(*text);
    origin_ = json.is_object() ? origin_text(json, Zone()) : "";
    scheduler_ = scheduler_text(json);
    auto report = report_from_json(*text);
    if (report) std::erase_if(report->diagnoses, [](const Diagnosis& d) { return d.is_refuted(); });
    return report;
  }

  app::Client client_;
  std::string origin_, scheduler_;  // of the last report
};

class OfFolder final : public McpSource {
 public:
  explicit OfFolder(app::DiagnoseOptions options) : options_(std::move(options)) {}

  Result<std::string> jobs() override {
    read();
    std::vector<JobRow> rows;
    for (const Job& job : jobs_) rows.push_back({job.name, &job.report});
    return jobs_table(rows, false);
  }
  Result<std::string> hosts() override {
    read();
    std::vector<std::vector<std::string>> rows{{"HOST", "STANDING", "SCORE", "WHY"}};
    for (const Job& job : jobs_) {
      const Diagnosis* best = leading(job.report);
      const bool verdict = outcome(job.report) == Outcome::kVerdict;
      for (const Suspect& s : job.report.suspects) {
        const bool named = verdict && std::ranges::any_of(best->hosts, [&](const Suspect& one) {
                             return one.host == s.host;
                           });
        rows.push_back({to_terminal(place(s)), named ? "suspect" : "odd", fmt::format("{:.2f}", s.score),
                        s.why.empty() ? "-" : to_terminal(s.why[0])});
      }
    }
    return rows.size() > 1 ? table(rows, false) : std::string("Nothing is held against any host.\n");
  }
  Result<std::string> report(const std::string& job) override {
    const auto found = find(job);
    if (!found) return tl::unexpected(found.error());
    return render_text((*found)->report, {});
  }
  Result<std::string> why(const std::string& job, const std::string& id) override {
    const auto found = find(job);
    if (!found) return tl::unexpected(found.error());
    return why_of((*found)->report, id);
  }
  Result<std::string> why_not(const std::string& job, const std::string& host,
                              const std::string& line) override {
    const auto found = find(job);
    if (!found) return tl::unexpected(found.error());
    return why_not_of((*found)->report, host, line);
  }
  // Only files that the folder lists can be read.
  Result<std::string> evidence(const Place& place) override {
    app::ReadProgress progress;
    const auto files = app::collect_files(options_.paths, options_, progress);
    if (!files) return tl::unexpected(files.error());
    const auto file =
        std::ranges::find_if(files->logs, [&](const app::LogFile& f) { return f.file.path == place.path; });
    if (file == files->logs.end()) return fail(ErrorCode::kNotFound, place.path + ": no log of the folder");
    const uint64_t first = place.line > place.around ? place.line - place.around : 1;
    const uint64_t last = place.line + std::min<uint64_t>(place.around, UINT64_MAX - place.line);
    std::string out;
    uint64_t number = 0;
    app::for_each_piece({*file}, [&](const app::LogFile&, const ingest::ChunkBuffer& piece) {
      std::string_view text = piece.bytes;
      while (!text.empty() && number < last) {
        const size_t end = std::min(text.find('\n'), text.size());
        if (++number >= first)
          out += numbered(number, number == place.line, shorten(text.substr(0, end), 4096));
        text.remove_prefix(std::min(end + 1, text.size()));
      }
    });
    if (number < place.line)
      return fail(ErrorCode::kNotFound, fmt::format("{}: it has {} lines", place.path, number));
    return out;
  }

 private:
  struct Job {
    std::string name;
    Report report;
  };

  void read() {
    if (std::exchange(read_, true)) return;
    for (const app::JobPaths& part : app::split_jobs(options_.paths)) {
      app::DiagnoseOptions own = options_;
      own.paths = part.paths, own.only = part.files, own.id = part.id, own.note = part.note;
      app::ReadProgress progress;
      if (auto done = app::diagnose(own, progress))
        jobs_.push_back(
            {done->report.job.id.value_or(part.paths.empty() ? "" : part.paths[0]), std::move(done->report)});
    }
  }
  Result<const Job*> find(const std::string& name) {
    read();
    std::vector<std::string> names;
    for (const Job& job : jobs_) {
      if (job.name == name || (name.empty() && jobs_.size() == 1)) return &job;
      names.push_back(job.name);
    }
    if (name.empty())
      return fail(ErrorCode::kInvalid,
                  fmt::format("job is missing: there are {}; `jobs` lists them", jobs_.size()));
    return fail(ErrorCode::kNotFound, name + ": no such job" + did_you_mean(name, names, "'"));
  }

  app::DiagnoseOptions options_;
  bool read_ = false;
  std::vector<Job> jobs_;
};

}  // namespace

std::unique_ptr<McpSource> mcp_of_daemon(app::Client client) {
  return std::make_unique<OfDaemon>(std::move(client));
}

std::unique_ptr<McpSource> mcp_of_folder(app::DiagnoseOptions options) {
  return std::make_unique<OfFolder>(std::move(options));
}

}  // namespace culprit::cli
