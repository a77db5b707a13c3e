#include "ingest/live/kernel.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <boost/test/unit_test.hpp>
#include <cerrno>
#include <deque>
#include <fstream>
#include <map>

#include "base/limits.h"

namespace culprit::ingest {
namespace {

constexpr TimeNs kBoot = 1'763'690'000 * kNsPerSecond;

// Acts as the kernel: numbered records, the oldest overwritten when there are too many.
struct Buffer {
  std::map<uint64_t, std::string> records;
  uint64_t next = 0;
  size_t room = 1000;

  void print(const std::string& text, int priority = 6) {
    records[next] = fmt::format("{},{},{},-;{}\n", priority, next, next * 1000, text);
    ++next;
    while (records.size() > room) records.erase(records.begin());
  }
};

class FakeDevice : public KernelDevice {
 public:
  FakeDevice(Buffer* buffer, uint64_t at) : buffer_(buffer), at_(at) {}
  int descriptor() const override { return -1; }
  int64_t read(char* out, size_t size) override {
    if (error != 0) return -error;
    if (at_ >= buffer_->next) return -EAGAIN;
    const auto oldest = buffer_->records.begin()->first;
    if (at_ < oldest) {
      at_ = oldest;
      return -EPIPE;
    }
    const std::string& raw = buffer_->records[at_++];  // like the kernel: it advances also when it refuses
    if (raw.size() > size) return -EINVAL;
    raw.copy(out, raw.size());
    return static_cast<int64_t>(raw.size());
  }
  int rewind() override {
    at_ = buffer_->records.empty() ? buffer_->next : buffer_->records.begin()->first;
    return 0;
  }
  int error = 0;

 private:
  Buffer* buffer_;
  uint64_t at_;
};

struct Host {
  Buffer buffer;
  std::map<StreamId, StreamState> states;
  std::map<StreamId, std::string> evidence;
  std::map<StreamId, uint64_t> missing;
  StreamId next_id = 3;
  uint64_t boot = 1;
  std::unique_ptr<KernelLog> log;
  FakeDevice* device = nullptr;
  size_t pieces = 0;

  // `at`: position of the descriptor from systemd.
  void start(uint64_t at = 0) {
    std::vector<StreamState> known;
    for (const auto& [id, state] : states) known.push_back(state);
    auto made = std::make_unique<FakeDevice>(&buffer, at);
    device = made.get();
    log = std::make_unique<KernelLog>(std::move(made), KernelOptions{[this] { return next_id++; }, boot},
                                      known);
  }

  KernelLog::KernelRead read(bool stored = true, size_t budget = 256 << 10) {
    if (!log) start();
    const TimeNs mono = 5000 * kNsPerSecond;
    KernelLog::KernelRead out = log->read({kBoot + mono, mono, budget});
    if (!stored) return out;
    for (const StreamInfo& info : out.batch.opened) states[info.id].info = info;
    for (const Piece& piece : out.batch.pieces) {
      ++pieces;
      StreamState& state = states[piece.stream];
      BOOST_REQUIRE(!state.ended);
      BOOST_REQUIRE_EQUAL(piece.offset, state.size);
      BOOST_REQUIRE_LE(piece.bytes.size(), limits::kPieceBytes);
      if (piece.gap) missing[piece.stream] += piece.gap->records;
      evidence[piece.stream] += piece.bytes;
      state.size += piece.bytes.size();
      state.place = piece.place;
      state.ended = piece.ends;
    }
    return out;
  }

