// torchsnapshot: an index in YAML, or in JSON (a subset of YAML), which is written last.
#include <fmt/format.h>

#include <map>

#include "base/ascii.h"
#include "base/limits.h"
#include "base/text.h"
#include "core/checkpoint/checker.h"

namespace culprit::checkpoint {
namespace {

// For each file: the end of its last piece, and whether that piece is fully described.
struct Extents {
  std::map<std::string, uint64_t, std::less<>> ends;
  std::string location;
  bool ranges = false;  // at least one tensor has a byte range
  bool tensor = false, open = false;

  void at(std::string_view value, bool is_tensor) {
    location = value;
    tensor = is_tensor;
    open = is_tensor;
    if (!location.empty()) ends.try_emplace(location, 0);
  }
  void end(uint64_t value) {
    if (!location.empty()) ends[location] = std::max(ends[location], value);
  }
  bool cut() const { return open && ranges; }
};

std::string_view unquoted(std::string_view text) {
  text = trim(text);
  if (text.size() >= 2 && (text[0] == '\'' || text[0] == '"') && text.back() == text[0])
    return text.substr(1, text.size() - 2);
  return text;
}

// Line by line: "location: a/b", then "byte_range: null", or "byte_range:" with two lines "- 0".
void read_yaml(std::string_view text, Extents& out) {
  int numbers = 0;
  bool range = false, tensor = false;
  for (std::string_view line : split(text, '\n')) {
    line = trim(line);
    const std::string_view item = line.starts_with("- ") ? trim(line.substr(2)) : std::string_view();
    if (range && all_digits(item)) {
      out.end(digits_value(item, 0, std::min<size_t>(item.size(), 18)));
      out.open = ++numbers < 2;
      continue;
    }
    range = false;
    if (!item.empty()) line = item;
    if (line.starts_with("type:")) tensor = unquoted(line.substr(5)) == "Tensor";
    if (line.starts_with("location:")) out.at(unquoted(line.substr(9)), tensor);
    if (!line.starts_with("byte_range:")) continue;
    out.ranges = range = true;
    numbers = 0;
    if (!trim(line.substr(11)).empty()) out.open = false;
  }
}

bool read_json(std::string_view text, Extents& out) {
  return scan_json(text, [&](const JsonPath& path, const JsonScalar& value) {
    if (path.empty()) return;
    if (path.back() == "location") out.at(value.text, false);
    if (path.size() >= 2 && path[path.size() - 2] == "byte_range" && value.number >= 0)
      out.end(static_cast<uint64_t>(value.number));
  });
}

}  // namespace

void Checker::check_snapshot() {
  const Entry* index =
      need(join(found.path, ".snapshot_metadata"), "the index, which is written last, is missing");
  if (index) within_budget(*index, [&] { check_snapshot(*index); });
}

void Checker::check_snapshot(const Entry& index) {
  const auto text = text_of(index, limits::kCheckpointIndexBytes);
  if (!text) return;
  if (trim(*text).empty()) return report(Fault::kShort, index.path, "is empty");
  Extents extents;
  if (trim(*text).starts_with("{")) {
    if (!read_json(*text, extents)) return report(Fault::kDamaged, index.path, "is no JSON: cut or damaged");
  } else {
    read_yaml(*text, extents);
    if (!text->ends_with('\n') || text->find("manifest:") == text->npos || extents.cut())
      return report(Fault::kShort, index.path, "is cut");
  }
  // The index names all files of the checkpoint, so an unnamed file proves that the index was truncated.
  for (const Entry& entry : tree.below(found.path)) {
    const std::string_view name =
        std::string_view(entry.path).substr(found.path.empty() ? 0 : found.path.size() + 1);
    if (entry.kind == EntryKind::kFile && !name.starts_with('.') && !extents.ends.contains(name))
      return report(Fault::kShort, index.path,
                    fmt::format("is cut: it does not name {}, which is there", name));
  }
  for (const auto& [location, end] : extents.ends) {
    if (("/" + location + "/").find("/../") != std::string::npos || location.starts_with('/')) {
      report(Fault::kUnread, index.path, "is refused: it names a file outside the folder");
      continue;
    }
    const Entry* file = need(join(found.path, location), "a file of the index is missing");
    if (file && file->size < end)
      report(Fault::kShort, file->path, fmt::format("is cut: it has {} of {} bytes", file->size, end));
  }
}

}  // namespace culprit::checkpoint
