// The values of a small data file (a pickle, a JSON text) in one arena: numbers, texts, lists and tables. A
// pickle may share values or make a list its own member. So members are references, and callers must limit
// the depth of a walk. Texts of a pickle point into its bytes, which must outlive the tree. One thread. Files
// are untrusted: number and nesting of values are limited. Values that hostile files may repeat (null,
// booleans, integers from 0 to nearly 2^31) need no memory.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace culprit::ingest {

class DataTree {
 public:
  using Ref = uint32_t;
  enum class Kind : uint8_t { kNull, kBool, kInt, kReal, kText, kList, kTable };
  // Members of a list; alternating keys and values of a table. Valid until the next change of the tree.
  using Members = std::span<const Ref>;

  // The reason why no further value is accepted; empty: there is room.
  std::string_view refusal() const;

  Ref add_null() { return kNullRef; }
  Ref add_bool(bool value) { return value ? kTrueRef : kFalseRef; }
  Ref add_int(int64_t value);
  Ref add_real(double value);
  Ref add_text(std::string_view borrowed);
  Ref add_own_text(std::string_view text);  // copied; short ones are shared
  Ref add_list(Members members = {}) { return add_container(Kind::kList, members); }
  Ref add_table(Members pairs = {}) { return add_container(Kind::kTable, pairs); }
  // Appends members to a list, or pairs to a table.
  void append(Ref list, Members members);

  Kind kind(Ref at) const;
  std::string_view text(Ref at) const;  // empty if the value is no text
  // The value of an integer, or of a text that contains only an integer.
  std::optional<int64_t> integer(Ref at) const;
  bool truth(Ref at) const { return at == kTrueRef; }
  Members members(Ref at) const;  // empty for other values
  // The value of a key of a table; of a repeated key, the last one.
  std::optional<Ref> find(Ref table, std::string_view key) const;

 private:
  // References from kDirect on encode the value itself.
  static constexpr Ref kDirect = Ref{1} << 31, kNullRef = ~Ref{0}, kTrueRef = kNullRef - 1,
                       kFalseRef = kNullRef - 2, kDirectInts = kFalseRef - kDirect;

  struct Value {
    Kind kind = Kind::kNull;
    uint8_t depth = 0;  // nesting of a list or table when its members were added
    uint32_t size = 0;  // bytes of a text, or number of members
    union {
      int64_t integer = 0;
      double real;
      const char* text;
      Ref* members;  // preceded by their capacity
    };
  };
  Ref add(Value value);
  Ref add_container(Kind kind, Members members);
  Ref* place_members(size_t capacity);
  void* allocate(size_t bytes);  // aligned for Ref

  std::deque<Value> values_;
  std::vector<std::unique_ptr<char[]>> blocks_;
  char* free_ = nullptr;  // free space in the last block of normal size
  size_t free_bytes_ = 0;
  std::unordered_map<std::string_view, Ref> shared_;  // short texts
  size_t held_ = 0;                                   // number of members plus bytes of own texts
  bool too_deep_ = false;
};

}  // namespace culprit::ingest
