#include "respond/slurm/commands.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <utility>

#include "base/text.h"
#include "respond/order.h"

namespace culprit::respond::slurm {
namespace {

// 20,000 nodes, a line each, at their longest.
constexpr size_t kOutputMost = 32 << 20;
constexpr TimeNs kUrgent = 2 * kNsPerSecond;
constexpr size_t kFlagsMost = 32, kHostsMost = 20'000;

// Nodes and the reason last: what an administrator writes is behind what is parsed.
constexpr const char* kJobFormat = "JobID:|,State:|,SubmitTime:|,RestartCnt:|,BatchFlag:|,NodeList:|,Reason:";
constexpr size_t kJobColumns = 7;

tl::unexpected<SlurmError> slurm_failure(SlurmError::Kind kind, std::string text) {
  return tl::unexpected(SlurmError{kind, std::move(text)});
}
tl::unexpected<SlurmError> malformed(std::string_view subject, std::string_view text) {
  return slurm_failure(SlurmError::Kind::kMalformed,
                       fmt::format("{}: unexpected answer: {}", subject, one_line(text)));
}

// The signs that Slurm appends to a state (`man scontrol`, NODE STATE CODES).
std::string_view flag_of_sign(char sign) {
  constexpr std::array<std::pair<char, std::string_view>, 9> kSigns{{{'*', "NOT_RESPONDING"},
                                                                     {'$', "MAINT"},
                                                                     {'~', "POWERED_DOWN"},
                                                                     {'#', "POWERING_UP"},
                                                                     {'%', "POWERING_DOWN"},
                                                                     {'!', "POWER_DOWN"},
                                                                     {'@', "REBOOT_ISSUED"},
                                                                     {'^', "REBOOT_REQUESTED"},
                                                                     {'-', "PLANNED"}}};
  for (const auto& [known, flag] : kSigns)
    if (sign == known) return flag;
  return {};
}

// The text after " KEY=" up to the next space, or to the end of the line.
std::string_view value_of(std::string_view line, std::string_view key, bool to_end = false) {
  const size_t at = line.find(key);
  if (at == line.npos) return {};
  line.remove_prefix(at + key.size());
  return to_end ? trim(line) : line.substr(0, line.find(' '));
}

template <class Number>
bool parse_number(std::string_view text, Number& out) {
  const auto end = std::from_chars(text.data(), text.data() + text.size(), out);
  return end.ec == std::errc() && end.ptr == text.data() + text.size();
}

bool is_state(std::string_view text) {
  return !text.empty() && text.size() <= 64 &&
         std::ranges::all_of(text, [](char c) { return (c >= 'A' && c <= 'Z') || c == '_'; });
}

bool is_host_list(std::string_view text) {
  return std::ranges::all_of(text, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
           c == '_' || c == '-' || c == ',' || c == '[' || c == ']';
  });
}

bool contains(std::string_view text, std::string_view part) { return text.find(part) != text.npos; }

// slurmctld did not answer; its own words for it.
bool says_no_answer(std::string_view errors) {
  constexpr std::array<std::string_view, 6> kWords{
      "Unable to contact slurm controller", "Socket timed out", "Connection refused", "connect failure",
      "Zero Bytes were transmitted",        "standby mode"};
  return std::ranges::any_of(kWords, [&](std::string_view word) { return contains(errors, word); });
}

bool says_not_found(std::string_view text) {
  return contains(text, "not found") || contains(text, "Invalid job id specified");
}

}  // namespace

bool NodeState::has(std::string_view prefix) const {
  return std::ranges::any_of(flags, [&](const std::string& flag) { return flag.starts_with(prefix); });
}

std::string NodeState::flags_text() const { return fmt::format("{}", fmt::join(flags, "+")); }

