#include "model/peer.h"

#include <boost/test/unit_test.hpp>

using namespace culprit;
using namespace culprit::peer;

BOOST_AUTO_TEST_SUITE(peer_messages)

namespace {

// An initializer list of as many alternatives takes GCC 12 half an hour and 18 GB.
template <class... M>
std::vector<Message> list_of(M... message) {
  std::vector<Message> out;
  (out.emplace_back(std::move(message)), ...);
  return out;
}

const std::vector<Message>& samples() {
  static const std::vector<Message> all = list_of(
      Hello{kOldest,
            kNewest,
            "0.1.0",
            "node-3.cluster",
            "b0-0t",
            1'763'700'000'000'000'000,
            {{Log::kCondensed, 11, 1, 1}, {Log::kEvidence, 22, 5, 900}}},
      Welcome{
          {1, 0}, "0.1.0", 5, {{Log::kCondensed, 11, false, 0}, {Log::kEvidence, 22, true, 7, 5}}, 4 << 20},
      Frame{Log::kEvidence, FrameKind::kData, 8, std::string("CFRM\0\1", 6)},
      Frame{Log::kEvidence, FrameKind::kCheckpointEnd, 0, "x"},
      Skipped{Log::kEvidence, 9, 12, "not forwarded by policy"}, Ack{Log::kCondensed, 11, 3, 1 << 20},
      peer::Status{
          10, 5, 100, 2, 30, 4, false, "the disk is full", {"llama", "t5"}, {{Log::kEvidence, 4096, 3, 77}}},
      Wanted{-5, 9, "a rank hangs"}, Ping{1}, Pong{2}, Refused{Refusal::kIdentity, "it calls itself node-4"},
      Bye{"the agent stops"}, StepsWanted{"llama", {118, 119}}, StacksWanted{"llama", 2},
      StacksWanted{"llama", 3, true, true}, EndTasks{"llama", "d-0001", 2000}, CheckHost{"d-0002", 30000},
      CheckResult{"d-0002", CheckAnswer::kFailed, "memory: 3 of 4096 pages differ"},
      AlignHost{"d-0002", 30000},
      AlignResult{
          "d-0002", {{"cuda:3", "torch 2.4, H100", "ab12", true}, {"cpu", "k", "", false}}, true, "later"},
      AlignJudged{"d-0002", CheckAnswer::kFailed, "cuda:3: other bits"},
      Advise{"llama", "d-0003", 1000, {7, AdviceKind::kRollback, 120, 9, 60000, AdviceReason::kNumbers}},
      JobOwners{{{"llama", "collector-2:7421", 9}, {"ml/qwen", "[fe80::1]:7421", 12}}}, JobOwners{},
      Archived{Log::kEvidence, 22, 6});
  return all;
}

// Without the logs in object storage: a count, and of one log its kind, epoch and sequence.
size_t size_of_older_welcome(const std::string& body) { return body.size() - 2 - 1 - 8 - 8; }

uint16_t type_of(const std::string& bytes) { return static_cast<uint16_t>(bytes[2] | bytes[3] << 8); }

}  // namespace

BOOST_AUTO_TEST_CASE(what_is_sent_is_what_comes) {
  Splitter splitter;
  splitter.allow(kMessageBytes);
  std::string all;
  for (const Message& message : samples()) all += encode(message);
  size_t count = 0;
  for (const char c : all) {  // cut anywhere
    splitter.add({&c, 1});
    auto message = splitter.next();
    BOOST_REQUIRE(message);
    if (!*message) continue;
    BOOST_TEST((**message == samples().at(count)));
    ++count;
  }
  BOOST_TEST(count == samples().size());
  BOOST_TEST(splitter.held() == 0u);
}

