#include "core/rules/run.h"

#include <boost/test/unit_test.hpp>

#include "fixtures.h"

namespace culprit::rules {
namespace {

constexpr TimeNs kStart = 1'763'690'000 * kNsPerSecond;

// A rule that fires on any hit that its window accepts; its examples match.
std::string windowed(std::string_view id, std::string_view window, std::string_view more = "") {
  return rule_text(
      id, fmt::format("window = {{ {} }}, examples = {{ hit = {{ {} }}, miss = {{ \"fine\" }} }}, {}", window,
                      "\"fault 1\\nfault 2\\nfault 3\\nfault 4\\nfault 5\"", more));
}

class Fed {
 public:
  explicit Fed(const std::string& text) : set(need(load_all({{"a.lua", text}}, &errors), errors)), run(set) {}

  static std::shared_ptr<Ruleset> need(std::shared_ptr<Ruleset> set, const std::string& errors) {
    BOOST_REQUIRE_MESSAGE(set, errors);
    return set;
  }

  // Seconds from the start; negative: not known.
  std::optional<Firing> hit(std::string_view rule, double second, RuleHit more = {}) {
    more.rule = *run.ruleset().find(rule);
    if (second >= 0) more.time_ns = kStart + static_cast<TimeNs>(second * 1e9);
    if (more.holes.empty()) more.holes = {"1"};
    more.text = "fault " + more.holes[0];
    return run.add(more);
  }

