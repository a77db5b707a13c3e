// A line's text with holes in angle brackets, parsed once and filled many times. Other text in brackets stays
// unchanged ("<module>"). Values; the filler's Context is borrowed for the call.
//
// Holes: r l R H h ip pid tid bus       the writer: rank, local rank, ranks, hosts, host, address, ids,
//                                      PCI bus
//        p ph pip                       some other rank, its host and address (one rank per expansion)
//        fr fl fh fip fpid fbus         the faulty rank, likewise
//        sig exit                       how it ended, in Slurm's words and as torchrun counts
//        h0 ip0 port job user root model ckpt rev  the job's own names
//        it its pct loss gn lr ms s scale samples tokens seq epoch bar tp pp dp layers    its progress
//        now nowT ago                   the writer's time: "2026-11-21 02:12:09", ISO, some seconds since
//        i:LO:HI  f:LO:HI:DIGITS  x:N  w:one,two,...       chance: integer, decimal, hex digits, a word
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/time.h"
#include "sim/random.h"

namespace culprit::sim {

struct Site;
struct Run;

// Values that all ranks have in common at one moment of the job.
struct Moment {
  int64_t iteration = 0;
  int64_t loss_e6 = 0;  // negative: NaN
  int64_t grad_e3 = 0;
  int64_t rate_e9 = 0;  // learning rate
  int64_t iteration_us = 0;
  uint64_t seq = 0;
  uint32_t scale = 0;
};

struct Context {
  const Site& site;
  const Run& run;
  const Moment& moment;
  Random& random;
  uint32_t host = 0, local = 0;
  TimeNs local_ns = 0;  // the host's own clock
};

class Template {
 public:
  explicit Template(std::string_view text);
  void expand(const Context& context, std::string& out) const;

  // Groups of holes, each filled by its own function; the order is significant.
  enum class Hole : uint8_t {
    kText,
    kRank,
    kLocal,
    kRanks,
    kHosts,
    kHost,
    kIp,
    kPid,
    kTid,
    kBus,
    kPeer,
    kPeerHost,
    kPeerIp,
    kFaultRank,
    kFaultLocal,
    kFaultHost,
    kFaultIp,
    kFaultPid,
    kFaultBus,
    kSignal,
    kExit,
    kHost0,
    kIp0,
    kPort,
    kJob,
    kUser,
    kRoot,
    kModel,
    kCkpt,
    kRev,
    kIteration,
    kTotal,
    kPercent,
    kLoss,
    kGrad,
    kRate,
    kMs,
    kSeconds,
    kScale,
    kSamples,
    kTokens,
    kSeq,
    kSeqBefore,
    kEpoch,
    kBar,
    kTp,
    kPp,
    kDp,
    kLayers,
    kNow,
    kNowIso,
    kAgo,
    kInt,
    kDecimal,
    kHex,
    kWord
  };

 private:
  struct Op {
    Hole hole;
    uint8_t digits = 0;
    int64_t lo = 0, hi = 0;
    std::string text;
  };
  bool parse_hole(std::string_view name);
  void fill_writer(const Op& op, const Context& context, std::string& out) const;
  void fill_job(const Op& op, const Context& context, std::string& out) const;
  void fill_progress(const Op& op, const Context& context, std::string& out) const;
  void fill_setting(const Op& op, const Context& context, std::string& out) const;
  void fill_chance(const Op& op, const Context& context, std::string& out) const;

  std::vector<Op> ops_;
};

// Chooses one of the wordings between " ||| ".
std::string_view choose_wording(std::string_view text, Random& random);

void append_int(std::string& out, int64_t value);
// `value` / 10^digits with all its digits.
void append_decimal(std::string& out, int64_t value, unsigned digits);
// "2026-11-21 02:12:09" (or with another separator than the blank); caches the last second.
std::string_view date_and_time(TimeNs time, char separator = ' ');

}  // namespace culprit::sim
