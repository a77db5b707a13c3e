#include "core/rules/matcher.h"

#include <fmt/format.h>
#include <hs/hs.h>

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <functional>
#include <limits>
#include <map>
#include <new>
#include <numeric>
#include <tuple>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "base/ascii.h"
#include "base/check.h"
#include "base/hash.h"
#include "base/text.h"
#include "core/logs/header.h"
#include "core/rules/library_tables.h"
#include "core/rules/line_share.h"
#include "core/rules/pattern.h"

namespace culprit::rules {
namespace {

constexpr size_t kNone = std::numeric_limits<size_t>::max();

std::unique_ptr<re2::RE2> compile_regex(const std::string& regex) {
  return std::make_unique<re2::RE2>(regex, regex_options());
}

// Units of LoadWork, measured: see tests/unit/core/rules/work_test.cc.
constexpr uint64_t kCompiling = 10'000, kCompilingAnInstruction = 200;
constexpr uint64_t kMatching = 500, kMatchingAByte = 4;
constexpr uint64_t kLookingUp = 4;           // per literal or pattern
constexpr uint64_t kBytesLookedThrough = 2;  // bytes searched for a literal, per unit
// RE2's bit-state engine marks visited states, up to this number of bits. Larger searches use its slowest
// engine.
constexpr uint64_t kMarkedBits = 256 * 1024, kMarkedInstructions = 500;
constexpr uint64_t kSlowest = 40, kMarked = 2;  // per byte and instruction
// Total instructions of compiled regexes kept while proving: some 32 MB.
constexpr size_t kProgramSizeMax = 1 << 20;

// The searched text of each literal: the literal itself, or a shorter literal that it contains. Each searched
// text adds cost to the pass over all bytes. Codes occur with and without "0x", words with several endings.
std::vector<std::string_view> without_longer(const std::vector<std::string>& literals) {
  constexpr size_t kRare = 10;  // shorter texts occur in too many lines
  static_assert(kLiteralMax <= 64);
  std::vector<std::string_view> order(literals.begin(), literals.end());
  std::sort(order.begin(), order.end(), [](std::string_view a, std::string_view b) {
    return std::pair(a.size(), a) < std::pair(b.size(), b);
  });
  std::unordered_set<std::string_view> retained;
  // Lengths of the retained texts, one bit each, by their beginning.
  std::unordered_map<std::string_view, uint64_t> lengths;
  std::unordered_map<std::string_view, std::string_view> found;
  for (const std::string_view text : order) {
    const auto [at, fresh] = found.try_emplace(text, text);
    std::string_view& held = at->second;
    for (size_t i = 0; fresh && i + kRare <= text.size() && held == text; ++i) {
      const auto known = lengths.find(text.substr(i, kRare));
      for (uint64_t bits = known == lengths.end() ? 0 : known->second; bits != 0; bits &= bits - 1) {
        const auto length = static_cast<size_t>(std::countr_zero(bits)) + 1;
        if (i + length > text.size()) break;
        if (const auto it = retained.find(text.substr(i, length)); it != retained.end()) held = *it;
      }
    }
    if (!fresh || held != text || text.size() < kRare || line_share(text) > kRareShare) continue;
    retained.insert(text);
    lengths[text.substr(0, kRare)] |= uint64_t{1} << (text.size() - 1);
  }
  std::vector<std::string_view> out;
  for (const std::string& literal : literals) out.push_back(found.at(literal));
  return out;
}

// Whether the rule matches only kernel lines. Its wording within an exception's text is a quotation.
bool is_of_kernel(const Rule& rule) {
  logs::HeaderParser headers({});
  const auto by_kernel = [&](const std::string& line) {
    const logs::Header header = headers.parse(line);
    return header.kernel || std::string_view(line).substr(header.message).starts_with("kernel: ");
  };
  const auto in_exception = [](const std::string& line) {
    return logs::is_in_exception({line, line.size(), line.size()});
  };
  return std::ranges::any_of(rule.hit, by_kernel) && std::ranges::none_of(rule.hit, in_exception);
}

// Joins the regexes to one alternation, so that RE2 reads a line once. The result may be invalid, for example
// if two regexes name the same hole or one quotes to its end.
std::string in_one(const std::vector<std::string>& regexes) {
  std::string out;
  for (const std::string& regex : regexes) out += fmt::format("{}(?:{})", out.empty() ? "" : "|", regex);
  return out;
}

}  // namespace

re2::RE2::Options regex_options() {
  re2::RE2::Options options(re2::RE2::Latin1);
  options.set_log_errors(false);
  options.set_max_mem(8 << 20);  // for the automata of one pattern; beyond it RE2 fails or becomes slower
  return options;
}

Result<std::shared_ptr<const Matcher>> Matcher::create(std::span<const Rule> rules) {
  std::shared_ptr<Matcher> out(new Matcher);
  out->rules_.resize(rules.size());
  std::vector<std::string> literals;
  for (uint32_t i = 0; i < rules.size(); ++i) {
    if (rules[i].enabled) out->add(rules[i], i, literals);
  }
  if (Status status = out->compile(literals); !status) return fail(status.error().code, status.error().text);
  return std::shared_ptr<const Matcher>(std::move(out));
}

void Matcher::add(const Rule& rule, uint32_t index, std::vector<std::string>& literals) {
  const bool decides = !rule.window && rule.when == 0 && rule.severity >= Severity::kError;
  rules_[index] = {rule.sources, rule.says, decides, is_of_kernel(rule), rule.holes, {}, rule.hit};
  for (const Pattern& p : rule.except) rules_[index].except.push_back(p.regex);
  for (const Pattern& p : rule.any) {
    const auto id = static_cast<uint32_t>(patterns_.size());
    patterns_.push_back({index, p.regex, p.also, p.literals});
    if (p.literals.empty()) always_.push_back(id);
    for (const std::string& literal : p.literals) {
      literals.push_back(literal);
      by_literal_.push_back({id});
    }
  }
}

// If a pattern is searched by shorter texts, its whole literals become a further requirement, checked before
// RE2.
void Matcher::require_whole(std::span<const std::string> literals,
                            std::span<const std::string_view> looked_for) {
  std::map<uint32_t, std::vector<std::string>> whole;  // by pattern
  for (size_t i = 0; i < literals.size(); ++i)
    if (looked_for[i] != literals[i]) whole[by_literal_[i][0]];
  for (size_t i = 0; i < literals.size(); ++i)
    if (const auto it = whole.find(by_literal_[i][0]); it != whole.end()) it->second.push_back(literals[i]);
  for (auto& [pattern, set] : whole) {
    auto& also = patterns_[pattern].also;
    also.insert(also.begin(), std::move(set));
  }
}

Status Matcher::compile(const std::vector<std::string>& literals) {
  const std::vector<std::string_view> looked_for = without_longer(literals);
  require_whole(literals, looked_for);
  std::map<std::string_view, std::vector<uint32_t>> merged;
  for (size_t i = 0; i < literals.size(); ++i) {
    std::vector<uint32_t>& patterns = merged[looked_for[i]];
    patterns.insert(patterns.end(), by_literal_[i].begin(), by_literal_[i].end());
  }
  by_literal_.clear();
  if (merged.empty()) return {};
  std::vector<const char*> texts;
  std::vector<unsigned> flags, ids;
  std::vector<size_t> sizes;
  for (const auto& [text, patterns] : merged) {
    literal_hash_ = hash64(text, literal_hash_);
    texts.push_back(text.data());
    sizes.push_back(text.size());
    flags.push_back(HS_FLAG_CASELESS);
    ids.push_back(static_cast<unsigned>(by_literal_.size()));
    by_literal_.push_back(patterns);
  }
  hs_database_t* database = nullptr;
  // Prefers the database built at build time; compiles if Vectorscan's version differs or the machine cannot
  // run it.
  if (const std::string_view made = library_database(literal_hash_);
      !made.empty() && hs_deserialize_database(made.data(), made.size(), &database) == HS_SUCCESS) {
    database_ = database;
    return {};
  }
  constexpr hs_platform_info_t kAnyMachine{};  // of the architecture
  hs_compile_error_t* error = nullptr;
  const hs_error_t status = hs_compile_lit_multi(texts.data(), flags.data(), ids.data(), sizes.data(),
                                                 static_cast<unsigned>(texts.size()), HS_MODE_BLOCK,
                                                 &kAnyMachine, &database, &error);
  if (status != HS_SUCCESS) {
    const std::string what = error ? error->message : "not compiled";
    hs_free_compile_error(error);
    return fail(ErrorCode::kInvalid, fmt::format("the literals of {} patterns: {}", patterns_.size(), what));
  }
  database_ = database;
  return {};
}

Result<std::string> Matcher::serialise() const {
  if (database_ == nullptr) return std::string();
  char* bytes = nullptr;
  size_t size = 0;
  if (hs_serialize_database(database_, &bytes, &size) != HS_SUCCESS)
    return fail(ErrorCode::kIo, "the compiled literals cannot be serialised");
  std::string out(bytes, size);
  std::free(bytes);
  return out;
}

Matcher::~Matcher() {
  if (database_) hs_free_database(database_);
}

// The matcher's tables by rule: finds the lines of some rules without work for the others.
struct Scanner::Restriction {
  std::vector<uint32_t> first;                  // by rule: its first pattern; one more entry at the end
  std::vector<std::vector<uint32_t>> literals;  // by pattern; none: every line is checked
  std::vector<uint32_t> patterns;               // patterns of the selected rules
  std::vector<uint32_t> stamps;                 // by literal: the last line that contained it
  std::vector<uint32_t> in_line;                // literals of the current line
};

Scanner::Scanner(std::shared_ptr<const Matcher> matcher)
    : matcher_(std::move(matcher)),
      stamps_(matcher_->patterns_.size()),
      found_(matcher_->rules_.size()),
      usual_(matcher_->patterns_.size()) {
  if (matcher_->database_) {
    const hs_error_t status = hs_alloc_scratch(matcher_->database_, &scratch_);
    if (status == HS_NOMEM) throw std::bad_alloc();  // like the containers here
    CULPRIT_CHECK(status == HS_SUCCESS);
  }
  next_ = matcher_->always_.empty() ? kNone : 0;
  last_.resize(matcher_->by_literal_.size());
  compiled_.resize(matcher_->patterns_.size());
  except_.resize(matcher_->rules_.size());
}

Scanner::Scanner(Scanner&& other) noexcept
    : matcher_(std::move(other.matcher_)),
      scratch_(std::exchange(other.scratch_, nullptr)),
      hits_(std::move(other.hits_)),
      last_(std::move(other.last_)),
      at_(other.at_),
      next_(other.next_),
      stamps_(std::move(other.stamps_)),
      found_(std::move(other.found_)),
      stamp_(other.stamp_),
      usual_(std::move(other.usual_)),
      compiled_(std::move(other.compiled_)),
      except_(std::move(other.except_)),
      program_size_(other.program_size_),
      work_(other.work_),
      restriction_(std::move(other.restriction_)) {}

Scanner::~Scanner() {
  if (scratch_) hs_free_scratch(scratch_);
}

// Stores one hit of a literal per line: a line that repeats it must not fill the memory.
int Scanner::on_hit(unsigned id, unsigned long long, unsigned long long to, unsigned, void* self) {
  auto& scanner = *static_cast<Scanner*>(self);
  const uint32_t before = std::exchange(scanner.last_[id], static_cast<uint32_t>(to));
  const std::string_view between =
      before < to ? scanner.block_.substr(before, to - before) : std::string_view{};
  if (before == 0 || before > to || between.find('\n') != between.npos || between.find('\r') != between.npos)
    scanner.hits_.push_back({static_cast<uint32_t>(to), id});
  return 0;
}

void Scanner::begin(std::string_view block) {
  for (const Hit& hit : hits_) last_[hit.literal] = 0;
  hits_.clear();
  at_ = 0;
  if (scratch_) {
    block_ = block;
    constexpr size_t kBlock = size_t{1} << 31;  // ends are 32 bits; blocks are some MiB
    CULPRIT_CHECK(block.size() < kBlock);
    hs_scan(matcher_->database_, block.data(), static_cast<unsigned>(block.size()), 0, scratch_, on_hit,
            this);
    const auto earlier = [](const Hit& a, const Hit& b) { return a.end < b.end; };
    if (!std::is_sorted(hits_.begin(), hits_.end(), earlier)) std::sort(hits_.begin(), hits_.end(), earlier);
  }
  if (matcher_->always_.empty()) next_ = hits_.empty() ? kNone : hits_[0].end;
}

size_t Scanner::next_literal(size_t from) {
  while (at_ < hits_.size() && hits_[at_].end < from) ++at_;
  return at_ < hits_.size() ? hits_[at_].end : kNone;
}

void Scanner::back_to(size_t begin) {
  while (at_ > 0 && hits_[at_ - 1].end > begin) --at_;
}

void Scanner::consider(uint32_t pattern) {
  if (stamps_[pattern] == stamp_) return;
  stamps_[pattern] = stamp_;
  candidates_.push_back(pattern);
}

std::unique_ptr<re2::RE2> Scanner::compile_counted(const std::string& regex) {
  auto out = compile_regex(regex);
  const auto size = static_cast<size_t>(std::max(out->ProgramSize(), 0));
  program_size_ += size;
  work_ += kCompiling + kCompilingAnInstruction * size;
  return out;
}

// Upper bound: while RE2's automaton grows, as on texts this short, each byte costs one step per instruction.
void Scanner::count_match(const re2::RE2& regex, size_t bytes, bool captures) {
  const auto size = static_cast<uint64_t>(std::max(regex.ProgramSize(), 0));
  work_ += kMatching + bytes * (kMatchingAByte + size);
  if (!captures) return;
  const bool slow = size > kMarkedInstructions || size * bytes > kMarkedBits;
  work_ += bytes * size * (slow ? kSlowest : kMarked);
}

void Scanner::free_compiled() {
  for (Compiled& compiled : compiled_) compiled = {};
  for (auto& regexes : except_) regexes.clear();
  program_size_ = 0;
}

const Scanner::Compiled& Scanner::compile(uint32_t pattern) {
  Compiled& out = compiled_[pattern];
  if (out.regex) return out;
  const Matcher::Wording& wording = matcher_->patterns_[pattern];
  out.regex = compile_counted(wording.regex);
  const auto& groups = out.regex->NamedCapturingGroups();
  for (const std::string& hole : matcher_->rules_[wording.rule].holes) {
    const auto it = groups.find(hole);
    out.groups.push_back(it == groups.end() ? 0 : it->second);
  }
  return out;
}

bool Scanner::is_excepted(uint32_t rule, const re2::StringPiece& text) {
  const std::vector<std::string>& regexes = matcher_->rules_[rule].except;
  auto& compiled = except_[rule];
  if (compiled.empty() && !regexes.empty()) {
    compiled.push_back(compile_counted(in_one(regexes)));
    if (!compiled[0]->ok()) {
      compiled.clear();
      for (const std::string& regex : regexes) compiled.push_back(compile_counted(regex));
    }
  }
  return std::any_of(compiled.begin(), compiled.end(), [&](const auto& regex) {
    count_match(*regex, text.size(), false);
    return regex->Match(text, 0, text.size(), re2::RE2::UNANCHORED, nullptr, 0);
  });
}

// Whether the message contains all that the pattern requires.
bool Scanner::may_match(uint32_t pattern, std::string_view message) {
  const auto& also = matcher_->patterns_[pattern].also;
  if (also.empty()) return true;
  if (lower_.empty() && !message.empty()) {
    lower_.resize(message.size());
    lower_ascii(message, lower_.data());
  }
  return std::all_of(also.begin(), also.end(), [&](const auto& set) {
    return std::any_of(set.begin(), set.end(), [&](const std::string& text) {
      work_ += kLookingUp + lower_.size() / kBytesLookedThrough;
      return find_text(lower_, text) != npos;
    });
  });
}

void Scanner::verify(uint32_t pattern, std::string_view message, TextSource source) {
  const uint32_t index = matcher_->patterns_[pattern].rule;
  const Matcher::Of& rule = matcher_->rules_[index];
  if (!(rule.sources & bit(source)) || found_[index] == stamp_ || !may_match(pattern, message)) return;
  const re2::StringPiece text(message.data(), message.size());
  const Compiled& compiled = compile(pattern);
  count_match(*compiled.regex, text.size(), !compiled.groups.empty());
  if (!compiled.regex->Match(text, 0, text.size(), re2::RE2::UNANCHORED, nullptr, 0)) return;
  if (is_excepted(index, text)) return;
  found_[index] = stamp_;
  RuleMatch match{index, rule.says <= Says::kFailure, false, pattern, 0, {}};
  const bool weighed = source == TextSource::kLog && !restriction_;
  const size_t captured =
      compiled.groups.empty() ? 0 : static_cast<size_t>(compiled.regex->NumberOfCapturingGroups());
  groups_.assign(captured + 1, {});
  if (weighed)
    match.mentioned = find_reported(pattern, compiled, text);
  else if (captured > 0 || !restriction_)
    compiled.regex->Match(text, 0, text.size(), re2::RE2::UNANCHORED, groups_.data(),
                          static_cast<int>(groups_.size()));
  if (groups_[0].data() != nullptr) match.begin = static_cast<uint32_t>(groups_[0].data() - text.data());
  for (const int g : compiled.groups)
    match.holes.push_back(g == 0 ? std::string_view{}
                                 : std::string_view(groups_[static_cast<size_t>(g)].data(),
                                                    groups_[static_cast<size_t>(g)].size()));
  matches_.push_back(std::move(match));
}

bool Scanner::find_reported(uint32_t pattern, const Compiled& compiled, const re2::StringPiece& text) {
  constexpr int kTimes = 8;  // occurrences of the wording that are examined
  const bool of_kernel = matcher_->rules_[matcher_->patterns_[pattern].rule].of_kernel;
  const auto find = [&](size_t from) {
    return compiled.regex->Match(text, from, text.size(), re2::RE2::UNANCHORED, groups_.data(),
                                 static_cast<int>(groups_.size()));
  };
  size_t from = 0;
  for (int i = 0; i < kTimes && find(from); ++i) {
    const auto begin = static_cast<size_t>(groups_[0].data() - text.data());
    const logs::MessagePart part{{text.data(), text.size()}, begin, begin + groups_[0].size()};
    const bool quoted = of_kernel && logs::is_in_exception(part);
    const logs::MentionFrame frame = logs::frame_of(part, time_);
    if (!quoted && (!frame.any() || !frame.exceeds(usual_frame(pattern, compiled)))) return false;
    from = std::max(part.end, begin + 1);
    if (from > text.size()) break;
  }
  find(0);
  return true;
}

// The frame around the wording in its rule's own examples is usual, so it is no sign of a mention.
const logs::MentionFrame& Scanner::usual_frame(uint32_t pattern, const Compiled& compiled) {
  std::optional<logs::MentionFrame>& usual = usual_[pattern];
  if (usual) return *usual;
  usual.emplace();
  for (const std::string& hit : matcher_->rules_[matcher_->patterns_[pattern].rule].hit)
    for (const std::string_view line : split(hit, '\n')) {
      re2::StringPiece found;
      const re2::StringPiece text(line.data(), line.size());
      if (!compiled.regex->Match(text, 0, text.size(), re2::RE2::UNANCHORED, &found, 1)) continue;
      const auto begin = static_cast<size_t>(found.data() - line.data());
      const logs::MentionFrame frame = logs::frame_of({line, begin, begin + found.size()}, kNoTime);
      usual->quotes = std::max(usual->quotes, frame.quotes);
      usual->text |= frame.text;
      usual->denied |= frame.denied;
      usual->past |= frame.past;
    }
  return *usual;
}

// Keeps reported matches rather than mentioned ones, and of these only the rules with the highest rank of
// Rule::says.
void Scanner::keep_most() {
  const auto reported = [](const RuleMatch& m) { return !m.mentioned; };
  if (std::ranges::any_of(matches_, reported)) std::erase_if(matches_, std::not_fn(reported));
  Says most = Says::kNotice;
  for (const RuleMatch& m : matches_)
    if (matcher_->rules_[m.rule].decides) most = std::max(most, matcher_->rules_[m.rule].says);
  std::erase_if(matches_, [&](const RuleMatch& m) { return matcher_->rules_[m.rule].says < most; });
}

// Bytes of the wording's fixed text in the message: the sum, over all sets, of the longest text found.
size_t Scanner::fixed_bytes(uint32_t pattern) const {
  const Matcher::Wording& wording = matcher_->patterns_[pattern];
  const auto longest = [&](const std::vector<std::string>& texts) {
    size_t bytes = 0;
    for (const std::string& text : texts)
      if (text.size() > bytes && find_text(lower_, text) != npos) bytes = text.size();
    return bytes;
  };
  const auto is_part = [&](const std::string& whole) {
    return std::ranges::any_of(wording.literals,
                               [&](const std::string& part) { return whole.find(part) != npos; });
  };
  // If texts are searched by a shared part, the first set of `also` contains the full texts: count them only
  // once.
  const bool twice = !wording.also.empty() && std::ranges::all_of(wording.also.front(), is_part);
  size_t bytes = twice ? 0 : longest(wording.literals);
  for (const std::vector<std::string>& texts : wording.also) bytes += longest(texts);
  return bytes;
}

// Sorts by rank, fixed text and position. The order of rule ids decides only ties.
void Scanner::put_most_specific_first(std::string_view message) {
  if (lower_.empty() && !message.empty()) {
    lower_.resize(message.size());
    lower_ascii(message, lower_.data());
  }
  // Each key is a search through the line: it is computed once.
  std::vector<std::tuple<int, int64_t, uint32_t, size_t>> order;
  for (size_t i = 0; i < matches_.size(); ++i) {
    const RuleMatch& m = matches_[i];
    const auto says = static_cast<int>(matcher_->rules_[m.rule].says);
    order.emplace_back(-says, -static_cast<int64_t>(fixed_bytes(m.pattern)), m.begin, i);
  }
  std::ranges::sort(order);
  std::vector<RuleMatch> sorted;
  for (const auto& key : order) sorted.push_back(std::move(matches_[std::get<size_t>(key)]));
  matches_ = std::move(sorted);
}

void Scanner::restrict_to(std::span<const uint32_t> rules) {
  const Matcher& m = *matcher_;
  if (!restriction_) {
    restriction_ = std::make_unique<Restriction>();
    Restriction& made = *restriction_;
    made.first.resize(m.rules_.size() + 1);
    for (const Matcher::Wording& wording : m.patterns_) ++made.first[wording.rule + 1];
    std::partial_sum(made.first.begin(), made.first.end(), made.first.begin());
    made.literals.resize(m.patterns_.size());
    for (uint32_t literal = 0; literal < m.by_literal_.size(); ++literal)
      for (const uint32_t pattern : m.by_literal_[literal]) made.literals[pattern].push_back(literal);
    made.stamps.resize(m.by_literal_.size());
  }
  Restriction& to = *restriction_;
  to.patterns.clear();
  for (const uint32_t rule : rules)
    for (uint32_t pattern = to.first[rule]; pattern < to.first[rule + 1]; ++pattern)
      to.patterns.push_back(pattern);
  work_ += to.patterns.size();
  if (program_size_ > kProgramSizeMax) free_compiled();
}

void Scanner::consider_restricted(size_t end) {
  Restriction& to = *restriction_;
  to.in_line.clear();
  for (; at_ < hits_.size() && hits_[at_].end <= end; ++at_) {
    to.stamps[hits_[at_].literal] = stamp_;
    to.in_line.push_back(hits_[at_].literal);
  }
  for (const uint32_t pattern : to.patterns) {
    const std::vector<uint32_t>& literals = to.literals[pattern];
    work_ += kLookingUp * (1 + literals.size());
    if (literals.empty() || std::any_of(literals.begin(), literals.end(),
                                        [&](uint32_t literal) { return to.stamps[literal] == stamp_; }))
      consider(pattern);
  }
}

// Finds one rule that decides by its wording and ranks above the weakest match: one such rule suffices to
// show that this match gives way.
void Scanner::find_particular(std::string_view message, TextSource source) {
  Says least = Says::kCause;
  for (const RuleMatch& m : matches_) least = std::min(least, matcher_->rules_[m.rule].says);
  if (least == Says::kCause) return;
  const auto is_particular = [&](uint32_t rule) {
    return matcher_->rules_[rule].says > least && matcher_->rules_[rule].decides;
  };
  if (std::ranges::any_of(matches_, [&](const RuleMatch& m) { return is_particular(m.rule); })) return;
  const auto found_one = [&](const std::vector<uint32_t>& patterns) {
    work_ += kLookingUp * patterns.size();
    for (const uint32_t pattern : patterns) {
      const uint32_t rule = matcher_->patterns_[pattern].rule;
      if (!is_particular(rule)) continue;
      verify(pattern, message, source);
      if (found_[rule] == stamp_) return true;
    }
    return false;
  };
  for (const uint32_t literal : restriction_->in_line)
    if (found_one(matcher_->by_literal_[literal])) return;
  found_one(matcher_->always_);
}

std::span<const RuleMatch> Scanner::match(size_t begin, size_t end, std::string_view message,
                                          TextSource source, TimeNs time_ns) {
  time_ = time_ns;
  matches_.clear();
  candidates_.clear();
  lower_.clear();
  if (++stamp_ == 0) {  // the counter overflowed after 2^32 lines
    std::fill(stamps_.begin(), stamps_.end(), 0);
    std::fill(found_.begin(), found_.end(), 0);
    if (restriction_) std::fill(restriction_->stamps.begin(), restriction_->stamps.end(), 0);
    stamp_ = 1;
  }
  while (at_ < hits_.size() && hits_[at_].end <= begin) ++at_;
  if (restriction_) {
    consider_restricted(end);
  } else {
    for (; at_ < hits_.size() && hits_[at_].end <= end; ++at_)
      for (const uint32_t pattern : matcher_->by_literal_[hits_[at_].literal]) consider(pattern);
    for (const uint32_t pattern : matcher_->always_) consider(pattern);
  }
  // Patterns are numbered by rule and, within a rule, in the order of the file: the first matching wording
  // supplies the holes.
  std::sort(candidates_.begin(), candidates_.end());
  for (const uint32_t pattern : candidates_) verify(pattern, message, source);
  if (restriction_) find_particular(message, source);
  if (matcher_->always_.empty()) next_ = at_ < hits_.size() ? hits_[at_].end : kNone;
  keep_most();
  if (matches_.size() > 1 && !restriction_) put_most_specific_first(message);
  return matches_;
}

}  // namespace culprit::rules
