#include "ingest/source_list.h"

#include <dirent.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <optional>
#include <unordered_set>
#include <utility>

#include "base/text.h"
#include "base/wide_text.h"
#include "ingest/decompress.h"
#include "ingest/file.h"
#include "ingest/recognise.h"

namespace culprit::ingest {
namespace {

constexpr std::string_view kJobFile = "job.toml";

std::string join(const std::string& folder, const std::string& name) {
  if (folder.empty()) return name;
  return folder.ends_with('/') ? folder + name : folder + "/" + name;
}

// The path with all links resolved; nullopt for a broken path.
std::optional<std::string> resolve(const std::string& path) {
  const std::unique_ptr<char, decltype(&std::free)> resolved(::realpath(path.c_str(), nullptr), &std::free);
  if (!resolved) return std::nullopt;
  return std::string(resolved.get());
}

bool is_below(const std::string& path, const std::string& folder) {
  return path.starts_with(folder.ends_with('/') ? folder : folder + "/");
}

std::string own_name(const std::string& path) { return path.substr(path.rfind('/') + 1); }

bool is_blank(std::string_view bytes) { return bytes.find_first_not_of('\0') == bytes.npos; }

// Limit of leading zero bytes that are read to find text. A log truncated under its writer begins with a hole
// of its former size; in a copy the zeros may be written to disk.
constexpr uint64_t kBlankBytes = 256 << 20;
constexpr size_t kBlankStep = 1 << 20;

// Offset of the first byte that is not zero; 0 if none is found.
uint64_t content_begin(const File& file) {
  std::string part;
  uint64_t at = 0;
  for (uint64_t read = 0; at < file.size() && read < kBlankBytes; read += part.size()) {
    at = file.data_from(at);
    part.resize(kBlankStep);
    part.resize(file.read_at(part.data(), part.size(), at).bytes);
    if (part.empty()) break;
    if (!is_blank(part)) return at + part.find_first_not_of('\0');
    at += part.size();
  }
  return 0;
}

// The first bytes of the content after leading zero bytes: the text after these decides the kind.
Result<std::string> read_head(const File& file, const std::string& path) {
  std::string head(kHeadBytes, '\0');
  ReadOutcome outcome = file.read_at(head.data(), head.size(), 0);
  if (outcome.bytes == head.size() && is_blank(head))
    if (const uint64_t begin = content_begin(file); begin > 0)
      outcome = file.read_at(head.data(), head.size(), begin);
  if (outcome.error != 0 && outcome.bytes == 0) return tl::unexpected(system_error(path, outcome.error));
  head.resize(outcome.bytes);
  return head;
}

// The head as UTF-8 if it is UTF-16 or has UTF-16 after lines of other text; otherwise empty.
std::string narrowed(std::string_view head) {
  const size_t tail = wide_order(head) == WideOrder::kNone ? wide_tail(head) : 0;
  std::string text(head.substr(0, tail));
  if (tail == head.size() || (tail > 0 && is_binary(text))) return "";
  WideText wide;
  if (wide.takes(head.substr(tail))) wide.decode(head.substr(tail), text);
  return text;
}

void set_kind(SourceFile& file, std::string_view head, bool whole) {
  const std::string text = narrowed(head);
  file.wide = !text.empty() && !is_binary(text);
  if (file.wide) head = text;
  file.kind = kind_of({head, whole, file.below, file.argument});
  if (file.kind == FileKind::kUnread) file.unread = unread_kind(head);
}

// Decompresses until the head has text or the limit is reached. Returns the size of the head.
size_t read_compressed_head(Decompressor& decompressor, std::string& text) {
  size_t size = 0;
  for (uint64_t read = 0; read < kBlankBytes; read += size) {
    size = decompressor.read(text.data(), text.size());
    if (size < text.size() || !is_blank(text)) break;
  }
  return size;
}

// Sets compression and kind; `raw` are the file's first bytes.
void recognise(SourceFile& file, std::string_view raw, size_t asked) {
  file.compression = compression_of(raw);
  if (file.compression == Compression::kNone) {
    const bool whole = raw.size() < asked;
    if (is_blank(raw.substr(0, kHeadBytes)) && !is_blank(raw)) raw.remove_prefix(raw.find_first_not_of('\0'));
    set_kind(file, raw.substr(0, kHeadBytes), whole);
    return;
  }
  std::string text(kHeadBytes, '\0');
  size_t size = 0;
  bool whole = false;
  const auto read = [&](Decompressor decompressor) {
    size = read_compressed_head(decompressor, text);
    whole = size < text.size() && !decompressor.problem();
  };
  if (file.stream) {
    read(Decompressor::over(raw, file.compression, file.path));
  } else if (auto opened = Decompressor::open(file)) {
    read(std::move(*opened));
  }
  text.resize(size);
  set_kind(file, text, whole);
  // A compressed file damaged at the start is treated as a log: the log reader reports the damage.
  if (file.kind == FileKind::kEmpty && !whole) file.kind = FileKind::kLog;
}

class Walk {
 public:
  Walk(SourceList& list, const std::atomic<bool>* stop) : list_(list), stop_(stop) {}

  void argument(const std::string& argument) {
    argument_ = argument;
    if (argument == "-") return stream();
    struct stat status;
    if (::stat(argument.c_str(), &status) != 0) return failed(system_error(argument, errno));
    if (S_ISFIFO(status.st_mode)) return stream();  // a shell's <(…) has no resolvable path
    const auto resolved = resolve(argument);
    if (!resolved) return failed(system_error(argument, errno));
    root_ = *resolved;
    if (S_ISDIR(status.st_mode)) {
      auto names = read_names(argument);
      if (!names) return failed(std::move(names.error()));
      above_ = {{status.st_dev, status.st_ino}};
      // job.toml comes before all other names: if it is a link, its target must not be listed as a log.
      const auto job = std::find(names->begin(), names->end(), kJobFile);
      if (job != names->end()) std::rotate(names->begin(), job, job + 1);
      return folder(argument, "", *names);
    }
    auto error = regular_file(argument, own_name(argument), root_);
    if (error) failed(std::move(*error));
  }

