#include "app/confirm/logs.h"

#include <fmt/format.h>
#include <stdlib.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <set>
#include <system_error>

#include "app/confirm/pattern.h"
#include "app/confirm/rule_text.h"
#include "base/text.h"
#include "core/rules/pattern.h"
#include "model/json_text.h"

namespace culprit::app {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

constexpr size_t kRetainedLines = 500;  // limit of lines per pattern
constexpr size_t kSources = 2000;
constexpr ptrdiff_t kPathParts = 8;  // number of last parts of a source's path
constexpr std::string_view kSearch = "confirm.search";

// The template's regex, with any white space in place of a space: mined templates have single spaces.
std::string lenient(const std::string& pattern) {
  std::string out = rules::template_to_regex(pattern).value_or("");
  for (size_t at = 0; (at = out.find("\\ ", at)) != out.npos; at += 3) out.replace(at, 2, "\\s+");
  return out;
}

std::shared_ptr<rules::Ruleset> set_of(const std::vector<std::string>& patterns) {
  std::string text;
  for (size_t i = 0; i < patterns.size(); ++i)
    text += fmt::format(R"(rule {{ id = "{}.p{}", engine = 1, title = "-", category = "unknown",
  component = "unknown", severity = "info", match = {{ regex = {} }}, remedy = "-",
  examples = {{ hit = {{ {} }}, miss = {{ "-" }} }} }}
)",
                        kSearch, i, lua_text(lenient(patterns[i])), lua_text(patterns[i]));
  const rules::RuleText file{"search.lua", text};
  // The patterns are only tried on logs, so their examples need no proof.
  auto set = rules::Ruleset::load({&file, 1}, {.proven_files = 1});
  return set ? *set : nullptr;
}

// A safe name for a folder or file: a host or path from other programs may contain anything.
std::string safe_name(std::string_view text) {
  std::string out;
  for (const char c : text.substr(text.size() - std::min<size_t>(text.size(), 150)))
    out += std::isalnum(static_cast<unsigned char>(c)) || c == '-' || c == '_' || c == '.' ? c : '_';
  return out.empty() || out[0] == '.' ? "_" + out : out;
}

// A source of text of a job.
struct StoredText {
  std::string host, path;
};

// From the answer of GET /v1/sources; one path may have several sources, one per file.
std::vector<StoredText> texts_of(const std::string& answer) {
  std::vector<StoredText> out;
  std::set<std::pair<std::string, std::string>> seen;
  for (const Json& s : items_of(answer)) {
    const auto text = [&](const char* name) {
      return s.contains(name) && s[name].is_string() ? s[name].get<std::string>() : std::string();
    };
    const std::string kind = text("kind");
    StoredText one{text("host"), text("path")};
    if ((kind != "file" && kind != "kernel" && kind != "journal") || !seen.emplace(one.host, one.path).second)
      continue;
    if (out.size() < kSources) out.push_back(std::move(one));
  }
  return out;
}

// HOST/PATH below the folder, within the limits of names: the names show whose log it is.
fs::path new_place(const fs::path& folder, const StoredText& source) {
  std::vector<std::string> parts;
  for (const std::string_view part : split(source.path, '/'))
    if (!part.empty()) parts.push_back(safe_name(part));
  if (std::ssize(parts) > kPathParts) parts.erase(parts.begin(), parts.end() - kPathParts);
  if (parts.empty()) parts.emplace_back("_");
  if (parts.back() == "job.toml") parts.back() += "_";  // a job.toml would describe the job
  const fs::path top = folder / safe_name(source.host);
  fs::path at = top;
  for (const std::string& part : parts) at /= part;
  std::error_code error;
  fs::create_directories(at.parent_path(), error);
  for (size_t n = 0; error || fs::exists(at, error); ++n) {  // the name is already taken by another source or
                                                             // a folder
    at = top / fmt::format("{}", n) / parts.back();
    if (n >= kSources) break;
    fs::create_directories(at.parent_path(), error);
  }
  return at;
}

Result<std::string> new_folder(const std::string& within) {
  std::error_code error;
  const fs::path parent = within.empty() ? fs::temp_directory_path(error) : fs::path(within);
  std::string name = (parent / "culprit-evidence-XXXXXX").string();
  if (error || !mkdtemp(name.data()))
    return fail(ErrorCode::kIo, fmt::format("{}: {}", name, std::generic_category().message(errno)));
  return name;
}

}  // namespace

