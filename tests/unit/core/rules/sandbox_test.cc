// Properties of the sandbox other than those in attacks_test.cc.
#include "core/rules/sandbox.h"

#include <fmt/format.h>

#include <boost/test/unit_test.hpp>

namespace culprit::rules {
namespace {

struct When {
  Sandbox sandbox;
  int function = 0;

  explicit When(const std::string& body, const std::string& before = "") {
    const auto done = sandbox.run(before + " rule { when = function(event, window) " + body + " end }",
                                  [&](std::string_view, Value table, uint32_t) {
                                    function = table.find("when")->function;
                                    return std::string();
                                  });
    BOOST_REQUIRE_MESSAGE(done.has_value(), done.error().text);
  }
  tl::expected<bool, ScriptError> call(const Value& event = Value::table()) {
    return sandbox.call(function, event, Value::table());
  }
};

bool holds(const std::string& condition) {
  const auto answer = When("return " + condition).call();
  if (!answer) BOOST_TEST_MESSAGE(condition << ": " << answer.error().text);
  return answer && *answer;
}

}  // namespace

BOOST_AUTO_TEST_CASE(an_event_and_a_window_are_read_by_their_fields) {
  Value event = Value::table();
  event.fields["text"] = Value::of(std::string("a\0b", 3));
  event.fields["time_ns"] = Value::of(int64_t{1'763'690'000'123'456'789});
  event.fields["rank"] = Value::of(int64_t{131});
  When when(
      "return #event.text == 3 and event.time_ns == 1763690000123456789 and event.rank == 131 and "
      "event.step == nil and math.type(event.time_ns) == 'integer'");
  BOOST_TEST(*when.call(event));
}

BOOST_AUTO_TEST_CASE(our_text_functions_answer_as_documented) {
  BOOST_TEST(holds("text.has('Xid 79', [[Xid \\d+]]) == true"));
  BOOST_TEST(holds("text.has('Xid', [[Xid \\d+]]) == false"));
  BOOST_TEST(holds("text.match('a=1 b=2', [[b=(\\d)]]) == '2'"));
  BOOST_TEST(holds("select(2, text.match('a=1 b=2', [[a=(\\d) b=(\\d)]])) == '2'"));
  BOOST_TEST(holds("text.match('abc', 'b.') == 'bc'"));
  BOOST_TEST(holds("text.match('abc', 'd') == nil"));
  BOOST_TEST(holds("select(1, text.match('b', '(a)?b')) == nil"));
  BOOST_TEST(holds("text.number('loss -1.5e3 x 2') == -1500"));
  BOOST_TEST(holds("text.number('none') == nil"));
}

BOOST_AUTO_TEST_CASE(nothing_tells_an_address) {
  BOOST_TEST(holds("tostring({}) == 'table' and tostring(print == nil) == 'true'"));
  BOOST_TEST(holds("tostring(tostring) == 'function' and tostring(event) == 'table'"));
  BOOST_TEST(holds("string.format('%s %s %d', {}, assert, 3) == 'table function 3'"));
  BOOST_TEST(!When("return string.format('%10p', 'x') ~= ''").call().has_value());
  BOOST_TEST(holds("string.format('%%p %5.1f', 2) == '%p   2.0'"));
}

BOOST_AUTO_TEST_CASE(tables_are_walked_in_the_order_of_their_keys) {
  const std::string walk =
      "local t = {zz = 1, b = 2, a = 3, [7] = 4, [-1] = 5, [2.5] = 6, [true] = 7, [false] = 8, ['7'] = 9} "
      "local out = '' ";
  const std::string want = "return out == 'false true -1 2.5 7 7 a b zz '";
  BOOST_TEST(*When(walk + "for k in pairs(t) do out = out .. tostring(k) .. ' ' end " + want).call());
  BOOST_TEST(*When(walk + "for k in next, t do out = out .. tostring(k) .. ' ' end " + want).call());
  BOOST_TEST(holds("next({}) == nil and next({x = 1}) == 'x' and next({x = 1}, 'x') == nil"));
  BOOST_TEST(
      *When("local t, n = {1, 2, 3}, 0 for k in pairs(t) do t[k + 1] = nil n = n + 1 end return n == 2")
           .call());
}

BOOST_AUTO_TEST_CASE(the_same_input_costs_and_answers_the_same) {
  const std::string body =
      "local t = {} for i = 1, 200 do t['k' .. (i * 7919 % 1000)] = i end local s = 0 "
      "for k, v in pairs(t) do s = (s * 31 + v) % 1000003 end "
      "for i = 1, 3000 do s = s + #string.format('%d %s', i, event.text) end return s % 2 == 0";
  Value event = Value::table();
  event.fields["text"] = Value::of(std::string("a line"));
  When first(body), second(body);
  const bool answer = *first.call(event);
  const uint64_t cost = first.sandbox.instructions();
  BOOST_TEST(cost > 10'000);
  for (int i = 0; i < 3; ++i) {
    BOOST_TEST(*first.call(event) == answer);
    BOOST_TEST(first.sandbox.instructions() == cost);
  }
  BOOST_TEST(*second.call(event) == answer);
  BOOST_TEST(second.sandbox.instructions() == cost);
}

BOOST_AUTO_TEST_CASE(an_error_tells_its_line_and_an_overrun_the_line_that_ran) {
  const auto error = When("\n\n local x = nil + 1 return true").call();
  BOOST_TEST(error.error().line == 3);
  BOOST_TEST(error.error().text == "attempt to perform arithmetic on a nil value");
  BOOST_TEST(When("\n\n\n while true do end").call().error().line == 4);
  BOOST_TEST(When("\n while true do \n text.number('1') end").call().error().line == 3);
}

BOOST_AUTO_TEST_CASE(an_overrun_leaves_the_next_call_a_full_budget) {
  When when("if event.text then while true do end end return true");
  Value loop = Value::table();
  loop.fields["text"] = Value::of(std::string("x"));
  BOOST_TEST(static_cast<int>(when.call(loop).error().overrun) == static_cast<int>(Overrun::kInstructions));
  BOOST_TEST(*when.call());
  BOOST_TEST(when.sandbox.instructions() == 0u);
}

BOOST_AUTO_TEST_CASE(an_error_after_a_collection_of_garbage_is_no_overrun) {
  // Garbage fills the state until an allocation fails, is collected, and the call continues.
  When when(
      "local s = 'x' for i = 1, 12 do s = s .. s end local keep = {} for i = 1, 800 do keep[i] = s:upper() "
      "end "
      "for i = 1, 1000 do local garbage = s:upper() end error('plain')");
  const auto answer = when.call();
  BOOST_TEST(answer.error().text == "plain");
  BOOST_TEST(static_cast<int>(answer.error().overrun) == static_cast<int>(Overrun::kNone));
}

BOOST_AUTO_TEST_CASE(a_state_that_is_full_is_not_collected_for_each_small_text) {
  const auto load = [](int tables, const std::string& then) {
    Sandbox sandbox;
    const auto done = sandbox.run(
        fmt::format("local t, h = {{}} for i = 1, 50000 do t[i] = {{}} end for i = 1, {} do h = {{h}} end {}",
                    tables, then),
        [](std::string_view, Value, uint32_t) { return std::string(); });
    return done ? ScriptError{} : done.error();
  };
  int fits = 0;
  for (int step = 1 << 14; step; step /= 2)
    if (load(fits + step, "").text.empty()) fits += step;
  BOOST_TEST(fits > 1000);
  const ScriptError error = load(fits, "for i = 1, 1e9 do local x = {{}} end");
  BOOST_TEST(error.text == "held more than 4096 KiB of memory");
  BOOST_TEST(static_cast<int>(error.overrun) == static_cast<int>(Overrun::kMemory));
}

BOOST_AUTO_TEST_CASE(what_a_function_keeps_between_calls_is_bounded) {
  When when("for i = 1, 50 do all[#all + 1] = {event.text, i} end return true", "local all = {}");
  size_t most = 0;
  int failed = 0;
  for (int i = 0; i < 3000; ++i) {
    if (!when.call()) ++failed;
    most = std::max(most, when.sandbox.live_bytes());
  }
  BOOST_TEST(failed > 0);
  BOOST_TEST(most <= kCallBudget.live_bytes + (64 << 10));
}

BOOST_AUTO_TEST_CASE(a_chunk_that_is_no_lua_is_reported_as_such) {
  for (const char* text :
       {"x =", "goto a", "break", "local t <wrong> = 1", "::a:: ::a::", "'", "[[", "\\", "\x1b"}) {
    Sandbox sandbox;
    const auto done = sandbox.run(text, [](std::string_view, Value, uint32_t) { return std::string(); });
    BOOST_TEST(!done.has_value());
    BOOST_TEST(done.error().syntax, text);
  }
  Sandbox sandbox;
  const auto done =
      sandbox.run("error('near')", [](std::string_view, Value, uint32_t) { return std::string(); });
  BOOST_TEST(!done.error().syntax);
}

}  // namespace culprit::rules
