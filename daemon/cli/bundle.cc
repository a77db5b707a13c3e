#include <fmt/format.h>
#include <pwd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <ctime>
#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <system_error>

#include "base/text.h"
#include "base/wide_text.h"
#include "cli/archive.h"
#include "cli/near.h"
#include "cli/redact.h"
#include "cli/remote.h"
#include "cli/render.h"
#include "cli/verbs.h"
#include "model/report_json_read.h"

namespace culprit::cli {
namespace {

constexpr const char* kBundleExamples = R"(
Examples:
  culprit bundle llama-70b-0412 --out case.tar.zst
  culprit bundle llama-70b-0412 --out case.tar.gz --all --redact projectx --keep-ips
  culprit bundle llama-70b-0412 --keep-hardware     # for a repair; --raw: nothing is blacked out

Look through the archive before you send it: what resembles nothing known was not blacked out.)";

// Lines of evidence around a quoted line: the context of a fault in one process's log.
constexpr uint64_t kLinesAround = 500;
constexpr size_t kLineBytes = 1 << 20;  // longer lines are processed in parts
constexpr const char* kRetained =
    "what resembles no name, home folder, secret, e-mail, phone number, full host name, IP address, address "
    "of a "
    "network device or serial number was kept";

struct BundleOptions {
  RemoteOptions remote;
  std::string job, out;
  std::optional<uint32_t> run;
  bool all = false;
  RedactOptions redact;
};

struct Close {
  void operator()(std::FILE* file) const { std::fclose(file); }
};
using File = std::unique_ptr<std::FILE, Close>;

// A source of the job, and its part in the archive.
struct BundledSource {
  std::string job, host, path, name;
  std::set<uint64_t> lines;  // quoted lines, from 1; nothing: all lines
  File raw;
  std::vector<std::string> gaps;
  uint64_t from_line = 0, retained_lines = 0, bytes = 0;
};

// Calls back for each line without its end.
class LineCutter {
 public:
  explicit LineCutter(std::function<void(const std::string&)> take) : take_(std::move(take)) {}
  void feed(std::string_view bytes) {
    if (!wide_.takes(bytes)) return feed_text(bytes);
    std::string text;
    wide_.decode(bytes, text);
    feed_text(text);
  }
  void finish() {
    if (!line_.empty()) flush();
  }

 private:
  void feed_text(std::string_view bytes) {
    for (size_t at = 0; at < bytes.size();) {
      const size_t end = std::min(bytes.find('\n', at), bytes.size());
      line_ += bytes.substr(at, end - at);
      if (end < bytes.size() || line_.size() >= kLineBytes) flush();
      at = end + 1;
    }
  }
  void flush() {
    take_(line_);
    line_.clear();
  }
  std::function<void(const std::string&)> take_;
  WideText wide_;
  std::string line_;
};

void redact(Json& json, Redactor& redactor, bool learn) {
  if (json.is_string()) {
    const std::string text = json.get<std::string>();
    if (learn) return redactor.learn(text);
    std::string out;
    for (std::string_view line : split(text, '\n')) out += (out.empty() ? "" : "\n") + redactor.apply(line);
    json = to_utf8(out);
    redactor.next_source();
  } else if (json.is_structured()) {
    for (auto& value : json) redact(value, redactor, learn);
  }
}

// Learns hosts of the report and of its sources from fields with host names.
void learn_hosts(const Json& json, Redactor& redactor) {
  if (!json.is_structured()) return;
  for (const auto& [key, value] : json.items()) {
    const bool names_hosts = json.is_object() && (key == "host" || key == "hosts");
    if (names_hosts && value.is_string()) redactor.learn_host(value.get<std::string>());
    if (names_hosts && value.is_array())
      for (const Json& one : value)
        if (one.is_string()) redactor.learn_host(one.get<std::string>());
    learn_hosts(value, redactor);
  }
}

class Bundle {
 public:
  Bundle(BundleOptions& options, app::Client& client)
      : o_(options), client_(client), redactor_(options.redact) {}
  Status run();
  size_t sources() const { return sources_.size(); }
  const Redactor& redactor() const { return redactor_; }

