#include "io/ras_client.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <boost/test/unit_test.hpp>
#include <string>
#include <thread>

using namespace culprit;
using namespace culprit::io;

namespace {

// Accepts one connection and plays a RAS service: replies to the first command, then the answer and the end.
class Service {
 public:
  Service(std::string reply, std::string answer) : reply_(std::move(reply)), answer_(std::move(answer)) {
    listener_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in at{};
    at.sin_family = AF_INET;
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof at;
    BOOST_REQUIRE(::bind(listener_, reinterpret_cast<sockaddr*>(&at), size) == 0);
    BOOST_REQUIRE(::listen(listener_, 1) == 0);
    BOOST_REQUIRE(::getsockname(listener_, reinterpret_cast<sockaddr*>(&at), &size) == 0);
    address = fmt::format("127.0.0.1:{}", ntohs(at.sin_port));
    thread_ = std::thread([this] { run(); });
  }
  ~Service() {
    join();
    ::close(listener_);
  }

  void join() {
    if (thread_.joinable()) thread_.join();
  }

  std::string address, received;

 private:
  void run() {
    const int peer = ::accept(listener_, nullptr, nullptr);
    read_line(peer);
    (void)!::send(peer, reply_.data(), reply_.size(), MSG_NOSIGNAL);
    if (!answer_.empty()) read_line(peer);
    (void)!::send(peer, answer_.data(), answer_.size(), MSG_NOSIGNAL);
    ::close(peer);
  }
  void read_line(int peer) {
    char c = 0;
    while (::read(peer, &c, 1) == 1) {
      received += c;
      if (c == '\n') return;
    }
  }

  const std::string reply_, answer_;
  int listener_ = -1;
  std::thread thread_;
};

}  // namespace

BOOST_AUTO_TEST_SUITE(ras_client)

BOOST_AUTO_TEST_CASE(the_owner_of_a_socket_is_that_of_the_server_side) {
  const std::string table =
      "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n"
      "   0: 0100007F:6D7C 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1000        0 70 1 0\n"
      "   1: 0100007F:6D7C 0100007F:9C40 01 00000000:00000000 00:00000000 00000000  1001        0 71 1 0\n"
      "   2: 0100007F:9C40 0100007F:6D7C 01 00000000:00000000 00:00000000 00000000  1002        0 72 1 0\n"
      "   3: 0100007F:6D7C 0100007F:9C41 01 00000000:00000000 00:00000000 00000000     0        0 0 1 0\n";
  BOOST_TEST((socket_between(table, 0x6d7c, 0x9c40) == RasSocket{1001, 71}));
  BOOST_TEST(!socket_between(table, 0x6d7c, 0x9c41));  // not accepted yet
  BOOST_TEST(!socket_between(table, 0x6d7c, 1));
  BOOST_TEST(!socket_between(table + table, 0x6d7c, 0x9c40));
  BOOST_TEST(!socket_between("rubbish\n1: 2 3\n", 1, 2));
}

BOOST_AUTO_TEST_CASE(an_answer_comes_with_the_user_and_the_process_that_gave_it) {
  Service service("OK\n", "{\"communicators\":[]}\n");
  bool its_own = false;
  RasQuestion question;
  question.address = service.address;
  question.may_ask = [&](const RasSocket& socket) {
    return its_own = has_socket("/proc", static_cast<uint32_t>(::getpid()), socket.inode);
  };
  const auto reply = ask_ras(question);
  BOOST_REQUIRE_MESSAGE(reply, (reply ? "" : reply.error().text));
  BOOST_TEST(reply->text == "{\"communicators\":[]}\n");
  BOOST_REQUIRE(reply->socket);
  BOOST_TEST(reply->socket->uid == ::getuid());
  BOOST_TEST(its_own);
}

BOOST_AUTO_TEST_CASE(a_process_that_may_not_be_asked_is_not_asked) {
  Service service("OK\n", "{\"communicators\":[]}\n");
  RasQuestion question;
  question.address = service.address;
  bool read = false;
  question.may_ask = [](const RasSocket&) { return false; };
  question.read_answer = [&](const RasQuestion::Next&) { read = true; };
  const auto reply = ask_ras(question);
  BOOST_REQUIRE(!reply);
  BOOST_TEST((reply.error().code == ErrorCode::kDenied));
  BOOST_TEST(!read);
  service.join();
  BOOST_TEST(service.received == "SET FORMAT json\n");
}

