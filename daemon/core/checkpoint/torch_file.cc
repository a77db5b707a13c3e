// Files of torch.save.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/bytes.h"
#include "base/limits.h"
#include "core/checkpoint/checker.h"
#include "core/checkpoint/object_pickle.h"

namespace culprit::checkpoint {
namespace {

// The number 0x1950a86a20f9469cfc6c in pickle form, with its length and the pickle's end.
constexpr std::string_view kLegacyMagic = "\x8a\x0al\xfc\x9c\x46\xf9 j\xa8P\x19.";

// Bytes per element, by storage class.
size_t element_bytes(std::string_view cls) {
  struct Width {
    std::string_view name;
    size_t bytes;
  };
  constexpr std::array<Width, 20> kWidths{{{"DoubleStorage", 8},         {"FloatStorage", 4},
                                           {"HalfStorage", 2},           {"BFloat16Storage", 2},
                                           {"LongStorage", 8},           {"IntStorage", 4},
                                           {"ShortStorage", 2},          {"CharStorage", 1},
                                           {"ByteStorage", 1},           {"BoolStorage", 1},
                                           {"ComplexDoubleStorage", 16}, {"ComplexFloatStorage", 8},
                                           {"QUInt8Storage", 1},         {"QInt8Storage", 1},
                                           {"QInt32Storage", 4},         {"QUInt4x2Storage", 1},
                                           {"QUInt2x4Storage", 1},       {"UntypedStorage", 1},
                                           {"_UntypedStorage", 1},       {"Storage", 0}}};
  const std::string_view name = cls.substr(cls.rfind(' ') + 1);
  const auto at =
      std::find_if(kWidths.begin(), kWidths.end(), [&](const Width& w) { return w.name == name; });
  return at == kWidths.end() ? 0 : at->bytes;
}

// From ("storage", class, key, place, elements, …): the bytes of each key.
class Storages : public PickleVisitor {
 public:
  bool allowed(std::string_view) override { return true; }  // a name, never a call
  void on_fields(std::string_view, std::span<const PickleValue>) override {}
  void on_reference(std::span<const PickleValue> items) override {
    if (items.size() < 5 || items[0].text() != "storage" || !items[2].is_text() ||
        items[4].kind != PickleValue::Kind::kInt)
      return;
    by_key[std::string(items[2].text())] = {element_bytes(items[1].text()), items[4].number};
  }
  struct Storage {
    size_t width = 0;
    int64_t elements = 0;
  };
  std::map<std::string, Storage, std::less<>> by_key;
};

}  // namespace

std::vector<Range> Checker::check_torch(const Entry& file) {
  const auto bad = [&](Fault fault, std::string text) {
    report(fault, file.path, std::move(text));
    return std::vector<Range>();
  };
  const Extent whole = extent(file);
  if (file.size == 0) return bad(Fault::kShort, "is empty");
  const auto head = whole.read(0, std::min<uint64_t>(file.size, 64));
  if (!head) return bad(Fault::kUnread, head.error().text);
  if (head->find(kLegacyMagic) != head->npos) {
    check_legacy(file);
    return {};
  }
  if (!head->starts_with("PK\x03\x04") && std::string_view("PK\x03\x04").substr(0, head->size()) != *head) {
    const bool cut = head->starts_with("\x80") && head->size() < 2 + kLegacyMagic.size();
    return bad(cut ? Fault::kShort : Fault::kDamaged,
               cut ? "is cut: it has only the first bytes" : "does not begin as a file of torch.save does");
  }
  std::vector<Range> ranges;
  if (auto problem = read_zip(whole, ranges)) return bad(problem->fault, std::move(problem->text));
  return ranges;
}

void Checker::check_legacy(const Entry& file) {
  const Extent whole = extent(file);
  const auto cut = [&] { report(Fault::kShort, file.path, "is cut: its storages are not all there"); };
  // Magic, version, system, object, keys; then each storage. The object is small compared to the storages.
  Storages storages;
  PickleEnd keys;
  uint64_t at = 0;
  std::string bytes;
  for (uint64_t room = 1 << 20;; room *= 8) {
    room = std::min<uint64_t>({room, file.size, limits::kCheckpointIndexBytes});
    const auto more = whole.read(bytes.size(), room - bytes.size());
    if (!more) return report(Fault::kUnread, file.path, more.error().text);
    bytes += *more;
    Result<PickleEnd> end;
    at = 0;
    for (int i = 0; i < 5; ++i) {
      end = read_objects(std::string_view(bytes).substr(at), storages);
      if (!end) break;
      at += end->bytes;
    }
    if (!end) {
      if (end.error().code != ErrorCode::kLimit) return report(Fault::kDamaged, file.path, end.error().text);
      if (room == file.size) return cut();
      if (room < limits::kCheckpointIndexBytes) continue;
      return report(Fault::kUnread, file.path, "has objects of more bytes than are read");
    }
    std::vector<std::pair<std::string, Storages::Storage>> order;
    for (const PickleValue& key : end->items) {
      const auto found_key = storages.by_key.find(key.text());
      if (found_key == storages.by_key.end())
        return report(Fault::kDamaged, file.path, "names a storage that no tensor has");
      order.emplace_back(*found_key);
    }
    for (const auto& [key, storage] : order) {
      if (storage.width == 0)
        return report(Fault::kUnread, file.path, fmt::format("storage {} has a type that is not known", key));
      if (at > file.size || file.size - at < 8) return cut();
      const auto size = whole.read(at, 8);
      if (!size) return report(Fault::kUnread, file.path, size.error().text);
      if (get_at<int64_t>(*size, 0) != storage.elements || storage.elements < 0)
        return report(Fault::kDamaged, file.path,
                      fmt::format("storage {} does not have the length of its tensor", key));
      at += 8;
      if (static_cast<uint64_t>(storage.elements) > (file.size - at) / storage.width) return cut();
      at += static_cast<uint64_t>(storage.elements) * storage.width;
    }
    break;
  }
  if (at != file.size)
    return report(Fault::kDamaged, file.path,
                  fmt::format("has {} bytes behind its last storage", file.size - at));
}

}  // namespace culprit::checkpoint
