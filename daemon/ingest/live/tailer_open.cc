#include "ingest/live/tailer_open.h"

#include <algorithm>
#include <utility>

namespace culprit::ingest {

void OpenFiles::update(TailSource& source) {
  size_t count = 0;
  for (const Generation& generation : source.chain)
    count += generation.file.is_open() + (generation.decoder != nullptr);
  count += source.late.size();
  count_ += count - source.descriptors;
  source.descriptors = count;
  if (source.held) order_.erase(*source.held);
  source.held.reset();
  if (count > 0) source.held = order_.insert(order_.end(), source.number);
  while (count_ > max_ && order_.front() != source.number) close_all(sources_[order_.front()]);
}

void OpenFiles::adapt(bool shortage) {
  max_ = shortage ? std::max<size_t>(1, std::min(max_, count_) / 2) : std::min(most_, max_ + 1);
  while (count_ > max_) close_all(sources_[order_.front()]);
}

void OpenFiles::close_all(TailSource& source) {
  for (Generation& generation : source.chain) {
    generation.file = Descriptor();
    generation.decoder.reset();
  }
  for (const LateFile& late : source.late) note_rest(source, late);
  if (!std::exchange(source.late, {}).empty()) source.next_late = 0;
  count_ -= source.descriptors;
  source.descriptors = 0;
  if (source.held) order_.erase(*source.held);
  source.held.reset();
}

void OpenFiles::note_rest(TailSource& source, const LateFile& late) {
  const uint64_t unread = late.generation.unread();
  Look at;
  if (unread == 0 || (look_at(late.generation.file.get(), at) == 0 && at.linked)) return;
  output_.note_gap(source, {unread, 0, "the rotated file was removed before its rest was read"});
}

}  // namespace culprit::ingest
