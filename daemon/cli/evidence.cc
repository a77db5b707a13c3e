#include <fmt/format.h>
#include <fmt/ranges.h>

#include <set>

#include "base/text.h"
#include "cli/near.h"
#include "cli/remote.h"
#include "cli/rules.h"
#include "cli/verbs.h"

namespace culprit::cli {
namespace {

constexpr const char* kEvidenceExamples = R"(
Examples:
  culprit evidence ls --job llama-70b-0412
  culprit evidence cat --job llama-70b-0412 --host node-17 --path /var/log/train/17.log | tail)";

constexpr const char* kListExamples = R"(
Examples:
  culprit evidence ls --job llama-70b-0412
  culprit evidence ls --format json | jq -r '.items[] | select(.lost_bytes > 0) | .path')";

constexpr const char* kCatExamples = R"(
Examples:
  culprit evidence cat --job llama-70b-0412 --host node-17 --path /var/log/train/17.log | tail
  culprit evidence cat --job llama-70b-0412 --path /var/log/train/17.log --line 120 --around 20
  culprit evidence cat --job J --host H --path P --from-byte 4096 --to-byte 8192)";

struct EvidenceOptions {
  RemoteOptions remote;
  std::string job, host, path;
  uint64_t from_byte = 0;
  std::optional<uint64_t> to_byte, line;
  std::optional<uint32_t> around;
};

constexpr uint32_t kAround = 5, kAroundMost = 200;

std::string source_query(const EvidenceOptions& o) {
  return fmt::format("job={}&host={}&path={}", app::url_escaped(o.job), app::url_escaped(o.host),
                     app::url_escaped(o.path));
}

// The hosts whose daemons read a source of this path.
Result<std::set<std::string>> readers_of(app::Client& client, const EvidenceOptions& o) {
  const auto items = get_items(client, "/v1/sources?job=" + app::url_escaped(o.job));
  if (!items) return tl::unexpected(items.error());
  std::set<std::string> out;
  for (const Json& item : *items)
    if (item.is_object() && item.value("path", "") == o.path) out.insert(item.value("host", ""));
  return out;
}

// Evidence from a dump names the host of its rank, although another host may have read the file: then that
// host is queried. If several hosts have the path, none is chosen.
Status find_reader(app::Client& client, EvidenceOptions& o, const Error& refusal) {
  const auto readers = readers_of(client, o);
  if (!readers) return tl::unexpected(o.host.empty() ? readers.error() : refusal);
  if (readers->size() > 1 && o.host.empty())
    return fail(ErrorCode::kInvalid, fmt::format("several hosts have {}: name one with --host: {}", o.path,
                                                 fmt::join(*readers, ", ")));
  if (readers->size() != 1 || readers->contains(o.host)) return tl::unexpected(refusal);
  if (!o.host.empty())
    report_error(
        fmt::format("note: host {} has no such source; it was read by {}", o.host, *readers->begin()));
  o.host = *readers->begin();
  return {};
}

Result<Json> get_lines(app::Client& client, EvidenceOptions& o) {
  const auto ask = [&] {
    return get_json(client, fmt::format("/v1/evidence/lines?{}&line={}&around={}", source_query(o), *o.line,
                                        o.around.value_or(kAround)));
  };
  auto got = ask();
  if (got || got.error().code != ErrorCode::kNotFound) return got;
  if (const Status found = find_reader(client, o, got.error()); !found) return tl::unexpected(found.error());
  return ask();
}

// Numbered and safe for a terminal, unlike the output of `cat`.
int show_lines(app::Client& client, EvidenceOptions& o) {
  const auto got = get_lines(client, o);
  if (!got) return report_error(got.error().text), kUnable;
  const auto lines = got->find("lines"), cut = got->find("cut");
  uint64_t number = got->value("first", uint64_t{1});
  if (lines == got->end() || !lines->is_array())
    return report_error(client.server() + ": it answers without lines"), kUnable;
  std::string out;
  for (size_t i = 0; i < lines->size(); ++i, ++number) {
    std::string text = (*lines)[i].is_string() ? (*lines)[i].get<std::string>() : "";
    while (text.ends_with('\r') || text.ends_with('\n')) text.pop_back();
    out += fmt::format("{} {:>7}  {}", number == *o.line ? '>' : ' ', number, to_terminal(text));
    if (cut != got->end() && i < cut->size() && (*cut)[i].is_number_unsigned() && (*cut)[i] != 0)
      out += fmt::format(" … {} more", format_bytes((*cut)[i].get<uint64_t>()));
    out += '\n';
  }
  if (got->value("sure", true) == false)
    report_error(o.path + ": bytes were lost before these lines: their numbers may be wrong");
  if (lines->empty()) return report_error(fmt::format("{}: it has no line {}", o.path, *o.line)), kUnable;
  return print(out) ? kDone : kUnable;
}

