#include "core/checkpoint/zip.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/bytes.h"
#include "base/limits.h"

namespace culprit::checkpoint {
namespace {

constexpr uint32_t kEnd = 0x06054b50, kEnd64 = 0x06064b50, kLocator = 0x07064b50;
constexpr uint32_t kCentral = 0x02014b50, kLocal = 0x04034b50, kDescriptor = 0x08074b50;
constexpr uint64_t kEndBytes = 22, kEnd64Bytes = 56, kLocatorBytes = 20;
constexpr uint64_t kCentralBytes = 46, kLocalBytes = 30;
constexpr uint64_t kCommentMax = 0xffff;
constexpr uint16_t kHasDescriptor = 1 << 3;
constexpr uint32_t kIn64 = 0xffffffff;

Problem problem(Fault fault, std::string text) { return {fault, "", std::move(text)}; }
Problem unread(const Error& error) { return {Fault::kUnread, "", error.text}; }
Problem damaged(std::string_view what) { return {Fault::kDamaged, "", std::string(what)}; }

struct Directory {
  uint64_t entries = 0, size = 0, offset = 0;
  uint64_t end = 0;  // required end
};

struct Item {
  std::string_view name;  // from the directory
  uint16_t method = 0;
  uint32_t crc = 0;
  uint64_t stored = 0, size = 0, local = 0;
};

// Takes the 64-bit values of an extra field, in order, for values that the header itself lacks.
void widen(std::string_view extra, std::initializer_list<uint64_t*> values) {
  Cursor in(extra);
  while (!in.at_end() && !in.bad()) {
    const auto id = in.get<uint16_t>();
    const std::string_view body = in.read_bytes(in.get<uint16_t>());
    if (id != 1) continue;
    Cursor wide(body);
    for (uint64_t* value : values)
      if (*value == kIn64) *value = wide.get<uint64_t>();
  }
}

class Reader {
 public:
  Reader(const Extent& in, std::vector<Range>& ranges) : in_(in), ranges_(ranges) {}

  std::optional<Problem> run() {
    if (in_.size < kEndBytes)
      return problem(Fault::kShort, in_.size == 0 ? std::string("is empty")
                                                  : fmt::format("is cut: it has {} bytes", in_.size));
    if (auto bad = find_end()) return bad;
    if (auto bad = read_items()) return bad;
    return read_locals();
  }

 private:
  std::optional<Problem> find_end() {
    uint64_t n = std::min(in_.size, kEndBytes);
    auto tail = in_.read(in_.size - n, n);
    if (!tail) return unread(tail.error());
    size_t at = 0;
    if (get_at<uint32_t>(*tail, 0) != kEnd || get_at<uint16_t>(*tail, 20) != 0) {
      n = std::min(in_.size, kEndBytes + kCommentMax);
      tail = in_.read(in_.size - n, n);
      if (!tail) return unread(tail.error());
      at = tail->size() - kEndBytes + 1;
      do {
        if (at-- == 0) return problem(Fault::kShort, "is cut: it ends without the directory of a zip");
      } while (get_at<uint32_t>(*tail, at) != kEnd ||
               get_at<uint16_t>(*tail, at + 20) != tail->size() - at - kEndBytes);
    }
    const uint64_t end = in_.size - tail->size() + at;
    directory_ = {get_at<uint16_t>(*tail, at + 10), get_at<uint32_t>(*tail, at + 12),
                  get_at<uint32_t>(*tail, at + 16), end};
    return read_end64(end);
  }

  // The 64-bit form of the same record; it has priority if present.
  std::optional<Problem> read_end64(uint64_t end) {
    if (end >= kLocatorBytes) {
      const auto locator = in_.read(end - kLocatorBytes, kLocatorBytes);
      if (!locator) return unread(locator.error());
      if (get_at<uint32_t>(*locator, 0) == kLocator) {
        const auto at = get_at<uint64_t>(*locator, 8);
        if (at > end || end - at < kEnd64Bytes) return damaged("the end of its directory points nowhere");
        const auto record = in_.read(at, kEnd64Bytes);
        if (!record) return unread(record.error());
        if (get_at<uint32_t>(*record, 0) != kEnd64) return damaged("the end of its directory is damaged");
        directory_ = {get_at<uint64_t>(*record, 32), get_at<uint64_t>(*record, 40),
                      get_at<uint64_t>(*record, 48), at};
      }
    }
    if (directory_.offset > directory_.end || directory_.size != directory_.end - directory_.offset)
      return damaged("the directory is not where its end says");
    if (directory_.size > limits::kZipDirectoryBytes || directory_.entries > limits::kZipEntries)
      return problem(Fault::kUnread, fmt::format("has {} records, more than are read", directory_.entries));
    return {};
  }

