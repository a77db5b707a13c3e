// A disk of a simulated machine, as io::Files: in memory, with an end, and with what a real one does to data
// that were not synced. It outlives the machine's programs.
//
// kill() is the end of a program: its handles do nothing any more, and what was written stands. lose_power()
// draws, for each file, what of the bytes behind its last sync is there afterwards (all, none, a part, a part
// and rubbish), and for each name that its folder's last sync did not know, whether it stands.
//
// One thread. It does not know folders: they are where a file's path begins so.
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
  uint32_t failing_per_mille = 0;  // calls that fail once; an append of them leaves a part of it
  bool dead_disk = false;          // all fail
  uint64_t calls = 0;
  uint64_t reordered = 0;  // losses of power that left rubbish before bytes that are as they were written
  // The program dies within this call, counted as `calls`: an append may leave a part of its bytes. 0: none.
  uint64_t dies_at = 0;
  std::function<void()> on_death;  // from within the call: mark what must do nothing any more

  void kill() { ++life_; }
  void lose_power();
  // Another program begins on the disk.
  void begin_life() { dead_ = false, dies_at = 0; }
  void remove_all(const std::string& folder);
  // One bit of a file, in what is synced too.
  void flip_bit(const std::string& path, uint64_t bit);

  uint64_t used() const;
  uint64_t syncs() const { return syncs_; }
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
    std::string synced;  // as it is after a loss of power, at least
    size_t same = 0;     // that both have in common
    uint64_t inode = 0;
  };
  using Names = std::map<std::string, std::shared_ptr<File>>;

  Status enter(const std::string& path);
  std::string after_power_loss(const File& file);

  Random random_;
  Names names_, synced_names_;
  uint64_t life_ = 0, next_inode_ = 1, syncs_ = 0;
  bool dead_ = false;
};

}  // namespace culprit::sim
