#include "ingest/live/tailer_table.h"

#include <algorithm>
#include <utility>

#include "base/hash.h"

namespace culprit::ingest {
namespace {

uint64_t key_of(uint64_t device, uint64_t inode) { return mix64(device, inode); }

}  // namespace

TailSource& SourceTable::add(std::unique_ptr<TailSource> made) {
  TailSource& source = *made;
  source.number = free_.empty() ? static_cast<uint32_t>(sources_.size()) : free_.back();
  if (free_.empty()) {
    sources_.push_back(std::move(made));
  } else {
    free_.pop_back();
    sources_[source.number] = std::move(made);
  }
  const auto [at, fresh] = by_name_.try_emplace(source.name, source.number);
  if (!fresh && !source.ended) at->second = source.number;
  for (const FilePlace& place : source.past) index(source, place);
  for (const Generation& generation : source.chain) index(source, generation.place);
  return source;
}

void SourceTable::remove(TailSource& source) {
  const uint32_t number = source.number;
  for (const FilePlace& place : std::exchange(source.past, {})) unindex(source, place);
  const auto named = by_name_.find(source.name);
  if (named != by_name_.end() && named->second == number) by_name_.erase(named);
  sources_[number].reset();
  free_.push_back(number);
}

TailSource* SourceTable::at(const std::string& name) const {
  const auto found = by_name_.find(name);
  return found == by_name_.end() ? nullptr : sources_[found->second].get();
}

TailSource* SourceTable::owner_of(const std::string& name, const Look& look) const {
  Descriptor file;
  const auto is = [&](const FilePlace& place) {
    if (!same_file(place, look) || look.size < place.offset) return false;
    if (!file.is_open() && root_.open_file(name, file) != 0) return false;
    return begins_as(beginning_of(file, Compression::kNone), place) &&
           reaches(file, Compression::kNone, place) == Reach::kWhole;
  };
  const auto [first, last] = by_inode_.equal_range(key_of(look.device, look.inode));
  for (auto at = first; at != last; ++at) {
    TailSource* source = sources_[at->second].get();
    if (source == nullptr) continue;
    for (const Generation& generation : source->chain)
      if (same_file(generation.place, look) && (generation.file.is_open() || is(generation.place)))
        return source;
    for (const LateFile& late : source->late)
      if (same_file(late.generation.place, look)) return source;
    for (const FilePlace& place : source->past)
      if (place.offset > 0 && is(place)) return source;
  }
  return nullptr;
}

bool SourceTable::is_followed(const FilePlace& place) const {
  const auto is = [&](const FilePlace& other) {
    return other.device == place.device && other.inode == place.inode;
  };
  const auto [first, last] = by_inode_.equal_range(key_of(place.device, place.inode));
  for (auto at = first; at != last; ++at) {
    const TailSource* source = sources_[at->second].get();
    if (source == nullptr) continue;
    for (const Generation& generation : source->chain)
      if (is(generation.place)) return true;
    for (const LateFile& late : source->late)
      if (is(late.generation.place)) return true;
  }
  return false;
}

void SourceTable::push(TailSource& source, Generation generation) {
  index(source, generation.place);
  source.chain.push_back(std::move(generation));
}

void SourceTable::remember(TailSource& source, const FilePlace& place) {
  if (place.offset == 0) return;
  if (source.past.size() == kPastPlaces) {
    const FilePlace oldest = source.past.front();
    source.past.erase(source.past.begin());
    unindex(source, oldest);
  }
  source.past.push_back(place);
  index(source, place);
}

void SourceTable::move_to(TailSource& source, Generation& generation, const Look& look) {
  const FilePlace before = generation.place;
  generation.place.device = look.device;
  generation.place.inode = look.inode;
  unindex(source, before);
  index(source, generation.place);
}

void SourceTable::index(const TailSource& source, const FilePlace& place) {
  const uint64_t key = key_of(place.device, place.inode);
  const auto [first, last] = by_inode_.equal_range(key);
  if (std::none_of(first, last, [&](const auto& item) { return item.second == source.number; }))
    by_inode_.emplace(key, source.number);
}

// Unless another generation of the source has that inode.
void SourceTable::unindex(const TailSource& source, const FilePlace& place) {
  const auto has = [&](const FilePlace& other) {
    return other.device == place.device && other.inode == place.inode;
  };
  if (std::any_of(source.past.begin(), source.past.end(), has)) return;
  for (const Generation& generation : source.chain)
    if (has(generation.place)) return;
  const auto [first, last] = by_inode_.equal_range(key_of(place.device, place.inode));
  for (auto at = first; at != last; ++at) {
    if (at->second != source.number) continue;
    by_inode_.erase(at);
    return;
  }
}

}  // namespace culprit::ingest
