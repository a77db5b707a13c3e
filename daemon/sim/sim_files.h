// A disk of a simulated machine, as io::Files: in memory, with a limited size and the effects of a real disk
// on unsynced data. It outlives the machine's programs.
//
// kill() is the end of a program: its handles have no effect any more, and written data stays. lose_power()
// decides at random which bytes after a file's last sync remain: all, none, a part, or a part and garbage.
// Each name that the folder's last sync did not cover may vanish.
//
// One thread. Folders are not objects: a folder is a prefix of file paths.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "io/files.h"
#include "sim/random.h"

namespace culprit::sim {

class SimFiles final : public io::Files {
 public:
  explicit SimFiles(uint64_t seed) : random_(seed) {}

  uint64_t capacity = uint64_t{1} << 40;
  uint32_t failing_per_mille = 0;  // calls that fail once; a failed append writes a part of its bytes
  bool dead_disk = false;          // all calls fail
  uint64_t calls = 0;
  uint64_t reordered = 0;  // power losses that left garbage before correctly written bytes
  // Number of the call (as in `calls`) within which the program dies; an append may write a part of its
  // bytes. 0: never.
  uint64_t dies_at = 0;
  std::function<void()> on_death;  // called within the call: disables the objects of this life

  void kill() { ++life_; }
  void lose_power();
  // Another program starts on the disk.
  void begin_life() { dead_ = false, dies_at = 0; }
  void remove_all(const std::string& folder);

  uint64_t used() const;
  std::vector<std::string> paths() const;

  Result<std::unique_ptr<io::FileHandle>> open(const std::string& path, io::OpenFor what) override;
  Status rename(const std::string& from, const std::string& to) override;
  Status remove(const std::string& path) override;
  Status make_folder(const std::string& path) override;
  Result<std::vector<std::string>> list(const std::string& folder) override;
  Status sync_folder(const std::string& folder) override;
  Result<io::DiskSpace> space(const std::string& folder) override;

 private:
  friend class SimFileHandle;
  struct File {
    std::string bytes;   // as programs see it
    std::string synced;  // the least content after a power loss
    size_t same = 0;     // length of the common prefix of both
    uint64_t inode = 0;
  };
  using Names = std::map<std::string, std::shared_ptr<File>>;

  Status enter(const std::string& path);
  std::string after_power_loss(const File& file);

  Random random_;
  Names names_, synced_names_;
  uint64_t life_ = 0, next_inode_ = 1;
  bool dead_ = false;
};

}  // namespace culprit::sim
