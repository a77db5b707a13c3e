// Rows of `python3 -m culprit.align`: the digest of a fixed step on a device (docs/checks.md). A device is
// wrong if its digest differs from a majority's of its class, or if it disagrees with itself while a majority
// agrees. A majority is three devices or more that answered, with one digest on more than half of them and
// on more than half of their hosts: a host with many devices does not outvote the others. Other bits that
// two hosts share are another library, and name none.
//
//   {"kind":"event","name":"align","host":"n3","at":"cuda:0","class":"torch 2.4, H100","digest":"ab12",
//    "stable":true}
//
// Pure; one thread. Bounded: further devices are counted.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "model/finding.h"
#include "model/metric.h"

namespace culprit::numerics {

// What one device computed.
struct AlignedDevice {
  std::string host;
  std::string device;  // "cuda:3"
  std::string kind;    // the class: only devices of one class are compared
  std::string digest;  // empty: it gave no answer
  bool stable = true;  // equal steps gave equal digests
  TimeNs time_ns = kNoTime;
};

enum class AlignAnswer : uint8_t { kAgrees, kDiffers, kUnknown };
struct JudgedDevice {
  std::string host, device;
  AlignAnswer answer = AlignAnswer::kUnknown;
  std::string why;  // one sentence without a full stop, about this device
  TimeNs time_ns = kNoTime;
  bool stable = true;
};

class Alignment {
 public:
  // Returns whether the event is such a row, also if it cannot be used.
  bool add(const LoopEvent& event);
  // The last one of a device counts.
  void add(AlignedDevice device);
  bool empty() const { return rows_.empty() && unread_ == 0; }
  // Every device, by host and name.
  std::vector<JudgedDevice> judge() const;
  // One for each device that is wrong, at most kFindings.
  std::vector<Finding> findings() const;
  std::vector<std::string> problems() const;
  // What differs and names no device: an open question for each class.
  std::vector<std::string> open() const;

 private:
  std::map<std::pair<std::string, std::string>, AlignedDevice> rows_;  // by host and device
  uint64_t unread_ = 0, dropped_ = 0;
};

}  // namespace culprit::numerics
