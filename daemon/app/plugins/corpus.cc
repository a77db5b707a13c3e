#include "app/plugins/corpus.h"

#include <fmt/format.h>

#include <limits>

#include "base/hash.h"
#include "base/limits.h"
#include "plughost/events.h"

namespace culprit::app {
namespace {

using plughost::EventHead;
using plughost::EventWriter;

constexpr TimeNs kBegin = 1'790'000'000 * kNsPerSecond;
constexpr TimeNs kPassNs = 60 * kNsPerSecond;
constexpr int64_t kRounds = 60;  // rounds per pass: a second each
constexpr int64_t kRanks = 4;

struct Line {
  std::string_view text, message_template, parameter;
};

constexpr Line kLogLines[] = {
    {"[rank1]: NCCL WARN Call to ibv_poll_cq failed", "NCCL WARN Call to ibv_poll_cq failed", ""},
    {"Watchdog caught collective operation timeout: SeqNum=1042",
     "Watchdog caught collective operation timeout: SeqNum=<_>", "1042"},
    {"torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.50 GiB",
     "torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate <_> GiB", "2.50"},
    {"link 7 retrained", "link <_> retrained", "7"},
    {"saving checkpoint to /ckpt/step_500", "saving checkpoint to <_>", "/ckpt/step_500"},
    {"", "", ""},
    {"\xff\xfe bytes that are not UTF-8 \xc3", "<_> bytes that are not UTF-8 <_>", "\xff\xfe"},
};

constexpr Line kKernelLines[] = {
    {"NVRM: Xid (PCI:0000:9b:00): 79, pid=1234, GPU has fallen off the bus.",
     "NVRM: Xid (PCI:<_>): 79, pid=<_>, GPU has fallen off the bus.", "0000:9b:00"},
    {"mlx5_core 0000:0c:00.0: Port module event: module 0, Cable unplugged",
     "mlx5_core <_>: Port module event: module <_>, Cable unplugged", "0000:0c:00.0"},
    {"EDAC MC0: 1 CE memory read error on CPU_SrcID#0", "EDAC MC0: <_> CE memory read error on <_>", "1"},
};

class Recording {
 public:
  Recording(uint64_t pass, const std::vector<std::string>& lines)
      : pass_(pass), begin_(kBegin + static_cast<TimeNs>(pass) * kPassNs), lines_(lines) {}

  std::vector<CorpusBatch> make() {
    for (int64_t round = 0; round < kRounds; ++round) {
      time_ = begin_ + round * kNsPerSecond;
      step_ = static_cast<int64_t>(pass_) * kRounds + round;
      for (int64_t rank = 0; rank < kRanks; ++rank) rank_round(rank, round);
      host_round(round);
      hand_over();
    }
    extremes();
    for (size_t i = 0; i < lines_.size(); ++i) {
      line(CULPRIT_EVENT_LOG, {lines_[i], lines_[i], ""}, CULPRIT_NONE, i + 1);
      if (writer_.is_full()) hand_over();
    }
    hand_over();
    return std::move(out_);
  }

 private:
  EventHead head(uint32_t kind, int64_t rank = CULPRIT_NONE) const {
    EventHead out;
    out.kind = kind;
    out.time_ns = time_;
    out.job = "llama-70b-0412";
    out.host = "node-3";
    out.source = kind == CULPRIT_EVENT_LOG ? "/var/log/train/rank_0.log" : "trace";
    out.rank = rank;
    out.device = rank;
    return out;
  }

  void line(uint32_t kind, const Line& of, int64_t rank, uint64_t number) {
    const std::string_view parameters[] = {of.parameter};
    writer_.line(head(kind, rank), of.text, of.message_template,
                 std::span(parameters, of.parameter.empty() ? 0 : 1), number);
  }

