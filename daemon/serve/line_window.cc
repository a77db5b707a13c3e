#include "serve/line_window.h"

#include <algorithm>

#include "base/check.h"
#include "base/text.h"
#include "model/json_writer.h"

namespace culprit::serve {

LineWindow::LineWindow(uint64_t line, uint64_t around)
    : line_(std::max<uint64_t>(line, 1)),
      first_(line_ - std::min(line_ - 1, std::min(around, kAroundMax))),
      last_(line_ + std::min({around, kAroundMax, UINT64_MAX - line_})) {
  CULPRIT_CHECK(first_ >= 1 && first_ <= line_ && line_ <= last_);
}

void LineWindow::add(std::string_view bytes, bool gap) {
  if (done()) return;
  sure_ = sure_ && !gap;
  while (!bytes.empty() && !done()) {
    const size_t end = bytes.find('\n');
    const size_t size = end == std::string_view::npos ? bytes.size() : end + 1;
    if (number_ >= first_) take(bytes.substr(0, std::min(size, end)));
    read_ += size;
    bytes.remove_prefix(size);
    if (end == std::string_view::npos) continue;
    if (number_ >= first_) to_ = read_;
    ++number_;
    if (number_ == first_) from_ = read_;
  }
}

void LineWindow::take(std::string_view part) {
  CULPRIT_CHECK(number_ >= first_ && number_ <= last_);
  const auto at = static_cast<size_t>(number_ - first_);
  if (lines_.size() <= at) lines_.resize(at + 1), cut_.resize(at + 1);
  const size_t retained = std::min(part.size(), kLineBytes - std::min(kLineBytes, lines_[at].size()));
  lines_[at] += part.substr(0, retained);
  cut_[at] += part.size() - retained;
  to_ = read_ + part.size();
}

std::string LineWindow::finish() {
  JsonWriter w;
  w.object([&] {
    w.field("line", line_);
    w.field("first", first_);
    w.list("lines", lines_, [&](const std::string& line) { w.write(to_utf8(line)); });
    w.values("cut", cut_);
    w.field("from_byte", from_);
    w.field("to_byte", std::max(from_, to_));
    w.field("sure", sure_);
  });
  return w.finish();
}

}  // namespace culprit::serve
