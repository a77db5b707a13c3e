// Opens files of untrusted users below one configured folder. Links below the folder are refused, files
// outside are never reached, and a FIFO or device does not block. The path of the folder itself may contain
// links of root and of the daemon's user (io/trusted_path.h). Leaves the reserve of descriptors
// (io/descriptors.h): EMFILE. Owns the folder's descriptor; one thread.
#pragma once

#include <sys/stat.h>

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "base/status.h"
#include "base/time.h"
#include "io/descriptors.h"

namespace culprit::ingest {

using io::Descriptor;

struct Entry {
  std::string name;
  uint64_t inode = 0;
  enum class Type : uint8_t { kFile, kFolder, kLink, kOther } type = Type::kOther;
  bool operator==(const Entry&) const = default;
};

// Identity and size of a log.
struct Look {
  uint64_t device = 0, inode = 0, size = 0;
  uint64_t allocated = 0;  // bytes on disk: fewer than `size` if the file has holes
  TimeNs modified_ns = kNoTime, changed_ns = kNoTime;  // a rename changes only changed_ns
  uint32_t uid = 0;                                    // of its owner
  bool regular = false, linked = false;                // linked: it has a name
};

// Whether inotify reports all changes in an open folder: not on network file systems.
bool is_local_file_system(int descriptor);

class SafeFolder {
 public:
  struct Options {
    bool openat2 = true;                 // false: as on a kernel without it, or with a system call filter
    std::function<void()> before_ask{};  // called before each file system access
  };
  SafeFolder() = default;
  explicit SafeFolder(Options options)
      : before_ask_(std::move(options.before_ask)), openat2_refused_(!options.openat2) {}

  // An error is one sentence without the path, and names who could have changed where it leads.
  Status open(const std::string& path);
  void close() { root_ = Descriptor(); }
  bool is_open() const { return root_.is_open(); }
  // Whether `path` still leads to the open folder, and no untrusted user can change that.
  bool still_at(const std::string& path) const;
  bool is_local(const std::string& below) const;

  // Paths are '/'-separated below the folder; "" is the folder itself. errno or 0.
  int look(const std::string& below, Look& out) const;
  // A regular file, for reading: ELOOP for a link, EINVAL for anything else.
  int open_file(const std::string& below, Descriptor& out) const;
  // Its names except "." and "..", sorted; at most `max`, EOVERFLOW if there are more.
  int list(const std::string& below, size_t max, std::vector<Entry>& out) const;
  // Whether a descriptor was missing since the last call.
  bool take_shortage() { return std::exchange(shortage_, false); }
  // Creation time of the file; kNoTime if the file system has none.
  TimeNs born_ns(const std::string& below) const;

 private:
  int open_below(const std::string& below, int flags, Descriptor& out) const;
  int open_any(const std::string& below, int flags, Descriptor& out) const;
  int walk_below(const std::string& below, int flags, Descriptor& out) const;
  void before_call() const {
    if (before_ask_) before_ask_();
  }

  Descriptor root_;
  std::function<void()> before_ask_;
  mutable bool shortage_ = false;
  mutable bool openat2_refused_ = false;  // an old kernel, or a filter of system calls
};

int look_at(int descriptor, Look& out);  // errno or 0

// Whether a call of this thread on a log failed since construction for a reason unrelated to the file (EIO,
// EMFILE; not ENOENT or EACCES). Conclusions drawn since then are uncertain.
class CallWatch {
 public:
  CallWatch();
  bool failed() const;
  static int error();  // errno of the last such call
 private:
  uint64_t before_;
};
bool is_uncertain(int error);
int note_call(int error);          // returns it
std::string reason_of(int error);  // "permission denied"

}  // namespace culprit::ingest
