// The system's files (or others) with failures at chosen calls. All calls of Files and of its handles are
// counted together; closing never fails.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "io/files.h"
#include "io/system_error.h"

namespace culprit::io::testing {

class FailingFiles : public Files {
 public:
  explicit FailingFiles(Files& inner = real_files()) : inner_(inner) {}

  // The `nth` call from now on (1: the next) fails with `code` of errno, and with `for_good` all after it.
  void fail(uint64_t nth, int code, bool for_good = false) {
    fail_at_ = calls_ + nth, code_ = code, for_good_ = for_good;
  }
  // Like fail(), but only for the calls named `name`: "append", "sync", "open", "rename", "remove",
  // "make_folder", "list", "sync_folder", "space", "read_at", "truncate", "status".
  void fail(const std::string& name, uint64_t nth, int code, bool for_good = false) {
    named_[name] = {by_name_[name] + nth, code, for_good};
  }
  // The `nth` append from now on writes `retained` bytes and fails.
  void tear(uint64_t nth, size_t retained, int code) {
    tear_at_ = by_name_["append"] + nth, retained_ = retained, tear_code_ = code;
  }
  void heal() { fail_at_ = tear_at_ = 0, for_good_ = false, named_.clear(); }
  uint64_t calls() const { return calls_; }

  Result<std::unique_ptr<FileHandle>> open(const std::string& path, OpenFor what) override {
    if (const int code = next("open")) return system_failure(path, code);
    auto file = inner_.open(path, what);
    if (!file) return tl::unexpected(file.error());
    return std::make_unique<Handle>(*this, std::move(*file), path);
  }
  Status rename(const std::string& from, const std::string& to) override {
    if (const int code = next("rename")) return system_failure(from, code);
    return inner_.rename(from, to);
  }
  Status remove(const std::string& path) override {
    if (const int code = next("remove")) return system_failure(path, code);
    return inner_.remove(path);
  }
  Status make_folder(const std::string& path) override {
    if (const int code = next("make_folder")) return system_failure(path, code);
    return inner_.make_folder(path);
  }
  Result<std::vector<std::string>> list(const std::string& folder) override {
    if (const int code = next("list")) return system_failure(folder, code);
    return inner_.list(folder);
  }
  Status sync_folder(const std::string& folder) override {
    if (const int code = next("sync_folder")) return system_failure(folder, code);
    return inner_.sync_folder(folder);
  }
  Result<DiskSpace> space(const std::string& folder) override {
    if (const int code = next("space")) return system_failure(folder, code);
    return inner_.space(folder);
  }

 private:
  class Handle : public FileHandle {
   public:
    Handle(FailingFiles& files, std::unique_ptr<FileHandle> inner, std::string path)
        : files_(files), inner_(std::move(inner)), path_(std::move(path)) {}
    Status append(std::string_view bytes) override {
      if (const int code = files_.next("append")) return system_failure(path_, code);
      if (files_.tear_at_ == 0 || files_.by_name_["append"] != files_.tear_at_) return inner_->append(bytes);
      if (Status status = inner_->append(bytes.substr(0, files_.retained_)); !status) return status;
      return system_failure(path_, files_.tear_code_);
    }
    Result<size_t> read_at(char* out, size_t size, uint64_t offset) override {
      if (const int code = files_.next("read_at")) return system_failure(path_, code);
      return inner_->read_at(out, size, offset);
    }
    Status truncate(uint64_t size) override {
      if (const int code = files_.next("truncate")) return system_failure(path_, code);
      return inner_->truncate(size);
    }
    Status sync() override {
      if (const int code = files_.next("sync")) return system_failure(path_, code);
      return inner_->sync();
    }
    Result<FileStatus> status() override {
      if (const int code = files_.next("status")) return system_failure(path_, code);
      return inner_->status();
    }

   private:
    FailingFiles& files_;
    std::unique_ptr<FileHandle> inner_;
    std::string path_;
  };

  struct Failure {
    uint64_t at = 0;
    int code = 0;
    bool for_good = false;
  };

  // The failure of the call that begins now, or 0.
  int next(const std::string& name) {
    ++calls_;
    const uint64_t nth = ++by_name_[name];
    if (fail_at_ != 0 && (calls_ == fail_at_ || (for_good_ && calls_ > fail_at_))) return code_;
    const auto found = named_.find(name);
    if (found == named_.end()) return 0;
    const Failure& failure = found->second;
    return nth == failure.at || (failure.for_good && nth > failure.at) ? failure.code : 0;
  }

  Files& inner_;
  uint64_t calls_ = 0, fail_at_ = 0, tear_at_ = 0;
  int code_ = 0, tear_code_ = 0;
  bool for_good_ = false;
  size_t retained_ = 0;
  std::map<std::string, uint64_t> by_name_;
  std::map<std::string, Failure> named_;
};

}  // namespace culprit::io::testing
