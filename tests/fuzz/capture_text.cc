// What tools print of a user's process, and the request: through the readers, and an answer with what they
// read is one line within its limit. A request that is read reads the same after it is written again. The
// lines of an answer of RAS give no more text than they have.
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "base/text.h"
#include "capture/pod_ras.h"
#include "capture/request.h"
#include "capture/tool_text.h"

namespace {

using namespace culprit::capture;

void check(bool holds) {
  if (!holds) std::abort();
}

void check_stacks(const culprit::Result<Stacks>& read) {
  if (!read) return;
  check(!read->threads.empty() && read->threads.size() <= kToolThreads);
  for (const StackedThread& thread : read->threads) {
    check(!thread.frames.empty() && thread.frames.size() <= kToolFrames);
    for (const std::string& frame : thread.frames) check(frame.find('\n') == frame.npos);
  }
  Answer answer;
  answer.tool = "tool";
  answer.stacks = *read;
  const std::string line = answer_line(Request{}, answer);
  check(line.size() <= kAnswerBytes && line.find('\n') == line.npos);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  check_stacks(read_py_spy(text));
  check_stacks(read_gdb(text));
  check_stacks(read_eu_stack(text));
  check_stacks(read_faulthandler(text));
  if (const auto request = parse_request(text)) {
    const auto again = parse_request(request_line(*request));
    check(again && *again == *request);
  }
  std::vector<std::string> lines;
  for (const std::string_view line : culprit::split(text, '\n')) lines.emplace_back(line);
  if (const auto ras = read_ras_lines(17, lines)) check(ras->text.size() <= size);
  return 0;
}
