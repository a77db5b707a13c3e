#include "ingest/data_tree.h"

#include <algorithm>
#include <charconv>
#include <utility>

#include "base/limits.h"

namespace culprit::ingest {
namespace {

constexpr size_t kBlockBytes = 32 << 10;
constexpr size_t kSharedBytes = 64, kSharedTexts = 4096;  // keys, states, names of operations

}  // namespace

std::string_view DataTree::refusal() const {
  if (too_deep_) return "is nested too deeply";
  const bool full = values_.size() >= limits::kDumpValues || held_ >= limits::kDumpHeld;
  return full ? "holds more values than are read" : "";
}

DataTree::Ref DataTree::add(Value value) {
  values_.push_back(value);
  return static_cast<Ref>(values_.size() - 1);
}

DataTree::Ref DataTree::add_int(int64_t value) {
  if (value >= 0 && value < int64_t{kDirectInts}) return kDirect + static_cast<Ref>(value);
  Value v;
  v.kind = Kind::kInt;
  v.integer = value;
  return add(v);
}

DataTree::Ref DataTree::add_real(double value) {
  Value v;
  v.kind = Kind::kReal;
  v.real = value;
  return add(v);
}

DataTree::Ref DataTree::add_text(std::string_view borrowed) {
  Value v;
  v.kind = Kind::kText;
  v.size = static_cast<uint32_t>(borrowed.size());
  v.text = borrowed.data();
  return add(v);
}

DataTree::Ref DataTree::add_own_text(std::string_view text) {
  if (const auto known = shared_.find(text); known != shared_.end()) return known->second;
  char* const copy = static_cast<char*>(allocate(text.size()));
  std::copy(text.begin(), text.end(), copy);
  held_ += text.size();
  const std::string_view own(copy, text.size());
  const Ref at = add_text(own);
  if (own.size() <= kSharedBytes && shared_.size() < kSharedTexts) shared_.emplace(own, at);
  return at;
}

void* DataTree::allocate(size_t bytes) {
  bytes = (bytes + sizeof(Ref) - 1) & ~(sizeof(Ref) - 1);
  if (bytes > kBlockBytes / 4) return blocks_.emplace_back(new char[bytes]).get();
  if (bytes > free_bytes_) {
    free_ = blocks_.emplace_back(new char[kBlockBytes]).get();
    free_bytes_ = kBlockBytes;
  }
  free_bytes_ -= bytes;
  return std::exchange(free_, free_ + bytes);
}

DataTree::Ref* DataTree::place_members(size_t capacity) {
  Ref* const out = static_cast<Ref*>(allocate((capacity + 1) * sizeof(Ref))) + 1;
  out[-1] = static_cast<Ref>(capacity);
  held_ += capacity + 1;
  return out;
}

DataTree::Ref DataTree::add_container(Kind kind, Members members) {
  Value v;
  v.kind = kind;
  v.members = nullptr;
  const Ref at = add(v);
  append(at, members);
  return at;
}

void DataTree::append(Ref list, Members members) {
  Value& to = values_[list];
  for (const Ref member : members)
    if (member < kDirect) to.depth = std::max<uint8_t>(to.depth, values_[member].depth + 1);
  to.depth = std::max<uint8_t>(to.depth, 1);
  too_deep_ = too_deep_ || to.depth > limits::kNesting;
  if (members.empty() || too_deep_) return;
  const size_t size = to.size + members.size();
  if (!to.members || size > to.members[-1]) {
    // Lists that grow repeatedly double; most get all their members at once.
    Ref* const more = place_members(to.members ? 2 * size : size);
    std::copy_n(to.members, to.size, more);
    to.members = more;
  }
  std::copy(members.begin(), members.end(), to.members + to.size);
  to.size = static_cast<uint32_t>(size);
}

DataTree::Kind DataTree::kind(Ref at) const {
  if (at < kDirect) return values_[at].kind;
  if (at == kNullRef) return Kind::kNull;
  return at >= kFalseRef ? Kind::kBool : Kind::kInt;
}

std::string_view DataTree::text(Ref at) const {
  if (kind(at) != Kind::kText) return {};
  return {values_[at].text, values_[at].size};
}

std::optional<int64_t> DataTree::integer(Ref at) const {
  if (kind(at) == Kind::kInt) return at < kDirect ? values_[at].integer : int64_t{at - kDirect};
  const std::string_view digits = text(at);
  int64_t out = 0;
  const auto [stop, error] = std::from_chars(digits.data(), digits.data() + digits.size(), out);
  const bool whole = !digits.empty() && error == std::errc() && stop == digits.data() + digits.size();
  return whole ? std::optional(out) : std::nullopt;
}

DataTree::Members DataTree::members(Ref at) const {
  const Kind of = kind(at);
  if (of != Kind::kList && of != Kind::kTable) return {};
  return {values_[at].members, values_[at].size};
}

std::optional<DataTree::Ref> DataTree::find(Ref table, std::string_view key) const {
  if (kind(table) != Kind::kTable) return std::nullopt;
  const Members pairs = members(table);
  for (size_t i = pairs.size() & ~size_t{1}; i >= 2; i -= 2)
    if (text(pairs[i - 2]) == key) return pairs[i - 1];
  return std::nullopt;
}

}  // namespace culprit::ingest
