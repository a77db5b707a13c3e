// A disk in memory that a test fills and damages: failing calls, torn writes, limited space.
#pragma once

#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "io/files.h"

namespace culprit::store::testing {

class MemoryFiles : public io::Files {
 public:
  uint64_t capacity = uint64_t{1} << 40;
  uint64_t others = 0;  // used by other files
  uint64_t calls = 0;
  uint64_t fail_at = 0;          // number of the failing call, from 1; 0: none
  bool fail_for_good = false;    // this call and all later ones
  bool fail_after_all = false;   // a failing append writes all bytes; else the first half
  std::set<std::string> broken;  // these operations always fail
  std::function<bool(const std::string& operation)> intercept;  // whether this call fails

  std::string& bytes(const std::string& path) { return *files_.at(path); }
  void put(const std::string& path, std::string content) {
    files_[path] = std::make_shared<std::string>(std::move(content));
  }
  std::vector<std::string> paths() const {
    std::vector<std::string> found;
    for (const auto& [path, file] : files_) found.push_back(path);
    return found;
  }
  void heal() { fail_at = 0, fail_for_good = false, fail_after_all = false, broken.clear(); }

  Result<std::unique_ptr<io::FileHandle>> open(const std::string& path, io::OpenFor what) override {
    if (fails("open")) return failure(path);
    const bool there = files_.count(path) > 0;
    if (there == (what == io::OpenFor::kCreate))
      return culprit::fail(there ? ErrorCode::kIo : ErrorCode::kNotFound, path + ": not so");
    if (!there) put(path, "");
    return std::make_unique<Handle>(*this, files_.at(path), path);
  }
  Status rename(const std::string& from, const std::string& to) override {
    if (fails("rename")) return failure(from);
    files_[to] = files_.at(from);
    files_.erase(from);
    return {};
  }
  Status remove(const std::string& path) override {
    if (fails("remove")) return failure(path);
    if (files_.erase(path) == 0) return culprit::fail(ErrorCode::kNotFound, path + ": no such file");
    return {};
  }
  Status make_folder(const std::string& path) override {
    return fails("make_folder") ? Status(failure(path)) : Status{};
  }
  Result<std::vector<std::string>> list(const std::string& folder) override {
    if (fails("list")) return failure(folder);
    std::vector<std::string> names;
    for (const auto& [path, file] : files_)
      if (path.starts_with(folder + "/")) names.push_back(path.substr(folder.size() + 1));
    return names;
  }
  Status sync_folder(const std::string& folder) override {
    return fails("sync_folder") ? Status(failure(folder)) : Status{};
  }
  Result<io::DiskSpace> space(const std::string& folder) override {
    if (fails("space")) return failure(folder);
    return io::DiskSpace{capacity - std::min(capacity, used()), used()};
  }
  uint64_t used() const {
    uint64_t n = others;
    for (const auto& [path, file] : files_) n += file->size();
    return n;
  }

 private:
  class Handle : public io::FileHandle {
   public:
    Handle(MemoryFiles& files, std::shared_ptr<std::string> file, std::string path)
        : files_(files), file_(std::move(file)), path_(std::move(path)) {}
    Status append(std::string_view bytes) override {
      if (files_.fails("append")) {
        file_->append(bytes.substr(0, files_.fail_after_all ? bytes.size() : bytes.size() / 2));
        return failure(path_);
      }
      const uint64_t room = files_.capacity - std::min(files_.capacity, files_.used());
      file_->append(bytes.substr(0, room));
      return bytes.size() > room ? Status(failure(path_)) : Status{};
    }
    Result<size_t> read_at(char* out, size_t size, uint64_t offset) override {
      if (files_.fails("read_at")) return failure(path_);
      const std::string_view part = std::string_view(*file_).substr(std::min(offset, file_->size()), size);
      std::memcpy(out, part.data(), part.size());
      return part.size();
    }
    Status truncate(uint64_t size) override {
      if (files_.fails("truncate")) return failure(path_);
      file_->resize(size);
      return {};
    }
    Status sync() override { return files_.fails("sync") ? Status(failure(path_)) : Status{}; }
    Result<io::FileStatus> status() override {
      if (files_.fails("status")) return failure(path_);
      return io::FileStatus{file_->size(), 1, 1, 0};
    }

   private:
    MemoryFiles& files_;
    std::shared_ptr<std::string> file_;
    std::string path_;
  };

  static tl::unexpected<Error> failure(const std::string& path) {
    return culprit::fail(ErrorCode::kIo, path + ": input/output error");
  }
  bool fails(const char* operation) {
    calls += 1;
    return (intercept && intercept(operation)) || broken.count(operation) > 0 ||
           (fail_at != 0 && (calls == fail_at || (fail_for_good && calls > fail_at)));
  }

  std::map<std::string, std::shared_ptr<std::string>> files_;
};

}  // namespace culprit::store::testing
