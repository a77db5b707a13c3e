#include "io/tls.h"

#include <fstream>

#include "certificates.h"
#include "net_env.h"

using namespace culprit;
using namespace culprit::io;
using namespace culprit::io::testing;

BOOST_AUTO_TEST_SUITE(tls)

namespace {

using Credentials = std::shared_ptr<const TlsCredentials>;

struct Side {
  std::unique_ptr<TlsStream> stream;
  std::string output, received, ended;  // "ok" or the reason
  void begin(NetEnv& env, std::unique_ptr<Stream> below, Credentials with, TlsStream::Options options) {
    stream = std::make_unique<TlsStream>(env, std::move(below), std::move(with), std::move(options),
                                         [this](Status status) {
                                           output = status ? "ok" : status.error().text;
                                           if (status) start();
                                         });
  }
  void start() {
    stream->start({[this](std::string_view bytes) { received += bytes; },
                   [this](const Error* error) { ended = error == nullptr ? "end" : error->text; }});
  }
};

struct Ends {
  NetEnv env;
  Side server, client;
  std::unique_ptr<Listener> listener;
  std::unique_ptr<Stream> plain;  // in place of a client with TLS
  void connect(Credentials of_server, Credentials of_client, const std::string& name = "collector.example") {
    listener = *env.listen("c:1", 0, [this, of_server](std::unique_ptr<Stream> below) {
      const std::string address = below->address();
      server.begin(env, std::move(below), of_server, {TlsStream::Side::kAccepts, address});
    });
    plain = env.dial("c:1");
    if (of_client) client.begin(env, std::move(plain), of_client, {TlsStream::Side::kConnects, name});
    env.read();
  }
};

}  // namespace

BOOST_AUTO_TEST_CASE(bytes_go_both_ways_and_the_peers_names_are_known) {
  Folder folder;
  Authority authority(folder, "site");
  Ends ends;
  ends.connect(authority.load("c", {"DNS:collector.example,IP:10.1.2.3"}),
               authority.load("n", {"DNS:Node-3,DNS:node-3.cluster"}));
  BOOST_TEST(ends.server.output == "ok");
  BOOST_TEST(ends.server.stream->has_answered());
  BOOST_TEST(ends.client.output == "ok");
  const std::vector<std::string> names = {"node-3", "node-3.cluster"};
  BOOST_TEST(ends.server.stream->peer_names() == names, boost::test_tools::per_element());
  const std::string large(3'000'000, 'x');
  ends.client.stream->write("hello ");
  ends.client.stream->write(large);
  ends.server.stream->write("welcome");
  BOOST_TEST(ends.client.stream->unsent() > large.size());
  ends.env.read();
  BOOST_TEST((ends.server.received == "hello " + large));
  BOOST_TEST(ends.client.received == "welcome");
  BOOST_TEST(ends.client.stream->unsent() == 0u);
  ends.client.stream.reset();  // with close_notify
  ends.env.read();
  BOOST_TEST(ends.server.ended == "end");
}

