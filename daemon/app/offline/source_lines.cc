#include "app/offline/source_lines.h"

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <tuple>
#include <utility>

#include "ingest/source_list.h"
#include "ingest/text_reader.h"

namespace culprit::app {
namespace {

// Limits: places of the verdict, places of each other diagnosis, and diagnoses with places.
constexpr size_t kOfVerdict = 20, kOfOthers = 3, kDiagnoses = 20;

auto order_of(const LinePlace& p) { return std::tie(p.file, p.host, p.line); }

SourceLines window_at(const LinePlace& p) {
  SourceLines out;
  out.host = p.host;
  out.file = p.file;
  out.first = p.line > kLinesAround ? p.line - kLinesAround : 1;
  out.here = {p.line};
  out.lines.resize(p.line + kLinesAround - out.first + 1);
  return out;
}

// Takes lines of a text in order and assigns each to the windows of its file that contain its number.
class WindowFiller {
 public:
  explicit WindowFiller(std::vector<SourceLines*> windows) : windows_(std::move(windows)) {
    for (const SourceLines* w : windows_) last_ = std::max(last_, w->first + w->lines.size() - 1);
    for (SourceLines* w : windows_) w->cut.assign(w->lines.size(), 0);
  }

  bool done() const { return number_ > last_; }
  uint64_t number() const { return number_; }  // number of the next line

  // Adds whole lines; only the text's last line may be incomplete.
  void add(std::string_view text) {
    while (!text.empty() && !done()) {
      const size_t end = std::min(text.find('\n'), text.size());
      take(text.substr(0, end));
      ++number_;
      text.remove_prefix(std::min(end + 1, text.size()));
    }
  }

 private:
  void take(std::string_view line) {
    for (SourceLines* w : windows_) {
      if (number_ < w->first || number_ >= w->first + w->lines.size()) continue;
      const size_t at = number_ - w->first, retained = std::min(line.size(), kContextLineBytes);
      w->lines[at].assign(line.substr(0, retained));
      w->cut[at] = line.size() - retained;
    }
  }

  std::vector<SourceLines*> windows_;
  uint64_t number_ = 1, last_ = 0;
};

// Whether the windows of this file were reached. `left`: bytes that may still be read.
uint64_t fill(const std::string& path, WindowFiller& filler, const ReadProgress& progress, uint64_t left) {
  std::error_code error;
  if (!std::filesystem::is_regular_file(path, error)) return left;  // a stream is read once
  const ingest::SourceList list = ingest::list_sources({path});
  if (list.files.size() != 1 || list.files[0].stream) return left;
  auto reader = ingest::StreamReader::open(list.files[0]);
  if (!reader) return left;
  while (!filler.done() && left > 0 && !progress.stop) {
    const auto chunk = reader->next();
    if (!chunk) break;
    filler.add(chunk->bytes);
    left -= std::min<uint64_t>(left, chunk->bytes.size());
    if (chunk->last) break;
  }
  return left;
}

}  // namespace

std::vector<LinePlace> places_shown(const Report& report) {
  std::vector<LinePlace> out;
  size_t diagnoses = 0;
  for (size_t i = 0; i < report.diagnoses.size() && diagnoses < kDiagnoses; ++i) {
    const bool leads = report.verdict ? i == *report.verdict : i == 0;
    size_t left = leads ? kOfVerdict : kOfOthers;
    const size_t before = out.size();
    for (const Evidence& e : report.diagnoses[i].evidence)
      if (e.line && *e.line > 0 && left > 0) out.push_back({e.host, e.file, *e.line}), --left;
    diagnoses += out.size() > before;
  }
  return out;
}

std::vector<SourceLines> windows_around(std::vector<LinePlace> places) {
  std::sort(places.begin(), places.end(),
            [](const auto& a, const auto& b) { return order_of(a) < order_of(b); });
  std::vector<SourceLines> out;
  for (const LinePlace& p : places) {
    SourceLines next = window_at(p);
    if (out.empty() || out.back().file != p.file || out.back().host != p.host ||
        next.first > out.back().first + out.back().lines.size()) {
      out.push_back(std::move(next));
      continue;
    }
    SourceLines& to = out.back();
    to.lines.resize(std::max(to.lines.size(), next.first + next.lines.size() - to.first));
    if (to.here.back() != p.line) to.here.push_back(p.line);
  }
  return out;
}

WindowsRead read_windows(std::vector<SourceLines> windows, const ReadProgress& progress, uint64_t bytes_max) {
  WindowsRead out;
  for (size_t i = 0; i < windows.size();) {
    std::vector<SourceLines*> of_file;
    size_t end = i;
    for (; end < windows.size() && windows[end].file == windows[i].file; ++end)
      of_file.push_back(&windows[end]);
    WindowFiller filler(of_file);
    bytes_max = fill(windows[i].file, filler, progress, bytes_max);
    for (; i < end; ++i) {
      SourceLines& w = windows[i];
      // A file may end within a window.
      const uint64_t there = filler.number() > w.first ? filler.number() - w.first : 0;
      if (there < w.lines.size()) w.lines.resize(there), w.cut.resize(there);
      if (w.first + w.lines.size() <= w.here.back())
        ++out.left_out;
      else
        out.windows.push_back(std::move(w));
    }
  }
  return out;
}

}  // namespace culprit::app
