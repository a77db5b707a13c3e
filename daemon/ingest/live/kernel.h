// The kernel's messages: raw records of /dev/kmsg, one source for each boot. The evidence is the records in
// order of arrival ("6,1234,5678901,-;text\n SUBSYSTEM=pci\n").
//
// Durable state: a piece has a KernelPlace, the sequence number of the next record and the boot. After a
// restart the device is read from its beginning, and stored records are skipped by their numbers. So no
// record is lost that the kernel still has, whether the daemon opened the device or systemd passed it.
// Missing numbers are a gap with the number of records.
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
  uint32_t facility = 0;  // 0: the kernel; programs that write to /dev/kmsg cannot set it
  uint64_t sequence = 0;
  uint64_t since_boot_us = 0;   // time on the kernel's clock
  std::string_view text;        // escaped: \xNN
  std::string_view dictionary;  // lines " KEY=value\n"
};
std::optional<KernelRecord> parse_kernel_record(std::string_view raw);

// The prefix of the bytes that is the first record with its dictionary. Empty only for empty bytes.
std::string_view first_kernel_record(std::string_view bytes);

// The record as text for the engine: "2026-11-21T02:12:09.123456+00:00 kernel: text\n"; every line of a
// multi-line message has this prefix. Empty for records that programs wrote, since any user can forge them.
std::string kernel_text(std::string_view raw_record, TimeNs boot_ns);

// Source of records: /dev/kmsg, or a test's.
class KernelDevice {
 public:
  virtual ~KernelDevice() = default;
  virtual int descriptor() const = 0;  // for polling
  // Reads one record. Returns its size, 0 at the end (of a file that is no device), or -errno; -EAGAIN if
  // there is no record now.
  virtual int64_t read(char* out, size_t size) = 0;
  virtual int rewind() = 0;  // moves to the oldest record; 0 or -errno
};

// The error says how to permit the daemon to read the device.
Result<std::unique_ptr<KernelDevice>> open_kernel_device(const std::string& path = "/dev/kmsg");
// Takes ownership of a descriptor that systemd passed.
Result<std::unique_ptr<KernelDevice>> adopt_kernel_device(int descriptor);
// Identifies the boot: a hash of the kernel's boot id, or of "" if that is unreadable.
uint64_t boot_fingerprint(const std::string& path = "/proc/sys/kernel/random/boot_id");

struct KernelOptions {
  std::function<StreamId()> allocate;
  uint64_t boot = 0;  // boot_fingerprint()
  std::string path = "/dev/kmsg";
};

struct KernelStats {
  uint64_t records = 0, bytes = 0;
  uint64_t lost = 0;       // records overwritten before they were read
  uint64_t foreign = 0;    // records that programs wrote
  uint64_t malformed = 0;  // records that cannot be parsed: kept as evidence, without a sequence number
};

class KernelLog {
 public:
  KernelLog(std::unique_ptr<KernelDevice> device, KernelOptions options, std::span<const StreamState> known);
  KernelLog(const KernelLog&) = delete;

  int descriptor() const;

  struct Round {
    TimeNs now = 0, now_mono = 0;  // give the wall time at which the kernel's clock was 0
    size_t budget_bytes = 256 << 10;
  };
  struct KernelRead {
    PieceBatch batch;
    bool more = false;           // the budget is used up: read again at once
    std::optional<Error> error;  // the device returns no more records: stop polling it
  };
  KernelRead read(const Round& round);

  const KernelStats& stats() const { return stats_; }

 private:
  void begin(const Round& round, KernelRead* out);
  void on_record(std::string_view raw, const Round& round, Piece* piece, KernelRead* out);
  void flush(const Round& round, Piece* piece, KernelRead* out);

  std::unique_ptr<KernelDevice> device_;
  KernelOptions options_;
  std::vector<StreamState> known_;  // of the kernel; cleared by the first round
  StreamId stream_ = kNoStream;
  uint64_t offset_ = 0;           // of the evidence
  std::optional<uint64_t> next_;  // sequence number; none before the first record of a boot
  bool begun_ = false;
  std::string buffer_;
  KernelStats stats_;
};

}  // namespace culprit::ingest
