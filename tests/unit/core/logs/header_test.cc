#include "core/logs/header.h"

#include <boost/test/unit_test.hpp>
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <string>
#include <vector>

namespace culprit::logs {
namespace {

constexpr TimeNs kModified = 1'763'700'000 * kNsPerSecond;  // 2025-11-21 04:40

// "2026-11-21 02:12:09.123|level|host|rank|local|message"; a task is "3t", kernel time "+12.345", unknown
// "-".
std::string reported(std::string_view line, const HeaderOptions& options = {0, kModified}) {
  HeaderParser parser(options);
  const Header h = parser.parse(line);
  constexpr std::string_view kLevels[] = {"-", "debug", "info", "warning", "error", "fatal"};
  std::string out = h.kernel_time ? "+" + std::to_string(h.time_ns / kNsPerMs) : format_time(h.time_ns);
  out += "|" + std::string(kLevels[static_cast<size_t>(h.level)]);
  out += "|" + (h.host.empty() ? "-" : std::string(h.host));
  out += "|" + (h.rank == kNoRank ? "-" : std::to_string(h.rank) + (h.task ? "t" : ""));
  out += "|" + (h.local == kNoRank ? "-" : std::to_string(h.local));
  return out + "|" + std::string(line.substr(h.message));
}

struct Case {
  std::string_view line, expected;
};

template <size_t N>
void check(const Case (&cases)[N]) {
  for (const Case& c : cases)
    BOOST_TEST(reported(c.line) == c.expected, c.line << "\n  gave " << reported(c.line));
}

BOOST_AUTO_TEST_CASE(prefixes_of_launchers_tell_the_place) {
  check({{"[rank131]: msg", "-|-|-|131|-|msg"},
         {"[Rank 131] (after 20 iterations) memory", "-|-|-|131|-|(after 20 iterations) memory"},
         {"[RANK 3] Epoch 49", "-|-|-|3|-|Epoch 49"},
         {"rank131: msg", "-|-|-|131|-|msg"},
         {"Rank 3: msg", "-|-|-|3|-|msg"},
         {"131: msg", "-|-|-|131t|-|msg"},
         {" 31: msg", "-|-|-|31t|-|msg"},
         {"131:", "-|-|-|131t|-|"},
         {"node-17: msg", "-|-|node-17|-|-|msg"},
         {"ip-10-0-3-7: msg", "-|-|ip-10-0-3-7|-|-|msg"},
         {"r7i4n4: msg", "-|-|r7i4n4|-|-|msg"},
         {"10.0.3.7: msg", "-|-|10.0.3.7|-|-|msg"},
         {"n17.hpc.example.org: msg", "-|-|n17.hpc.example.org|-|-|msg"},
         {"[node-17:0] msg", "-|-|node-17|-|0|msg"},
         {"[nid006549:31808] *** Process received signal", "-|-|nid006549|-|-|*** Process received signal"},
         {"[1,131]<stdout>:msg", "-|-|-|131|-|msg"},
         {"[1,131]<stderr>: msg", "-|-|-|131|-|msg"},
         {"[default7]: msg", "-|-|-|-|7|msg"},
         {"[default7]:msg", "-|-|-|-|7|msg"},
         {"worker-3 | msg", "-|-|worker-3|-|-|msg"},
         {"worker-3  | msg", "-|-|worker-3|-|-|msg"},
         {"[pod/train-0] msg", "-|-|train-0|-|-|msg"},
         {"[pod/train-0/pytorch] msg", "-|-|train-0|-|-|msg"},
         {"(WorkerDict pid=7435, ip=172.16.22.183) msg", "-|-|172.16.22.183|-|-|msg"},
         {"\x1b[36m(Worker pid=7435, ip=10.0.0.2)\x1b[0m msg", "-|-|10.0.0.2|-|-|msg"},
         {"r7i4n4:1767:1936 [1] NCCL INFO Channel 01", "-|info|r7i4n4|-|1|NCCL INFO Channel 01"},
         {"nid6:180142:180163 [0] net.cc:626 NCCL WARN Error", "-|warning|nid6|-|0|NCCL WARN Error"}});
}

BOOST_AUTO_TEST_CASE(stacked_prefixes_are_all_read) {
  check({{"node-17: [rank3]: [2025-10-21 02:12:09,123] [INFO] [engine.py:33:f] msg",
          "2025-10-21 02:12:09.123|info|node-17|3|-|msg"},
         {"3: [NeMo W 2024-05-10 11:16:14 megatron_base_model:1147] msg",
          "2024-05-10 11:16:14.000|warning|-|3t|-|msg"},
         {"3: [rank27]: msg", "-|-|-|27|-|msg"},
         {"3: node-17: msg", "-|-|node-17|3t|-|msg"},
         {"worker-3 | [2025-10-21 02:12:09] [ERROR] msg", "2025-10-21 02:12:09.000|error|worker-3|-|-|msg"},
         {"[rank3]:[E415 12:34:56.789012 ProcessGroupNCCL.cpp:563] [Rank 3] Watchdog",
          "2025-04-15 12:34:56.789|error|-|3|-|Watchdog"},
         {"[2025-10-21 02:12:09,123] [INFO] [logging.py:60:log_dist] [Rank 0] step=10",
          "2025-10-21 02:12:09.123|info|-|0|-|step=10"},
         {"2024-05-10T11:16:14.123456789Z stderr F [rank3]: [2026-11-21 02:12:09,123] [ERROR] msg",
          "2024-05-10 11:16:14.123|error|-|3|-|msg"},
         {"[2025-10-21 02:12:09,123] [node-17:0] msg", "2025-10-21 02:12:09.123|-|node-17|-|0|msg"}});
}

BOOST_AUTO_TEST_CASE(frameworks_headers_end_where_the_text_begins) {
  check(
      {{"2015-07-29 17:41:44,747 - INFO - msg", "2015-07-29 17:41:44.747|info|-|-|-|msg"},
       {"INFO:name:msg", "-|info|-|-|-|msg"},
       {"WARNING:torch.distributed.run:msg", "-|warning|-|-|-|msg"},
       {"WARNING: No training data", "-|warning|-|-|-|No training data"},
       {"[INFO|configuration_utils.py:469] 2021-05-25 06:29:51,523 >> msg",
        "2021-05-25 06:29:51.523|info|-|-|-|msg"},
       {"[2021-05-25 06:29:49,288] [INFO] [distributed.py:46:init] msg",
        "2021-05-25 06:29:49.288|info|-|-|-|msg"},
       {"I0415 12:34:56.789012 12345 file.cc:12] msg", "2025-04-15 12:34:56.789|info|-|-|-|msg"},
       {"W20240415 12:34:56.789012 12345 file.cc:12] msg", "2024-04-15 12:34:56.789|warning|-|-|-|msg"},
       {"[W socket.cpp:436] [c10d] The server", "-|warning|-|-|-|[c10d] The server"},
       {"2024-07-15 17:58:14.108666: E tensorflow/core/x.cc:954] msg",
        "2024-07-15 17:58:14.108|error|-|-|-|msg"},
       {"2024-05-10 11:16:14.123 | INFO     | pkg.mod:func:12 - msg",
        "2024-05-10 11:16:14.123|info|-|-|-|msg"},
       {"[2024-03-12 08:22:45,549] torch.distributed.run: [WARNING] msg",
        "2024-03-12 08:22:45.549|warning|-|-|-|msg"},
       {"[2024-05-10 11:16:14,123][torch.distributed][INFO] - msg", "2024-05-10 11:16:14.123|info|-|-|-|msg"},
       {"2024-05-10 11:16:14,123 - torch.distributed - INFO - msg", "2024-05-10 11:16:14.123|info|-|-|-|msg"},
       {"05/25/2021 06:29:49 - INFO - __main__ - msg", "2021-05-25 06:29:49.000|info|-|-|-|msg"},
       {"INFO 05-10 11:16:14 [core.py:123] msg", "2025-05-10 11:16:14.000|info|-|-|-|msg"},
       {"[ERROR] HCCL(903,python3.8):2025-07-30-19:36:56.166.988 [adapter_hccp.cc:1357] [16542]msg",
        "2025-07-30 19:36:56.166|error|-|-|-|msg"},
       {"[WARNING] CORE(51545,ffff8ba,python):2019-07-25-19:17:35.411.770 [a/b.cc:66] fullname] Input 0",
        "2019-07-25 19:17:35.411|warning|-|-|-|Input 0"},
       {"[ERROR] 2024-08-18-22:37:51 (PID:53741, Device:0, RankID:5) ERR01002 OPS",
        "2024-08-18 22:37:51.000|error|-|5|0|ERR01002 OPS"},
       {"2023-09-05 11:47:44,649 INFO parallel_context.py:508 in set_device -- msg",
        "2023-09-05 11:47:44.649|info|-|-|-|msg"},
       {"time=\"2024-07-19T10:27:55+08:00\" level=info msg=\"text\"",
        "2024-07-19 02:27:55.000|info|-|-|-|text\""}});
}

BOOST_AUTO_TEST_CASE(threads_loggers_and_requests_belong_to_the_header) {
  const std::string_view headers[] = {
      "2015-10-18 18:06:18,045 INFO [main] org.example.ipc.Client: msg",
      "2015-10-18 18:06:18,045 INFO [IPC Server handler 19 on 62270] org.example.Listener: msg",
      "2015-10-18 18:06:18,045 [worker pool 3] INFO  c.e.Engine - msg",
      "2015-10-18 18:06:18.045  INFO 12345 --- [main] o.e.Application  : msg",
      "[2015-10-18 18:06:18,045] {taskinstance.py:123} INFO - msg",
      "2015-10-18 18:06:18.045 25746 INFO nova.compute.manager [-] msg",
      "2015-10-18 18:06:18.045 25746 INFO nova.compute.manager [req-addc1839-2ed5 - - -] msg",
      "api.log.1.2015-10-18_13:53:08 2015-10-18 18:06:18.045 25746 INFO nova.compute.manager [-] msg",
      "container 2015-10-18 18:06:18.045 INFO msg"};
  for (const std::string_view line : headers)
    BOOST_TEST(reported(line) == "2015-10-18 18:06:18.045|info|-|-|-|msg",
               line << " gave " << reported(line));
  check({{"10-18 18:06:18.045  1702  2395 E chatty  : msg", "2025-10-18 18:06:18.045|error|-|-|-|msg"},
         {"node-17 2015-10-18 18:06:18.045 INFO msg", "2015-10-18 18:06:18.045|info|node-17|-|-|msg"},
         {"Resumed 2015-10-18 18:06:18.045 from a.pt",
          "2015-10-18 18:06:18.045|-|-|-|-|Resumed 2015-10-18 18:06:18.045 from a.pt"},
         {"2015-10-18 18:06:18,045 INFO [step 3 of 4] loss: 3",
          "2015-10-18 18:06:18.045|info|-|-|-|[step 3 of 4] loss: 3"}});
}

BOOST_AUTO_TEST_CASE(system_logs_tell_host_and_time) {
  check({{"Jul  1 09:00:55 host-1 launchd[1] (com.example.agent[36]): msg",
          "2025-07-01 09:00:55.000|-|host-1|-|-|msg"},
         {"Nov 10 00:01:01 local@host-1 /opt/sbin/gmetad[1682]: msg",
          "2025-11-10 00:01:01.000|-|host-1|-|-|msg"},
         {"Nov 10 00:01:01 src@host-1 dhcpd: msg", "2025-11-10 00:01:01.000|-|host-1|-|-|msg"},
         {"Jun 14 15:16:01 combo sshd(pam_unix)[19939]: msg", "2025-06-14 15:16:01.000|-|combo|-|-|msg"},
         {"Jul  1 09:00:55 calvisitor-10-105-160-95 kernel[0]: msg",
          "2025-07-01 09:00:55.000|-|calvisitor-10-105-160-95|-|-|msg"},
         {"Nov 21 02:12:09 node-17 kernel: [ 1197.584409] NVRM: Xid",
          "2025-11-21 02:12:09.000|-|node-17|-|-|NVRM: Xid"},
         {"2024-05-10T11:16:14.123456+02:00 node-17 kernel: NVRM: Xid",
          "2024-05-10 09:16:14.123|-|node-17|-|-|NVRM: Xid"},
         {"[12345.678901] NVRM: Xid", "+12345678|-|-|-|-|NVRM: Xid"},
         {"[    0.000001] Linux version", "+0|-|-|-|-|Linux version"},
         {"<3>[12345.678901] NVRM: Xid", "+12345678|error|-|-|-|NVRM: Xid"},
         {"kern  :err   : [12345.678901] NVRM: Xid", "+12345678|error|-|-|-|NVRM: Xid"},
         {"6,3973,227986636,-;IPv6: x", "+227986|info|-|-|-|IPv6: x"},
         {"[Fri Aug 30 11:11:22 2024] NVRM: Xid", "2024-08-30 11:11:22.000|-|-|-|-|NVRM: Xid"},
         {"[Sun Dec 04 04:47:44 2005] [notice] msg", "2005-12-04 04:47:44.000|info|-|-|-|msg"},
         {"17/06/09 20:10:40 INFO executor.X: msg", "2017-06-09 20:10:40.000|info|-|-|-|msg"},
         {"081109 203615 148 INFO dfs.DataNode$X: msg", "2008-11-09 20:36:15.000|info|-|-|-|msg"},
         {"- 1117838570 2005.06.03 R02-M1 2005-06-03-15.42.50.675872 R02-M1 RAS KERNEL FATAL msg",
          "2005-06-03 22:42:50.000|fatal|R02-M1|-|-|msg"},
         {"- 1131566461 2005.11.09 dn228 Nov 9 12:01:01 dn228/dn228 crond(pam_unix)[2915]: msg",
          "2005-11-09 20:01:01.000|-|dn228|-|-|msg"},
         {"2015-10-18 18:01:47,978 INFO [main] org.apache.hadoop.App: msg",
          "2015-10-18 18:01:47.978|info|-|-|-|msg"},
         {"2015-07-29 17:41:44,747 - WARN  [QuorumPeer[myid=1]/0:0:2181:Election@774] - msg",
          "2015-07-29 17:41:44.747|warning|-|-|-|msg"},
         {"2017-05-16 00:00:00.008 25746 INFO nova.compute.manager [req-38 - -] msg",
          "2017-05-16 00:00:00.008|info|-|-|-|msg"},
         {"03-17 16:13:38.811  1702  2395 D WindowManager: msg", "2025-03-17 16:13:38.811|debug|-|-|-|msg"},
         {"2016-09-28 04:30:30, Info                  CBS    msg", "2016-09-28 04:30:30.000|info|-|-|-|msg"},
         {"20171223-22:15:29:606|Step_LSC|30002312|msg", "2017-12-23 22:15:29.606|-|-|-|-|msg"},
         {"[10.30 16:49:06] msg", "2025-10-30 16:49:06.000|-|-|-|-|msg"},
         {"E0111 03:29:15.700191       1 queue_controller.go:258]    msg",
          "2025-01-11 03:29:15.700|error|-|-|-|msg"},
         {"[INFO]     2024/01/10 03:29:09.354927 1       hwlog/api.go:108    msg",
          "2024-01-10 03:29:09.354|info|-|-|-|msg"},
         {"2024-05-10T11:16:14.123456789Z stderr F msg", "2024-05-10 11:16:14.123|-|-|-|-|msg"},
         {"1683900000.123 msg", "2023-05-12 14:00:00.123|-|-|-|-|msg"},
         {"1683900000123 msg", "2023-05-12 14:00:00.123|-|-|-|-|msg"}});
}

BOOST_AUTO_TEST_CASE(a_time_in_the_message_is_reported_and_stays_there) {
  constexpr std::string_view kLines[] = {
      "slurmstepd: error: *** STEP 1.0 ON r6 CANCELLED AT 2021-05-27T21:42:11 DUE TO TIME LIMIT ***",
      "100%|##| 4/4 [14:31<00:00, 219.64s/it][INFO|trainer.py:1339] 2021-05-27 21:42:11,000 >> x",
      "{\"time\": \"2021-05-27T21:42:11Z\", \"level\": \"info\"}",
      "{\"kind\": 1, \"ts\": 1622151731.0}",
      ":::MLLOG {\"namespace\": \"\", \"time_ms\": 1622151731000, \"event_type\": 1}",
      "Datetime: 2021-05-27 21:42:11",
      "10.0.0.1 - - [27/May/2021:23:42:11 +0200] \"GET / HTTP/1.1\" 200"};
  for (std::string_view line : kLines)
    BOOST_TEST(reported(line) == "2021-05-27 21:42:11.000|-|-|-|-|" + std::string(line));
}

BOOST_AUTO_TEST_CASE(what_only_looks_like_a_header_is_message) {
  constexpr std::string_view kLines[] = {"Rank 3 has context",
                                         "version 1.2.3 at 10.0.3.7:29500",
                                         "elapsed 00:12:09 left",
                                         "0:14:31.66",
                                         " 25%|##| 1/4 [01:53<13:12, 113.21s/it]",
                                         "     0: EmbeddingPipe",
                                         "12345",
                                         "1683900000 bytes",
                                         "1234567890",
                                         "adam_beta1: 0.9",
                                         "beta1: 0.9",
                                         "layer3: True",
                                         "E30008: AI CPU operator execution time out.",
                                         "eth0: link up",
                                         "torch.distributed.DistBackendError: NCCL error",
                                         "ERROR while loading",
                                         "step3: done",
                                         "[0]: msg",
                                         "[1/4] building",
                                         "['a', 'b']",
                                         "[]",
                                         "[",
                                         "",
                                         " ",
                                         ":",
                                         "(",
                                         "(a b)",
                                         "Error: no such file",
                                         "Info about it",
                                         "  File \"x.py\", line 3",
                                         "[0.123456, 2]",
                                         "msg [INFO] later",
                                         "info: x",
                                         "<6",
                                         "{\"time\": 5}",
                                         "iteration 120/ 5000 | loss: 2.31",
                                         "12:30: lunch",
                                         "2026-13-45 99:00:00 msg",
                                         "2026-02-30 10:00:00 msg"};
  for (std::string_view line : kLines) BOOST_TEST(reported(line) == "-|-|-|-|-|" + std::string(line));
}

BOOST_AUTO_TEST_CASE(words_of_the_message_are_kept) {
  check({{"2024-05-10 11:16:14 ERROR torch.cuda.OutOfMemoryError: CUDA out of memory",
          "2024-05-10 11:16:14.000|error|-|-|-|torch.cuda.OutOfMemoryError: CUDA out of memory"},
         {"[rank3]:   File \"x.py\", line 3", "-|-|-|3|-|  File \"x.py\", line 3"},
         {"[rank3]: Traceback (most recent call last):", "-|-|-|3|-|Traceback (most recent call last):"},
         {"2024-05-10 11:16:14 Loading model: x", "2024-05-10 11:16:14.000|-|-|-|-|Loading model: x"},
         {"[2024-05-10 11:16:14] eth0: link", "2024-05-10 11:16:14.000|-|-|-|-|eth0: link"},
         {"[ERROR] [2024-05-10 11:16:14] Error in step 3",
          "2024-05-10 11:16:14.000|error|-|-|-|Error in step 3"},
         {"node-17: rank 2355 exited with code 134", "-|-|node-17|-|-|rank 2355 exited with code 134"},
         {"[INFO] 2024-05-10 11:16:14 12 samples", "2024-05-10 11:16:14.000|info|-|-|-|12 samples"}});
}

BOOST_AUTO_TEST_CASE(a_level_comes_from_its_field_alone) {
  check(
      {{"2024-05-10 11:16:14 [CRITICAL] x", "2024-05-10 11:16:14.000|fatal|-|-|-|x"},
       {"2024-05-10 11:16:14 [warn] error x", "2024-05-10 11:16:14.000|warning|-|-|-|error x"},
       {"2024-05-10 11:16:14 an ERROR came", "2024-05-10 11:16:14.000|-|-|-|-|an ERROR came"},
       {"Jun 15 04:06:20 combo logrotate: ALERT exited", "2025-06-15 04:06:20.000|-|combo|-|-|ALERT exited"},
       {"Jun 15 04:06:20 combo sshd[1]: error: x", "2025-06-15 04:06:20.000|-|combo|-|-|error: x"},
       {"[DEBUG] FATAL x", "-|debug|-|-|-|FATAL x"}});
}

BOOST_AUTO_TEST_CASE(what_came_before_changes_no_answer) {
  constexpr std::string_view kLines[] = {
      "node-17: [rank3]: [2025-10-21 02:12:09,123] [INFO] [engine.py:33:f] msg",
      "Feb 29 10:00:00 n1 kernel: x",
      "2025-10-22 02:12:09,123 INFO x",
      "plain text",
      "[2025-10-21 03:12:09,123] y",
      "2025-10-2",
      "2025-10-21",
      "eth0: x",
      "node-17: x"};
  HeaderParser shared({0, kModified});
  for (int round = 0; round < 3; ++round)
    for (std::string_view line : kLines) {
      HeaderParser fresh({0, kModified});
      const Header a = shared.parse(line), b = fresh.parse(line);
      BOOST_TEST((a.time_ns == b.time_ns && a.message == b.message && a.host == b.host && a.rank == b.rank));
    }
}

BOOST_AUTO_TEST_CASE(each_prefix_of_a_line_is_parsed_within_bounds) {
  const std::string line =
      "node-17: [rank3]: [2025-10-21 02:12:09,123] [INFO] [engine.py:33:f] r7:12:13 [1] NCCL I0415 "
      "12:34:56.7 1 a.c:1] x";
  HeaderParser parser({0, kModified});
  for (size_t from = 0; from < line.size(); ++from)
    for (size_t size = 0; from + size <= line.size(); ++size) {
      const std::string copy = line.substr(from, size);  // own memory: a sanitizer detects a read beyond it
      BOOST_REQUIRE(parser.parse(copy).message <= copy.size());
    }
}

// Not a check but a measurement: CULPRIT_BENCH names a file, whose lines are parsed for about a second.
BOOST_AUTO_TEST_CASE(lines_of_a_file_are_timed_on_demand) {
  const char* const path = std::getenv("CULPRIT_BENCH");
  if (!path) {
    BOOST_TEST_MESSAGE("passed over: CULPRIT_BENCH is not set");
    return;
  }
  std::ifstream in(path);
  std::vector<std::string> lines;
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  BOOST_REQUIRE(!lines.empty());
  HeaderParser parser({0, kModified});
  uint64_t parsed = 0, sum = 0;
  const auto begin = std::chrono::steady_clock::now();
  std::chrono::duration<double, std::nano> spent{};
  do {
    for (const std::string& line : lines) sum += parser.parse(line).message;
    parsed += lines.size();
    spent = std::chrono::steady_clock::now() - begin;
  } while (spent.count() < 1e9);
  BOOST_TEST_MESSAGE(path << ": " << spent.count() / static_cast<double>(parsed) << " ns a line (" << sum
                          << ")");
}

}  // namespace
}  // namespace culprit::logs