  std::string all(uint64_t from, uint64_t to) {
    std::string text;
    for (uint64_t n = from; n < to; ++n) text += fmt::format("6,{},{},-;line {}\n", n, n * 1000, n);
    return text;
  }
  void print(int count) {
    for (int i = 0; i < count; ++i) buffer.print(fmt::format("line {}", buffer.next));
  }
};

BOOST_AUTO_TEST_CASE(records_are_kept_as_they_came) {
  Host host;
  host.print(3);
  host.read();
  host.print(2);
  host.read();
  BOOST_TEST(host.evidence[3] == host.all(0, 5));
  BOOST_TEST((host.states[3].info.kind == OriginKind::kKernel));
  BOOST_TEST(host.states[3].info.path == "/dev/kmsg");
  BOOST_TEST(host.states[3].info.job.empty());
  BOOST_TEST(host.states[3].info.boot_ns == kBoot);
  BOOST_TEST(host.log->stats().records == 5u);
}

BOOST_AUTO_TEST_CASE(what_was_read_and_not_stored_is_read_again_and_nothing_twice) {
  Host host;
  host.print(10);
  host.read();
  host.print(5);
  host.read(false);              // killed before the store has it
  host.start(host.buffer.next);  // systemd's descriptor is after it
  host.print(2);
  host.read();
  BOOST_TEST(host.evidence[3] == host.all(0, 17));
  BOOST_TEST(host.missing[3] == 0u);
}

BOOST_AUTO_TEST_CASE(overwritten_records_are_a_gap_of_as_many) {
  Host host;
  host.buffer.room = 10;
  host.print(4);
  host.read();
  host.print(25);
  host.read();
  BOOST_TEST(host.evidence[3] == host.all(0, 4) + host.all(19, 29));
  BOOST_TEST(host.missing[3] == 15u);
  host.start(0);  // also while the daemon was not running
  host.print(12);
  host.read();
  BOOST_TEST(host.missing[3] == 17u);
  BOOST_TEST(host.log->stats().lost == 2u);
}

BOOST_AUTO_TEST_CASE(what_was_overwritten_before_the_first_start_is_no_loss_of_ours) {
  Host host;
  host.buffer.room = 10;
  host.print(25);
  host.read();
  BOOST_TEST(host.evidence[3] == host.all(15, 25));
  BOOST_TEST(host.missing[3] == 0u);
}

BOOST_AUTO_TEST_CASE(a_record_larger_than_any_is_a_gap_of_one) {
  Host host;
  host.print(2);
  host.buffer.print(std::string(limits::kKernelRecordBytes, 'x'));
  host.print(1);
  host.read();
  BOOST_TEST(host.evidence[3] == host.all(0, 2) + host.all(3, 4));
  BOOST_TEST(host.missing[3] == 1u);
}

BOOST_AUTO_TEST_CASE(another_boot_is_another_source) {
  Host host;
  host.print(9);
  host.read();
  host.boot = 2;
  host.buffer = {};
  host.print(3);
  host.start();
  host.read();
  BOOST_TEST(host.states[3].ended);
  BOOST_TEST(host.evidence[4] == host.all(0, 3));
  BOOST_TEST(host.missing.empty());
  host.start();  // the ended stream is not used again
  host.print(1);
  host.read();
  BOOST_TEST(host.evidence[4] == host.all(0, 4));
}

BOOST_AUTO_TEST_CASE(a_storm_comes_in_rounds_of_a_budget_and_in_bounded_pieces) {
  Host host;
  host.buffer.room = 100'000;
  host.print(20'000);
  int rounds = 1;
  while (host.read(true, 100'000).more) ++rounds;
  BOOST_TEST(rounds > 4);
  BOOST_TEST(host.pieces > 6u);
  BOOST_TEST(host.evidence[3] == host.all(0, 20'000));
}

BOOST_AUTO_TEST_CASE(a_device_that_fails_is_reported) {
  for (const int error : {EIO, ENODEV, EPIPE, EINVAL}) {
    Host host;
    host.start();
    host.device->error = error;
    const KernelLog::KernelRead out = host.read();
    BOOST_REQUIRE(out.error.has_value());
    BOOST_TEST(out.error->text.find("/dev/kmsg: ") == 0u);
    BOOST_TEST(!out.more);
  }
}

BOOST_AUTO_TEST_CASE(a_device_that_may_not_be_opened_is_reported_with_what_mends_it) {
  const auto missing = open_kernel_device("/dev/nowhere");
  BOOST_REQUIRE(!missing);
  BOOST_TEST(missing.error().text == "/dev/nowhere: no such file or directory");
  BOOST_TEST(!adopt_kernel_device(999));
  const auto denied = open_kernel_device("/proc/1/mem/x");
  BOOST_TEST(!denied);
}

BOOST_AUTO_TEST_CASE(a_descriptor_handed_over_is_read_without_waiting) {
  int pair[2];
  BOOST_REQUIRE(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair) == 0);
  auto device = adopt_kernel_device(pair[0]);
  BOOST_REQUIRE(device.has_value());
  KernelLog log(std::move(*device), {[] { return StreamId{1}; }, 1}, {});
  BOOST_TEST(log.descriptor() == pair[0]);
  BOOST_TEST(log.read({kBoot, 0}).batch.pieces.empty());
  const std::string raw = "4,7,100,-;one\n SUBSYSTEM=pci\n DEVICE=+pci:0000:9b:00.0\n";
  BOOST_REQUIRE(write(pair[1], raw.data(), raw.size()) == static_cast<ssize_t>(raw.size()));
  const KernelLog::KernelRead out = log.read({kBoot, 0});
  BOOST_REQUIRE_EQUAL(out.batch.pieces.size(), 1u);
  BOOST_TEST(out.batch.pieces[0].bytes == raw);
  close(pair[1]);
  BOOST_TEST(log.read({kBoot, 0}).error.has_value());
}

BOOST_AUTO_TEST_CASE(this_machines_kernel_is_read_where_it_may_be) {
  auto device = open_kernel_device();
  if (!device) {
    BOOST_TEST(device.error().text.find("/dev/kmsg: ") == 0u);
    return;
  }
  KernelLog log(std::move(*device), {[] { return StreamId{1}; }, boot_fingerprint()}, {});
  std::string bytes;
  KernelLog::KernelRead out;
  do {
    out = log.read({kBoot, 0});
    BOOST_REQUIRE(!out.error);
    for (const Piece& piece : out.batch.pieces) bytes += piece.bytes;
  } while (out.more);
  std::optional<uint64_t> last;
  for (std::string_view rest = bytes; !rest.empty();) {
    const std::string_view raw = first_kernel_record(rest);
    const auto record = parse_kernel_record(raw);
    BOOST_REQUIRE(record.has_value());
    if (last) BOOST_TEST(record->sequence == *last + 1);
    last = record->sequence;
    rest.remove_prefix(raw.size());
  }
  BOOST_TEST(log.stats().malformed == 0u);
  BOOST_TEST(boot_fingerprint() != boot_fingerprint("/nowhere"));
}

BOOST_AUTO_TEST_CASE(a_record_is_taken_apart) {
  const auto record =
      parse_kernel_record("14,4294967299,987654321,c,caller=T1;a;b \\x0ac\n KEY=v\n D=\\x20\n");
  BOOST_REQUIRE(record.has_value());
  BOOST_TEST(record->priority == 6u);
  BOOST_TEST(record->facility == 1u);
  BOOST_TEST(record->sequence == 4294967299u);
  BOOST_TEST(record->since_boot_us == 987654321u);
  BOOST_TEST(record->text == "a;b \\x0ac");
  BOOST_TEST(record->dictionary == " KEY=v\n D=\\x20\n");
  for (const char* none :
       {"", "\n", "6", "6,1,2", "6,1,2,-", "6,1,2,-text\n", "x,1,2,-;t\n", "-6,1,2,-;t\n", "6,,2,-;t\n",
        "6,1,2;t\n", "6,99999999999999999999,2,-;t\n", "99999999999,1,2,-;t\n", " K=v\n", "6,1,2,-\n;t"})
    BOOST_TEST(!parse_kernel_record(none).has_value(), none);
}

BOOST_AUTO_TEST_CASE(records_stand_one_behind_the_other) {
  const struct {
    std::string_view bytes, first;
  } cases[] = {
      {"6,1,2,-;a\n6,2,3,-;b\n", "6,1,2,-;a\n"},
      {"6,1,2,-;a\n K=v\n L=w\n6,2,3,-;b\n", "6,1,2,-;a\n K=v\n L=w\n"},
      {"6,1,2,-;a\n K=v", "6,1,2,-;a\n K=v"},
      {"6,1,2,-;a", "6,1,2,-;a"},
      {"\n\n", "\n"},
      {"", ""},
  };
  for (const auto& c : cases) BOOST_TEST(first_kernel_record(c.bytes) == c.first);
}

BOOST_AUTO_TEST_CASE(the_engine_reads_a_line_with_its_time) {
  const struct {
    const char *raw, *text;
    TimeNs boot;
  } cases[] = {
      {"4,7,1500000,-;NVRM: Xid (PCI:0000:9b:00): 79, GPU has fallen off the bus.\n SUBSYSTEM=pci\n",
       "2025-11-21T01:53:21.500000+00:00 kernel: NVRM: Xid (PCI:0000:9b:00): 79, GPU has fallen off the "
       "bus.\n",
       kBoot},
      {"4,7,0,-;a\\x0ab\\x09c\\x5cd\\xzz\\x4\n",
       "2025-11-21T01:53:20.000000+00:00 kernel: a\n2025-11-21T01:53:20.000000+00:00 kernel: "
       "b\tc\\d\\xzz\\x4\n",
       kBoot},
      {"4,7,0,-;a\\x0a\n", "2025-11-21T01:53:20.000000+00:00 kernel: a\n", kBoot},
      {"4,7,0,-;\n", "2025-11-21T01:53:20.000000+00:00 kernel: \n", kBoot},
      {"4,7,1500000,-;no clock\n", "kernel: no clock\n", kNoTime},
      {"4,7,18446744073709551615,-;never\n", "kernel: never\n", kBoot},
      {"12,7,0,-;NVRM: Xid (PCI:0000:9b:00): 79, forged\n", "", kBoot},  // written by a program
      {"30,7,0,-;systemd[1]: Started.\n", "", kBoot},
      {"garbage\n", "", kBoot},
  };
  for (const auto& c : cases) BOOST_TEST(kernel_text(c.raw, c.boot) == c.text);
}

}  // namespace
}  // namespace culprit::ingest