BOOST_AUTO_TEST_CASE(bodies_that_are_cut_are_refused_and_longer_ones_are_a_newer_versions) {
  for (const Message& message : samples()) {
    const std::string bytes = encode(message), body = bytes.substr(kHeaderBytes);
    for (size_t size = 0; size < body.size(); ++size) {
      if (std::holds_alternative<Welcome>(message) && size == size_of_older_welcome(body)) continue;
      const auto decoded = decode(type_of(bytes), body.substr(0, size));
      BOOST_REQUIRE(!decoded);
      BOOST_TEST(
          decoded.error().text.starts_with(std::string("a ") + name_of(message) + " cannot be read: "));
    }
    const auto grown = decode(type_of(bytes), body + "newer");
    BOOST_REQUIRE(grown);
    BOOST_TEST((*grown == message));
  }
}

BOOST_AUTO_TEST_CASE(an_older_collectors_welcome_says_that_it_archives_nothing) {
  Welcome welcome = std::get<Welcome>(samples()[1]);
  const std::string bytes = encode(welcome), body = bytes.substr(kHeaderBytes);
  const auto decoded = decode(type_of(bytes), body.substr(0, size_of_older_welcome(body)));
  BOOST_REQUIRE(decoded);
  welcome.logs[1].archived.reset();
  BOOST_TEST((*decoded == Message(welcome)));
}

BOOST_AUTO_TEST_CASE(messages_of_an_unknown_type_are_passed_over_by_their_size) {
  std::string strange = encode(Ping{5});
  strange[2] = '\x77';
  Splitter splitter;
  splitter.add(strange + encode(Ping{6}));
  auto first = splitter.next();
  BOOST_REQUIRE((first && *first));
  BOOST_TEST((**first == Message(Unknown{0x77})));
  BOOST_TEST((**splitter.next() == Message(Ping{6})));
}

BOOST_AUTO_TEST_CASE(logs_of_a_kind_that_only_newer_versions_know_are_left_out) {
  Hello hello = std::get<Hello>(samples()[0]);
  hello.logs.push_back({static_cast<Log>(5), 33, 1, 2});
  const std::string bytes = encode(hello);
  const auto decoded = decode(type_of(bytes), std::string_view(bytes).substr(kHeaderBytes));
  BOOST_REQUIRE(decoded);
  BOOST_TEST((*decoded == samples()[0]));
}

BOOST_AUTO_TEST_CASE(what_makes_no_sense_is_refused_with_a_reason) {
  const auto status = [](auto change) {
    peer::Status st;
    change(st);
    return encode(st);
  };
  const auto hello = [](auto change) {
    Hello h = std::get<Hello>(samples()[0]);
    change(h);
    return encode(h);
  };
  const struct {
    std::string bytes, says;
  } cases[] = {
      {hello([](Hello& h) { h.host = ""; }), "a hello cannot be read: the host has no usable name"},
      {hello([](Hello& h) { h.host = "../x"; }), "a hello cannot be read: the host has no usable name"},
      {hello([](Hello& h) { h.host = "a\nb"; }), "a hello cannot be read: the host has no usable name"},
      {hello([](Hello& h) { h.time_ns = -1; }), "a hello cannot be read: its clock is before 1970"},
      {hello([](Hello& h) { h.logs[1].first = 901; }), "a hello cannot be read: a log ends before it begins"},
      {hello([](Hello& h) { h.logs[1].next = UINT64_MAX; }),
       "a hello cannot be read: a log ends before it begins"},
      {hello([](Hello& h) { h.logs[1].epoch = 11; }), "a hello cannot be read: a log appears twice"},
      {hello([](Hello& h) { h.logs[1].log = Log::kCondensed; }),
       "a hello cannot be read: a log appears twice"},
      {hello([](Hello& h) {
         h.oldest = {2, 0};
       }),
       "a hello cannot be read: its newest version is older than its oldest"},
      {encode(Frame{static_cast<Log>(2), FrameKind::kData, 1, "x"}),
       "a frame cannot be read: there is no such log"},
      {encode(Frame{Log::kEvidence, static_cast<FrameKind>(3), 1, "x"}),
       "a frame cannot be read: there is no such kind of frame"},
      {encode(Frame{Log::kEvidence, FrameKind::kData, 0, "x"}),
       "a frame cannot be read: frames count from 1"},
      {encode(Frame{Log::kEvidence, FrameKind::kData, UINT64_MAX, "x"}),
       "a frame cannot be read: no log is so long"},
      {encode(Frame{Log::kEvidence, FrameKind::kData, 1, ""}), "a frame cannot be read: the frame is empty"},
      {encode(Skipped{Log::kEvidence, 5, 4, ""}), "a skipped cannot be read: it skips nothing"},
      {encode(Skipped{Log::kEvidence, 1, UINT64_MAX, ""}), "a skipped cannot be read: it skips nothing"},
      {status([](peer::Status& st) { st.started_ns = -5; }),
       "a status cannot be read: a time is before 1970"},
      {status([](peer::Status& st) {
         st.logs = {{Log::kEvidence, 1, 1, -5}};
       }),
       "a status cannot be read: a time is before 1970"},
      {encode(Wanted{5, 4, ""}), "a wanted cannot be read: it ends before it begins"},
      {"GET / HTTP/1.1\r\n", "what came is none of our messages: GET / HTTP/1.1\\x0d\\x0a"},
      {"\x16\x03\x01", "what came is none of our messages: \\x16\\x03\\x01"},
      {"C", ""},
      {"CQ", "what came is none of our messages: CQ"},
      {std::string("CP\3\0\1\x40\0\0", 8), "a message of 16385 bytes came where at most 16384 are taken"},
  };
  for (const auto& row : cases) {
    Splitter splitter;
    splitter.add(row.bytes);
    const auto message = splitter.next();
    BOOST_TEST((message ? "" : message.error().text) == row.says);
  }
}

