#include "app/offline/stages.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <ctime>

#include "core/logs/mask.h"
#include "core/logs/mask_skeleton.h"
#include "core/rules/matcher.h"

namespace culprit::app {
namespace {

enum Stage : size_t {
  kSplit,
  kRead,
  kHeader,
  kFormKey,
  kMask,
  kLiterals,
  kMatch,
  kParse,
  kParseWithRules,
  kStep,
  kStages
};
struct Named {
  std::string_view name, what;
};
constexpr std::array<Named, kStages> kNames = {{
    {"split", "memchr to each end of a line: the unit"},
    {"read", "a piece of the file into memory"},
    {"header", "HeaderParser::parse of each line"},
    {"form_key", "the key of each message's form"},
    {"mask", "the masked form of each message, as for an unknown key"},
    {"literals", "Vectorscan over the messages"},
    {"match", "verification of the messages with a literal"},
    {"parse", "LineParser without rules: split, header, form"},
    {"parse_with_rules", "LineParser with rules: all above"},
    {"step", "Engine::step of the parsed piece"},
}};

using Spent = std::array<TimeNs, kStages>;

TimeNs cpu_ns() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return now.tv_sec * kNsPerSecond + now.tv_nsec;
}

struct SplitLine {
  std::string_view header;  // header in the line as a terminal would show it
  std::string_view message;
  bool kernel = false;
};

// One repetition: a new engine, parsers and a scanner without any state.
class Round {
 public:
  Round(const JobFiles& files, const logs::ParseOptions& parse, const std::shared_ptr<rules::Ruleset>& set)
      : files_(files),
        zone_(parse.zone),
        engine_({files.job, {}, {}, set}),
        parser_(parse),
        ruled_(parse, engine_.make_scanner()),
        scanner_(set->matcher()) {
    std::vector<core::Input> opened;
    for (const LogFile& file : files.logs) opened.emplace_back(core::SourceOpened{file.info});
    engine_.step(opened, kNoTime);
  }

  // CPU time of the stages; `sum` gets all results, so that the compiler cannot omit a stage.
  Spent run(uint64_t& sum) {
    TimeNs before = cpu_ns();
    for_each_piece(files_.logs, [&](const LogFile& file, const ingest::ChunkBuffer& piece) {
      spent_[kRead] += cpu_ns() - before;
      take({static_cast<SourceId>(&file - files_.logs.data()), piece.index, piece.offset, piece.bytes,
            piece.range_bytes, piece.last},
           file.info);
      before = cpu_ns();
    });
    sum += sum_;
    return spent_;
  }

  uint64_t bytes() const { return bytes_; }
  uint64_t lines() const { return engine_.log().lines(); }

 private:
  template <class Work>
  void time(Stage stage, Work work) {
    const TimeNs began = cpu_ns();
    work();
    spent_[stage] += cpu_ns() - began;
  }

  void take(const TextChunk& piece, const SourceInfo& source) {
    const std::string_view text = piece.bytes;
    bytes_ += piece.range_bytes;
    sum_ += count_ends(text);  // reads the piece once, so that no stage reads it first
    time(kSplit, [&] { sum_ += count_ends(text); });
    time(kParse, [&] { parser_.parse(piece, source, batch_); });
    split_lines(text, source);
    time(kHeader, [&] {
      logs::HeaderParser headers({zone_, source.modified_ns});
      for (const SplitLine& line : lines_) sum_ += headers.parse(line.header).message;
    });
    time(kFormKey, [&] {
      for (const SplitLine& line : lines_) sum_ += logs::form_key(line.message);
    });
    time(kMask, [&] {
      for (const SplitLine& line : lines_) sum_ += logs::form_hash(line.message);
    });
    scan_messages();
    time(kParseWithRules, [&] { ruled_.parse(piece, source, batch_); });
    time(kStep, [&] {
      core::Input input = core::LogInput{&batch_};
      sum_ += engine_.step({&input, 1}, kNoTime).size();
    });
  }

