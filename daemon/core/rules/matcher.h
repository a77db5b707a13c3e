// Finds the rules whose wordings match a line. Vectorscan looks for the rarest required literals of all
// patterns in one pass over a block of text. RE2 verifies the lines that contain all that a pattern requires,
// and captures their holes. A Matcher is immutable and shared by all threads; a Scanner belongs to one
// thread.
#pragma once

#include <re2/re2.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "base/time.h"
#include "core/logs/mention.h"
#include "core/rules/rule.h"

struct hs_database;
struct hs_scratch;

namespace culprit::rules {

// Bytes, not characters: a broken character must not hide a line.
re2::RE2::Options regex_options();

// One rule found in one line. Holes are in the order of Rule::holes; a hole that the wording lacks is empty.
struct RuleMatch {
  uint32_t rule = 0;
  bool general = false;                 // of its rule
  bool mentioned = false;               // the message does not report it (core/logs/mention.h)
  uint32_t pattern = 0;                 // index of the wording in the matcher
  uint32_t begin = 0;                   // offset of the wording in the message
  std::vector<std::string_view> holes;  // views into the message
};

class Matcher {
 public:
  // Skips disabled rules. Errors come from Vectorscan or RE2 and concern the rules as a whole: each pattern
  // was checked alone before.
  static Result<std::shared_ptr<const Matcher>> create(std::span<const Rule> rules);
  ~Matcher();
  Matcher(const Matcher&) = delete;
  Matcher& operator=(const Matcher&) = delete;

  size_t literals() const { return by_literal_.size(); }
  size_t patterns() const { return patterns_.size(); }

  // The compiled literals, for another process of this architecture, and a hash that tells whether a compiled
  // form belongs to these literals (core/rules/library_tables.h).
  Result<std::string> serialise() const;
  uint64_t literal_hash() const { return literal_hash_; }

 private:
  friend class Scanner;
  struct Wording {
    uint32_t rule = 0;
    std::string regex;
    std::vector<std::vector<std::string>> also;  // see Pattern
    std::vector<std::string> literals;           // likewise
  };
  struct Of {  // the properties of a rule
    SourceSet sources = 0;
    Says says = Says::kCause;
    bool decides = false;    // the wording alone decides: no window or function may reject a match
    bool of_kernel = false;  // its examples are a kernel's lines, and none is an exception
    std::vector<std::string> holes;
    std::vector<std::string> except;  // regexes
    std::vector<std::string> hit;     // its examples
  };

  Matcher() = default;
  void add(const Rule& rule, uint32_t index, std::vector<std::string>& literals);
  void require_whole(std::span<const std::string> literals, std::span<const std::string_view> looked_for);
  Status compile(const std::vector<std::string>& literals);

  std::vector<Of> rules_;
  std::vector<Wording> patterns_;
  std::vector<std::vector<uint32_t>> by_literal_;  // patterns
  std::vector<uint32_t> always_;                   // patterns without literals
  uint64_t literal_hash_ = 0;
  hs_database* database_ = nullptr;
};

class Scanner {
 public:
  explicit Scanner(std::shared_ptr<const Matcher> matcher);
  ~Scanner();
  Scanner(Scanner&&) noexcept;
  Scanner& operator=(Scanner&&) = delete;

  // Finds the literals of a block of whole lines. The block is borrowed until the next call.
  void begin(std::string_view block);
  // Whether match() needs a line that ends at `end` (an offset in the block): a literal ends before it, or a
  // rule checks every line.
  bool wants(size_t end) const { return next_ <= end; }
  // The end of the next literal; npos after the last one; 0 with rules that check every line.
  size_t next() const { return next_; }
  // The rules that match the line [begin, end) of the block. Call for lines in order. Sorted by the rank of
  // Rule::says (highest first), then by fixed text in the message (most first), then by position, then by
  // rule. If the message reports one match, matches that it only mentions are dropped. The result is valid
  // until the next call. `time_ns`: time of the line, if known.
  std::span<const RuleMatch> match(size_t begin, size_t end, std::string_view message, TextSource source,
                                   TimeNs time_ns = kNoTime);
  // Rewinds, so that the next line may begin at `begin` again.
  void back_to(size_t begin);
  // The end of the first literal at or after `from`; npos if there is none.
  size_t next_literal(size_t from);

  // Restricts match() to these rules. If a general rule matches, match() also looks for one rule that it
  // gives way to. The cost of a line then does not depend on the number of other rules.
  void restrict_to(std::span<const uint32_t> rules);
  // Cost of restricted match() so far, in units of LoadWork.
  uint64_t work() const { return work_; }

 private:
  struct Hit {
    uint32_t end, literal;
  };
  struct Compiled {
    std::unique_ptr<re2::RE2> regex;
    std::vector<int> groups;  // for each hole of the rule: its group in the regex; 0: none
  };
  struct Restriction;
  const Compiled& compile(uint32_t pattern);
  std::unique_ptr<re2::RE2> compile_counted(const std::string& regex);
  void count_match(const re2::RE2& regex, size_t bytes, bool captures);
  void free_compiled();
  void consider_restricted(size_t end);
  void find_particular(std::string_view message, TextSource source);
  bool is_excepted(uint32_t rule, const re2::StringPiece& text);
  static int on_hit(unsigned id, unsigned long long from, unsigned long long to, unsigned flags, void* self);
  void consider(uint32_t pattern);
  bool may_match(uint32_t pattern, std::string_view message);
  void verify(uint32_t pattern, std::string_view message, TextSource source);
  // Finds the wording and its holes in the text. Prefers an occurrence that the text reports, else takes the
  // first mention. Returns whether the wording is only mentioned.
  bool find_reported(uint32_t pattern, const Compiled& compiled, const re2::StringPiece& text);
  const logs::MentionFrame& usual_frame(uint32_t pattern, const Compiled& compiled);
  void keep_most();
  void put_most_specific_first(std::string_view message);
  size_t fixed_bytes(uint32_t pattern) const;

  std::shared_ptr<const Matcher> matcher_;
  hs_scratch* scratch_ = nullptr;
  std::string_view block_;
  std::vector<Hit> hits_;
  std::vector<uint32_t> last_;    // by literal: the end of its last hit in the block
  size_t at_ = 0;                 // index of the next hit
  size_t next_ = 0;               // end of that hit; 0 with rules that check every line
  std::vector<uint32_t> stamps_;  // by pattern: the last line that considered it
  std::vector<uint32_t> found_;   // by rule: the last line that matched it
  uint32_t stamp_ = 0;
  TimeNs time_ = kNoTime;             // of the line
  std::vector<uint32_t> candidates_;  // patterns of the line
  std::string lower_;                 // its message in lower case; empty: not made yet
  std::vector<RuleMatch> matches_;
  std::vector<re2::StringPiece> groups_;
  std::vector<std::optional<logs::MentionFrame>>
      usual_;  // by pattern: the maximum frame around it in its rule's examples
  // Compiled when a line first needs it: most patterns never match a line.
  std::vector<Compiled> compiled_;                              // by pattern
  std::vector<std::vector<std::unique_ptr<re2::RE2>>> except_;  // by rule
  size_t program_size_ = 0;                                     // of all compiled regexes
  uint64_t work_ = 0;
  std::unique_ptr<Restriction> restriction_;
};

}  // namespace culprit::rules
