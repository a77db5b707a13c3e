// Divides a JSON text of any length into the elements of one array of its top-level object and the values of
// some other members, without parsing them. Memory is bounded by the limits: longer elements are passed over
// and counted. After damage it goes on at the next object that begins; before the array at the next key that
// is wanted. One thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "ingest/decompress.h"

namespace culprit::ingest {

class JsonElements {
 public:
  struct Member {
    std::string_view key;  // without escapes; borrowed
    size_t bytes_max = 0;  // longer values are passed over
  };
  // `array`: the key of the array; a text that is an array itself has the same elements.
  JsonElements(Decompressor bytes, std::string_view array, std::vector<Member> members, size_t element_max);

  struct Piece {
    bool element = false;
    std::string_view key;   // of a member
    std::string_view text;  // valid until the next call
  };
  // False: the end.
  bool next(Piece& out);

  uint64_t too_long() const { return too_long_; }
  uint64_t damages() const { return damages_; }  // places where the text is no JSON
  // The end of the top-level value was seen; after damage, what may be it.
  bool complete() const { return state_ == State::kEnd || closing_; }
  uint64_t content_bytes() const { return content_bytes_; }
  const Decompressor& bytes() const { return bytes_; }

 private:
  enum class State : uint8_t { kBefore, kKey, kColon, kValue, kArray, kResync, kEnd };

  bool fill();
  bool step(char c, Piece& out);
  void begin_value();
  bool value_byte(char c);
  bool end_value(Piece& out);
  bool resync(char c);
  void close();
  void damage();
  size_t plain_run() const;

  Decompressor bytes_;
  std::string_view array_;
  std::vector<Member> members_;
  size_t element_max_;
  std::string buffer_;
  size_t at_ = 0, filled_ = 0;
  State state_ = State::kBefore;
  bool in_array_ = false;  // values are elements
  bool bare_ = false;      // the text is the array itself
  bool seen_ = false;      // the array has begun
  bool closing_ = false;   // after damage: nothing followed a bracket that may be the last
  bool in_string_ = false, escaped_ = false, opened_ = false, begun_ = false, over_ = false;
  size_t depth_ = 0, value_max_ = 0;
  std::string key_, value_, piece_;
  uint64_t too_long_ = 0, damages_ = 0, content_bytes_ = 0;
};

}  // namespace culprit::ingest
