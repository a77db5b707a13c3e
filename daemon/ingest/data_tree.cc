#include "ingest/data_tree.h"

#include <charconv>

#include "base/limits.h"

namespace culprit::ingest {

bool DataTree::full() const { return values_.size() >= limits::kDumpValues || held_ >= limits::kDumpHeld; }

DataTree::Ref DataTree::add(Value value) {
  values_.push_back(value);
  return static_cast<Ref>(values_.size() - 1);
}

DataTree::Ref DataTree::add_bool(bool value) {
  Value v;
  v.kind = Kind::kBool;
  v.integer = value;
  return add(v);
}

DataTree::Ref DataTree::add_int(int64_t value) {
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

DataTree::Ref DataTree::add_own_text(std::string text) {
  held_ += text.size();
  texts_.push_back(std::move(text));
  return add_text(texts_.back());
}

DataTree::Ref DataTree::add_list(Members members) {
  Value v;
  v.kind = Kind::kList;
  v.integer = static_cast<int64_t>(members_.size());
  held_ += members.size();
  members_.push_back(std::move(members));
  return add(v);
}

DataTree::Ref DataTree::add_table() {
  const Ref at = add_list();
  values_[at].kind = Kind::kTable;
  return at;
}

bool DataTree::append(Ref list, const Ref* first, size_t n) {
  if (held_ + n > limits::kDumpHeld) return false;
  held_ += n;
  Members& to = members_[static_cast<size_t>(values_[list].integer)];
  to.insert(to.end(), first, first + n);
  return true;
}

std::string_view DataTree::text(Ref at) const {
  const Value& v = values_[at];
  return v.kind == Kind::kText ? std::string_view(v.text, v.size) : std::string_view();
}

std::optional<int64_t> DataTree::integer(Ref at) const {
  const Value& v = values_[at];
  if (v.kind == Kind::kInt) return v.integer;
  if (v.kind != Kind::kText || v.size == 0) return std::nullopt;
  int64_t out = 0;
  const auto [stop, error] = std::from_chars(v.text, v.text + v.size, out);
  return error == std::errc() && stop == v.text + v.size ? std::optional(out) : std::nullopt;
}

bool DataTree::truth(Ref at) const { return values_[at].kind == Kind::kBool && values_[at].integer != 0; }

const DataTree::Members& DataTree::members(Ref at) const {
  static const Members kNone;
  const Value& v = values_[at];
  if (v.kind != Kind::kList && v.kind != Kind::kTable) return kNone;
  return members_[static_cast<size_t>(v.integer)];
}

std::optional<DataTree::Ref> DataTree::find(Ref table, std::string_view key) const {
  if (values_[table].kind != Kind::kTable) return std::nullopt;
  const Members& pairs = members(table);
  for (size_t i = pairs.size() & ~size_t{1}; i >= 2; i -= 2)
    if (text(pairs[i - 2]) == key) return pairs[i - 1];
  return std::nullopt;
}

}  // namespace culprit::ingest
