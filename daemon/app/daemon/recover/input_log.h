// The record of the controller's inputs, "recover.inputs" in the ledger's folder: lines of
// core/recover/recording, in parts of bounded size. A part that cannot be written is a gap in the record; the
// controller goes on.
//
// Lines are made on the loop and written by take() on a worker. Bounded: 64 MiB of files, 16 MiB of memory.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "core/recover/recording.h"
#include "store/parts_file.h"
#include "store/recovery_store.h"

namespace culprit::app {

class InputLog {
 public:
  static constexpr uint32_t kParts = 4;
  static constexpr size_t kPartBytes = size_t{16} << 20;
  static constexpr size_t kUnwritten = size_t{16} << 20;

  explicit InputLog(const std::string& path) : file_(std::make_shared<File>(path)) {}

  // The controller begins: its options, and the rows that it loads. `lost_ns`: as for lost_ledger(), or
  // kNoTime.
  void begin(const recover::ControllerOptions& options, const store::RecoveryRows& rows, TimeNs now,
             TimeNs lost_ns);
  void step(std::span<const recover::Input> inputs, TimeNs now, std::span<const recover::Order> orders);

  // What is to be written: run it on a worker. It owns all that it uses.
  std::function<void()> take();
  // The error of the latest write; empty: none.
  std::string trouble() const;

 private:
  struct Chunk {
    bool new_part = false;
    std::string text;
  };
  struct File {
    explicit File(const std::string& path) : parts(path, kParts) {}
    store::PartsFile parts;
    bool failed = false;  // a gap is to be written first; the worker's
    mutable std::mutex mutex;
    std::string trouble;
  };
  static void write(File& file, const std::vector<Chunk>& chunks);
  void add(std::string line);
  void begin_part();

  std::shared_ptr<File> file_;
  recover::InputRecorder recorder_;
  std::vector<Chunk> chunks_;
  TimeNs began_ns_ = kNoTime;
  uint32_t part_ = 0;
  size_t part_bytes_ = 0, unwritten_ = 0;
  bool dropped_ = false;
};

}  // namespace culprit::app
