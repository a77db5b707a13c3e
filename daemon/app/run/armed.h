// The variables that `culprit run` adds to the environment of a command, so that a failure leaves dumps and
// the Python package finds the daemon. None replaces one that the user has set. Pure; any thread.
#pragma once

#include <string>
#include <vector>

#include "app/run/launch.h"

namespace culprit::app {

// Targets of the variables. An empty one leaves its variables out.
struct ArmedPlaces {
  std::string dumps;         // folder of Flight Recorder dumps
  std::string pipes;         // folder of its pipes
  std::string logs;          // folder of NCCL's and torchrun's files
  std::string error_file;    // error file of torch.distributed.elastic
  std::string trace_socket;  // socket of the private daemon
  std::string rings;
  std::string job;
};

struct ArmedVariable {
  std::string name, value;
  const char* reason;  // and the cost; a sentence
};
std::vector<ArmedVariable> armed_variables(const ArmedPlaces& places, const Lookup& user);

// The table of the variables for `--show-env`: a line each, "NAME=VALUE  # reason".
std::string show_armed(const std::vector<ArmedVariable>& variables);

// Prefixes of Flight Recorder dumps and pipes; the rank follows.
constexpr const char* kDumpPrefix = "nccl_trace_rank_";

}  // namespace culprit::app
