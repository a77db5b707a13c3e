#include "core/logs/miner.h"

#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <ctime>
#include <map>
#include <random>
#include <set>

#include "base/hash.h"
#include "base/limits.h"
#include "core/logs/mask.h"

using namespace culprit;
using namespace culprit::logs;

namespace {

// Template texts with their counts.
std::map<std::string, uint64_t> mine(const std::vector<std::string>& messages) {
  Miner miner;
  for (const std::string& message : messages) miner.add(form_text(message), 1);
  miner.settle();
  std::map<std::string, uint64_t> out;
  for (const ClusterId id : miner.clusters()) out[miner.text(id)] += miner.count(id);
  return out;
}

// A word of letters only, different for each `i`.
std::string name_of(size_t i) {
  std::string out = "q";
  for (++i; i > 0; i /= 20) out += "bcfghjklmnpqrstvwxyz"[i % 20];
  return out;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(miner)

BOOST_AUTO_TEST_CASE(a_thousand_lines_full_of_numbers_are_one_template) {
  std::vector<std::string> lines;
  for (int i = 0; i < 1000; ++i)
    lines.push_back(std::to_string(i) + " " + std::to_string(7 * i) + " 0x1f " + std::to_string(i));
  const auto found = mine(lines);
  BOOST_REQUIRE_EQUAL(found.size(), 1u);
  BOOST_CHECK_EQUAL(found.begin()->second, 1000u);
}

BOOST_AUTO_TEST_CASE(a_place_where_many_words_stand_becomes_a_hole) {
  std::vector<std::string> lines;
  for (size_t i = 0; i < 40; ++i)
    lines.push_back("session opened for user " + name_of(i) + " by (uid=" + std::to_string(i) + ")");
  const auto found = mine(lines);
  BOOST_REQUIRE_EQUAL(found.size(), 1u);
  BOOST_CHECK_EQUAL(found.begin()->first, "session opened for user <*> by (uid=<*>)");
}

BOOST_AUTO_TEST_CASE(two_places_that_vary_together_become_holes) {
  std::vector<std::string> lines;
  for (size_t i = 0; i < 40; ++i)
    lines.push_back("login failure rhost=" + name_of(i) +
                    ".example.com service=sshd tty=ssh user=" + name_of(900 - i));
  const auto found = mine(lines);
  BOOST_REQUIRE_EQUAL(found.size(), 1u);
  BOOST_CHECK_EQUAL(found.begin()->first, "login failure rhost=<*> service=sshd tty=ssh user=<*>");
}

BOOST_AUTO_TEST_CASE(messages_that_differ_in_a_word_of_state_stay_apart) {
  const char* states[] = {"up",          "down",    "succeeded",  "failed",   "OK",
                          "FAILED",      "timeout", "ValueError", "KeyError", "nan",
                          "unreachable", "resumed", "paused"};
  std::vector<std::string> lines;
  for (const char* state : states) lines.push_back(std::string("the link to peer 7 of the job is ") + state);
  BOOST_CHECK_EQUAL(mine(lines).size(), std::size(states));
}

BOOST_AUTO_TEST_CASE(an_error_does_not_vanish_among_many_values) {
  std::vector<std::string> lines;
  for (size_t i = 0; i < 100; ++i) lines.push_back("the result of stage one is " + name_of(i));
  lines.push_back("the result of stage one is error");
  lines.push_back("the result of stage one is nan");
  const auto found = mine(lines);
  BOOST_CHECK_EQUAL(found.size(), 3u);
  BOOST_CHECK_EQUAL(found.count("the result of stage one is error"), 1u);
  BOOST_CHECK_EQUAL(found.count("the result of stage one is nan"), 1u);
}

BOOST_AUTO_TEST_CASE(different_messages_of_one_length_stay_apart) {
  const std::vector<std::string> lines = {"Link ok",           "Link error",        "Link lost",
                                          "fan speed normal",  "disk quota full",   "cupsd startup done",
                                          "hcid startup done", "klogd startup done"};
  BOOST_CHECK_EQUAL(mine(lines).size(), lines.size());
}

BOOST_AUTO_TEST_CASE(an_optional_part_in_brackets_makes_no_other_template) {
  const auto found = mine({"peer closed, 403 bytes sent, 426 bytes received",
                           "peer closed, 1301 bytes (1.27 KB) sent, 426 bytes received",
                           "peer closed, 1301 bytes (1.27 KB) sent, 15934 bytes (15.5 KB) received"});
  BOOST_REQUIRE_EQUAL(found.size(), 1u);
  BOOST_CHECK_EQUAL(found.begin()->first, "peer closed, <*> (<*>) sent, <*> (<*>) received");
}

BOOST_AUTO_TEST_CASE(names_that_vary_between_the_same_words_are_values) {
  const auto first = mine({"com.example.sync: the scheduler asked me to run this job in 5 s",
                           "com.example.backup: the scheduler asked me to run this job in 7 s"});
  BOOST_REQUIRE_EQUAL(first.size(), 1u);
  BOOST_CHECK_EQUAL(first.begin()->first, "<*>: the scheduler asked me to run this job in <*>");
  const auto several =
      mine({"copy of a.txt.gz is sent to the mirror", "copy of b-c 17 is sent to the mirror"});
  BOOST_CHECK_EQUAL(several.size(), 1u);
  // A numbered name has its kind in it.
  BOOST_CHECK_EQUAL(mine({"the link of port eth0 is up", "the link of port ib0 is up"}).size(), 2u);
}

BOOST_AUTO_TEST_CASE(a_word_in_the_place_of_a_hole_is_a_value) {
  const auto found = mine({"login of user u17 from the console", "login of user admin from the console"});
  BOOST_REQUIRE_EQUAL(found.size(), 1u);
  BOOST_CHECK_EQUAL(found.begin()->first, "login of user <*> from the console");
  // A word next to a hole is not its value; a word of trouble is no value.
  BOOST_CHECK_EQUAL(mine({"start of the worker 17", "start of the new worker 17"}).size(), 2u);
  BOOST_CHECK_EQUAL(mine({"state of the worker is 17", "state of the worker is failed"}).size(), 2u);
}

BOOST_AUTO_TEST_CASE(literals_and_names_that_a_key_is_set_to_are_values) {
  const std::vector<std::vector<std::string>> same = {
      {"collapse force=true delayed=false", "collapse force=false delayed=true"},
      {"setLights(true)", "setLights(false)"},
      {"lock 3 taken, tag=\"View Lock\", owner=root, source=null",
       "lock 3 taken, tag=\"Main\", owner=admin, source=Worker{17}"},
      {"next event type: TASK_LAUNCH for container 3", "next event type: TASK_CLEANUP for container 4"}};
  for (const auto& lines : same) BOOST_CHECK_EQUAL(mine(lines).size(), 1u);
  const std::vector<std::vector<std::string>> apart = {
      {"worker 3 of the job: state=ready", "worker 3 of the job: state=failed"},
      {"error: no route to host", "error: none of the hosts"},
      {"authentication of user= host= tty=ssh", "authentication of user= tty= tty=ssh"}};
  for (const auto& lines : apart) BOOST_CHECK_EQUAL(mine(lines).size(), 2u);
}

BOOST_AUTO_TEST_CASE(a_truth_value_is_a_value_wherever_it_ends_a_message) {
  BOOST_CHECK_EQUAL(mine({"screen is locked true", "screen is locked false"}).size(), 1u);
  BOOST_CHECK_EQUAL(mine({"mode=true of keyguard is false", "mode=false of keyguard is true"}).size(), 1u);
  // "none" and "null" may be words of a sentence.
  BOOST_CHECK_EQUAL(mine({"owner of the page is null", "owner of the page is known"}).size(), 2u);
}

BOOST_AUTO_TEST_CASE(short_messages_with_names_are_one_template) {
  const std::vector<std::vector<std::string>> same = {
      {"delete from alpha", "delete from beta", "delete from gamma", "delete from delta"},
      {"setState=null", "setState=Walk"},
      {"mode=alpha", "mode=beta", "mode=gamma", "mode=delta"},
      {"(root) run command (/bin/a 1)", "(news) run command (/bin/b 2)", "(mail) run command (/bin/c)",
       "(uucp) run command (/bin/d)"},
      {"layer Bar#1 shown", "layer Dialog#2 shown"}};
  for (const auto& lines : same) BOOST_CHECK_EQUAL(mine(lines).size(), 1u);
  const std::vector<std::vector<std::string>> apart = {
      {"timer started", "timer stopped", "timer lost", "timer done"},
      {"delete from alpha", "delete from beta"},
      {"phase=warmup", "phase=train"},
      {"layer error.1 is shown now", "layer dialog.2 is shown now"}};
  for (const auto& lines : apart) BOOST_CHECK_EQUAL(mine(lines).size(), lines.size());
}

BOOST_AUTO_TEST_CASE(users_are_values_after_the_word_user) {
  const auto found = mine({"session opened for user root", "session opened for user news"});
  BOOST_REQUIRE_EQUAL(found.size(), 1u);
  BOOST_CHECK_EQUAL(found.begin()->first, "session opened for user <*>");
  BOOST_CHECK_EQUAL(
      mine({"job 1 run by u12 on the node", "job 2 run by u_x3 on the node", "job 3 run by root on the node"})
          .size(),
      1u);
  BOOST_CHECK_EQUAL(mine({"login of user root", "login of user unknown"}).size(), 2u);
}

BOOST_AUTO_TEST_CASE(singular_and_plural_after_a_number_are_one_word) {
  const auto found = mine({"copied 1 file to the disk", "copied 2 files to the disk"});
  BOOST_REQUIRE_EQUAL(found.size(), 1u);
  BOOST_CHECK_EQUAL(found.begin()->first, "copied <*> files to the disk");
  BOOST_CHECK_EQUAL(mine({"found 1 entry of it", "found 7 entries of it"}).size(), 1u);
  BOOST_CHECK_EQUAL(mine({"lost 1 batch of it", "lost 7 batches of it"}).size(), 1u);
  BOOST_CHECK_EQUAL(mine({"the file of the disk", "the files of the disk"}).size(), 2u);
}

BOOST_AUTO_TEST_CASE(values_of_keys_need_no_other_words) {
  BOOST_CHECK_EQUAL(mine({"host=alpha role=web zone=north", "host=beta role=db zone=south"}).size(), 1u);
}

BOOST_AUTO_TEST_CASE(names_do_not_depend_on_the_order_of_messages) {
  std::vector<std::string> lines;
  for (size_t i = 0; i < 60; ++i) {
    lines.push_back("Failed password for invalid user " + name_of(i) + " from 10.0.0." + std::to_string(i));
    lines.push_back("Accepted key for user " + name_of(i % 7) + " from " + name_of(i) +
                    ".example.org port 22");
    lines.push_back("step " + std::to_string(i) + " loss " + std::to_string(i) + (i % 9 ? "" : " nan"));
    lines.push_back("link " + name_of(i % 2) + " went " + (i % 2 ? "up" : "down"));
    lines.push_back("Loading module " + name_of(i % 30));
    lines.push_back("read of a." + name_of(i) + " took 3 ms" + (i % 2 ? " (4 KB)" : "") + " on the disk");
    lines.push_back("mode of the cache: lazy=" + std::string(i % 2 ? "true" : "false"));
  }
  const auto expected = mine(lines);
  std::mt19937 random(3);
  for (int round = 0; round < 20; ++round) {
    std::shuffle(lines.begin(), lines.end(), random);
    BOOST_REQUIRE(mine(lines) == expected);
  }
}

BOOST_AUTO_TEST_CASE(a_name_is_the_hash_of_the_text) {
  Miner miner;
  const ClusterId id = miner.add("took <*> ms", 3);
  miner.settle();
  BOOST_CHECK_EQUAL(miner.name(id), hash64("took <*> ms"));
  BOOST_CHECK_EQUAL(miner.text(id), "took <*> ms");
  BOOST_CHECK_EQUAL(miner.count(id), 3u);
}

BOOST_AUTO_TEST_CASE(live_templates_have_different_texts) {
  Miner miner;
  for (size_t i = 0; i < 30; ++i)
    miner.add("copy of shard " + name_of(i) + " , " + name_of(i + 50) + " to the store is planned", 1);
  for (size_t i = 0; i < 30; ++i) miner.add("copy of shard " + name_of(i) + " to the store is planned", 1);
  miner.settle();
  std::set<std::string> texts;
  for (const ClusterId id : miner.clusters()) BOOST_CHECK(texts.insert(miner.text(id)).second);
  // A run of holes counts as one, whatever its length.
  BOOST_CHECK_EQUAL(texts.size(), 1u);
}

BOOST_AUTO_TEST_CASE(ids_given_out_lead_to_the_cluster_that_absorbed_them) {
  Miner miner;
  std::vector<ClusterId> ids;
  for (size_t i = 0; i < 50; ++i) ids.push_back(miner.add("session opened for user " + name_of(i), i + 1));
  for (const ClusterId id : ids) BOOST_CHECK_EQUAL(miner.resolve(id), id);
  miner.settle();
  BOOST_REQUIRE_EQUAL(miner.clusters().size(), 1u);
  for (const ClusterId id : ids) {
    BOOST_CHECK_EQUAL(miner.resolve(id), miner.clusters()[0]);
    BOOST_CHECK_EQUAL(miner.text(id), "session opened for user <*>");
  }
  BOOST_CHECK_EQUAL(miner.count(ids[7]), 50u * 51 / 2);
}

BOOST_AUTO_TEST_CASE(a_settled_template_takes_further_forms_at_once) {
  Miner miner;
  for (size_t i = 0; i < 20; ++i) miner.add("session opened for user " + name_of(i), 1);
  miner.settle();
  const size_t ids = miner.size();
  const ClusterId id = miner.add("session opened for user " + name_of(777), 1);
  BOOST_CHECK_EQUAL(miner.size(), ids);
  BOOST_CHECK_EQUAL(miner.text(id), "session opened for user <*>");
  const ClusterId trouble = miner.add("session opened for user error", 1);
  BOOST_CHECK_EQUAL(miner.text(trouble), "session opened for user error");
}

BOOST_AUTO_TEST_CASE(settling_again_changes_nothing) {
  Miner miner;
  for (size_t i = 0; i < 200; ++i) {
    miner.add("session opened for user " + name_of(i % 40) + " on host " + name_of(i), 1);
    miner.add("link " + name_of(i % 3) + " is up", 1);
  }
  miner.settle();
  std::vector<std::string> before;
  for (const ClusterId id : miner.clusters()) before.push_back(miner.text(id));
  miner.settle();
  std::vector<std::string> after;
  for (const ClusterId id : miner.clusters()) after.push_back(miner.text(id));
  BOOST_CHECK(before == after);
}

BOOST_AUTO_TEST_CASE(clusters_come_in_order_of_their_first_message_and_counts_add_up) {
  Miner miner;
  uint64_t total = 0;
  for (size_t i = 0; i < 500; ++i) {
    miner.add(i % 2 ? "session opened for user " + name_of(i) : "note " + std::to_string(i % 10), i);
    total += i;
  }
  miner.settle();
  const std::vector<ClusterId> ids = miner.clusters();
  BOOST_CHECK(std::is_sorted(ids.begin(), ids.end()));
  uint64_t sum = 0;
  for (const ClusterId id : ids) sum += miner.count(id);
  BOOST_CHECK_EQUAL(sum, total);
}

BOOST_AUTO_TEST_CASE(beyond_the_limit_forms_fold_into_one_template_per_length_and_are_counted) {
  Miner miner;
  const size_t more = 5000;
  for (size_t i = 0; i < limits::kTemplates + more; ++i) miner.add(name_of(i), 2);
  BOOST_CHECK_EQUAL(miner.folded(), 2 * more);
  BOOST_CHECK_LE(miner.clusters().size(), limits::kTemplates + 1);
  const ClusterId known = miner.add(name_of(5), 1);
  BOOST_CHECK_EQUAL(miner.text(known), name_of(5));
  const ClusterId two = miner.add("two words", 1), three = miner.add("three more words", 1);
  BOOST_CHECK_NE(miner.resolve(two), miner.resolve(three));
  miner.settle();
  BOOST_CHECK_NE(miner.resolve(two), miner.resolve(three));
  uint64_t sum = 0;
  for (const ClusterId id : miner.clusters()) sum += miner.count(id);
  BOOST_CHECK_EQUAL(sum, 2 * (limits::kTemplates + more) + 3);
}

BOOST_AUTO_TEST_CASE(long_forms_are_bounded_by_their_bytes) {
  Miner miner;
  const std::string body(limits::kMessageBytes - 10, 'x');
  for (size_t i = 0; i < 20'000; ++i) miner.add(body + name_of(i), 1);
  BOOST_CHECK_GT(miner.folded(), 0u);
  BOOST_CHECK_LT(miner.size(), 20'000u);
}

BOOST_AUTO_TEST_CASE(forms_made_to_look_alike_do_not_cost_quadratic_time) {
  // CPU time is compared with that of a quarter: linear gives 4, quadratic 16.
  const auto cpu_seconds = [] { return static_cast<double>(std::clock()) / CLOCKS_PER_SEC; };
  const auto seconds = [&](size_t forms) {
    std::mt19937 random(5);
    const double start = cpu_seconds();
    Miner miner;
    for (size_t i = 0; i < forms; ++i) {
      std::string form;
      for (int word = 0; word < 8; ++word) form += name_of(random() % (word < 4 ? forms / 2 : 40)) + ' ';
      miner.add(form, 1);
    }
    miner.settle();
    return cpu_seconds() - start;
  };
  seconds(1000);
  const double quarter = seconds(12'000), whole = seconds(48'000);
  BOOST_TEST_MESSAGE("12,000 forms: " << quarter << " s, 48,000: " << whole << " s");
  BOOST_CHECK_LT(whole, 12 * quarter + 0.5);
}

BOOST_AUTO_TEST_SUITE_END()
