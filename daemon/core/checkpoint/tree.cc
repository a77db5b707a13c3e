#include "core/checkpoint/tree.h"

#include <algorithm>

namespace culprit::checkpoint {
namespace {

// A folder's content sorts directly after the folder, before "folder-2".
bool path_less(std::string_view a, std::string_view b) {
  return std::lexicographical_compare(a.begin(), a.end(), b.begin(), b.end(), [](char x, char y) {
    const auto rank = [](char c) { return c == '/' ? 0u : 1u + static_cast<unsigned char>(c); };
    return rank(x) < rank(y);
  });
}

bool is_below(std::string_view path, std::string_view folder) {
  return folder.empty() ||
         (path.size() > folder.size() && path.starts_with(folder) && path[folder.size()] == '/');
}

}  // namespace

Tree::Tree(std::vector<Entry> entries) : entries_(std::move(entries)) {
  std::sort(entries_.begin(), entries_.end(),
            [](const Entry& a, const Entry& b) { return path_less(a.path, b.path); });
}

const Entry* Tree::find(std::string_view path) const {
  const auto at = std::lower_bound(entries_.begin(), entries_.end(), path,
                                   [](const Entry& e, std::string_view p) { return path_less(e.path, p); });
  return at != entries_.end() && at->path == path ? &*at : nullptr;
}

bool Tree::has_file(std::string_view path) const {
  const Entry* entry = find(path);
  return entry && entry->kind == EntryKind::kFile;
}

std::span<const Entry> Tree::below(std::string_view folder) const {
  if (folder.empty()) return entries_;
  auto first = std::lower_bound(entries_.begin(), entries_.end(), folder,
                                [](const Entry& e, std::string_view p) { return path_less(e.path, p); });
  if (first != entries_.end() && first->path == folder) ++first;
  const auto last =
      std::partition_point(first, entries_.end(), [&](const Entry& e) { return is_below(e.path, folder); });
  return {first, last};
}

std::vector<const Entry*> Tree::in(std::string_view folder) const {
  std::vector<const Entry*> out;
  for (const Entry& entry : below(folder))
    if (folder_of(entry.path) == folder) out.push_back(&entry);
  return out;
}

TimeNs Tree::changed_ns(std::string_view path) const {
  const Entry* own = path.empty() ? nullptr : find(path);
  TimeNs out = own ? own->modified_ns : kNoTime;
  for (const Entry& entry : below(path)) out = std::max(out, entry.modified_ns);
  return out;
}

std::string_view name_of(std::string_view path) {
  const size_t at = path.rfind('/');
  return at == path.npos ? path : path.substr(at + 1);
}

std::string_view folder_of(std::string_view path) {
  const size_t at = path.rfind('/');
  return at == path.npos ? std::string_view() : path.substr(0, at);
}

std::string join(std::string_view folder, std::string_view name) {
  if (folder.empty()) return std::string(name);
  return std::string(folder) + "/" + std::string(name);
}

}  // namespace culprit::checkpoint
