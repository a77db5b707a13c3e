#include "ingest/recognise.h"

#include <boost/test/unit_test.hpp>
#include <random>

#include "fixtures.h"
#include "ingest/json_head.h"

using namespace culprit;
using namespace culprit::ingest;
using namespace culprit::ingest::testing;
using namespace std::string_literals;

namespace culprit::ingest {
static std::ostream& operator<<(std::ostream& out, FileKind kind) {
  constexpr const char* kNames[] = {"log", "comm", "metrics", "stacks", "recorder", "job", "empty", "binary"};
  return out << kNames[static_cast<int>(kind)];
}
}  // namespace culprit::ingest

BOOST_AUTO_TEST_SUITE(recognise)

namespace {

FileKind kind(const std::string& below, const std::string& head, bool whole = true) {
  return kind_of({head, whole, below, "runs"});
}

const std::string kMetric = R"({"kind":"metric","job":"j","rank":1,"step":2,"values":{"loss":1}})"
                            "\n";
const std::string kJsonLog = R"({"kind":"log","host":"a","line":"x"})"
                             "\n";
const std::string kText = "2026-11-21 02:12:09 INFO step=1 loss=2.3\nsecond line\n";

std::string utf16(const std::string& text) {
  std::string wide;
  for (char c : text) wide += {c, '\0'};
  return wide;
}

}  // namespace

BOOST_AUTO_TEST_CASE(compression_is_reported_by_magic) {
  for (Compression compression : kAllCompressions)
    BOOST_TEST((compression_of(compress("text", compression)) == compression));
  BOOST_TEST((compression_of("\x5a\x2a\x4d\x18 skippable"s) == Compression::kZstd));
  for (const std::string& head : {""s, "\x1f"s, "\x1f\x8b"s, "\x28\xb5\x2f"s, "(text"s})
    BOOST_TEST((compression_of(head) == Compression::kNone));
}

BOOST_AUTO_TEST_CASE(content_tells_the_kind_whatever_the_name) {
  const std::string py_spy =
      "Process 12: python train.py\nPython v3.10.12 (/usr/bin/python3.10)\n\n"
      "Thread 12 (active): \"MainThread\"\n    forward (model.py:120)\n    main (t.py:3)\n";
  const std::string py_spy_json =
      R"([{"pid":1,"thread_id":2,"thread_name":"MainThread","frames":[{"name":"f"}]}])";
  const std::string faulthandler =
      "Timeout (0:00:10)!\nThread 0x00007f12 (most recent call first):\n"
      "  File \"/a/b.py\", line 3 in wait\n  File \"/a/c.py\", line 9 in main\n";
  const std::string gdb =
      "[New LWP 77]\nThread 2 (Thread 0x7f (LWP 77)):\n#0  0x00007f in read () from /lib/c.so\n"
      "#1  0x1 in main ()\n";
  const std::string eu_stack = "PID 12 - process\nTID 12:\n#0  0x00007f32 poll\n#1  0x00007f33 main\n";
  const std::string recorder = R"({"version":"2.9","pg_config":{},"entries":[{"seq":1}]})";
  const std::string pickled = "\x80\x02}(X\x07\0\0\0versionq\0X\x09\0\0\0pg_config"s;
  const std::vector<std::pair<std::string, FileKind>> cases = {
      {"CULPCOMM\1\0\0\0\x40\0\0\0"s, FileKind::kComm},
      {kMetric, FileKind::kMetrics},
      {"rest of a line that was cut}\n" + kMetric + kMetric, FileKind::kMetrics},
      {"\n" + kJsonLog + kMetric, FileKind::kMetrics},
      {kJsonLog, FileKind::kLog},
      {R"({"kind":"stack","host":"a","threads":[]})", FileKind::kStacksJson},
      {"{\n  \"host\": \"a\",\n  \"kind\": \"stack\"}", FileKind::kStacksJson},
      {py_spy, FileKind::kStacks},
      {py_spy_json, FileKind::kStacksJson},
      {faulthandler, FileKind::kStacks},
      {gdb, FileKind::kStacks},
      {eu_stack, FileKind::kStacks},
      {"=== Rank 0: http://node-0:41235 ===\nError: 503\n" + faulthandler, FileKind::kStacks},
      {"2026-11-26 10:00:00\nFull thread dump OpenJDK 64-Bit Server VM:\n\n\"main\" #1 prio=5 tid=0x00007f "
       "nid=0x1\n",
       FileKind::kUnread},
      {"<!doctype html>\n<html><head><title>Culprit: GPU memory is used up</title>", FileKind::kUnread},
      {R"({"header":{"id":"0x1","rank":0},"metadata":{"pid":1},"coll_perf":{"coll":"AllReduce"}})"
       "\n{\"header\":{\"id\"",
       FileKind::kInspector},
      {R"({"header":{"id":"0x1"},"metadata":{},"p2p_perf":{"p2p":"Send"}})", FileKind::kInspector},
      {"{\n\"schemaVersion\":1,\"deviceProperties\":[\n{\"id\":0", FileKind::kProfiler},
      {R"({"distributedInfo":{"rank":3},"traceEvents":[{"ph":"X")", FileKind::kProfiler},
      {recorder, FileKind::kFlightRecorder},
      {pickled, FileKind::kFlightRecorder},
      {kText, FileKind::kLog},
      {"", FileKind::kEmpty},
  };
  for (const auto& [head, expected] : cases)
    for (const char* name : {"x", "a/b.log", "c.txt", "d.zst"})
      BOOST_TEST(kind(name, head) == expected, head);
}

