// The record of advice against torn and hostile bytes, and the limits of each kind.
#include "model/advice.h"

#include <boost/test/unit_test.hpp>

#include <cmath>
#include <limits>

using namespace culprit;

namespace {

Advice save_now() { return {7, AdviceKind::kSaveNow, 0, 120, 60000, AdviceReason::kSlowHost}; }

}  // namespace

BOOST_AUTO_TEST_CASE(a_record_of_advice_is_read_as_it_was_written) {
  const std::string bytes = encode_advice(save_now(), 1000, 4);
  BOOST_TEST(bytes.size() == kAdviceBytes);
  const auto read = decode_advice(bytes);
  BOOST_REQUIRE(read);
  BOOST_TEST((read->advice == save_now()));
  BOOST_TEST(read->made_ns == 1000);
  BOOST_TEST(read->sequence == 4u);
}

BOOST_AUTO_TEST_CASE(a_record_that_is_being_written_is_no_advice) {
  BOOST_TEST(!decode_advice(encode_advice(save_now(), 1000, 5)));
  BOOST_TEST(!decode_advice(encode_advice(save_now(), 1000, 0)));
}

BOOST_AUTO_TEST_CASE(no_changed_or_missing_byte_of_advice_goes_unnoticed) {
  const std::string whole = encode_advice(save_now(), 1000, 4);
  for (size_t at = 8; at < whole.size(); ++at)
    for (int bit = 0; bit < 8; ++bit) {
      std::string bytes = whole;
      bytes[at] = static_cast<char>(bytes[at] ^ (1 << bit));
      BOOST_TEST(!decode_advice(bytes));
    }
  for (size_t size = 0; size < whole.size(); ++size) BOOST_TEST(!decode_advice(whole.substr(0, size)));
  BOOST_TEST(!decode_advice(whole + "x"));
}

BOOST_AUTO_TEST_CASE(each_kind_of_advice_has_limits) {
  const double nan = std::numeric_limits<double>::quiet_NaN(), inf = std::numeric_limits<double>::infinity();
  const std::tuple<AdviceKind, double, bool> cases[] = {
      {AdviceKind::kRollback, 120, true},   {AdviceKind::kRollback, 0.5, false},
      {AdviceKind::kRollback, -1, false},   {AdviceKind::kSkipBatches, 200, true},
      {AdviceKind::kSkipBatches, 0, false}, {AdviceKind::kLowerLr, 0.5, true},
      {AdviceKind::kLowerLr, 1, false},     {AdviceKind::kLowerLr, 0, false},
      {AdviceKind::kClip, 1, true},         {AdviceKind::kClip, 0, false},
      {AdviceKind::kCheckRank, 3, true},    {AdviceKind::kSaveNow, 0, true},
      {AdviceKind::kSaveNow, 1, false},     {AdviceKind::kStop, 0, true},
      {AdviceKind::kClip, nan, false},      {AdviceKind::kClip, inf, false}};
  for (const auto& [kind, argument, fits] : cases) {
    Advice advice = save_now();
    advice.kind = kind;
    advice.argument = argument;
    BOOST_TEST(check_advice(advice).has_value() == fits, to_string(kind) << ' ' << argument);
    BOOST_TEST(decode_advice(encode_advice(advice, 1, 2)).has_value() == fits);
  }
  Advice none = save_now();
  none.id = 0;
  BOOST_TEST(!check_advice(none));
  Advice late = save_now();
  late.effective_step = kAdviceStepMax + 1;
  BOOST_TEST(!check_advice(late));
}

BOOST_AUTO_TEST_CASE(words_of_advice_are_read_back) {
  for (uint16_t kind = 1; kind <= kAdviceKinds; ++kind)
    BOOST_TEST((advice_kind(to_string(static_cast<AdviceKind>(kind))) == static_cast<AdviceKind>(kind)));
  BOOST_TEST(!advice_kind(""));
  BOOST_TEST(!advice_kind("sav_now"));
  for (uint8_t one = 0; one < kAdviceOutcomes; ++one)
    BOOST_TEST(
        (advice_outcome(to_string(static_cast<AdviceOutcome>(one))) == static_cast<AdviceOutcome>(one)));
}

// As sdk/python/culprit/_advice.py names it.
BOOST_AUTO_TEST_CASE(the_file_of_advice_has_the_name_that_processes_look_for) {
  BOOST_TEST(advice_file_name(1000, "") == "1000-cbf29ce484222325");
  BOOST_TEST(advice_file_name(1000, "a") == "1000-af63dc4c8601ec8c");
}
