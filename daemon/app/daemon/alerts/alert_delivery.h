// One attempt to hand messages to a receiver: reads its secrets, makes the body, sends it and judges the
// answer. Blocking: for a worker's thread. It borrows nothing, so it may outlive who asked for it.
#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "app/config/config.h"
#include "model/alert.h"
#include "respond/notice.h"

namespace culprit::app {

constexpr const char* kOtlpReceiver = "otlp";

struct DeliveryOrder {
  AlertConfig receiver;
  bool otlp = false;  // then the receiver is OTLP's endpoint
  std::vector<alert::Message> messages;
  std::vector<alert::Issue> active;  // for Alertmanager: sent again, as they are
  respond::NoticeContext context;
  TimeNs now = kNoTime;
  std::shared_ptr<const std::atomic<bool>> stop;
};

struct DeliveryOutcome {
  enum class Kind : uint8_t {
    kSent,
    kFailed,   // it is tried again
    kRefused,  // the receiver calls the message malformed
  } kind = Kind::kFailed;
  std::string sentence;  // plain words: what the receiver answered, or why nothing was sent
  std::optional<TimeNs> retry_after_ns;
  uint64_t rejected = 0;  // records that OTLP's receiver left out
};

DeliveryOutcome deliver(const DeliveryOrder& order);
// Sends a test, and its end where the receiver hears of ends; the order's messages are not used.
DeliveryOutcome deliver_test(DeliveryOrder order);

// The endpoint of OTLP as a receiver.
AlertConfig otlp_receiver(const Config& config);
// How many messages one request may carry.
size_t batch_of(const AlertConfig& receiver, bool otlp);

// Why the receiver's files would fail; empty: they are sound. Reads them; renders the template.
std::string trouble_of(const AlertConfig& receiver);

}  // namespace culprit::app
