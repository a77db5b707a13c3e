// Behaviour of the server towards correct and faulty clients.
#include "serve/http_server.h"

#include <sys/stat.h>

#include <fstream>

#include "fixtures.h"

namespace culprit::serve {
namespace {

using namespace test;

struct Fixture {
  ManualEnv env;
  Folder folder;
  std::vector<Reply> retained;
  std::shared_ptr<BodyStream> stream;
  Request last;
  std::unique_ptr<HttpServer> server;

  std::vector<Route> routes() {
    const auto echo = [this](const Request& r, const Reply& reply) {
      last = r;
      std::string body = r.method;
      for (const std::string& part : r.path) body += "|" + part;
      for (const auto& [key, value] : r.query) body += "|" + key + "=" + value;
      reply.send({200, "text/plain", body + "|" + r.body, {}});
    };
    return {{"GET", "/echo/{name}", echo},
            {"GET", "/", echo, Role::kNone},
            {"POST", "/change/{name}", echo, Role::kOperate},
            {"POST", "/free", echo, Role::kNone},
            {"GET", "/later", [this](const Request&, const Reply& r) { retained.push_back(r); }},
            {"GET", "/never", [](const Request&, const Reply&) {}},
            {"GET", "/stream", [this](const Request&, const Reply& r) {
               stream = r.stream({200, "text/plain", "", {}});
             }}};
  }

