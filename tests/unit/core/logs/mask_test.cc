#include "core/logs/mask.h"

#include <boost/test/unit_test.hpp>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <random>
#include <unordered_map>

#include "base/limits.h"

using namespace culprit;
using namespace culprit::logs;

namespace {

struct Case {
  std::string message, form;
};

// Whether hash and text agree on every pair of these messages.
class Agreement {
 public:
  void add(std::string_view message) {
    const uint64_t hash = form_hash(message);
    const std::string text = form_text(message);
    const auto [by_hash, new_hash] = texts_.try_emplace(hash, text);
    BOOST_REQUIRE_MESSAGE(by_hash->second == text,
                          "one hash, two forms: " << by_hash->second << " / " << text);
    const auto [by_text, new_text] = hashes_.try_emplace(text, hash);
    BOOST_REQUIRE_MESSAGE(by_text->second == hash, "one form, two hashes: " << text);
  }

 private:
  std::unordered_map<uint64_t, std::string> texts_;
  std::unordered_map<std::string, uint64_t> hashes_;
};

}  // namespace

BOOST_AUTO_TEST_SUITE(mask)

BOOST_AUTO_TEST_CASE(variable_parts_become_holes_and_words_stay) {
  const Case cases[] = {
      {"nothing varies here", "nothing varies here"},
      {"took 12 ms with 1e-5 of -3.5", "took <*> with <*> of <*>"},
      {"at 0x7f3a00 and deadbeef12 and 3f9c2e1", "at <*> and <*> and <*>"},
      {"open /var/log/x.log: denied", "open <*>: denied"},
      {"see https://a.example/b?c=d, then", "see <*>, then"},
      {"job 9f86d081-884c-7d65-9a2f-eaa0c55ad015 ended", "job <*> ended"},
      {"peer 10.0.0.1:50010 or fe80::1:2:3 gone", "peer <*> or <*> gone"},
      {"chip FF:F2:9F:16:EA:5F up", "chip <*> up"},
      {"from 2001:db8::a1:ff:2 or fe80::1 or ::1 or ::ffff:10.0.0.1", "from <*> or <*> or <*> or <*>"},
      {"from fd00:0:1:2:1a2b:c:d4:e5ff:38512 or [fe80::1%eth0]:22", "from <*> or [<*>]:<*>"},
      {"of c10::Error and std::add", "of <*>::Error and std::add"},
      {"token cac4120 of rank12", "token <*> of rank<*>"},
      {"from Sun Jun 18 02:08:12 2005 on", "from <*> on"},
      {"from 2026-11-21T02:12:09.123Z on", "from <*> on"},
      {"free 93.0 B of 1.2 GB.", "free <*> of <*>."},
      {"used 12.5GB in 30ms", "used <*> in <*>"},
      {"took 1 second or 2 minutes for 5 bytes", "took <*> or <*> for <*>"},
      {"secondary 3 secondary", "secondary <*> secondary"},
      {"get /v2/x/servers?all=True&since=2017-05, then", "get <*>, then"},
      {"open app.x-data://a/b: ok", "open <*>: ok"},
      {"package Package_1_for_KB22~31bf3856~amd64~~6.1.1", "package <*>"},
      {"file [2017-07-05]-Report-003.xml", "file [<*>]-Report-<*>"},
      {"NCCL version 2.18.3+cuda12", "NCCL version <*>+cuda<*>"},
      {"block blk_-123 on node-17, rank12 of cuda:3", "block blk_<*> on node-<*>, rank<*> of cuda:<*>"},
      {"task_0_m_0001 is a name", "<*> is a name"},
      {"iteration=12 loss=nan", "iteration=<*> loss=nan"},
      {"(pid 12) (pid=12)", "(pid <*>) (pid=<*>)"},
      {"NVRM: Xid (PCI:0000:9b:00): 79, pid=1", "NVRM: Xid (PCI:<*>): <*>, pid=<*>"},
      {"load C:\\lib\\core.dll, and D:\\a. Then HKLM\\System\\Setup", "load <*>, and <*>. Then <*>"},
      {"print a\\nb\\tc and \\\"d\\\"", "print a\\nb\\tc and \\\"d\\\""},
      {"File \"/usr/lib/a.py\", line 12, in f", "File \"<*>\", line <*>, in f"},
      {"ops/build_util.cc:77] bad", "<*>] bad"},
      {"read/write of I/O", "read/write of I/O"},
      {"from 1.2.3.4 () at", "from <*> (<*>) at"},
      {"call() and f(x)", "call() and f(x)"},
      {"\x1b[31mERROR\x1b[0m 5", "ERROR <*>"},
      {"  two   spaces\tand tabs 1 ", "two spaces and tabs <*>"},
      {"", ""},
      {"   ", ""},
      {"<*> stays one", "<*> stays one"},
  };
  for (const Case& c : cases) BOOST_CHECK_EQUAL(form_text(c.message), c.form);
}

BOOST_AUTO_TEST_CASE(a_token_of_many_groups_is_one_hole) {
  std::string groups = "1a", wrong;
  for (int i = 0; i < 200; ++i) groups += ":2b";
  wrong = groups + ":word";
  BOOST_CHECK_EQUAL(form_text("list " + groups + " end"), "list <*> end");
  BOOST_CHECK_EQUAL(form_text("list " + wrong + " end"), "list <*>:word end");
}

BOOST_AUTO_TEST_CASE(lists_of_different_length_agree) {
  const std::string one = form_text("shape [1] of x");
  BOOST_CHECK_EQUAL(one, "shape [<*>] of x");
  BOOST_CHECK_EQUAL(form_text("shape [1, 2, 3] of x"), one);
  BOOST_CHECK_EQUAL(form_text("shape [1,2,3,4,5] of x"), one);
  BOOST_CHECK_EQUAL(form_text("shape [] of x"), one);
  BOOST_CHECK_EQUAL(form_text("shape [0.1 -0.2 1e9] of x"), one);
  BOOST_CHECK_EQUAL(form_text("on [rank0, rank1, rank2]"), form_text("on [rank7]"));
  BOOST_CHECK_NE(form_text("a 1 b 2"), form_text("a 1 2"));
}

