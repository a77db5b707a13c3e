#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <boost/test/unit_test.hpp>
#include <string>
#include <thread>

#include "ingest/live/ras_client.h"
#include "ingest/live/trace_lines.h"
#include "model/ras_line.h"

using namespace culprit;
using namespace culprit::ingest;

namespace {

RasState state() {
  RasState s;
  s.host = "node-1";
  s.address = "10.0.0.5";
  s.version = "2.28.9";
  s.at_ns = 1'763'690'010 * kNsPerSecond;
  s.json = true;
  s.answers = 7;
  s.still = 3;
  s.still_since_ns = s.at_ns - 20 * kNsPerSecond;
  s.comms_seen = 9;
  s.ranks = 8192;
  s.processes = {{"10.0.0.5", 11}, {"10.0.0.6", 12}};
  s.gone = {{1, 5, 9, true}};
  s.gone_processes = 1;
  s.dead_processes = 1;
  s.dropped = 2;
  s.user = 12'003;
  RasCommState& comm = s.comms.emplace_back();
  comm.hash = 0xfedcba9876543210u;
  comm.secondary = "0x1:0x2";
  comm.size = 8;
  comm.heard = 7;
  comm.missing_ranks = 1;
  comm.errors = 2;
  comm.members = {0, 2, 4, 6, 9, 10, 11, 12};
  comm.answers = 3;
  comm.since_ns = s.still_since_ns;
  comm.missing.push_back({{3, 1, kRasUnknown, 9}, true, false});
  comm.spreads.push_back({"AllReduce", {{6650, 6, {}}, {6649, 1, {{2, 0, 1, kRasUnknown}}}}});
  comm.phases.push_back({static_cast<uint64_t>(RasPhase::kInit), 7, {}});
  return s;
}

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
    thread_.join();
    ::close(listener_);
  }

  std::string address, heard;

 private:
  void run() {
    const int peer = ::accept(listener_, nullptr, nullptr);
    read_line(peer);
    (void)!::write(peer, reply_.data(), reply_.size());
    if (!answer_.empty()) read_line(peer);
    (void)!::write(peer, answer_.data(), answer_.size());
    ::close(peer);
  }
  void read_line(int peer) {
    char c = 0;
    while (::read(peer, &c, 1) == 1) {
      heard += c;
      if (c == '\n') return;
    }
  }

  const std::string reply_, answer_;
  int listener_ = -1;
  std::thread thread_;
};

}  // namespace

BOOST_AUTO_TEST_SUITE(ras)

BOOST_AUTO_TEST_CASE(a_state_is_the_same_after_its_line_was_read) {
  const RasState written = state();
  const auto line = parse_trace_line(ras_line(written, "j1"));
  BOOST_REQUIRE_MESSAGE(line, (line ? "" : line.error().text));
  BOOST_TEST((line->kind == TraceKind::kRas));
  BOOST_TEST(line->job == "j1");
  BOOST_REQUIRE(line->ras);
  RasState read = *line->ras;
  read.host = line->host;
  read.at_ns = line->time_ns;
  BOOST_TEST((read == written));
}

BOOST_AUTO_TEST_CASE(a_line_fits_and_counts_the_communicators_that_do_not) {
  RasState large = state();
  RasCommState comm = large.comms[0];
  for (int f = 0; f < 8; ++f) {
    RasSpread& spread = comm.spreads.emplace_back();
    spread.function = std::string(200, 'f');
    for (int g = 0; g < 8; ++g) {
      spread.groups.push_back({1, 16, {}});
      for (uint32_t m = 0; m < 16; ++m) spread.groups.back().listed.push_back({m, 0, 0, m});
    }
  }
  comm.spreads.resize(8);
  large.comms.assign(32, comm);
  const std::string text = ras_line(large, "j1");
  BOOST_TEST(text.size() <= 64u << 10);
  const auto line = parse_trace_line(text);
  BOOST_REQUIRE_MESSAGE(line, (line ? "" : line.error().text));
  BOOST_TEST(line->ras->dropped == large.dropped + 32 - line->ras->comms.size());
}

BOOST_AUTO_TEST_CASE(a_line_with_a_wrong_value_is_refused) {
  const std::pair<const char*, const char*> cases[] = {
      {R"({"kind":"ras","answers":"two"})", "answers"},
      {R"({"kind":"ras","comms":[7]})", "comms"},
      {R"({"kind":"ras","gone":[{"process":0}]})", "process"},
      {R"({"kind":"ras","comms":[{"missing":[{"rank":0,"process":3}]}]})", "process"},
      {R"({"kind":"ras","comms":[{"hash":"no"}]})", "hash"},
      {R"({"kind":"ras","user":-1})", "user"},
  };
  for (const auto& [text, key] : cases) {
    const auto line = parse_trace_line(text);
    BOOST_TEST_CONTEXT(text) {
      BOOST_REQUIRE(!line);
      BOOST_TEST((line.error().text.find(key) != std::string::npos));
    }
  }
}

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
  question.on_socket = [&](const RasSocket& socket) {
    its_own = has_socket("/proc", static_cast<uint32_t>(::getpid()), socket.inode);
  };
  const auto reply = ask_ras(question);
  BOOST_REQUIRE_MESSAGE(reply, (reply ? "" : reply.error().text));
  BOOST_TEST(reply->text == "{\"communicators\":[]}\n");
  BOOST_REQUIRE(reply->socket);
  BOOST_TEST(reply->socket->uid == ::getuid());
  BOOST_TEST(its_own);
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

BOOST_AUTO_TEST_SUITE_END()
