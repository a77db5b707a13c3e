#include "app/run/code.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "base/ascii.h"
#include "base/limits.h"
#include "io/descriptors.h"
#include "model/topology.h"

namespace culprit::app {
namespace {

constexpr size_t kRevisionBytes = 200;

bool is_revision(std::string_view text) {
  return text.size() <= kRevisionBytes && !text.starts_with('-') && std::ranges::all_of(text, [](char c) {
           return alpha(c) || digit(c) || std::string_view("._/@:+-").find(c) != std::string_view::npos;
         });
}

Result<std::string> read_whole(const io::Descriptor& file, const std::string& path) {
  std::string text(limits::kJobFileBytes + 1, '\0');
  size_t size = 0;
  while (size < text.size()) {
    const ssize_t got = ::read(file.get(), text.data() + size, text.size() - size);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return io::system_failure(path, errno);
    if (got == 0) break;
    size += static_cast<size_t>(got);
  }
  text.resize(size);  // the parser refuses one that is too long
  return text;
}

bool has_run(const std::vector<Attempt>& attempts, const std::string& revision) {
  return std::ranges::any_of(attempts, [&](const Attempt& a) { return a.revision == revision; });
}

// The revision before the one of the last attempt, if no attempt of that one has advanced before the last.
std::string before_untried(const std::vector<Attempt>& attempts, const CodeFile& file) {
  const std::string& running = attempts.back().revision;
  for (auto a = attempts.rbegin(); a != attempts.rend(); ++a) {
    if (a->revision != running) return a->revision.empty() ? file.last_good : a->revision;
    if (a != attempts.rbegin() && a->failure.progress == recover::Progress::kMade) return "";
  }
  return "";
}

}  // namespace

Result<CodeFile> read_code(const std::string& path) {
  const io::Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  struct stat info {};
  if (!file.is_open() || ::fstat(file.get(), &info) != 0) return io::system_failure(path, errno);
  if (!S_ISREG(info.st_mode)) return fail(ErrorCode::kInvalid, path + ": is no regular file");
  const auto text = read_whole(file, path);
  if (!text) return tl::unexpected(text.error());
  const auto job = parse_job_file(*text, path);
  if (!job) return tl::unexpected(job.error());
  CodeFile out;
  for (const auto& [name, from, to] : {std::tuple("revision", &job->revision, &out.revision),
                                       std::tuple("last_good", &job->last_good, &out.last_good),
                                       std::tuple("pending", &job->pending, &out.pending)}) {
    if (!*from) continue;
    if (!is_revision(**from))
      return fail(ErrorCode::kInvalid, fmt::format("{}: '{}' must be at most {} letters, digits and ._/@:+-",
                                                   path, name, kRevisionBytes));
    *to = **from;
  }
  out.changed_ns = info.st_mtim.tv_sec * kNsPerSecond + info.st_mtim.tv_nsec;
  return out;
}

recover::CodeChoice code_choice(const std::vector<Attempt>& attempts, const CodeFile& file) {
  recover::CodeChoice out;
  if (attempts.empty()) return out;
  out.running = attempts.back().revision;
  if (!has_run(attempts, file.pending)) out.pending = file.pending;
  out.before = before_untried(attempts, file);
  if (out.before == out.running) out.before.clear();
  return out;
}

TimeNs pending_due(const std::vector<Attempt>& attempts, const CodeFile& file, TimeNs within) {
  if (file.pending.empty() || has_run(attempts, file.pending)) return kNoTime;
  return file.changed_ns + within;
}

}  // namespace culprit::app
