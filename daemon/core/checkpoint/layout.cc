#include "core/checkpoint/layout.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <map>

#include "base/ascii.h"

namespace culprit::checkpoint {
namespace {

// Search depth: a folder of experiments, an experiment, its checkpoints. Deeper folders are a checkpoint's
// own content.
constexpr int kDepth = 4;

std::optional<int64_t> number_at(std::string_view text, size_t at) {
  int64_t value = 0;
  const auto [stop, error] = std::from_chars(text.data() + at, text.data() + text.size(), value);
  if (error != std::errc() || stop == text.data() + at || value < 0) return {};
  return value;
}

// "iter_0012000" for "iter_".
bool is_numbered(std::string_view name, std::string_view prefix) {
  return name.starts_with(prefix) && all_digits(name.substr(prefix.size()));
}

bool contains(std::string_view text, std::string_view part) { return text.find(part) != text.npos; }

// Facts from the entries directly in a folder.
struct Signs {
  bool dcp = false, deepspeed = false, universal = false, mp_ranks = false, common = false, weights = false;
  bool safetensors = false;
  bool trainer = false, orbax = false, snapshot = false;
};

Signs signs_of(const Tree& tree, std::string_view folder) {
  Signs out;
  for (const Entry* entry : tree.in(folder)) {
    const std::string_view name = name_of(entry->path);
    const bool is_folder = entry->kind == EntryKind::kFolder;
    out.dcp |= name == ".metadata" || name == ".metadata.tmp" || name.ends_with(".distcp");
    out.deepspeed |= name.ends_with("model_states.pt") || name.ends_with("_optim_states.pt");
    out.universal |= is_folder && name == "zero";
    out.mp_ranks |= is_folder && name.starts_with("mp_rank_");
    out.common |= name == "common.pt";
    out.weights |= is_folder && name == "weights";
    out.safetensors |= name == "model.safetensors" || name.ends_with(".safetensors.index.json") ||
                       name == "pytorch_model.bin.index.json" || name == "adapter_model.safetensors";
    out.trainer |= name == "trainer_state.json";
    out.orbax |= name == "_CHECKPOINT_METADATA" || name == "_METADATA" || name == "manifest.ocdbt" ||
                 name == "_sharding" || name == "commit_success.txt";
    out.snapshot |= name == ".snapshot_metadata";
  }
  return out;
}

// Folders with only a number in their names are also epochs, ranks, or other data.
std::optional<Format> format_of_name(std::string_view name) {
  if (is_numbered(name, "checkpoint-")) return Format::kTrainer;
  if (is_numbered(name, "iter_")) return Format::kMegatron;
  if (is_numbered(name, "global_step")) return Format::kDeepSpeed;
  if (name.ends_with("_universal") && name.starts_with("global_step")) return Format::kUniversal;
  if (name.ends_with(".ckpt")) return Format::kLightning;
  return {};
}

// Checkpoints set aside, and temporary folders that a library renames once complete.
bool is_aside(std::string_view name) {
  return name.starts_with("tmp-") || name.starts_with(".tmp") || name.ends_with(".torn") ||
         name.ends_with(".tmp") || name.ends_with(".incomplete") || name.ends_with("-unfinished") ||
         name.ends_with(".unfinished");
}

class Finder {
 public:
  explicit Finder(const Tree& tree) : tree_(tree) {}

  void search(std::string_view folder, int depth) {
    std::vector<Found> found;
    std::vector<const Entry*> unknown;
    for (const Entry* entry : tree_.in(folder)) {
      const std::string_view name = name_of(entry->path);
      if (is_aside(name)) continue;
      std::optional<Format> format;
      if (entry->kind == EntryKind::kFolder) format = format_of_folder(tree_, entry->path, name);
      if (entry->kind == EntryKind::kFile) format = format_of_file(name);
      if (format)
        found.push_back({entry->path, *format, entry->kind == EntryKind::kFile, step_of(name)});
      else if (entry->kind == EntryKind::kFolder)
        unknown.push_back(entry);
    }
    // A folder without the file that identifies its format gets the format of the adjacent checkpoints.
    for (const Entry*& entry : unknown) {
      const std::string shape = shape_of(name_of(entry->path));
      const auto like = std::find_if(found.begin(), found.end(), [&](const Found& f) {
        return !f.is_file && shape.find('#') != shape.npos && shape_of(name_of(f.path)) == shape;
      });
      if (like == found.end()) continue;
      const Format format = like->format;
      found.push_back({entry->path, format, false, step_of(name_of(entry->path))});
      entry = nullptr;
    }
    if (!found.empty()) add(folder, std::move(found));
    for (const Entry* entry : unknown)
      if (entry && depth < kDepth) search(entry->path, depth + 1);
  }