  void rank_round(int64_t rank, int64_t round) {
    const std::string text = fmt::format("[rank{}]: step {} loss {:.3f}", rank, step_, 2. / (1 + step_ % 50));
    line(CULPRIT_EVENT_LOG, {text, "step <_> loss <_>", ""}, rank, static_cast<uint64_t>(round) + 1);
    writer_.metric(head(CULPRIT_EVENT_METRIC, rank), "loss", 2. / static_cast<double>(1 + step_ % 50), step_);
    writer_.step(head(CULPRIT_EVENT_STEP, rank), "", step_, CULPRIT_STEP_AT);
    CommRecord record;
    record.start_ns = static_cast<uint64_t>(time_ + rank * kNsPerMs);
    record.end_ns = static_cast<uint64_t>(time_ + 20 * kNsPerMs);
    if (rank == 2 && round == kRounds - 1) record.end_ns = 0;  // the operation hangs
    record.comm = 11;
    record.seq = static_cast<uint64_t>(step_);
    record.bytes = 64 << 20;
    record.rank = static_cast<uint32_t>(rank);
    record.device = record.rank;
    record.step = static_cast<uint32_t>(step_);
    record.comm_size = kRanks;
    record.op = CommOp::kAllReduce;
    record.group = CommGroup::kDp;
    writer_.comm(head(CULPRIT_EVENT_COMM), record);
  }

  void host_round(int64_t round) {
    const auto number = static_cast<uint64_t>(round);
    line(CULPRIT_EVENT_LOG, kLogLines[number % std::size(kLogLines)], 1, number + 1000);
    if (round % 20 == 0)
      line(CULPRIT_EVENT_KERNEL, kKernelLines[number / 20 % std::size(kKernelLines)], CULPRIT_NONE, 0);
    const double noise = static_cast<double>(mix64(pass_, number) % 1000) * 1e-3;
    writer_.counter(head(CULPRIT_EVENT_COUNTER), "psi_cpu_some_avg10", noise);
    writer_.counter(head(CULPRIT_EVENT_COUNTER), "link_down_count", static_cast<double>(round / 30));
    if (round == 30) writer_.step(head(CULPRIT_EVENT_STEP, 0), "checkpoint", step_, CULPRIT_STEP_BEGIN);
    if (round == 35) writer_.step(head(CULPRIT_EVENT_STEP, 0), "checkpoint", step_, CULPRIT_STEP_END);
    if (round % 30 != 29) return;
    const std::string_view frames[] = {"all_reduce (distributed_c10d.py:1316)", "train (train.py:120)"};
    const plughost::StackThread threads[] = {{"MainThread", frames}, {"pin_memory", {}}};
    writer_.stack(head(CULPRIT_EVENT_STACK, 2), threads);
  }

  // Events that every plugin must be able to handle.
  void extremes() {
    constexpr double kInfinity = std::numeric_limits<double>::infinity();
    const std::string longest(limits::kLineBytes, 'x');
    line(CULPRIT_EVENT_LOG, {longest, "<_>", longest}, CULPRIT_NONE, ~uint64_t{0});
    line(CULPRIT_EVENT_LOG, {std::string_view("a NUL \0 within", 14), "a NUL <_> within", ""}, 0, 0);
    for (const double value : {kInfinity, -kInfinity, std::numeric_limits<double>::quiet_NaN(), 0., 1e308}) {
      writer_.metric(head(CULPRIT_EVENT_METRIC, 3), "grad_norm", value, step_);
      writer_.counter(head(CULPRIT_EVENT_COUNTER), "", value);
    }
    writer_.metric(head(CULPRIT_EVENT_METRIC), "", 1, std::numeric_limits<int64_t>::max());
    writer_.step(head(CULPRIT_EVENT_STEP), "", CULPRIT_NONE, CULPRIT_STEP_AT);
    writer_.stack(head(CULPRIT_EVENT_STACK), {});
    CommRecord record;
    record.start_ns = record.end_ns = record.seq = ~uint64_t{0};
    writer_.comm(head(CULPRIT_EVENT_COMM), record);
    EventHead unknown = head(CULPRIT_EVENT_COUNTER);
    unknown.time_ns = kNoTime;
    unknown.job = unknown.host = unknown.source = "";
    writer_.counter(unknown, "load", -1);
  }

  void hand_over() {
    const size_t count = writer_.count();
    out_.push_back({writer_.take(), count, time_});
  }

  const uint64_t pass_;
  const TimeNs begin_;
  const std::vector<std::string>& lines_;
  TimeNs time_ = 0;
  int64_t step_ = 0;
  EventWriter writer_;
  std::vector<CorpusBatch> out_;
};

}  // namespace

std::vector<CorpusBatch> corpus(uint64_t pass, const std::vector<std::string>& lines) {
  return Recording(pass, lines).make();
}

}  // namespace culprit::app
