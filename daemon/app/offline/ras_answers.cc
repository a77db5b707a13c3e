#include "app/offline/ras_answers.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>

#include "base/text.h"
#include "core/detect/ras/follow.h"
#include "ingest/ras_reader.h"

namespace culprit::app {
namespace {

struct DatedAnswer {
  TimeNs at_ns = kNoTime;
  const ingest::SourceFile* file = nullptr;
  RasAnswer answer;
};

void add_ras_problems(const DatedAnswer& read, std::vector<Problem>& out) {
  if (read.answer.cut)
    out.push_back({read.file->path, std::nullopt, "ends early: its warnings are missing or cut off"});
  if (read.answer.dropped > 0)
    out.push_back({read.file->path, std::nullopt,
                   fmt::format("{} of it not understood or beyond what is kept",
                               counted(read.answer.dropped, "part"))});
}

}  // namespace

std::vector<Problem> read_ras_answers(const std::vector<ingest::SourceFile>& files, core::Engine& engine,
                                      ReadProgress& progress) {
  std::vector<Problem> problems;
  std::vector<DatedAnswer> answers;
  for (const ingest::SourceFile& file : files) {
    if (progress.stop) break;
    auto read = ingest::read_ras(file);
    progress.bytes_done += file.size;
    if (!read) {
      std::string what = read.error().text;
      if (what.starts_with(file.path + ": ")) what.erase(0, file.path.size() + 2);
      problems.push_back({file.path, std::nullopt, std::move(what)});
      continue;
    }
    core::Input bytes = core::NonLogRead{file.size, 0};
    engine.step({&bytes, 1}, kNoTime);
    const TimeNs at = read->local_ns == kNoTime ? file.modified_ns : read->local_ns;
    answers.push_back({at, &file, std::move(*read)});
  }
  std::stable_sort(answers.begin(), answers.end(), [](const DatedAnswer& a, const DatedAnswer& b) {
    return a.at_ns != b.at_ns ? a.at_ns < b.at_ns : natural_less(a.file->path, b.file->path);
  });
  ras::Follower follower;
  for (const DatedAnswer& read : answers) {
    add_ras_problems(read, problems);
    core::Input input = ras::RasInput{follower.add(read.answer, read.at_ns), read.file->path, std::nullopt};
    engine.step({&input, 1}, kNoTime);
  }
  return problems;
}

}  // namespace culprit::app
