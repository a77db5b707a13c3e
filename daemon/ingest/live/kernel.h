// The kernel's messages: records of /dev/kmsg as they came, one source for each boot. Its evidence is the raw
// records ("6,1234,5678901,-;text\n SUBSYSTEM=pci\n"), one after the other.
//
// What is durable: a piece carries a FilePlace whose `offset` is the sequence number of the next record and
// whose `fingerprint` tells the boot. After a restart the device is read from its beginning again, and what
// is stored already is skipped by its number: so nothing is lost that the kernel still has, whether the
// device was opened here or handed over by systemd. A number that is missing is a gap of so many records.
//
// Thread: the loop's. Reads never block. Owns the device.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "base/time.h"
#include "model/piece.h"

namespace culprit::ingest {

// A record of /dev/kmsg. Views into the raw record.
struct KernelRecord {
  uint32_t priority = 0;  // 0 (emergency) to 7 (debug)
  uint32_t facility = 0;  // 0: the kernel itself; a program that writes to /dev/kmsg cannot have it
  uint64_t sequence = 0;
  uint64_t since_boot_us = 0;   // on the kernel's clock
  std::string_view text;        // escaped: \xNN
  std::string_view dictionary;  // lines " KEY=value\n"
};
std::optional<KernelRecord> parse_kernel_record(std::string_view raw);

// The first record of the bytes with its dictionary: a prefix of them. Empty only for empty bytes.
std::string_view first_kernel_record(std::string_view bytes);

// The record as the engine reads it: "2026-11-21T02:12:09.123456+00:00 kernel: text\n", each line of a
// message of several with the same head. Empty for what the kernel itself did not write: anybody may forge
// that.
std::string kernel_text(std::string_view raw_record, TimeNs boot_ns);

// Where records come from: /dev/kmsg, or a test's.
class KernelDevice {
 public:
  virtual ~KernelDevice() = default;
  virtual int descriptor() const = 0;  // to be polled
  // One record. Bytes read, 0 at an end (of what is no device), or -errno; -EAGAIN where there is none now.
  virtual int64_t read(char* out, size_t size) = 0;
  virtual int rewind() = 0;  // to the oldest record; 0 or -errno
};

// "/dev/kmsg: operation not permitted; ..." tells how to let the daemon read it.
Result<std::unique_ptr<KernelDevice>> open_kernel_device(const std::string& path = "/dev/kmsg");
// Of a descriptor that systemd handed over; owned from here on.
Result<std::unique_ptr<KernelDevice>> adopt_kernel_device(int descriptor);
// Tells boots apart: a hash of the kernel's boot id; of "" where it cannot be read.
uint64_t boot_fingerprint(const std::string& path = "/proc/sys/kernel/random/boot_id");

struct KernelOptions {
  std::function<StreamId()> allocate;
  uint64_t boot = 0;  // boot_fingerprint()
  std::string path = "/dev/kmsg";
};

struct KernelStats {
  uint64_t records = 0, bytes = 0;
  uint64_t lost = 0;       // overwritten before they were read
  uint64_t foreign = 0;    // written by programs, not by the kernel
  uint64_t malformed = 0;  // not a record: kept as evidence, of no sequence
};

class KernelLog {
 public:
  KernelLog(std::unique_ptr<KernelDevice> device, KernelOptions options, std::span<const StreamState> known);
  KernelLog(const KernelLog&) = delete;

  int descriptor() const;

  struct Round {
    TimeNs now = 0, now_mono = 0;  // their difference is when the kernel's clock was 0
    size_t budget_bytes = 256 << 10;
  };
  struct Outcome {
    PieceBatch batch;
    bool more = false;           // the budget ran out: read again at once
    std::optional<Error> error;  // the device gives nothing any more: stop polling it
  };
  Outcome read(const Round& round);

  const KernelStats& stats() const { return stats_; }

 private:
  void begin(const Round& round, Outcome* out);
  void take(std::string_view raw, const Round& round, Piece* piece, Outcome* out);
  void flush(const Round& round, Piece* piece, Outcome* out);

  std::unique_ptr<KernelDevice> device_;
  KernelOptions options_;
  std::vector<StreamState> known_;  // of the kernel's; empty once the first round has looked at them
  StreamId stream_ = kNoStream;
  uint64_t offset_ = 0;           // of the evidence
  std::optional<uint64_t> next_;  // sequence number; none before the first record of a boot
  bool begun_ = false;
  std::string buffer_;
  KernelStats stats_;
};

}  // namespace culprit::ingest
