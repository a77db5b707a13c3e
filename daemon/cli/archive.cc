#include "cli/archive.h"

#include <archive.h>
#include <archive_entry.h>
#include <fmt/format.h>

#include <array>
#include <utility>

#include "cli/new_file.h"

namespace culprit::cli {

struct Archive::Impl {
  std::string path;
  NewFile file;
  TimeNs now = 0;
  struct archive* out = nullptr;

  Impl(std::string to, NewFile temporary, TimeNs time)
      : path(std::move(to)), file(std::move(temporary)), now(time) {}
  Impl(const Impl&) = delete;
  ~Impl() {
    if (out) archive_write_free(out);
  }
  Status failed() const {
    const char* why = archive_error_string(out);
    return fail(ErrorCode::kIo, fmt::format("{}: {}", path, why ? why : "it cannot be written"));
  }
  Status header(const std::string& name, uint64_t size) {
    const std::unique_ptr<archive_entry, void (*)(archive_entry*)> entry(archive_entry_new(),
                                                                         archive_entry_free);
    archive_entry_set_pathname(entry.get(), name.c_str());
    archive_entry_set_size(entry.get(), static_cast<la_int64_t>(size));
    archive_entry_set_filetype(entry.get(), AE_IFREG);
    archive_entry_set_perm(entry.get(), 0644);
    archive_entry_set_mtime(entry.get(), static_cast<time_t>(now / kNsPerSecond), 0);
    return archive_write_header(out, entry.get()) == ARCHIVE_OK ? Status() : failed();
  }
  Status data(const char* bytes, size_t size) {
    return archive_write_data(out, bytes, size) == static_cast<la_ssize_t>(size) ? Status() : failed();
  }
};

Archive::Archive(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Archive::Archive(Archive&&) noexcept = default;
Archive::~Archive() = default;

Result<Archive> Archive::create(const std::string& path, TimeNs now) {
  const bool zstd = path.ends_with(".tar.zst");
  if (!zstd && !path.ends_with(".tar.gz") && !path.ends_with(".tgz"))
    return fail(ErrorCode::kInvalid, fmt::format("{}: its name ends in neither .tar.zst nor .tar.gz", path));
  // Readable by the owner only: redaction is never complete.
  auto file = NewFile::create(path, 0600);
  if (!file) return tl::unexpected(file.error());
  auto impl = std::make_unique<Impl>(path, std::move(*file), now);
  impl->out = archive_write_new();
  if ((zstd ? archive_write_add_filter_zstd(impl->out) : archive_write_add_filter_gzip(impl->out)) !=
          ARCHIVE_OK ||
      archive_write_set_format_pax_restricted(impl->out) != ARCHIVE_OK ||
      archive_write_open_fd(impl->out, impl->file.descriptor()) != ARCHIVE_OK)
    return tl::unexpected(impl->failed().error());
  return Archive(std::move(impl));
}

Status Archive::add(const std::string& name, const std::string& text) {
  if (Status status = impl_->header(name, text.size()); !status) return status;
  return impl_->data(text.data(), text.size());
}

Status Archive::add(const std::string& name, std::FILE* file, uint64_t size) {
  if (Status status = impl_->header(name, size); !status) return status;
  std::rewind(file);
  std::array<char, 64 << 10> part;
  for (size_t n; (n = std::fread(part.data(), 1, part.size(), file)) > 0;)
    if (Status status = impl_->data(part.data(), n); !status) return status;
  return {};
}

Status Archive::finish() {
  if (archive_write_close(impl_->out) != ARCHIVE_OK) return impl_->failed();
  return impl_->file.finish();
}

}  // namespace culprit::cli
