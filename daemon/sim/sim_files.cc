#include "sim/sim_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>

namespace culprit::sim {

namespace {

bool lies_in(const std::string& path, const std::string& folder) {
  return path.size() > folder.size() && path.starts_with(folder) && path[folder.size()] == '/';
}

}  // namespace

class SimFileHandle final : public io::FileHandle {
 public:
  SimFileHandle(SimFiles& files, std::shared_ptr<SimFiles::File> file, std::string path)
      : files_(files), life_(files.life_), file_(std::move(file)), path_(std::move(path)) {}

  Status append(std::string_view bytes) override {
    if (const Status entered = enter(); !entered) {
      // Some bytes may be written, also if the program dies within the call.
      if (entered.error().code != ErrorCode::kDenied)
        file_->bytes.append(bytes.substr(0, files_.random_.below(bytes.size() + 1)));
      return entered;
    }
    const uint64_t room = files_.capacity - std::min(files_.capacity, files_.used());
    file_->bytes.append(bytes.substr(0, room));
    if (bytes.size() <= room) return {};
    return fail(ErrorCode::kIo, fmt::format("{}: no space left on device", path_));
  }
  Result<size_t> read_at(char* out, size_t size, uint64_t offset) override {
    if (const Status entered = enter(); !entered) return tl::unexpected(entered.error());
    const std::string_view bytes = file_->bytes;
    const std::string_view part = bytes.substr(std::min<uint64_t>(offset, bytes.size()), size);
    if (!part.empty()) std::memcpy(out, part.data(), part.size());
    return part.size();
  }
  Status truncate(uint64_t size) override {
    if (const Status entered = enter(); !entered) return entered;
    file_->bytes.resize(size);
    file_->same = std::min<size_t>(file_->same, size);
    return {};
  }
  Status sync() override {
    if (const Status entered = enter(); !entered) return entered;
    file_->synced.resize(file_->same);
    file_->synced.append(file_->bytes, file_->same);
    file_->same = file_->bytes.size();
    return {};
  }
  Result<io::FileStatus> status() override {
    if (const Status entered = enter(); !entered) return tl::unexpected(entered.error());
    return io::FileStatus{file_->bytes.size(), 1, file_->inode, 0};
  }

 private:
  // kDenied: the life has ended; the call changes nothing.
  Status enter() {
    if (life_ != files_.life_ || files_.dead_)
      return fail(ErrorCode::kDenied, path_ + ": the program is dead");
    return files_.enter(path_);
  }

  SimFiles& files_;
  const uint64_t life_;
  const std::shared_ptr<SimFiles::File> file_;
  const std::string path_;
};

Status SimFiles::enter(const std::string& path) {
  if (dead_) return fail(ErrorCode::kDenied, fmt::format("{}: the program is dead", path));
  if (++calls == dies_at) {
    dead_ = true;
    ++life_;
    if (on_death) on_death();
    return fail(ErrorCode::kIo, fmt::format("{}: the program dies", path));
  }
  if (dead_disk || random_.per_mille(failing_per_mille))
    return fail(ErrorCode::kIo, fmt::format("{}: input/output error", path));
  return {};
}

std::string SimFiles::after_power_loss(const File& file) {
  const size_t behind = file.bytes.size() - file.same;
  switch (random_.below(4)) {
    case 0:
      return file.synced;
    case 1:
      return file.bytes;
    case 2:
      return file.bytes.substr(0, file.same + random_.below(behind + 1));
    default: {
      // The file has its full size, but some blocks are missing, usually the last ones.
      std::string torn = file.bytes;
      const size_t from = file.same + random_.below(behind + 1);
      const size_t to = random_.chance(20) ? from + random_.below(torn.size() - from + 1) : torn.size();
      reordered += from < to && to < torn.size();
      std::fill(torn.begin() + static_cast<ptrdiff_t>(from), torn.begin() + static_cast<ptrdiff_t>(to),
                random_.chance(50) ? '\0' : '\xa5');
      return torn;
    }
  }
}

void SimFiles::lose_power() {
  kill();
  Names after;
  for (const auto& [path, file] : synced_names_) {
    const auto now = names_.find(path);
    const bool unchanged = now != names_.end() && now->second == file;
    if (unchanged || random_.chance(50)) after[path] = file;
  }
  for (const auto& [path, file] : names_) {
    const auto known = synced_names_.find(path);
    if ((known == synced_names_.end() || known->second != file) && random_.chance(50)) after[path] = file;
  }
  names_ = synced_names_ = after;
  for (auto& [path, file] : names_) {
    file->bytes = after_power_loss(*file);
    file->synced = file->bytes;
    file->same = file->bytes.size();
  }
}

void SimFiles::remove_all(const std::string& folder) {
  for (Names* names : {&names_, &synced_names_})
    std::erase_if(*names, [&](const auto& entry) { return lies_in(entry.first, folder); });
}

uint64_t SimFiles::used() const {
  uint64_t n = 0;
  for (const auto& [path, file] : names_) n += file->bytes.size();
  return n;
}

std::vector<std::string> SimFiles::paths() const {
  std::vector<std::string> found;
  for (const auto& [path, file] : names_) found.push_back(path);
  return found;
}

Result<std::unique_ptr<io::FileHandle>> SimFiles::open(const std::string& path, io::OpenFor what) {
  if (const Status entered = enter(path); !entered) return tl::unexpected(entered.error());
  auto found = names_.find(path);
  const bool create = what == io::OpenFor::kCreate;
  if ((found != names_.end()) == create)
    return create ? fail(ErrorCode::kIo, fmt::format("{}: file exists", path))
                  : fail(ErrorCode::kNotFound, fmt::format("{}: no such file or directory", path));
  if (create) {
    found = names_.emplace(path, std::make_shared<File>()).first;
    found->second->inode = next_inode_++;
  }
  return std::make_unique<SimFileHandle>(*this, found->second, path);
}

Status SimFiles::rename(const std::string& from, const std::string& to) {
  if (const Status entered = enter(from); !entered) return entered;
  const auto found = names_.find(from);
  if (found == names_.end()) return fail(ErrorCode::kNotFound, fmt::format("{}: no such file", from));
  names_[to] = found->second;
  names_.erase(from);
  return {};
}

Status SimFiles::remove(const std::string& path) {
  if (const Status entered = enter(path); !entered) return entered;
  if (names_.erase(path) == 0) return fail(ErrorCode::kNotFound, fmt::format("{}: no such file", path));
  return {};
}

Status SimFiles::make_folder(const std::string& path) { return enter(path); }

Result<std::vector<std::string>> SimFiles::list(const std::string& folder) {
  if (const Status entered = enter(folder); !entered) return tl::unexpected(entered.error());
  std::vector<std::string> names;
  for (const auto& [path, file] : names_)
    if (lies_in(path, folder)) names.push_back(path.substr(folder.size() + 1));
  return names;
}

Status SimFiles::sync_folder(const std::string& folder) {
  if (const Status entered = enter(folder); !entered) return entered;
  std::erase_if(synced_names_, [&](const auto& entry) {
    return lies_in(entry.first, folder) && !names_.contains(entry.first);
  });
  for (const auto& [path, file] : names_)
    if (lies_in(path, folder)) synced_names_[path] = file;
  return {};
}

Result<io::DiskSpace> SimFiles::space(const std::string& folder) {
  if (const Status entered = enter(folder); !entered) return tl::unexpected(entered.error());
  return io::DiskSpace{capacity - std::min(capacity, used()), used()};
}

}  // namespace culprit::sim
