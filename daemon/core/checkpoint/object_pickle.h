// Reads a pickle of objects for the few facts that a checkpoint's index has, and executes nothing: a class is
// a name, a call is a value without content. Values that the visitor has seen are forgotten, so memory is
// that of what the pickle remembers (limits::kCheckpointMemo); the caller bounds it by the bytes
// (ReadBudget). Pure; one thread. The bytes are untrusted.
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
    int64_t number = 0;  // of a kBool and a kInt; of kItems, which items
    const char* chars;   // of a text; of a kGlobal and a kObject, "module name" without a NUL
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
  // Whether the pickle may name this; false ends the reading with an error.
  virtual bool allowed(std::string_view module_and_name) = 0;
  // An object received its fields: alternating keys and values. Borrowed for the call.
  virtual void on_fields(std::string_view cls, std::span<const PickleValue> fields) = 0;
  // What stands for data elsewhere in the file. Borrowed for the call.
  virtual void on_reference(std::span<const PickleValue> items) = 0;
};

struct PickleEnd {
  size_t bytes = 0;                // up to and with its end
  std::vector<PickleValue> items;  // of the value itself, if it is a list, a tuple or a table
};

// Texts point into `bytes`, class names into the reader: both are valid for the visitor's calls. kLimit: the
// pickle goes on after `bytes`. kDenied: it names what the visitor does not allow.
Result<PickleEnd> read_objects(std::string_view bytes, PickleVisitor& visitor);

}  // namespace culprit::checkpoint
