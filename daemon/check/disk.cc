#include "check/disk.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/text.h"
#include "io/descriptors.h"

namespace culprit::check {
namespace {

constexpr size_t kBlock = 1 << 20;
constexpr size_t kAlignment = 4096;             // of O_DIRECT
constexpr uint64_t kSpareBytes = 256ull << 20;  // free space that the test leaves

struct Free {
  void operator()(void* at) const { std::free(at); }
};
using Buffer = std::unique_ptr<unsigned char, Free>;

Buffer make_buffer() { return Buffer(static_cast<unsigned char*>(std::aligned_alloc(kAlignment, kBlock))); }

void fill(std::span<unsigned char> block, uint64_t at) {
  uint64_t x = at * 0x9e3779b97f4a7c15 + 1;
  for (size_t i = 0; i + sizeof x <= block.size(); i += sizeof x) {
    x ^= x << 13, x ^= x >> 7, x ^= x << 17;
    std::memcpy(&block[i], &x, sizeof x);
  }
}

// What an error of the system says about the disk: no space and no permission are no fault of it.
Answer answer_of(int error) {
  return error == EIO || error == EROFS || error == EUCLEAN || error == ENODATA || error == EBADMSG
             ? Answer::kFailed
             : Answer::kNoAnswer;
}

class DiskRun {
 public:
  explicit DiskRun(const DiskTest& test) : test_(test) {}

  Part run() {
    const TimeNs began = steady_now();
    Part out{"disk", Answer::kNoAnswer, "", 0, "", 0};
    if (open() && has_room() && write_all() && sync() && read_all()) {
      answer_ = Answer::kPassed;
      const double seconds = static_cast<double>(steady_now() - began) / kNsPerSecond;
      out.figure = static_cast<double>(test_.bytes) / 1e6 / std::max(seconds, 1e-9);
      out.unit = "MB/s";
      text_ = fmt::format("{} written to {} and read{} at {:.0f} MB/s", format_bytes(test_.bytes),
                          test_.folder, direct_ ? "" : " through the page cache", out.figure);
    }
    out.answer = answer_;
    out.text = text_;
    out.took_ns = steady_now() - began;
    return out;
  }

 private:
  bool refuse(Answer answer, std::string text) {
    answer_ = answer;
    text_ = std::move(text);
    return false;
  }
  bool refuse_errno(const char* what) {
    const int error = errno;
    return refuse(answer_of(error), fmt::format("{} in {}: {}", what, test_.folder, std::strerror(error)));
  }
  bool in_time() {
    return steady_now() < test_.until_ns ||
           refuse(Answer::kNoAnswer,
                  fmt::format("{} were not written and read in time", format_bytes(test_.bytes)));
  }

  bool open() {
    const int flags = O_TMPFILE | O_RDWR | O_CLOEXEC;
    for (const bool direct : {true, false}) {
      file_ = io::Descriptor(::open(test_.folder.c_str(), flags | (direct ? O_DIRECT : 0), 0600));
      direct_ = direct;
      if (file_.is_open() || (errno != EINVAL && errno != EOPNOTSUPP)) break;
    }
    if (!file_.is_open() && (errno == EOPNOTSUPP || errno == EISDIR)) return open_named();
    return file_.is_open() || refuse_errno("a file cannot be made");
  }
  // File systems without O_TMPFILE, such as NFS.
  bool open_named() {
    std::string path = test_.folder + "/.culprit-check-XXXXXX";
    file_ = io::Descriptor(::mkostemp(path.data(), O_CLOEXEC));
    direct_ = false;
    if (file_.is_open()) ::unlink(path.c_str());
    return file_.is_open() || refuse_errno("a file cannot be made");
  }
  bool has_room() {
    struct statvfs room {};
    if (::fstatvfs(file_.get(), &room) != 0) return refuse_errno("the space is unknown");
    const uint64_t bytes = uint64_t{room.f_bavail} * room.f_frsize;
    return bytes >= test_.bytes + kSpareBytes ||
           refuse(Answer::kNoAnswer,
                  fmt::format("only {} are free in {}", format_bytes(bytes), test_.folder));
  }
  bool write_all() {
    const Buffer block = make_buffer();
    if (!block) return refuse(Answer::kNoAnswer, "no memory for a block");
    for (uint64_t at = 0; at < blocks() * kBlock; at += kBlock) {
      if (!in_time()) return false;
      fill({block.get(), kBlock}, at + test_.seed);
      if (test_.disturb && at == 0) block.get()[kBlock / 2] ^= 4;
      for (size_t done = 0; done < kBlock;) {
        const ssize_t n = ::pwrite(file_.get(), block.get() + done, kBlock - done, off_t(at + done));
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) return refuse_errno("a write fails");
        done += static_cast<size_t>(n);
      }
    }
    return true;
  }
  bool sync() {
    if (::fdatasync(file_.get()) != 0) return refuse_errno("a sync fails");
    if (!direct_) ::posix_fadvise(file_.get(), 0, 0, POSIX_FADV_DONTNEED);
    return true;
  }
  bool read_all() {
    const Buffer block = make_buffer(), wanted = make_buffer();
    if (!block || !wanted) return refuse(Answer::kNoAnswer, "no memory for a block");
    for (uint64_t at = 0; at < blocks() * kBlock; at += kBlock) {
      if (!in_time()) return false;
      for (size_t done = 0; done < kBlock;) {
        const ssize_t n = ::pread(file_.get(), block.get() + done, kBlock - done, off_t(at + done));
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) return refuse_errno("a read fails");
        if (n == 0) return refuse(Answer::kFailed, fmt::format("{} is shorter than written", test_.folder));
        done += static_cast<size_t>(n);
      }
      fill({wanted.get(), kBlock}, at + test_.seed);
      if (std::memcmp(block.get(), wanted.get(), kBlock) != 0)
        return refuse(Answer::kFailed, fmt::format("bytes in {} differ from what was written, after {}",
                                                   test_.folder, format_bytes(at)));
    }
    return true;
  }
  uint64_t blocks() const { return std::max<uint64_t>(test_.bytes / kBlock, 1); }

  const DiskTest& test_;
  io::Descriptor file_;
  bool direct_ = false;
  Answer answer_ = Answer::kNoAnswer;
  std::string text_;
};

}  // namespace

Part test_disk(const DiskTest& test) { return DiskRun(test).run(); }

}  // namespace culprit::check
