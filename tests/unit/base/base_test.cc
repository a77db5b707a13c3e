#include <boost/test/unit_test.hpp>

#include "base/flat_map.h"
#include "base/hash.h"
#include "base/text.h"
#include "base/time.h"

using namespace culprit;

BOOST_AUTO_TEST_CASE(civil_dates_and_nanoseconds_agree_both_ways) {
  for (const TimeNs t :
       std::initializer_list<TimeNs>{0, 1'795'226'400LL * kNsPerSecond + 5, -86'401LL * kNsPerSecond,
                                     951'782'400LL * kNsPerSecond /* 2000-02-29 */}) {
    const Civil c = civil_from_ns(t);
    const TimeNs back =
        ((days_from_civil(c.year, c.month, c.day) * 24 + c.hour) * 60 + c.minute) * 60 + c.second;
    BOOST_TEST(back * kNsPerSecond + c.nanosecond == t);
  }
  BOOST_TEST(format_time(1'795'226'400LL * kNsPerSecond) == "2026-11-21 02:00:00.000");
  BOOST_TEST(format_time(1'795'226'400LL * kNsPerSecond, 7200) == "2026-11-21 04:00:00.000");
  BOOST_TEST(format_time(kNoTime) == "-");
}

BOOST_AUTO_TEST_CASE(offsets_are_read_in_the_usual_shapes_and_nothing_else) {
  const struct {
    const char* text;
    int seconds;
  } good[] = {{"UTC", 0}, {"Z", 0}, {"+02:00", 7200}, {"-0530", -19800}, {"+09", 32400}, {"UTC+1:", -1}};
  for (const auto& row : good)
    if (row.seconds != -1) BOOST_TEST(parse_utc_offset(row.text).value_or(1) == row.seconds);
  for (const char* bad : {"", "2", "+2", "+2:0", "Europe/Berlin", "+25:00", "+02:75", "+02:00:00"})
    BOOST_TEST(!parse_utc_offset(bad).has_value());
}

BOOST_AUTO_TEST_CASE(no_control_character_reaches_a_terminal) {
  BOOST_TEST(to_terminal("a\x1b[31mred\x07") == "a\\x1b[31mred\\x07");
  BOOST_TEST(to_terminal("tab\tstays") == "tab\tstays");
  BOOST_TEST(to_terminal("\xe2\x80\xae"
                         "evil") == "\\u202eevil");
  BOOST_TEST(to_terminal("\xc2\x9b") == "\\x9b");
}

BOOST_AUTO_TEST_CASE(bytes_that_are_no_utf8_are_replaced_one_by_one) {
  BOOST_TEST(to_utf8("ok \xff\xc0\x80 \xc3\xa9") == "ok \xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd \xc3\xa9");
  BOOST_TEST(to_utf8("\xed\xa0\x80").size() == 9u);  // a lone surrogate is no character
  BOOST_TEST(to_utf8("\xe2\x82") == "\xef\xbf\xbd\xef\xbf\xbd");
}

BOOST_AUTO_TEST_CASE(html_is_escaped) {
  BOOST_TEST(to_html("<a b='c'>&\"") == "&lt;a b=&#39;c&#39;&gt;&amp;&quot;");
}

BOOST_AUTO_TEST_CASE(shortening_never_splits_a_character) {
  BOOST_TEST(shorten("abc", 3) == "abc");
  const std::string cut = shorten("\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9", 6);
  BOOST_TEST(cut == "\xc3\xa9…");
}

BOOST_AUTO_TEST_CASE(a_flat_map_holds_what_was_put_in_through_growth) {
  FlatMap<uint32_t> map(4);
  for (uint32_t i = 0; i < 10'000; ++i) BOOST_TEST(map.try_emplace(i * 7919ull, i).second);
  for (uint32_t i = 0; i < 10'000; ++i) BOOST_TEST(*map.find(i * 7919ull) == i);
  BOOST_TEST(!map.try_emplace(0, 5).second);
  BOOST_TEST(map.find(1) == nullptr);
  BOOST_TEST(map.size() == 10'000u);
}

BOOST_AUTO_TEST_CASE(a_flat_map_that_was_cleared_holds_nothing_of_before) {
  FlatMap<uint32_t> map(4);
  for (uint32_t life = 0; life < 3; ++life) {
    for (uint32_t i = life; i < 100 + 10 * life; ++i) BOOST_TEST(map.try_emplace(i, i + life).second);
    for (uint32_t i = life; i < 100 + 10 * life; ++i) BOOST_TEST(*map.find(i) == i + life);
    map.clear();
    BOOST_TEST(map.size() == 0u);
    for (uint32_t i = 0; i < 130; ++i) BOOST_TEST(map.find(i) == nullptr);
  }
}

BOOST_AUTO_TEST_CASE(durations_and_sizes_read_well) {
  BOOST_TEST(format_duration(450 * kNsPerMs) == "450ms");
  BOOST_TEST(format_duration(12'300 * kNsPerMs) == "12.3s");
  BOOST_TEST(format_duration(3'723 * kNsPerSecond) == "1h 02m 03s");
  BOOST_TEST(format_bytes(999) == "999 B");
  BOOST_TEST(format_bytes(1'234'567) == "1.2 MB");
  BOOST_TEST(counted(1, "host") == "1 host");
  BOOST_TEST(counted(0, "host") == "0 hosts");
}

BOOST_AUTO_TEST_CASE(a_zone_has_the_offset_of_each_date_and_reads_clocks_that_were_moved) {
  constexpr TimeNs kHour = 3600 * kNsPerSecond;
  constexpr TimeNs kSpring = 1'774'746'000 * kNsPerSecond;  // 2026-03-29 01:00 UTC: 02:00 becomes 03:00
  constexpr TimeNs kAutumn = 1'792'890'000 * kNsPerSecond;  // 2026-10-25 01:00 UTC: 03:00 becomes 02:00
  const Zone berlin(3600, {{kSpring, 7200}, {kAutumn, 3600}});
  BOOST_TEST(format_time(kSpring - 1, berlin) == "2026-03-29 01:59:59.999");
  BOOST_TEST(format_time(kSpring, berlin) == "2026-03-29 03:00:00.000");
  BOOST_TEST(format_time(kAutumn, berlin) == "2026-10-25 02:00:00.000");
  const struct {
    TimeNs shown, time;
  } rows[] = {{kSpring, kSpring - kHour},              // 01:00
              {kSpring + kHour, kSpring},              // 02:00 was skipped
              {kSpring + 2 * kHour, kSpring},          // 03:00
              {kAutumn + kHour, kAutumn - kHour},      // 02:00 came twice
              {kAutumn + 2 * kHour, kAutumn + kHour},  // 03:00
              {kSpring + 9000 * kHour, kSpring + 8999 * kHour}};
  for (const auto& row : rows) BOOST_TEST(berlin.from_clock(row.shown) == row.time);
}

BOOST_AUTO_TEST_CASE(a_part_is_found_where_string_view_finds_it) {
  const std::string text = "abcabcaab, abcab: abbcaabcabacbbabcacabca abacabab";
  for (size_t begin = 0; begin < text.size(); ++begin)
    for (size_t size = 0; begin + size <= text.size(); ++size) {
      const std::string_view within = std::string_view(text).substr(begin, size);
      for (const std::string_view part : {"a", "ab", "bca", "abacabab", "cab: abbcaabcabacbbabc", "z", "bz"})
        for (size_t from = 0; from <= size + 1; from += 3)
          BOOST_REQUIRE(find_text(within, part, from) == within.find(part, from));
    }
}

BOOST_AUTO_TEST_CASE(only_letters_of_ascii_become_lower_case) {
  std::string text;
  for (int c = 0; c < 256; ++c) text += static_cast<char>(c);
  for (size_t size = 0; size <= text.size(); ++size) {
    std::string lower(size, '?');
    lower_ascii(std::string_view(text).substr(0, size), lower.data());
    for (size_t i = 0; i < size; ++i)
      BOOST_REQUIRE(lower[i] == (i >= 'A' && i <= 'Z' ? text[i] + 32 : text[i]));
  }
}