BOOST_AUTO_TEST_CASE(wrong_certificates_are_refused_with_a_sentence_that_names_them) {
  Folder folder;
  Authority authority(folder, "site"), other(folder, "other");
  const Credentials collector = authority.load("c", {"DNS:collector.example"});
  const Credentials node = authority.load("n", {"DNS:node-3"});
  const struct {
    const char* what;
    Credentials server, client;
    std::string name, at_server, at_client, later;
  } cases[] = {
      {"fits", collector, node, "collector.example", "ok", "ok", ""},
      {"an address", authority.load("ip", {"IP:10.1.2.3"}), node, "10.1.2.3", "ok", "ok", ""},
      {"wrong name", collector, node, "other.example",
       "10.0.0.1:4000: the peer refuses the connection: bad certificate",
       "other.example: the peer's certificate is that of collector.example", ""},
      {"wrong address", authority.load("ip", {"IP:10.1.2.3"}), node, "10.1.2.4",
       "10.0.0.1:4000: the peer refuses the connection: bad certificate",
       "10.1.2.4: the peer's certificate is that of a test", ""},
      {"a name in the subject alone",
       authority.load("s", {"", 1'700'000'000, 1'900'000'000, "collector.example"}), node,
       "collector.example", "10.0.0.1:4000: the peer refuses the connection: bad certificate",
       "collector.example: the peer's certificate is that of collector.example", ""},
      {"server's expired", authority.load("e", {"DNS:collector.example", 1'600'000'000, 1'700'000'000}), node,
       "collector.example", "10.0.0.1:4000: the peer refuses the connection: certificate expired",
       "collector.example: collector.example: certificate expired on 2023-11-14 22:13:20 UTC", ""},
      {"client's expired", collector, authority.load("e", {"DNS:node-3", 1'600'000'000, 1'700'000'000}),
       "collector.example", "10.0.0.1:4000: node-3: certificate expired on 2023-11-14 22:13:20 UTC", "ok",
       "collector.example: the peer refuses the connection: certificate expired"},
      {"not yet", collector, authority.load("y", {"DNS:node-3", 1'800'000'000, 1'900'000'000}),
       "collector.example", "10.0.0.1:4000: node-3: certificate is valid only from 2027-01-15 08:00:00 UTC",
       "ok", "collector.example: the peer refuses the connection: bad certificate"},
      {"client of another authority", collector, *TlsCredentials::load([&] {
         TlsFiles files = other.issue("o", {"DNS:node-3"});
         files.ca = authority.ca();
         return files;
       }()),
       "collector.example",
       "10.0.0.1:4000: node-3: certificate is not signed by an authority that is known here", "ok",
       "collector.example: the peer refuses the connection: unknown ca"},
      {"server of another authority", other.load("oc", {"DNS:collector.example"}), node, "collector.example",
       "10.0.0.1:4000: the peer refuses the connection: unknown ca",
       "collector.example: collector.example: certificate is not signed by an authority that is known here",
       ""},
  };
  for (const auto& row : cases) {
    Ends ends;
    ends.connect(row.server, row.client, row.name);
    BOOST_TEST_CONTEXT(row.what) {
      BOOST_TEST(ends.server.output == row.at_server);
      BOOST_TEST(ends.client.output == row.at_client);
      BOOST_TEST(ends.client.ended == row.later);
    }
  }
}

BOOST_AUTO_TEST_CASE(what_is_no_handshake_is_refused_with_a_sentence) {
  Folder folder;
  Authority authority(folder, "site");
  const Credentials collector = authority.load("c", {"DNS:collector.example"});
  const struct {
    std::string bytes, says;
  } cases[] = {
      {"GET / HTTP/1.1\r\n\r\n", "10.0.0.1:4000: what came is no TLS"},
      {"garbage that is long enough", "10.0.0.1:4000: what came is no TLS"},
      {std::string(100, '\0'), "10.0.0.1:4000: what came is no TLS"},
      {"", "10.0.0.1:4000: the connection ended during the TLS handshake"},
      {std::string("\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", 11),
       "10.0.0.1:4000: the connection ended during the TLS handshake"},
  };
  for (const auto& row : cases) {
    Ends ends;
    ends.connect(collector, nullptr);
    ends.plain->write(row.bytes);
    ends.env.read();
    if (ends.server.output.empty()) BOOST_TEST(!ends.server.stream->has_answered());
    ends.plain.reset();
    ends.env.read();
    BOOST_TEST(ends.server.output == row.says);
  }
}

BOOST_AUTO_TEST_CASE(a_handshake_may_be_cut_anywhere) {
  Folder folder;
  Authority authority(folder, "site");
  const Credentials collector = authority.load("c", {"DNS:collector.example"});
  const Credentials node = authority.load("n", {"DNS:node-3"});
  for (uint64_t cut = 1; cut < 700; cut += 13)
    for (const int end : {0, 1}) {
      Ends ends;
      ends.env.largest_read = 50;
      ends.env.on_link = [&](Link& link) { link.cut_at[end] = cut; };
      ends.connect(collector, node);
      const bool server = ends.server.output != "ok", client = ends.client.output != "ok";
      BOOST_TEST((server || !ends.server.ended.empty() || client || !ends.client.ended.empty()),
                 "cut at " << cut);
      if (server) BOOST_TEST(ends.server.output.starts_with("10.0.0.1:4000: the connection ended during"));
    }
}

