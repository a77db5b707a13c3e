// Parses texts on a second thread before the ingesting thread needs them. A parsed text is used only for the
// bytes and the source that it was parsed for. Parsing depends on nothing else, so results are the same as
// without the second thread.
//
// Owner: LiveParsing. One thread calls it. A text belongs to the thread that parses it, and is passed on
// under the mutex.
#pragma once

#include <algorithm>
#include <array>
#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string_view>
#include <vector>

#include "app/jobs/task_thread.h"
#include "core/logs/batch.h"
#include "core/logs/line_parser.h"
#include "model/batch.h"

namespace culprit::app {

class ParseAhead {
 public:
  struct Text {
    std::string_view bytes;  // whole lines; borrowed until the text is dropped
    SourceInfo source;
  };
  using MakeParser = std::function<std::unique_ptr<logs::LineParser>()>;

  ParseAhead() = default;
  ~ParseAhead() { keep_last(0); }
  ParseAhead(const ParseAhead&) = delete;
  ParseAhead& operator=(const ParseAhead&) = delete;

  // Appends texts that will be parsed in order. The first call makes the second thread's parser.
  void add(std::vector<Text> texts, const MakeParser& make_parser);
  // Puts the parsed chunk into `out`. While the second thread still parses this chunk, later texts are parsed
  // here with `own`. False: the caller parses the chunk. Drops the chunk's text and earlier ones.
  bool take(const TextChunk& chunk, const SourceInfo& source, logs::LineParser& own, logs::LogBatch& out);
  // Drops all texts but the last `count`.
  void keep_last(size_t count);
  // Drops all texts, and frees the thread, its parser and its memory.
  void release();

 private:
  enum class State : uint8_t { kWaits, kParsing, kParsed, kFailed };
  struct Item {
    Text text;
    State state = State::kWaits;
  };
  // Limit of parsed texts that wait: takes the memory of a few pieces, and suffices for a slow step.
  static constexpr size_t kParsedMax = 3;

  void work();
  bool may_parse() const { return next_ < first_ + std::min(items_.size(), kParsedMax); }
  void parse_next(std::unique_lock<std::mutex>& lock, logs::LineParser& parser);
  void drop(std::unique_lock<std::mutex>& lock, size_t count);
  logs::LogBatch& batch_of(size_t number) { return batches_[number % kParsedMax]; }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Item> items_;
  size_t first_ = 0;  // the number of items_[0]
  size_t next_ = 0;   // number of the first waiting item
  bool works_ = false, ends_ = false;
  std::array<logs::LogBatch, kParsedMax> batches_;
  std::unique_ptr<logs::LineParser> parser_;  // parser of the second thread
  std::unique_ptr<TaskThread> thread_;
};

}  // namespace culprit::app