  std::string errors;
  std::shared_ptr<Ruleset> set;
  RuleRun run;
};

RuleHit on(std::string host, std::optional<uint32_t> rank = {}, std::optional<uint32_t> device = {}) {
  RuleHit out;
  out.host = std::move(host);
  out.rank = rank;
  out.device = device;
  return out;
}

RuleHit saying(std::string value, std::string host = "h") {
  RuleHit out = on(std::move(host));
  out.holes = {std::move(value)};
  return out;
}

}  // namespace

BOOST_AUTO_TEST_CASE(a_rule_without_a_window_fires_with_every_hit) {
  Fed fed(rule_text("a.b"));
  BOOST_TEST(fed.hit("a.b", 0).has_value());
  const auto firing = fed.hit("a.b", 1, on("h", 3));
  BOOST_REQUIRE(firing.has_value());
  BOOST_TEST(firing->count == 1u);
  BOOST_TEST(firing->ranks == 1u);
  BOOST_TEST(firing->first_ns == kStart + kNsPerSecond);
}

BOOST_AUTO_TEST_CASE(hits_with_another_value_of_the_hole_that_must_be_the_same_count_apart) {
  Fed fed(rule_text("a.b",
                    "window = { by = 'job', span = '10s', at_least = 2, same = 'n' }, examples = { "
                    "hit = { \"fault 1\\nfault 1\" }, miss = { \"fault 1\\nfault 2\" } }"));
  BOOST_TEST(!fed.hit("a.b", 0, saying("1")).has_value());
  BOOST_TEST(!fed.hit("a.b", 1, saying("2")).has_value());
  const auto firing = fed.hit("a.b", 2, saying("1", "other"));
  BOOST_REQUIRE(firing);
  BOOST_TEST(firing->count == 2u);
}

BOOST_AUTO_TEST_CASE(a_state_is_over_after_the_hit_of_its_recovery_on_the_same_host_and_unit) {
  const std::string of = "recovery = { rule = 'a.up', same = 'n', within = '5s' }";
  Fed fed(windowed("a.b", "by = 'host', span = '60s', at_least = 1", of) +
          rule_text("a.up",
                    "match = { template = 'up <n>' }, examples = { hit = { 'up 1' }, miss = { 'fine' } }"));
  const auto down = [](const char* unit, const char* host, TimeNs second) {
    RuleHit out = saying(unit, host);
    out.time_ns = kStart + second * kNsPerSecond;
    return out;
  };
  fed.hit("a.b", 0, saying("1"));
  fed.hit("a.up", 4, saying("1", "other"));
  fed.hit("a.up", 4, saying("2"));
  BOOST_TEST(!fed.run.recovered(down("1", "h", 0)));
  fed.hit("a.up", 4, saying("1"));
  BOOST_TEST(fed.run.recovered(down("1", "h", 0)));
  fed.hit("a.b", 10, saying("1"));
  fed.hit("a.up", 16, saying("1"));
  BOOST_TEST(!fed.run.recovered(down("1", "h", 10)));  // later than within
  const auto firing = fed.hit("a.b", 20, saying("1"));
  BOOST_REQUIRE(firing);
  BOOST_TEST(firing->down_ns == 10 * kNsPerSecond);  // 4 s and 6 s; the last one is open
}

BOOST_AUTO_TEST_CASE(hits_count_together_by_what_the_window_says) {
  const struct {
    const char* by;
    RuleHit same, other;
  } cases[] = {
      {"host", on("a", 1), on("b", 1)},
      {"rank", on("a", 1), on("a", 2)},
      {"device", on("a", {}, 1), on("a", {}, 2)},
      {"device", on("a", {}, 1), on("b", {}, 1)},
  };
  for (const auto& c : cases) {
    Fed fed(windowed("a.b", fmt::format("by = '{}', span = '10s', at_least = 2", c.by)));
    BOOST_TEST(!fed.hit("a.b", 0, c.same).has_value());
    BOOST_TEST(!fed.hit("a.b", 1, c.other).has_value(), c.by);
    BOOST_TEST(fed.hit("a.b", 2, c.same).has_value(), c.by);
  }
  Fed job(windowed("a.b", "by = 'job', span = '10s', at_least = 2"));
  BOOST_TEST(!job.hit("a.b", 0, on("a", 1)).has_value());
  const auto firing = job.hit("a.b", 1, on("b", 2));
  BOOST_REQUIRE(firing.has_value());
  BOOST_TEST(firing->hosts == 2u);
  BOOST_TEST(firing->ranks == 2u);
}

BOOST_AUTO_TEST_CASE(a_span_holds_both_its_ends) {
  for (const auto& [second, fires] : {std::pair{10.0, true}, {10.000001, false}}) {
    Fed fed(windowed("a.b", "span = '10s', at_least = 2"));
    BOOST_TEST(!fed.hit("a.b", 0).has_value());
    BOOST_TEST(fed.hit("a.b", second).has_value() == fires);
  }
}

BOOST_AUTO_TEST_CASE(a_window_goes_on_firing_while_it_holds_enough) {
  Fed fed(windowed("a.b", "span = '10s', at_least = 3"));
  std::string fired;
  for (double t : {0., 1., 2., 3., 13.5, 14., 15.}) fired += fed.hit("a.b", t) ? '1' : '0';
  BOOST_TEST(fired == "0011001");
}

BOOST_AUTO_TEST_CASE(distinct_counts_values_and_lacking_ones_not) {
  Fed fed(windowed("a.b", "span = '10s', at_least = 3, distinct = 'n'"));
  BOOST_TEST(!fed.hit("a.b", 0, saying("x")).has_value());
  BOOST_TEST(!fed.hit("a.b", 1, saying("x")).has_value());
  BOOST_TEST(!fed.hit("a.b", 2, saying("y")).has_value());
  BOOST_TEST(!fed.hit("a.b", 3, saying("")).has_value());
  const auto firing = fed.hit("a.b", 4, saying("z"));
  BOOST_REQUIRE(firing.has_value());
  BOOST_TEST(firing->distinct == 3u);
  BOOST_TEST(firing->count == 5u);
}

BOOST_AUTO_TEST_CASE(after_and_unless_ask_whether_the_other_fired_for_the_same) {
  const std::string other = rule_text("o.o");
  for (const bool after : {true, false}) {
    // Both have the same wording; the other one follows in order of ids, and so fires after this one.
    Fed fed(rule_text("o.o") +
            rule_text("a.b",
                      fmt::format("window = {{ span = '10s', {} = 'o.o' }}, examples = {{ hit = {{ \"fault "
                                  "1{}\" }}, miss = {{ \"fine\" }} }},",
                                  after ? "after" : "unless", after ? "\\nfault 1" : "")));
    BOOST_TEST(fed.hit("a.b", 0, on("h")).has_value() == !after);
    fed.hit("o.o", 1, on("h"));
    BOOST_TEST(fed.hit("a.b", 2, on("h")).has_value() == after);
    BOOST_TEST(fed.hit("a.b", 2, on("g")).has_value() == !after);  // another host
    BOOST_TEST(fed.hit("a.b", 11, on("h")).has_value() == after);
    BOOST_TEST(fed.hit("a.b", 11.1, on("h")).has_value() == !after);
  }
}

BOOST_AUTO_TEST_CASE(a_hit_without_a_time_takes_that_of_the_hit_before) {
  Fed fed(windowed("a.b", "span = '10s', at_least = 2"));
  fed.hit("a.b", 5);
  const auto firing = fed.hit("a.b", -1);
  BOOST_REQUIRE(firing.has_value());
  BOOST_TEST(firing->last_ns == kStart + 5 * kNsPerSecond);
  Fed never(windowed("a.b", "span = '10s', at_least = 2"));
  never.hit("a.b", -1);
  const auto timeless = never.hit("a.b", -1);
  BOOST_REQUIRE(timeless.has_value());
  BOOST_TEST(timeless->first_ns == kNoTime);
  BOOST_TEST(timeless->last_ns == kNoTime);
}

BOOST_AUTO_TEST_CASE(hits_out_of_order_count_as_if_they_had_come_in_order) {
  Fed fed(windowed("a.b", "span = '10s', at_least = 3"));
  fed.hit("a.b", 100);
  BOOST_TEST(!fed.hit("a.b", 95).has_value());
  const auto firing = fed.hit("a.b", 98);
  BOOST_REQUIRE(firing.has_value());
  BOOST_TEST(firing->first_ns == kStart + 95 * kNsPerSecond);
  BOOST_TEST(firing->last_ns == kStart + 100 * kNsPerSecond);
  // A much earlier hit is not counted in a window, and the drop is counted.
  BOOST_TEST(fed.run.dropped() == 0u);
  BOOST_TEST(!fed.hit("a.b", 1).has_value());
  BOOST_TEST(fed.run.dropped() == 1u);
  BOOST_TEST(fed.hit("a.b", 106)->count == 3u);  // 98, 100, 106
}

BOOST_AUTO_TEST_CASE(times_at_the_ends_of_what_they_can_be_do_no_harm) {
  Fed fed(windowed("a.b", "span = '7d', at_least = 2"));
  for (TimeNs time : {std::numeric_limits<TimeNs>::max(), kNoTime + 1, TimeNs{0}, TimeNs{-1}}) {
    RuleHit hit = saying("x");
    hit.time_ns = time;
    fed.run.add(hit);
  }
  BOOST_TEST(fed.run.dropped() == 3u);
}

BOOST_AUTO_TEST_CASE(windows_are_bounded_whatever_the_number_of_keys_and_hits) {
  Fed fed(windowed("a.b", "by = 'host', span = '1h', at_least = 2"));
  constexpr size_t kHosts = 70'000, kMost = 65'536;
  for (size_t i = 0; i < kHosts; ++i) fed.hit("a.b", 0, on(fmt::format("h{}", i)));
  BOOST_TEST(fed.run.entries() == kMost);
  BOOST_TEST(fed.run.dropped() == kHosts - kMost);
  BOOST_TEST(fed.hit("a.b", 1, on("h0")).has_value());  // existing windows continue
  // Once they are stale, there is room for new ones.
  size_t fired = 0;
  for (size_t i = 0; i < 10'000; ++i) fired += fed.hit("a.b", 7200, on("new")).has_value();
  BOOST_TEST(fired > 5000u);
  BOOST_TEST(fed.run.entries() < 2000u);
}

BOOST_AUTO_TEST_CASE(a_window_keeps_its_latest_hits_and_counts_what_it_drops) {
  Fed fed(windowed("a.b", "span = '1h', at_least = 5"));
  for (int i = 0; i < 2000; ++i) fed.hit("a.b", i * 0.001);
  BOOST_TEST(fed.run.entries() == 1024u);
  BOOST_TEST(fed.run.dropped() == 976u);
  BOOST_TEST(fed.hit("a.b", 3)->count == 1024u);
}

BOOST_AUTO_TEST_CASE(a_function_sees_holes_and_window) {
  Fed fed(
      windowed("a.b", "by = 'job', span = '10s', at_least = 2",
               "when = function(e, w) return e.n == w.count .. '' and e.text == 'fault ' .. e.n and "
               "w.first_ns <= w.last_ns and w.hosts >= 1 and w.ranks >= 0 and w.distinct == w.count end,"));
  fed.hit("a.b", 0, saying("1"));
  BOOST_TEST(fed.hit("a.b", 1, saying("2")).has_value());
  BOOST_TEST(!fed.hit("a.b", 2, saying("2")).has_value());
  BOOST_TEST(fed.run.troubles().empty());
}

BOOST_AUTO_TEST_CASE(no_line_is_too_long_for_a_function) {
  Fed fed(rule_text("a.b", "when = function(e) return #(e.n .. e.text) > 0 end,"));
  for (int i = 0; i < 4; ++i) BOOST_TEST(fed.hit("a.b", 0, saying(std::string(1 << 20, 'x'))).has_value());
  BOOST_TEST(fed.run.troubles().empty());
}

BOOST_AUTO_TEST_CASE(three_overruns_quarantine_a_rule_and_that_is_reported) {
  Fed fed(rule_text("a.b", "when = function(e) while e.n == '7' do end return true end,") + rule_text("a.c"));
  for (int i = 1; i <= 3; ++i) {
    BOOST_TEST(fed.hit("a.b", i).has_value());  // other subjects are evaluated until the third
    BOOST_TEST(!fed.hit("a.b", i, saying("7")).has_value());
    BOOST_REQUIRE(fed.run.troubles().size() == 1u);
    BOOST_TEST(fed.run.troubles()[0].overruns == static_cast<uint64_t>(i));
    BOOST_TEST(fed.run.troubles()[0].quarantined == (i == 3));
  }
  BOOST_TEST(
      fed.run.troubles()[0].what ==
      "a.lua:4: rule a.b: when: used more than 100000 instructions; after 3 overruns it is not evaluated any "
      "more");
  BOOST_TEST(!fed.hit("a.b", 4).has_value());
  BOOST_TEST(fed.hit("a.c", 4).has_value());
}

BOOST_AUTO_TEST_CASE(an_error_is_counted_and_reported_and_quarantines_nothing) {
  Fed fed(rule_text("a.b", "when = function(e) if e.n == '7' then error('why') end return true end,"));
  for (int i = 0; i < 10; ++i) BOOST_TEST(!fed.hit("a.b", i, saying("7")).has_value());
  BOOST_REQUIRE(fed.run.troubles().size() == 1u);
  BOOST_TEST(fed.run.troubles()[0].errors == 10u);
  BOOST_TEST(fed.run.troubles()[0].overruns == 0u);
  BOOST_TEST(fed.run.troubles()[0].what == "a.lua:4: rule a.b: when: why");
  BOOST_TEST(fed.hit("a.b", 11).has_value());
}

BOOST_AUTO_TEST_CASE(the_watchdogs_overruns_count_with_the_counted_ones) {
  Fed fed(rule_text("a.b", "when = function(e) return true end,"));
  for (int i = 0; i < 3; ++i) fed.run.overrun("a.b");
  fed.run.overrun("no.such.rule");
  BOOST_TEST(!fed.hit("a.b", 0).has_value());
  BOOST_TEST(fed.run.troubles()[0].quarantined);
}

BOOST_AUTO_TEST_CASE(a_reload_keeps_what_unchanged_rules_remember_and_forgets_changed_ones) {
  const auto text = [](std::string_view span, std::string_view title) {
    return windowed("a.same", "span = '10s', at_least = 2", fmt::format("title = '{}',", title)) +
           windowed("a.window", fmt::format("span = '{}', at_least = 2", span)) +
           rule_text("b.same", "when = function() return true end,");
  };
  Fed fed(text("10s", "one"));
  const auto hash = [&](std::string_view id) {
    return fed.run.ruleset().rules()[*fed.run.ruleset().find(id)].text_hash;
  };
  const uint64_t before = hash("a.same");
  fed.hit("a.same", 0);
  fed.hit("a.window", 0);
  fed.run.overrun("a.window");
  std::string errors;
  // A rule before the others shifts all indices.
  const auto next = load_all({{"a.lua", rule_text("a.a") + text("20s", "two")}}, &errors);
  BOOST_REQUIRE_MESSAGE(next, errors);
  fed.run.replace(next);
  BOOST_TEST(hash("a.same") == before);
  BOOST_TEST(fed.run.entries() == 1u);
  BOOST_TEST(fed.run.troubles().empty());
  BOOST_TEST(fed.hit("a.same", 1).has_value());
  BOOST_TEST(!fed.hit("a.window", 1).has_value());
}

BOOST_AUTO_TEST_CASE(a_reload_keeps_the_quarantine_of_an_unchanged_rule_alone) {
  const std::string before = rule_text("a.b", "when = function() return true end,");
  for (const bool same : {true, false}) {
    Fed fed(before);
    for (int i = 0; i < 3; ++i) fed.run.overrun("a.b");
    fed.run.replace(load_all({{"a.lua", same ? before : before + "-- mended"}}));
    BOOST_TEST(fed.hit("a.b", 0).has_value() == !same);
    BOOST_TEST(fed.run.troubles().size() == (same ? 1u : 0u));
    for (int i = 0; i < 3; ++i) fed.run.overrun("a.b");
    BOOST_TEST(fed.run.troubles().size() == 1u);
    BOOST_TEST(fed.run.troubles()[0].overruns == (same ? 6u : 3u));
  }
}

BOOST_AUTO_TEST_CASE(what_the_shell_reported_of_a_rule_outlives_a_clearing_and_ends_with_its_text) {
  const std::string before = rule_text("a.b", "when = function() return true end,");
  for (const bool crashed : {true, false}) {
    Fed fed(before);
    if (crashed)
      fed.run.quarantine("a.b");
    else
      for (int i = 0; i < 3; ++i) fed.run.overrun("a.b");
    fed.run.quarantine("no.such.rule");
    for (int i = 0; i < 2; ++i) {
      BOOST_REQUIRE(fed.run.troubles().size() == 1u);
      BOOST_TEST(fed.run.troubles()[0].quarantined);
      BOOST_TEST(!fed.hit("a.b", i).has_value());
      fed.run.clear();
    }
    if (crashed)
      BOOST_TEST(
          fed.run.troubles()[0].what ==
          "a.lua:1: rule a.b was running when the process died; it is not evaluated until it is changed");
    fed.run.replace(load_all({{"a.lua", before}}));
    BOOST_TEST(!fed.hit("a.b", 3).has_value());
    fed.run.replace(load_all({{"a.lua", before + "-- mended"}}));
    fed.run.clear();
    BOOST_TEST(fed.hit("a.b", 4).has_value());
  }
}

BOOST_AUTO_TEST_CASE(a_watcher_of_functions_sees_each_call_and_no_other_rule) {
  struct Seen : FunctionWatch {
    std::string calls;
    void enter(const Rule& rule) override { calls += rule.id + "("; }
    void leave() override { calls += ")"; }
  } seen;
  const auto set = load_all(
      {{"a.lua",
        rule_text("a.a") +
            rule_text("a.b", "when = function(e) if e.n == '7' then error('x') end return true end,") +
            rule_text("a.c", "when = function() return true end,")}});
  BOOST_REQUIRE(set);
  RuleRun run(set, &seen);
  for (uint32_t rule : {0u, 1u, 2u}) {  // the second one raises an error: it ends as well
    RuleHit hit;
    hit.rule = rule;
    hit.text = "fault 7";
    hit.holes = {"7"};
    run.add(hit);
  }
  BOOST_TEST(seen.calls == "a.b()a.c()");
}

BOOST_AUTO_TEST_CASE(the_same_hits_fire_the_same_twice) {
  const auto fired = [] {
    Fed fed(windowed("a.b", "by = 'host', span = '10s', at_least = 3, distinct = 'n'",
                     "when = function(e, w) return w.count % 2 == 1 end, general = true,"));
    std::string out;
    for (int i = 0; i < 500; ++i)
      out += fed.hit("a.b", i * 0.7, saying(std::to_string(i * 7 % 5), i % 3 ? "a" : "b")) ? '1' : '0';
    return out;
  };
  BOOST_TEST(fired() == fired());
  BOOST_TEST(fired().find("01") != std::string::npos);
}

}  // namespace culprit::rules