 private:
  Status query();
  Status choose();
  Status fetch(BundledSource& source);
  Status write();
  Status write_source(Archive& archive, BundledSource& source);
  std::string manifest();

  BundleOptions& o_;
  app::Client& client_;
  Redactor redactor_;
  std::map<std::string, Json> documents_;  // by name in the archive
  Json charts_;                            // charts of the report, for its HTML page
  std::vector<BundledSource> sources_;
  std::vector<std::string> notes_;
};

Status Bundle::query() {
  const std::string job = app::url_escaped(o_.job);
  auto report = get_json(client_, report_path(o_.job, o_.run, true));
  if (!report) return tl::unexpected(report.error());
  if (const auto charts = report->find("charts"); charts != report->end()) {
    charts_ = std::move(*charts);
    report->erase(charts);
  }
  documents_["report.json"] = std::move(*report);
  const std::pair<const char*, std::string> others[] = {
      {"status.json", "/v1/status"}, {"about.json", "/v1/about"}, {"sources.json", "/v1/sources?job=" + job}};
  for (const auto& [name, path] : others) {
    auto json = get_json(client_, path);
    if (json)
      documents_[name] = std::move(*json);
    else
      notes_.push_back(fmt::format("{} is missing: {}", name, json.error().text));
  }
  return {};
}

std::string word_of(const Json& object, const char* name) {
  const auto at = object.find(name);
  return at != object.end() && at->is_string() ? at->get<std::string>() : "";
}

// Selects all sources of the job, or only those quoted by its diagnoses. A source belongs to the host that
// reads it; its lines may come from hosts without sources.
Status Bundle::choose() {
  std::map<std::pair<std::string, std::string>, std::set<uint64_t>> quoted;  // host and file
  const Json& report = documents_["report.json"];
  if (const auto diagnoses = report.find("diagnoses"); diagnoses != report.end() && diagnoses->is_array())
    for (const Json& d : *diagnoses) {
      if (!d.is_object() || !d.contains("evidence") || !d["evidence"].is_array()) continue;
      for (const Json& e : d["evidence"]) {
        if (!e.is_object()) continue;
        auto& lines = quoted[{word_of(e, "host"), word_of(e, "file")}];
        if (e.contains("line") && e["line"].is_number_unsigned()) lines.insert(e["line"].get<uint64_t>());
      }
    }
  const auto items = documents_["sources.json"].find("items");
  if (items == documents_["sources.json"].end() || !items->is_array()) return {};
  std::set<std::string> watching;
  for (const Json& s : *items)
    if (s.is_object()) watching.insert(word_of(s, "host"));
  const auto quotes_of = [&](const BundledSource& source) {
    std::optional<std::set<uint64_t>> lines;
    for (const auto& [place, of_place] : quoted) {
      const auto& [host, file] = place;
      if (file != source.path || (host != source.host && watching.contains(host))) continue;
      if (!lines) lines.emplace();
      lines->insert(of_place.begin(), of_place.end());
    }
    return lines;
  };
  for (const Json& s : *items) {
    if (!s.is_object()) continue;
    BundledSource source;
    source.job = word_of(s, "job"), source.host = word_of(s, "host"), source.path = word_of(s, "path");
    const auto lines = quotes_of(source);
    if (!lines && !o_.all) continue;
    if (lines && !o_.all) source.lines = *lines;
    const std::string base = std::filesystem::path(source.path).filename().string();
    source.name = fmt::format("evidence/{:03}-{}", sources_.size() + 1, redactor_.apply(base));
    sources_.push_back(std::move(source));
  }
  return {};
}

bool wanted(const BundledSource& source, uint64_t line) {
  if (source.lines.empty()) return true;
  const auto at = source.lines.lower_bound(line > kLinesAround ? line - kLinesAround : 0);
  return at != source.lines.end() && *at <= line + kLinesAround;
}

Status Bundle::fetch(BundledSource& source) {
  source.raw.reset(std::tmpfile());
  if (!source.raw)
    return fail(ErrorCode::kIo, fmt::format("a temporary file: {}", std::generic_category().message(errno)));
  uint64_t line = 0;
  bool written = true;
  LineCutter cutter([&](const std::string& text) {
    redactor_.learn(text);  // includes lines outside the archive: a name may be learned from any line
    if (!wanted(source, ++line)) return;
    if (source.retained_lines++ == 0) source.from_line = line;
    written = written && std::fwrite(text.data(), 1, text.size(), source.raw.get()) == text.size() &&
              std::fputc('\n', source.raw.get()) != EOF;
  });
  auto gaps =
      client_.get_stream(fmt::format("/v1/evidence?job={}&host={}&path={}", app::url_escaped(source.job),
                                     app::url_escaped(source.host), app::url_escaped(source.path)),
                         [&](std::string_view bytes) {
                           cutter.feed(bytes);
                           return written;
                         });
  cutter.finish();
  if (!written) return fail(ErrorCode::kIo, "a temporary file cannot be written");
  if (!gaps)
    notes_.push_back(fmt::format("{} is not whole: {}", source.name, gaps.error().text));
  else
    source.gaps = std::move(*gaps);
  return {};
}

Status Bundle::write_source(Archive& archive, BundledSource& source) {
  const File out(std::tmpfile());
  if (!out)
    return fail(ErrorCode::kIo, fmt::format("a temporary file: {}", std::generic_category().message(errno)));
  bool written = true;
  LineCutter cutter([&](const std::string& text) {
    const std::string line = redactor_.apply(text) + "\n";
    source.bytes += line.size();
    written = written && std::fwrite(line.data(), 1, line.size(), out.get()) == line.size();
  });
  std::rewind(source.raw.get());
  std::array<char, 64 << 10> part;
  for (size_t n; (n = std::fread(part.data(), 1, part.size(), source.raw.get())) > 0;)
    cutter.feed({part.data(), n});
  cutter.finish();
  redactor_.next_source();
  source.raw.reset();
  if (!written || std::fflush(out.get()) != 0)
    return fail(ErrorCode::kIo, "a temporary file cannot be written");
  return archive.add(source.name, out.get(), source.bytes);
}

std::string Bundle::manifest() {
  Json sources = Json::array();
  for (BundledSource& s : sources_)
    sources.push_back({{"name", s.name},
                       {"host", s.host},
                       {"path", s.path},
                       {"first_line", s.from_line},
                       {"lines", s.retained_lines},
                       {"bytes", s.bytes},
                       {"all", s.lines.empty()},
                       {"gaps", s.gaps}});
  Json json{{"schema", "culprit.bundle/1"},
            {"job", o_.job},
            {"culprit", CULPRIT_VERSION},
            {"run", o_.run ? Json(*o_.run) : Json()},
            {"server", client_.server()},
            {"evidence", sources},
            {"notes", notes_}};
  redact(json, redactor_, false);
  Json counts = Json::object();
  for (const auto& [kind, count] : redactor_.counts()) counts[kind] = count;
  json["blacked_out"] = {{"counts", counts},
                         {"raw", o_.redact.keep_all},
                         {"ip_addresses_kept", o_.redact.keep_ips},
                         {"hosts_kept", o_.redact.keep_hosts},
                         {"hardware_kept", o_.redact.keep_hardware},
                         {"words_given", o_.redact.names.size()},
                         {"note", o_.redact.keep_all ? "nothing was blacked out" : kRetained}};
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

Status Bundle::write() {
  auto archive = Archive::create(o_.out, static_cast<TimeNs>(std::time(nullptr)) * kNsPerSecond);
  if (!archive) return tl::unexpected(archive.error());
  redact(charts_, redactor_, false);
  for (auto& [name, json] : documents_) {
    redact(json, redactor_, false);
    const std::string text = json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
    if (Status status = archive->add(name, text); !status) return status;
    if (name != "report.json") continue;
    json["charts"] = charts_;
    const auto report = report_from_json(json.dump(-1, ' ', false, Json::error_handler_t::replace));
    if (!report) return tl::unexpected(report.error());
    RenderOptions options;
    options.zone = o_.remote.zone, options.zone_name = o_.remote.timezone;
    options.job = redactor_.apply(o_.job), options.run = o_.run;
    options.notes = {
        "The lines of the evidence and around it are in the folder \"evidence\" next to this file."};
    if (Status status = archive->add("report.html", render_html(*report, options)); !status) return status;
  }
  for (BundledSource& source : sources_)
    if (Status status = write_source(*archive, source); !status) return status;
  if (Status status = archive->add("manifest.json", manifest()); !status) return status;
  return archive->finish();
}

Status Bundle::run() {
  if (Status status = query(); !status) return status;
  redact(charts_, redactor_, true);
  for (auto& [name, json] : documents_) {
    redact(json, redactor_, true);
    learn_hosts(json, redactor_);
  }
  if (Status status = choose(); !status) return status;
  for (BundledSource& source : sources_)
    if (Status status = fetch(source); !status) return status;
  return write();
}

int bundle(BundleOptions& o) {
  if (Status status = resolve(o.remote); !status) return report_error(status.error().text), kUnable;
  auto client = app::Client::make(o.remote.client);
  if (!client) return report_error(client.error().text), kUnable;
  if (const passwd* user = getpwuid(getuid()); user && user->pw_uid != 0)
    o.redact.names.push_back(user->pw_name);
  Bundle work(o, *client);
  if (Status status = work.run(); !status)
    return report_error(with_meant_job(*client, status.error(), o.job)), kUnable;
  std::string reported = fmt::format("{}: the report and {}; blacked out:", to_terminal(o.out),
                                     counted(work.sources(), "source"));
  for (const auto& [kind, count] : work.redactor().counts()) reported += fmt::format(" {} × {}", count, kind);
  if (work.redactor().counts().empty()) reported += " nothing";
  if (o.redact.keep_all) reported += ", as --raw asks";
  return print(reported + "\n") ? kDone : kUnable;
}

}  // namespace

void add_bundle(Command& app, Run& run) {
  auto o = std::make_shared<BundleOptions>();
  Command* verb = app.add_subcommand(
      "bundle",
      "Pack report and evidence of a job to hand on; names, secrets and serial numbers are blacked out");
  verb->footer(kBundleExamples);
  verb->add_option("JOB", o->job, "As `culprit jobs` lists it")->required();
  add_run(*verb, o->run);
  verb->add_option("--out,-o", o->out, "The archive: NAME.tar.zst or NAME.tar.gz (default JOB.tar.zst)");
  verb->add_flag("--all", o->all,
                 "All evidence of the job, not only what its diagnoses quote and its surroundings");
  verb->add_flag("--keep-hosts", o->redact.keep_hosts, "Leave full names of hosts as they are");
  verb->add_flag("--keep-hardware", o->redact.keep_hardware,
                 "Leave serial numbers and addresses of network devices as they are");
  verb->add_flag("--raw", o->redact.keep_all, "Black out nothing");
  verb->add_flag("--keep-ips", o->redact.keep_ips, "Leave IP addresses as they are");
  verb->add_option("--redact", o->redact.names, "A word to black out too; repeat")->one_value();
  add_server_options(*verb, o->remote);
  add_timezone(*verb, o->remote);
  verb->callback([o, &run] {
    if (o->out.empty()) {
      o->out = o->job + ".tar.zst";
      std::replace(o->out.begin(), o->out.end(), '/', '_');  // a job's name must not act as a path
    }
    run = [o] { return bundle(*o); };
  });
}

}  // namespace culprit::cli
