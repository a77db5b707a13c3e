#include "app/jobs/parse_ahead.h"

#include <algorithm>
#include <new>
#include <utility>

namespace culprit::app {

void ParseAhead::add(std::vector<Text> texts, const MakeParser& make_parser) {
  if (texts.empty()) return;
  if (!parser_) parser_ = make_parser();
  if (!thread_) thread_ = std::make_unique<TaskThread>();
  {
    const std::lock_guard lock(mutex_);
    for (Text& text : texts) items_.push_back({std::move(text)});
    changed_.notify_one();
  }
  if (!std::exchange(works_, true)) thread_->start([this] { work(); });
}

void ParseAhead::work() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [&] { return ends_ || may_parse(); });
    if (ends_) return;
    parse_next(lock, *parser_);
  }
}

void ParseAhead::parse_next(std::unique_lock<std::mutex>& lock, logs::LineParser& parser) {
  const size_t number = next_++;
  Item& item = items_[number - first_];
  item.state = State::kParsing;
  lock.unlock();
  bool parsed = true;
  try {
    const std::string_view bytes = item.text.bytes;
    parser.parse({0, 0, 0, bytes, bytes.size(), false}, item.text.source, batch_of(number));
  } catch (const std::bad_alloc&) {
    parsed = false;
  }
  lock.lock();
  item.state = parsed ? State::kParsed : State::kFailed;
  changed_.notify_one();
}

bool ParseAhead::take(const TextChunk& chunk, const SourceInfo& source, logs::LineParser& own,
                      logs::LogBatch& out) {
  if (!works_) return false;
  std::unique_lock lock(mutex_);
  const auto known = std::find_if(items_.begin(), items_.end(), [&](const Item& item) {
    const std::string_view bytes = item.text.bytes;
    return bytes.data() == chunk.bytes.data() && bytes.size() == chunk.bytes.size();
  });
  if (known == items_.end()) return false;
  drop(lock, static_cast<size_t>(known - items_.begin()));
  const Item& item = items_.front();
  while (item.state == State::kParsing && may_parse()) parse_next(lock, own);
  changed_.wait(lock, [&] { return item.state != State::kParsing; });
  const bool parsed = item.state == State::kParsed && item.text.source == source;
  if (parsed) {
    std::swap(out, batch_of(first_));
    out.source = chunk.source;
    out.index = chunk.index;
    out.offset = chunk.offset;
    out.range_bytes = chunk.range_bytes;
    out.last = chunk.last;
  }
  drop(lock, 1);
  return parsed;
}

// Drops the first `count` items.
void ParseAhead::drop(std::unique_lock<std::mutex>& lock, size_t count) {
  for (; count > 0; --count) {
    const Item& item = items_.front();
    changed_.wait(lock, [&] { return item.state != State::kParsing; });
    items_.pop_front();
    next_ = std::max(next_, ++first_);
  }
  changed_.notify_one();
}

void ParseAhead::keep_last(size_t count) {
  if (!works_) return;
  std::unique_lock lock(mutex_);
  drop(lock, items_.size() - std::min(items_.size(), count));
  if (!items_.empty()) return;
  ends_ = true;
  changed_.notify_one();
  lock.unlock();
  thread_->wait();
  works_ = ends_ = false;
}

void ParseAhead::release() {
  keep_last(0);
  thread_.reset();
  parser_.reset();
  batches_ = {};
}

}  // namespace culprit::app
