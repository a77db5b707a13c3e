// Folders of rings, and their content, for tests of tracers. Single-threaded.
#pragma once

#include <culprit/ring.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

namespace culprit::testing {

class Folder {
 public:
  Folder() {
    char name[] = "/tmp/culprit-tracer-XXXXXX";
    if (!mkdtemp(name)) std::abort();
    path_ = name;
  }
  ~Folder() { std::filesystem::remove_all(path_); }
  Folder(const Folder&) = delete;
  const std::string& path() const { return path_; }

  std::vector<std::string> files(const std::string& ending) const {
    std::vector<std::string> found;
    for (const auto& entry : std::filesystem::directory_iterator(path_))
      if (entry.path().string().ends_with(ending)) found.push_back(entry.path().string());
    return found;
  }

 private:
  std::string path_;
};

inline std::string bytes_of(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

inline std::vector<culprit_record> records_at(const std::string& bytes, size_t offset, size_t count) {
  std::vector<culprit_record> records(count);
  if (count) std::memcpy(records.data(), bytes.data() + offset, count * sizeof(culprit_record));
  return records;
}

// Of all rings of the folder, each in order. The rings have all records since their creation.
inline std::vector<culprit_record> ring_records(const Folder& folder) {
  std::vector<culprit_record> all;
  for (const std::string& path : folder.files(".ring")) {
    const std::string bytes = bytes_of(path);
    uint64_t written = 0;
    std::memcpy(&written, bytes.data() + offsetof(culprit_ring_header, written), sizeof written);
    for (const culprit_record& record : records_at(bytes, sizeof(culprit_ring_header), written))
      all.push_back(record);
  }
  return all;
}

inline std::vector<culprit_record> comm_file_records(const std::string& path) {
  const std::string bytes = bytes_of(path);
  return bytes.size() < 128 ? std::vector<culprit_record>{}
                            : records_at(bytes, 128, (bytes.size() - 128) / sizeof(culprit_record));
}

}  // namespace culprit::testing