  void add(std::string_view folder, std::vector<Found> found) {
    // By step if all have one, else by time.
    const bool steps = std::all_of(found.begin(), found.end(), [](const Found& f) { return f.step; });
    std::map<std::string, int64_t> order;
    for (const Found& f : found) order[f.path] = steps ? *f.step : tree_.changed_ns(f.path);
    std::sort(found.begin(), found.end(), [&](const Found& a, const Found& b) {
      const int64_t x = order[a.path], y = order[b.path];
      return x != y ? x < y : a.path < b.path;
    });
    out.push_back({std::string(folder), std::move(found)});
  }

  std::vector<Series> out;

 private:
  const Tree& tree_;
};

}  // namespace

std::string_view to_string(Format format) {
  constexpr std::array<std::string_view, 10> kNames{"torch",     "dcp",          "safetensors", "megatron",
                                                    "deepspeed", "universal",    "trainer",     "lightning",
                                                    "orbax",     "torchsnapshot"};
  return kNames[static_cast<size_t>(format)];
}

std::optional<Format> format_of_folder(const Tree& tree, std::string_view folder, std::string_view name) {
  if (contains(name, "orbax-checkpoint-tmp")) return Format::kOrbax;
  const Signs signs = signs_of(tree, folder);
  if (signs.orbax) return Format::kOrbax;
  if (signs.snapshot) return Format::kTorchSnapshot;
  if (signs.trainer) return Format::kTrainer;
  const auto by_name = format_of_name(name);
  if (by_name == Format::kUniversal || (signs.universal && signs.deepspeed)) return Format::kUniversal;
  if (by_name) return by_name;
  if (signs.deepspeed) return Format::kDeepSpeed;
  if (signs.mp_ranks || signs.common) return Format::kMegatron;
  if (signs.weights) {
    const std::string weights = join(folder, "weights");
    if (signs_of(tree, weights).dcp || signs_of(tree, weights).common) return Format::kLightning;
  }
  if (signs.dcp) return Format::kDcp;
  if (signs.safetensors) return Format::kSafetensors;
  return {};
}

std::optional<Format> format_of_file(std::string_view name) {
  if (name.ends_with(".ckpt")) return Format::kLightning;
  if (name.ends_with(".pt") || name.ends_with(".pth")) return Format::kTorch;
  if (name.ends_with(".safetensors")) return Format::kSafetensors;
  return {};
}

std::optional<int64_t> step_of(std::string_view name) {
  std::string plain(name);
  for (char& c : plain) c = lower(c);
  for (const std::string_view word : {"step", "iter", "iteration", "batch"}) {
    for (size_t at = plain.find(word); at != plain.npos; at = plain.find(word, at + 1)) {
      size_t digits = at + word.size();
      while (digits < plain.size() && (plain[digits] == '_' || plain[digits] == '=' || plain[digits] == '-'))
        ++digits;
      if (const auto step = number_at(plain, digits); step && digit(plain[digits])) return step;
    }
  }
  std::optional<int64_t> only;
  for (size_t at = 0; at < plain.size(); ++at) {
    if (!digit(plain[at])) continue;
    if (only) return {};
    only = number_at(plain, at);
    if (!only) return {};
    while (at + 1 < plain.size() && digit(plain[at + 1])) ++at;
  }
  return only;
}

std::string shape_of(std::string_view name) {
  std::string out;
  for (size_t at = 0; at < name.size(); ++at) {
    if (!digit(name[at]))
      out += name[at];
    else if (out.empty() || out.back() != '#')
      out += '#';
  }
  return out;
}

std::vector<Series> find_series(const Tree& tree, std::string_view name) {
  Finder finder(tree);
  if (const auto format = format_of_folder(tree, "", name))
    finder.add("", {{"", *format, false, step_of(name)}});
  else
    finder.search("", 0);
  return std::move(finder.out);
}

}  // namespace culprit::checkpoint
