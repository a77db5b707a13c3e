#include "app/run/keep.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>
#include <string_view>
#include <thread>

#include "app/run/launch.h"
#include "model/json_text.h"

namespace culprit::app {
namespace {

using json = nlohmann::json;

constexpr size_t kSourcesMost = 256;
constexpr size_t kSourceBytes = 64 << 20;
constexpr std::chrono::milliseconds kLookEvery{50};

std::string text_of(const json& object, const char* name) {
  const auto found = object.find(name);
  return found != object.end() && found->is_string() ? found->get<std::string>() : std::string();
}

Result<json> sources_of(Client& client, const std::string& job) {
  const auto text = client.get("/v1/sources?job=" + url_escaped(job));
  if (!text) return tl::unexpected(text.error());
  const json read = parse_json(*text);
  if (!read.is_object() || !read.contains("items") || !read["items"].is_array())
    return fail(ErrorCode::kInvalid, client.server() + ": the list of sources is none");
  return read["items"];
}

}  // namespace

bool wait_until_read(Client& client, const std::string& job, const std::string& path, uint64_t bytes,
                     int within_ms) {
  const auto until = std::chrono::steady_clock::now() + std::chrono::milliseconds(within_ms);
  for (;;) {
    const auto sources = sources_of(client, job);
    if (sources)
      for (const json& source : *sources)
        if (source.is_object() && text_of(source, "path") == path &&
            source.value("bytes", json(0)).is_number_unsigned() && source["bytes"].get<uint64_t>() >= bytes)
          return true;
    if (std::chrono::steady_clock::now() >= until) return false;
    std::this_thread::sleep_for(kLookEvery);
  }
}

Result<size_t> keep_evidence(Client& client, const std::string& job, const HeldFolder& folder) {
  const auto sources = sources_of(client, job);
  if (!sources) return tl::unexpected(sources.error());
  size_t retained = 0, seen = 0;
  for (const json& source : *sources) {
    if (!source.is_object() || ++seen > kSourcesMost) continue;
    const std::string kind = text_of(source, "kind"), path = text_of(source, "path");
    if (kind != "plugin" && kind != "socket") continue;
    std::string bytes;
    const auto gaps =
        client.get_stream(fmt::format("/v1/evidence?job={}&host={}&path={}", url_escaped(job),
                                      url_escaped(text_of(source, "host")), url_escaped(path)),
                          [&](std::string_view part) {
                            bytes += part.substr(0, kSourceBytes - std::min(kSourceBytes, bytes.size()));
                            return bytes.size() < kSourceBytes;
                          });
    if (!gaps && bytes.empty()) continue;
    const std::string name = run_name_of(kind == "plugin" ? path : "trace") + ".ndjson";
    if (Status written = folder.write(name, bytes); !written) return tl::unexpected(written.error());
    ++retained;
  }
  return retained;
}

}  // namespace culprit::app
