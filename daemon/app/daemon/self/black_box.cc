#include "app/daemon/self/black_box.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <new>
#include <utility>

namespace culprit::app {
namespace {

constexpr size_t kPageBytes = 4096;
constexpr size_t kIdBytes = 256;             // ids of rules have at most 100 bytes
constexpr uint32_t kFailed = 1, kEnded = 2;  // an allocation failed; a failed allocation ended the process
constexpr char kMagic[8] = {'C', 'U', 'L', 'P', 'B', 'B', 'O', 'X'};

Error error_of(const std::string& path, const char* what, int error) {
  return {error == ENOSPC ? ErrorCode::kLimit : ErrorCode::kIo,
          fmt::format("{}: {}: {}", path, what, std::strerror(error))};
}

}  // namespace

// Layout in the file. `kind` is written last and cleared first: while it is not 0, the rest is complete.
struct BlackBox::Page {
  char magic[8];
  std::atomic<uint32_t> kind;
  uint32_t id_bytes;
  uint64_t text_hash;
  char id[kIdBytes];
  std::atomic<uint32_t> over_time;
  // State of the run. Older files have zeros here, which means that the last run ended.
  std::atomic<uint32_t> running, out_of_memory;
  std::atomic<uint64_t> oom_kills;
  std::atomic<uint32_t> job_bytes;  // written last and cleared first, like `kind`
  char job[kIdBytes];
  struct Input {
    std::atomic<uint32_t> bytes;  // as `job_bytes`
    char name[kInputBytes];
  } inputs[kReaders];
};
static_assert(std::atomic<uint32_t>::is_always_lock_free);

Result<BlackBox> BlackBox::open(const std::string& path) {
  static_assert(sizeof(Page) <= kPageBytes);
  const int descriptor = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (descriptor < 0) return tl::unexpected(error_of(path, "cannot be opened", errno));
  // Allocates the page, so that a write to the map cannot fail on a full disk. Also sets the size of a new
  // file.
  if (const int error = ::posix_fallocate(descriptor, 0, kPageBytes); error != 0) {
    ::close(descriptor);
    return tl::unexpected(error_of(path, "a page cannot be allocated", error));
  }
  void* mapped = ::mmap(nullptr, kPageBytes, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
  const int error = errno;
  ::close(descriptor);
  if (mapped == MAP_FAILED) return tl::unexpected(error_of(path, "cannot be mapped", error));
  BlackBox out;
  out.page_ = static_cast<Page*>(mapped);
  if (std::memcmp(out.page_->magic, kMagic, sizeof kMagic) != 0) {
    std::memset(mapped, 0, kPageBytes);
    std::memcpy(out.page_->magic, kMagic, sizeof kMagic);
  }
  return out;
}

BlackBox::~BlackBox() {
  if (page_) ::munmap(page_, kPageBytes);
}

BlackBox::BlackBox(BlackBox&& other) noexcept : page_(std::exchange(other.page_, nullptr)) {}

BlackBox& BlackBox::operator=(BlackBox&& other) noexcept {
  std::swap(page_, other.page_);
  return *this;
}

std::optional<BlackBox::Crashed> BlackBox::read_and_reset() {
  if (!page_) return std::nullopt;
  const uint32_t kind = page_->kind.exchange(0, std::memory_order_acq_rel);
  if (kind != static_cast<uint32_t>(Kind::kRule) && kind != static_cast<uint32_t>(Kind::kPlugin))
    return std::nullopt;  // no rule was running, or the page is damaged
  const size_t size = std::min<size_t>(page_->id_bytes, kIdBytes);
  if (size == 0) return std::nullopt;
  return Crashed{static_cast<Kind>(kind), std::string(page_->id, size), page_->text_hash,
                 page_->over_time.load(std::memory_order_acquire) != 0};
}

void BlackBox::enter(Kind kind, std::string_view id, uint64_t text_hash) noexcept {
  if (!page_) return;
  const size_t size = std::min(id.size(), kIdBytes);
  page_->id_bytes = static_cast<uint32_t>(size);
  page_->text_hash = text_hash;
  page_->over_time.store(0, std::memory_order_relaxed);
  std::memcpy(page_->id, id.data(), size);
  page_->kind.store(static_cast<uint32_t>(kind), std::memory_order_release);
}

void BlackBox::leave() noexcept {
  if (page_) page_->kind.store(0, std::memory_order_release);
}

std::optional<BlackBox::UncleanEnd> BlackBox::begin_run(uint64_t oom_kills) {
  if (!page_) return std::nullopt;
  const bool unclean = page_->running.exchange(1) != 0;
  const bool failed = page_->out_of_memory.exchange(0) != 0;
  const bool killed = oom_kills > page_->oom_kills.exchange(oom_kills);
  const size_t size = std::min<size_t>(page_->job_bytes.exchange(0), kIdBytes);
  UncleanEnd out{failed || killed, std::string(page_->job, size)};
  for (size_t i = 0; i < kReaders; ++i) {
    Page::Input& input = page_->inputs[i];
    out.inputs[i].assign(input.name, std::min<size_t>(input.bytes.exchange(0), kInputBytes));
  }
  return unclean ? std::optional(std::move(out)) : std::nullopt;
}

void BlackBox::beat(uint64_t oom_kills) noexcept {
  if (!page_) return;
  page_->oom_kills.store(oom_kills, std::memory_order_relaxed);
  uint32_t failed = kFailed;  // and survived
  page_->out_of_memory.compare_exchange_strong(failed, 0);
}

void BlackBox::end_run() noexcept {
  if (page_) page_->running.store(0, std::memory_order_release);
}

void BlackBox::enter_job(std::string_view job) noexcept {
  if (!page_) return;
  page_->job_bytes.store(0, std::memory_order_release);
  const size_t size = std::min(job.size(), kIdBytes);
  std::memcpy(page_->job, job.data(), size);
  page_->job_bytes.store(static_cast<uint32_t>(size), std::memory_order_release);
}

void BlackBox::enter_input(Reader reader, std::string_view name) noexcept {
  if (!page_) return;
  Page::Input& input = page_->inputs[static_cast<size_t>(reader)];
  input.bytes.store(0, std::memory_order_release);
  const size_t size = std::min(name.size(), kInputBytes);
  std::memcpy(input.name, name.data(), size);
  input.bytes.store(static_cast<uint32_t>(size), std::memory_order_release);
}

// The new handler throws like `new` without a handler. Another thread's beat may clear the recorded failure
// before the process ends, so the terminate handler records the final cause.
void BlackBox::record_failed_allocations() noexcept {
  static Page* recorded = nullptr;
  static std::terminate_handler before = nullptr;
  recorded = page_;
  std::set_new_handler([] {
    if (recorded) recorded->out_of_memory.store(kFailed, std::memory_order_release);
    throw std::bad_alloc();
  });
  const auto handler = std::set_terminate([] {
    try {
      if (const std::exception_ptr cause = std::current_exception()) std::rethrow_exception(cause);
    } catch (const std::bad_alloc&) {
      if (recorded) recorded->out_of_memory.store(kEnded, std::memory_order_release);
    } catch (...) {
    }
    if (before) before();
    std::abort();
  });
  if (!before) before = handler;
}

void BlackBox::mark_over_time() noexcept {
  if (page_ && page_->kind.load(std::memory_order_acquire) != 0)
    page_->over_time.store(1, std::memory_order_release);
}

}  // namespace culprit::app
