#include "ingest/flight_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <unordered_map>

#include "base/ascii.h"
#include "base/limits.h"
#include "base/read_budget.h"
#include "ingest/decompress.h"
#include "ingest/pickle.h"

namespace culprit::ingest {
namespace {

using Ref = DataTree::Ref;

// Writes sizes in Python's notation, limited in length: an untrusted list may be its own member.
void write_value(const DataTree& tree, Ref at, int depth, std::string& out) {
  constexpr size_t kLongest = 256;
  if (out.size() > kLongest) return;
  if (tree.kind(at) != DataTree::Kind::kList || depth > 4) {
    if (const auto n = tree.integer(at))
      out += std::to_string(*n);
    else
      out += tree.text(at).substr(0, kLongest);
    return;
  }
  out += '[';
  bool first = true;
  for (const Ref member : tree.members(at)) {
    if (out.size() > kLongest) break;
    if (!first) out += ", ";
    first = false;
    write_value(tree, member, depth + 1, out);
  }
  out += ']';
}

class Reader {
 public:
  Reader(const DataTree& tree, FlightDump& out) : tree_(tree), out_(out) {
    word("");
    out_.stacks.emplace_back();
  }

  // Returns a sentence about omitted parts; empty: none.
  std::string run(Ref root) {
    out_.version = word_at(root, "version", 32);
    groups(root);
    if (const auto entries = tree_.find(root, "entries"))
      for (const Ref entry : tree_.members(*entries)) {
        if (out_.ops.size() >= limits::kDumpOps) {
          left_out_ = "has more entries than are read";
          break;
        }
        add_entry(entry);
      }
    status(root);
    return left_out_;
  }

 private:
  std::string word_at(Ref table, std::string_view key, size_t longest) const {
    const auto at = tree_.find(table, key);
    return at ? std::string(tree_.text(*at).substr(0, longest)) : "";
  }
  std::optional<int64_t> number_at(Ref table, std::string_view key) const {
    const auto at = tree_.find(table, key);
    return at ? tree_.integer(*at) : std::nullopt;
  }
  bool truth_at(Ref table, std::string_view key) const {
    const auto at = tree_.find(table, key);
    return at && tree_.truth(*at);
  }
  // Missing times are null in a pickle and 0 in JSON.
  TimeNs time_at(Ref table, std::string_view key) const {
    const auto n = number_at(table, key);
    return n && *n > 0 ? *n : kNoTime;
  }

  uint32_t word(std::string_view text) {
    const auto [at, fresh] = words_.try_emplace(std::string(text), static_cast<uint32_t>(out_.words.size()));
    if (fresh) out_.words.emplace_back(text);
    return at->second;
  }

  uint32_t value_word(Ref table, std::string_view key) {
    const auto at = tree_.find(table, key);
    if (!at || tree_.members(*at).empty()) return 0;
    std::string text;
    write_value(tree_, *at, 0, text);
    return word(text);
  }

  // Reads ranks from a text "[0, 1, 2]" or a list of numbers.
  std::vector<uint32_t> ranks_of(Ref at) const {
    std::vector<uint32_t> out;
    const auto take = [&](uint64_t rank) {
      if (rank < limits::kCommRanks && out.size() < limits::kCommRanks)
        out.push_back(static_cast<uint32_t>(rank));
    };
    for (const Ref member : tree_.members(at))
      if (const auto n = tree_.integer(member); n && *n >= 0) take(static_cast<uint64_t>(*n));
    const std::string_view text = tree_.text(at);
    for (size_t i = 0; i < text.size();) {
      if (!digit(text[i])) {
        ++i;
        continue;
      }
      uint64_t rank = 0;
      const auto [stop, error] = std::from_chars(text.data() + i, text.data() + text.size(), rank);
      if (error == std::errc()) take(rank);
      i = static_cast<size_t>(stop - text.data());
    }
    std::sort(out.begin(), out.end());
    out.erase(std::unique(out.begin(), out.end()), out.end());
    return out;
  }

