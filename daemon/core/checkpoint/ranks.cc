// Files of one rank each: the numbers in their names form a grid without holes.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "base/ascii.h"
#include "base/limits.h"
#include "core/checkpoint/checker.h"

namespace culprit::checkpoint {
namespace {

constexpr std::string_view kRank = "rank_";
constexpr std::string_view kRng = "rng_state_";

// A name with the rank numbers cut out: "zero_pp_rank_*_mp_rank_*_optim_states.pt" and {3, 0}. Numbers of
// layers and experts, which need not begin with 0, stay in the name.
struct RankName {
  std::string shape;
  std::vector<uint32_t> numbers;
  std::vector<size_t> widths;  // digits of each
};

RankName rank_name(std::string_view name) {
  RankName out;
  size_t from = 0;
  const auto copy_to = [&](size_t at) {
    out.shape += name.substr(from, at - from);
    from = at;
  };
  const auto take_number = [&] {
    size_t end = from;
    while (end < name.size() && digit(name[end])) ++end;
    out.numbers.push_back(digits_value(name.substr(from, end - from)));
    out.widths.push_back(end - from);
    out.shape += '*';
    from = end;
  };
  for (size_t at = 0; at < name.size(); ++at) {
    const std::string_view rest = name.substr(at);
    const std::string_view word = rest.starts_with(kRank) ? kRank : rest.starts_with(kRng) ? kRng : "";
    if (word.empty() || at + word.size() >= name.size() || !digit(name[at + word.size()])) continue;
    copy_to(at + word.size());
    take_number();
    // Megatron: mp_rank_TT_PPP_EEE.
    while (from + 1 < name.size() && name[from] == '_' && digit(name[from + 1])) {
      copy_to(from + 1);
      take_number();
    }
    at = from - 1;
  }
  copy_to(name.size());
  return out;
}

std::string with_numbers(const std::string& shape, const std::vector<uint32_t>& numbers,
                         const std::vector<size_t>& widths) {
  std::string out;
  size_t next = 0;
  for (const char c : shape) {
    if (c != '*' || next >= numbers.size())
      out += c;
    else
      out += fmt::format("{:0{}}", numbers[next], widths[next]), ++next;
  }
  return out;
}

struct Grid {
  std::vector<RankName> names;
  std::vector<uint32_t> extents;
  uint32_t lowest = 0;  // subtracted from the first number
};

void begin_at_lowest(Grid& grid) {
  grid.lowest = grid.names.front().numbers[0];
  for (const RankName& name : grid.names) grid.lowest = std::min(grid.lowest, name.numbers[0]);
  for (RankName& name : grid.names) name.numbers[0] -= grid.lowest;
  grid.extents[0] -= grid.lowest;
}

// The grid of one name form: from 0 to the largest number in each position.
std::map<std::string, Grid> grids_of(const Tree& tree, const std::string& folder) {
  std::map<std::string, Grid> out;
  for (const Entry* entry : tree.in(folder)) {
    if (entry->path.find('*') != std::string::npos) continue;  // no library writes such a name
    RankName name = rank_name(name_of(entry->path));
    if (name.numbers.empty()) continue;
    Grid& grid = out[name.shape];
    grid.extents.resize(std::max(grid.extents.size(), name.numbers.size()));
    for (size_t i = 0; i < name.numbers.size(); ++i)
      grid.extents[i] = std::max(grid.extents[i], name.numbers[i] + 1);
    grid.names.push_back(std::move(name));
  }
  // Each host writes the random number states of its ranks, possibly to a local disk.
  for (auto& [shape, grid] : out)
    if (shape.starts_with(kRng)) begin_at_lowest(grid);
  return out;
}

// The first missing member of the grid; empty: none.
std::string first_hole(const std::string& shape, const Grid& grid) {
  std::set<std::vector<uint32_t>> there;
  for (const RankName& name : grid.names) there.insert(name.numbers);
  std::vector<uint32_t> at(grid.extents.size());
  // At most one step more than there are members.
  for (size_t i = 0; i <= grid.names.size(); ++i) {
    if (!there.contains(at)) {
      at[0] += grid.lowest;
      return with_numbers(shape, at, grid.names.front().widths);
    }
    size_t place = at.size();
    while (place > 0 && ++at[place - 1] == grid.extents[place - 1]) at[--place] = 0;
    if (place == 0) return "";
  }
  return "";
}

}  // namespace

void Checker::check_ranks(const std::string& folder) {
  const auto grids = grids_of(tree, folder);
  for (const auto& [shape, grid] : grids) {
    uint64_t all = 1;
    for (const uint32_t extent : grid.extents)
      all = std::min<uint64_t>(all * extent, limits::kCheckpointEntries);
    if (all <= grid.names.size()) continue;
    const std::string hole = first_hole(shape, grid);
    report(Fault::kMissing, join(folder, hole),
           fmt::format("is missing: {} of {} ranks are there", grid.names.size(), all));
  }
  // The ranks with an optimizer part must be the ranks with a model part.
  const auto extents = [&](std::string_view shape) -> const Grid* {
    const auto at = grids.find(std::string(shape));
    return at == grids.end() ? nullptr : &at->second;
  };
  for (const std::string_view prefix : {"", "bf16_", "fp16_"}) {
    const Grid* optimizer = extents(fmt::format("{}zero_pp_rank_*_mp_rank_*_optim_states.pt", prefix));
    if (!optimizer) continue;
    const Grid* parts = extents("zero_pp_rank_*_mp_rank_*_model_states.pt");
    const Grid* models = extents("mp_rank_*_model_states.pt");
    const Grid* larger = nullptr;
    if (parts && parts->extents != optimizer->extents) larger = parts;
    if (models && models->extents[0] != optimizer->extents[1]) larger = models;
    if (larger)
      report(Fault::kMissing, folder,
             fmt::format("ranks of the optimizer's and of the model's files differ: {} and {} files",
                         optimizer->names.size(), larger->names.size()));
    if (!parts && !models) report(Fault::kMissing, folder, "has no file *_model_states.pt");
  }
}

}  // namespace culprit::checkpoint
