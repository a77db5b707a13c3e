#include "sim/template.h"

#include <array>
#include <charconv>
#include <cstdlib>

#include <fmt/format.h>

#include "base/text.h"
#include "sim/site.h"

namespace culprit::sim {

namespace {

struct NamedHole {
  std::string_view name;
  Template::Hole hole;
};
using H = Template::Hole;
constexpr std::array kHoles = {
    NamedHole{"r", H::kRank},        NamedHole{"l", H::kLocal},       NamedHole{"R", H::kRanks},
    NamedHole{"H", H::kHosts},       NamedHole{"h", H::kHost},        NamedHole{"ip", H::kIp},
    NamedHole{"pid", H::kPid},       NamedHole{"tid", H::kTid},       NamedHole{"bus", H::kBus},
    NamedHole{"p", H::kPeer},        NamedHole{"ph", H::kPeerHost},   NamedHole{"pip", H::kPeerIp},
    NamedHole{"fr", H::kFaultRank},  NamedHole{"fl", H::kFaultLocal}, NamedHole{"fh", H::kFaultHost},
    NamedHole{"fip", H::kFaultIp},   NamedHole{"fpid", H::kFaultPid}, NamedHole{"fbus", H::kFaultBus},
    NamedHole{"sig", H::kSignal},    NamedHole{"exit", H::kExit},     NamedHole{"h0", H::kHost0},
    NamedHole{"ip0", H::kIp0},       NamedHole{"port", H::kPort},     NamedHole{"job", H::kJob},
    NamedHole{"user", H::kUser},     NamedHole{"root", H::kRoot},     NamedHole{"model", H::kModel},
    NamedHole{"ckpt", H::kCkpt},     NamedHole{"rev", H::kRev},       NamedHole{"it", H::kIteration},
    NamedHole{"its", H::kTotal},     NamedHole{"pct", H::kPercent},   NamedHole{"loss", H::kLoss},
    NamedHole{"gn", H::kGrad},       NamedHole{"lr", H::kRate},       NamedHole{"ms", H::kMs},
    NamedHole{"s", H::kSeconds},     NamedHole{"scale", H::kScale},   NamedHole{"samples", H::kSamples},
    NamedHole{"tokens", H::kTokens}, NamedHole{"seq", H::kSeq},       NamedHole{"seq-1", H::kSeqBefore},
    NamedHole{"epoch", H::kEpoch},   NamedHole{"bar", H::kBar},       NamedHole{"tp", H::kTp},
    NamedHole{"pp", H::kPp},         NamedHole{"dp", H::kDp},         NamedHole{"layers", H::kLayers},
    NamedHole{"now", H::kNow},       NamedHole{"nowT", H::kNowIso},   NamedHole{"ago", H::kAgo},
};

// "12.5" with 3 digits is 12500.
int64_t scaled(std::string_view text, unsigned digits) {
  const bool negative = text.starts_with('-');
  if (negative) text.remove_prefix(1);
  int64_t value = 0;
  int after = -1;
  for (const char c : text) {
    if (c == '.') {
      after = 0;
      continue;
    }
    if (after >= static_cast<int>(digits)) break;
    value = value * 10 + (c - '0');
    if (after >= 0) ++after;
  }
  for (int i = after < 0 ? 0 : after; i < static_cast<int>(digits); ++i) value *= 10;
  return negative ? -value : value;
}

std::string slurm_words(uint8_t exit_code) {
  switch (exit_code) {
    case 128 + 6:
      return "Aborted (core dumped)";
    case 128 + 7:
      return "Bus error (core dumped)";
    case 128 + 9:
      return "Killed";
    case 128 + 11:
      return "Segmentation fault (core dumped)";
    case 128 + 15:
      return "Terminated";
    default:
      return fmt::format("Exited with exit code {}", exit_code);
  }
}

uint32_t peer_of(const Context& context) {
  // Constant within a line: the holes p, ph and pip of one text refer to the same rank.
  const uint64_t mixed = Random(static_cast<uint64_t>(context.local_ns) + context.local).next();
  return static_cast<uint32_t>(mixed % context.site.ranks);
}

}  // namespace

void append_int(std::string& out, int64_t value) {
  const fmt::format_int digits(value);
  out.append(digits.data(), digits.size());
}

void append_decimal(std::string& out, int64_t value, unsigned digits) {
  if (value < 0) {
    out += '-';
    value = -value;
  }
  int64_t unit = 1;
  for (unsigned i = 0; i < digits; ++i) unit *= 10;
  append_int(out, value / unit);
  if (digits == 0) return;
  out += '.';
  const fmt::format_int rest(value % unit + unit);
  out.append(rest.data() + 1, rest.size() - 1);
}

std::string_view date_and_time(TimeNs time, char separator) {
  thread_local int64_t last = -1;
  thread_local std::array<char, 20> text{};
  const int64_t second = time / kNsPerSecond;
  if (second != last) {
    const Civil c = civil_from_ns(second * kNsPerSecond);
    fmt::format_to_n(text.data(), text.size(), "{:04}-{:02}-{:02} {:02}:{:02}:{:02}", c.year, c.month, c.day,
                     c.hour, c.minute, c.second);
    last = second;
  }
  text[10] = separator;
  return {text.data(), 19};
}

std::string_view choose_wording(std::string_view text, Random& random) {
  constexpr std::string_view kBetween = " ||| ";
  size_t count = 1;
  for (size_t at = text.find(kBetween); at != text.npos; at = text.find(kBetween, at + 1)) ++count;
  if (count == 1) return text;
  for (size_t skip = random.below(count); skip > 0; --skip)
    text.remove_prefix(text.find(kBetween) + kBetween.size());
  return text.substr(0, text.find(kBetween));
}

Template::Template(std::string_view text) {
  std::string literal;
  const auto flush = [&] {
    if (!literal.empty()) ops_.push_back({Hole::kText, 0, 0, 0, literal});
    literal.clear();
  };
  while (!text.empty()) {
    const size_t open = text.find('<');
    const size_t close = open == text.npos ? text.npos : text.find('>', open);
    literal += text.substr(0, open);
    if (open == text.npos || close == text.npos) {
      if (open != text.npos) literal += text.substr(open);
      break;
    }
    const std::string_view name = text.substr(open + 1, close - open - 1);
    std::string retained;
    retained.swap(literal);
    const size_t before = ops_.size();
    if (!retained.empty()) ops_.push_back({Hole::kText, 0, 0, 0, retained});
    if (!parse_hole(name)) {
      ops_.resize(before);
      literal = retained + '<';
      text.remove_prefix(open + 1);
      continue;
    }
    text.remove_prefix(close + 1);
  }
  flush();
}

bool Template::parse_hole(std::string_view name) {
  for (const NamedHole& hole : kHoles) {
    if (hole.name == name) {
      ops_.push_back({hole.hole, 0, 0, 0, {}});
      return true;
    }
  }
  if (name.size() < 3 || name[1] != ':') return false;
  const std::vector<std::string_view> parts = split(name.substr(2), ':');
  if (name[0] == 'i' && parts.size() == 2) {
    ops_.push_back({Hole::kInt, 0, scaled(parts[0], 0), scaled(parts[1], 0), {}});
    return true;
  }
  if (name[0] == 'f' && parts.size() == 3) {
    const auto digits = static_cast<uint8_t>(scaled(parts[2], 0));
    ops_.push_back({Hole::kDecimal, digits, scaled(parts[0], digits), scaled(parts[1], digits), {}});
    return true;
  }
  if (name[0] == 'x') {
    ops_.push_back({Hole::kHex, static_cast<uint8_t>(scaled(parts[0], 0)), 0, 0, {}});
    return true;
  }
  if (name[0] != 'w') return false;
  ops_.push_back({Hole::kWord, 0, 0, 0, std::string(name.substr(2))});
  return true;
}

void Template::expand(const Context& context, std::string& out) const {
  for (const Op& op : ops_) {
    if (op.hole == Hole::kText) {
      out += op.text;
    } else if (op.hole >= Hole::kInt) {
      fill_chance(op, context, out);
    } else if (op.hole >= Hole::kIteration) {
      fill_progress(op, context, out);
    } else if (op.hole >= Hole::kFaultRank) {
      fill_job(op, context, out);
    } else {
      fill_writer(op, context, out);
    }
  }
}

void Template::fill_writer(const Op& op, const Context& context, std::string& out) const {
  const Site& site = context.site;
  const Run& run = context.run;
  const RunHost& host = run.hosts[context.host];
  const uint32_t pid = pid_of(run, context.host, context.local);
  switch (op.hole) {
    case Hole::kRank:
      append_int(out, context.host * site.ranks_per_host + context.local);
      break;
    case Hole::kLocal:
      append_int(out, context.local);
      break;
    case Hole::kRanks:
      append_int(out, site.ranks);
      break;
    case Hole::kHosts:
      append_int(out, site.hosts);
      break;
    case Hole::kHost:
      out += host.name;
      break;
    case Hole::kIp:
      out += host.ip;
      break;
    case Hole::kPid:
      append_int(out, pid);
      break;
    case Hole::kTid:
      append_int(out, pid + context.random.range(40, 900));
      break;
    case Hole::kBus:
      out += bus_of(context.local);
      break;
    case Hole::kPeer:
      append_int(out, peer_of(context));
      break;
    case Hole::kPeerHost:
      out += run.hosts[peer_of(context) / site.ranks_per_host].name;
      break;
    case Hole::kPeerIp:
      out += run.hosts[peer_of(context) / site.ranks_per_host].ip;
      break;
    default:
      break;
  }
}

void Template::fill_job(const Op& op, const Context& context, std::string& out) const {
  const Site& site = context.site;
  const Run& run = context.run;
  switch (op.hole) {
    case Hole::kFaultRank:
      append_int(out, run.fault_host * site.ranks_per_host + run.fault_local);
      break;
    case Hole::kFaultLocal:
      append_int(out, run.fault_local);
      break;
    case Hole::kFaultHost:
      out += run.hosts[run.fault_host].name;
      break;
    case Hole::kFaultIp:
      out += run.hosts[run.fault_host].ip;
      break;
    case Hole::kFaultPid:
      append_int(out, pid_of(run, run.fault_host, run.fault_local));
      break;
    case Hole::kFaultBus:
      out += bus_of(run.fault_local);
      break;
    case Hole::kSignal:
      out += slurm_words(run.exit_code);
      break;
    case Hole::kExit:
      append_int(out, run.exit_code > 128 ? 128 - run.exit_code : run.exit_code);
      break;
    case Hole::kHost0:
      out += run.hosts[0].name;
      break;
    case Hole::kIp0:
      out += run.hosts[0].ip;
      break;
    case Hole::kPort:
      append_int(out, run.port);
      break;
    case Hole::kJob:
      append_int(out, static_cast<int64_t>(run.job_number));
      break;
    case Hole::kUser:
      out += site.user;
      break;
    case Hole::kRoot:
      out += site.root;
      break;
    case Hole::kModel:
      out += site.model;
      break;
    case Hole::kRev:
      out += site.revision;
      break;
    case Hole::kCkpt:
      out += site.root + "/checkpoints/" + site.model;
      break;
    default:
      break;
  }
}

void Template::fill_progress(const Op& op, const Context& context, std::string& out) const {
  const Site& site = context.site;
  const Moment& moment = context.moment;
  const auto total = static_cast<int64_t>(context.run.first_iteration + site.iterations);
  switch (op.hole) {
    case Hole::kIteration:
      append_int(out, moment.iteration);
      break;
    case Hole::kTotal:
      append_int(out, total);
      break;
    case Hole::kPercent:
      append_int(out, moment.iteration * 100 / total);
      break;
    case Hole::kLoss:
      if (moment.loss_e6 < 0)
        out += "nan";
      else
        append_decimal(out, moment.loss_e6, 6);
      break;
    case Hole::kGrad:
      if (moment.loss_e6 < 0)
        out += "nan";
      else
        append_decimal(out, moment.grad_e3, 3);
      break;
    case Hole::kRate:
      append_decimal(out, moment.rate_e9 / 1000, 3), out += "E-06";
      break;
    case Hole::kMs:
      append_decimal(out, moment.iteration_us / 100, 1);
      break;
    case Hole::kSeconds:
      append_decimal(out, moment.iteration_us / 10'000, 2);
      break;
    case Hole::kScale:
      append_decimal(out, static_cast<int64_t>(moment.scale) * 10, 1);
      break;
    case Hole::kSamples:
      append_int(out, moment.iteration * site.batch);
      break;
    case Hole::kTokens:
      append_int(out, moment.iteration * site.batch * 4096);
      break;
    case Hole::kSeq:
      append_int(out, static_cast<int64_t>(moment.seq));
      break;
    case Hole::kSeqBefore:
      append_int(out, static_cast<int64_t>(moment.seq) - 1);
      break;
    case Hole::kEpoch:
      append_decimal(out, moment.iteration * 100 / 1733, 2);
      break;
    case Hole::kBar: {
      const int64_t tenths = moment.iteration * 10 / total;
      for (int64_t i = 0; i < 10; ++i) out += i < tenths ? "█" : i == tenths ? "▍" : " ";
      break;
    }
    default:
      fill_setting(op, context, out);
  }
}

void Template::fill_setting(const Op& op, const Context& context, std::string& out) const {
  const Site& site = context.site;
  switch (op.hole) {
    case Hole::kTp:
      append_int(out, site.tp);
      break;
    case Hole::kPp:
      append_int(out, site.pp);
      break;
    case Hole::kDp:
      append_int(out, site.dp);
      break;
    case Hole::kLayers:
      append_int(out, site.layers);
      break;
    case Hole::kNow:
      out += date_and_time(context.local_ns);
      break;
    case Hole::kNowIso:
      out += date_and_time(context.local_ns, 'T');
      break;
    case Hole::kAgo:
      append_int(out, (context.local_ns - context.run.start_ns) / kNsPerSecond);
      break;
    default:
      break;
  }
}

void Template::fill_chance(const Op& op, const Context& context, std::string& out) const {
  Random& random = context.random;
  if (op.hole == Hole::kInt) return append_int(out, random.range(op.lo, op.hi));
  if (op.hole == Hole::kDecimal) return append_decimal(out, random.range(op.lo, op.hi), op.digits);
  if (op.hole == Hole::kHex) {
    uint64_t bits = 0;
    for (int i = 0; i < op.digits; ++i) {
      if (i % 16 == 0) bits = random.next();
      out += "0123456789abcdef"[bits & 15];
      bits >>= 4;
    }
    return;
  }
  const std::vector<std::string_view> words = split(op.text, ',');
  out += words[random.below(words.size())];
}

}  // namespace culprit::sim