  void open(HttpOptions options) {
    auto started = HttpServer::start(env, std::move(options), routes());
    BOOST_REQUIRE_MESSAGE(started, (started ? "" : started.error().text));
    server = std::move(*started);
  }
  void open_local() { open({"unix:" + folder / "api.sock"}); }
  void open_tcp(const std::string& tokens = "") {
    open({"127.0.0.1:0", 0660, {"node-17"}, Tokens::parse(tokens).value()});
  }
  Answered ask(const std::string& bytes) { return test::ask(env, server->address(), bytes); }
};

BOOST_FIXTURE_TEST_SUITE(http_server, Fixture)

BOOST_AUTO_TEST_CASE(a_request_reaches_its_handler_decoded) {
  open_local();
  const Answered a = ask(request("GET", "/echo/a%2Fb%20c?x=1%262&y=a+b&z"));
  BOOST_CHECK_EQUAL(a.status, 200);
  BOOST_CHECK_EQUAL(a.body, "GET|echo|a/b c|x=1&2|y=a b|z=|");
  BOOST_CHECK(a.has("nosniff") && a.has("default-src 'none'") && a.has("no-store"));
  BOOST_CHECK(!a.has("Access-Control"));
}

BOOST_AUTO_TEST_CASE(refusals_have_their_status_and_one_sentence) {
  open_local();
  const std::pair<std::string, int> cases[] = {
      {request("GET", "/nothing"), 404},
      {request("GET", "/echo"), 404},
      {request("GET", "/echo/"), 404},
      {request("GET", "/echo/a/b"), 404},
      {request("POST", "/echo/a"), 405},
      {request("DELETE", "/free"), 405},
      {request("OPTIONS", "/free"), 405},
      {request("GET", "/echo/%"), 400},
      {request("GET", "/echo/%4"), 400},
      {request("GET", "/echo/%zz"), 400},
      {request("GET", "/echo/a%00b"), 400},
      {request("GET", "/echo/a?x=%f"), 400},
      {request("GET", "/echo/a?x=1&x=2"), 400},
      {request("GET", "/echo/a?" + std::string(40, '&') + "a=1&b&c&d&e&f&g&h&i&j&k&l&m&n&o&p&q"), 400},
      {request("GET", "/a/b/c/d/e/f/g/h/i/j/k/l/m/n/o/p/q/r"), 400},
      {request("GET", "/echo/a", "X: " + std::string(20'000, 'x') + "\r\n"), 431},
      {request("POST", "/free", "", std::string((1 << 20) + 1, 'x')), 413},
      {request("POST", "/free", "Content-Length: 99999999999999999999999\r\n"), 413},
      {request("GET", "/never"), 500},
  };
  for (const auto& [bytes, status] : cases) {
    const Answered a = ask(bytes);
    BOOST_TEST_CONTEXT(bytes.substr(0, 80)) {
      BOOST_CHECK_EQUAL(a.status, status);
      BOOST_CHECK(a.body.starts_with("{\"error\":\"") || status == 413);
    }
  }
  BOOST_CHECK(ask(request("PUT", "/echo/a")).has("Allow: GET, HEAD"));
  BOOST_CHECK_EQUAL(server->counts().answers.at(404), 4u);
}

BOOST_AUTO_TEST_CASE(dots_and_encoded_slashes_are_names_and_no_paths) {
  open_local();
  BOOST_CHECK_EQUAL(ask(request("GET", "/echo/..")).body, "GET|echo|..|");
  BOOST_CHECK_EQUAL(ask(request("GET", "/echo/%2e%2e%2fetc")).body, "GET|echo|../etc|");
  BOOST_CHECK_EQUAL(ask(request("GET", "/../../etc/passwd")).status, 404);
}

BOOST_AUTO_TEST_CASE(bytes_that_are_no_request_end_only_their_own_connection) {
  open_local();
  const std::string cases[] = {std::string(1000, '\0'),
                               "\r\n\r\n\r\n",
                               "GET\r\n\r\n",
                               "GET / HTTP/9.9\r\n\r\n",
                               std::string(200'000, 'A'),
                               "GET /echo/a\0b HTTP/1.1\r\nHost: x\r\n\r\n",
                               "POST /free HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nZZ\r\n",
                               "GET / HTTP/1.1\r\nHost x\r\n: y\r\n\r\n",
                               "POST /free HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n"};
  for (const std::string& bytes : cases) {
    ask(bytes);
    BOOST_CHECK_EQUAL(ask(request("GET", "/echo/a")).status, 200);
  }
}

BOOST_AUTO_TEST_CASE(head_has_the_headers_of_get_and_no_body) {
  open_local();
  const Answered a = ask(request("HEAD", "/echo/a"));
  BOOST_CHECK_EQUAL(a.status, 200);
  BOOST_CHECK(a.has("Content-Length: 11"));
  BOOST_CHECK_EQUAL(a.body, "");
  BOOST_CHECK_EQUAL(last.method, "GET");
  BOOST_CHECK_EQUAL(ask(request("HEAD", "/stream")).status, 200);
}

BOOST_AUTO_TEST_CASE(an_answer_may_come_later) {
  open_local();
  Wire wire(env, server->address());
  wire.send(request("GET", "/later"));
  for (int i = 0; i < 20 && retained.empty(); ++i) env.turn(2);
  BOOST_REQUIRE_EQUAL(retained.size(), 1u);
  env.advance(100 * kNsPerSecond);  // the time of the handler does not count against the client
  BOOST_CHECK_EQUAL(ask(request("GET", "/echo/a")).status, 200);
  retained[0].send({200, "text/plain", "at last", {}});
  BOOST_CHECK_EQUAL(answered(wire.read_all()).body, "at last");
}

BOOST_AUTO_TEST_CASE(an_answer_to_who_went_away_or_after_the_server_goes_nowhere) {
  open_local();
  auto wire = std::make_unique<Wire>(env, server->address());
  wire->send(request("GET", "/later"));
  for (int i = 0; i < 20 && retained.empty(); ++i) env.turn(2);
  BOOST_REQUIRE_EQUAL(retained.size(), 1u);
  wire.reset();
  retained[0].send({200, "text/plain", std::string(1 << 20, 'x'), {}});
  for (int i = 0; i < 10; ++i) env.turn(1);
  Wire other(env, server->address());
  other.send(request("GET", "/later"));
  for (int i = 0; i < 20 && retained.size() < 2; ++i) env.turn(2);
  server.reset();
  retained.at(1).send({200, "text/plain", "late", {}});
  BOOST_CHECK_EQUAL(answered(other.read_all()).status, 503);
}

BOOST_AUTO_TEST_CASE(a_stream_that_begins_after_the_server_is_closed_from_its_beginning) {
  open_local();
  Wire wire(env, server->address());
  wire.send(request("GET", "/later"));
  for (int i = 0; i < 20 && retained.empty(); ++i) env.turn(2);
  server.reset();
  stream = retained.at(0).stream({200, "text/plain", "", {}});
  int closed = 0;
  const auto held = std::make_shared<int>();
  stream->on_closed([&closed, held] { ++closed; });
  stream->on_ready([held] {});
  BOOST_CHECK(stream->closed());
  BOOST_CHECK_EQUAL(closed, 1);
  BOOST_CHECK_EQUAL(held.use_count(), 1);  // the callbacks are released
  stream->write("unread");
  stream->finish();
  BOOST_CHECK_EQUAL(stream->queued(), 0u);
}

BOOST_AUTO_TEST_CASE(a_streamed_body_waits_for_its_client) {
  open_local();
  Wire wire(env, server->address());
  wire.send(request("GET", "/stream"));
  for (int i = 0; i < 20 && !stream; ++i) env.turn(2);
  BOOST_REQUIRE(stream);
  int asked = 0;
  const std::string part(256 << 10, 'x');
  stream->on_ready([&] {
    if (++asked < 40) return stream->write(part);
    stream->trailer("X-Culprit-Gap", "at byte 7");
    stream->finish();
  });
  for (int i = 0; i < 50; ++i) env.turn(1);
  BOOST_CHECK_LT(asked, 20);  // the client reads nothing, so no more is requested
  const std::string& got = wire.read_all();
  BOOST_CHECK_EQUAL(asked, 40);
  BOOST_CHECK_GT(got.size(), 39 * part.size());
  BOOST_CHECK_NE(got.find("X-Culprit-Gap: at byte 7"), got.npos);
}

BOOST_AUTO_TEST_CASE(a_body_that_breaks_off_is_seen_to) {
  open_local();
  Wire wire(env, server->address());
  wire.send(request("GET", "/stream"));
  for (int i = 0; i < 20 && !stream; ++i) env.turn(2);
  stream->write("half");
  wire.read_until("half");
  stream->abort();
  const std::string& got = wire.read_all();
  BOOST_CHECK(wire.ended());
  BOOST_CHECK_EQUAL(got.find("\r\n0\r\n"), got.npos);  // no last chunk
}

BOOST_AUTO_TEST_CASE(a_client_that_leaves_in_mid_stream_is_reported_to_the_writer) {
  open_local();
  auto wire = std::make_unique<Wire>(env, server->address());
  wire->send(request("GET", "/stream"));
  for (int i = 0; i < 20 && !stream; ++i) env.turn(2);
  bool closed = false;
  stream->on_closed([&] { closed = true; });
  wire.reset();
  for (int i = 0; i < 20 && !closed; ++i) {
    stream->write("x");
    env.turn(2);
  }
  BOOST_CHECK(closed && stream->closed());
  stream->write("unread");
  BOOST_CHECK_EQUAL(stream->queued(), 0u);
}

BOOST_AUTO_TEST_CASE(a_client_that_sends_its_request_too_slowly_is_cut) {
  open_local();
  Wire wire(env, server->address());
  wire.send("GET /echo/a HTTP/1.1\r\nX: ");
  for (int i = 0; i < 4; ++i) {
    wire.send("y");
    env.advance(kNsPerSecond);
  }
  BOOST_CHECK_EQUAL(server->counts().timeouts, 0u);
  env.advance(2 * kNsPerSecond);
  wire.read_all();
  BOOST_CHECK(wire.ended());
  BOOST_CHECK_EQUAL(server->counts().timeouts, 1u);
}

BOOST_AUTO_TEST_CASE(idle_clients_and_half_requests_give_way_to_newer_clients) {
  for (const bool tcp : {false, true}) {
    tcp ? open_tcp() : open_local();
    std::vector<std::unique_ptr<Wire>> idle;
    for (int i = 0; i < 400; ++i) {
      idle.push_back(std::make_unique<Wire>(env, server->address()));
      if (i % 2) idle.back()->send("GET /echo/a HTTP/1.1\r\nX: ");
    }
    Wire wire(env, server->address());
    BOOST_CHECK_LE(server->counts().connections, 100u);
    wire.send(request("GET", "/"));
    BOOST_CHECK_EQUAL(answered(wire.read_all()).status, 200);
    BOOST_CHECK_GE(server->counts().gave_way, 300u);
  }
}

BOOST_AUTO_TEST_CASE(answers_that_are_not_read_give_way_too_and_their_writers_learn_it) {
  open_local();
  std::vector<std::unique_ptr<Wire>> watchers;
  size_t closed = 0;
  for (int i = 0; i < 100; ++i) {
    watchers.push_back(std::make_unique<Wire>(env, server->address()));
    watchers.back()->send(request("GET", i % 2 ? "/stream" : "/later"));
    for (int turn = 0; turn < 20 && !(i % 2 ? stream != nullptr : retained.size() > 0); ++turn) env.turn(2);
    if (stream) std::exchange(stream, nullptr)->on_closed([&] { ++closed; });
  }
  BOOST_CHECK_EQUAL(ask(request("GET", "/echo/a")).status, 200);
  BOOST_CHECK_GE(server->counts().gave_way, 10u);
  BOOST_CHECK_GE(closed, 4u);
}

BOOST_AUTO_TEST_CASE(over_tcp_a_foreign_host_name_is_refused) {
  open_tcp();
  const std::pair<const char*, int> cases[] = {
      {"localhost", 200}, {"127.0.0.1:7420", 200}, {"[::1]:7420", 200},        {"node-17:7420", 200},
      {"NODE-17", 200},   {"evil.example", 403},   {"evil.example:7420", 403}, {"localhost.evil", 403},
      {"[::1", 403},      {"localhost:x", 403}};
  for (const auto& [host, status] : cases) {
    const Answered a = ask("GET / HTTP/1.1\r\nConnection: close\r\nHost: " + std::string(host) + "\r\n\r\n");
    BOOST_TEST_CONTEXT(host) BOOST_CHECK_EQUAL(a.status, status);
  }
}

BOOST_AUTO_TEST_CASE(over_tcp_the_names_of_a_proxy_are_taken_if_they_are_configured) {
  open_tcp();
  const auto status = [&](const char* host) {
    return ask("GET / HTTP/1.1\r\nConnection: close\r\nHost: " + std::string(host) + "\r\n\r\n").status;
  };
  BOOST_CHECK_EQUAL(status("culprit.example"), 403);
  server->set_names({"culprit.example"});
  BOOST_CHECK_EQUAL(status("Culprit.example:443"), 200);
  BOOST_CHECK_EQUAL(status("evil.culprit.example"), 403);
  BOOST_CHECK_EQUAL(status("node-17"), 403);
}

BOOST_AUTO_TEST_CASE(over_tcp_reading_needs_a_token_and_a_change_one_that_may_operate) {
  open_tcp("secret\n# a scraper\nreading read grafana\nchanging operate ops\n");
  const struct {
    const char* header;
    int reads, changes;
    const char* says;
  } cases[] = {{"", 401, 401, "a token is missing"},
               {"Authorization: Bearer wrong!\r\n", 401, 401, "does not know this token"},
               {"Authorization: Bearer secre\r\n", 401, 401, "does not know this token"},
               {"Authorization: Bearer secretsecret\r\n", 401, 401, "does not know this token"},
               {"Authorization: Bearer \r\n", 401, 401, ""},
               {"Authorization: Bearer #\r\n", 401, 401, ""},
               {"Authorization: Bearer reading read grafana\r\n", 401, 401, ""},
               {"Authorization: Basic secret\r\n", 401, 401, ""},
               {"Authorization: Bearer secret\r\n", 200, 200, ""},
               {"Authorization: bearer secret\r\n", 200, 200, ""},
               {"Authorization: Bearer reading\r\n", 200, 403, "this token may only read"},
               {"Authorization: Bearer changing\r\n", 200, 200, ""}};
  for (const auto& c : cases) BOOST_TEST_CONTEXT(c.header) {
      BOOST_CHECK_EQUAL(ask(request("GET", "/echo/a", c.header)).status, c.reads);
      BOOST_CHECK_EQUAL(ask(request("HEAD", "/echo/a", c.header)).status, c.reads);
      const Answered change = ask(request("POST", "/change/x", c.header, "{}"));
      BOOST_CHECK_EQUAL(change.status, c.changes);
      BOOST_CHECK_EQUAL(change.has("WWW-Authenticate: Bearer"), c.changes == 401);
      BOOST_CHECK_NE(change.body.find(c.says), std::string::npos);
      BOOST_CHECK_EQUAL(ask(request("GET", "/", c.header)).status, 200);  // needs none
    }
  BOOST_CHECK_EQUAL(last.path.size(), 0u);
  ask(request("GET", "/echo/a", "Authorization: Bearer reading\r\n"));
  BOOST_CHECK_EQUAL(last.token, "grafana");
  // A token of a query string would stand in logs.
  BOOST_CHECK_EQUAL(ask(request("GET", "/echo/a?token=secret")).status, 401);
}

BOOST_AUTO_TEST_CASE(a_client_that_still_sends_its_body_gets_the_refusal) {
  open_tcp("secret");
  Wire wire(env, server->address());
  wire.send("POST /change/x HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: 4\r\n\r\n");
  for (int i = 0; i < 10; ++i) env.turn(2);
  BOOST_CHECK(!wire.ended());
  wire.send("body");
  BOOST_CHECK_EQUAL(answered(wire.read_all()).status, 401);
}

BOOST_AUTO_TEST_CASE(a_replaced_token_is_refused) {
  open_tcp("old");
  BOOST_CHECK_EQUAL(ask(request("GET", "/echo/a", "Authorization: Bearer old\r\n")).status, 200);
  Wire follows(env, server->address());
  follows.send(request("GET", "/stream", "Authorization: Bearer old\r\n"));
  for (int i = 0; i < 20 && !stream; ++i) env.turn(2);
  BOOST_REQUIRE(stream);
  stream->write("before");
  follows.read_until("before");
  server->set_tokens(Tokens::parse("new").value());
  stream->write("behind");
  BOOST_CHECK_EQUAL(follows.read_all().find("behind"), std::string::npos);
  BOOST_CHECK(follows.ended());
  BOOST_CHECK_EQUAL(ask(request("GET", "/echo/a", "Authorization: Bearer old\r\n")).status, 401);
  BOOST_CHECK_EQUAL(ask(request("GET", "/echo/a", "Authorization: Bearer new\r\n")).status, 200);
}

BOOST_AUTO_TEST_CASE(over_tcp_without_tokens_only_what_needs_no_role_is_served) {
  open_tcp();
  for (const char* header : {"", "Authorization: Bearer \r\n", "Authorization: Bearer x\r\n"}) {
    BOOST_CHECK_EQUAL(ask(request("GET", "/", header)).status, 200);
    const Answered read = ask(request("GET", "/echo/a", header));
    BOOST_CHECK_EQUAL(read.status, 403);
    BOOST_CHECK_NE(read.body.find("name a token_file below [http]"), std::string::npos);
    BOOST_CHECK_EQUAL(ask(request("POST", "/change/x", header, "{}")).status, 403);
  }
}

BOOST_AUTO_TEST_CASE(over_the_unix_socket_the_peer_is_known_and_our_own_user_may_change) {
  open_local();
  BOOST_CHECK_EQUAL(ask(request("POST", "/change/x", "", "body")).body, "POST|change|x|body");
  BOOST_CHECK_EQUAL(last.uid.value_or(77), getuid());
  std::vector<gid_t> own(static_cast<size_t>(std::max(getgroups(0, nullptr), 0)));
  getgroups(static_cast<int>(own.size()), own.data());
  own.push_back(getegid());
  BOOST_CHECK(std::set<uint32_t>(last.groups.begin(), last.groups.end()) ==
              std::set<uint32_t>(own.begin(), own.end()));
}

BOOST_AUTO_TEST_CASE(the_socket_is_for_its_group_and_goes_with_the_server) {
  open_local();
  struct stat status;
  BOOST_REQUIRE_EQUAL(stat((folder / "api.sock").c_str(), &status), 0);
  BOOST_CHECK_EQUAL(status.st_mode & 0777, 0660u);
  server.reset();
  BOOST_CHECK_NE(stat((folder / "api.sock").c_str(), &status), 0);
}

BOOST_AUTO_TEST_CASE(an_old_socket_is_replaced_and_a_served_one_is_not) {
  open_local();
  const auto second = HttpServer::start(env, {server->address()}, {});
  BOOST_REQUIRE(!second);
  BOOST_CHECK_NE(second.error().text.find("another process serves it already"), std::string::npos);
  const std::string old = folder / "old.sock";
  {
    const int descriptor = socket(AF_UNIX, SOCK_STREAM, 0);
    sockaddr_un at{};
    at.sun_family = AF_UNIX;
    std::strncpy(at.sun_path, old.c_str(), sizeof at.sun_path - 1);
    BOOST_REQUIRE_EQUAL(bind(descriptor, reinterpret_cast<sockaddr*>(&at), sizeof at), 0);
    close(descriptor);
  }
  BOOST_CHECK(HttpServer::start(env, {"unix:" + old}, {}));
}

BOOST_AUTO_TEST_CASE(an_address_that_cannot_be_served_is_reported_in_a_sentence) {
  open_tcp();
  std::ofstream(folder / "file") << "x";
  const std::pair<std::string, const char*> cases[] = {
      {server->address(), "the port is in use by another process"},
      {"unix:" + folder / "file", "no socket"},
      {"unix:" + folder / "no/such/folder.sock", "No such file or directory"},
      {"unix:relative.sock", "does not begin with '/'"},
      {"unix:/tmp/" + std::string(200, 'x'), "longer than"},
      {"7420", "neither unix:PATH nor HOST:PORT"},
      {"127.0.0.1:99999999", "127.0.0.1:99999999"},
      {"no.such.host.invalid:1", "no.such.host.invalid:1"},
      {"192.0.2.1:7420", "Cannot assign requested address"}};
  for (const auto& [address, part] : cases) {
    const auto started = HttpServer::start(env, {address}, {});
    BOOST_REQUIRE_MESSAGE(!started, address);
    BOOST_TEST_CONTEXT(started.error().text)
    BOOST_CHECK_NE(started.error().text.find(part), std::string::npos);
  }
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace culprit::serve
