#include <sys/resource.h>
#include <sys/stat.h>

#include <boost/test/unit_test.hpp>
#include <fstream>
#include <thread>

#include "fixtures.h"

using namespace culprit;
using namespace culprit::io;
using namespace culprit::io::testing;

BOOST_AUTO_TEST_SUITE(streams)

namespace {

// A server that keeps the received bytes.
struct Server {
  explicit Server(RealLoop& loop_in, const std::string& address, uint32_t mode = 0600) : loop(loop_in) {
    auto opened = loop.env->listen(address, mode, [this](std::unique_ptr<Stream> stream) {
      streams.push_back(std::move(stream));
      Stream& added = *streams.back();
      if (on_stream) on_stream(added);
      added.start({[this](std::string_view bytes) {
                     received += bytes;
                     if (received.size() >= enough) loop.env->stop();
                   },
                   [this](const Error* error) {
                     ended += error == nullptr ? "end" : "error";
                     loop.env->stop();
                   }});
    });
    BOOST_REQUIRE_MESSAGE(opened, (opened ? "" : opened.error().text));
    listener = std::move(*opened);
  }
  RealLoop& loop;
  std::vector<std::unique_ptr<Stream>> streams;
  std::function<void(Stream&)> on_stream;
  std::string received, ended;
  size_t enough = 1;
  std::unique_ptr<Listener> listener;
};

mode_t mode_of(const std::string& path) {
  struct stat status;
  BOOST_REQUIRE_EQUAL(::stat(path.c_str(), &status), 0);
  return status.st_mode & 07777;
}

}  // namespace

BOOST_AUTO_TEST_CASE(a_unix_stream_carries_bytes_both_ways_and_knows_its_peer) {
  RealLoop loop;
  Folder folder;
  Server server(loop, "unix:" + (folder / "s"), 0666);
  server.on_stream = [](Stream& stream) { stream.write("hello"); };
  BOOST_TEST(mode_of(folder / "s") == mode_t(0666));
  Client client(Client::to_unix(folder / "s"));
  client.send("abc");
  server.enough = 3;
  loop.run();
  BOOST_TEST(server.received == "abc");
  BOOST_TEST(client.receive(5) == "hello");
  const auto peer = server.streams[0]->peer();
  BOOST_REQUIRE(peer);
  BOOST_TEST(peer->pid == uint32_t(::getpid()));
  BOOST_TEST(peer->uid == ::getuid());
  BOOST_TEST(peer->gid == ::getgid());
  client.hang_up();
  loop.run();
  BOOST_TEST(server.ended == "end");
}

BOOST_AUTO_TEST_CASE(a_tcp_stream_carries_bytes_both_ways_at_the_port_that_is_reported) {
  RealLoop loop;
  Server server(loop, "127.0.0.1:0");
  server.on_stream = [](Stream& stream) { stream.write("hello"); };
  BOOST_TEST(server.listener->address() != "127.0.0.1:0");
  Client client(Client::to_port(server.listener->address()));
  client.send("abc");
  server.enough = 3;
  loop.run();
  BOOST_TEST(client.receive(5) == "hello");
  BOOST_TEST(!server.streams[0]->peer());
}

BOOST_AUTO_TEST_CASE(a_large_write_arrives_whole_and_is_counted_until_it_has_left) {
  RealLoop loop;
  Folder folder;
  Server server(loop, "unix:" + (folder / "s"));
  const std::string large(4 << 20, 'x');
  Client client(Client::to_unix(folder / "s"));
  client.send("a");
  loop.run();
  Stream& stream = *server.streams[0];
  stream.write(large);
  BOOST_TEST(stream.unsent() > 0u);
  std::string got;
  std::thread reader([&] {
    got = client.receive(large.size());
    client.send("b");
  });
  server.enough = 2;
  loop.run();
  reader.join();
  BOOST_TEST((got == large));
  BOOST_TEST(stream.unsent() == 0u);
}

BOOST_AUTO_TEST_CASE(a_paused_stream_reads_nothing_and_goes_on) {
  RealLoop loop;
  Folder folder;
  Server server(loop, "unix:" + (folder / "s"));
  Client client(Client::to_unix(folder / "s"));
  client.send("a");
  loop.run();
  server.streams[0]->pause();
  client.send("b");
  client.hang_up();
  auto later = loop.env->timer([&] { loop.env->stop(); });
  later->start(5 * kNsPerMs);
  loop.run();
  BOOST_TEST(server.received == "a");
  BOOST_TEST(server.ended == "");
  server.streams[0]->resume();
  loop.run();
  if (server.ended.empty()) loop.run();
  BOOST_TEST(server.received == "ab");
  BOOST_TEST(server.ended == "end");
}