BOOST_AUTO_TEST_CASE(what_only_resembles_another_kind_is_a_log) {
  const std::string cases[] = {
      "[2026-11-21] {\"kind\": \"stack\"}\n",
      "<!doctype html>\n<html><head><title>Console of job 17</title>",
      "INFO " + kMetric + "INFO\nINFO\nINFO\n" + kMetric,
      "Traceback (most recent call last):\n  File \"a.py\", line 1, in f\nValueError: x\n",
      kText + "Thread 0x00007f12 (most recent call first):\n  File \"/a/b.py\", line 3 in wait\n",
      "Thread 0x00007f12 (most recent call first):\n  File \"/a\", line 3 in w\n" + kText + kText + kText +
          kText,
      "Fatal Python error: Segmentation fault\n\n" + kText + kText,
      R"({"level":"info","entries":3,"msg":"x"})"
      "\n",
      "{'loss': 2.1, 'epoch': 0.1}\n",
      "Process 12: started\n" + kText,
      "{",
      "[",
      "{\"kind",
      "\"",
  };
  for (const std::string& head : cases) BOOST_TEST(kind("x.log", head) == FileKind::kLog, head);
}

BOOST_AUTO_TEST_CASE(names_decide_where_content_does_not) {
  const std::string long_line = R"({"job":"j","values":{"x":)" + std::string(20'000, '1');
  const std::string pickled = "\x80\x02}(X\x07\0\0\0something"s;
  const std::string binary = "\1\2\3\4\5\6\1\2\3\4\5\6\1\2\3\4"s;
  BOOST_TEST(kind("a.ndjson", long_line, false) == FileKind::kMetrics);
  BOOST_TEST(kind("a.ndjson.zst", long_line, false) == FileKind::kMetrics);
  BOOST_TEST(kind("a.log", long_line, false) == FileKind::kLog);
  BOOST_TEST(kind("a.ndjson", kJsonLog) == FileKind::kLog);
  BOOST_TEST(kind("fr/_dump_12", pickled) == FileKind::kFlightRecorder);
  BOOST_TEST(kind("nccl_trace_rank_3", pickled) == FileKind::kFlightRecorder);
  BOOST_TEST(kind("nccl_trace_rank_3", R"({"version":"2.9")") == FileKind::kFlightRecorder);
  BOOST_TEST(kind("nccl_trace_rank_gpu-7_3", pickled) == FileKind::kFlightRecorder);
  BOOST_TEST(kind("comm_lib_trace_rank_3", pickled) == FileKind::kFlightRecorder);
  BOOST_TEST(kind("hccl_trace_rank_3", R"({"version":"2.10")") == FileKind::kFlightRecorder);
  BOOST_TEST(kind("answer_3.json", R"({"version":"2.9")") == FileKind::kLog);
  BOOST_TEST(kind("weights.pkl", pickled) == FileKind::kUnread);
  BOOST_TEST(kind("my_dump_1", kText) == FileKind::kLog);
  BOOST_TEST(kind("h.comm", binary) == FileKind::kComm);
  BOOST_TEST(kind("h.comm", kText) == FileKind::kLog);
  BOOST_TEST(kind("stacks/node-0/rank_1.txt", "forward train.py\n") == FileKind::kStacks);
  BOOST_TEST(kind("run/stacks/node-0/rank_1.json.gz", "{\"frames\":") == FileKind::kStacksJson);
  BOOST_TEST(kind("stacks/node-0/stderr.log", kText) == FileKind::kLog);
  BOOST_TEST(kind_of({"x\n", true, "node-0/rank_1.txt", "run/stacks/"}) == FileKind::kStacks);
}

BOOST_AUTO_TEST_CASE(a_job_file_is_known_by_its_name_in_any_folder) {
  BOOST_TEST(kind("job.toml", "[job]\n") == FileKind::kJob);
  BOOST_TEST(kind("job.toml.gz", "[job]\n") == FileKind::kJob);
  BOOST_TEST(kind("a/job.toml", "[job]\n") == FileKind::kJob);
}

BOOST_AUTO_TEST_CASE(files_that_are_no_text_are_binary) {
  std::mt19937 random(1);
  std::string noise(4096, '\0'), floats, events;
  for (char& c : noise) c = static_cast<char>(random());
  for (int i = 0; i < 500; ++i) {
    const float value = static_cast<float>(random() % 1000) / 7;
    floats.append(reinterpret_cast<const char*>(&value), sizeof value);
    events += "\x18\0\0\0\0\0\0\0\x1a\x2b\x3c\x4d\x12loss/train"s;
  }
  const std::string tar =
      "a.log" + std::string(95, '\0') + "0000644" + std::string(150, '\0') + "ustar" + kText;
  const std::string cases[] = {noise,
                               floats,
                               events,
                               tar,
                               utf16(kText),
                               "\xff\xfe" + utf16("x"),
                               "PK\3\4abc"s,
                               "\x89PNG\r\n\x1a\n"s,
                               "\x7f"
                               "ELF\2\1\1"s,
                               "\x93NUMPY\1\0v\0{'descr'"s,
                               "\x40\1\0\0\0\0\0\0{\"__metadata__\":{}}"s,
                               std::string(5000, '\0')};
  for (const std::string& head : cases) BOOST_TEST(kind("x", head) == FileKind::kUnread, head);
}

BOOST_AUTO_TEST_CASE(json_that_no_person_reads_is_no_log) {
  const std::string event = R"({"ph":"X","cat":"kernel","name":"gemm","pid":0,"tid":7,"ts":1,"dur":3})";
  const std::string sample = R"({"device":0,"power":311.5,"ts":"2026-11-21T02:00:00Z"})";
  for (const std::string& text :
       {event + "\n" + event + "\n", "[" + event + ",\n" + event,
        "{\"schemaVersion\": 1, \"traceEvents\": [\n" + event, sample + "\n" + sample + "\n"})
    BOOST_TEST(kind("x.json", text) == FileKind::kUnread, text);
  for (const std::string& text :
       {R"({"time":"2026-11-21T02:00:00Z","level":"INFO","msg":"up"})"s, R"({"step":3,"loss":2.5})"s,
        R"({"t":1,"said":"loaded shard 3 of 8"})"s, R"({"epoch": 1, "train": 0.5})"s})
    BOOST_TEST(kind("x.json", text + "\n" + text + "\n") == FileKind::kLog, text);
  BOOST_TEST(kind("x.log", "[2026-11-21 02:00:00] {\"ph\":1,\"ts\":2,\"pid\":3}\n") == FileKind::kLog);
}

BOOST_AUTO_TEST_CASE(what_is_not_read_is_named) {
  const std::string core =
      "\x7f"s
      "ELF\2\1\1" +
      std::string(9, '\0') + "\4\0"s;
  const std::pair<std::string, std::string_view> cases[] = {
      {core, "a core dump"},
      {"SQLite format 3\0"s, "an SQLite database"},
      {"PAR1\x15\4"s, "a Parquet file"},
      {"PK\3\4abc"s, "an archive"},
      {"\xff\xfex\0"s, "text in UTF-32, or damaged UTF-16"},
      {R"({"traceEvents":[]})"s, "a profiler's trace"},
      {"\1\2\3"s, "no text"},
      {std::string(64, '\0'), "zero bytes alone, as a file system leaves after a crash"}};
  for (const auto& [head, what] : cases) BOOST_TEST(unread_kind(head).what == what);
}

BOOST_AUTO_TEST_CASE(text_with_strange_bytes_is_a_log) {
  std::string latin1, gbk, coloured, terminated;
  for (int i = 0; i < 100; ++i) {
    latin1 +=
        "Stra\xdf"
        "e \xfc"
        "ber " +
        std::to_string(i) + "\n";
    gbk += "\xb4\xed\xce\xf3\xd0\xc5\xcf\xa2\n";
    coloured += "\x1b[31merror\x1b[0m\r 50%|\xe2\x96\x88|\a\b\n";
    terminated += "a line of a program written in C, with its end\0\n"s;
  }
  const std::string cases[] = {latin1,
                               gbk,
                               coloured,
                               terminated,
                               std::string(4096, '\0') + kText,
                               kText + std::string(900, '\0') + kText,
                               "\xef\xbb\xbf" + kText,
                               "a\0b\0"s,
                               "\1\n"s};
  for (const std::string& head : cases) BOOST_TEST(kind("x", head) == FileKind::kLog, head);
}

BOOST_AUTO_TEST_CASE(any_beginning_of_json_is_read_without_harm) {
  const std::string json =
      R"( [{"a\"}":{"kind":"no"},"kind":"metric","b":[1,{"entries":2}],"frames":null}] tail)";
  for (size_t n = 0; n <= json.size(); ++n) (void)read_json_head(std::string_view(json).substr(0, n));
  const JsonHead head = read_json_head(json);
  BOOST_TEST(head.kind == "metric");
  BOOST_TEST(head.has_frames);
  BOOST_TEST(!head.has_entries);
  BOOST_TEST(head.complete);
  BOOST_TEST(!read_json_head(json.substr(0, 40)).complete);
  for (const char* broken : {"{]", "{\"", "{\"kind\":", "{\"kind\":\"x", "}}}}{", "{\"\\"})
    (void)read_json_head(broken);
}

BOOST_AUTO_TEST_SUITE_END()
