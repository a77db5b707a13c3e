#include "app/run/probe.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>

namespace culprit::app {
namespace {

struct Line {
  std::string text, targets;
};
std::ostream& operator<<(std::ostream& out, const Line& line) { return out << line.text; }

const Line kLines[] = {
    {"HTTPError: HTTP Error 503: Service Unavailable: https://hub.example/part-3?x=1", "hub.example:443"},
    {"requests.exceptions.ConnectionError: HTTPConnectionPool(host='10.0.0.7', port=8123): Max retries "
     "exceeded "
     "with url: /part-3 (Caused by NewConnectionError)",
     "10.0.0.7:8123 /part-3"},
    {"redis.exceptions.ConnectionError: Error 111 connecting to cache-1:6379. Connection refused.",
     "cache-1:6379"},
    {"OSError: [Errno 116] Stale file handle: '/data/my shard.tar'", "/data/my shard.tar"},
    {"open /mnt/lustre/a: cannot send after transport endpoint shutdown", "/mnt/lustre/a"},
    {"tcp://[fe80::1]:29500 and [::1]:443 refused", "[fe80::1]:29500 [::1]:443"},
    {"http://user:secret@proxy.example:3128/x", "proxy.example:3128"},
    {"s3://bucket/key: SlowDown, file:///etc/passwd", ""},
    {"2026-11-29 12:30:45 [rank0]: File \"/opt/train.py\", line 9, in main at net.cc:55", ""},
    {"/proc/self/fd/3 /dev/nvidia0 10.0.0.1 a:b :443 x:99999 x:0", ""},
    {"a:1 b:2 c:3 d:4 e:5 f:6", "a:1 b:2 c:3 d:4"},
    {"", ""},
};

// A port of this host, with a listener if `listens`.
struct Port {
  explicit Port(bool listens) : fd(::socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = ::htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    BOOST_REQUIRE(::bind(fd, reinterpret_cast<sockaddr*>(&address), size) == 0);
    if (listens) BOOST_REQUIRE(::listen(fd, 4) == 0);
    BOOST_REQUIRE(::getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size) == 0);
    number = ::ntohs(address.sin_port);
  }
  ~Port() { ::close(fd); }
  int fd;
  uint16_t number = 0;
};

}  // namespace

BOOST_AUTO_TEST_SUITE(probe)

BOOST_DATA_TEST_CASE(targets_are_the_addresses_and_paths_of_a_line, boost::unit_test::data::make(kLines)) {
  std::string got;
  for (const ProbeTarget& target : targets_in(sample.text)) got += (got.empty() ? "" : " ") + target.text();
  BOOST_TEST(got == sample.targets);
}

BOOST_AUTO_TEST_CASE(a_target_answers_if_it_can_be_connected_to_or_its_file_system_says_anything) {
  const Port open(true), closed(false);
  const std::vector<ProbeTarget> targets = {{"127.0.0.1", open.number, ""},
                                            {"127.0.0.1", closed.number, ""},
                                            {"", 0, "/"},
                                            {"", 0, "/no/such/file"}};
  const auto away = unanswered(targets, 5 * kNsPerSecond);
  BOOST_REQUIRE(away.size() == 1u);
  BOOST_TEST((away[0] == targets[1]));
  BOOST_TEST(unanswered({}, kNsPerSecond).empty());
}

BOOST_AUTO_TEST_CASE(an_address_is_not_probed_past_a_proxy) {
  Report report;
  Diagnosis d;
  d.title = "Download failed";
  d.confidence = 0.9;
  d.evidence.push_back({});
  d.evidence[0].text = "https://hub.example/x and /data/shard";
  report.diagnoses.push_back(d);
  report.verdict = 0;
  const auto plain = targets_of(report, [](std::string_view) { return std::nullopt; });
  const auto proxied = targets_of(report, [](std::string_view name) {
    return name == "https_proxy" ? std::optional<std::string>("http://proxy:3128") : std::nullopt;
  });
  BOOST_TEST(plain.size() == 2u);
  BOOST_REQUIRE(proxied.size() == 1u);
  BOOST_TEST(proxied[0].text() == "/data/shard");
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace culprit::app
