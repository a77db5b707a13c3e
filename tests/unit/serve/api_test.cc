// The routes of formats.md section 9.
#include "serve/api.h"

#include "fake_source.h"
#include "fixtures.h"
#include "serve/page.h"

namespace culprit::serve {
namespace {

using namespace test;

struct Fixture {
  ManualEnv env;
  Folder folder;
  FakeSource source;
  Api api{env, source};
  std::unique_ptr<HttpServer> server;
  Fixture() {
    auto started = HttpServer::start(env, {"unix:" + folder / "api.sock"}, api.routes());
    BOOST_REQUIRE(started);
    server = std::move(*started);
  }
  Answered ask(const std::string& bytes) { return test::ask(env, server->address(), bytes); }
  Answered get(const std::string& target) { return ask(request("GET", target)); }
};

BOOST_FIXTURE_TEST_SUITE(api, Fixture)

BOOST_AUTO_TEST_CASE(each_route_asks_for_what_it_names) {
  const std::pair<std::string, std::string> cases[] = {
      {request("GET", "/v1/status"), "status"},
      {request("GET", "/v1/jobs"), "jobs"},
      {request("GET", "/v1/now"), "now 100 0  "},
      {request("GET", "/v1/now?limit=9999&from=7&q=node-1&state=failed"), "now 500 7 node-1 failed"},
      {request("GET", "/v1/jobs/j%2F1/report"), "report j/1"},
      {request("GET", "/v1/jobs/j%2F1/report?run=2"), "report j/1 run 2"},
      {request("GET", "/v1/jobs/j%2F1/report?run=2&charts=1"), "report j/1 run 2 with charts"},
      {request("GET", "/v1/jobs/j%2F1/report?charts=0"), "report j/1"},
      {request("GET", "/v1/diagnoses"), "diagnoses - -1"},
      {request("GET", "/v1/diagnoses?job=j&run=0"), "diagnoses j run 0 -1"},
      {request("GET", "/v1/pool"), "pool"},
      {request("GET", "/v1/pool/log"), "pool log"},
      {request("POST", "/v1/pool/j%2F1/forget", "", R"({"by":"alice"})"), "forget j/1 by alice"},
      {request("GET", "/v1/diagnoses?job=j%2F1&since_ns=12"), "diagnoses j/1 12"},
      {request("GET", "/v1/suspects?job=j"), "suspects j"},
      {request("GET", "/v1/hosts"), "hosts"},
      {request("GET", "/v1/devices"), "devices"},
      {request("GET", "/v1/rules"), "rules"},
      {request("GET", "/v1/rules/nvidia.xid.79"), "rule nvidia.xid.79"},
      {request("GET", "/v1/about"), "about"},
      {request("GET", "/v1/sources"), "sources -"},
      {request("POST", "/v1/jobs/j%2F1/diagnoses/d1/confirm"), "confirm j/1 d1 by "},
      {request("POST", "/v1/jobs/j/diagnoses/d1/confirm", "", R"({"by":"alice"})"), "confirm j d1 by alice"},
      {request("POST", "/v1/jobs/j/diagnoses/d1/confirm?run=1"), "confirm j run 1 d1 by "},
      {request("POST", "/v1/jobs/j/diagnoses/d1/confirm?run=1&rule=site.x"),
       "confirm j run 1 d1 as site.x by "},
      {request("POST", "/v1/jobs/j%2F1/diagnoses/d1/rule?dry=1"), "show rule of j/1 d1 ''  by "},
      {request("POST", "/v1/jobs/j/diagnoses/d1/rule?run=1&dry=0", "",
               R"({"by":"alice","title":"It flaps","component":"network","action":"none"})"),
       "make rule of j run 1 d1 'It flaps' network by alice"},
      {request("POST", "/v1/reload"), "reload by "},
      {request("POST", "/v1/jobs/j/diagnoses/d1/refute?run=1"), "refute j run 1 d1 by "},
      {request("GET", "/v1/alerts?job=j&run=1"), "alerts j -"},
      {request("POST", "/v1/alerts/k1/acknowledge", "", R"({"by":"alice"})"),
       "acknowledge k1 for 0 s by alice"},
      {request("POST", "/v1/alerts/k1/silence"), "silence k1 for 7200 s by "},
      {request("POST", "/v1/alerts/k1/silence", "", R"({"by":"bob","for_s":60})"),
       "silence k1 for 60 s by bob"},
      {request("POST", "/v1/alerts/k1/repaired", "", "{}"), "repaired k1 for 0 s by "},
      {request("POST", "/v1/hosts/node-1/clear", "", "{}"), "clear node-1 by "}};
  for (const auto& [bytes, asked] : cases) {
    BOOST_CHECK_EQUAL(ask(bytes).status, 200);
    BOOST_CHECK_EQUAL(source.asked, asked);
  }
  BOOST_CHECK(get("/metrics").body.starts_with("culprit_up 1\nculprit_job_run{job_id=\"j/1\"} 0\n"));
  BOOST_CHECK(get("/metrics").has("text/plain; version=0.0.4"));
}

BOOST_AUTO_TEST_CASE(a_capture_is_accepted_or_refused_with_its_reason) {
  const Answered accepted = ask(request("POST", "/v1/jobs/j%2F1/capture", "", R"({"by":"alice"})"));
  BOOST_CHECK_EQUAL(accepted.status, 202);
  BOOST_CHECK_EQUAL(source.asked, "capture j/1 1 by alice");
  BOOST_CHECK_EQUAL(ask(request("POST", "/v1/jobs/j/capture?rounds=5")).status, 202);
  BOOST_CHECK_EQUAL(source.asked, "capture j 5 by ");
  const std::pair<ErrorCode, int> refusals[] = {{ErrorCode::kNotFound, 404},
                                                {ErrorCode::kBusy, 409},
                                                {ErrorCode::kTooSoon, 429},
                                                {ErrorCode::kDenied, 403}};
  for (const auto& [code, status] : refusals) {
    source.capture_refusal = code;
    const Answered refused = ask(request("POST", "/v1/jobs/j/capture"));
    BOOST_CHECK_EQUAL(refused.status, status);
    BOOST_CHECK_NE(refused.body.find("captured already"), std::string::npos);
  }
  BOOST_CHECK_EQUAL(get("/v1/jobs/j/capture").status, 405);
}

BOOST_AUTO_TEST_CASE(wrong_parameters_are_reported_in_a_sentence) {
  const std::pair<std::string, const char*> cases[] = {
      {request("GET", "/v1/diagnoses?since_ns=yesterday"), "'yesterday' is not a whole number"},
      {request("GET", "/v1/diagnoses?since_ns="), "not a whole number"},
      {request("GET", "/v1/diagnoses?since_ns=99999999999999999999"), "not a whole number"},
      {request("GET", "/v1/diagnoses?jobs=a"), "'jobs': no such parameter; known are job, since_ns, run"},
      {request("GET", "/v1/jobs/j%2F1/report?run=-1"), "'run': '-1' is not a whole number"},
      {request("GET", "/v1/jobs/j%2F1/report?charts=yes"), "'charts': 'yes' is not a whole number"},
      {request("POST", "/v1/jobs/j/diagnoses/d1/confirm?run=last"), "'run': 'last'"},
      {request("POST", "/v1/hosts/h/clear?run=1"), "'run': no such parameter"},
      {request("POST", "/v1/jobs/j/diagnoses/d1/rule?dry=yes"), "'dry': 'yes' is not a whole number"},
      {request("POST", "/v1/jobs/j/diagnoses/d1/rule?rule=x"), "'rule': no such parameter"},
      {request("POST", "/v1/jobs/j/diagnoses/d1/rule", "", R"({"id":"../x"})"), "'id': no such member"},
      {request("POST", "/v1/jobs/j/diagnoses/d1/rule", "", R"({"title":["x"]})"), "'title' is no string"},
      {request("POST", "/v1/jobs/j/diagnoses/d1/rule", "", R"({"cause":")" + std::string(2001, 'x') + "\"}"),
       "'cause' is no string of at most 2000 bytes"},
      {request("POST", "/v1/jobs/j/diagnoses/d1/rule", "", R"({"component":"../../etc"})"),
       "'component' is none of"},
      {request("POST", "/v1/jobs/j/capture?rounds=0"), "'rounds': 0 is not 1 to 8"},
      {request("POST", "/v1/jobs/j/capture?rounds=9"), "'rounds': 9 is not 1 to 8"},
      {request("POST", "/v1/alerts/k1/silence", "", R"({"for_s":-1})"), "'for_s' is no whole number"},
      {request("POST", "/v1/alerts/k1/silence", "", R"({"for_s":"2h"})"), "'for_s' is no whole number"},
      {request("POST", "/v1/alerts/k1/silence", "", R"({"for_s":2592001})"), "from 0 to 2592000"},
      {request("POST", "/v1/alerts/k1/acknowledge?by=alice"), "'by': no such parameter"},
      {request("GET", "/v1/status?x=1"), "'x': no such parameter"},
      {request("GET", "/v1/suspects?job=" + std::string(5000, 'x')), "longer than 4096 bytes"},
      {request("GET", "/v1/evidence?job=a&host=b"), "'path' is missing"},
      {request("GET", "/v1/evidence?job=a&host=b&path=c&from_byte=-1"), "'from_byte'"},
      {request("GET", "/v1/evidence?job=a&host=b&path=c&from_byte=5&to_byte=4"), "greater than 'to_byte'"},
      {request("GET", "/v1/evidence/lines?job=a&host=b&path=c"), "'line' is missing"},
      {request("GET", "/v1/evidence/lines?job=a&host=b&path=c&line=0"), "lines count from 1"},
      {request("GET", "/v1/evidence/lines?job=a&host=b&line=1"), "'path' is missing"},
      {request("GET", "/v1/now?limit=all"), "'limit': 'all' is not a whole number"},
      {request("POST", "/v1/hosts/h/clear", "", "[1]"), "no JSON object"},
      {request("POST", "/v1/hosts/h/clear", "", "{"), "no JSON object"},
      {request("POST", "/v1/hosts/h/clear", "", R"({"by":3})"), "'by' is no string"}};
  for (const auto& [bytes, part] : cases) {
    const Answered a = ask(bytes);
    BOOST_TEST_CONTEXT(a.body) {
      BOOST_CHECK_EQUAL(a.status, 400);
      BOOST_CHECK_NE(a.body.find(part), std::string::npos);
    }
  }
  BOOST_CHECK_EQUAL(get("/v1/jobs/other/report").status, 404);
  BOOST_CHECK_EQUAL(source.asked, "");
}

BOOST_AUTO_TEST_CASE(the_members_of_a_cluster_are_answered_and_none_without_one) {
  BOOST_CHECK_EQUAL(get("/v1/cluster").body, "{\"member\":null,\"items\":[]}\n");
  api.set_cluster([] { return std::string(R"({"member":"x","items":[]})"); });
  BOOST_CHECK_EQUAL(get("/v1/cluster").body, "{\"member\":\"x\",\"items\":[]}\n");
  BOOST_CHECK_EQUAL(get("/v1/cluster?x=1").status, 400);
}

BOOST_AUTO_TEST_CASE(health_is_503_without_progress) {
  BOOST_CHECK_EQUAL(get("/healthz").status, 200);
  source.healthy = false;
  const Answered a = get("/healthz");
  BOOST_CHECK_EQUAL(a.status, 503);
  BOOST_CHECK_NE(a.body.find("stands still since 40 s"), std::string::npos);
}

BOOST_AUTO_TEST_CASE(evidence_is_the_raw_bytes_and_its_gaps_come_behind) {
  source.chunks = {{0, std::string("a\0b", 3), std::nullopt, false},
                   {3, "", Gap{40, 0, "truncated\nbefore it was read"}, false},
                   {3, "cd", Gap{0, 2, "the ring was full"}, true}};
  const Answered a = get("/v1/evidence?job=j&host=h&path=%2Fa+b&from_byte=1");
  BOOST_CHECK_EQUAL(source.asked, "evidence j h /a b 1 18446744073709551615");
  BOOST_CHECK(a.has("application/octet-stream") && a.has("attachment"));
  BOOST_CHECK(a.body.starts_with(std::string("3\r\na\0b\r\n2\r\ncd\r\n0\r\n", 18)));
  BOOST_CHECK_NE(a.body.find("X-Culprit-Gap: at byte 3: 40 bytes lost: truncated\\x0abefore"),
                 std::string::npos);
  BOOST_CHECK_NE(a.body.find("X-Culprit-Gap: at byte 3: 2 records lost: the ring was full"),
                 std::string::npos);
  BOOST_CHECK_EQUAL(get("/v1/evidence?job=j&host=h&path=%2Fnone").status, 404);
}

BOOST_AUTO_TEST_CASE(lines_of_evidence_come_with_those_around) {
  source.chunks = {{0, "one\ntw", std::nullopt, false}, {6, "o\nthree\nfour\n", std::nullopt, true}};
  const Answered a = get("/v1/evidence/lines?job=j&host=h&path=%2Fa&line=3&around=1");
  BOOST_CHECK_EQUAL(a.status, 200);
  BOOST_CHECK_NE(a.body.find(R"("lines":["two","three","four"])"), std::string::npos);
  BOOST_CHECK_EQUAL(get("/v1/evidence/lines?job=j&host=h&path=%2Fnone&line=1").status, 404);
  source.chunks = {{0, "one", std::nullopt, false}};
  source.evidence_fails = true;
  BOOST_CHECK_EQUAL(get("/v1/evidence/lines?job=j&host=h&path=%2Fa&line=3").status, 500);
}

BOOST_AUTO_TEST_CASE(evidence_that_cannot_be_read_on_breaks_off) {
  source.chunks = {{0, "ab", std::nullopt, false}};
  source.evidence_fails = true;
  const Answered a = get("/v1/evidence?job=j&host=h&path=p");
  BOOST_CHECK_EQUAL(a.body.find("\r\n0\r\n"), std::string::npos);
}

BOOST_AUTO_TEST_CASE(events_are_sent_at_once_to_subscribed_clients) {
  Wire all(env, server->address()), one(env, server->address());
  all.send(request("GET", "/v1/events"));
  one.send(request("GET", "/v1/events?job=b"));
  all.read_until("retry"), one.read_until("retry");
  api.events().publish({"finding", "a", "{\"n\":1,\n\"x\":2}"});
  api.events().publish({"diagnosis", "b", "{\"n\":2}"});
  BOOST_CHECK_NE(all.read_until("\"n\":2").find("event: finding\ndata: {\"n\":1, \"x\":2}\n\n"),
                 std::string::npos);
  BOOST_CHECK_EQUAL(one.read_until("\"n\":2").find("\"n\":1"), std::string::npos);
  env.advance(15 * kNsPerSecond);
  all.read_until(": heartbeat");
  BOOST_CHECK_EQUAL(api.events().clients(), 2u);
  one.hang_up();
  for (int i = 0; i < 20 && api.events().clients() > 1; ++i) env.advance(15 * kNsPerSecond);
  BOOST_CHECK_EQUAL(api.events().clients(), 1u);
}

BOOST_AUTO_TEST_CASE(a_client_that_reconnects_gets_missed_events) {
  std::string id;
  {
    Wire wire(env, server->address());
    wire.send(request("GET", "/v1/events"));
    wire.read_until("retry");
    api.events().publish({"finding", "a", "1"});
    const std::string& got = wire.read_until("data: 1");
    const size_t at = got.find("id: ") + 4;
    id = got.substr(at, got.find('\n', at) - at);
  }
  api.events().publish({"finding", "a", "2"});
  Wire wire(env, server->address());
  wire.send(request("GET", "/v1/events", "Last-Event-ID: " + id + "\r\n"));
  const std::string& got = wire.read_until("data: 2");
  BOOST_CHECK_NE(got.find("data: 2"), got.npos);
  BOOST_CHECK_EQUAL(got.find("data: 1"), got.npos);
  Wire other(env, server->address());  // an id of another run: all kept events
  other.send(request("GET", "/v1/events", "Last-Event-ID: 77-1\r\n"));
  BOOST_CHECK_NE(other.read_until("data: 2").find("data: 1"), std::string::npos);
}

BOOST_AUTO_TEST_CASE(events_are_cloud_events_for_clients_that_ask) {
  Wire native(env, server->address()), cloud(env, server->address());
  native.send(request("GET", "/v1/events"));
  cloud.send(request("GET", "/v1/events?format=cloudevents"));
  native.read_until("retry"), cloud.read_until("retry");
  api.events().publish({"finding", "a", "{\"n\":1}", 1'795'226'400'123'456'789});
  const std::string& plain = native.read_until("{\"n\":1}\n\n");
  const std::string& got = cloud.read_until("{\"n\":1}}\n");
  const auto between = [](const std::string& text, const std::string& begin) {
    const size_t at = text.find(begin);
    BOOST_REQUIRE_NE(at, text.npos);
    return text.substr(at + begin.size(), text.find('\n', at) - at - begin.size());
  };
  BOOST_CHECK_EQUAL(between(plain, "data: "), "{\"n\":1}");
  const std::string id = between(got, "id: ");
  BOOST_CHECK_EQUAL(id, between(plain, "id: "));
  const std::string json = R"({"specversion":"1.0","id":")" + id +
                           R"(","source":"//localhost/v1/events","type":"io.culprit.finding","subject":"a",)"
                           R"("time":"2026-11-21T02:00:00.123456789Z","datacontenttype":"application/json",)"
                           R"("data":{"n":1}})";
  BOOST_CHECK_EQUAL(between(got, "data: "), json);
  // The same event again, in a batch.
  const Answered batch = get("/v1/events?format=cloudevents-batch");
  BOOST_CHECK(batch.has("application/cloudevents-batch+json"));
  BOOST_CHECK_EQUAL(batch.body, "[" + json + "]\n");
  BOOST_CHECK_EQUAL(get("/v1/events?format=cloudevents-batch&after=" + id).body, "[]\n");
  BOOST_CHECK_EQUAL(get("/v1/events?format=cloudevents-batch&job=b").body, "[]\n");
  BOOST_CHECK_EQUAL(get("/v1/events?format=xml").status, 400);
}