  uint32_t group_named(std::string_view name, std::string_view description) {
    if (description == "undefined") description = {};  // torch's description of a group that has none
    const auto [at, fresh] =
        groups_.try_emplace(std::string(name), static_cast<uint32_t>(out_.groups.size()));
    if (fresh) out_.groups.push_back({std::string(name), std::string(description), {}, {}, {}});
    return at->second;
  }

  void groups(Ref root) {
    const auto config = tree_.find(root, "pg_config");
    if (!config) return;
    const DataTree::Members pairs = tree_.members(*config);
    for (size_t i = 0; i + 1 < pairs.size() && out_.groups.size() < limits::kDumpGroups; i += 2) {
      const Ref table = pairs[i + 1];
      const std::string_view name = tree_.text(pairs[i]).substr(0, limits::kNameBytes);
      FlightGroup& group = out_.groups[group_named(name, word_at(table, "desc", limits::kNameBytes))];
      if (const auto ranks = tree_.find(table, "ranks")) group.ranks = ranks_of(*ranks);
    }
  }

  std::optional<uint32_t> group_of(Ref entry) {
    const auto pg_id = number_at(entry, "pg_id");
    std::string name = pg_id ? std::to_string(*pg_id) : "";
    std::string_view description;
    if (const auto group = tree_.find(entry, "process_group")) {
      const DataTree::Members parts = tree_.members(*group);
      if (!parts.empty()) name = tree_.text(parts[0]).substr(0, limits::kNameBytes);
      if (parts.size() > 1) description = tree_.text(parts[1]).substr(0, limits::kNameBytes);
    }
    if (name.empty() || (out_.groups.size() >= limits::kDumpGroups && !groups_.contains(name)))
      return std::nullopt;
    const uint32_t group = group_named(name, description);
    if (pg_id) by_id_[*pg_id] = group;
    return group;
  }

  // Skips an entry without its required keys: it was cut off.
  void add_entry(Ref entry) {
    const auto group = group_of(entry);
    const auto state = tree_.find(entry, "state");
    auto seq = number_at(entry, "collective_seq_id");
    if (!seq) seq = number_at(entry, "seq_id");
    if (!group || !state || !seq) return;
    FlightOp op;
    op.group = *group;
    op.seq = *seq;
    std::string name = word_at(entry, "profiling_name", limits::kNameBytes);
    if (const size_t colon = name.find(':'); colon != name.npos && colon < 16) name.erase(0, colon + 1);
    op.name = word(name);
    op.p2p = truth_at(entry, "is_p2p") || name.starts_with("send ") || name.starts_with("recv ");
    op.in_sizes = value_word(entry, "input_sizes");
    op.out_sizes = value_word(entry, "output_sizes");
    op.dtypes = value_word(entry, "input_dtypes");
    op.created_ns = time_at(entry, "time_created_ns");
    const std::string_view word = tree_.text(*state);
    op.state = word == "completed" ? FlightState::kCompleted
               : word == "started" ? FlightState::kStarted
                                   : FlightState::kScheduled;
    op.done = op.state == FlightState::kCompleted || truth_at(entry, "retired");
    if (!op.done) op.stack = stack_of(entry);
    out_.ops.push_back(op);
  }

  // Stores the stack as "train.py:forward:120", as in other inputs. Only for unfinished operations: finished
  // ones need no location.
  uint32_t stack_of(Ref entry) {
    const auto frames = tree_.find(entry, "frames");
    if (!frames) return 0;
    std::vector<uint32_t> stack;
    for (const Ref frame : tree_.members(*frames)) {
      if (stack.size() >= limits::kDumpFrames) break;
      std::string file = word_at(frame, "filename", 1024);
      file.erase(0, file.rfind('/') + 1);
      stack.push_back(word(fmt::format("{}:{}:{}", file, word_at(frame, "name", limits::kNameBytes),
                                       number_at(frame, "line").value_or(0))));
    }
    if (stack.empty()) return 0;
    const auto [at, fresh] = stacks_.try_emplace(stack, static_cast<uint32_t>(out_.stacks.size()));
    if (fresh) out_.stacks.push_back(std::move(stack));
    return at->second;
  }

