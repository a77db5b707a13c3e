// The command line's client against a server.
#include "app/client.h"

#include <boost/test/unit_test.hpp>
#include <fstream>
#include <thread>

#include "../io/certificates.h"
#include "../serve/fake_source.h"
#include "../serve/fixtures.h"

namespace culprit::app {
namespace {

using serve::test::FakeSource;
using serve::test::Folder;
using serve::test::ManualEnv;

std::string text_of(const std::string& path) {
  std::ifstream in(path);
  return {std::istreambuf_iterator<char>(in), {}};
}

// A server on a thread of its own, since the client blocks.
struct Served {
  ManualEnv env;
  Folder folder;
  FakeSource source;
  serve::Api api{env, source};
  std::unique_ptr<serve::HttpServer> server;
  std::thread thread;

  void open(const std::string& address, const std::string& token = "", serve::HttpTls tls = {}) {
    auto started = serve::HttpServer::start(
        env, {address, 0660, {}, serve::Tokens::parse(token).value(), std::move(tls)}, api.routes());
    BOOST_REQUIRE(started);
    server = std::move(*started);
    thread = std::thread([this] { env.run(); });
  }
  void open_local() { open("unix:" + folder / "api.sock"); }
  ~Served() {
    env.stop();
    if (thread.joinable()) thread.join();
    server.reset();
  }
  Client client(const std::string& token_file = "") {
    const std::string& address = server->address();
    return *Client::make({address.starts_with("unix:") ? address : "http://" + address, token_file});
  }
};

BOOST_FIXTURE_TEST_SUITE(client, Served)

BOOST_AUTO_TEST_CASE(an_answer_comes_whole_over_the_unix_socket_and_over_http) {
  source.report_json = std::string(3 << 20, ' ') + "{}";
  open_local();
  BOOST_CHECK_EQUAL(client().get("/v1/status").value(), "{\"role\":\"both\",\"version\":\"0.1.0\"}\n");
  BOOST_CHECK_EQUAL(client().get("/v1/jobs/" + url_escaped("j/1") + "/report").value().size(),
                    source.report_json.size() + 1);
}

BOOST_AUTO_TEST_CASE(a_refusal_is_the_daemons_own_sentence) {
  open_local();
  const auto report = client().get("/v1/jobs/other/report");
  BOOST_REQUIRE(!report);
  BOOST_CHECK(report.error().code == ErrorCode::kNotFound);
  BOOST_CHECK_EQUAL(report.error().text, "no job 'other' is known");
}

BOOST_AUTO_TEST_CASE(a_request_over_tcp_takes_the_token_of_its_file) {
  open("127.0.0.1:0", "secret\nother read\n");
  std::ofstream(folder / "token") << "# of the page\nsecret operate ops\nother read\n";
  std::ofstream(folder / "empty") << "# none\n";
  BOOST_CHECK(!client().post("/v1/hosts/h/clear", "{}"));
  const auto read = client().get("/v1/status");
  BOOST_REQUIRE(!read);
  BOOST_CHECK(read.error().code == ErrorCode::kDenied);
  BOOST_CHECK(client(folder / "token").get("/v1/status"));
  BOOST_CHECK(client(folder / "token").events("/v1/events", "", [](const ServerEvent&) { return false; }));
  BOOST_CHECK(!client(folder / "empty").get("/v1/status"));
  BOOST_CHECK(!client(folder / "none").get("/v1/status"));
  BOOST_CHECK(client(folder / "token").post("/v1/hosts/h%20x/clear", R"({"by":"alice"})"));
  BOOST_CHECK_EQUAL(source.asked, "clear h x by alice");
  BOOST_CHECK(!client(folder / "none").post("/v1/hosts/h/clear", "{}"));
  setenv("CULPRIT_TOKEN_FILE", (folder / "token").c_str(), 1);
  BOOST_CHECK(client().get("/v1/status"));
  unsetenv("CULPRIT_TOKEN_FILE");
}

BOOST_AUTO_TEST_CASE(over_https_the_certificate_is_checked_before_a_token_is_sent) {
  const io::testing::Folder certificates;
  const io::testing::Authority site(certificates, "site"), foreign(certificates, "foreign");
  const io::TlsFiles files = site.issue("daemon", {"DNS:localhost"});
  open("127.0.0.1:0", "secret", {text_of(files.cert), text_of(files.key)});
  std::ofstream(folder / "token") << "secret\n";
  const std::string port = server->address().substr(server->address().rfind(':'));
  const auto asks = [&](const std::string& base, const std::string& ca) {
    return Client::make({base + port, folder / "token", ca})->get("/v1/jobs/j%2F1/report");
  };
  source.report_json = std::string(3 << 20, ' ') + "{}";
  BOOST_CHECK_EQUAL(asks("https://localhost", files.ca).value().size(), source.report_json.size() + 1);
  BOOST_CHECK(!asks("http://localhost", files.ca));
  source.asked.clear();
  const std::tuple<const char*, std::string, const char*> refused[] = {
      {"https://localhost", foreign.ca(), "--ca-file names the authority"},
      {"https://localhost", "", "--ca-file names the authority"},  // of the system
      {"https://127.0.0.1", files.ca, "--ca-file"},                // not a name of the certificate
      {"https://localhost", files.key, "--ca-file"}};
  for (const auto& [base, ca, says] : refused) {
    const auto answer = asks(base, ca);
    BOOST_REQUIRE_MESSAGE(!answer, base << " " << ca);
    BOOST_CHECK_NE(answer.error().text.find(says), std::string::npos);
  }
  BOOST_CHECK_EQUAL(source.asked, "");
}

BOOST_AUTO_TEST_CASE(evidence_comes_byte_for_byte_with_its_gaps) {
  source.chunks = {{0, std::string("a\0b\r\n", 5), std::nullopt, false},
                   {5, std::string(300'000, 'x'), Gap{7, 0, "lost"}, true}};
  open_local();
  std::string got;
  const auto gaps = client().get_stream("/v1/evidence?job=j&host=h&path=p", [&](std::string_view part) {
    got += part;
    return true;
  });
  BOOST_REQUIRE(gaps);
  BOOST_CHECK(got == std::string("a\0b\r\n", 5) + std::string(300'000, 'x'));
  BOOST_REQUIRE_EQUAL(gaps->size(), 1u);
  BOOST_CHECK_EQUAL((*gaps)[0], "at byte 5: 7 bytes lost: lost");
}

BOOST_AUTO_TEST_CASE(evidence_that_breaks_off_is_an_error) {
  source.chunks = {{0, "abc", std::nullopt, false}};
  source.evidence_fails = true;
  open_local();
  const auto gaps =
      client().get_stream("/v1/evidence?job=j&host=h&path=p", [](std::string_view) { return true; });
  BOOST_REQUIRE(!gaps);
  BOOST_CHECK_NE(gaps.error().text.find("the answer broke off"), std::string::npos);
}

BOOST_AUTO_TEST_CASE(events_come_with_kind_id_and_data_until_the_taker_ends) {
  api.events().publish({"finding", "a", "{\"n\":1}"});
  api.events().publish({"diagnosis", "a", "{\"n\":2}"});
  open_local();
  std::vector<ServerEvent> got;
  const Status status = client().events("/v1/events", "other-0", [&](const ServerEvent& event) {
    if (!event.data.empty()) got.push_back(event);
    return got.size() < 2;
  });
  BOOST_CHECK(status);
  BOOST_REQUIRE_EQUAL(got.size(), 2u);
  BOOST_CHECK_EQUAL(got[1].kind, "diagnosis");
  BOOST_CHECK_EQUAL(got[1].data, "{\"n\":2}");
  BOOST_CHECK(got[1].id.ends_with("-2"));
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_CASE(a_daemon_that_does_not_answer_is_reported_with_what_to_do) {
  Folder folder;
  auto client = Client::make({"unix:" + folder / "none.sock", ""});
  BOOST_REQUIRE(client);
  const auto answer = client->get("/v1/status");
  BOOST_REQUIRE(!answer);
  BOOST_CHECK_NE(answer.error().text.find("no culpritd answers at unix:"), std::string::npos);
  BOOST_CHECK_NE(answer.error().text.find("systemctl status culpritd"), std::string::npos);
}

BOOST_AUTO_TEST_CASE(a_server_that_is_none_is_refused) {
  for (const char* server : {"ftp://x", "/run/x.sock", "unix:", "http://", "https://", "localhost:7420"})
    BOOST_CHECK_MESSAGE(!Client::make({server, ""}), server);
}

}  // namespace
}  // namespace culprit::app
