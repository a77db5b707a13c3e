// Reads a pickle for the few facts in a checkpoint's index, and executes nothing: a class is only a name, a
// call is a value without content. Visited values are discarded, so memory is that of the pickle's memo
// (limits::kCheckpointMemo); the caller bounds memory by the bytes read (ReadBudget). Pure; one thread. The
// bytes are untrusted.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace culprit::checkpoint {

struct PickleValue {
  enum class Kind : uint8_t { kNone, kBool, kInt, kReal, kText, kGlobal, kItems, kObject };
  Kind kind = Kind::kNone;
  uint32_t size = 0;  // of a text
  union {
    int64_t number = 0;  // value of a kBool or kInt; for kItems, the index of its items
    const char* chars;   // of a text; for kGlobal and kObject, "module name" without a NUL
  };

  bool is_text() const { return kind == Kind::kText; }
  std::string_view text() const {
    return kind == Kind::kText || kind == Kind::kGlobal || kind == Kind::kObject
               ? std::string_view(chars, size)
               : std::string_view();
  }
};

class PickleVisitor {
 public:
  virtual ~PickleVisitor() = default;
  // Whether the pickle may contain this name; false ends the reading with an error.
  virtual bool allowed(std::string_view module_and_name) = 0;
  // An object received its fields: alternating keys and values. Borrowed for the call.
  virtual void on_fields(std::string_view cls, std::span<const PickleValue> fields) = 0;
  // A reference to data elsewhere in the file. Borrowed for the call.
  virtual void on_reference(std::span<const PickleValue> items) = 0;
};

struct PickleEnd {
  size_t bytes = 0;                // length of the pickle, including its end
  std::vector<PickleValue> items;  // of the top value, if a list, tuple or dict
};

// Texts point into `bytes`, class names into the reader: both are valid during the visitor's calls. kLimit:
// the pickle continues after `bytes`. kDenied: the visitor does not allow a name in it.
Result<PickleEnd> read_objects(std::string_view bytes, PickleVisitor& visitor);

}  // namespace culprit::checkpoint
