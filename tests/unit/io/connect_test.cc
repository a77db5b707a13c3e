#include <netinet/tcp.h>

#include <fstream>

#include "fixtures.h"
#include "io/address.h"

using namespace culprit;
using namespace culprit::io;
using namespace culprit::io::testing;

BOOST_AUTO_TEST_SUITE(connecting)

namespace {

// A port without a listener: allocated and released.
std::string free_port() {
  RealLoop loop;
  return (*loop.env->listen("127.0.0.1:0", 0, [](std::unique_ptr<Stream>) {}))->address();
}

std::string port_of(const std::string& address) { return address.substr(address.rfind(':')); }

}  // namespace

BOOST_AUTO_TEST_CASE(addresses_are_host_and_port) {
  const struct {
    std::string address, host;
    int port;  // -1: none
  } cases[] = {
      {"127.0.0.1:80", "127.0.0.1", 80},
      {"[::1]:7421", "::1", 7421},
      {"::1:7421", "::1", 7421},
      {"node-3.cluster:0", "node-3.cluster", 0},
      {"node-3", "", -1},
      {":80", "", -1},
      {"a:", "", -1},
      {"a:65536", "", -1},
      {"a:8x", "", -1},
      {"", "", -1},
  };
  for (const auto& row : cases) {
    const auto split = split_address(row.address);
    BOOST_TEST((split ? split->port : -1) == row.port);
    if (split) BOOST_TEST(split->host == row.host);
  }
}

BOOST_AUTO_TEST_CASE(it_connects_by_number_and_by_name_over_ipv4_and_ipv6) {
  for (const std::string host : {"127.0.0.1", "localhost", "[::1]"}) {
    RealLoop loop;
    std::string received, answered;
    std::unique_ptr<Stream> accepted, stream;
    auto listener = loop.env->listen(host + ":0", 0, [&](std::unique_ptr<Stream> opened) {
      accepted = std::move(opened);
      accepted->start({[&](std::string_view bytes) {
                         received += bytes;
                         accepted->write("welcome");
                       },
                       [](const Error*) {}});
    });
    if (!listener && host == "[::1]") continue;  // a machine without IPv6
    BOOST_REQUIRE(listener);
    int sent = 0;
    auto connecting = loop.env->connect(host + port_of((*listener)->address()), {},
                                        [&](Result<std::unique_ptr<Stream>> result) {
                                          BOOST_REQUIRE_MESSAGE(result, (result ? "" : result.error().text));
                                          stream = std::move(*result);
                                          stream->start({[&](std::string_view bytes) {
                                                           answered += bytes;
                                                           loop.env->stop();
                                                         },
                                                         [](const Error*) {}, [&] { ++sent; }});
                                          stream->write("hello");
                                        });
    BOOST_REQUIRE(connecting);
    loop.run();
    BOOST_TEST(received == "hello");
    BOOST_TEST(answered == "welcome");
    BOOST_TEST(sent == 1);
    BOOST_TEST(port_of(stream->address()) == port_of((*listener)->address()));
    BOOST_TEST(accepted->address() != "");
  }
}

BOOST_AUTO_TEST_CASE(what_cannot_be_reached_is_one_sentence_that_names_it) {
  const std::string closed = free_port();
  const struct {
    std::string address, says;
  } cases[] = {
      {closed, closed + ": connection refused"},
      {"no-such-host.invalid:1", "no-such-host.invalid:1: "},
  };
  for (const auto& row : cases) {
    RealLoop loop;
    std::string output;
    auto connecting = loop.env->connect(row.address, {}, [&](Result<std::unique_ptr<Stream>> result) {
      BOOST_REQUIRE(!result);
      output = result.error().text;
      loop.env->stop();
    });
    BOOST_REQUIRE(connecting);
    loop.run();
    BOOST_TEST(output.starts_with(row.says));
  }
  RealLoop loop;
  for (const std::string address : {"unix:/x", "node", "node:0", ":1"}) {
    auto connecting = loop.env->connect(address, {}, [](Result<std::unique_ptr<Stream>>) {});
    BOOST_REQUIRE(!connecting);
    BOOST_TEST(connecting.error().text == address + ": is no address to connect to, which is \"HOST:PORT\"");
  }
}

BOOST_AUTO_TEST_CASE(who_does_not_answer_is_given_up_in_time) {
  // A listener with a full queue does not answer.
  const int full = ::socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof(address);
  BOOST_REQUIRE_EQUAL(::bind(full, reinterpret_cast<sockaddr*>(&address), size), 0);
  BOOST_REQUIRE_EQUAL(::listen(full, 0), 0);
  ::getsockname(full, reinterpret_cast<sockaddr*>(&address), &size);
  const std::string at = "127.0.0.1:" + std::to_string(ntohs(address.sin_port));
  const Client first(Client::to_port(at));
  RealLoop loop;
  std::string output;
  ConnectOptions options;
  options.timeout_ns = 50 * kNsPerMs;
  auto connecting = loop.env->connect(at, options, [&](Result<std::unique_ptr<Stream>> result) {
    output = result ? "connected" : result.error().text;
    loop.env->stop();
  });
  loop.run();
  BOOST_TEST(output == at + ": does not answer");
  ::close(full);
}

BOOST_AUTO_TEST_CASE(a_connection_on_its_way_may_be_given_up_and_destroyed_in_its_call) {
  RealLoop loop;
  auto listener = *loop.env->listen("127.0.0.1:0", 0, [](std::unique_ptr<Stream>) {});
  int calls = 0;
  const auto count = [&](Result<std::unique_ptr<Stream>>) { ++calls; };
  for (const std::string host : {"127.0.0.1", "localhost", "no-such-host.invalid"})
    BOOST_REQUIRE(loop.env->connect(host + port_of(listener->address()), {}, count));
  std::unique_ptr<Connecting> connecting;
  connecting = *loop.env->connect(listener->address(), {}, [&](Result<std::unique_ptr<Stream>> result) {
    connecting.reset();
    calls += result ? 100 : 0;
    loop.env->stop();
  });
  loop.run();
  BOOST_TEST(calls == 100);
}

BOOST_AUTO_TEST_CASE(addresses_of_one_network_are_counted_as_one) {
  const std::pair<const char*, const char*> cases[] = {
      {"10.0.0.7:40312", "10.0.0.7"},
      {"[2001:db8:1:2:3:4:5:6]:80", "2001:db8:1:2::/64"},
      {"[2001:db8:1:2::9]:81", "2001:db8:1:2::/64"},
      {"[::ffff:10.0.0.7]:80", "10.0.0.7"},
      {"[::1]:80", "::/64"},
      {"", ""},
  };
  for (const auto& [address, network] : cases) BOOST_TEST(network_of(address) == network);
}

BOOST_AUTO_TEST_SUITE_END()
