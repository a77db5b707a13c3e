// Opens, below one configured folder, what an untrusted user may have put there: links are refused wherever
// they stand below it, nothing outside is reached, and a FIFO or a device holds nobody up. The folder itself
// was named by whoever configured it and may be reached through links. Owns the folder's descriptor; one
// thread.
#pragma once

#include <sys/stat.h>

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "base/status.h"
#include "base/time.h"

namespace culprit::ingest {

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

struct Entry {
  std::string name;
  uint64_t inode = 0;
  enum class Type : uint8_t { kFile, kFolder, kLink, kOther } type = Type::kOther;
  bool operator==(const Entry&) const = default;
};

// What a log's identity and size are taken from.
struct Look {
  uint64_t device = 0, inode = 0, size = 0;
  uint64_t allocated = 0;  // bytes on disk: fewer than `size` where there are holes
  TimeNs modified_ns = kNoTime;
  bool regular = false, linked = false;  // linked: it has a name
};

class SafeFolder {
 public:
  struct Options {
    bool openat2 = true;  // false: as if the kernel had none, or a filter of system calls refused it
    std::function<void()> before_ask{};  // called before each question to the file system
  };
  SafeFolder() = default;
  explicit SafeFolder(Options options)
      : before_ask_(std::move(options.before_ask)), openat2_refused_(!options.openat2) {}

  // errno, 0 where all went well.
  int open(const std::string& path);
  void close() { root_ = Descriptor(); }
  bool is_open() const { return root_.is_open(); }
  // Whether `path` still leads to the folder that is open.
  bool still_at(const std::string& path) const;
  // Whether watches tell of all changes in it: not on network file systems.
  bool is_local(const std::string& below) const;

  // Paths are '/'-separated below the folder; "" is the folder itself. errno or 0.
  int look(const std::string& below, Look& out) const;
  // A regular file, for reading: ELOOP for a link, EINVAL for anything else.
  int open_file(const std::string& below, Descriptor& out) const;
  // Its names but "." and "..", sorted; at most `max`, EOVERFLOW where there are more.
  int list(const std::string& below, size_t max, std::vector<Entry>& out) const;
  // When the file was made, kNoTime where the file system does not tell.
  TimeNs born_ns(const std::string& below) const;

 private:
  int open_below(const std::string& below, int flags, Descriptor& out) const;
  int walk_below(const std::string& below, int flags, Descriptor& out) const;
  void ask() const {
    if (before_ask_) before_ask_();
  }

  Descriptor root_;
  std::function<void()> before_ask_;
  mutable bool openat2_refused_ = false;  // an old kernel, or a filter of system calls
};

int look_at(int descriptor, Look& out);  // errno or 0
std::string reason_of(int error);        // "permission denied"

}  // namespace culprit::ingest