SlurmResult<NodeState> parse_node(std::string_view text, std::string_view name) {
  const std::string_view line = trim(text.substr(0, text.find('\n')));
  if (value_of(line, "NodeName=") != name || !line.starts_with("NodeName="))
    return malformed(fmt::format("node {}", name), line);
  NodeState out;
  for (std::string_view flag : split(value_of(line, " State="), '+')) {
    std::vector<std::string> signs;
    for (; !flag.empty() && !flag_of_sign(flag.back()).empty(); flag.remove_suffix(1))
      signs.emplace_back(flag_of_sign(flag.back()));
    if (!is_state(flag) || out.flags.size() > kFlagsMost)
      return malformed(fmt::format("node {}", name), line);
    out.flags.emplace_back(flag);
    out.flags.insert(out.flags.end(), signs.begin(), signs.end());
  }
  std::string_view reason = value_of(line, " Reason=", true);
  if (const size_t by = reason.rfind(" ["); by != reason.npos) {
    std::string_view who = reason.substr(by + 2);
    who = who.substr(0, who.find(']'));
    if (contains(who, "@")) out.by = one_line(who), reason = reason.substr(0, by);
  }
  out.reason = one_line(reason);
  return out;
}

SlurmResult<JobState> parse_job(std::string_view text, std::string_view id) {
  const std::string subject = fmt::format("job {}", id);
  const std::string_view line = text.substr(0, text.find('\n'));
  if (trim(line).empty()) return slurm_failure(SlurmError::Kind::kNotFound, subject + ": not found");
  if (!trim(text.substr(std::min(text.size(), line.size() + 1))).empty())
    return slurm_failure(SlurmError::Kind::kRefused, subject + " is an array or has parts: left to a person");
  const std::vector<std::string_view> columns = split(line, '|');
  if (columns.size() < kJobColumns || columns[0] != id || !is_state(columns[1]))
    return malformed(subject, line);
  JobState out;
  out.state = columns[1];
  out.job.scheduler = "slurm";
  out.job.id = id;
  int64_t submitted = 0;
  if (!parse_number(columns[2], submitted) || submitted < 0 || submitted > INT32_MAX * int64_t{4} ||
      !parse_number(columns[3], out.job.restarts) || !is_host_list(columns[5]))
    return malformed(subject, line);
  out.job.submit_ns = submitted * kNsPerSecond;
  out.batch = columns[4] == "1";
  out.nodes = columns[5];
  out.reason = one_line(columns[6]);
  return out;
}

SlurmResult<Reservation> parse_reservation(std::string_view text, std::string_view name,
                                           std::string_view partition) {
  const std::string_view line = trim(text.substr(0, text.find('\n')));
  Reservation out;
  if (!line.starts_with("ReservationName=") || value_of(line, "ReservationName=") != name ||
      !parse_number(value_of(line, " NodeCnt="), out.nodes))
    return malformed(fmt::format("reservation {}", name), line);
  const std::vector<std::string_view> flags = split(value_of(line, " Flags="), ',');
  if (std::ranges::find(flags, "REPLACE_DOWN") == flags.end())
    return slurm_failure(SlurmError::Kind::kRefused,
                         fmt::format("reservation {} is another's: it is not REPLACE_DOWN", name));
  if (const std::string_view is = value_of(line, " PartitionName="); !partition.empty() && is != partition)
    return slurm_failure(SlurmError::Kind::kRefused, fmt::format("reservation {} is of partition {}, not {}",
                                                                 name, one_line(is), partition));
  out.partition = value_of(line, " PartitionName=");
  if (const std::string_view list = value_of(line, " Nodes="); is_host_list(list)) out.node_list = list;
  return out;
}

