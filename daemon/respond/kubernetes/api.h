// Requests to a Kubernetes API server: with the pod's token, or a token file, both read again at each
// request, since a kubelet renews them; answers with limits; retries of what may be repeated.
//
// Blocking; any thread.
#pragma once

#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "base/status.h"
#include "respond/executor.h"

namespace culprit::respond::kubernetes {

struct ApiRequest {
  std::string method;  // GET, POST, PUT, PATCH, DELETE
  std::string path;    // "/api/v1/nodes/n1?dryRun=All"; each part escaped
  std::string content_type = "application/json";
  std::string body{};
  size_t answer_max = 4 << 20;  // bytes; a node with many images has some 100 KB
};

struct ApiAnswer {
  long status = 0;  // 0: no answer
  std::string body;
  std::optional<TimeNs> retry_after_ns;
  std::string trouble;  // why there is no answer; one sentence
  // No connection was made, so nothing was done. Else an answer that is missing may be of a request that was
  // carried out.
  bool unsent = false;
  // patient_call() sent the request before, and does not know whether the server carried it out.
  bool unclear = false;
};

// One request; tests have their own.
using ApiCall = std::function<ApiAnswer(const ApiRequest&, const Pace&)>;

struct ApiAccess {
  std::string server;      // "https://10.0.0.1:443"
  std::string ca_file;     // empty: the system's
  std::string token_file;  // empty: none
  // The kubelet's own file, readable for all of the pod. Otherwise only the daemon's user may read it.
  bool pod_token = false;
  TimeNs within_ns = 10 * kNsPerSecond;  // one request
};

// Access of a pod: KUBERNETES_SERVICE_HOST, …_PORT and the files of its service account. An error outside.
Result<ApiAccess> pod_access(const std::function<std::optional<std::string>(std::string_view name)>& variable,
                             const std::string& folder = "/var/run/secrets/kubernetes.io/serviceaccount");

// Access with these files; without a server that of the pod in which the process runs.
Result<ApiAccess> access_with(std::string server, const std::string& token_file, const std::string& ca_file);

// Requests over HTTP.
ApiCall http_calls(ApiAccess access);

// `message` of a Status object, or the beginning of the body; one line.
std::string message_of(const ApiAnswer& answer);

// Escapes one part of a path or the value of a query.
std::string escaped(std::string_view text);

// Nanoseconds as "2026-11-29T19:00:00Z"; `micro`: as "….123456Z", for a Lease.
std::string time_text(TimeNs time, bool micro = false);

// Repeats one request while the server is busy: 429 after Retry-After, 5xx and no answer after 0.5 s, doubled
// each time, at most kTries requests within kBusyMost. Only for what may be repeated: GET, DELETE with a UID,
// and PATCH of an object's version.
ApiAnswer patient_call(const ApiCall& call, const ApiRequest& request, Pace& pace);
constexpr int kTries = 5;
constexpr TimeNs kBusyMost = 20 * kNsPerSecond;
// No answer, or one that says nothing of the request.
bool is_busy(const ApiAnswer& answer);

}  // namespace culprit::respond::kubernetes
