#include "core/rules/matcher.h"

#include <boost/test/unit_test.hpp>
#include <random>
#include <set>

#include "base/text.h"
#include "core/rules/pattern.h"
#include "core/rules/ruleset.h"
#include "fixtures.h"

namespace culprit::rules {
namespace {

Pattern regex_pattern(const std::string& regex) {
  const auto wording = analyse(regex);
  return {regex, false, regex, wording->literals, wording->also};
}

Pattern template_pattern(const std::string& text) {
  const auto regex = template_to_regex(text);
  BOOST_REQUIRE_MESSAGE(regex.has_value(), text);
  const auto wording = analyse(*regex);
  return {text, true, *regex, wording->literals, wording->also};
}

Rule rule_of(std::vector<Pattern> any) {
  Rule out;
  out.id = "a.b";
  for (const Pattern& p : any) {
    const auto names = analyse(p.regex);
    BOOST_REQUIRE_MESSAGE(names.has_value(), p.regex);
    for (const std::string& name : names->holes)
      if (std::find(out.holes.begin(), out.holes.end(), name) == out.holes.end()) out.holes.push_back(name);
  }
  out.any = std::move(any);
  return out;
}

// For each line the rules found in it, "0(hole,hole) 3()"; only lines that the scanner selects are tried.
std::vector<std::string> scan(const std::vector<Rule>& rules, std::string_view block,
                              TextSource source = TextSource::kLog) {
  const auto matcher = Matcher::create(rules);
  BOOST_REQUIRE_MESSAGE(matcher.has_value(), matcher.error().text);
  Scanner scanner(*matcher);
  scanner.begin(block);
  std::vector<std::string> out;
  for (size_t begin = 0; begin < block.size();) {
    const size_t end = std::min(block.find('\n', begin), block.size());
    std::string output;
    if (scanner.wants(end))
      for (const RuleMatch& m : scanner.match(begin, end, block.substr(begin, end - begin), source)) {
        output += fmt::format("{}(", m.rule);
        for (std::string_view hole : m.holes) output += fmt::format("{},", hole);
        output += ") ";
      }
    out.push_back(output);
    begin = end + 1;
  }
  return out;
}

std::string first(const std::vector<Rule>& rules, std::string_view line) { return scan(rules, line)[0]; }

// "3() 0() " as "0() 3() ": what was found, whatever leads.
std::string by_number(const std::string& found) {
  std::set<int> numbers;
  for (const std::string_view one : split(found, ' '))
    if (!one.empty()) numbers.insert(std::stoi(std::string(one)));
  std::string out;
  for (const int number : numbers) out += fmt::format("{}() ", number);
  return out;
}

}  // namespace

BOOST_AUTO_TEST_CASE(a_template_is_searched_and_its_holes_take_as_little_as_they_can) {
  const struct {
    const char *pattern, *line, *holes;
  } cases[] = {
      {"Xid (PCI:<pci>): <n>, <_>", "NVRM: Xid (PCI:0000:9b:00): 79, pid=1", "0(0000:9b:00,79,) "},
      {"from <a> to <b>", "went from x to y to z",
       "0(x,y to z,) "},  // the last hole takes the rest of the line
      {"from <a> to <b> end", "from x to y end end",
       "0(x,y,) "},  // a hole before the end is as short as possible
      {"<a> failed", "disk sda failed twice, failed", "0(disk sda,) "},
      {"code <a>", "code ", ""},  // one or more
      {"code <a>", "code", ""},
      {"[x] (a|b)* <a>", "[x] (a|b)* y", "0(y,) "},  // characters of a regex have no special meaning
      {"a << b <a>", "a < b c", "0(c,) "},
      {"rank <*> of <_> lost", "rank 1 of 2 lost", "0() "},
      {"<a><b> gone", "xyz gone", "0(x,yz,) "},
      {"Case <a>", "case 1", ""},  // case counts
      {"bytes <a> end", "bytes \xff\xfe\x80 end", "0(\xff\xfe\x80,) "},
  };
  for (const auto& c : cases) {
    const std::string got = first({rule_of({template_pattern(c.pattern)})}, c.line);
    BOOST_TEST(got == c.holes, c.pattern << " in '" << c.line << "': " << got);
  }
}

BOOST_AUTO_TEST_CASE(a_hole_may_hold_a_nul) {
  const std::string line("bytes a\0b end", 13);
  BOOST_TEST(first({rule_of({template_pattern("bytes <a> end")})}, line) == std::string("0(a\0b,) ", 8));
  BOOST_TEST(first({rule_of({template_pattern(std::string("key\0s <a>", 9))})}, std::string("key\0s 1", 7)) ==
             "0(1,) ");
}

BOOST_AUTO_TEST_CASE(of_rules_on_one_line_the_most_specific_comes_first_whatever_its_number) {
  const Rule general = rule_of({regex_pattern("failed: .*")});
  const Rule particular = rule_of({regex_pattern("read failed: no (?:space|room)")});
  const Rule later = rule_of({regex_pattern("on disk sda1")}),
             earlier = rule_of({regex_pattern("read failed:")});
  Rule cause = rule_of({regex_pattern("sda1")}), origin = particular;
  origin.says = Says::kOrigin;
  cause.severity = origin.severity = Severity::kWarning;  // no match gives way
  const std::string line = "read failed: no space on disk sda1";
  BOOST_TEST(first({general, particular}, line) == "1() 0() ");
  BOOST_TEST(first({particular, general}, line) == "0() 1() ");
  // The kernel's lines: in a log the second wording would only be mentioned.
  const auto of_kernel = [&](const std::vector<Rule>& rules) {
    return scan(rules, line, TextSource::kKernel)[0];
  };
  BOOST_TEST(of_kernel({later, earlier}) == "1() 0() ");      // as long, and before
  BOOST_TEST(of_kernel({origin, cause}) == "1() 0() ");       // says more
  BOOST_TEST(first({general, general}, line) == "0() 1() ");  // alike
}

BOOST_AUTO_TEST_CASE(what_is_no_template_is_refused_with_its_reason) {
  for (const char* text : {"", "<a>", "<a><_>", "a <", "a <b", "a <1>", "a <b c>", "a <>", "a\nb", "a <b-c>"})
    BOOST_TEST(!template_to_regex(text).has_value(), text);
  BOOST_TEST(*template_to_regex("a.b <x> <_>") == "a\\.b\\ (?P<x>.+?)\\ (?:.+)");
}

BOOST_AUTO_TEST_CASE(required_literals_are_few_and_long) {
  const struct {
    const char* regex;
    std::vector<std::string> literals;
  } cases[] = {
      {"NVRM: Xid .*: 79, .*", {"nvrm: xid "}},
      {"(?:out of memory|oom-kill)", {"oom-kill", "out of memory"}},
      {"(?i)TimeOut", {"timeout"}},
      {"ab", {}},
      {".*", {}},
      {"(?:abc)?", {}},
      {"(?:abc)+", {"abc"}},
      {"abc|d", {}},
      // What is optional does not hide what is not.
      {"(?:fatal|fail(?:ed|ure)?) to open",
       {"fail to open", "failed to open", "failure to open", "fatal to open"}},
      {"gear(?:-b)?box", {"gear-bbox", "gearbox"}},

      {"(", {}},
      {"\\x00\\x00abc\\x00defg", {"defg"}},  // Vectorscan accepts no literal that begins with a NUL
      {"ab\\x00cd", {}},
      {"(?:0123456789abcdef){1000}",
       {"0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"}},  // nor a very long one
  };
  for (const auto& c : cases) {
    auto got = analyse(c.regex).value_or(Wording{}).literals;
    std::sort(got.begin(), got.end());
    BOOST_TEST(got == c.literals, c.regex << ": " << fmt::format("{}", fmt::join(got, "|")));
  }
}

BOOST_AUTO_TEST_CASE(a_literal_at_the_end_of_one_line_is_not_in_the_next) {
  const std::vector<Rule> rules = {rule_of({regex_pattern("abc$")}), rule_of({regex_pattern("c?def")})};
  const std::vector<std::string> want = {"0() ", "1() ", "", "0() "};
  BOOST_TEST(scan(rules, "xabc\ndef\nab\nabc") == want, boost::test_tools::per_element());
  BOOST_TEST(scan(rules, "xabc\ndef\nab\nabc\n") == want, boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(a_literal_over_a_line_end_is_none) {
  const std::vector<std::string> want = {"", "", "0() "};
  BOOST_TEST(scan({rule_of({regex_pattern("a\\s?bcd")})}, "xa\nbc\na bcd") == want,
             boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(a_line_that_repeats_a_literal_is_found_once_and_the_next_one_too) {
  std::string line;
  for (int i = 0; i < 10000; ++i) line += "abc";
  const std::vector<std::string> want = {"0() ", "0() ", "", "0() "};
  BOOST_TEST(scan({rule_of({regex_pattern("abc")})}, line + "\n" + line + "\nx\nabc") == want,
             boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(the_first_wording_that_fits_gives_the_holes) {
  const Rule rule = rule_of({regex_pattern("(?P<a>\\d+) at end"), regex_pattern("(?P<b>\\w+) begins")});
  BOOST_TEST(first({rule}, "it begins and 7 at end") == "0(7,,) ");
  BOOST_TEST(first({rule}, "it begins") == "0(,it,) ");
}

BOOST_AUTO_TEST_CASE(a_line_with_an_exception_is_no_hit) {
  Rule rule = rule_of({regex_pattern("error")});
  rule.except = {regex_pattern("ignored|harmless")};
  BOOST_TEST(
      scan({rule}, "error\nerror ignored\nharmless error") == (std::vector<std::string>{"0() ", "", ""}),
      boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(exceptions_that_make_no_regex_together_hold_each) {
  Rule rule = rule_of({regex_pattern("error")});
  rule.except = {regex_pattern("\\Qignored (a"), regex_pattern("(?P<n>\\d) fine"),
                 regex_pattern("ok (?P<n>\\d)")};
  BOOST_TEST(scan({rule}, "error\nerror ignored (a\n7 fine error\nerror ok 7") ==
             (std::vector<std::string>{"0() ", "", "", ""}));
}

BOOST_AUTO_TEST_CASE(a_general_rule_gives_way_on_the_same_line_alone) {
  Rule general = rule_of({regex_pattern("error")});
  general.says = Says::kFailure;
  const Rule particular = rule_of({regex_pattern("disk")});
  BOOST_TEST(scan({general, particular}, "error\ndisk error\nerror") ==
                 (std::vector<std::string>{"0() ", "1() ", "0() "}),
             boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(a_rule_looks_at_its_own_sources_alone) {
  Rule kernel = rule_of({regex_pattern("error")});
  kernel.sources = bit(TextSource::kKernel) | bit(TextSource::kFinding);
  BOOST_TEST(scan({kernel}, "error", TextSource::kLog)[0] == "");
  BOOST_TEST(scan({kernel}, "error", TextSource::kKernel)[0] == "0() ");
  BOOST_TEST(scan({kernel}, "error", TextSource::kFinding)[0] == "0() ");
}

BOOST_AUTO_TEST_CASE(a_disabled_rule_is_found_nowhere_and_one_without_literals_everywhere) {
  Rule off = rule_of({regex_pattern("error")});
  off.enabled = false;
  const Rule all = rule_of({regex_pattern("^x")});
  BOOST_TEST(scan({off, all}, "error\nx\nyx") == (std::vector<std::string>{"", "1() ", ""}),
             boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(a_rule_may_look_at_the_message_only) {
  Scanner scanner(*Matcher::create(std::vector<Rule>{rule_of({regex_pattern("^node")})}));
  const std::string_view line = "node-1: a node";
  scanner.begin(line);
  BOOST_TEST(scanner.match(0, line.size(), line.substr(8), TextSource::kLog).empty());
  scanner.begin(line);
  BOOST_TEST(scanner.match(0, line.size(), line.substr(10), TextSource::kLog).size() == 1u);
}

// A shorter literal finds the longer ones: "80cb8002" is in all but the last.
BOOST_AUTO_TEST_CASE(a_literal_that_stands_in_another_hides_neither_rule) {
  const std::vector<Rule> rules = {
      rule_of({regex_pattern("code 0x80cb8002")}), rule_of({regex_pattern("80cb8002")}),
      rule_of({regex_pattern("0x80CB8002, slot \\d")}), rule_of({regex_pattern("80cb800")})};
  const struct {
    const char *line, *found;
  } cases[] = {
      {"event code 0x80cb8002", "0() 1() 3() "},
      {"event 80cb8002", "1() 3() "},
      {"event 0x80CB8002, slot 3", "2() "},
      {"event code 0x80cb8002, 0x80CB8002, slot 3", "2() 0() 1() 3() "},
      {"event 0x80cb800", "3() "},
      {"event 0x80cb", ""},
  };
  for (const auto& c : cases) BOOST_TEST(first(rules, c.line) == c.found, c.line);
}

// A line with such a word is verified by a regex: healthy lines have many of these words.
BOOST_AUTO_TEST_CASE(the_shipped_rules_look_for_no_everyday_word) {
  const std::set<std::string> words = {"device", "devices", "rank",  "step",   "loss",  "epoch", "iteration",
                                       "worker", "memory",  "batch", "socket", "init",  "data",  "model",
                                       "tensor", "process", "group", "config", "start", "stream"};
  const std::shared_ptr<Ruleset> shipped = Ruleset::shipped();
  for (const Rule& rule : shipped->rules())
    for (const Pattern& pattern : rule.any)
      for (const std::string& literal : pattern.literals)
        BOOST_TEST(!words.contains(std::string(trim(literal))), rule.id << ": " << literal);
}

BOOST_AUTO_TEST_CASE(no_rules_find_nothing) { BOOST_TEST(first({}, "any line") == ""); }

namespace {

// Lines and patterns of few letters, so that matches occur; upper case, NUL, invalid UTF-8.
class Generator {
 public:
  explicit Generator(unsigned seed) : random_(seed) {}

  size_t below(size_t n) { return std::uniform_int_distribution<size_t>(0, n - 1)(random_); }

  std::string text(size_t most) {
    static constexpr std::string_view kLetters("aabbcABC \xe3\xc3\0.", 14);
    std::string out;
    for (size_t n = below(most + 1); n; --n) out += kLetters[below(kLetters.size())];
    return out;
  }

  std::string regex(int depth) {
    switch (depth == 0 ? 0 : below(8)) {
      case 1:
        return regex(depth - 1) + regex(depth - 1);
      case 2:
        return "(?:" + regex(depth - 1) + "|" + regex(depth - 1) + ")";
      case 3:
        return "(?:" + regex(depth - 1) + ")" + one_of({"?", "*", "+", "??", "+?", "{0,2}", "{0,2}?", "{1}"});
      case 4:
        return "(?i:" + regex(depth - 1) + ")";
      case 5:
        return one_of({"[ab]", "[^]b]?", "\\w?", "\\x61?", "\\Qab\\E?", "[[:alpha:]^]?", "{a?}", "(a?b)?"}) +
               regex(depth - 1);
      case 6:
        return "^" + regex(depth - 1) + (below(2) ? "$" : "");
      case 7:
        return regex(depth - 1) + ".{0,3}" + regex(depth - 1);
      default:
        return re2::RE2::QuoteMeta(text(5));
    }
  }

  std::string wording() {
    std::string out = text(4);
    for (size_t n = below(3); n; --n) out += (below(2) ? "<_>" : "<*>") + text(4);
    return out;
  }

 private:
  std::string one_of(std::initializer_list<const char*> texts) { return texts.begin()[below(texts.size())]; }

  std::mt19937 random_;
};

}  // namespace

// The scanner tries patterns only at literals; trying every pattern on every line must give the same result.
BOOST_AUTO_TEST_CASE(the_literals_lose_no_line) {
  size_t supported = 0, found = 0;
  for (unsigned seed = 0; seed < 400; ++seed) {
    Generator generator(seed);
    std::vector<Rule> rules;
    for (int i = 0; i < 8; ++i) {
      const std::string text = generator.wording();
      const auto made = template_to_regex(text);
      rules.push_back(rule_of({regex_pattern(i % 2 || !made ? generator.regex(4) : *made)}));
      supported += !rules.back().any[0].literals.empty();
    }
    std::string block;
    for (int i = 0; i < 60; ++i) block += generator.text(16) + "\n";
    const std::vector<std::string> got = scan(rules, block);
    size_t line = 0;
    for (size_t begin = 0; begin < block.size(); ++line) {
      const size_t end = block.find('\n', begin);
      std::string want;
      for (size_t i = 0; i < rules.size(); ++i) {
        const re2::RE2 regex(rules[i].any[0].regex, regex_options());
        if (re2::RE2::PartialMatch(re2::StringPiece(block.data() + begin, end - begin), regex))
          want += fmt::format("{}() ", i);
      }
      found += !want.empty();
      BOOST_REQUIRE_MESSAGE(by_number(got[line]) == want, "seed " << seed << " line " << line << ": '"
                                                                  << got[line] << "' instead of '" << want
                                                                  << "'");
      begin = end + 1;
    }
  }
  BOOST_TEST_MESSAGE(supported << " patterns with literals, " << found << " lines with a rule");
  BOOST_TEST(supported > 1000u);
  BOOST_TEST(found > 1000u);
}

BOOST_AUTO_TEST_CASE(a_thousand_rules_find_each_its_line) {
  std::vector<Rule> rules;
  std::string block;
  for (int i = 0; i < 1000; ++i) {
    rules.push_back(rule_of({template_pattern(fmt::format("fault number {:04}: <n>", i))}));
    block += fmt::format("x fault number {:04}: y\n", (i * 37) % 1000);
  }
  const auto got = scan(rules, block);
  for (int i = 0; i < 1000; ++i) BOOST_TEST(got[i] == fmt::format("{}(y,) ", (i * 37) % 1000));
}

}  // namespace culprit::rules
