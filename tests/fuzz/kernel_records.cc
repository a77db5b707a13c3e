// Any bytes from /dev/kmsg, one read per NUL; a read of "!" and a letter fails as the device may. Fields lie
// within the record, a record is a prefix of the bytes, and each line for the engine has its prefix. The
// evidence is the read bytes, in order and without the records that an earlier run stored.
#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/limits.h"
#include "base/text.h"
#include "ingest/live/kernel.h"

namespace {

using namespace culprit;
using namespace culprit::ingest;

void require(bool condition) {
  if (!condition) std::abort();
}

bool within(std::string_view part, std::string_view whole) {
  return part.empty() ||
         (part.data() >= whole.data() && part.data() + part.size() <= whole.data() + whole.size());
}

void take_apart(std::string_view bytes) {
  while (!bytes.empty()) {
    const std::string raw(
        first_kernel_record(bytes));  // memory of its own, so that a read beyond it is detected
    require(!raw.empty() && bytes.substr(0, raw.size()) == raw);
    bytes.remove_prefix(raw.size());
    const auto record = parse_kernel_record(raw);
    const std::string text = kernel_text(raw, 1'763'690'000 * kNsPerSecond);
    require(text.empty() == (!record || record->facility != 0));
    if (!record) continue;
    require(record->priority < 8 && within(record->text, raw) && within(record->dictionary, raw));
    require(record->text.find('\n') == std::string_view::npos);
    if (text.empty()) continue;
    require(text.back() == '\n');
    for (const std::string_view line : split(std::string_view(text).substr(0, text.size() - 1), '\n'))
      require(line.find("kernel: ") != std::string_view::npos);
  }
}

class Device : public KernelDevice {
 public:
  explicit Device(std::vector<std::string_view> reads) : reads_(std::move(reads)) {}
  int descriptor() const override { return -1; }
  int64_t read(char* out, size_t size) override {
    if (at_ == reads_.size()) return -EAGAIN;
    const std::string_view read = reads_[at_++];
    if (read == "!P") return -EPIPE;
    if (read == "!N" || read.size() > size) return -EINVAL;
    if (read == "!I") return -EINTR;
    if (read == "!A") return -EAGAIN;
    if (read == "!D") return -ENODEV;
    read.copy(out, read.size());
    return static_cast<int64_t>(read.size());
  }
  int rewind() override {
    at_ = 0;
    return 0;
  }

 private:
  std::vector<std::string_view> reads_;
  size_t at_ = 0;
};

void run(const std::vector<std::string_view>& reads, StreamState* state, size_t budget) {
  std::vector<StreamState> known;
  if (state->info.id != kNoStream) known.push_back(*state);
  KernelLog log(std::make_unique<Device>(reads), {[] { return StreamId{1}; }, 1}, known);
  uint64_t next = state->place ? state->place->offset : 0;
  for (size_t i = 0; i <= reads.size(); ++i) {
    const KernelLog::KernelRead out = log.read({10, 5, budget});
    for (const StreamInfo& info : out.batch.opened) state->info = info;
    for (const Piece& piece : out.batch.pieces) {
      require(piece.stream == state->info.id && piece.offset == state->size && !piece.bytes.empty());
      require(piece.bytes.size() <= limits::kPieceBytes && piece.place);
      require(piece.place->offset >= next || next == 0);
      next = piece.place->offset;
      state->size += piece.bytes.size();
      state->place = piece.place;
    }
    if (out.error) break;
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  take_apart(bytes);
  const std::vector<std::string_view> reads = split(bytes, '\0');
  StreamState state;
  run(reads, &state, 256 << 10);
  run(reads, &state, 100);  // and after a restart
  return 0;
}
