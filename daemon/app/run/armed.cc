#include "app/run/armed.h"

#include <fmt/format.h>

namespace culprit::app {
namespace {

// Adds variables that are not set yet.
class Arming {
 public:
  Arming(const Lookup& user, std::vector<ArmedVariable>& out) : user_(user), out_(out) {}
  // `names`: names of one setting in different versions; if the user set one of them, nothing is added.
  void add(std::initializer_list<const char*> names, const std::string& value, const char* reason) {
    for (const char* name : names)
      if (user_(name)) return;
    for (const char* name : names) out_.push_back({name, value, reason});
  }
  bool is_set(const char* name) const { return user_(name).has_value(); }

 private:
  const Lookup& user_;
  std::vector<ArmedVariable>& out_;
};

}  // namespace

std::vector<ArmedVariable> armed_variables(const ArmedPlaces& places, const Lookup& user) {
  std::vector<ArmedVariable> out;
  Arming arming(user, out);
  arming.add({"TORCH_FR_BUFFER_SIZE", "TORCH_NCCL_TRACE_BUFFER_SIZE"}, "2000",
             "Flight Recorder keeps the last 2000 collectives: some MB a rank, a microsecond each; new "
             "releases of torch warn once that the second name is old");
  arming.add({"TORCH_NCCL_DUMP_ON_TIMEOUT"}, "1",
             "a collective that times out leaves a dump; free until then");
  if (!places.dumps.empty())
    arming.add({"TORCH_FR_DUMP_TEMP_FILE", "TORCH_NCCL_DEBUG_INFO_TEMP_FILE"},
               places.dumps + "/" + kDumpPrefix, "where dumps go; free");
  if (!places.pipes.empty())
    arming.add({"TORCH_NCCL_DEBUG_INFO_PIPE_FILE"}, places.pipes + "/" + kDumpPrefix,
               "a pipe a rank, by which a hang is dumped before its time-out; free");
  if (!places.logs.empty() && !arming.is_set("NCCL_DEBUG") && !arming.is_set("NCCL_DEBUG_FILE")) {
    arming.add({"NCCL_DEBUG"}, "WARN", "NCCL writes its warnings; free while there are none");
    arming.add({"NCCL_DEBUG_FILE"}, places.logs + "/nccl.%h.%p.log", "to a file, not between the output");
  }
  arming.add({"PYTHONFAULTHANDLER"}, "1", "a crash of Python prints its stack; free");
  if (!places.error_file.empty())
    arming.add({"TORCHELASTIC_ERROR_FILE"}, places.error_file,
               "where torchrun and @record put the first exception; free");
  if (!places.logs.empty())
    arming.add(
        {"PET_LOG_DIR"}, places.logs + "/torchrun",
        "the default of torchrun's --log-dir, otherwise a folder in /tmp; the output stays where it is");
  if (!places.trace_socket.empty())
    arming.add({"CULPRIT_TRACE_SOCKET"}, places.trace_socket, "where the Python package culprit sends steps");
  if (!places.rings.empty())
    arming.add({"CULPRIT_RINGS"}, places.rings, "where Culprit's tracers put their records, in memory");
  if (!places.job.empty()) arming.add({"CULPRIT_JOB"}, places.job, "the name of the job for both");
  return out;
}

std::string show_armed(const std::vector<ArmedVariable>& variables) {
  std::string out;
  for (const ArmedVariable& v : variables) out += fmt::format("{}={}  # {}\n", v.name, v.value, v.reason);
  return out;
}

}  // namespace culprit::app
