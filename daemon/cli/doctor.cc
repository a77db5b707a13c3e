#include "cli/doctor.h"

#include <curl/curl.h>
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/text.h"
#include "cli/layout.h"
#include "cli/rules.h"
#include "cli/verbs.h"
#include "model/json_text.h"
#include "model/json_writer.h"

namespace culprit::cli {
namespace {

constexpr const char* kDoctorExamples = R"(
Examples:
  culprit doctor
  sudo culprit doctor --exit-code && systemctl start culpritd
  culprit doctor --format json | jq -r 'select(.health != "ok") | .remedy')";

constexpr size_t kWidth = 100;
constexpr size_t kAnswerBytes = 16 << 20;
constexpr long kDaemonAnswerMs = 3000;  // a working daemon answers in milliseconds

struct DoctorOptions {
  app::DoctorOptions doctor;
  std::string format = "text";
  bool exit_code = false;
};

size_t on_bytes(char* bytes, size_t size, size_t count, void* to) {
  std::string& out = *static_cast<std::string*>(to);
  if (out.size() + size * count > kAnswerBytes) return 0;
  out.append(bytes, size * count);
  return size * count;
}

Result<std::string> get(const app::DoctorRequest& request) {
  const auto& [address, path, token, cert] = request;
  const std::unique_ptr<CURL, void (*)(CURL*)> curl(curl_easy_init(), curl_easy_cleanup);
  if (!curl) return fail(ErrorCode::kIo, address + ": no connection can be made");
  const bool is_unix = address.starts_with("unix:");
  const std::string socket = is_unix ? address.substr(5) : std::string();
  const bool tls = !is_unix && !cert.empty();
  const std::string url =
      fmt::format("{}://{}{}", tls ? "https" : "http", is_unix ? "localhost" : address, path);
  std::string body;
  curl_easy_setopt(curl.get(), CURLOPT_URL, url.c_str());
  if (is_unix) curl_easy_setopt(curl.get(), CURLOPT_UNIX_SOCKET_PATH, socket.c_str());
  if (tls) {  // the daemon's own certificate is known, so its names play no part
    curl_easy_setopt(curl.get(), CURLOPT_CAINFO, cert.c_str());
    curl_easy_setopt(curl.get(), CURLOPT_CAPATH, nullptr);
    curl_easy_setopt(curl.get(), CURLOPT_SSL_VERIFYHOST, 0L);
  }
  curl_easy_setopt(curl.get(), CURLOPT_NOPROXY, "*");
  curl_easy_setopt(curl.get(), CURLOPT_NOSIGNAL, 1L);
  curl_easy_setopt(curl.get(), CURLOPT_TIMEOUT_MS, kDaemonAnswerMs);
  curl_easy_setopt(curl.get(), CURLOPT_WRITEFUNCTION, on_bytes);
  curl_easy_setopt(curl.get(), CURLOPT_WRITEDATA, &body);
  const std::unique_ptr<curl_slist, void (*)(curl_slist*)> headers(
      token.empty() ? nullptr : curl_slist_append(nullptr, ("Authorization: Bearer " + token).c_str()),
      curl_slist_free_all);
  if (headers) curl_easy_setopt(curl.get(), CURLOPT_HTTPHEADER, headers.get());
  if (const CURLcode code = curl_easy_perform(curl.get()); code != CURLE_OK)
    return fail(ErrorCode::kIo, fmt::format("{}: {}", address, curl_easy_strerror(code)));
  long status = 0;
  curl_easy_getinfo(curl.get(), CURLINFO_RESPONSE_CODE, &status);
  if (status == 200) return body;
  const auto json = parse_json(body);
  const auto why = json.is_object() ? json.find("error") : json.end();
  return fail(ErrorCode::kIo, json.is_object() && why != json.end() && why->is_string()
                                  ? why->get<std::string>()
                                  : fmt::format("{}: {} is answered with status {}", address, path, status));
}

Ink ink_of(app::Health health) {
  return health == app::Health::kOk ? Ink::kDim : health == app::Health::kWarn ? Ink::kCaution : Ink::kAlarm;
}

std::string json_row(const app::DoctorRow& row) {
  JsonWriter w;
  w.object([&] {
    w.field("check", row.check);
    w.field("health", app::to_string(row.health));
    w.field("what", row.what);
    w.text_or_null("remedy", row.remedy);
  });
  return w.finish() + "\n";
}

}  // namespace

std::string render_doctor(const std::vector<app::DoctorRow>& rows, bool color) {
  size_t widest = 0, warned = 0, failed = 0;
  for (const app::DoctorRow& row : rows) widest = std::max(widest, row.check.size());
  const std::string margin(widest + 8, ' ');
  std::string out;
  for (const app::DoctorRow& row : rows) {
    warned += row.health == app::Health::kWarn;
    failed += row.health == app::Health::kFail;
    const std::string word = padded(app::to_string(row.health), 6);
    out += inked(word, ink_of(row.health), color) + padded(row.check, widest + 2);
    bool first = true;
    for (const std::string& line : wrap(to_terminal(row.what), kWidth - margin.size())) {
      out += (first ? "" : margin) + line + "\n";
      first = false;
    }
    // Not wrapped, so that the command can be copied.
    if (!row.remedy.empty())
      out += margin + inked(fmt::format("mend: {}", to_terminal(row.remedy)), Ink::kAccent, color) + "\n";
  }
  if (failed + warned == 0) return out + inked("\nNothing stands in the way.\n", Ink::kBold, color);
  return out + inked(fmt::format("\n{} and {} of {}.\n", counted(failed, "failure"),
                                 counted(warned, "warning"), counted(rows.size(), "check")),
                     Ink::kBold, color);
}

namespace {

int doctor(const DoctorOptions& o) {
  const auto rows = app::examine(o.doctor, app::machine_probes(get));
  std::string out;
  if (o.format == "json")
    for (const app::DoctorRow& row : rows) out += json_row(row);
  else
    out = render_doctor(rows, wants_color());
  if (!print(out)) return kUnable;
  const bool failed = std::any_of(rows.begin(), rows.end(),
                                  [](const app::DoctorRow& row) { return row.health == app::Health::kFail; });
  return o.exit_code && failed ? kFound : kDone;
}

}  // namespace

void add_doctor(Command& app, Run& run) {
  auto o = std::make_shared<DoctorOptions>();
  Command* verb = app.add_subcommand(
      "doctor", "Tell what would stop culpritd from seeing a job, and the command that mends it");
  verb->footer(kDoctorExamples);
  verb->add_option("--config", o->doctor.config,
                   fmt::format("Configuration of the daemon (default: {})", app::kConfigFile));
  verb->add_option("--user", o->doctor.user,
                   "Whom the daemon runs as (default: culprit where there is such a user, else the caller)");
  verb->add_option("--format,-f", o->format, "text, or json: one object a line")
      ->one_of({"text", "json"})
      ->show_default();
  verb->add_flag("--exit-code", o->exit_code, "Exit with 1 when a check fails");
  verb->callback([o, &run] { run = [o] { return doctor(*o); }; });
}

}  // namespace culprit::cli