  std::optional<Problem> read_items() {
    auto bytes = in_.read(directory_.offset, directory_.size);
    if (!bytes) return unread(bytes.error());
    text_ = std::move(*bytes);
    if (directory_.entries > text_.size() / kCentralBytes) return damaged("its directory is damaged");
    items_.reserve(directory_.entries);
    Cursor in(text_);
    uint64_t stored = 0;
    while (!in.at_end()) {
      const std::string_view head = in.read_bytes(kCentralBytes);
      if (head.empty() || get_at<uint32_t>(head, 0) != kCentral) return damaged("its directory is damaged");
      Item item;
      item.method = get_at<uint16_t>(head, 10);
      item.crc = get_at<uint32_t>(head, 16);
      item.stored = get_at<uint32_t>(head, 20);
      item.size = get_at<uint32_t>(head, 24);
      item.local = get_at<uint32_t>(head, 42);
      item.name = in.read_bytes(get_at<uint16_t>(head, 28));
      const std::string_view extra = in.read_bytes(get_at<uint16_t>(head, 30));
      in.read_bytes(get_at<uint16_t>(head, 32));
      if (in.bad() || item.name.empty()) return damaged("its directory is damaged");
      widen(extra, {&item.size, &item.stored, &item.local});
      if (item.method != 0)
        return problem(Fault::kUnread,
                       fmt::format("record {} is compressed, which torch never does", item.name));
      if (item.stored != item.size || item.local > directory_.offset || item.stored > directory_.offset)
        return damaged(fmt::format("record {} does not fit the file", item.name));
      // Each byte belongs to one record, so the total work is one read.
      stored += item.stored;
      if (stored > directory_.offset) return damaged("its records overlap");
      items_.push_back(item);
    }
    if (items_.size() != directory_.entries)
      return damaged(
          fmt::format("its directory has {} records instead of {}", items_.size(), directory_.entries));
    const auto has = [&](std::string_view name) {
      return std::any_of(items_.begin(), items_.end(),
                         [&](const Item& item) { return name_of(item.name) == name; });
    };
    for (const std::string_view name : {"data.pkl", "version"})
      if (!has(name)) return problem(Fault::kMissing, fmt::format("has no record {}", name));
    return {};
  }

  std::optional<Problem> read_locals() {
    const bool computed =
        std::any_of(items_.begin(), items_.end(), [](const Item& item) { return item.size && item.crc; });
    for (const Item& item : items_) {
      const auto bad = [&] { return damaged(fmt::format("the header of record {} is damaged", item.name)); };
      const uint64_t room = directory_.offset - item.local;
      if (room < kLocalBytes + item.name.size()) return bad();
      const auto head = in_.read(item.local, kLocalBytes + item.name.size());
      if (!head) return unread(head.error());
      const auto names = get_at<uint16_t>(*head, 26), extras = get_at<uint16_t>(*head, 28);
      if (get_at<uint32_t>(*head, 0) != kLocal || get_at<uint16_t>(*head, 8) != item.method ||
          names != item.name.size() || std::string_view(*head).substr(kLocalBytes) != item.name)
        return bad();
      const uint64_t data = kLocalBytes + names + extras;
      if (data > room || item.stored > room - data) return bad();
      const bool later = get_at<uint16_t>(*head, 6) & kHasDescriptor;
      uint64_t stored = get_at<uint32_t>(*head, 18), size = get_at<uint32_t>(*head, 22);
      if (stored == kIn64 || size == kIn64) {
        const auto extra = in_.read(item.local + kLocalBytes + names, extras);
        if (!extra) return unread(extra.error());
        widen(*extra, {&size, &stored});
      }
      const auto crc = get_at<uint32_t>(*head, 14);
      if (later ? (stored && stored != item.stored) || (size && size != item.size) || (crc && crc != item.crc)
                : stored != item.stored || size != item.size || crc != item.crc)
        return bad();
      if (later)
        if (auto wrong = read_descriptor(item, item.local + data + item.stored)) return wrong;
      if (computed && item.size)
        ranges_.push_back({in_.begin + item.local + data, in_.begin + item.local + data + item.size, item.crc,
                           std::string(item.name)});
    }
    return {};
  }

  // Checksum and sizes after the bytes of a record; sizes have four or eight bytes.
  std::optional<Problem> read_descriptor(const Item& item, uint64_t at) {
    const uint64_t room = directory_.offset - at;
    const auto bytes = in_.read(at, std::min<uint64_t>(room, 24));
    if (!bytes) return unread(bytes.error());
    Cursor in(*bytes);
    const bool signed_ = in.get<uint32_t>() == kDescriptor;
    const size_t head = signed_ ? 4 : 0;
    const std::string_view text(*bytes);
    const auto fits = [&](size_t width) {
      if (text.size() < head + 4 + 2 * width || get_at<uint32_t>(text, head) != item.crc) return false;
      const auto number = [&](size_t offset) {
        return width == 4 ? get_at<uint32_t>(text, offset) : get_at<uint64_t>(text, offset);
      };
      return number(head + 4) == item.stored && number(head + 4 + width) == item.size;
    };
    if (fits(4) || fits(8)) return {};
    return damaged(fmt::format("the sizes behind record {} are damaged", item.name));
  }

  const Extent& in_;
  std::vector<Range>& ranges_;
  Directory directory_;
  std::string text_;  // of the directory
  std::vector<Item> items_;
};

}  // namespace

Result<std::string> Extent::read(uint64_t at, uint64_t n) const {
  if (budget) budget->add_read(n);
  std::string out(n, '\0');
  const auto got = source.read_at(path, out.data(), n, begin + at);
  if (!got) return tl::unexpected(got.error());
  if (*got < n) return fail(ErrorCode::kInvalid, "became shorter while it was read");
  return out;
}

std::optional<Problem> read_zip(const Extent& in, std::vector<Range>& ranges) {
  return Reader(in, ranges).run();
}

}  // namespace culprit::checkpoint
