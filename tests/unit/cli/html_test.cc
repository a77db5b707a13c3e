// The report's own file: self-contained and locked, bounded, the same bytes for the same report, and
// hostile text in it is data. What a browser makes of it: tests/web.
#include <array>
#include <boost/test/unit_test.hpp>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "app/run/attempt_history.h"
#include "base/text.h"
#include "cli/render.h"
#include "cli/report_page.h"
#include "model/headline.h"
#include "model/report_json.h"
#include "model/report_json_read.h"
#include "report_samples.h"

namespace culprit::cli {
namespace {

bool has(std::string_view text, std::string_view part) { return text.find(part) != text.npos; }

size_t count(std::string_view text, std::string_view part) {
  size_t n = 0;
  for (size_t at = 0; (at = text.find(part, at)) != text.npos; at += part.size()) ++n;
  return n;
}

// What stands between two texts.
std::string_view between(std::string_view text, std::string_view from, std::string_view to) {
  const size_t at = text.find(from);
  BOOST_REQUIRE(at != text.npos);
  text.remove_prefix(at + from.size());
  return text.substr(0, text.find(to));
}
std::string_view data_in(std::string_view html) {
  return between(html, "<script type=\"application/json\" id=\"data\">", "</script>");
}
std::string_view text_in(std::string_view html) { return between(html, "<pre class=\"plain\">", "</pre>"); }
nlohmann::json read(std::string_view html) { return nlohmann::json::parse(data_in(html)); }

uint32_t rotated(uint32_t x, int n) { return x >> n | x << (32 - n); }

void sha256_block(const uint8_t* block, std::array<uint32_t, 8>& h) {
  static constexpr std::array<uint32_t, 64> kRound{
      0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
      0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
      0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
      0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
      0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
      0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
      0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
      0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};
  std::array<uint32_t, 64> w{};
  for (size_t i = 0; i < 16; ++i)
    w[i] = uint32_t{block[4 * i]} << 24 | uint32_t{block[4 * i + 1]} << 16 | uint32_t{block[4 * i + 2]} << 8 |
           block[4 * i + 3];
  for (size_t i = 16; i < 64; ++i)
    w[i] = w[i - 16] + (rotated(w[i - 15], 7) ^ rotated(w[i - 15], 18) ^ w[i - 15] >> 3) + w[i - 7] +
           (rotated(w[i - 2], 17) ^ rotated(w[i - 2], 19) ^ w[i - 2] >> 10);
  std::array<uint32_t, 8> s = h;
  for (size_t i = 0; i < 64; ++i) {
    const uint32_t one = s[7] + (rotated(s[4], 6) ^ rotated(s[4], 11) ^ rotated(s[4], 25)) +
                         ((s[4] & s[5]) ^ (~s[4] & s[6])) + kRound[i] + w[i];
    const uint32_t two = (rotated(s[0], 2) ^ rotated(s[0], 13) ^ rotated(s[0], 22)) +
                         ((s[0] & s[1]) ^ (s[0] & s[2]) ^ (s[1] & s[2]));
    s = {one + two, s[0], s[1], s[2], s[3] + one, s[4], s[5], s[6]};
  }
  for (size_t i = 0; i < 8; ++i) h[i] += s[i];
}

std::string sha256_base64(std::string_view text) {
  std::string padded(text);
  padded += '\x80';
  while (padded.size() % 64 != 56) padded += '\0';
  for (int shift = 56; shift >= 0; shift -= 8) padded += static_cast<char>(text.size() * 8 >> shift);
  std::array<uint32_t, 8> h{0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                            0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
  for (size_t i = 0; i < padded.size(); i += 64)
    sha256_block(reinterpret_cast<const uint8_t*>(&padded[i]), h);
  constexpr std::string_view kDigits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::vector<uint32_t> bits;
  for (const uint32_t word : h)
    for (int shift = 31; shift >= 0; --shift) bits.push_back(word >> shift & 1);
  bits.resize(258);
  std::string out;
  for (size_t i = 0; i < bits.size(); i += 6) {
    uint32_t digit = 0;
    for (size_t k = 0; k < 6; ++k) digit = digit << 1 | bits[i + k];
    out += kDigits[digit];
  }
  return out + "=";
}

// Of a job of so many hosts, with everything that a chart may draw.
Report large(int hosts) {
  Report r = failed();
  r.activity.hosts.clear();
  for (int i = 0; i < hosts; ++i)
    r.activity.hosts.push_back(
        {"n" + std::to_string(i), std::vector<uint32_t>(96, 4), std::vector<uint32_t>(96)});
  r.suspects = {suspect("n2718", 0.9)};
  r.activity.hosts[1234].indicating[90] = 4;
  for (int i = 0; i < 100'000; ++i) r.indicating[0].where.push_back({"n1", std::string(100, 'x'), 1});
  for (int step = 0; step < 500; ++step) r.comm.steps.push_back(step);
  r.comm.step_ms.assign(500, 123.456);
  r.comm.without_ms.assign(500, 100.123);
  for (uint32_t rank = 0; rank < 64; ++rank)
    r.comm.rows.push_back(
        {rank, "n" + std::to_string(rank), rank % 8, std::vector<float>(500, rank == 9 ? 98.7f : 1.234f)});
  for (int i = 0; i < 6; ++i) {
    StepPicture p;
    p.step = i, p.step_ms = 123, p.unit_ms = 0.015, p.ops = {"all_reduce dp"}, p.ranks = 8192;
    for (uint32_t rank = 0; rank < 256; ++rank) {
      StepPicture::Row row;
      row.rank = rank, row.host = "n" + std::to_string(rank), row.awaited_ms = rank == 200 ? 50 : 0;
      row.parts.assign(12, {123, 456, 78, 0, 8000});
      p.rows.push_back(row);
    }
    r.comm.pictures.push_back(p);
  }
  return r;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(html)

BOOST_AUTO_TEST_CASE(hostile_text_is_data_and_nothing_else) {
  RenderOptions options;
  options.lines = {{kHostile, kHostile, 4706, {4711}, {kHostile, kHostile}, {0, 7}}};
  options.job = kHostile;
  options.notes = {kHostile};
  app::AttemptHistory attempts;
  attempts.attempts.resize(2);
  for (app::Attempt& a : attempts.attempts) {
    a.status = 1, a.begin_ns = a.end_ns = 0;
    a.headline = a.resume = a.decision.why = kHostile;
    a.decision.again = true, a.decision.hosts = {kHostile};
  }
  attempts.pages = {kHostile, ""};
  attempts.ledger = kHostile;
  options.attempts = &attempts;
  const std::string html = render_html(hostile(), options);
  for (const std::string_view part : {data_in(html), text_in(html), between(html, "<title>", "</title>")})
    for (const char* evil : {"<", ">", "\x1b", "\x07", "\xc2\x9b", "\xe2\x80\xae", "\xe2\x80\xa8"})
      BOOST_TEST(!has(part, evil), evil);
  BOOST_TEST(count(html, "<script") == 2u);
  BOOST_TEST(count(html, "</script>") == 2u);
  BOOST_TEST(to_utf8(html) == html);
  const auto data = read(html);
  BOOST_TEST(data["report"]["job"]["id"].get<std::string>() == to_utf8(kHostile));
  BOOST_TEST(data["lines"][0]["lines"][1].get<std::string>() == to_utf8(kHostile));
}

BOOST_AUTO_TEST_CASE(separators_of_lines_are_written_out) {
  const std::string html = render_html(failed("a\xe2\x80\xa8 b\xe2\x80\xa9 c</script d<!-- e"), {});
  for (const char* part : {"\xe2\x80\xa8", "\xe2\x80\xa9", "</script d", "<!-- e"})
    BOOST_TEST(!has(html, part), part);
  BOOST_TEST(has(data_in(html), "c\\u003c/script d\\u003c!-- e"));
}

BOOST_AUTO_TEST_CASE(the_file_is_self_contained_and_locked) {
  const std::string html = render_html(failed(), {});
  const ReportPage& page = report_page();
  const std::string policy = "default-src 'none'; script-src '" + std::string(page.script_hash) +
                             "'; style-src '" + std::string(page.style_hash) +
                             "'; base-uri 'none'; form-action 'none'\"";
  BOOST_TEST(has(html, "<meta http-equiv=\"Content-Security-Policy\" content=\"" + policy));
  for (const char* part :
       {"http://", "https://", " src=", "<link", "<base", "@import", "url(", " style=\"", "unsafe-inline"})
    BOOST_TEST(!has(html, part), part);
}

BOOST_AUTO_TEST_CASE(the_script_makes_no_markup_of_texts_and_asks_for_nothing) {
  for (const char* part :
       {"innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "fetch(", "import("})
    BOOST_TEST(!has(report_page().script, part), part);
}

BOOST_AUTO_TEST_CASE(the_policy_lets_the_script_and_the_style_sheet_in) {
  BOOST_REQUIRE(sha256_base64("abc") == "ungWv48Bz+pBQUDeXa4iI7ADYaOWF3qctBD/YfIAFa0=");  // FIPS 180-4, B.1
  const std::string html = render_html(failed(), {});
  BOOST_TEST("sha256-" + sha256_base64(between(html, "<script>", "</script>")) == report_page().script_hash);
  BOOST_TEST("sha256-" + sha256_base64(between(html, "<style>", "</style>")) == report_page().style_hash);
}

BOOST_AUTO_TEST_CASE(the_same_report_gives_the_same_bytes) {
  BOOST_TEST(render_html(large(3000), {}) == render_html(large(3000), {}));
}

BOOST_AUTO_TEST_CASE(without_a_script_the_verdict_and_what_to_do_are_text) {
  const std::string html = render_html(failed(), {});
  for (const char* part : {"GPU has fallen off the bus", "node-17", "Isolate node-17",
                           "runs/node-17.log:4711", "Replace the GPU."})
    BOOST_TEST(has(text_in(html), part), part);
  BOOST_TEST(count(text_in(html), "\n") > 10u);
}

BOOST_AUTO_TEST_CASE(the_data_is_the_report_with_charts_lines_and_zone) {
  RenderOptions options;
  options.zone_name = "Europe/Berlin";
  options.zone = 3600;
  options.lines = {{"node-17", "runs/node-17.log", 4706, {4711}, {"a", "b", "c"}, {0, 0, 12}}};
  const auto data = read(render_html(failed(), options));
  BOOST_TEST(data["zone"] == "Europe/Berlin");
  BOOST_TEST(data["report"]["verdict"]["id"] == "d1");
  BOOST_TEST(data["report"]["charts"]["activity"]["hosts"].size() == 2u);
  BOOST_TEST(data["lines"][0]["first"] == 4706);
  BOOST_TEST(data["lines"][0]["cut"][2] == 12);
  BOOST_TEST(data["from"].empty());
}

BOOST_AUTO_TEST_CASE(an_interrupted_reading_is_said_first) {
  for (Report r : {failed(), Report{}}) {
    r.job.lines = 10, r.job.bytes = 100;
    BOOST_TEST(read(render_html(r, {}))["notes"].empty());
    r.interrupted = true;
    BOOST_TEST(
        has(read(render_html(r, {}))["notes"][0].get<std::string>(), "Reading was stopped after 10 lines"));
  }
}

BOOST_AUTO_TEST_CASE(without_proof_of_health_nothing_is_called_well) {
  Report r;
  r.job.lines = 12, r.job.bytes = 400, r.job.hosts = 1;
  r.missing = {"lines that tell progress"};
  conclude(r);
  const auto report = read(render_html(r, {}))["report"];
  BOOST_TEST(has(report["headline"].get<std::string>(), "whether the job is well is unknown"));
  BOOST_TEST(report["state"] == "cannot_tell");
}

BOOST_AUTO_TEST_CASE(the_file_of_a_large_job_has_a_bound_and_keeps_what_stands_out) {
  const std::string html = render_html(large(3000), {});
  BOOST_TEST(html.size() <= size_t{1} << 20);
  const auto charts = read(html)["report"]["charts"];
  const auto& hosts = charts["activity"]["hosts"];
  const auto retained = [&](const char* name) {
    return std::any_of(hosts.begin(), hosts.end(), [&](const auto& h) { return h["host"] == name; });
  };
  BOOST_TEST(retained("n2718"));
  BOOST_TEST(retained("n1234"));
  BOOST_TEST(charts["activity"]["hosts_all"] == 3000);
  const auto& ranks = charts["comm"]["rows"];
  BOOST_TEST(std::any_of(ranks.begin(), ranks.end(), [](const auto& row) { return row["rank"] == 9; }));
  const auto& rows = charts["comm"]["pictures"][0]["rows"];
  BOOST_TEST(std::any_of(rows.begin(), rows.end(), [](const auto& row) { return row["rank"] == 200; }));
}

BOOST_AUTO_TEST_CASE(lines_that_take_six_times_their_length_are_cut) {
  Report r = failed();
  RenderOptions options;
  Evidence long_one;
  long_one.host = "n1", long_one.file = "a.log", long_one.line = 7;
  long_one.text.assign(1500, '<');
  for (int i = 0; i < 19; ++i) r.diagnoses.push_back(r.diagnoses[0]);
  for (Diagnosis& d : r.diagnoses) d.evidence.assign(20, long_one);
  for (uint64_t i = 0; i < 80; ++i)
    options.lines.push_back({"n1",
                             "a.log",
                             1 + 20 * i,
                             {6 + 20 * i},
                             std::vector<std::string>(11, std::string(400, '<')),
                             std::vector<uint64_t>(11, 5)});
  const std::string html = render_html(r, options);
  BOOST_TEST(html.size() <= size_t{1} << 20);
  const auto line = read(html)["lines"][0];
  BOOST_TEST(line["lines"][0].get<std::string>().size() + line["cut"][0].get<size_t>() == 405u);
}

BOOST_AUTO_TEST_CASE(a_daemons_answer_gives_the_same_data) {
  const Report r = large(300 + 2719);
  const auto back = report_from_json(to_json(r, Charts::kIncluded));
  BOOST_TEST_REQUIRE(back.has_value());
  BOOST_TEST(data_in(render_html(*back, {})) == data_in(render_html(r, {})));
}

BOOST_AUTO_TEST_CASE(the_verdict_stays_whatever_its_place) {
  Report r = failed();
  for (int i = 0; i < 40; ++i)
    r.diagnoses.insert(r.diagnoses.begin(), r.diagnoses[0]), r.diagnoses[0].id = "x";
  r.verdict = 40;
  const auto report = read(render_html(r, {}))["report"];
  BOOST_TEST(report["verdict"]["id"] == "d1");
  BOOST_TEST(report["diagnoses"].size() == 20u);
  BOOST_TEST(report["cut"]["diagnoses"] == 21);
}

BOOST_AUTO_TEST_CASE(odd_times_and_values_do_no_harm) {
  Report r = large(1300);
  r.diagnoses[0].time_ns = INT64_MAX / 2;
  r.indicating[0].first_ns = -INT64_MAX / 2;
  r.comm.step_ms[0] = std::numeric_limits<double>::infinity();
  r.comm.rows[1].excess_ms.assign(500, std::numeric_limits<float>::quiet_NaN());
  r.comm.rows[2].excess_ms.resize(4);
  r.activity.hosts[0].lines.clear();
  BOOST_TEST(read(render_html(r, {}))["report"]["charts"]["comm"]["step_ms"][0] == "Infinity");
  BOOST_TEST(read(render_html(Report{}, {}))["report"]["verdict"].is_null());
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace culprit::cli
