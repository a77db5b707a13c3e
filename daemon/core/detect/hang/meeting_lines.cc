#include "core/detect/hang/meeting_lines.h"

#include <algorithm>
#include <charconv>

#include "core/detect/hang/line_text.h"

namespace culprit::hang {
namespace {

constexpr size_t kNameBytes = 80;   // of a barrier's or tensor's name
constexpr size_t kNames = 1 << 16;  // more in one line mean a damaged line
constexpr uint32_t kRanks = 1 << 20;

// The number at the start of a text, after blanks and a colon.
std::optional<uint32_t> count_at(std::string_view text) {
  text.remove_prefix(std::min(text.find_first_not_of(" :"), text.size()));
  uint32_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || value >= kRanks) return std::nullopt;
  return value;
}

// "2, 3] ...": the numbers up to the bracket; empty if any other text precedes it.
std::vector<uint32_t> listed(std::string_view text) {
  std::vector<uint32_t> out;
  const std::string_view list = text.substr(0, text.find(']'));
  for (size_t at = 0; at < list.size() && out.size() < kNames;) {
    const size_t end = std::min(list.find(',', at), list.size());
    const auto one = count_at(list.substr(at, end - at));
    if (!one) return {};
    out.push_back(*one);
    at = end + 1;
  }
  return out;
}

std::string_view name_at(std::string_view text, std::string_view ends) {
  return text.substr(0, std::min(text.find_first_of(ends), kNameBytes));
}

// "3/4": the numbers on both sides of the first slash between digits.
bool read_share(std::string_view text, MeetingLine& line) {
  for (size_t at = text.find('/'); at != text.npos; at = text.find('/', at + 1)) {
    if (at == 0 || !is_digit(text[at - 1]) || at + 1 >= text.size() || !is_digit(text[at + 1])) continue;
    size_t from = at;
    while (from > 0 && is_digit(text[from - 1])) --from;
    line.came = count_at(text.substr(from));
    line.all = count_at(text.substr(at + 1));
    return line.came && line.all && *line.came <= *line.all;
  }
  return false;
}

// "Timed out after 601 seconds waiting for clients. 3/4 clients joined."
bool read_clients(std::string_view text, MeetingLine& line) {
  const std::string_view rest = after(text, "imed out after ");
  if (rest.empty() || !(has(rest, " clients joined") || has(rest, " workers joined"))) return false;
  if (!read_share(rest, line)) return false;
  line.what = "the rendezvous";
  line.opens = line.starts = true;
  if (const auto seconds = count_at(rest); seconds && has(rest, "seconds"))
    line.waited_ns = *seconds * kNsPerSecond;
  return true;
}

// "Timed out initializing process group in store based barrier on rank: 0, for key: K (world_size=4,
// worker_count=3, ...", "Timed out waiting on barrier on rank 0, for key prefix: P (world_size=4,
// missing_ranks=[2, 3], timeout=300)".
bool read_store_barrier(std::string_view text, MeetingLine& line) {
  const bool group = has(text, "imed out initializing process group in store based barrier");
  const std::string_view rest =
      after(text, group ? "store based barrier" : "imed out waiting on barrier on ");
  if (rest.empty()) return false;
  line.all = count_at(after(rest, "world_size="));
  line.rank = count_at(after(rest, "rank"));
  if (group) {
    line.came = count_at(after(rest, "worker_count="));
    if (!line.came) line.came = count_at(after(rest, "num_workers_joined="));
    line.what = "the start of the process group";
  } else {
    line.missing = listed(after(rest, "missing_ranks=["));
    line.what = "barrier " + std::string(name_at(after(rest, "key prefix: "), " ("));
  }
  if (!line.all || (line.came && *line.came > *line.all)) line.came = line.all = {};
  line.opens = true;
  line.starts = group;
  return line.all.has_value();
}

// Task names: "/job:jax_worker/replica:0/task:3", between line ends, real or escaped.
void read_tasks(std::string_view text, MeetingLine& line) {
  for (std::string_view rest = after(text, "/task:"); !rest.empty() && line.missing.size() < kNames;
       rest = after(rest, "/task:"))
    if (const auto task = count_at(rest)) line.missing.push_back(*task);
}

// "Barrier timed out. Id: NAME::0. This ...", then "# of tasks that reached the barrier: 3/4.", "The first
// task at the barrier: ... Some timed out task names:", and one name per line.
bool read_coordinator(std::string_view text, MeetingLine& line) {
  line.unit = MeetingUnit::kTask;
  if (has(text, "Barrier timed out")) {
    std::string_view id = after(text, "Id: ");
    if (id.empty()) id = after(text, "Barrier_id: ");
    id = name_at(id, " \n\\");
    while (id.ends_with('.')) id.remove_suffix(1);
    if (const size_t count = id.rfind("::"); count != id.npos) id = id.substr(0, count);
    line.what = id.empty() ? "a barrier" : "barrier " + std::string(id);
    line.starts = has(id, "PjRT_Client_Connect") || has(id, "Wait_for_all_tasks_to_register");
    line.opens = true;
  }
  if (const std::string_view rest = after(text, "tasks that reached the barrier: "); !rest.empty()) {
    if (!read_share(rest, line)) line.came = line.all = {};
  }
  if (const std::string_view rest = after(text, "imed out task names:"); !rest.empty())
    read_tasks(rest, line);
  if (has(text, "(stopped sending heartbeats)")) {
    line.what = "the coordinator";
    line.opens = line.lost = true;
    read_tasks(after(text, "(stopped sending heartbeats)"), line);
  }
  if (line.opens || line.all) return true;
  if (has(text, "imed out task names:")) return !line.missing.empty();
  // A line with only a name continues the list above it.
  std::string_view name = text;
  while (name.starts_with(' ')) name.remove_prefix(1);
  if (!name.starts_with("/job:")) return false;
  read_tasks(name, line);
  return line.missing.size() == 1;
}

// Tensors that only some ranks submitted: "NAME [missing ranks: 1, 2]", "Stalled ops:NAME [ready ranks: 0],
// NAME ..."; or a rank and the tensors it lacks: "2: [NAME, NAME ...]", "2!: [NAME]".
bool read_tensors(std::string_view text, MeetingLine& line) {
  if (has(text, "waiting for remainder of ranks")) {
    line.what = "a tensor";
    line.opens = true;
    if (const auto seconds = count_at(after(text, "for more than ")))
      line.waited_ns = *seconds * kNsPerSecond;
  }
  std::string_view rest = text;
  if (const std::string_view ops = after(text, "Stalled ops:"); !ops.empty()) rest = ops;
  while (line.tensors.size() < kNames) {
    const size_t open = std::min(rest.find("[missing ranks:"), rest.find("[ready ranks:"));
    if (open == rest.npos) break;
    const size_t close = rest.find(']', open);
    if (close == rest.npos) break;
    std::string_view name = rest.substr(0, open);
    while (name.ends_with(' ')) name.remove_suffix(1);
    name = name.substr(name.find_last_of(" ,\n") + 1);
    MeetingLine::Tensor tensor{std::string(name.substr(0, kNameBytes)), {}, {}};
    std::string_view ranks = rest.substr(open, close + 1 - open);
    (has(ranks, "[missing") ? tensor.missing : tensor.there) = listed(after(ranks, "ranks:"));
    if (!tensor.missing.empty() || !tensor.there.empty()) line.tensors.push_back(std::move(tensor));
    rest.remove_prefix(close + 1);
  }
  if (line.opens || !line.tensors.empty()) return true;
  std::string_view row = text;
  while (row.starts_with(' ')) row.remove_prefix(1);
  const size_t open = std::min(row.find('['), row.size());
  const size_t close = row.rfind(']');
  if (close == row.npos || close < open || row.find_first_not_of(' ', close + 1) != row.npos) return false;
  const std::string_view number = row.substr(0, open);
  const auto rank = count_at(number);
  line.labelled = number.empty();
  if (!line.labelled &&
      (!rank || !number.ends_with(": ") || number.find_first_not_of("0123456789!: ") != number.npos))
    return false;
  const std::string_view names = row.substr(open + 1, close - open - 1);
  if (names.empty() || has(names, "[") || has(names, "ranks:")) return false;
  line.cut = has(names, "...");
  for (size_t at = 0; at < names.size() && line.tensors.size() < kNames;) {
    const size_t end = std::min(names.find(", ", at), names.size());
    line.tensors.push_back({std::string(name_at(names.substr(at, end - at), " ")), {}, {}});
    if (rank) line.tensors.back().missing = {*rank};
    at = end + 2;
  }
  return !line.tensors.empty();
}

// "global_world_sizes=[3, 3, 3]": the ranks that an elastic agent started.
bool read_started(std::string_view text, MeetingLine& line) {
  const std::string_view sizes = after(text, "global_world_sizes=[");
  if (sizes.empty()) return false;
  line.started = count_at(sizes);
  return line.started.has_value();
}

}  // namespace

std::optional<MeetingLine> read_meeting_line(std::string_view text) {
  for (auto* const read : {read_clients, read_store_barrier, read_started, read_tensors, read_coordinator}) {
    MeetingLine line;
    if (read(text, line)) return line;
  }
  return std::nullopt;
}

}  // namespace culprit::hang
