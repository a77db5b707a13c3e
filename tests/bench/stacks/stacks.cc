// How long the stacks of a large job take from the dumps to the answer.
// usage: bench_stacks [RANKS] [SAMPLES]
#include <fmt/format.h>

#include <cstdlib>
#include <ctime>
#include <string>
#include <vector>

#include "core/detect/stacks/stacks.h"
#include "core/detect/stacks/tree.h"

using namespace culprit;

namespace {

constexpr uint32_t kThreads = 12, kDepth = 28;

// A dump of a training process: a main thread in a collective, and threads of libraries.
StackDump dump_of(uint32_t rank, uint32_t sample, bool stuck) {
  StackDump out;
  out.rank = rank;
  out.tool = StackTool::kPySpy;
  out.pid = 1000 + rank;
  out.time_ns = (1'790'000'000 + static_cast<TimeNs>(sample) * 10) * kNsPerSecond;
  out.words.emplace_back();
  const auto word = [&](std::string text) {
    out.words.push_back(std::move(text));
    return static_cast<uint32_t>(out.words.size() - 1);
  };
  for (uint32_t t = 0; t < kThreads; ++t) {
    StackThread& thread = out.threads.emplace_back();
    thread.name = word(t == 0 ? "MainThread" : fmt::format("worker-{}", t));
    thread.main = t == 0;
    thread.id = 1000 + t;
    if (t == 0 && stuck)
      thread.frames.push_back({word("_next_data"), word("torch/utils/data/dataloader.py"), 633, false});
    else if (t == 0)
      thread.frames.push_back(
          {word("all_reduce"), word("torch/distributed/distributed_c10d.py"), 2800, false});
    const uint32_t file = word(t == 0 ? "/work/train.py" : fmt::format("/opt/lib/part{}.py", t));
    for (uint32_t d = 0; d < kDepth; ++d)
      thread.frames.push_back(
          {word(fmt::format("function_{}_{}", t, d)), file, 10 + d + (d == 5 ? rank % 3 : 0), false});
  }
  return out;
}

// CPU time of this thread, which other work on the machine does not change much.
double seconds() { return static_cast<double>(std::clock()) / CLOCKS_PER_SEC; }

}  // namespace

int main(int argc, char** argv) {
  const uint32_t ranks = argc > 1 ? static_cast<uint32_t>(std::atoi(argv[1])) : 16'384;
  const uint32_t times = argc > 2 ? static_cast<uint32_t>(std::atoi(argv[2])) : 1;
  const uint32_t stuck = ranks / 3;
  std::vector<StackDump> dumps;
  for (uint32_t s = 0; s < times; ++s)
    for (uint32_t r = 0; r < ranks; ++r) dumps.push_back(dump_of(r, s, r == stuck));
  stacks::Samples samples;
  const double begin = seconds();
  for (const StackDump& dump : dumps) samples.add(dump);
  const double added = seconds() - begin;
  const stacks::GroupLayout layout{JobFile{}};
  const stacks::StackAnswer answer = stacks::analyse_stacks({samples, layout, {}, true});
  const double answered = seconds() - begin;
  const stacks::StackTree tree = stacks::make_tree(answer.clusters);
  const double whole = seconds() - begin;
  fmt::print(
      "{} dumps of {} ranks, {} threads each, {} frames deep: added {:.3f} s, clustered and judged "
      "{:.3f} s, tree {:.3f} s, in all {:.3f} s\n",
      dumps.size(), ranks, kThreads, kDepth, added, answered - added, whole - answered, whole);
  const bool right = answer.suspects.size() == 1 && answer.suspects[0].rank == stuck && !tree.roots.empty();
  fmt::print("{}\n", right ? "the stuck rank is named" : "the stuck rank is NOT named");
  return right ? 0 : 1;
}