  // Maps group counters to groups. Counters are stored under numbers local to the process; entries have the
  // numbers of some groups. Numbers and names of groups both follow the order of creation. So lists of equal
  // length without a contradicting entry correspond by index.
  void status(Ref root) {
    const auto table = tree_.find(root, "pg_status");
    if (!table) return;
    const DataTree::Members pairs = tree_.members(*table);
    std::map<int64_t, Ref> by_id;
    for (size_t i = 0; i + 1 < pairs.size() && i < 2 * limits::kDumpGroups; i += 2)
      if (const auto id = tree_.integer(pairs[i])) by_id[*id] = pairs[i + 1];
    add_by_order(by_id);
    for (const auto& [id, group] : by_id_) {
      const auto at = by_id.find(id);
      if (at == by_id.end()) continue;
      out_.groups[group].enqueued = number_at(at->second, "last_enqueued_collective");
      out_.groups[group].completed = number_at(at->second, "last_completed_collective");
    }
  }

  void add_by_order(const std::map<int64_t, Ref>& status) {
    std::map<int64_t, uint32_t> named;
    for (uint32_t g = 0; g < out_.groups.size(); ++g) {
      int64_t number = 0;
      const std::string& name = out_.groups[g].name;
      const auto [stop, error] = std::from_chars(name.data(), name.data() + name.size(), number);
      if (error != std::errc() || stop != name.data() + name.size()) return;
      named[number] = g;
    }
    if (named.size() != status.size()) return;
    std::map<int64_t, uint32_t> guess;
    auto name = named.begin();
    for (const auto& [id, counters] : status) guess[id] = (name++)->second;
    for (const auto& [id, group] : by_id_)
      if (const auto at = guess.find(id); at == guess.end() || at->second != group) return;
    by_id_.insert(guess.begin(), guess.end());
  }

