#include "ingest/source_list.h"

#include "base/text.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <atomic>
#include <boost/test/unit_test.hpp>
#include <fstream>
#include <random>
#include <thread>

#include "fixtures.h"
#include "ingest/decompress.h"

using namespace culprit;
using namespace culprit::ingest;
using namespace culprit::ingest::testing;
using namespace std::string_literals;

BOOST_AUTO_TEST_SUITE(source_list)

namespace {

std::vector<std::string> below_of(const SourceList& list) {
  std::vector<std::string> names;
  for (const SourceFile& file : list.files) names.push_back(file.below);
  return names;
}

void check_names(const SourceList& list, const std::vector<std::string>& expected) {
  const auto names = below_of(list);
  BOOST_CHECK_EQUAL_COLLECTIONS(names.begin(), names.end(), expected.begin(), expected.end());
}

// Replaces standard input by a file.
class StandardInput {
 public:
  explicit StandardInput(const std::string& path) : saved_(::dup(0)) {
    const int file = ::open(path.c_str(), O_RDONLY);
    ::dup2(file, 0);
    ::close(file);
  }
  StandardInput(const StandardInput&) = delete;
  StandardInput& operator=(const StandardInput&) = delete;
  ~StandardInput() {
    ::dup2(saved_, 0);
    ::close(saved_);
  }

 private:
  int saved_;
};

}  // namespace

BOOST_AUTO_TEST_CASE(natural_order_is_a_strict_total_order) {
  const std::vector<std::string> ordered = {"",
                                            "01",
                                            "1",
                                            "2",
                                            "10",
                                            "99999999999999999999",
                                            "a",
                                            "a01",
                                            "a1",
                                            "a1b",
                                            "a2",
                                            "a2x1",
                                            "a2x10",
                                            "a10",
                                            "a10b9",
                                            "ab",
                                            "node-2",
                                            "node-10",
                                            "node-10.log",
                                            "rank_9",
                                            "rank_10",
                                            "\xc3\xa4"};
  for (size_t i = 0; i < ordered.size(); ++i)
    for (size_t j = 0; j < ordered.size(); ++j)
      BOOST_TEST(natural_less(ordered[i], ordered[j]) == (i < j), ordered[i] << " < " << ordered[j]);
}