  static uint64_t count_ends(std::string_view text) {
    uint64_t found = 0;
    const char* at = text.data();
    const char* const end = at + text.size();
    while (at < end) {
      at = static_cast<const char*>(std::memchr(at, '\n', static_cast<size_t>(end - at)));
      if (at == nullptr) break;
      ++found, ++at;
    }
    return found;
  }

  // The lines with a form, with the messages that the parser found.
  void split_lines(std::string_view text, const SourceInfo& source) {
    lines_.clear();
    logs::HeaderParser headers({zone_, source.modified_ns});
    size_t begin = 0;
    for (const logs::LineRecord& record : batch_.lines) {
      const size_t end = std::min(text.find('\n', begin), text.size());
      const std::string_view message = batch_.message(record);
      if (record.form != logs::kNoForm) {
        const size_t shown = text.substr(begin, record.offset - begin).rfind('\r');
        const size_t from = shown == text.npos ? begin : begin + shown + 1;
        const std::string_view line = text.substr(from, record.offset + message.size() - from);
        lines_.push_back({line, message, headers.parse(line).kernel});
      }
      begin = end + 1;
    }
  }

  // Scans the messages in blocks, like the parser.
  void scan_messages() {
    constexpr size_t kBlock = 1 << 16;
    std::string block;
    for (size_t first = 0, next = 0; first < lines_.size(); first = next) {
      for (block.clear(); next < lines_.size() && block.size() < kBlock; ++next)
        block.append(lines_[next].message).push_back('\n');
      time(kLiterals, [&] { scanner_.begin(block); });
      time(kMatch, [&] { match_lines({lines_.data() + first, next - first}); });
    }
  }

  void match_lines(std::span<const SplitLine> lines) {
    size_t begin = 0;
    for (const SplitLine& line : lines) {
      const size_t end = begin + line.message.size();
      const auto source = line.kernel ? rules::TextSource::kKernel : rules::TextSource::kLog;
      if (scanner_.wants(end)) sum_ += scanner_.match(begin, end, line.message, source).size();
      begin = end + 1;
    }
  }

  const JobFiles& files_;
  const Zone zone_;
  core::Engine engine_;
  logs::LineParser parser_, ruled_;
  rules::Scanner scanner_;
  logs::LogBatch batch_;
  std::vector<SplitLine> lines_;
  Spent spent_{};
  uint64_t bytes_ = 0, sum_ = 0;
};

StageCost cost_of(Stage stage, const std::vector<Spent>& rounds, const StageCosts& all) {
  std::vector<std::pair<double, TimeNs>> by_ratio;
  for (const Spent& spent : rounds) {
    const auto unit = static_cast<double>(std::max<TimeNs>(spent[kSplit], 1));
    by_ratio.emplace_back(static_cast<double>(spent[stage]) / unit, spent[stage]);
  }
  std::sort(by_ratio.begin(), by_ratio.end());
  const auto [ratio, ns] = by_ratio[by_ratio.size() / 2];
  const auto spent = static_cast<double>(std::max<TimeNs>(ns, 1));
  const auto lines = static_cast<double>(std::max<uint64_t>(all.lines, 1));
  return {kNames[stage].name,
          kNames[stage].what,
          ratio,
          by_ratio.front().first,
          by_ratio.back().first,
          spent / lines,
          static_cast<double>(all.bytes) * 1e3 / spent};
}

}  // namespace

StageCosts measure_stages(const JobFiles& files, const logs::ParseOptions& parse,
                          const std::shared_ptr<rules::Ruleset>& set, unsigned repetitions) {
  StageCosts out;
  std::vector<Spent> rounds;
  volatile uint64_t retained = 0;
  for (unsigned i = 0; i < repetitions; ++i) {
    Round round(files, parse, set);
    uint64_t sum = 0;
    rounds.push_back(round.run(sum));
    retained = retained + sum;
    out.bytes = round.bytes();
    out.lines = round.lines();
  }
  for (size_t stage = 0; stage < kStages; ++stage)
    out.stages.push_back(cost_of(static_cast<Stage>(stage), rounds, out));
  return out;
}

}  // namespace culprit::app