BOOST_AUTO_TEST_CASE(texts_that_are_too_long_are_cut_when_written_and_refused_when_read) {
  Bye bye{std::string(5000, 'x')};
  const std::string bytes = encode(bye);
  BOOST_TEST(bytes.size() == kHeaderBytes + 2 + kSentenceBytes);
  std::string longer = bytes.substr(kHeaderBytes) + "x";
  ++longer[0];
  const auto decoded = decode(type_of(bytes), longer);
  BOOST_REQUIRE(!decoded);
  BOOST_TEST(decoded.error().text == "a bye cannot be read: a sentence is too long");
}

BOOST_AUTO_TEST_CASE(two_versions_find_what_both_know) {
  const struct {
    Version oldest, newest;
    std::string chosen;
  } cases[] = {
      {{1, 0}, {1, 0}, "1.0"},
      {{1, 0}, {1, 7}, "1.0"},
      {{1, 0}, {2, 3}, "1.0"},
      {{0, 0}, {0, 9}, "it speaks protocol 0 to 0, this program 1 to 1: it is too old"},
      {{2, 0}, {2, 0}, "it speaks protocol 2 to 2, this program 1 to 1: it is too new"},
  };
  for (const auto& row : cases) {
    const auto version = choose_version(row.oldest, row.newest);
    const std::string text = version ? std::to_string(version->major) + "." + std::to_string(version->minor)
                                     : version.error().text;
    BOOST_TEST(text == row.chosen);
  }
}

BOOST_AUTO_TEST_CASE(a_splitter_holds_no_more_than_came_and_gives_a_large_ones_memory_back) {
  Splitter splitter;
  splitter.allow(kMessageBytes);
  const std::string large = encode(Frame{Log::kEvidence, FrameKind::kData, 1, std::string(8 << 20, 'x')});
  for (size_t at = 0; at < large.size(); at += 65'536) {
    BOOST_TEST(splitter.held() == at);
    BOOST_REQUIRE(!*splitter.next());
    splitter.add(std::string_view(large).substr(at, 65'536));
  }
  BOOST_TEST(std::get<Frame>(**splitter.next()).bytes.size() == size_t(8 << 20));
  BOOST_TEST(splitter.held() == 0u);
}

BOOST_AUTO_TEST_SUITE_END()
