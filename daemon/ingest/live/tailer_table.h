// The sources of a tailer by number, by path and by the inodes of their files. Owns the sources; an ended
// source stays while files of it may exist. Borrows the root folder; the tailer's thread.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "ingest/live/safe_open.h"
#include "ingest/live/tailer_source.h"

namespace culprit::ingest {

class SourceTable {
 public:
  explicit SourceTable(const SafeFolder& root) : root_(root) {}

  // Assigns a free number. If a path ended and reappeared, the path belongs to the later source.
  TailSource& add(std::unique_ptr<TailSource> source);
  // An ended source; also forgets its files.
  void remove(TailSource& source);
  size_t count() const { return sources_.size() - free_.size(); }

  TailSource& operator[](uint32_t number) { return *sources_[number]; }
  // Null if the number or the path has no source.
  TailSource* get(uint32_t number) const { return sources_[number].get(); }
  TailSource* at(const std::string& name) const;
  // By number; null entries are free.
  const std::vector<std::unique_ptr<TailSource>>& all() const { return sources_; }

  // The source that has this file as a generation, by identity and beginning.
  TailSource* owner_of(const std::string& name, const Look& look) const;
  // Whether a file is being read, for any source.
  bool is_followed(const FilePlace& place) const;

  // Adds the newest generation of a source.
  void push(TailSource& source, Generation generation);
  // Keeps the final position in a file that the source has left.
  void remember(TailSource& source, const FilePlace& place);
  // The content of a generation of the source was found in this file.
  void move_to(TailSource& source, Generation& generation, const Look& look);

 private:
  void index(const TailSource& source, const FilePlace& place);
  void unindex(const TailSource& source, const FilePlace& place);

  const SafeFolder& root_;
  std::vector<std::unique_ptr<TailSource>> sources_;
  std::vector<uint32_t> free_;                         // free indices of sources_
  std::unordered_map<std::string, uint32_t> by_name_;  // the latest source of a path
  std::unordered_multimap<uint64_t, uint32_t> by_inode_;
};

}  // namespace culprit::ingest