 private:
  using FolderId = std::pair<dev_t, ino_t>;

  void failed(Error error) { list_.failed_arguments.push_back(std::move(error)); }
  void problem(const std::string& path, std::string what) {
    // The message already names the file.
    if (what.starts_with(path + ": ")) what.erase(0, path.size() + 2);
    list_.problems.push_back(Problem{path, std::nullopt, std::move(what)});
  }

  void stream() {
    SourceFile file;
    file.path = file.argument = argument_;
    file.below = own_name(argument_);
    auto opened = File::open_stream(file.path, stop_);
    if (!opened) return failed(std::move(opened.error()));
    file.modified_ns = opened->modified_ns();
    file.head.resize(kCompressedHeadBytes);
    const ReadOutcome outcome = opened->read(file.head.data(), file.head.size());
    if (outcome.error != 0 && outcome.bytes == 0)
      return failed(system_error(argument_ == "-" ? "standard input" : argument_, outcome.error));
    file.stream = std::make_shared<File>(std::move(*opened));
    file.head.resize(outcome.bytes);
    recognise(file, file.head, kCompressedHeadBytes);
    list_.files.push_back(std::move(file));
  }

  // The reason why the file cannot be read; nothing if it is listed now or was listed before.
  std::optional<Error> regular_file(const std::string& path, const std::string& below,
                                    const std::string& resolved) {
    auto opened = File::open(path);
    if (!opened) return std::move(opened.error());
    auto head = read_head(*opened, path);
    if (!head) return std::move(head.error());
    if (!listed_.insert(resolved).second) return std::nullopt;
    SourceFile file;
    file.path = path;
    file.below = below;
    file.argument = argument_;
    file.size = opened->size();
    file.modified_ns = opened->modified_ns();
    recognise(file, *head, kHeadBytes);
    list_.files.push_back(std::move(file));
    return std::nullopt;
  }

  struct CloseFolder {
    void operator()(DIR* folder) const { ::closedir(folder); }
  };

  Result<std::vector<std::string>> read_names(const std::string& path) {
    DIR* open = ::opendir(path.c_str());
    if (open == nullptr) return tl::unexpected(system_error(path, errno));
    const std::unique_ptr<DIR, CloseFolder> folder(open);
    std::vector<std::string> names;
    for (;;) {
      errno = 0;
      const dirent* entry = ::readdir(folder.get());
      if (entry == nullptr) break;
      if (std::strcmp(entry->d_name, ".") != 0 && std::strcmp(entry->d_name, "..") != 0)
        names.emplace_back(entry->d_name);
    }
    if (errno != 0 && names.empty()) return tl::unexpected(system_error(path, errno));
    if (errno != 0) problem(path, system_error(path, errno).text);
    std::sort(names.begin(), names.end(), natural_less);
    return names;
  }

  void folder(const std::string& path, const std::string& below, const std::vector<std::string>& names) {
    for (const std::string& name : names) entry(join(path, name), join(below, name));
  }

  void entry(const std::string& path, const std::string& below) {
    struct stat status;
    if (::lstat(path.c_str(), &status) != 0) return problem(path, system_error(path, errno).text);
    if (S_ISLNK(status.st_mode)) return link(path, below);
    if (S_ISDIR(status.st_mode)) return subfolder(path, below, {status.st_dev, status.st_ino});
    if (S_ISFIFO(status.st_mode))
      return problem(path, "passed over: a pipe (FIFO), which is read only where it is named as an argument");
    if (!S_ISREG(status.st_mode))
      return problem(path, S_ISSOCK(status.st_mode) ? "passed over: a socket" : "passed over: a device");
    const auto error = regular_file(path, below, join(root_, below));
    if (error) problem(path, error->text);
  }

  void link(const std::string& path, const std::string& below) {
    const auto target = resolve(path);
    if (!target) return problem(path, "is a link that leads nowhere: " + system_error(path, errno).text);
    if (!is_below(*target, root_) && *target != root_)
      return problem(path, "is a link that leads out of " + argument_ + ": not followed");
    struct stat status;
    if (below != kJobFile || ::stat(path.c_str(), &status) != 0 || !S_ISREG(status.st_mode)) return;
    const auto error = regular_file(path, below, *target);
    if (error) problem(path, error->text);
  }

  void subfolder(const std::string& path, const std::string& below, FolderId id) {
    // Only a folder mounted below itself is visited twice. Only parent folders are compared, as some file
    // systems give two folders the same inode.
    if (std::find(above_.begin(), above_.end(), id) != above_.end()) return;
    const auto names = read_names(path);
    if (!names) return problem(path, names.error().text);
    above_.push_back(id);
    folder(path, below, *names);
    above_.pop_back();
  }

  SourceList& list_;
  const std::atomic<bool>* stop_;
  std::string argument_, root_;  // root_: the argument with all links followed
  std::vector<FolderId> above_;
  std::unordered_set<std::string> listed_;  // resolved paths
};

}  // namespace

SourceList list_sources(const std::vector<std::string>& arguments, const std::atomic<bool>* stop) {
  SourceList list;
  Walk walk(list, stop);
  for (const std::string& argument : arguments) walk.argument(argument);
  return list;
}

}  // namespace culprit::ingest
