// The JSON form of a report satisfies formats.md section 7 for any content.
#include "model/report_json.h"

#include <boost/test/unit_test.hpp>
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/limits.h"
#include "model/report_json_read.h"

namespace culprit {
namespace {

using Json = nlohmann::ordered_json;
using Names = std::vector<std::string>;

Json parsed(const Report& report) {
  Json json = Json::parse(to_json(report), nullptr, false);
  BOOST_REQUIRE(!json.is_discarded());
  return json;
}

Names keys(const Json& object) {
  Names out;
  for (const auto& [key, value] : object.items()) out.push_back(key);
  return out;
}

void check_keys(const Json& object, const Names& expected) {
  const Names found = keys(object);
  BOOST_CHECK_EQUAL_COLLECTIONS(found.begin(), found.end(), expected.begin(), expected.end());
}

Suspect suspect(const std::string& host, double score) {
  Suspect s;
  s.host = host;
  s.score = score;
  s.ranks = {131};
  s.devices = {3};
  s.why = {"differs from its peers"};
  return s;
}

Report full() {
  Report r;
  r.job.id = "j1";
  r.job.first_ns = 5;
  r.job.last_ns = -7;  // a time before the epoch is valid
  Diagnosis d;
  d.id = "d1";
  d.rule = "nvidia.xid.79";
  d.stage = Stage::kIterative;
  d.iteration = 1120;
  d.time_ns = 0;
  d.confidence = 0.9;
  d.hosts = {suspect("node-3", 0.8)};
  d.links = {{"a", "b", 0.5}};
  d.why = {"one reason"};
  d.evidence.push_back({"node-3", "runs/a.log", 120, std::nullopt, "text", 9, 131, {}});
  d.confirmed = Confirmation{"alice", 3, 2};
  d.action = {ActionKind::kIsolate, {"node-3"}};
  d.restart = {Restart::kElsewhere, true, "it fails again", {"node-3"}, {"GPU 3"}};
  r.restart = d.restart;
  r.diagnoses = {d};
  r.verdict = 0;
  r.suspects = d.hosts;
  r.indicating.push_back({"a <*> b", 0.7, 2, {"spatial"}, {{"node-3", "runs/a.log", 1}}, "a 1 b", 5});
  r.iterations = {{7, 0.5, {"node-3"}}};
  Irregularity spell;
  spell.first_step = 3, spell.last_step = 5, spell.kind = SlowPart::kGpu, spell.comm = ~uint64_t{0};
  Suspect one = suspect("node-3", 0.8), whole = suspect("node-4", 0.1);
  one.single = true, one.rank = 131, one.device = 3;
  spell.suspects = {one, whole};
  spell.chain = {{131, "all_reduce", 7, 8, 412.5}};
  r.irregularities = {spell};
  r.numerics = {{810, 812, NumericClass::kSdc, {131}, {"grad_norm"}, 0.9, "Roll back."}};
  r.hang = Hang{11, {{{"train.py:forward:120"}, {131}, true}}, {one}};
  r.problems = {{"runs/b.zst", 17, "ends early"}};
  r.cut = {{"suspects", 4}};
  return r;
}

const Names kDiagnosisKeys{"id",         "rule",      "detector", "found_by", "about",     "title",
                           "category",   "component", "symptom",  "stage",    "iteration", "time_ns",
                           "confidence", "hosts",     "links",    "why",      "evidence",  "confirmed",
                           "remedy",     "action",    "restart"};
const Names kPlaceKeys{"host", "score", "ranks", "devices", "why"};
const Names kSinglePlaceKeys{"host", "score", "ranks", "devices", "why", "rank", "device"};

}  // namespace

BOOST_AUTO_TEST_SUITE(report_json)

BOOST_AUTO_TEST_CASE(every_field_stands_in_the_order_of_the_format) {
  const Json json = parsed(full());
  check_keys(json,
             {"schema", "job", "state", "headline", "verdict", "restart", "missing", "diagnoses", "suspects",
              "indicating", "iterations", "irregularities", "numerics", "hang", "problems", "cut"});
  check_keys(json["job"], {"id", "hosts", "ranks", "bytes", "lines", "unplaced_lines", "templates",
                           "first_ns", "last_ns"});
  const Json& d = json["diagnoses"][0];
  check_keys(d, kDiagnosisKeys);
  check_keys(d["hosts"][0], kPlaceKeys);
  check_keys(d["links"][0], {"a", "b", "score"});
  check_keys(d["evidence"][0], {"host", "file", "line", "offset", "text", "time_ns", "rank"});
  check_keys(d["confirmed"], {"by", "hits", "right"});
  check_keys(d["action"], {"kind", "targets"});
  check_keys(d["restart"], {"kind", "sure", "sentence", "why", "hosts", "devices"});
  BOOST_TEST(d["restart"]["sentence"] == "elsewhere, without node-3 (GPU 3)");
  check_keys(json["indicating"][0], {"template", "score", "count", "why", "where"});
  check_keys(json["indicating"][0]["where"][0], {"host", "file", "line"});
  check_keys(json["iterations"][0], {"iteration", "score", "hosts"});
  const Json& spell = json["irregularities"][0];
  check_keys(spell, {"steps", "slowdown", "cost_ms", "kind", "suspects", "links", "comm", "chain"});
  check_keys(spell["chain"][0], {"rank", "op", "comm", "seq", "wait_ms"});
  check_keys(json["numerics"][0],
             {"step", "detected_at", "class", "ranks", "metrics", "confidence", "mitigation"});
  check_keys(json["hang"], {"since_ns", "clusters", "suspects", "answer", "sentence", "op", "group", "seq",
                            "waiting", "waited_for", "scene"});
  check_keys(json["hang"]["clusters"][0], {"frames", "ranks", "healthy"});
  check_keys(json["problems"][0], {"file", "offset", "what"});
}

BOOST_AUTO_TEST_CASE(stacks_of_a_live_job_follow_its_hang) {
  Report r = full();
  r.stacks = StackPicture{7, 4, 5, 10, 50, {{{"train.py:forward:120"}, {0, 1, 3}, true}}, {"rank 2 is late"}};
  const Json json = parsed(r);
  check_keys(json,
             {"schema", "job", "state", "headline", "verdict", "restart", "missing", "diagnoses", "suspects",
              "indicating", "iterations", "irregularities", "numerics", "hang", "stacks", "problems", "cut"});
  check_keys(json["stacks"], {"sample", "processes", "rounds", "first_ns", "last_ns", "clusters", "why"});
  const auto back = report_from_json(to_json(r, Charts::kLeftOut));
  BOOST_REQUIRE((back && back->stacks));
  BOOST_TEST(to_json(*back, Charts::kLeftOut) == to_json(r, Charts::kLeftOut));
}

BOOST_AUTO_TEST_CASE(what_is_unknown_is_null_or_an_empty_list) {
  Report r;
  r.diagnoses.emplace_back().restart.why = "the cause is not known";  // else the member is left out
  r.diagnoses[0].evidence.emplace_back();
  r.hang.emplace();
  r.problems.emplace_back();
  r.suspects.emplace_back();
  const Json json = parsed(r);
  for (const char* key : {"id", "first_ns", "last_ns"}) BOOST_TEST(json["job"][key].is_null(), key);
  BOOST_TEST(json["verdict"].is_null());
  const Json& d = json["diagnoses"][0];
  check_keys(d, kDiagnosisKeys);
  for (const char* key : {"rule", "detector", "stage", "iteration", "time_ns", "confirmed"})
    BOOST_TEST(d[key].is_null(), key);
  for (const char* key : {"found_by", "hosts", "links", "why"}) BOOST_TEST(d[key] == Json::array(), key);
  for (const char* key : {"host", "line", "offset"}) BOOST_TEST(d["evidence"][0][key].is_null(), key);
  BOOST_TEST(json["suspects"][0]["host"].is_null());
  BOOST_TEST(json["hang"]["since_ns"].is_null());
  BOOST_TEST(json["problems"][0]["offset"].is_null());
  BOOST_TEST(json["cut"] == Json::object());
}

BOOST_AUTO_TEST_CASE(the_verdict_is_a_copy_of_its_diagnosis) {
  const Json json = parsed(full());
  BOOST_TEST(json["verdict"] == json["diagnoses"][0]);
  Report beyond = full();
  beyond.verdict = 9;
  BOOST_TEST(parsed(beyond)["verdict"].is_null());
}

BOOST_AUTO_TEST_CASE(places_of_irregularities_and_hang_name_one_rank) {
  const Json json = parsed(full());
  check_keys(json["suspects"][0], kPlaceKeys);
  const Json& list = json["irregularities"][0]["suspects"];
  check_keys(list[0], kSinglePlaceKeys);
  BOOST_TEST(list[0]["rank"] == 131);
  BOOST_TEST(list[0]["device"] == 3);
  check_keys(list[1], kSinglePlaceKeys);  // the subject is the whole host
  BOOST_TEST(list[1]["rank"].is_null());
  BOOST_TEST(list[1]["device"].is_null());
  check_keys(json["hang"]["suspects"][0], kSinglePlaceKeys);
}

BOOST_AUTO_TEST_CASE(scores_are_held_within_0_and_1) {
  for (const auto& [given, reported] : std::vector<std::pair<double, double>>{
           {-0.1, 0}, {0, 0}, {0.25, 0.25}, {1, 1}, {1.0001, 1}, {INFINITY, 1}, {NAN, 0}}) {
    Report r;
    r.suspects = {suspect("a", given)};
    BOOST_TEST(parsed(r)["suspects"][0]["score"].get<double>() == reported);
  }
}

BOOST_AUTO_TEST_CASE(numbers_keep_their_value) {
  const Json json = parsed(full());
  BOOST_TEST(json["irregularities"][0]["comm"].get<uint64_t>() == ~uint64_t{0});
  BOOST_TEST(json["irregularities"][0]["chain"][0]["wait_ms"].get<double>() == 412.5);
  BOOST_TEST(json["job"]["last_ns"].get<int64_t>() == -7);
  BOOST_TEST(json["verdict"]["time_ns"].get<int64_t>() == 0);
  Report r = full();
  r.irregularities[0].slowdown = NAN;  // JSON has no such number, and a reader must not fail on it
  BOOST_TEST(parsed(r)["irregularities"][0]["slowdown"].is_null());
}

BOOST_AUTO_TEST_CASE(any_bytes_give_valid_utf8_on_one_line) {
  const std::vector<std::pair<std::string, std::string>> cases{
      {"plain", "plain"},
      {"\"\\/\b\f\n\r\t", "\"\\/\b\f\n\r\t"},
      {std::string("a\0b\x1b[31m\x7f", 10), std::string("a\0b\x1b[31m\x7f", 10)},
      {"ü 日本 🚀", "ü 日本 🚀"},
      {"cut \xe6\x97", "cut \xef\xbf\xbd\xef\xbf\xbd"},
      {"\xff\xc0\x80", "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd"},
      {"\xed\xa0\x80", "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd"},  // half of a surrogate pair
      {"nel \xc2\x85 ls \xe2\x80\xa8 ps \xe2\x80\xa9", "nel \xc2\x85 ls \xe2\x80\xa8 ps \xe2\x80\xa9"}};
  for (const auto& [given, reported] : cases) {
    Report r = full();
    r.verdict.reset();
    r.diagnoses[0].evidence[0].text = given;
    const std::string text = to_json(r);
    for (const char* end : {"\n", "\r", "\xc2\x85", "\xe2\x80\xa8", "\xe2\x80\xa9", "\x1b"})
      BOOST_TEST(text.find(end) == std::string::npos);
    BOOST_TEST(parsed(r)["diagnoses"][0]["evidence"][0]["text"].get<std::string>() == reported);
  }
}

BOOST_AUTO_TEST_CASE(where_holds_no_more_places_than_the_format_allows) {
  Report r = full();
  r.indicating[0].count = 5000;
  r.indicating[0].where.assign(5000, {"node-3", "runs/a.log", 1});
  BOOST_TEST(parsed(r)["indicating"][0]["where"].size() == limits::kPlaces);
}

BOOST_AUTO_TEST_CASE(words_are_those_of_the_format_and_read_back) {
  const auto check = [](auto first, const Names& words) {
    using Enum = decltype(first);
    for (size_t i = 0; i < words.size(); ++i) {
      BOOST_TEST(to_string(static_cast<Enum>(i)) == words[i]);
      BOOST_TEST((from_word<Enum>(words[i]) == static_cast<Enum>(i)));
    }
    BOOST_TEST(!from_word<Enum>("no such word"));
    BOOST_TEST(!from_word<Enum>(""));
  };
  check(Category::kHardware, {"hardware", "user", "framework", "platform", "unknown"});
  check(Component::kGpu,
        {"gpu",         "gpu_memory", "nvlink",     "pcie",         "network", "nccl_comm", "host_memory",
         "host_kernel", "storage",    "cpu",        "cuda_runtime", "driver",  "framework", "user_code",
         "user_config", "user_data",  "dependency", "platform",     "numeric", "unknown"});
  BOOST_TEST(to_string(Component::kUnknown) == "unknown");
  check(Symptom::kLaunchFailure, {"launch_failure", "crash", "hang", "slowdown", "numeric", "other"});
  check(Stage::kLaunch, {"launch", "init", "iterative", "checkpoint", "teardown"});
  check(ActionKind::kIsolate,
        {"isolate", "check", "restart", "rollback", "retry", "mitigate", "fix", "none"});
  check(About::kJob, {"job", "culprit"});
  check(Severity::kInfo, {"info", "warning", "error", "fatal"});
}

BOOST_AUTO_TEST_CASE(keep_top_cuts_each_list_to_its_best_and_tells_how_many) {
  Report r;
  for (int i = 0; i < 5; ++i) {
    r.suspects.push_back(suspect("node-" + std::to_string(i), 0.9 - 0.1 * i));
    r.iterations.push_back({i, i == 1 || i == 4 ? 0.9 : 0.1, {}});  // in order of steps, not of scores
    Irregularity spell;
    spell.first_step = 10 * i, spell.last_step = 10 * i + (i == 0 ? 9 : 0), spell.cost_ms = 10 + i;
    r.irregularities.push_back(spell);
  }
  r.problems.resize(2);
  keep_top(r, 2);
  BOOST_TEST(r.suspects.size() == 2u);
  BOOST_TEST(*r.suspects[1].host == "node-1");
  BOOST_TEST(r.iterations.size() == 2u);
  BOOST_TEST(r.iterations[0].iteration == 1);
  BOOST_TEST(r.iterations[1].iteration == 4);
  BOOST_TEST(r.irregularities.size() == 2u);
  BOOST_TEST(r.irregularities[0].first_step == 0);  // ten steps of 10 ms cost more than one of 13
  BOOST_TEST(r.irregularities[1].first_step == 40);
  BOOST_TEST(
      (r.cut == std::map<std::string, uint64_t>{{"suspects", 3}, {"iterations", 3}, {"irregularities", 3}}));
}

BOOST_AUTO_TEST_CASE(keep_top_never_cuts_the_verdict) {
  for (const size_t verdict : {0u, 1u, 3u}) {
    Report r;
    for (int i = 0; i < 4; ++i) r.diagnoses.emplace_back().id = "d" + std::to_string(i);
    r.verdict = verdict;
    keep_top(r, 1);
    BOOST_TEST(r.diagnoses.size() == 1u);
    BOOST_TEST(r.diagnoses[r.verdict.value()].id == "d" + std::to_string(verdict));
    BOOST_TEST(r.cut["diagnoses"] == 3u);
  }
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace culprit
