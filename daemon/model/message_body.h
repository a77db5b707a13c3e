// Writes and reads the bodies of messages between programs. A function fields(io, message) lists the members
// of a body once, for both directions; `io` is a BodyWriter or a BodyReader. Pure; any thread.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"

namespace culprit {

class BodyWriter {
 public:
  explicit BodyWriter(std::string& out) : out_(out) {}
  template <class T>
  void number(const T& value) {
    put(out_, value);
  }
  void flag(const bool& value) { put<uint8_t>(out_, value); }
  void text(const std::string& value, size_t max, const char*) {
    const size_t size = std::min(value.size(), max);
    put(out_, static_cast<uint16_t>(size));
    out_.append(value, 0, size);
  }
  void bytes(const std::string& value) {
    put(out_, static_cast<uint32_t>(value.size()));
    out_ += value;
  }
  template <class T, class Each>
  void list(const std::vector<T>& values, size_t max, Each each) {
    const size_t size = std::min(values.size(), max);
    put(out_, static_cast<uint16_t>(size));
    for (size_t i = 0; i < size; ++i) each(values[i]);
  }
  void require(bool, const char*) {}
  bool more() const { return true; }

 private:
  std::string& out_;
};

// Keeps the first error. Values read after it are empty.
class BodyReader {
 public:
  explicit BodyReader(std::string_view body) : body_(body) {}
  const char* wrong() const { return wrong_ == nullptr && body_.bad() ? "it is too short" : wrong_; }

  template <class T>
  void number(T& value) {
    value = body_.get<T>();
  }
  void flag(bool& value) { value = body_.get<uint8_t>() != 0; }
  void text(std::string& value, size_t max, const char* what) {
    const size_t size = body_.get<uint16_t>();
    require(size <= max, what);
    if (wrong() == nullptr) value = body_.read_bytes(size);
  }
  void bytes(std::string& value) { value = body_.read_bytes(body_.get<uint32_t>()); }
  template <class T, class Each>
  void list(std::vector<T>& values, size_t max, Each each) {
    const size_t size = body_.get<uint16_t>();
    require(size <= max, "it has too many entries");
    for (size_t i = 0; i < size && wrong() == nullptr; ++i) each(values.emplace_back());
  }
  void require(bool holds, const char* what) {
    if (!holds && wrong_ == nullptr && !body_.bad()) wrong_ = what;
  }
  // False: the body ends here. So does that of an older peer before a member that was added at the end.
  bool more() const { return wrong() == nullptr && !body_.at_end(); }

 private:
  Cursor body_;
  const char* wrong_ = nullptr;
};

}  // namespace culprit