SlurmResult<std::string> Commands::output(const std::string& path, std::vector<std::string> words,
                                          bool urgent) const {
  io::ProgramRun run;
  run.path = path;
  const std::string name = path.substr(path.rfind('/') + 1);
  const auto verb = std::ranges::find_if(words, [](const std::string& word) { return word[0] != '-'; });
  const std::string subject = path == options_.squeue || verb == words.end() ? name : name + " " + *verb;
  words.insert(words.begin(), name);
  run.words = std::move(words);
  // Times in seconds since the epoch: another format has no time zone. No variable of this process reaches
  // squeue, which takes options from SQUEUE_*.
  run.environment = {"PATH=/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL=C", "SLURM_TIME_FORMAT=%s"};
  if (!options_.conf.empty()) run.environment.push_back("SLURM_CONF=" + options_.conf);
  run.within_ns = urgent ? std::min(kUrgent, options_.command_ns) : options_.command_ns;
  run.output_max = kOutputMost;
  if (!urgent) run.stop = &pace_.stop();
  const io::ProgramEnd end = options_.run(run);
  if (end.is_success()) return end.output;
  const std::string all = end.errors + end.output;  // "Node n9 not found" is on the standard output
  if (end.kind == io::ProgramEnd::Kind::kExited && says_not_found(all))
    return slurm_failure(SlurmError::Kind::kNotFound, one_line(all));
  if (end.is_unknown() || says_no_answer(all))
    return slurm_failure(SlurmError::Kind::kNoAnswer, fmt::format("{}: {}", subject, end.reason));
  return slurm_failure(
      SlurmError::Kind::kRefused,
      fmt::format("{}: {}", subject, end.errors.empty() ? end.reason : one_line(end.errors)));
}

SlurmResult<NodeState> Commands::node(const std::string& name) const {
  const auto text = output(options_.scontrol, {"-o", "show", "node", name});
  if (!text) return tl::unexpected(text.error());
  return parse_node(*text, name);
}

SlurmResult<JobState> Commands::job(const std::string& id) const {
  const auto text = output(options_.squeue, {"-h", "-j", id, "-t", "all", "-O", kJobFormat});
  if (!text) return tl::unexpected(text.error());
  return parse_job(*text, id);
}

SlurmResult<std::string> Commands::excluded(const std::string& id) const {
  const auto text = output(options_.squeue, {"-h", "-j", id, "-t", "all", "-o", "%x"});
  if (!text) return tl::unexpected(text.error());
  const std::string_view list = trim(text->substr(0, text->find('\n')));
  if (!is_host_list(list)) return malformed("the job's excluded nodes", list);
  return std::string(list);
}

SlurmResult<std::vector<std::string>> Commands::expand(const std::string& host_list) const {
  std::vector<std::string> out;
  if (host_list.empty()) return out;
  const auto text = output(options_.scontrol, {"show", "hostnames", host_list});
  if (!text) return tl::unexpected(text.error());
  for (const std::string_view line : split(trim(*text), '\n')) {
    if (!is_host_name(line) || out.size() >= kHostsMost) return malformed("scontrol show hostnames", line);
    out.emplace_back(line);
  }
  return out;
}

SlurmResult<Reservation> Commands::reservation(const std::string& name, const std::string& partition) const {
  const auto text = output(options_.scontrol, {"-o", "show", "reservation", name});
  if (!text && text.error().kind == SlurmError::Kind::kNotFound) return Reservation{};
  if (!text) return tl::unexpected(text.error());
  return parse_reservation(*text, name, partition);
}

SlurmResult<std::string> Commands::job_lines() const {
  return output(options_.squeue, {"-h", "-a", "-t", "all", "-O",
                                  "JobID:|,State:|,SubmitTime:|,RestartCnt:|,BatchFlag:|,UserID:|,NumNodes:|,"
                                  "Partition:|,NodeList:|,exit_code:|,Reason:"});
}

SlurmResult<std::string> Commands::node_lines() const {
  return output(options_.scontrol, {"-o", "show", "node"});
}

SlurmResult<void> Commands::write(std::vector<std::string> words, bool urgent) const {
  const auto text = output(options_.scontrol, std::move(words), urgent);
  if (!text) return tl::unexpected(text.error());
  return {};
}

}  // namespace culprit::respond::slurm
