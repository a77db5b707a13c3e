// A descriptor with an owner, and the limit of all of them (RLIMIT_NOFILE). Inputs that others can multiply,
// such as log files, rings and connections, leave a reserve for the spool, the index and the API. Any thread.
#pragma once

#include <cstddef>

namespace culprit::io {

// Closes it at the end of its life.
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

// Raises the soft limit to the hard one, at most 131,072: a shell gives 1,024. At the start of the process.
void raise_descriptor_limit();

// How many descriptors inputs may use.
size_t input_descriptors();

// Whether the number of a descriptor that was just opened for an input belongs to the reserve: the kernel
// gives the lowest free number, so all below are in use. The caller closes it, as with EMFILE.
bool is_reserved(int descriptor);

}  // namespace culprit::io
