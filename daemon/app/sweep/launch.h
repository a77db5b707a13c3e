// How a member of a sweep knows its rank, the others and the coordinator: from Slurm, Open MPI or PMI, or as
// the user says. Blocking; any thread, while no thread changes the environment.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "app/sweep/member.h"
#include "base/status.h"

namespace culprit::app::sweeping {

using Lookup = std::function<std::optional<std::string>(std::string_view)>;

struct Place {
  uint32_t rank = 0, size = 0;
  std::string host;
  std::string job;   // of the launcher, with its step: the same for all members; empty: unknown
  std::string from;  // "Slurm", "Open MPI", "PMI"; empty: no launcher
};
// What the launcher says; fields that it does not say are empty, and `size` is 0.
Place place_of(const Lookup& variable);

// The file in which the coordinator says where it is, and the secret. Only its owner may read it: who
// can read it may join. Members take it only from a file of their own user.
struct MeetingFile {
  std::vector<std::string> addresses;
  uint16_t port = 0;
  std::string secret;
};
Status write_meeting(const std::string& path, const MeetingFile& meeting);
Result<MeetingFile> read_meeting(const std::string& path);
std::string meeting_text(const MeetingFile& meeting);
Result<MeetingFile> parse_meeting(std::string_view text);

// This host's name, and its addresses but for the loopback's.
std::vector<std::string> own_addresses();
// The first address of an interface.
Result<std::string> address_of_interface(const std::string& name);

std::optional<std::string> random_secret();
// The secret that the user gave all members: of a file that only its owner may read, else of
// CULPRIT_SWEEP_SECRET.
Result<std::string> given_secret(const std::string& file, const Lookup& variable);
// "HOST:PORT".
Result<Meeting> meeting_at(const std::string& address);

}  // namespace culprit::app::sweeping