BOOST_AUTO_TEST_CASE(a_stream_may_be_destroyed_from_within_its_calls) {
  RealLoop loop;
  Folder folder;
  std::unique_ptr<Stream> stream;
  int calls = 0;
  for (const bool at_end : {false, true}) {
    calls = 0;
    auto listener = loop.env->listen("unix:" + (folder / "s"), 0600, [&](std::unique_ptr<Stream> opened) {
      stream = std::move(opened);
      const auto leave = [&] { ++calls, stream.reset(), loop.env->stop(); };
      stream->start({[&, leave, at_end](std::string_view) {
                       if (!at_end) leave();
                     },
                     [&, leave](const Error*) { leave(); }});
      stream->write(std::string(1 << 20, 'x'));  // still being sent when the stream is destroyed
    });
    Client client(Client::to_unix(folder / "s"));
    client.send("abc");
    if (at_end) client.hang_up();
    loop.run();
    BOOST_TEST(calls == 1);
    BOOST_TEST(!stream);
  }
}

BOOST_AUTO_TEST_CASE(a_listener_may_be_destroyed_from_within_its_call) {
  RealLoop loop;
  Folder folder;
  std::unique_ptr<Listener> listener;
  int calls = 0;
  listener = std::move(*loop.env->listen("unix:" + (folder / "s"), 0600, [&](std::unique_ptr<Stream>) {
    ++calls;
    listener.reset();
    loop.env->stop();
  }));
  Client one(Client::to_unix(folder / "s")), two(Client::to_unix(folder / "s"));
  loop.run();
  BOOST_TEST(calls == 1);
}

BOOST_AUTO_TEST_CASE(a_socket_that_no_one_serves_is_replaced_and_its_own_is_removed) {
  RealLoop loop;
  Folder folder;
  const int stale = ::socket(AF_UNIX, SOCK_STREAM, 0);
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  std::strncpy(address.sun_path, (folder / "s").c_str(), sizeof(address.sun_path) - 1);
  BOOST_REQUIRE_EQUAL(::bind(stale, reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
  ::close(stale);
  {
    Server server(loop, "unix:" + (folder / "s"));
    Client client(Client::to_unix(folder / "s"));
    client.send("abc");
    loop.run();
    BOOST_TEST(server.received == "abc");
  }
  BOOST_TEST(std::filesystem::is_empty(folder.path));  // and no temporary name is left
}

BOOST_AUTO_TEST_CASE(a_listener_leaves_a_socket_that_took_its_place) {
  RealLoop loop;
  Folder folder;
  auto first = std::make_unique<Server>(loop, "unix:" + (folder / "s"));
  ::unlink((folder / "s").c_str());
  Server second(loop, "unix:" + (folder / "s"));
  first.reset();
  BOOST_TEST(Client::to_unix(folder / "s") >= 0);
}

BOOST_AUTO_TEST_CASE(what_cannot_be_listened_at_is_one_sentence_that_names_it) {
  RealLoop loop;
  Folder folder;
  std::ofstream(folder / "file") << "precious";
  Server served(loop, "unix:" + (folder / "served"));
  Server port(loop, "127.0.0.1:0");
  const std::string taken = port.listener->address();
  const struct {
    std::string address, says;
  } cases[] = {
      {"unix:" + (folder / "served"), "unix:" + (folder / "served") + ": another process serves it"},
      {"unix:" + (folder / "file"),
       "unix:" + (folder / "file") + ": something that is no socket stands there"},
      {"unix:" + (folder / "none/s"), "unix:" + (folder / "none/s") + ": no such file or directory"},
      {"unix:/" + std::string(200, 'x'),
       "unix:/" + std::string(200, 'x') + ": is longer than a socket's path may be"},
      {taken, taken + ": address already in use"},
      {"127.0.0.1", "127.0.0.1: is no address, which is \"unix:PATH\" or \"HOST:PORT\""},
      {"127.0.0.1:70000", "127.0.0.1:70000: is no address, which is \"unix:PATH\" or \"HOST:PORT\""},
      {":1", ":1: is no address, which is \"unix:PATH\" or \"HOST:PORT\""},
      {"127.0.0.1:", "127.0.0.1:: is no address, which is \"unix:PATH\" or \"HOST:PORT\""},
  };
  for (const auto& row : cases) {
    const auto listener = loop.env->listen(row.address, 0600, [](std::unique_ptr<Stream>) {});
    BOOST_TEST_CONTEXT(row.address) {
      BOOST_REQUIRE(!listener);
      BOOST_TEST(listener.error().text == row.says);
    }
  }
  BOOST_TEST(std::filesystem::file_size(folder / "file") == 8u);
  BOOST_TEST(!std::filesystem::exists(folder / "served." + std::to_string(::getpid())));
}

BOOST_AUTO_TEST_CASE(without_descriptors_connections_wait_and_are_counted) {
  RealLoop loop;
  Folder folder;
  Server server(loop, "unix:" + (folder / "s"));
  Client client(Client::to_unix(folder / "s"));
  client.send("abc");
  rlimit before;
  ::getrlimit(RLIMIT_NOFILE, &before);
  const rlimit none = {0, before.rlim_max};
  auto give_back = loop.env->timer([&] {
    if (server.listener->descriptors_missing() > 0) ::setrlimit(RLIMIT_NOFILE, &before);
  });
  ::setrlimit(RLIMIT_NOFILE, &none);
  give_back->start(kNsPerMs, kNsPerMs);
  loop.run();
  BOOST_TEST(server.received == "abc");
  BOOST_TEST(server.listener->descriptors_missing() >= 1u);  // counts each failed attempt
}

BOOST_AUTO_TEST_SUITE_END()
