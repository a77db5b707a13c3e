// torch.distributed.checkpoint: shards, and an index, which is written last.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <unordered_map>

#include "base/ascii.h"
#include "base/limits.h"
#include "core/checkpoint/checker.h"
#include "core/checkpoint/object_pickle.h"

namespace culprit::checkpoint {
namespace {

// Network file servers store whole seconds, and host clocks differ by less.
constexpr TimeNs kSkewNs = 2 * kNsPerSecond;

constexpr std::string_view kStorageInfo = "_StorageInfo";

bool lower_or_digit(char c) { return (c >= 'a' && c <= 'z') || digit(c) || c == '_'; }

// "float32", "bool".
bool is_dtype(std::string_view name) {
  bool has_digit = name == "bool";
  for (const char c : name) {
    if (!lower_or_digit(c)) return false;
    has_digit |= digit(c);
  }
  return has_digit;
}

// The classes in an index, over all versions. Any other class means another kind of index, or an attack.
bool in_index(std::string_view module, std::string_view name) {
  struct Known {
    std::string_view module, name;
  };
  constexpr std::array<Known, 26> kKnown{{
      {"torch.distributed.checkpoint.metadata", "Metadata"},
      {"torch.distributed.checkpoint.metadata", "MetadataIndex"},
      {"torch.distributed.checkpoint.metadata", "TensorStorageMetadata"},
      {"torch.distributed.checkpoint.metadata", "BytesStorageMetadata"},
      {"torch.distributed.checkpoint.metadata", "ChunkStorageMetadata"},
      {"torch.distributed.checkpoint.metadata", "TensorProperties"},
      {"torch.distributed.checkpoint.metadata", "_MEM_FORMAT_ENCODING"},
      {"torch.distributed.checkpoint.metadata", "StorageMeta"},
      {"torch.distributed.checkpoint.filesystem", "_StorageInfo"},
      {"torch.distributed.checkpoint.filesystem", "_StoragePrefix"},
      {"torch.distributed._shard.checkpoint.metadata", "Metadata"},
      {"torch.distributed._shard.checkpoint.metadata", "MetadataIndex"},
      {"torch.distributed._shard.checkpoint.metadata", "TensorStorageMetadata"},
      {"torch.distributed._shard.checkpoint.metadata", "BytesStorageMetadata"},
      {"torch.distributed._shard.checkpoint.metadata", "ChunkStorageMetadata"},
      {"torch.distributed._shard.checkpoint.filesystem", "_StorageInfo"},
      {"torch.distributed._shard.sharded_tensor.metadata", "TensorProperties"},
      {"torch.distributed._shard.sharded_tensor.metadata", "MEM_FORMAT_ENCODING"},
      {"torch.serialization", "_get_layout"},
      {"collections", "OrderedDict"},
      {"pathlib", "PosixPath"},
      {"pathlib._local", "PosixPath"},
      {"megatron.core.dist_checkpointing.strategies.torch", "MCoreMetadata"},
      {"_codecs", "encode"},
      {"builtins", "getattr"},  // Python 3.11's form of an enumeration member
      {"__builtin__", "getattr"},
  }};
  if (module == "torch" && name == "Size") return true;
  if (module == "torch") return is_dtype(name);
  return std::any_of(kKnown.begin(), kKnown.end(),
                     [&](const Known& known) { return known.module == module && known.name == name; });
}

struct Piece {
  uint32_t file = 0;
  bool transformed = false;
  uint64_t offset = 0, length = 0;
};

class Index : public PickleVisitor {
 public:
  bool allowed(std::string_view name) override {
    const size_t space = name.find(' ');
    return in_index(name.substr(0, space), name.substr(space + 1));
  }
  void on_fields(std::string_view cls, std::span<const PickleValue> fields) override {
    if (!cls.ends_with(kStorageInfo)) return;
    Piece piece;
    std::string_view path;
    int64_t offset = -1, length = -1;
    for (size_t i = 0; i + 1 < fields.size(); i += 2) {
      const std::string_view name = fields[i].text();
      if (name == "relative_path") path = fields[i + 1].text();
      if (name == "offset" && fields[i + 1].kind == PickleValue::Kind::kInt) offset = fields[i + 1].number;
      if (name == "length" && fields[i + 1].kind == PickleValue::Kind::kInt) length = fields[i + 1].number;
      if (name == "transform_descriptors") piece.transformed = fields[i + 1].kind != PickleValue::Kind::kNone;
    }
    if (path.empty() || offset < 0 || length < 0 || pieces.size() >= limits::kCheckpointPieces) {
      bad = true;
      return;
    }
    const auto [at, added] = numbers_.try_emplace(path, static_cast<uint32_t>(files.size()));
    if (added) files.emplace_back(path);
    piece.file = at->second;
    piece.offset = static_cast<uint64_t>(offset);
    piece.length = static_cast<uint64_t>(length);
    pieces.push_back(piece);
  }
  void on_reference(std::span<const PickleValue>) override {}