  const DataTree& tree_;
  FlightDump& out_;
  std::unordered_map<std::string, uint32_t> words_, groups_;
  std::map<std::vector<uint32_t>, uint32_t> stacks_;
  std::map<int64_t, uint32_t> by_id_;  // groups by the process's own number
  std::string left_out_;
};

std::string_view without_suffixes(std::string_view name) {
  for (const std::string_view suffix : {".zst", ".zstd", ".gz", ".xz"})
    if (name.ends_with(suffix)) name.remove_suffix(suffix.size());
  for (const std::string_view suffix : {".json", ".pickle", ".pkl", ".pt", ".bin"})
    if (name.ends_with(suffix)) name.remove_suffix(suffix.size());
  return name;
}

}  // namespace

std::string host_in_name(std::string_view path) {
  constexpr std::string_view kMark = "trace_rank_";
  std::string_view name = without_suffixes(path.substr(path.rfind('/') + 1));
  const size_t at = name.rfind(kMark);
  if (at == name.npos) return {};
  name.remove_prefix(at + kMark.size());
  const size_t last = name.rfind('_');
  const bool numbered = last != name.npos && last > 0 && last + 1 < name.size() &&
                        name.find_first_not_of("0123456789", last + 1) == name.npos;
  return numbered && last <= limits::kNameBytes ? std::string(name.substr(0, last)) : std::string();
}

std::optional<uint32_t> rank_in_name(std::string_view path) {
  const std::string_view name = without_suffixes(path.substr(path.rfind('/') + 1));
  const auto number_at = [&](size_t at) -> std::optional<uint32_t> {
    uint32_t rank = 0;
    const auto [stop, error] = std::from_chars(name.data() + at, name.data() + name.size(), rank);
    return error == std::errc() && rank < limits::kCommRanks ? std::optional(rank) : std::nullopt;
  };
  // "nccl_trace_rank_10-0-0-5_3": a host may precede the rank.
  if (const size_t at = name.rfind("trace_rank_"); at != name.npos) {
    const size_t last = name.rfind('_');
    if (last + 1 < name.size() && name.find_first_not_of("0123456789", last + 1) == name.npos)
      return number_at(last + 1);
  }
  for (const std::string_view mark : {"_dump_", "trace_rank_", "rank_", "rank"}) {
    const size_t at = name.rfind(mark);
    if (at == name.npos || at + mark.size() >= name.size() || !digit(name[at + mark.size()])) continue;
    return number_at(at + mark.size());
  }
  size_t end = name.size();
  while (end > 0 && !digit(name[end - 1])) --end;
  size_t first = end;
  while (first > 0 && digit(name[first - 1])) --first;
  return first < end ? number_at(first) : std::nullopt;
}

namespace {

Result<ReadFlight> flight_of(std::string_view bytes, const std::string& path) {
  const size_t text = bytes.find_first_not_of(" \t\r\n");
  ReadTree read;
  if (text != bytes.npos && (bytes[text] == '{' || bytes[text] == '[')) {
    read = read_json_tree(bytes);
  } else {
    auto pickle = read_pickle(bytes);
    if (!pickle) return fail(pickle.error().code, fmt::format("{}: {}", path, pickle.error().text));
    read = std::move(*pickle);
  }
  ReadFlight out;
  out.dump.file = path;
  if (!read.problem.empty()) out.problem = Problem{path, read.offset, read.problem};
  if (!read.root || read.tree.kind(*read.root) != DataTree::Kind::kTable)
    return fail(
        ErrorCode::kInvalid,
        fmt::format("{}: {}", path, read.problem.empty() ? "is no Flight Recorder dump" : read.problem));
  // `entries` is absent when it is empty.
  bool known = false;
  for (const char* name : {"entries", "pg_status", "pg_config"})
    known = known || read.tree.find(*read.root, name);
  if (!known && read.problem.empty())
    return fail(ErrorCode::kInvalid, path + ": is no Flight Recorder dump: it has no entries");
  auto rank = rank_in_name(path);
  if (const auto reported = read.tree.find(*read.root, "rank"); !rank && reported)
    if (const auto n = read.tree.integer(*reported); n && *n >= 0 && *n < limits::kCommRanks)
      rank = static_cast<uint32_t>(*n);
  if (!rank) return fail(ErrorCode::kInvalid, path + ": tells no rank, in its name or in itself");
  out.dump.rank = *rank;
  if (std::string host = host_in_name(path); !host.empty()) out.dump.host = std::move(host);
  const std::string left_out = Reader(read.tree, out.dump).run(*read.root);
  if (!left_out.empty() && !out.problem) out.problem = Problem{path, std::nullopt, left_out};
  return out;
}

}  // namespace

Result<ReadFlight> parse_flight(std::string_view bytes, const std::string& path, uint64_t held_max) {
  return ReadBudget(bytes.size(), held_max).run([&] { return flight_of(bytes, path); }, path + ": ");
}

Result<ReadFlight> read_flight(const SourceFile& file) {
  auto reader = Decompressor::open(file);
  if (!reader) return tl::unexpected(reader.error());
  std::string bytes;
  const bool cut = reader->read_up_to(limits::kDumpBytes, bytes);
  auto out = parse_flight(bytes, file.path);
  if (!out) return out;
  if (cut) out->problem = Problem{file.path, bytes.size(), "is larger than what is read of a dump"};
  if (reader->problem()) out->problem = *reader->problem();
  out->dump.written_ns = file.modified_ns;
  return out;
}

}  // namespace culprit::ingest