int cat(EvidenceOptions& o) {
  if (o.around && !o.line) return report_error("--around needs --line"), kUnable;
  if (o.line && (o.from_byte != 0 || o.to_byte))
    return report_error("--line: not together with --from-byte or --to-byte"), kUnable;
  auto client = client_of_job(o.remote, o.job);
  if (!client) return report_error(client.error().text), kUnable;
  const Error none{ErrorCode::kNotFound, fmt::format("no evidence of {} for job {}", o.path, o.job)};
  if (o.host.empty())
    if (const Status found = find_reader(*client, o, none); !found)
      return report_error(with_meant_job(*client, found.error(), o.job)), kUnable;
  if (o.line) return show_lines(*client, o);
  bool printed = true;
  const auto read = [&] {
    std::string path = fmt::format("/v1/evidence?{}&from_byte={}", source_query(o), o.from_byte);
    if (o.to_byte) path += fmt::format("&to_byte={}", *o.to_byte);
    return client->get_stream(path,
                              [&](std::string_view bytes) { return printed = print(std::string(bytes)); });
  };
  auto gaps = read();
  if (!gaps && gaps.error().code == ErrorCode::kNotFound) {
    if (const Status found = find_reader(*client, o, gaps.error()); !found)
      return report_error(with_meant_job(*client, found.error(), o.job)), kUnable;
    gaps = read();
  }
  if (!gaps) return report_error(with_meant_job(*client, gaps.error(), o.job)), kUnable;
  for (const std::string& gap : *gaps) report_error(o.path + ": gap " + gap);
  return printed ? kDone : kUnable;
}

std::string lost(const Json& source) {
  const auto count = [&](const char* name) {
    const auto at = source.find(name);
    return at != source.end() && at->is_number_unsigned() ? at->get<uint64_t>() : 0;
  };
  const uint64_t bytes = count("lost_bytes"), records = count("lost_records");
  if (bytes == 0 && records == 0) return "-";
  return records == 0 ? format_bytes(bytes)
         : bytes == 0 ? counted(records, "record")
                      : format_bytes(bytes) + ", " + counted(records, "record");
}

int ls(EvidenceOptions& o) {
  const std::string path = "/v1/sources" + (o.job.empty() ? "" : "?job=" + app::url_escaped(o.job));
  return print_answer(o.remote, path, [&](const Json& json) {
    std::vector<std::vector<std::string>> rows{{"JOB", "HOST", "KIND", "BYTES", "DROPPED", "PATH"}};
    if (const auto items = json.find("items"); items != json.end())
      for (const Json& s : *items)
        if (s.is_object())
          rows.push_back({text_field(s, "job"), text_field(s, "host"), text_field(s, "kind"),
                          text_field(s, "bytes"), lost(s), text_field(s, "path")});
    return rows.size() > 1 ? table(rows, wants_color())
           : o.job.empty() ? std::string("there is no evidence\n")
                           : fmt::format("there is no evidence of a job {}\n", o.job);
  });
}

}  // namespace

void add_evidence(Command& app, Run& run) {
  auto o = std::make_shared<EvidenceOptions>();
  Command* evidence = app.add_subcommand("evidence", "The bytes that the daemon has kept of its sources");
  evidence->require_subcommand();
  evidence->footer(kEvidenceExamples);
  Command* show =
      evidence->add_subcommand("cat", "Write the bytes of one source as they came; gaps are reported");
  show->footer(kCatExamples);
  show->add_option("--job", o->job, "The job; - where `culprit evidence ls` shows none")->required();
  show->add_option("--host", o->host, "The host that read it; not needed where one host alone has the path");
  show->add_option("--path", o->path, "The source, as `culprit evidence ls` lists it")->required();
  show->add_option("--from-byte", o->from_byte, "The first byte, from 0");
  show->add_option("--to-byte", o->to_byte, "The byte to end before");
  show->add_option("--line", o->line, "Show this line and those around it, numbered, instead of the bytes")
      ->between(uint64_t{1}, UINT64_MAX);
  show->add_option("--around", o->around, "Lines before and after it (default: 5)")->between(0u, kAroundMost);
  add_server_options(*show, o->remote);
  add_members(*show, o->remote);
  show->callback([o, &run] { run = [o] { return cat(*o); }; });
  Command* list = evidence->add_subcommand("ls", "List the sources, newest first");
  list->footer(kListExamples);
  list->add_option("--job", o->job, "Of this job only");
  add_server_options(*list, o->remote);
  add_members(*list, o->remote);
  add_format(*list, o->remote, {"text", "json"});
  add_timezone(*list, o->remote);
  list->callback([o, &run] { run = [o] { return ls(*o); }; });
}

}  // namespace culprit::cli
