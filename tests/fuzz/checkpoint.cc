// Any bytes as a folder of checkpoints: each one gets a state, and the work is a few reads of what is there.
#include <cstdint>
#include <cstdlib>
#include <map>
#include <string>
#include <string_view>

#include "checkpoint_files.h"
#include "core/checkpoint/series.h"

namespace {

using namespace culprit;
using namespace culprit::checkpoint;

class Disk : public ByteSource {
 public:
  Disk(const uint8_t* data, size_t size) {
    while (size >= 4) {
      const std::string_view name = kCheckpointNames[data[0] % kCheckpointNames.size()];
      const size_t n = std::min<size_t>(data[1] | data[2] << 8 | data[3] << 16, size - 4);
      files[std::string(name)] = {reinterpret_cast<const char*>(data + 4), n};
      data += 4 + n, size -= 4 + n;
    }
  }
  Tree tree() const {
    std::map<std::string, Entry> out;
    for (const auto& [path, bytes] : files) {
      out[path] = {path, bytes.size(), 0, EntryKind::kFile};
      for (std::string above(folder_of(path)); !above.empty(); above = std::string(folder_of(above)))
        out.try_emplace(above, Entry{above, 0, 0, EntryKind::kFolder});
    }
    std::vector<Entry> entries;
    for (auto& [path, entry] : out) entries.push_back(std::move(entry));
    return Tree(std::move(entries));
  }
  Result<size_t> read_at(const std::string& path, char* out, size_t size, uint64_t offset) override {
    const auto at = files.find(path);
    if (at == files.end()) std::abort();  // a name that is not in the tree
    if (offset >= at->second.size()) return size_t{0};
    const size_t n = std::min<uint64_t>(size, at->second.size() - offset);
    at->second.copy(out, n, offset);
    read += n;
    return n;
  }
  std::map<std::string, std::string_view> files;  // in the input
  uint64_t read = 0;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  Disk disk(data, size);
  const Tree tree = disk.tree();
  CheckOptions options;
  options.bytes = true;
  Digests known;
  for (int pass = 0; pass < 2; ++pass) {
    for (const Series& series : find_series(tree, "run")) {
      std::vector<Judged> judged;
      for (const Found& found : series.checkpoints)
        judged.push_back({found, check(found, tree, disk, options)});
      for (const Judged& of : judged) {
        if ((of.checked.state == State::kWhole) != of.checked.problems.empty()) std::abort();
        if (of.checked.problems_total < of.checked.problems.size()) std::abort();
        for (const auto& [file, digest] : of.checked.digests) known[file] = digest;
      }
      auto compared = compare(judged, tree, options);
      const auto pointers = read_pointers(tree, disk, series);
      judge(judged, pointers, {.resumed_from = 0, .whole_before = 1}, std::move(compared));
      (void)plan_fall_back(judged, pointers);
    }
    options.known = &known;
  }
  // Headers are read by parts, and a piece may end in the tail of another: a few times all bytes, no more.
  if (disk.read > 64 * (size + 4096) + (size << 7)) std::abort();
  return 0;
}
