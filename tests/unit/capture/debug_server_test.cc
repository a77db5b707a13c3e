// torch's debug server of a rank: who is asked, and what its answer may do. Servers are real ones, in
// processes that this test starts.
#include "capture/debug_server.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <pthread.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <boost/test/unit_test.hpp>
#include <functional>
#include <thread>

#include "capture/capture.h"

using namespace culprit;
using namespace culprit::capture;

namespace {

constexpr const char* kTraceback =
    "Thread 0x00007f0000000000 (most recent call first):\n"
    "  File \"/job/train.py\", line 12 in forward\n"
    "  File \"/job/train.py\", line 40 in <module>\n";

std::string answered(const std::string& body, const std::string& status = "200 OK") {
  return "HTTP/1.1 " + status + "\r\nContent-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body;
}

int listening() {
  const int fd = ::socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (::bind(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0 || ::listen(fd, 8) != 0)
    ::_exit(1);
  return fd;
}

// Answers each connection with what `answer` writes.
void serve(int fd, const std::function<void(int)>& answer) {
  for (;;) {
    const int client = ::accept(fd, nullptr, nullptr);
    if (client < 0) continue;
    char request[4096];
    (void)!::read(client, request, sizeof request);
    answer(client);
    ::close(client);
  }
}
void write_text(int to, const std::string& text) {
  (void)!::send(to, text.data(), text.size(), MSG_NOSIGNAL);
}

// A process with a thread as torch's server has it, and with `others` other listening sockets.
class Rank {
 public:
  explicit Rank(std::function<void(int)> answer, int others = 0, bool accepts = true) {
    int ready[2];
    BOOST_REQUIRE(::pipe(ready) == 0);
    pid_ = ::fork();
    if (pid_ == 0) {
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      for (int i = 0; i < others; ++i) listening();
      const int fd = listening();
      std::thread server([&] {
        ::pthread_setname_np(::pthread_self(), "pt_workerserver");
        (void)!::write(ready[1], "x", 1);
        accepts ? serve(fd, answer) : (void)::pause();
      });
      server.join();
    }
    char byte = 0;
    BOOST_REQUIRE(::read(ready[0], &byte, 1) == 1);
    ::close(ready[0]);
    ::close(ready[1]);
    // The thread is in its call a moment later.
    for (int i = 0; i < 200 && accepts && !is_accepting(); ++i) ::usleep(5000);
  }
  ~Rank() {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
  Rank(const Rank&) = delete;
  Rank& operator=(const Rank&) = delete;

  uint32_t pid() const { return static_cast<uint32_t>(pid_); }
  Result<std::string> ask(TimeNs within = 2 * kNsPerSecond) const {
    const auto look = ProcessReader().look(pid());
    BOOST_REQUIRE(look);
    BOOST_TEST(has_debug_server(*look, pid()));
    return ask_debug_server(*look, pid(), within);
  }

 private:
  bool is_accepting() const {
    const auto look = ProcessReader().look(pid());
    return look && std::any_of(look->threads.begin(), look->threads.end(), [](const ThreadView& t) {
             return t.name == "pt_workerserver" && t.state == 'S';
           });
  }
  pid_t pid_ = 0;
};

void must_fail(const Result<std::string>& answer, const std::string& part) {
  BOOST_REQUIRE(!answer);
  BOOST_TEST(answer.error().text.find(part) != std::string::npos, answer.error().text);
}

}  // namespace

BOOST_AUTO_TEST_SUITE(debug_server)

BOOST_AUTO_TEST_CASE(a_rank_with_a_debug_server_is_captured_without_a_tool) {
  const Rank rank([](int to) { write_text(to, answered(kTraceback)); });
  Request request;
  request.all = true;
  request.tools = {};
  const Answer answer = capture_process(request, {rank.pid(), 0}, 5 * kNsPerSecond);
  BOOST_TEST(answer.tool == "faulthandler", answer.why);
  BOOST_REQUIRE(answer.stacks.threads.size() == 1u);
  BOOST_TEST(answer.stacks.threads[0].frames.front().find("forward:12") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(the_server_is_found_among_other_ports_of_the_process) {
  const Rank rank([](int to) { write_text(to, answered(kTraceback)); }, 3);
  const auto answer = rank.ask();
  BOOST_REQUIRE(answer);
  BOOST_TEST(*answer == kTraceback);
}

BOOST_AUTO_TEST_CASE(where_the_port_is_not_certain_none_is_asked) {
  const Rank rank([](int) {}, 1, false);
  must_fail(rank.ask(), "which of 2 ports");
}

BOOST_AUTO_TEST_CASE(a_server_that_accepts_nothing_is_given_up) {
  const Rank rank([](int) {}, 0, false);
  must_fail(rank.ask(), "accepts no connection");
}

BOOST_AUTO_TEST_CASE(no_redirect_is_followed) {
  const Rank rank([](int to) {
    write_text(to, "HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:1/\r\nContent-Length: 0\r\n\r\n");
  });
  must_fail(rank.ask(), "status 302");
}

BOOST_AUTO_TEST_CASE(an_answer_is_bounded_in_time_and_size) {
  const Rank silent([](int) { ::sleep(30); });
  must_fail(silent.ask(kNsPerSecond / 4), "did not answer in time");
  const Rank endless([](int to) {
    write_text(to, "HTTP/1.1 200 OK\r\n\r\n");
    const std::string part(1 << 16, 'x');
    while (::send(to, part.data(), part.size(), MSG_NOSIGNAL) > 0) {
    }
  });
  must_fail(endless.ask(), "too long");
}

BOOST_AUTO_TEST_CASE(an_answer_that_is_no_whole_http_is_refused) {
  const std::pair<std::string, const char*> cases[] = {
      {"", "not HTTP"},
      {"ERROR: unknown command\n", "not HTTP"},
      {"HTTP/1.1 200 OK\r\n", "not HTTP"},
      {answered("x", "503 Service Unavailable"), "status 503"},
      {"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nabc", "broke off"},
      {"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\nabc", "no sound length"},
      {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n", "encoding"}};
  for (const auto& [answer, part] : cases) must_fail(http_body(answer), part);
  BOOST_TEST(*http_body("HTTP/1.0 200 OK\r\n\r\nabc") == "abc");
  BOOST_TEST(*http_body("HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nabc") == "ab");
}

BOOST_AUTO_TEST_CASE(rows_of_the_kernels_table_are_read) {
  const auto rows = parse_tcp(
      "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n"
      "   0: 0100007F:658F 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1000        0 4711 1 0\n"
      "   1: nonsense\n"
      "   2: 0100007F:ZZZZ 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1000        0 4712 1 "
      "0\n");
  BOOST_REQUIRE(rows.size() == 1u);
  BOOST_TEST(rows[0].local_port == 25999);
  BOOST_TEST(rows[0].state == 0x0a);
  BOOST_TEST(rows[0].uid == 1000u);
  BOOST_TEST(rows[0].inode == 4711u);
}

BOOST_AUTO_TEST_SUITE_END()