BOOST_AUTO_TEST_CASE(an_end_without_notice_is_an_error) {
  Folder folder;
  Authority authority(folder, "site");
  Ends ends;
  ends.connect(authority.load("c", {"DNS:collector.example"}), authority.load("n", {"DNS:node-3"}));
  ends.env.links.at(0)->ends[1].hung_up = true;
  ends.env.read();
  BOOST_TEST(ends.server.ended == "10.0.0.1:4000: the connection was cut");
  ends.env.links.at(0)->cut();
  ends.env.read();
  BOOST_TEST(ends.client.ended == "a connection: connection reset by peer");
}

BOOST_AUTO_TEST_CASE(a_paused_stream_gives_nothing_and_loses_nothing) {
  Folder folder;
  Authority authority(folder, "site");
  Ends ends;
  ends.connect(authority.load("c", {"DNS:collector.example"}), authority.load("n", {"DNS:node-3"}));
  ends.server.stream->pause();
  ends.client.stream->write(std::string(500'000, 'x'));
  ends.client.stream.reset();
  ends.env.read();
  BOOST_TEST(ends.server.received == "");
  ends.server.stream->resume();
  ends.env.read();
  BOOST_TEST(ends.server.received.size() == 500'000u);
  BOOST_TEST(ends.server.ended == "end");
}

BOOST_AUTO_TEST_CASE(a_tls_stream_may_be_destroyed_from_within_its_calls) {
  Folder folder;
  Authority authority(folder, "site");
  const Credentials collector = authority.load("c", {"DNS:collector.example"});
  const Credentials node = authority.load("n", {"DNS:node-3"});
  for (const int when : {0, 1, 2}) {
    NetEnv env;
    std::unique_ptr<TlsStream> server;
    int calls = 0;
    const auto leave = [&](int now) {
      if (now == when) ++calls, server.reset();
    };
    auto listener = *env.listen("c:1", 0, [&](std::unique_ptr<Stream> below) {
      server = std::make_unique<TlsStream>(
          env, std::move(below), collector, TlsStream::Options{TlsStream::Side::kAccepts, "a"}, [&](Status) {
            if (when == 0) return leave(0);
            server->start({[&](std::string_view) { leave(1); }, [&](const Error*) { leave(2); }});
          });
    });
    Side client;
    client.begin(env, env.dial("c:1"), node, {TlsStream::Side::kConnects, "collector.example"});
    env.read();
    client.stream->write(std::string(100'000, 'x'));
    env.read();
    client.stream.reset();
    env.read();
    BOOST_TEST(calls == 1);
    BOOST_TEST(!server);
  }
}

BOOST_AUTO_TEST_CASE(files_that_do_not_fit_are_found_when_they_are_loaded) {
  Folder folder;
  Authority authority(folder, "site");
  const TlsFiles good = authority.issue("n", {"DNS:node-3"}), other = authority.issue("m", {"DNS:node-4"});
  std::ofstream(folder / "empty") << "";
  const auto with = [&](auto change) {
    TlsFiles files = good;
    change(files);
    return files;
  };
  const struct {
    TlsFiles files;
    std::string says;
  } cases[] = {
      {good, ""},
      {with([&](TlsFiles& f) { f.cert = folder / "none"; }),
       (folder / "none") + ": no such file or directory"},
      {with([&](TlsFiles& f) { f.key = other.key; }),
       other.key + ": is not the key of " + good.cert + " (key values mismatch)"},
      {with([&](TlsFiles& f) { f.cert = folder / "empty"; }),
       (folder / "empty") + ": has no usable certificate (no start line)"},
      {with([&](TlsFiles& f) { f.ca = folder / "empty"; }),
       (folder / "empty") + ": has no certificate (no start line)"},
      {with([&](TlsFiles& f) { f.key = good.cert; }),
       good.cert + ": has no usable private key (unsupported)"},
  };
  for (const auto& row : cases) {
    const auto loaded = TlsCredentials::load(row.files);
    BOOST_TEST((loaded ? "" : loaded.error().text) == row.says);
  }
}

// The list is one of all authorities above the peer; our own certificate is not looked up.
BOOST_AUTO_TEST_CASE(a_revoked_certificate_is_refused_and_a_list_that_is_out_of_date_refuses_all) {
  Folder folder;
  Authority authority(folder, "site"), other(folder, "other");
  const Credentials node = authority.load("n", {"DNS:node-3"});
  const TlsFiles files = authority.issue("c", {"DNS:collector.example"});
  const struct {
    std::string crl, at_server;
  } cases[] = {
      {authority.revoke("none.crl", {}), "ok"},
      {authority.revoke("other.crl", {files.cert}), "ok"},
      {authority.revoke("node.crl", {files.cert, folder / "n.crt"}),
       "10.0.0.1:4000: node-3: certificate is revoked"},
      {authority.revoke("old.crl", {}, 1'700'000'001),
       "10.0.0.1:4000: node-3: the revocation list of its authority is out of date: it must be renewed here"},
      {other.revoke("foreign.crl", {}),
       "10.0.0.1:4000: node-3: there is no revocation list here of an authority that signed its certificate"},
  };
  for (const auto& row : cases) {
    TlsFiles with = files;
    with.crl = row.crl;
    const auto collector = TlsCredentials::load(with);
    BOOST_REQUIRE_MESSAGE(collector, (collector ? "" : collector.error().text));
    Ends ends;
    ends.connect(*collector, node);
    BOOST_TEST(ends.server.output == row.at_server);
  }
  TlsFiles with = files;
  with.crl = files.cert;
  const auto loaded = TlsCredentials::load(with);
  BOOST_REQUIRE(!loaded);
  BOOST_TEST(loaded.error().text.starts_with(files.cert + ": has no revocation list"));
}

BOOST_AUTO_TEST_CASE(the_certificate_of_a_connection_can_be_verified_again) {
  Folder folder;
  Authority authority(folder, "site"), other(folder, "other");
  const TlsFiles collector = authority.issue("c", {"DNS:collector.example"});
  const TlsFiles files = authority.issue("n", {"DNS:node-3", 1'700'000'000, 1'800'000'000});
  Ends ends;
  ends.connect(*TlsCredentials::load(collector), *TlsCredentials::load(files));
  const auto server = [&](auto change) {
    TlsFiles with = collector;
    change(with);
    const Status status = ends.server.stream->verify(**TlsCredentials::load(with));
    return status ? "ok" : status.error().text;
  };
  BOOST_TEST(server([](TlsFiles&) {}) == "ok");
  BOOST_TEST(server([&](TlsFiles& f) { f.crl = authority.revoke("a.crl", {}); }) == "ok");
  BOOST_TEST(server([&](TlsFiles& f) { f.crl = authority.revoke("b.crl", {files.cert}); }) ==
             "10.0.0.1:4000: node-3: certificate is revoked");
  BOOST_TEST(server([&](TlsFiles& f) { f.ca = other.ca(); }) ==
             "10.0.0.1:4000: node-3: certificate is not signed by an authority that is known here");
  BOOST_TEST(ends.client.stream->verify(**TlsCredentials::load(files)).has_value());
  BOOST_TEST(ends.server.stream->peer_expires_ns() == 1'800'000'000 * kNsPerSecond);
  BOOST_TEST(ends.client.stream->peer_expires_ns() == 1'900'000'000 * kNsPerSecond);
  ends.env.wall_ns = 1'800'000'001 * kNsPerSecond;
  BOOST_TEST(server([](TlsFiles&) {}) ==
             "10.0.0.1:4000: node-3: certificate expired on 2027-01-15 08:00:00 UTC");
}

BOOST_AUTO_TEST_CASE(renewed_files_are_noticed_and_a_renewal_under_way_is_not) {
  Folder folder;
  Authority authority(folder, "site");
  const Credentials loaded = authority.load("n", {"DNS:node-3", 1'700'000'000, 1'800'000'000});
  BOOST_TEST(loaded->subject() == "node-3");
  BOOST_TEST(loaded->expires_ns() == 1'800'000'000 * kNsPerSecond);
  BOOST_TEST(!loaded->outdated());
  std::filesystem::rename(folder / "n.key", folder / "away");
  BOOST_TEST(!loaded->outdated());
  authority.issue("n", {"DNS:node-3", 1'700'000'000, 1'850'000'000});
  BOOST_TEST(loaded->outdated());
}

BOOST_AUTO_TEST_SUITE_END()
