// The values of a small data file (a pickle, a JSON text) while it is read: numbers, texts, lists and tables,
// in one arena. A pickle may share values or make a list its own member, so members are indices, and callers
// must limit the depth of a walk. Texts of a pickle point into its bytes, which must outlive the tree. One
// thread. Files may be hostile: number and nesting of values have limits.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace culprit::ingest {

class DataTree {
 public:
  using Ref = uint32_t;
  enum class Kind : uint8_t { kNull, kBool, kInt, kReal, kText, kList, kTable };
  // A list's members; a table's keys and values in turn.
  using Members = std::vector<Ref>;

  bool full() const;  // no room for another value

  Ref add_null() { return add({}); }
  Ref add_bool(bool value);
  Ref add_int(int64_t value);
  Ref add_real(double value);
  Ref add_text(std::string_view borrowed);
  Ref add_own_text(std::string text);
  Ref add_list(Members members = {});
  Ref add_table();
  // A list takes members one by one, a table in pairs. False: there is no room.
  bool append(Ref list, const Ref* first, size_t n);

  Kind kind(Ref at) const { return values_[at].kind; }
  std::string_view text(Ref at) const;  // empty if it is no text
  // Of integers, and of texts that contain only an integer.
  std::optional<int64_t> integer(Ref at) const;
  bool truth(Ref at) const;  // false if it is no truth value
  const Members& members(Ref at) const;
  // The value of a key of a table; the last one of a repeated key.
  std::optional<Ref> find(Ref table, std::string_view key) const;

 private:
  struct Value {
    Kind kind = Kind::kNull;
    uint32_t size = 0;  // of a text
    union {
      int64_t integer = 0;
      double real;
      const char* text;
    };
  };
  Ref add(Value value);

  std::vector<Value> values_;
  std::vector<Members> members_;
  std::deque<std::string> texts_;
  size_t held_ = 0;  // members and bytes of own texts
};

}  // namespace culprit::ingest
