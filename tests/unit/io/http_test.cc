// One exchange with a server that answers what a test gives it.
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <boost/test/unit_test.hpp>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <thread>

#include "io/descriptors.h"
#include "io/http/exchange.h"

using namespace culprit;
using io::http_exchange, io::HttpFailure, io::HttpRequest;

namespace {

constexpr TimeNs kSoon = 60 * kNsPerSecond;  // no test waits for it

// Answers one connection of a Unix socket. Without an answer it stays silent until its end.
class HttpAnswerer {
 public:
  explicit HttpAnswerer(std::string answer) : answer_(std::move(answer)) {
    char folder[] = "/tmp/culprit-http-XXXXXX";
    BOOST_REQUIRE(::mkdtemp(folder));
    folder_ = folder;
    listener_ = io::Descriptor(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::strcpy(address.sun_path, path().c_str());
    BOOST_REQUIRE(::bind(listener_.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) == 0);
    BOOST_REQUIRE(::listen(listener_.get(), 1) == 0);
    thread_ = std::thread([this] { answer_one(); });
  }
  ~HttpAnswerer() {
    ::shutdown(listener_.get(), SHUT_RDWR);  // ends accept()
    thread_.join();
    std::filesystem::remove_all(folder_);
  }
  std::string path() const { return folder_ + "/s"; }
  HttpRequest request() const {
    HttpRequest out;
    out.url = "http://localhost/a/../b";
    out.socket = path();
    out.within_ns = kSoon;
    return out;
  }
  // What came, after the exchange.
  const std::string& received() const { return received_; }

 private:
  void answer_one() {
    const io::Descriptor peer(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
    if (!peer.is_open()) return;
    char bytes[4096];
    do {
      const ssize_t n = ::read(peer.get(), bytes, sizeof bytes);
      if (n <= 0) return;
      received_.append(bytes, static_cast<size_t>(n));
    } while (!received_.ends_with("\r\n\r\n") && !received_.ends_with("END"));
    (void)!::send(peer.get(), answer_.data(), answer_.size(), MSG_NOSIGNAL);
    if (answer_.empty()) (void)!::read(peer.get(), bytes, sizeof bytes);
  }

  const std::string answer_;
  std::string folder_, received_;
  io::Descriptor listener_;
  std::thread thread_;
};

const std::string kPlain = "HTTP/1.1 200 OK\r\nX-One: 1\r\nContent-Length: 5\r\n\r\nhello";

HttpFailure failure_of(const HttpRequest& request) {
  const auto answer = http_exchange(request);
  BOOST_REQUIRE(!answer);
  return answer.error();
}

}  // namespace

BOOST_AUTO_TEST_SUITE(http)

BOOST_AUTO_TEST_CASE(an_answer_gives_its_status_headers_and_body) {
  HttpAnswerer server("HTTP/1.1 503 Busy\r\nX-One: 1\r\nRetry-After: 7\r\nContent-Length: 5\r\n\r\nhello");
  HttpRequest request = server.request();
  std::string headers, body;
  long status_with_body = 0;
  request.on_header = [&](std::string_view line) { headers += line; };
  request.on_body = [&](long status, std::string_view bytes) {
    status_with_body = status;
    body += bytes;
    return true;
  };
  const auto answer = http_exchange(request);
  BOOST_REQUIRE(answer);
  BOOST_TEST(answer->status == 503);
  BOOST_TEST(status_with_body == 503);
  BOOST_TEST((answer->retry_after_ns == 7 * kNsPerSecond));
  BOOST_TEST(body == "hello");
  BOOST_TEST(headers.find("X-One: 1\r\n") != headers.npos);
}

BOOST_AUTO_TEST_CASE(a_request_with_a_body_is_a_post_with_its_headers) {
  HttpAnswerer server(kPlain);
  HttpRequest request = server.request();
  request.headers = {"X-Two: 2"};
  request.body = "text END";
  BOOST_REQUIRE(http_exchange(request));
  BOOST_TEST(server.received().starts_with("POST /b HTTP/1.1\r\n"));
  BOOST_TEST(server.received().find("\r\nX-Two: 2\r\n") != std::string::npos);
  BOOST_TEST(server.received().ends_with("\r\n\r\ntext END"));
}

BOOST_AUTO_TEST_CASE(a_named_method_replaces_the_bodys_own) {
  for (const bool with_body : {true, false}) {
    HttpAnswerer server(kPlain);
    HttpRequest request = server.request();
    request.method = "PATCH";
    if (with_body) request.body = "text END";
    BOOST_REQUIRE(http_exchange(request));
    BOOST_TEST(server.received().starts_with("PATCH /b HTTP/1.1\r\n"));
    BOOST_TEST(server.received().ends_with("END") == with_body);
  }
}

BOOST_AUTO_TEST_CASE(a_path_goes_as_it_is_where_that_is_asked_for) {
  HttpAnswerer server(kPlain);
  HttpRequest request = server.request();
  request.path_as_is = true;
  BOOST_REQUIRE(http_exchange(request));
  BOOST_TEST(server.received().starts_with("GET /a/../b HTTP/1.1\r\n"));
}

BOOST_AUTO_TEST_CASE(a_redirect_is_an_answer_and_is_not_followed) {
  HttpAnswerer server("HTTP/1.1 302 Found\r\nLocation: http://localhost/other\r\nContent-Length: 0\r\n\r\n");
  const auto answer = http_exchange(server.request());
  BOOST_REQUIRE(answer);
  BOOST_TEST(answer->status == 302);
}

BOOST_AUTO_TEST_CASE(a_proxy_of_the_environment_is_not_used) {
  HttpAnswerer server(kPlain);
  ::setenv("http_proxy", "http://127.0.0.1:1", 1);
  const auto answer = http_exchange(server.request());
  ::unsetenv("http_proxy");
  BOOST_REQUIRE(answer);
  BOOST_TEST(server.received().starts_with("GET /b HTTP/1.1\r\n"));  // a proxy gets the whole url
}

BOOST_AUTO_TEST_CASE(another_scheme_is_refused) {
  HttpRequest request;
  request.url = "file:///etc/passwd";
  request.within_ns = kSoon;
  request.on_body = [](long, std::string_view) -> bool {
    BOOST_ERROR("it was read");
    return true;
  };
  BOOST_TEST((failure_of(request).kind == HttpFailure::Kind::kBroken));
}

BOOST_AUTO_TEST_CASE(the_receiver_of_the_body_ends_the_exchange) {
  HttpAnswerer server(kPlain);
  HttpRequest request = server.request();
  request.on_body = [](long, std::string_view) { return false; };
  BOOST_TEST((failure_of(request).kind == HttpFailure::Kind::kStopped));
}

BOOST_AUTO_TEST_CASE(a_caller_that_stops_ends_the_exchange) {
  HttpAnswerer server("");
  HttpRequest request = server.request();
  request.keep_going = [] { return false; };
  BOOST_TEST((failure_of(request).kind == HttpFailure::Kind::kStopped));
}

BOOST_AUTO_TEST_CASE(an_exchange_ends_at_its_deadline) {
  HttpAnswerer server("");
  HttpRequest request = server.request();
  request.within_ns = 50 * kNsPerMs;
  BOOST_TEST((failure_of(request).kind == HttpFailure::Kind::kTimeout));
}

BOOST_AUTO_TEST_CASE(an_answer_that_breaks_off_is_an_error) {
  HttpAnswerer server("HTTP/1.1 200 OK\r\nContent-Length: 50\r\n\r\nhello");
  BOOST_TEST((failure_of(server.request()).kind == HttpFailure::Kind::kBroken));
}

BOOST_AUTO_TEST_CASE(where_nothing_listens_the_reason_is_the_systems) {
  HttpRequest request;
  request.url = "http://localhost/";
  request.socket = "/tmp/culprit-no-such-socket";
  request.within_ns = kSoon;
  const HttpFailure failure = failure_of(request);
  BOOST_TEST((failure.kind == HttpFailure::Kind::kUnreachable));
  BOOST_TEST((failure.system_error == ENOENT || failure.system_error == 0));
}

BOOST_AUTO_TEST_SUITE_END()
