// A text that grows by pieces and is stored compressed: dumps of stacks and of operations take a tenth. One
// thread.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace culprit::app {

class PackedText {
 public:
  void append(std::string_view bytes);
  std::string unpack() const;

  size_t size() const { return size_; }  // Size of the text.
  size_t packed_bytes() const { return packed_bytes_ + open_.size(); }
  bool empty() const { return size_ == 0; }
  // The last byte that is not white space; 0: none.
  char last_mark() const { return last_mark_; }

 private:
  struct Block {
    std::string bytes;
    size_t size = 0;  // size of the text; equal to bytes.size() if not compressed
  };
  std::vector<Block> blocks_;
  std::string open_;  // the uncompressed end of the text
  size_t size_ = 0, packed_bytes_ = 0;
  char last_mark_ = 0;
};

}  // namespace culprit::app