std::vector<Json> items_of(const std::string& answer) {
  std::vector<Json> out;
  Json json = parse_ordered_json(answer);
  const auto items = json.is_object() ? json.find("items") : json.end();
  if (!json.is_object() || items == json.end() || !items->is_array()) return out;
  for (Json& item : *items)
    if (item.is_object()) out.push_back(std::move(item));
  return out;
}

JobLogs::~JobLogs() {
  std::error_code ignored;
  if (!folder_.empty()) fs::remove_all(folder_, ignored);
}

Status JobLogs::collect(const std::vector<std::string>& paths) {
  ReadProgress progress;
  auto files = collect_files(paths, reading_, progress);
  if (!files) return tl::unexpected(files.error());
  if (!files->errors.empty()) return tl::unexpected(files->errors[0]);
  files_ = std::move(*files);
  if (files_.logs.empty()) return fail(ErrorCode::kNotFound, fmt::format("{}: there is no log", paths[0]));
  return {};
}

Result<std::shared_ptr<JobLogs>> JobLogs::open(const std::vector<std::string>& paths,
                                               const DiagnoseOptions& reading) {
  std::shared_ptr<JobLogs> out(new JobLogs());
  out->reading_ = reading;
  if (const Status done = out->collect(paths); !done) return tl::unexpected(done.error());
  return out;
}

Result<std::shared_ptr<JobLogs>> JobLogs::fetch(StoredJobs& stored, const std::string& job,
                                                const DiagnoseOptions& reading, const FetchOptions& fetch) {
  const auto answer = stored.sources(job);
  if (!answer) return tl::unexpected(answer.error());
  auto folder = new_folder(fetch.folder);
  if (!folder) return tl::unexpected(folder.error());
  std::shared_ptr<JobLogs> out(new JobLogs());
  out->folder_ = *folder;
  out->reading_ = reading;
  const std::vector<StoredText> texts = texts_of(*answer);
  // Uses the agents' hosts if there are several; a single host may read logs of others, whose names show the
  // host.
  const bool one_host =
      std::ranges::all_of(texts, [&](const StoredText& t) { return t.host == texts[0].host; });
  if (!one_host) out->reading_.host_pattern = "^(?P<host>[^/]+)/";
  uint64_t bytes = 0;
  for (const StoredText& source : texts) {
    if (bytes >= fetch.bytes) break;
    std::ofstream file(new_place(*folder, source), std::ios::binary);
    const Status read = stored.read(job, source.host, source.path, [&](std::string_view part) {
      bytes += part.size();
      file << part;
      return file.good() && bytes < fetch.bytes;
    });
    if (!read) return tl::unexpected(read.error());
  }
  if (texts.empty())
    return fail(ErrorCode::kNotFound, fmt::format("{}: no lines of job {} are kept", stored.name(), job));
  if (const Status done = out->collect({*folder}); !done) return tl::unexpected(done.error());
  return out;
}

RuleMatches JobLogs::match(std::shared_ptr<rules::Ruleset> set) const {
  ReadProgress progress;
  return match_rules(files_, {reading_.parse, reading_.threads}, std::move(set), progress);
}

std::vector<Occurrences> JobLogs::search(const std::vector<std::string>& patterns) const {
  std::vector<Occurrences> out(patterns.size());
  auto set = set_of(patterns);
  if (!set) return out;
  std::vector<size_t> pattern_of_rule;
  for (const rules::Rule& rule : set->rules())
    pattern_of_rule.push_back(std::stoul(rule.id.substr(kSearch.size() + 2)));
  for (const core::RuleFired& fired : match(set).fired) {
    Occurrences& one = out[pattern_of_rule[fired.hit.rule]];
    ++one.count;
    if (one.lines.size() < kRetainedLines)
      one.lines.push_back({fired.hit.text, fired.hit.host, fired.hit.time_ns});
  }
  return out;
}

JobLogs::Facts JobLogs::facts() const {
  core::Engine engine({files_.job, {}, {}});
  ReadProgress progress;
  read_logs(files_.logs, {reading_.parse, reading_.threads}, engine, progress);
  const logs::JobLog& log = engine.settled_log();
  Facts out;
  for (const logs::ClusterId id : log.clusters()) out.templates.push_back(log.miner().text(id));
  std::set<std::string> hosts;
  for (const logs::WriterStats& writer : log.writers())
    if (writer.host) hosts.insert(*writer.host);
  out.hosts.assign(hosts.begin(), hosts.end());
  return out;
}

}  // namespace culprit::app
