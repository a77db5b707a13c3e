#include "app/run/follow.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include "model/json_text.h"

#include <chrono>
#include <nlohmann/json.hpp>
#include <utility>

namespace culprit::app {
namespace {

using json = nlohmann::json;

constexpr int kRetryMs = 100, kRetryMostMs = 5000;
// Wait before a verdict is reported: the verdict settles, and a failing job ends within moments, which is
// then reported instead.
constexpr int kSettleMs = 3000;

// Whether the daemon's best explanation changed or was withdrawn.
bool is_verdict(const ServerEvent& event) {
  if (event.kind == "diagnosis_gone") return true;
  if (event.kind != "diagnosis") return false;
  const json data = parse_json(event.data);
  if (!data.is_object()) return false;
  const auto verdict = data.find("verdict");
  return verdict != data.end() && verdict->is_boolean() && verdict->get<bool>();
}

}  // namespace

Follow::Follow(std::string server, std::string job)
    : server_(std::move(server)),
      job_(std::move(job)),
      wake_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
      thread_([this] { run(); }) {}

Follow::~Follow() {
  {
    const std::lock_guard lock(mutex_);
    ends_ = true;
  }
  ends_changed_.notify_all();
  thread_.join();
  if (wake_ >= 0) ::close(wake_);
}

std::optional<std::string> Follow::take() {
  uint64_t count = 0;
  if (wake_ >= 0) (void)!::read(wake_, &count, sizeof count);
  const std::lock_guard lock(mutex_);
  return std::exchange(report_, std::nullopt);
}

bool Follow::pause(int ms) {
  std::unique_lock lock(mutex_);
  return ends_changed_.wait_for(lock, std::chrono::milliseconds(ms), [this] { return ends_; });
}

void Follow::run() {
  auto client = Client::make({server_, "", ""}), reader = Client::make({server_, "", ""});
  if (!client || !reader) return;
  int retry = kRetryMs;
  for (;;) {
    (void)client->events("/v1/events?job=" + url_escaped(job_), "",
                         [&](const ServerEvent& event) { return take_event(*reader, event); });
    if (pause(retry)) return;
    retry = std::min(retry * 2, kRetryMostMs);
  }
}

bool Follow::take_event(Client& client, const ServerEvent& event) {
  reached_ = true;
  if (is_verdict(event)) {
    if (pause(kSettleMs)) return false;
    auto text = client.get("/v1/jobs/" + url_escaped(job_) + "/report?charts=1");
    if (text) {
      const std::lock_guard lock(mutex_);
      report_ = std::move(*text);
      const uint64_t one = 1;
      (void)!::write(wake_, &one, sizeof one);
    }
  }
  const std::lock_guard lock(mutex_);
  return !ends_;
}

}  // namespace culprit::app
