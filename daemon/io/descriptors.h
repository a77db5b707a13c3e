// An owning descriptor, and the limit of descriptors (RLIMIT_NOFILE). Inputs that users can multiply (log
// files, rings, connections) leave a reserve for the spool, the index and the API. Any thread.
#pragma once

#include <cstddef>

namespace culprit::io {

// Closes the descriptor in the destructor.
class Descriptor {
 public:
  Descriptor() = default;
  explicit Descriptor(int number) : number_(number) {}
  Descriptor(Descriptor&& other) noexcept : number_(other.release()) {}
  Descriptor& operator=(Descriptor&& other) noexcept;
  ~Descriptor();

  bool is_open() const { return number_ >= 0; }
  int get() const { return number_; }
  int release();

 private:
  int number_ = -1;
};

// Raises the soft limit to the hard one, at most 131,072: a shell sets 1,024. Call at process start.
void raise_descriptor_limit();

// Number of descriptors that inputs may use.
size_t input_descriptors();

// Whether a descriptor just opened for an input is part of the reserve. The kernel assigns the lowest free
// number, so all lower numbers are in use. If true, the caller closes it, as with EMFILE.
bool is_reserved(int descriptor);

}  // namespace culprit::io