  std::vector<std::string> files;
  std::vector<Piece> pieces;
  bool bad = false;

 private:
  std::unordered_map<std::string_view, uint32_t> numbers_;
};

// Whether the name stays inside the folder.
bool is_inside(std::string_view path) {
  return !path.empty() && path[0] != '/' && path.find('\0') == path.npos &&
         ("/" + std::string(path) + "/").find("/../") == std::string::npos;
}

// Checks the pieces of one shard, which are sorted by offset; returns their checksums.
std::optional<std::vector<Range>> pieces_of(Checker& checker, const Entry& shard,
                                            std::span<const Piece> pieces) {
  std::vector<Range> ranges;
  uint64_t end = 0, last = 0;
  for (const Piece& piece : pieces) {
    if (piece.length > shard.size || piece.offset > shard.size - piece.length) {
      checker.report(Fault::kShort, shard.path,
                     fmt::format("is cut: it has {} bytes, and the index a piece at byte {} of {}",
                                 shard.size, piece.offset, piece.length));
      return {};
    }
    if (piece.offset < end) {
      if (piece.offset == last) continue;  // two names of the same piece
      checker.report(Fault::kDamaged, shard.path, "pieces of it overlap");
      return {};
    }
    last = piece.offset;
    end = piece.offset + piece.length;
    if (piece.transformed || shard.path.ends_with(".safetensors")) continue;
    // If bytes are not read, the size of the shard shows whether it is complete.
    if (!checker.options.bytes && &piece != &pieces.back()) continue;
    if (auto problem = read_zip(checker.extent(shard, piece.offset, piece.length), ranges)) {
      // The index gives the end of each piece, so a piece that is no zip was not written, or was overwritten.
      if (problem->fault == Fault::kShort) problem->fault = Fault::kDamaged;
      checker.report(problem->fault, shard.path,
                     fmt::format("piece at byte {}: {}", piece.offset, problem->text));
      return {};
    }
  }
  return ranges;
}

// False: a problem is reported.
bool read_index(Checker& checker, const Entry& file, Index& index) {
  const auto bytes = checker.text_of(file, limits::kCheckpointIndexBytes);
  if (!bytes) return false;
  const auto bad = [&](Fault fault, std::string text) {
    checker.report(fault, file.path, std::move(text));
    return false;
  };
  const auto end = read_objects(*bytes, index);
  if (!end) {
    const ErrorCode code = end.error().code;
    return bad(code == ErrorCode::kLimit    ? Fault::kShort
               : code == ErrorCode::kDenied ? Fault::kUnread
                                            : Fault::kDamaged,
               bytes->empty() ? std::string("is empty") : end.error().text);
  }
  if (end->bytes != bytes->size() || index.bad) return bad(Fault::kDamaged, "its content is damaged");
  if (index.pieces.empty()) return bad(Fault::kDamaged, "describes no data");
  return true;
}

}  // namespace

void Checker::check_dcp(const std::string& folder) {
  const std::string path = join(folder, ".metadata");
  bool shards = false, temporary = false;
  for (const Entry* entry : tree.in(folder)) {
    shards |= entry->path.ends_with(".distcp");
    temporary |= name_of(entry->path) == ".metadata.tmp";
  }
  const Entry* index_file = tree.find(path);
  const bool own = folder == found.path && found.format == Format::kDcp;
  if (!index_file && !shards && !temporary && !own) return;
  if (!index_file)
    return report(
        temporary ? Fault::kUnfinished : Fault::kMissing, path,
        temporary ? "the index is not in place yet: there is only .metadata.tmp" : "the index is missing");
  if (!need(path)) return;
  Index index;
  bool whole = false;
  within_budget(*index_file, [&] { whole = read_index(*this, *index_file, index); });
  if (!whole) return;
  std::sort(index.pieces.begin(), index.pieces.end(), [](const Piece& a, const Piece& b) {
    return a.file != b.file ? a.file < b.file : a.offset < b.offset;
  });
  for (size_t first = 0; first < index.pieces.size();) {
    size_t last = first;
    while (last < index.pieces.size() && index.pieces[last].file == index.pieces[first].file) ++last;
    const std::string& name = index.files[index.pieces[first].file];
    const std::span<const Piece> pieces = std::span(index.pieces).subspan(first, last - first);
    first = last;
    if (!is_inside(name)) {
      report(Fault::kUnread, path, "is refused: it names a file outside the folder");
      continue;
    }
    const Entry* shard = need(join(folder, name), "a shard of the index is missing");
    if (!shard) continue;
    if (shard->modified_ns > index_file->modified_ns + kSkewNs)
      report(Fault::kOverwritten, shard->path,
             "is newer than .metadata: a later save did not finish (a copy without times looks the same)");
    std::optional<std::vector<Range>> ranges;
    within_budget(*shard, [&] { ranges = pieces_of(*this, *shard, pieces); });
    if (ranges) read_bytes(*shard, std::move(*ranges));
  }
}

}  // namespace culprit::checkpoint
