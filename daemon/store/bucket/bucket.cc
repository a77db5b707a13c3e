#include "store/bucket/bucket.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <thread>

#include "base/text.h"
#include "io/secret_file.h"
#include "store/bucket/sha256.h"

namespace culprit::store::bucket {
namespace {

constexpr size_t kCredentialsMax = 64 << 10, kErrorMax = 64 << 10, kListMax = 4 << 20;
constexpr TimeNs kWaitNs = 50 * kNsPerMs;

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

// Read for each request: session tokens are renewed by writing the file again.
Result<Credentials> credentials_of(const std::string& file) {
  if (file.empty()) {
    Credentials out{variable("AWS_ACCESS_KEY_ID"), variable("AWS_SECRET_ACCESS_KEY"),
                    variable("AWS_SESSION_TOKEN")};
    if (!out.key.empty() && !out.secret.empty()) return out;
    return fail(ErrorCode::kInvalid,
                "no credentials: neither cluster.bucket.credentials nor AWS_ACCESS_KEY_ID and "
                "AWS_SECRET_ACCESS_KEY are set");
  }
  const auto text = io::read_secret(file, kCredentialsMax);
  if (!text) return tl::unexpected(text.error());
  return parse_credentials(*text, file);
}

// Statuses that a later try may change.
bool is_passing(long status) { return status == 429 || status == 408 || status >= 500; }

// One try: the body of a successful answer, or the error; `again`: another try may succeed.
struct Try {
  Result<std::string> answer;
  bool again = false;
};

Try try_once(io::HttpRequest& request, const std::string& what, size_t answer_max) {
  std::string body;
  bool too_long = false;
  request.on_body = [&](long status, std::string_view bytes) {
    const size_t most = status < 300 ? answer_max : kErrorMax;
    too_long = status < 300 && body.size() + bytes.size() > most;
    body += bytes.substr(0, most - std::min(most, body.size()));
    return !too_long;
  };
  const auto answer = io::http_exchange(request);
  if (too_long)
    return {fail(ErrorCode::kInvalid,
                 fmt::format("{}: the answer has more than {}", what, format_bytes(answer_max))),
            false};
  if (!answer) return {fail(ErrorCode::kIo, fmt::format("{}: {}", what, answer.error().reason)), true};
  if (answer->status >= 200 && answer->status < 300) return {std::move(body), false};
  const ServerError why = parse_error(body);
  const std::string text =
      fmt::format("{}: {}{}{}{}", what, answer->status, why.code.empty() ? "" : " " + why.code,
                  why.message.empty() ? "" : ": ", shorten(why.message, 200));
  const ErrorCode code = answer->status == 404   ? ErrorCode::kNotFound
                         : answer->status == 403 ? ErrorCode::kDenied
                                                 : ErrorCode::kIo;
  return {fail(code, text), is_passing(answer->status)};
}

}  // namespace

Result<std::string> Bucket::ask(const Asked& asked, std::string_view body, size_t answer_max) const {
  const std::string what = fmt::format("bucket {}: {} {}", options_.place.name, asked.method,
                                       asked.key.empty() ? "of its list" : asked.key);
  if (!asked.key.empty() && !is_key(asked.key)) return fail(ErrorCode::kInvalid, what + ": no valid key");
  const auto going = [this] { return !options_.keep_going || options_.keep_going(); };
  TimeNs wait = options_.retry_ns;
  for (int n = 1;; ++n) {
    const auto credentials = credentials_of(options_.credentials_file);
    if (!credentials) return tl::unexpected(credentials.error());
    io::HttpRequest request = request_of(options_.place, *credentials, asked);
    if (asked.method == "PUT") request.body = body;
    request.ca_file = options_.ca_file;
    request.within_ns = options_.within_ns;
    request.keep_going = going;
    if (options_.on_try) options_.on_try();
    Try one = try_once(request, what, answer_max);
    if (one.answer || !one.again || n >= options_.tries || !going()) return std::move(one.answer);
    for (TimeNs left = wait; left > 0 && going(); left -= kWaitNs)
      std::this_thread::sleep_for(std::chrono::nanoseconds(std::min(left, kWaitNs)));
    wait *= 2;
  }
}

Status Bucket::put(const std::string& key, std::string_view bytes, std::string_view sha) const {
  const auto done = ask({"PUT", key, {}, hex(sha), {}}, bytes, kErrorMax);
  return done ? Status() : tl::unexpected(done.error());
}

Result<std::string> Bucket::get(const std::string& key, uint64_t from, uint64_t size) const {
  if (size == 0) return std::string();
  auto bytes = ask({"GET", key, {}, hex(sha256("")), fmt::format("{}-{}", from, from + size - 1)}, {}, size);
  if (bytes && bytes->size() != size)
    return fail(ErrorCode::kInvalid,
                fmt::format("bucket {}: GET {}: it ends before byte {}", name(), key, from + size));
  return bytes;
}

Result<Listing> Bucket::list(const std::string& prefix, const std::string& after) const {
  Query query{{"list-type", "2"}, {"prefix", prefix}};
  if (!after.empty()) query.emplace_back("start-after", after);
  const auto xml = ask({"GET", "", std::move(query), hex(sha256("")), {}}, {}, kListMax);
  if (!xml) return tl::unexpected(xml.error());
  return parse_listing(*xml);
}

Status Bucket::remove(const std::string& key) const {
  const auto done = ask({"DELETE", key, {}, hex(sha256("")), {}}, {}, kErrorMax);
  if (!done && done.error().code != ErrorCode::kNotFound) return tl::unexpected(done.error());
  return {};
}

}  // namespace culprit::store::bucket
