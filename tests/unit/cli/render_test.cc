// Display of a report: the answer first, no hostile text, one self-contained page.
#include "cli/render.h"

#include <array>
#include <boost/test/unit_test.hpp>

#include "base/text.h"
#include "cli/html_style.h"
#include "cli/layout.h"
#include "cli/narrative.h"

namespace culprit::cli {
namespace {

constexpr TimeNs kStart = 1'763'690'000 * kNsPerSecond;
// Hostile content of a log line: colours, a window title, a cleared screen, right-to-left text, bad UTF-8, a
// page of its own.
const std::string kHostile =
    "\x1b[2J\x1b]0;owned\x07\r\x08\xc2\x9b"
    "31m \xe2\x80\xae evil \xff </pre><script>alert(1)</script>"
    "<img src=x onerror=alert(1)> \" onload=\"x ' & <style>*{}</style>";

Suspect suspect(const std::string& host, double score, std::vector<uint32_t> ranks = {}) {
  Suspect s;
  s.host = host;
  s.score = score;
  s.ranks = std::move(ranks);
  s.why = {"only its kernel reported it"};
  return s;
}

Report failed(const std::string& text = "NVRM: Xid (PCI:0000:9b:00): 79, GPU has fallen off the bus.") {
  Report r;
  r.job = {"llama", 64, 512, 9'000'000, 120'000, 7, 300, kStart, kStart + 600 * kNsPerSecond};
  Diagnosis d;
  d.id = "d1";
  d.rule = "nvidia.xid.79";
  d.title = "GPU has fallen off the bus";
  d.category = Category::kHardware;
  d.component = Component::kGpu;
  d.symptom = Symptom::kCrash;
  d.stage = Stage::kIterative;
  d.iteration = 1120;
  d.time_ns = kStart + 500 * kNsPerSecond;
  d.confidence = 0.95;
  d.hosts = {suspect("node-17", 0.9, {139})};
  d.why = {"no successful job has such a line"};
  d.evidence.push_back({"node-17", "runs/node-17.log", 4711, std::nullopt, text, d.time_ns, 139, {}});
  d.remedy = "Replace the GPU.";
  d.action = {ActionKind::kIsolate, {"node-17"}};
  r.diagnoses = {d};
  r.verdict = 0;
  r.suspects = d.hosts;
  r.indicating.push_back({"NVRM: Xid (PCI:<*>): 79",
                          0.9,
                          3,
                          {"spatial"},
                          {{"node-17", "runs/node-17.log", 4711}},
                          text,
                          d.time_ns});
  r.activity.first_ns = kStart;
  r.activity.bin_ns = 60 * kNsPerSecond;
  r.activity.hosts = {{"node-16", {5, 5, 5, 5, 5, 5, 5, 5, 5, 5}, std::vector<uint32_t>(10)},
                      {"node-17", {5, 5, 5, 5, 5, 5, 5, 5, 9, 0}, {0, 0, 0, 0, 0, 0, 0, 0, 9, 0}}};
  r.activity.progress = {{kStart, 0}, {kStart + 500 * kNsPerSecond, 1120}};
  return r;
}

// Every external text of the report is the hostile one.
Report hostile() {
  Report r = failed(kHostile);
  r.job.id = kHostile;
  Diagnosis d = r.diagnoses[0];
  d.id = d.title = d.remedy = kHostile;
  d.rule = d.detector = d.evidence[0].file = kHostile;
  d.why = {kHostile};
  d.hosts[0].host = d.evidence[0].host = kHostile;
  d.action.targets = {kHostile};
  d.confirmed = Confirmation{kHostile, 1, 1};
  r.diagnoses = {d, d};
  r.missing = {kHostile};
  r.suspects = d.hosts;
  r.suspects[0].why = {kHostile};
  Indicating& x = r.indicating[0];
  x.template_text = x.where[0].file = kHostile;
  x.where[0].host = kHostile;
  x.why = {kHostile};
  r.iterations = {{5, 0.5, {kHostile}}};
  Irregularity spell;
  spell.suspects = d.hosts, spell.links = {{kHostile, kHostile, 1}};
  r.irregularities = {spell};
  r.numerics = {{1, 2, NumericClass::kSdc, {1}, {kHostile}, 0.5, kHostile}};
  r.hang = Hang{kStart, {{{kHostile}, {1}, false}}, d.hosts};
  r.problems = {{kHostile, 1, kHostile}};
  r.cut = {{kHostile, 1}};
  r.activity.hosts[0].host = kHostile;
  return r;
}

std::string first_line(const std::string& text) { return text.substr(0, text.find('\n')); }
bool has(const std::string& text, std::string_view part) { return text.find(part) != std::string::npos; }

size_t count(const std::string& text, std::string_view part) {
  size_t n = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++n;
  return n;
}

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

}  // namespace

BOOST_AUTO_TEST_SUITE(render)

BOOST_AUTO_TEST_CASE(the_first_line_carries_the_verdict) {
  const std::string line = first_line(render_text(failed(), {}));
  for (const char* part : {"GPU has fallen off the bus", "node-17", "rank 139", "iteration 1120", "95 %"})
    BOOST_TEST(has(line, part), part);
}

BOOST_AUTO_TEST_CASE(a_title_that_names_its_host_does_not_name_it_twice) {
  Report r = failed();
  r.diagnoses[0].title = "node-17 fell silent before its peers";
  BOOST_TEST(count(first_line(render_text(r, {})), "node-17") == 1u);
}

BOOST_AUTO_TEST_CASE(a_verdict_that_accuses_no_host_says_where_its_lines_were_logged) {
  Report r = failed();
  Diagnosis& d = r.diagnoses[0];
  d.hosts.clear();
  r.suspects.clear();
  const auto says = [&](std::string_view words) { return headline(r, {}).find(words) != std::string::npos; };
  BOOST_TEST(says("GPU has fallen off the bus, logged by rank 139 on node-17, at iteration 1120"));
  d.evidence.push_back(d.evidence[0]);
  d.evidence[1].rank = 140;
  BOOST_TEST(says("bus, logged on node-17, at"));
  d.evidence[1].host = "node-16";
  BOOST_TEST(says("bus, at iteration"));
  d.evidence.pop_back();
  r.job.hosts = r.job.ranks = 1;
  BOOST_TEST(says("bus, at iteration"));
}

BOOST_AUTO_TEST_CASE(an_endless_title_leaves_the_rest_of_the_first_line) {
  Report r = failed();
  r.diagnoses[0].title = "KeyError: " + std::string(50'000, 'k') + "\nnext line.";
  RenderOptions options;
  options.width = 160;
  const std::string text = render_text(r, options);
  BOOST_TEST(text.size() < 5000u);
  BOOST_TEST(text.find("node-17 (rank 139)") < 400u);
  BOOST_TEST(!has(text, "\\x0a"));
}

BOOST_AUTO_TEST_CASE(the_text_says_why_where_and_what_to_do) {
  const std::string text = render_text(failed(), {});
  for (const char* part :
       {"no successful job has such a line", "runs/node-17.log:4711", "Isolate node-17", "Replace the GPU.",
        "NVRM: Xid (PCI:<*>): 79", "120,000 lines", "512 ranks", "UTC"})
    BOOST_TEST(has(text, part), part);
}

BOOST_AUTO_TEST_CASE(times_are_shown_in_the_asked_zone_with_its_name) {
  RenderOptions options;
  options.zone = 3600;
  options.zone_name = "Europe/Berlin";
  for (const std::string& page : {render_text(failed(), options), render_html(failed(), options)}) {
    BOOST_TEST(has(page, format_time(kStart + 500 * kNsPerSecond, 3600) + " Europe/Berlin"));
    BOOST_TEST(!has(page, "UTC"));
  }
}

BOOST_AUTO_TEST_CASE(an_inconclusive_report_says_so_first_and_what_is_missing) {
  Report r = failed();
  r.verdict.reset();
  r.diagnoses.clear();
  r.missing = {"logs of successful jobs"};
  const std::string text = render_text(r, {});
  BOOST_TEST(first_line(text).starts_with("No conclusive cause found"));
  BOOST_TEST(!has(first_line(text), "node-17"), "no diagnosis, no accusation");
  BOOST_TEST(text.find("logs of successful jobs") < text.find("Suspects"));
}

BOOST_AUTO_TEST_CASE(a_healthy_report_is_one_quiet_line) {
  Report r;
  r.job.lines = 12, r.job.bytes = 400, r.job.hosts = 1;
  RenderOptions options;
  options.color = true;
  const std::string text = render_text(r, options);
  BOOST_TEST(text == "Nothing wrong found in 12 lines (400 B) of 1 host\n");
}

BOOST_AUTO_TEST_CASE(what_could_not_be_read_is_said_in_the_first_line) {
  Report r;
  BOOST_TEST(first_line(render_text(r, {})) == "Nothing was read: there was no log, trace, metric or dump");
  r.problems = {{"rank_0.comm", std::nullopt, "it is cut"}};
  BOOST_TEST(first_line(render_text(r, {})) ==
             "Nothing was read: 1 file could not be understood (it is cut)");
  r.job.lines = 12, r.job.bytes = 400, r.job.hosts = 1;
  RenderOptions wide;
  wide.width = 140;
  BOOST_TEST(
      first_line(render_text(r, wide)) ==
      "No fault found in 12 lines (400 B) of 1 host; not all could be read, so whether the job is well "
      "is unknown");
}

BOOST_AUTO_TEST_CASE(a_report_without_proof_of_health_does_not_say_that_nothing_is_wrong) {
  Report r;
  r.job.lines = 12, r.job.bytes = 400, r.job.hosts = 1;
  r.missing = {"lines that tell progress"};
  const std::string text = render_text(r, {});
  BOOST_TEST(first_line(text) ==
             "No fault found in 12 lines (400 B) of 1 host; whether the job is well is unknown");
  BOOST_TEST(has(text, "lines that tell progress"));
  BOOST_TEST(!has(render_html(r, {}), "Nothing wrong found"));
}

BOOST_AUTO_TEST_CASE(what_would_tell_more_is_not_reported_again_as_not_read) {
  Report r = failed();
  r.missing = {"records of 3 ranks"};
  r.problems = {{"", std::nullopt, "not there: records of 3 ranks"}};
  for (const std::string& page : {render_text(r, {}), render_html(r, {})}) {
    BOOST_TEST(has(page, "records of 3 ranks"));
    BOOST_TEST(!has(page, "Not read in full"));
  }
}

BOOST_AUTO_TEST_CASE(an_interrupted_reading_is_reported_next_to_what_was_known) {
  for (Report r : {failed(), Report{}}) {
    r.job.lines = 10, r.job.bytes = 100;
    BOOST_TEST(!has(render_text(r, {}), "stopped"));
    BOOST_TEST(!has(render_html(r, {}), "Reading was stopped"));
    r.interrupted = true;
    BOOST_TEST(has(render_text(r, {}), "Reading was stopped after 10 lines"));
    BOOST_TEST(has(render_html(r, {}), "Reading was stopped after 10 lines"));
  }
}

BOOST_AUTO_TEST_CASE(slow_steps_wrong_numbers_and_a_hang_are_reported_without_a_verdict) {
  Report r;
  r.job.lines = 5;
  Irregularity spell;
  spell.first_step = 300, spell.last_step = 340, spell.slowdown = 1.8, spell.kind = SlowPart::kGpu;
  r.irregularities = {spell};
  r.numerics = {{810, 812, NumericClass::kSdc, {131}, {"grad_norm"}, 0.9, "Roll back."}};
  r.hang = Hang{kStart, {{{"train.py:forward:120"}, {3}, false}}, {suspect("node-3", 0.5)}};
  for (const std::string& page : {render_text(r, {}), render_html(r, {})})
    for (const char* part :
         {"steps 300-340", "step 810: sdc", "Roll back.", "train.py:forward:120", "node-3"})
      BOOST_TEST(has(page, part), part);
}

BOOST_AUTO_TEST_CASE(no_control_character_of_a_log_reaches_the_terminal) {
  for (const bool verdict : {true, false}) {
    Report r = hostile();
    if (!verdict) r.verdict.reset();
    const std::string text = render_text(r, {});
    for (const char c : text) BOOST_TEST((c == '\n' || (static_cast<unsigned char>(c) >= 0x20 && c != 0x7f)));
    BOOST_TEST(to_utf8(text) == text);
    for (const char* control : {"\xc2\x9b", "\xe2\x80\xae"}) BOOST_TEST(!has(text, control));
    BOOST_TEST(has(text, "evil"));
  }
}

BOOST_AUTO_TEST_CASE(colour_only_when_asked_and_always_reset) {
  RenderOptions options;
  BOOST_TEST(!has(render_text(failed(), options), "\x1b"));
  options.color = true;
  const std::string text = render_text(failed(), options);
  BOOST_TEST(count(text, "\x1b[0m") > 0u);
  BOOST_TEST(count(text, "\x1b[") == 2 * count(text, "\x1b[0m"));
}

BOOST_AUTO_TEST_CASE(lines_keep_within_the_width) {
  for (const size_t width : {40u, 80u, 120u}) {
    RenderOptions options;
    options.width = width;
    Report r = failed(std::string(3000, 'x') + " Xid " + std::string(500, 'y') + " ü日本");
    r.diagnoses[0].evidence[0].file = r.indicating[0].where[0].file = "a.log";
    const std::string text = render_text(r, options);
    for (const std::string_view line : split(text, '\n')) BOOST_TEST(columns_of(line) <= width, line);
  }
}

BOOST_AUTO_TEST_CASE(a_path_is_never_broken) {
  RenderOptions options;
  options.width = 40;
  Report r = failed();
  const std::string path = "runs/" + std::string(80, 'd') + "/stderr.log";
  r.diagnoses[0].evidence[0].file = path;
  BOOST_TEST(has(render_text(r, options), path + ":4711"));
}

BOOST_AUTO_TEST_CASE(a_long_line_is_cut_around_what_tells) {
  const std::string text = std::string(900, '.') + " NVRM: Xid (PCI:0000:9b:00): 79 " + std::string(900, '.');
  BOOST_TEST(has(render_text(failed(text), {}), "NVRM: Xid (PCI:0000:9b:00): 79"));
  BOOST_TEST(shorten_around("abcdefghij", 0, 10) == "abcdefghij");
  BOOST_TEST(shorten_around("abcdefghij", 0, 5) == "abcd…");
  BOOST_TEST(shorten_around("abcdefghij", 9, 5) == "…ghij");
  BOOST_TEST(columns_of(shorten_around("日本日本日本日本", 12, 7)) <= 7u);
}

BOOST_AUTO_TEST_CASE(a_traceback_keeps_its_last_line) {
  std::string text = "Traceback (most recent call last):";
  for (int i = 0; i < 40; ++i) text += "\n  File \"train.py\", line " + std::to_string(i);
  text += "\nRuntimeError: out of memory\n";
  const std::string page = render_text(failed(text), {});
  BOOST_TEST(has(page, "Traceback (most recent call last):\n"));
  BOOST_TEST(has(page, "    RuntimeError: out of memory\n"));
  BOOST_TEST(!has(page, "line 20"));
}

BOOST_AUTO_TEST_CASE(evidence_that_repeats_is_reported_once) {
  Report r = failed();
  for (uint64_t i = 0; i < 9; ++i) {
    r.diagnoses[0].evidence.push_back(r.diagnoses[0].evidence[0]);
    r.diagnoses[0].evidence.back().line = 9000 + i;
  }
  const std::string text = render_text(r, {});
  BOOST_TEST(count(text, "GPU has fallen off the bus.") == 1u);
  BOOST_TEST(has(text, "the same at runs/node-17.log:9000 and 8 more places"));
}

BOOST_AUTO_TEST_CASE(what_is_not_shown_is_counted) {
  Report r = failed();
  r.indicating.assign(30, r.indicating[0]);
  r.suspects.assign(20, r.suspects[0]);
  const std::string text = render_text(r, {});
  BOOST_TEST(has(text, "and 22 more templates"));
  BOOST_TEST(has(text, "and 12 more suspects"));
}

BOOST_AUTO_TEST_CASE(of_many_irregular_iterations_the_worst_are_shown_in_their_order) {
  Report r = failed();
  for (int i = 0; i < 90; ++i) r.iterations.push_back({1000 + i, i % 9 == 0 ? 0.9 : 0.3, {}});
  const std::string text = render_text(r, {});
  BOOST_TEST(has(text, "1081 (0.90)"));
  BOOST_TEST(has(text, "and 74 more iterations"));
}

BOOST_AUTO_TEST_CASE(an_action_without_targets_stands_before_its_remedy) {
  Report r = failed();
  r.diagnoses[0].action = {ActionKind::kFix, {}};
  BOOST_TEST(has(render_text(r, {}), "\n  Fix: Replace the GPU.\n"));
  r.diagnoses[0].remedy.clear();
  BOOST_TEST(has(render_text(r, {}), "\n  Fix\n"));
  r.diagnoses[0].action = {};
  BOOST_TEST(!has(render_text(r, {}), "What to do"));
}

BOOST_AUTO_TEST_CASE(numbers_are_reported_as_ranges) {
  const std::vector<std::pair<std::vector<uint32_t>, std::string>> cases{
      {{}, ""},
      {{7}, "7"},
      {{3, 1, 2, 2, 8}, "1-3, 8"},
      {{0, 2, 4, 6, 8, 10, 12, 14}, "0, 2, 4, 6, 8, 10 and 2 more"}};
  for (const auto& [given, reported] : cases) BOOST_TEST(numbers(given) == reported);
}

BOOST_AUTO_TEST_CASE(hostile_text_stays_text_in_html) {
  const std::string html = render_html(hostile(), {});
  for (const char* part : {"<script", "<img", "onload=\"x", "</pre><", "\x1b", "\xc2\x9b", "\xe2\x80\xae"})
    BOOST_TEST(!has(html, part), part);
  BOOST_TEST(count(html, "<style>") == 1u);
  BOOST_TEST(count(html, "&lt;script&gt;") > 20u);
  BOOST_TEST(to_utf8(html) == html);
}

BOOST_AUTO_TEST_CASE(the_page_is_self_contained_and_locked) {
  const std::string html = render_html(failed(), {});
  const std::string policy = "default-src 'none'; style-src '" + std::string(kStyleHash) + "'";
  BOOST_TEST(has(html, "<meta http-equiv=\"Content-Security-Policy\" content=\"" + policy));
  for (const char* part :
       {"<script", "http://", "https://", " src=", " href=", "<link", "<base", "@import", "url(", " style="})
    BOOST_TEST(!has(html, part), part);
}

BOOST_AUTO_TEST_CASE(the_policy_lets_the_style_sheet_in) {
  BOOST_REQUIRE(sha256_base64("abc") == "ungWv48Bz+pBQUDeXa4iI7ADYaOWF3qctBD/YfIAFa0=");  // FIPS 180-4, B.1
  BOOST_TEST("sha256-" + sha256_base64(kStyle) == kStyleHash);
}

BOOST_AUTO_TEST_CASE(html_elements_are_closed) {
  for (const Report& r : {failed(), hostile(), Report{}}) {
    const std::string html = render_html(r, {});
    for (const char* tag : {"section", "header", "table", "tr", "td", "div", "ul", "li", "pre", "svg",
                            "details", "summary", "span", "p", "title", "text"}) {
      const std::string open = std::string("<") + tag;
      BOOST_TEST(
          count(html, open + ">") + count(html, open + " ") == count(html, std::string("</") + tag + ">"),
          tag);
    }
  }
}

BOOST_AUTO_TEST_CASE(the_heat_map_holds_the_suspects_and_says_how_many_hosts_it_left_out) {
  Report r = failed();
  r.activity.hosts.clear();
  for (int i = 0; i < 3000; ++i)
    r.activity.hosts.push_back(
        {"n" + std::to_string(i), std::vector<uint32_t>(96, 4), std::vector<uint32_t>(96)});
  r.suspects = {suspect("n2718", 0.9)};
  r.activity.hosts[1234].indicating[90] = 4;
  const std::string html = render_html(r, {});
  BOOST_TEST(has(html, ">n2718</div>"));
  BOOST_TEST(has(html, ">n1234</div>"));
  BOOST_TEST(has(html, "2952 of 3000 hosts left out"));
  BOOST_TEST(html.size() < 200'000u);
}

BOOST_AUTO_TEST_CASE(odd_times_and_empty_charts_do_no_harm) {
  Report r = failed();
  r.diagnoses[0].time_ns = INT64_MAX / 2;
  r.indicating[0].first_ns = -INT64_MAX / 2;
  BOOST_TEST(has(render_html(r, {}), "</html>"));
  r.activity.hosts[0].lines.clear();
  r.activity.hosts[1].indicating.assign(2, 1);
  BOOST_TEST(has(render_html(r, {}), "</html>"));
  r.activity = {};
  BOOST_TEST(!has(render_html(r, {}), "What each host wrote"));
  r.activity.progress = {{kStart, 1}, {kStart, 2}};
  BOOST_TEST(!has(render_html(r, {}), "Progress"));
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace culprit::cli
