// The values of a small data file (a pickle, a JSON text) in one arena: numbers, texts, lists and tables. A
// pickle may share values or make a list its own member, so members are indices, and callers must limit the
// depth of a walk. Texts of a pickle point into its bytes, which must outlive the tree. One thread. Files are
// untrusted: the number and nesting of values are limited.
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
  // Members of a list; alternating keys and values of a table.
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
  // Appends members to a list, or pairs to a table. False: no room.
  bool append(Ref list, const Ref* first, size_t n);

  Kind kind(Ref at) const { return values_[at].kind; }
  std::string_view text(Ref at) const;  // empty if the value is no text
  // The value of an integer, or of a text that contains only an integer.
  std::optional<int64_t> integer(Ref at) const;
  bool truth(Ref at) const;  // false if the value is no truth value
  const Members& members(Ref at) const;
  // The value of a key of a table; of a repeated key, the last one.
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
  size_t held_ = 0;  // members, and bytes of own texts
};

}  // namespace culprit::ingest
