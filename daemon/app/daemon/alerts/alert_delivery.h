// One attempt to deliver messages to a receiver: reads its secrets, makes the body, sends it and evaluates
// the answer. Blocking: for a worker's thread. Borrows nothing, so it may outlive its caller.
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
  bool otlp = false;  // true: the receiver is OTLP's endpoint
  std::vector<alert::Message> messages;
  std::vector<alert::Issue> active;  // for Alertmanager: issues to send again unchanged
  respond::NoticeContext context;
  TimeNs now = kNoTime;
  std::shared_ptr<const std::atomic<bool>> stop;
};

struct DeliveryOutcome {
  enum class Kind : uint8_t {
    kSent,
    kFailed,   // the message is tried again
    kRefused,  // the receiver rejects the message as malformed
  } kind = Kind::kFailed;
  std::string sentence;  // plain words: what the receiver answered, or why nothing was sent
  std::optional<TimeNs> retry_after_ns;
  uint64_t rejected = 0;  // records that OTLP's receiver rejected
};

DeliveryOutcome deliver(const DeliveryOrder& order);
// Sends a test, and the test's end if the receiver gets ends; the order's messages are not used.
DeliveryOutcome deliver_test(DeliveryOrder order);

// The endpoint of OTLP as a receiver.
AlertConfig otlp_receiver(const Config& config);
// How many messages one request may carry.
size_t batch_of(const AlertConfig& receiver, bool otlp);

// Why delivery would fail because of the receiver's files; empty: the files are valid. Reads the files;
// renders the template.
std::string trouble_of(const AlertConfig& receiver);

}  // namespace culprit::app