BOOST_AUTO_TEST_CASE(files_come_in_the_order_of_the_arguments_then_of_the_names) {
  TempFolder folder;
  for (const char* name : {"z/10.log", "z/2.log", "z/2/x.log", "z/.hidden", "z/a~", "a.log"})
    folder.write(name, "x\n");
  const SourceList list = list_sources({folder.path("z"), folder.path("a.log")});
  check_names(list, {".hidden", "2/x.log", "2.log", "10.log", "a~", "a.log"});
  BOOST_TEST(list.files[1].path == folder.path("z") + "/2/x.log");
  BOOST_TEST(list.files[1].argument == folder.path("z"));
  BOOST_TEST(list.files[1].size == 2u);
  BOOST_TEST(list.files[1].modified_ns > 1'600'000'000 * kNsPerSecond);
  BOOST_TEST(list_sources({folder.path("z/")}).files[0].path == folder.path("z") + "/.hidden");
}

BOOST_AUTO_TEST_CASE(zero_bytes_before_the_text_hide_no_log) {
  const std::string text = "2026-11-28 02:00:00,000 INFO t: step 1 loss 2\n";
  TempFolder folder;
  for (const size_t zeros : {100u, 4096u, 65'536u, 3'000'000u}) {
    const std::string bytes = std::string(zeros, '\0') + text;
    folder.write("a.log", bytes);
    folder.write("b.log.gz", gzip(bytes));
    for (const SourceFile& file : list_sources({folder.path()}).files)
      BOOST_TEST((file.kind == FileKind::kLog), file.below << " after " << zeros);
  }
  folder.write("a.log", std::string(100'000, '\0'));
  BOOST_TEST((list_sources({folder.path("a.log")}).files[0].kind == FileKind::kUnread));
}

BOOST_AUTO_TEST_CASE(utf16_behind_other_text_is_read_as_text) {
  const std::string first = "2026-11-28 02:00:00,000 INFO t: step 1 loss 2\n",
                    second = "ERROR: out of memory\n";
  std::string wide;
  for (const char c : second) wide += {c, '\0'};
  TempFolder folder;
  for (const std::string mark : {"", "\xff\xfe"}) {
    folder.write("a.log", first + mark + wide);
    const SourceFile file = list_sources({folder.path("a.log")}).files[0];
    BOOST_TEST((file.kind == FileKind::kLog));
    auto opened = Decompressor::open(file);
    BOOST_REQUIRE(opened.has_value());
    std::string text(1000, '\0');
    text.resize(opened->read(text.data(), text.size()));
    BOOST_TEST(text == first + second);
  }
}

BOOST_AUTO_TEST_CASE(a_missing_argument_is_named_and_the_others_are_listed) {
  TempFolder folder;
  folder.write("a.log", "x\n");
  const SourceList list = list_sources({folder.path("missing"), folder.path("a.log"), ""});
  check_names(list, {"a.log"});
  BOOST_REQUIRE_EQUAL(list.failed_arguments.size(), 2u);
  BOOST_TEST(list.failed_arguments[0].text == folder.path("missing") + ": no such file or directory");
  BOOST_TEST(list.failed_arguments[1].text == "\"\": no such file or directory");
  BOOST_TEST(list.problems.empty());
}

BOOST_AUTO_TEST_CASE(links_out_of_the_folder_are_reported_and_not_followed) {
  TempFolder folder;
  folder.write("out/secret.log", "x\n");
  folder.write("in/a.log", "x\n");
  folder.write("in/conf/job.toml", "[job]\n");
  const auto link = [&](const std::string& to, const std::string& name) {
    std::filesystem::create_symlink(to, folder.path(name));
  };
  link("../out", "in/folder");
  link("../out/secret.log", "in/file");
  link("a.log", "in/latest");  // found under its own name
  link(".", "in/loop");
  link("..", "in/up");
  link("nowhere", "in/dangling");
  link("conf/job.toml", "in/job.toml");
  link("self", "in/self");
  const SourceList list = list_sources({folder.path("in")});
  check_names(list, {"job.toml", "a.log"});  // its target is not read as a log, too
  BOOST_TEST((list.files[0].kind == FileKind::kJob));
  std::vector<std::string> reported;
  for (const Problem& problem : list.problems)
    reported.push_back(problem.file.substr(folder.path("in").size() + 1));
  const std::vector<std::string> expected = {"dangling", "file", "folder", "self", "up"};
  BOOST_CHECK_EQUAL_COLLECTIONS(reported.begin(), reported.end(), expected.begin(), expected.end());
  // A link named as an argument is followed.
  link("in", "in-link");
  BOOST_TEST(list_sources({folder.path("in-link")}).files[1].path == folder.path("in-link") + "/a.log");
}

BOOST_AUTO_TEST_CASE(a_file_that_two_arguments_lead_to_is_listed_once) {
  TempFolder folder;
  folder.write("d/a.log", "x\n");
  const std::string d = folder.path("d");
  check_names(list_sources({d, d + "/a.log", d + "/../d", folder.path()}), {"a.log"});
}

BOOST_AUTO_TEST_CASE(special_files_are_skipped_with_a_problem_and_fail_as_arguments) {
  TempFolder folder;
  folder.write("a.log", "x\n");
  BOOST_REQUIRE(::mkfifo(folder.path("fifo").c_str(), 0600) == 0);
  const int socket = ::socket(AF_UNIX, SOCK_STREAM, 0);
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  folder.path("socket").copy(address.sun_path, sizeof address.sun_path - 1);
  BOOST_REQUIRE(::bind(socket, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0);
  ::close(socket);
  const SourceList list = list_sources({folder.path()});
  check_names(list, {"a.log"});
  BOOST_REQUIRE_EQUAL(list.problems.size(), 2u);
  BOOST_TEST(list.problems[0].file == folder.path("fifo"));
  BOOST_TEST(list.problems[0].what ==
             "passed over: a pipe (FIFO), which is read only where it is named as an argument");
  BOOST_TEST(list.problems[1].what == "passed over: a socket");
  const SourceList named = list_sources({folder.path("socket"), "/dev/null"});
  BOOST_REQUIRE_EQUAL(named.failed_arguments.size(), 2u);
  BOOST_TEST(named.failed_arguments[0].text.starts_with(folder.path("socket") + ": "));
  BOOST_TEST(named.failed_arguments[1].text == "/dev/null: is a device, not a file");
}

BOOST_AUTO_TEST_CASE(a_pipe_named_as_an_argument_is_recognised_and_read_once) {
  TempFolder folder;
  const std::string fifo = folder.path("fifo"), text = "a line\n";
  BOOST_REQUIRE(::mkfifo(fifo.c_str(), 0600) == 0);
  std::thread writer([&] { std::ofstream(fifo, std::ios::binary) << gzip(text); });
  const SourceList list = list_sources({fifo});
  writer.join();
  BOOST_REQUIRE_EQUAL(list.files.size(), 1u);
  BOOST_TEST((list.files[0].kind == FileKind::kLog));
  BOOST_TEST((list.files[0].compression == Compression::kGzip));
  BOOST_TEST(read_small_file(list.files[0], 100).value_or("") == text);
  BOOST_TEST(read_small_file(list.files[0], 100).error().text == fifo + ": can be read only once");
}

BOOST_AUTO_TEST_CASE(a_pipe_that_no_one_writes_to_is_given_up_when_asked_to_stop) {
  TempFolder folder;
  BOOST_REQUIRE(::mkfifo(folder.path("fifo").c_str(), 0600) == 0);
  const std::atomic<bool> stop = true;
  const SourceList list = list_sources({folder.path("fifo")}, &stop);
  BOOST_REQUIRE_EQUAL(list.files.size(), 1u);
  BOOST_TEST((list.files[0].kind == FileKind::kEmpty));
}

BOOST_AUTO_TEST_CASE(compressed_files_are_recognised_by_what_they_hold) {
  TempFolder folder;
  const std::string metric = R"({"kind":"metric","rank":1,"step":2,"values":{}})"
                             "\n";
  std::mt19937 random(1);
  std::string comm = "CULPCOMM";  // its first block does not compress: 128 KiB must be read to see 8 bytes
  while (comm.size() < 300'000) comm += static_cast<char>(random());
  for (Compression compression : kAllCompressions) {
    folder.write("a", compress(metric, compression));
    folder.write("b", compress(comm, compression));
    folder.write("c", compress("", compression));
    folder.write("d.log", compress("text\n", compression));
    const SourceList list = list_sources({folder.path()});
    const FileKind expected[] = {FileKind::kMetrics, FileKind::kComm, FileKind::kEmpty, FileKind::kLog};
    BOOST_REQUIRE_EQUAL(list.files.size(), 4u);
    for (size_t i = 0; i < 4; ++i) {
      BOOST_TEST((list.files[i].kind == expected[i]), list.files[i].path);
      if (list.files[i].size > 0) BOOST_TEST((list.files[i].compression == compression));
    }
    if (compression == Compression::kNone) continue;
    // Damaged from the start: its reader reports it.
    TempFolder damaged;
    const std::string path = damaged.write("x.log", compress("text\n", compression).substr(0, 8));
    BOOST_TEST((list_sources({path}).files[0].kind == FileKind::kLog));
  }
}

BOOST_AUTO_TEST_CASE(a_log_that_was_truncated_under_its_writer_is_a_log) {
  TempFolder folder;
  const std::string path = folder.write("a.log", "");
  std::filesystem::resize_file(path, 1 << 30);
  BOOST_TEST((list_sources({path}).files[0].kind == FileKind::kUnread));
  std::ofstream(path, std::ios::app) << "2026-11-21 INFO written on\n";
  BOOST_TEST((list_sources({path}).files[0].kind == FileKind::kLog));
}

BOOST_AUTO_TEST_CASE(standard_input_is_recognised_and_loses_nothing) {
  TempFolder folder;
  std::string text;
  while (text.size() < 1'000'000)
    text += R"({"kind":"metric","rank":1,"step":)" + std::to_string(text.size()) + "}\n";
  for (Compression compression : kAllCompressions) {
    const StandardInput redirected(folder.write("in", compress(text, compression)));
    const SourceList list = list_sources({"-"});
    BOOST_REQUIRE_EQUAL(list.files.size(), 1u);
    const SourceFile& file = list.files[0];
    BOOST_TEST((file.kind == FileKind::kMetrics));
    BOOST_TEST((file.compression == compression));
    BOOST_TEST(file.below == "-");
    std::string joined;
    for (const Seen& chunk : read_stream(StreamReader::open(file).value())) joined += chunk.bytes;
    BOOST_TEST((joined == text));
  }
}

BOOST_AUTO_TEST_CASE(an_empty_folder_is_an_empty_list) {
  TempFolder folder;
  const SourceList list = list_sources({folder.path()});
  BOOST_TEST(list.files.empty());
  BOOST_TEST(list.problems.empty());
  BOOST_TEST(list.failed_arguments.empty());
}

BOOST_AUTO_TEST_CASE(names_of_any_bytes_and_deep_folders_are_walked) {
  TempFolder folder;
  folder.write("sp ace\n\xff.log", "x\n");
  std::string deep = "d";
  for (int i = 0; i < 300; ++i) deep += "/d";
  folder.write(deep + "/x.log", "x\n");
  const SourceList list = list_sources({folder.path()});
  check_names(list, {deep + "/x.log", "sp ace\n\xff.log"});
}

BOOST_AUTO_TEST_CASE(real_files_are_recognised) {
  const char* data = std::getenv("CULPRIT_DATA");
  if (data == nullptr) {
    BOOST_TEST_MESSAGE("CULPRIT_DATA is not set: passed over");
    return;
  }
  const auto all_are = [data](const std::string& folder, const std::string& part, FileKind kind) {
    size_t count = 0;
    for (const SourceFile& file : list_sources({data + "/"s + folder}).files) {
      if (file.below.find(part) == std::string::npos) continue;
      ++count;
      const bool empty = file.kind == FileKind::kEmpty;  // one of them is empty
      BOOST_TEST((file.kind == kind || empty), file.path << " is " << static_cast<int>(file.kind));
    }
    BOOST_TEST(count > 0, folder);
  };
  all_are("flight-recorder", "_dump_", FileKind::kFlightRecorder);
  all_are("comm", ".comm", FileKind::kComm);
  all_are("sdc/traces", ".ndjson", FileKind::kMetrics);
  all_are("real-logs/bigscience", ".zst", FileKind::kLog);
  all_are("real-logs/glm-130b", ".zst", FileKind::kLog);
  all_are("real-logs/mlperf-v4.0", ".zst", FileKind::kLog);
  all_are("real-logs/ascend", ".log", FileKind::kLog);
  all_are("loghub", ".log", FileKind::kLog);
}

BOOST_AUTO_TEST_SUITE_END()
