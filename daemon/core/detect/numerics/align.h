// Rows of `python3 -m culprit.align`: the digest of a fixed step on a device (docs/checks.md). A device is
// wrong if it disagrees with itself, or if its digest differs from a strict majority's of its class, of three
// or more.
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

class Alignment {
 public:
  // Returns whether the event is such a row, also if it cannot be used.
  bool add(const LoopEvent& event);
  bool empty() const { return rows_.empty() && unread_ == 0; }
  // One for each device that is wrong, at most kFindings.
  std::vector<Finding> findings() const;
  std::vector<std::string> problems() const;
  // Which devices differ without a majority that says who is right: an open question for each class.
  std::vector<std::string> open() const;

 private:
  struct Row {
    std::string kind, digest;  // the class; empty digest: no answer
    bool stable = true;
    TimeNs time_ns = kNoTime;
  };
  std::map<std::pair<std::string, std::string>, Row> rows_;  // by host and device
  uint64_t unread_ = 0, dropped_ = 0;
};

}  // namespace culprit::numerics
