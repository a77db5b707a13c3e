// safetensors: a JSON header that describes exactly the bytes after it. The format has no checksum.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/bytes.h"
#include "base/limits.h"
#include "core/checkpoint/checker.h"

namespace culprit::checkpoint {
namespace {

struct Span {
  uint64_t begin = 0, end = 0;
};

// Bits of an element; 0: not known.
uint64_t bits_of(std::string_view dtype) {
  struct Width {
    std::string_view name;
    uint64_t bits;
  };
  constexpr std::array<Width, 19> kWidths{{{"F64", 64},
                                           {"F32", 32},
                                           {"F16", 16},
                                           {"BF16", 16},
                                           {"I64", 64},
                                           {"I32", 32},
                                           {"I16", 16},
                                           {"I8", 8},
                                           {"U64", 64},
                                           {"U32", 32},
                                           {"U16", 16},
                                           {"U8", 8},
                                           {"BOOL", 8},
                                           {"F8_E4M3", 8},
                                           {"F8_E5M2", 8},
                                           {"F8_E8M0", 8},
                                           {"F4", 4},
                                           {"C64", 64},
                                           {"C128", 128}}};
  const auto at =
      std::find_if(kWidths.begin(), kWidths.end(), [&](const Width& w) { return w.name == dtype; });
  return at == kWidths.end() ? 0 : at->bits;
}

// The header, tensor by tensor.
class Header {
 public:
  void on(const JsonPath& path, const JsonScalar& value) {
    if (bad) return;
    if (path.empty()) {
      bad |= value.kind != JsonScalar::Kind::kEmpty;
      return;
    }
    if (path[0] == "__metadata__") return;
    if (path.size() == 1) {
      finish();
      bad |= value.kind != JsonScalar::Kind::kEmpty;
      open_ = true;
    } else if (path[1] == "dtype" && path.size() == 2) {
      bits_ = bits_of(value.text);
    } else if (path[1] == "shape" && path.size() == 3) {
      if (__builtin_mul_overflow(elements_, static_cast<uint64_t>(value.number), &elements_)) bad = true;
    } else if (path[1] == "data_offsets" && path.size() == 3) {
      bad |= value.kind != JsonScalar::Kind::kNumber || value.number < 0 || offsets_ == 2;
      (offsets_++ ? at_.end : at_.begin) = static_cast<uint64_t>(value.number);
    }
  }
  void finish() {
    if (!std::exchange(open_, false)) return;
    uint64_t bits = 0;
    bad |= offsets_ != 2 || at_.begin > at_.end;
    if (!bad && bits_ != 0)
      bad |= __builtin_mul_overflow(elements_, bits_, &bits) || (bits + 7) / 8 != at_.end - at_.begin;
    spans.push_back(at_);
    at_ = {};
    offsets_ = 0, elements_ = 1, bits_ = 0;
  }

  std::vector<Span> spans;
  bool bad = false;

 private:
  bool open_ = false;
  Span at_;
  int offsets_ = 0;
  uint64_t elements_ = 1, bits_ = 0;
};

// A header of a size such as 60 begins with '<', too, but its size has zero bytes.
bool is_markup(std::string_view head) {
  return head.starts_with('<') && head.substr(0, 8).find('\0') == head.npos;
}

}  // namespace

void Checker::check_safetensors(const Entry& file) {
  const auto bad = [&](Fault fault, std::string text) { report(fault, file.path, std::move(text)); };
  if (file.size < 8) return bad(Fault::kShort, file.size == 0 ? "is empty" : "is cut before its header");
  const Extent whole = extent(file);
  const auto head = whole.read(0, std::min<uint64_t>(file.size, 64));
  if (!head) return bad(Fault::kUnread, head.error().text);
  if (head->starts_with("version https://git-lfs"))
    return bad(Fault::kMissing, "is a pointer of Git LFS, not the data");
  if (is_markup(*head)) return bad(Fault::kDamaged, "is a page of HTML or XML, not the data");
  const auto size = get_at<uint64_t>(*head, 0);
  if (size > limits::kSafetensorsHeaderBytes)
    return bad(Fault::kDamaged, "the length of its header is damaged");
  if (size > file.size - 8) return bad(Fault::kShort, "is cut in its header");
  const auto text = whole.read(8, size);
  if (!text) return bad(Fault::kUnread, text.error().text);
  Header header;
  if (!scan_json(*text, [&](const JsonPath& path, const JsonScalar& value) { header.on(path, value); }))
    return bad(Fault::kDamaged, "its header is no JSON");
  header.finish();
  std::sort(header.spans.begin(), header.spans.end(), [](const Span& a, const Span& b) {
    return a.begin != b.begin ? a.begin < b.begin : a.end < b.end;
  });
  uint64_t end = 0;
  for (const Span& span : header.spans) {
    header.bad |= span.begin != end;
    end = span.end;
  }
  if (header.bad) return bad(Fault::kDamaged, "its header does not fit together");
  const uint64_t data = file.size - 8 - size;
  if (end > data)
    return bad(Fault::kShort, fmt::format("is cut: {} of {} bytes of its tensors are there", data, end));
  if (end < data) return bad(Fault::kDamaged, fmt::format("has {} bytes behind its last tensor", data - end));
}

void Checker::check_index(const Entry& index) {
  const auto text = text_of(index, limits::kCheckpointIndexBytes);
  if (!text) return;
  std::set<std::string> files;
  bool bad = false;
  const bool read = scan_json(*text, [&](const JsonPath& path, const JsonScalar& value) {
    if (path.size() != 2 || path[0] != "weight_map") return;
    if (value.kind == JsonScalar::Kind::kText && value.text.find('/') == value.text.npos)
      files.emplace(value.text);
    else
      bad = true;
  });
  if (!read)
    return report(text->empty() ? Fault::kShort : Fault::kDamaged, index.path,
                  text->empty() ? "is empty" : "is no JSON: cut or damaged");
  if (bad || files.empty()) return report(Fault::kDamaged, index.path, "names no files of weights");
  for (const std::string& file : files)
    need(join(folder_of(index.path), file), "a shard of the index is missing");
}

}  // namespace culprit::checkpoint