BOOST_AUTO_TEST_CASE(progress_bars_agree_from_start_to_end) {
  const char* bars[] = {"  0%|          | 0/8 [00:00<?, ?it/s]",
                        " 12%|█▎        | 1/8 [01:53<13:12, 113.21s/it]",
                        "100%|██████████| 8/8 [15:00<00:00, 2.1it/s, loss=0.5]",
                        "12%|#2   | 1/8 [00:01<00:07] 25%|##5  | 2/8 [00:02<00:06]"};
  for (const char* bar : bars) {
    BOOST_CHECK_EQUAL(form_text(bar), form_text(bars[0]));
    BOOST_CHECK_EQUAL(form_hash(bar), form_hash(bars[0]));
  }
  BOOST_CHECK_NE(form_text("eval:  12%|█▎ | 1/8 [01:53<13:12]"), form_text(bars[0]));
  BOOST_CHECK_EQUAL(form_text("12%|█▎"), "<*>%|<*>|");
}

BOOST_AUTO_TEST_CASE(equal_forms_and_equal_hashes_are_the_same_over_generated_messages) {
  const char* parts[] = {
      "rank", "12",  "0x1f", "-3.5", "/a/b",  "[1,",     "2]",   "()",   "=",   "x=1",        "Jun", "Sun",
      "  ",   "\t",  "é",    "<*>",  "<*>,",  "B",       "MB,",  "50%|", "|",   "█",          "[",   "]",
      "a:b",  "1:2", "::",   "a_1",  "a-1.b", "\x1b[0m", "\x01", "\\",   "...", "http://a/1", "(",   ")"};
  std::mt19937 random(7);
  Agreement agreement;
  for (int i = 0; i < 200'000; ++i) {
    std::string message;
    for (size_t n = random() % 9; n > 0; --n) {
      message += parts[random() % std::size(parts)];
      if (random() % 3) message += ' ';
    }
    agreement.add(message);
    agreement.add(form_text(message));
  }
}

BOOST_AUTO_TEST_CASE(equal_forms_and_equal_hashes_are_the_same_over_random_bytes) {
  std::mt19937 random(11);
  Agreement agreement;
  for (int i = 0; i < 50'000; ++i) {
    std::string message(random() % 200, ' ');
    for (char& c : message) c = random() % 2 ? static_cast<char>(random()) : " 1a/:[]<.-"[random() % 10];
    agreement.add(message);
  }
}

BOOST_AUTO_TEST_CASE(equal_forms_and_equal_hashes_are_the_same_over_real_logs) {
  const char* data = std::getenv("CULPRIT_DATA");
  if (!data) {
    BOOST_TEST_MESSAGE("CULPRIT_DATA is not set: real logs are passed over");
    return;
  }
  Agreement agreement;
  size_t lines = 0;
  for (const auto& entry :
       std::filesystem::recursive_directory_iterator(std::filesystem::path(data) / "loghub")) {
    if (entry.path().extension() != ".log") continue;
    std::ifstream in(entry.path());
    for (std::string line; std::getline(in, line); ++lines) agreement.add(line);
  }
  BOOST_CHECK_GT(lines, 10'000u);
}

BOOST_AUTO_TEST_CASE(a_hash_does_not_depend_on_where_the_message_lies) {
  const std::string message = "rank 12 of node-17: took 3.5 ms (see /a/b) and [1, 2] or () in x";
  for (size_t pad = 0; pad < 130; ++pad) {
    const std::string shifted = std::string(pad, '#') + message + "7777";
    const std::string_view view(shifted.data() + pad, message.size());
    BOOST_CHECK_EQUAL(form_hash(view), form_hash(message));
    const std::string moved = std::string(pad, 'w') + " " + message;  // holes cross the blocks' edges
    BOOST_CHECK_EQUAL(form_text(moved), (pad ? std::string(pad, 'w') + " " : "") + form_text(message));
  }
}

BOOST_AUTO_TEST_CASE(what_lies_beyond_the_limits_is_one_hole) {
  const std::string head(limits::kMessageBytes - 1, 'a');
  BOOST_CHECK_EQUAL(form_text(head + " tail one"), form_text(head + " other 2 tail"));
  BOOST_CHECK_EQUAL(form_hash(head + " tail one"), form_hash(head + " other 2 tail"));
  std::string many;
  for (size_t i = 0; i < limits::kMessageTokens + 50; ++i) many += "k=1 ";
  BOOST_CHECK_LE(form_text(many).size(), limits::kMessageTokens * 6 + 8);
  BOOST_CHECK_EQUAL(form_text(many), form_text(many + "k=1"));
  BOOST_CHECK_EQUAL(form_hash(many), form_hash(many + "k=1"));
  std::string dense;  // the longest output that a token can have
  while (dense.size() < limits::kMessageBytes) dense += "1=";
  BOOST_CHECK_EQUAL(form_text(dense).size(), 2 * limits::kMessageBytes);
}

BOOST_AUTO_TEST_CASE(values_that_tell_trouble_are_not_masked) {
  BOOST_CHECK_NE(form_text("loss: nan"), form_text("loss: 2.31"));
  BOOST_CHECK_NE(form_text("link 3 is up"), form_text("link 3 is down"));
  BOOST_CHECK_NE(form_text("state=OK"), form_text("state=FAILED"));
}

BOOST_AUTO_TEST_SUITE_END()