BOOST_AUTO_TEST_CASE(an_answer_is_read_as_it_comes_and_ends_at_its_limit) {
  const std::string text(3 << 20, 'x');
  for (const size_t most : {text.size(), text.size() - 1}) {
    Service service("OK\n", text);
    RasQuestion question;
    question.address = service.address;
    question.most = most;
    size_t got = 0, largest = 0;
    question.read_answer = [&](const RasQuestion::Next& next) {
      for (std::string_view bytes; !(bytes = next()).empty(); got += bytes.size())
        largest = std::max(largest, bytes.size());
    };
    const auto reply = ask_ras(question);
    BOOST_TEST(reply.has_value() == (most == text.size()));
    BOOST_TEST((got <= most && largest <= (256u << 10)));
    if (!reply) BOOST_TEST((reply.error().code == ErrorCode::kLimit));
  }
}

BOOST_AUTO_TEST_CASE(a_service_that_knows_no_formats_gives_its_text) {
  Service service("ERROR: Unknown command SET FORMAT\n", "NCCL version 2.24.3\n");
  RasQuestion question;
  question.address = service.address;
  const auto reply = ask_ras(question);
  BOOST_REQUIRE(reply);
  BOOST_TEST(reply->text == "NCCL version 2.24.3\n");
}

BOOST_AUTO_TEST_CASE(a_peer_that_is_no_ras_service_is_an_error) {
  Service service("HTTP/1.1 400 Bad Request\n", "");
  RasQuestion question;
  question.address = service.address;
  const auto reply = ask_ras(question);
  BOOST_REQUIRE(!reply);
  BOOST_TEST((reply.error().code == ErrorCode::kInvalid));
}

BOOST_AUTO_TEST_CASE(a_port_without_a_listener_is_not_found) {
  std::string address;
  {
    Service service("OK\n", "x\n");
    address = service.address;
    RasQuestion question;
    question.address = address;
    BOOST_TEST(ask_ras(question).has_value());
  }
  RasQuestion question;
  question.address = address;
  const auto reply = ask_ras(question);
  BOOST_REQUIRE(!reply);
  BOOST_TEST((reply.error().code == ErrorCode::kNotFound));
}

BOOST_AUTO_TEST_CASE(a_question_that_is_stopped_ends) {
  Service service("", "");  // closes without a word after the command
  const std::atomic<bool> stop{true};
  RasQuestion question;
  question.address = service.address;
  question.stop = &stop;
  BOOST_TEST(!ask_ras(question).has_value());
  RasQuestion other;  // lets the service end
  other.address = service.address;
  (void)ask_ras(other).has_value();
}

BOOST_AUTO_TEST_CASE(a_question_for_one_user_is_answered_by_that_user) {
  Service service("OK\n", "{}\n");
  RasQuestion question;
  question.address = service.address;
  question.only_uid = ::getuid();
  const auto reply = ask_ras(question);
  BOOST_REQUIRE_MESSAGE(reply, (reply ? "" : reply.error().text));
  BOOST_TEST(reply->text == "{}\n");
}

BOOST_AUTO_TEST_CASE(a_listener_of_another_user_is_sent_nothing) {
  Service service("", "");
  RasQuestion question;
  question.address = service.address;
  question.only_uid = ::getuid() + 1;
  const auto reply = ask_ras(question);
  BOOST_REQUIRE(!reply);
  BOOST_TEST((reply.error().code == ErrorCode::kDenied));
  service.join();
  BOOST_TEST(service.received == "");
}

BOOST_AUTO_TEST_CASE(an_answer_beyond_its_limit_is_refused) {
  Service service("OK\n", std::string(4096, 'x') + "\n");
  RasQuestion question;
  question.address = service.address;
  question.most = 1024;
  const auto reply = ask_ras(question);
  BOOST_REQUIRE(!reply);
  BOOST_TEST((reply.error().code == ErrorCode::kLimit));
}

BOOST_AUTO_TEST_SUITE_END()