BOOST_AUTO_TEST_CASE(a_batch_tells_what_is_kept_no_more) {
  for (int i = 0; i < 600; ++i) api.events().publish({"finding", "a", std::to_string(i)});
  const std::string all = get("/v1/events?format=cloudevents-batch").body;
  const size_t at = all.find("\"id\":\"") + 6;
  const std::string epoch = all.substr(at, all.find('-', at) - at);
  const std::string got = get("/v1/events?format=cloudevents-batch&after=" + epoch + "-10").body;
  BOOST_CHECK_NE(got.find("\"type\":\"io.culprit.dropped\""), got.npos);
  BOOST_CHECK_NE(got.find("\"data\":{\"events\":78}"), got.npos);  // 11 to 88; 512 are kept
  BOOST_CHECK_EQUAL(all.find("dropped"), all.npos);
}

BOOST_AUTO_TEST_CASE(a_slow_watcher_loses_events_and_is_reported_how_many) {
  Wire wire(env, server->address());
  wire.send(request("GET", "/v1/events"));
  wire.read_until("retry");
  const std::string large(10'000, 'x');
  for (int i = 0; i < 300; ++i) {
    api.events().publish({"finding", "a", large});
    env.turn(0);
  }
  BOOST_CHECK_GT(api.events().dropped(), 0u);
  const uint64_t lost = api.events().dropped();
  wire.read_until([&](const std::string& got) { return got.size() > (300 - lost) * large.size(); });
  for (int i = 0; i < 20; ++i) env.turn(1);
  api.events().publish({"finding", "a", "last"});
  const std::string& got = wire.read_until("data: last");
  BOOST_CHECK_NE(got.find("event: dropped\ndata: {\"events\":" + std::to_string(lost) + "}"), got.npos);
}

BOOST_AUTO_TEST_CASE(the_page_runs_its_own_files_alone) {
  const Answered page = get("/");
  BOOST_CHECK(page.has("text/html") && page.has("default-src 'none'; script-src 'self'"));
  BOOST_CHECK_EQUAL(page.body.find("http://"), std::string::npos);
  BOOST_CHECK_EQUAL(page.body.find("https://"), std::string::npos);
  std::string scripts;
  for (const PageFile& file : page_files()) {
    if (!file.name.ends_with(".js")) continue;
    const Answered script = get("/" + std::string(file.name));
    BOOST_CHECK(script.has("text/javascript"));
    BOOST_CHECK_EQUAL(script.body, file.text);
    scripts += script.body;
  }
  for (const char* markup : {"innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval("})
    BOOST_CHECK_EQUAL(scripts.find(markup), std::string::npos);
  BOOST_CHECK_EQUAL(get("/page.css").status, 200);
  // It sends the token as a header only.
  BOOST_CHECK_EQUAL(scripts.find("EventSource("), std::string::npos);
  BOOST_CHECK_EQUAL(scripts.find("localStorage"), std::string::npos);
  BOOST_CHECK_NE(scripts.find("Authorization: \"Bearer \""), std::string::npos);
}

BOOST_AUTO_TEST_SUITE_END()

// Sees no job of the whole source.
class LimitedSource final : public FakeSource {
 public:
  std::unique_ptr<ApiSource> limited_to(const Reader& reader) override {
    return reader.uid == getuid() ? std::make_unique<FakeSource>() : nullptr;
  }
  void on_evidence_read(const EvidenceQuery& query, const Reader& reader) override {
    read.push_back(query.path + " by " + std::to_string(reader.uid.value_or(0)) + reader.token);
  }
  std::vector<std::string> read;
};

BOOST_AUTO_TEST_CASE(a_limited_reader_never_reaches_the_whole_source) {
  ManualEnv env;
  Folder folder;
  LimitedSource source;
  source.chunks = {{0, "all", std::nullopt, true}};
  Api api{env, source};
  const auto server = HttpServer::start(env, {"unix:" + folder / "api.sock"}, api.routes()).value();
  for (const Route& route : api.routes()) {
    if (route.method != "GET" || route.needs == Role::kNone) continue;
    const std::string query = route.pattern == "/v1/evidence" ? "?job=j&host=h&path=%2Fnone" : "";
    ask(env, server->address(), request("GET", route.pattern + query));
    BOOST_CHECK_EQUAL(source.asked, "");
  }
  api.set_cluster([] { return std::string("{}"); });
  for (const char* path : {"/v1/events", "/v1/cluster"})
    BOOST_CHECK_EQUAL(ask(env, server->address(), request("GET", path)).status, 403);
  BOOST_CHECK(source.read.empty());
}

BOOST_AUTO_TEST_CASE(a_reader_of_evidence_is_passed_on_for_the_audit) {
  ManualEnv env;
  LimitedSource source;
  source.chunks = {{0, "all", std::nullopt, true}};
  Api api{env, source};
  const auto server =
      HttpServer::start(env, {"127.0.0.1:0", 0660, {}, Tokens::parse("s read grafana").value()}, api.routes())
          .value();
  const std::string token = "Authorization: Bearer s\r\n";
  ask(env, server->address(), request("GET", "/v1/evidence?job=j&host=h&path=%2Fa", token));
  ask(env, server->address(), request("GET", "/v1/evidence?job=j&host=h&path=%2Fnone", token));
  BOOST_REQUIRE_EQUAL(source.read.size(), 1u);
  BOOST_CHECK_EQUAL(source.read[0], "/a by 0grafana");
}

BOOST_AUTO_TEST_CASE(metrics_name_jobs_to_readers_alone) {
  ManualEnv env;
  FakeSource source;
  Api api{env, source};
  const auto server =
      HttpServer::start(env, {"127.0.0.1:0", 0660, {}, Tokens::parse("s read").value()}, api.routes())
          .value();
  const std::pair<const char*, bool> cases[] = {
      {"", false}, {"Authorization: Bearer x\r\n", false}, {"Authorization: Bearer s\r\n", true}};
  for (const auto& [headers, named] : cases) {
    const Answered got = ask(env, server->address(), request("GET", "/metrics", headers));
    BOOST_CHECK_EQUAL(got.status, 200);
    BOOST_CHECK(got.body.starts_with("culprit_up 1\n"));
    BOOST_CHECK_EQUAL(got.body.find("job_id") != got.body.npos, named);
  }
}

BOOST_AUTO_TEST_CASE(over_tcp_only_health_metrics_and_the_empty_page_need_no_token) {
  ManualEnv env;
  FakeSource source;
  Api api{env, source};
  const auto server =
      HttpServer::start(env, {"127.0.0.1:0", 0660, {}, Tokens::parse("s read").value()}, api.routes())
          .value();
  std::set<std::string> open = {"/healthz", "/metrics"};
  for (const Route& route : page_routes()) open.insert(route.pattern);
  size_t refused = 0;
  for (const Route& route : api.routes()) {
    const std::string bytes = request(route.method, route.pattern);
    const int status = ask(env, server->address(), bytes).status;
    BOOST_TEST_CONTEXT(route.pattern) BOOST_CHECK_EQUAL(status, open.contains(route.pattern) ? 200 : 401);
    refused += status == 401;
  }
  BOOST_CHECK_EQUAL(refused, api.routes().size() - open.size());
  BOOST_CHECK_EQUAL(source.asked, "");
}

}  // namespace
}  // namespace culprit::serve
