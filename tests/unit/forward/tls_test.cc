#include "../io/certificates.h"
#include "fixtures.h"

using namespace culprit;
using namespace culprit::forward;
using namespace culprit::forward::testing;
using culprit::io::testing::Authority;
using culprit::io::testing::Folder;

BOOST_AUTO_TEST_SUITE(forwarding_over_tls)

namespace {

struct TlsPair : Pair {
  Folder folder;
  Authority authority{folder, "site"};
  explicit TlsPair(const std::string& agents_names) {
    receiver.tls = authority.load("collector", {"DNS:collector"});
    agent.tls = authority.load("agent", {agents_names});
  }
};

}  // namespace

BOOST_AUTO_TEST_CASE(frames_arrive_over_tls_wherever_it_is_cut) {
  for (uint64_t cut = 100; cut < 6000; cut += 150) {
    TlsPair pair("DNS:node-3");
    int links = 0;
    pair.env.on_link = [&](Link& link) {
      if (++links == 1) link.cut_at[cut % 2] = cut;
    };
    for (int i = 0; i < 20; ++i)
      pair.source.add(Log::kEvidence, std::string(300, static_cast<char>('a' + i)));
    pair.start();
    pair.pass(3);
    BOOST_TEST(pair.complete(Log::kEvidence));
  }
}

BOOST_AUTO_TEST_CASE(a_certificate_that_is_not_of_the_host_is_refused_for_a_minute) {
  TlsPair pair("DNS:node-4,DNS:node-5");
  pair.start();
  const std::string sentence = "it calls itself node-3 and its certificate is that of node-4, node-5";
  BOOST_TEST(pair.forwarder->stats().last_error == "collector:7421: refuses this host: " + sentence);
  BOOST_TEST(pair.sink.events.at(0) == "refused identity: node-3 (10.0.0.1:4000): " + sentence);
  pair.pass(600);
  BOOST_TEST(pair.forwarder->stats().attempts < 60u);
  // The certificate is renewed.
  pair.forwarder->set_tls(pair.authority.load("agent", {"DNS:NODE-3"}));
  pair.pass(61);
  BOOST_TEST(pair.forwarder->stats().sessions == 1u);
}

BOOST_AUTO_TEST_CASE(plain_and_tls_do_not_understand_each_other_and_say_so) {
  for (const bool agent_speaks : {false, true}) {
    TlsPair pair("DNS:node-3");
    (agent_speaks ? pair.receiver.tls : pair.agent.tls) = nullptr;
    pair.start();
    pair.pass(1);
    BOOST_TEST(pair.collector->hosts().empty());
    const std::string at_agent = pair.forwarder->stats().last_error, at_collector = pair.sink.events.at(0);
    if (agent_speaks) {
      BOOST_TEST(at_agent == "collector: what came is no TLS");
      BOOST_TEST(at_collector.starts_with(
          "refused protocol: 10.0.0.1:4000: what came is none of our messages: \\x16\\x03\\x01"));
    } else {
      BOOST_TEST(at_agent.starts_with("collector:7421: "));
      BOOST_TEST(at_collector == "refused identity: 10.0.0.1:4000: what came is no TLS");
      BOOST_TEST(pair.collector->stats().tls_failures > 0u);
    }
  }
}

BOOST_AUTO_TEST_SUITE_END()
