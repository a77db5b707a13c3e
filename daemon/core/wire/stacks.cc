#include "core/wire/stacks.h"

#include <algorithm>
#include <unordered_map>
#include <vector>

#include "base/limits.h"
#include "core/wire/packed_time.h"

namespace culprit::wire {
namespace {

// Size limit of one dump, so that the dumps of a host's processes fit a block. A process with a hundred
// threads takes 100 KB.
constexpr size_t kStackPackedBytes = 256 << 10;
constexpr size_t kStackWords = 1 << 16;
constexpr uint8_t kStackRank = 1, kStackHost = 2;  // flags of a dump
constexpr uint8_t kStackMain = 4,
                  kFrameNative = 1;  // flag of a thread, next to its state; flag of a frame, next to its line

// Words sent so far, numbered in order of first use.
class SentWords {
 public:
  explicit SentWords(const StackDump& dump) : dump_(dump), words_{""}, numbers_{{0, 0}} {}

  uint32_t number(uint32_t word) {
    const auto [at, fresh] = numbers_.try_emplace(word, static_cast<uint32_t>(words_.size()));
    if (!fresh) return at->second;
    words_.push_back(word < dump_.words.size() ? std::string_view(dump_.words[word]) : std::string_view());
    bytes_ += words_.back().size() + 2;
    return at->second;
  }
  size_t bytes() const { return bytes_; }
  const std::vector<std::string_view>& all() const { return words_; }

 private:
  const StackDump& dump_;
  std::vector<std::string_view> words_;
  std::unordered_map<uint32_t, uint32_t> numbers_;
  size_t bytes_ = 0;
};

void put_thread(PackedWriter& out, const StackThread& t, SentWords& words) {
  out.byte(static_cast<uint8_t>(static_cast<uint8_t>(t.state) | (t.main ? kStackMain : 0)));
  out.number(words.number(t.name));
  out.number(t.id);
  out.number(t.pid);
  out.number(t.frames.size());
  for (const StackFrame& f : t.frames) {
    out.number(words.number(f.function));
    out.number(words.number(f.file));
    out.number(uint64_t{f.line} * 2 + (f.native ? kFrameNative : 0));
  }
}

StackThread get_thread(PackedReader& in, size_t words) {
  const auto index = [&] { return static_cast<uint32_t>(in.number(words - 1)); };
  StackThread t;
  const uint8_t bits = in.byte();
  t.state = static_cast<ThreadState>(bits & 3);
  t.main = (bits & kStackMain) != 0;
  t.name = index();
  t.id = in.number(UINT64_MAX);
  t.pid = static_cast<uint32_t>(in.number(UINT32_MAX));
  const uint64_t frames = in.number(limits::kStackFrames);
  for (uint64_t i = 0; i < frames && in.ok(); ++i) {
    StackFrame f;
    f.function = index();
    f.file = index();
    const uint64_t line = in.number(uint64_t{UINT32_MAX} * 2 + 1);
    f.line = static_cast<uint32_t>(line / 2);
    f.native = (line & kFrameNative) != 0;
    t.frames.push_back(f);
  }
  return t;
}

}  // namespace

std::string pack_stacks(const StackDump& dump) {
  SentWords words(dump);
  PackedWriter threads;
  size_t count = 0;
  for (const StackThread& t : dump.threads) {
    PackedWriter one;
    put_thread(one, t, words);
    if (threads.size() + one.size() + words.bytes() > kStackPackedBytes || words.all().size() > kStackWords)
      break;
    threads.raw(one.bytes());
    ++count;
  }
  PackedWriter out;
  out.byte(static_cast<uint8_t>((dump.rank ? kStackRank : 0) | (dump.host ? kStackHost : 0)));
  if (dump.rank) out.number(*dump.rank);
  if (dump.host) out.text(std::string_view(*dump.host).substr(0, limits::kNameBytes));
  out.text(std::string_view(dump.file).substr(0, limits::kPathBytes));
  out.number(dump.line);
  out.byte(static_cast<uint8_t>(dump.tool));
  out.number(dump.pid);
  put_time(out, dump.time_ns);
  out.number(dump.sample);
  out.text(std::string_view(dump.process_state).substr(0, limits::kNameBytes));
  out.text(std::string_view(dump.waits_in).substr(0, limits::kNameBytes));
  const size_t sent = std::min(words.all().size(), kStackWords + limits::kStackFrames);
  out.number(sent);
  for (size_t i = 0; i < sent; ++i) out.text(words.all()[i]);
  out.number(count);
  out.raw(threads.bytes());
  return out.finish();
}

StackDump unpack_stacks(PackedReader& in) {
  StackDump dump;
  const uint8_t bits = in.byte();
  if (bits & kStackRank) dump.rank = static_cast<uint32_t>(in.number(limits::kCommRanks - 1));
  if (bits & kStackHost) dump.host = std::string(in.text(limits::kNameBytes));
  dump.file = std::string(in.text(limits::kPathBytes));
  dump.line = in.number(UINT64_MAX);
  dump.tool = static_cast<StackTool>(std::min<uint8_t>(in.byte(), static_cast<uint8_t>(StackTool::kEuStack)));
  dump.pid = static_cast<uint32_t>(in.number(UINT32_MAX));
  dump.time_ns = get_time(in);
  dump.sample = static_cast<uint32_t>(in.number(UINT32_MAX));
  dump.process_state = std::string(in.text(limits::kNameBytes));
  dump.waits_in = std::string(in.text(limits::kNameBytes));
  const uint64_t words = in.number(4 * kStackWords);
  if (words == 0) in.fail();
  for (uint64_t i = 0; i < words && in.ok(); ++i) dump.words.emplace_back(in.text(4 * limits::kStackName));
  const uint64_t threads = in.ok() ? in.number(limits::kStackThreads) : 0;
  for (uint64_t i = 0; i < threads && in.ok(); ++i) dump.threads.push_back(get_thread(in, dump.words.size()));
  if (!in.ok()) return {};
  return dump;
}

}  // namespace culprit::wire
