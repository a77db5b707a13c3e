#include "ingest/text_reader.h"

#include <boost/test/unit_test.hpp>
#include <fstream>
#include <random>

#include "fixtures.h"

using namespace culprit;
using namespace culprit::ingest;
using namespace culprit::ingest::testing;
using namespace std::string_literals;

BOOST_AUTO_TEST_SUITE(text_reader)

namespace {

SourceFile plain_file(const std::string& path, uint64_t size) {
  SourceFile file;
  file.path = path;
  file.size = size;
  return file;
}

std::vector<Seen> read_plain(const SourceFile& file, const ChunkRule& rule) {
  std::vector<Seen> all;
  // From the last to the first: no chunk may depend on another.
  for (uint64_t i = chunk_count(file.size, rule); i-- > 0;)
    all.insert(all.begin(), seen(read_plain_chunk(file, i, {}, rule).value()));
  return all;
}

// Lines with lengths around the ends of chunks and the limit of a line.
std::string random_text(std::mt19937& random, const ChunkRule& rule) {
  const auto below = [&](size_t n) { return random() % n; };
  std::string text;
  for (size_t lines = below(12); lines-- > 0;) {
    const size_t to_end = rule.chunk_bytes - text.size() % rule.chunk_bytes;
    const size_t lengths[] = {below(4),
                              below(rule.chunk_bytes * 2 + 2),
                              to_end - 1 + below(3),
                              to_end + rule.line_bytes - 1 + below(4),
                              to_end + rule.chunk_bytes - 1 + below(3),
                              below(rule.chunk_bytes * 6)};
    for (size_t n = lengths[below(6)]; n-- > 0;) text += static_cast<char>('a' + text.size() % 26);
    text += '\n';
  }
  if (!text.empty() && below(3) == 0) text.pop_back();
  if (below(8) == 0) text += std::string(below(40), '\n');
  return text;
}

}  // namespace

BOOST_AUTO_TEST_CASE(chunks_follow_the_rule_however_they_are_read) {
  TempFolder folder;
  std::mt19937 random(7);
  for (int round = 0; round < 400; ++round) {
    const ChunkRule rule{1 + random() % 40, random() % 24};
    const std::string text = random_text(random, rule);
    const std::vector<Seen> expected = expected_chunks(text, rule);
    const std::string path = folder.write("a.log", text);
    const auto in_parts = read_plain(plain_file(path, text.size()), rule);
    BOOST_REQUIRE_EQUAL_COLLECTIONS(expected.begin(), expected.end(), in_parts.begin(), in_parts.end());
    for (Compression compression : kAllCompressions) {
      const std::string bytes = compress(text, compression);
      const auto got = read_stream(StreamReader::over(Decompressor::over(bytes, compression, "x"), rule));
      BOOST_REQUIRE_EQUAL_COLLECTIONS(expected.begin(), expected.end(), got.begin(), got.end());
    }
  }
}

BOOST_AUTO_TEST_CASE(chunks_of_the_usual_size_join_to_the_text) {
  TempFolder folder;
  std::mt19937 random(3);
  std::string text;
  while (text.size() < 3 * limits::kChunkBytes + 1000)
    text += "rank " + std::to_string(random()) + std::string(random() % 200, 'x') + "\n";
  for (Compression compression : kAllCompressions) {
    const std::string bytes = compress(text, compression);
    SourceFile file = plain_file(folder.write("big", bytes), bytes.size());
    file.compression = compression;
    std::string joined;
    for (const Seen& chunk : read_stream(StreamReader::open(file).value())) joined += chunk.bytes;
    BOOST_TEST((joined == text));
  }
  const SourceFile file = plain_file(folder.write("big", text), text.size());
  const auto in_parts = read_plain(file, {});
  const auto in_order = read_stream(StreamReader::open(file).value());
  BOOST_TEST((in_parts == in_order));
  BOOST_TEST(in_parts.size() == 4u);
}

BOOST_AUTO_TEST_CASE(a_line_longer_than_a_chunk_is_kept_up_to_the_cap_and_moves_no_offset) {
  TempFolder folder;
  const std::string text = "one\n" + std::string(100, 'x') + "\nthree\nfour\n";
  const ChunkRule rule{16, 8};
  const auto chunks = read_plain(plain_file(folder.write("a", text), text.size()), rule);
  BOOST_TEST(chunks[0].bytes == "one\n" + std::string(16 - 4 + 8, 'x') + "\n");
  BOOST_TEST(chunks[0].cut);
  for (size_t i = 1; i < 6; ++i) BOOST_TEST(chunks[i].bytes.empty());
  BOOST_TEST(chunks[6].bytes == "three\nfour\n");
  BOOST_TEST(text.substr(chunks[6].offset, 5) == "three");
}

BOOST_AUTO_TEST_CASE(the_end_of_a_cut_line_is_kept_by_every_way_of_reading) {
  TempFolder folder;
  const ChunkRule rule{16, 8};
  for (size_t length = 1; length < 120; ++length) {
    const std::string text =
        "one\n" + std::string(length, 'x') + "END\nthree\n" + std::string(length, 'y') + "LAST";
    const auto plain = read_plain(plain_file(folder.write("a", text), text.size()), rule);
    const auto stream =
        read_stream(StreamReader::over(Decompressor::over(text, Compression::kNone, "x"), rule));
    BOOST_TEST((plain == stream), length);
    std::string all;
    uint64_t covered = 0;
    for (const Seen& chunk : plain) all += chunk.bytes, covered += chunk.range_bytes;
    BOOST_TEST(covered == text.size());
    BOOST_TEST(all.find("ND\nthree\n") != all.npos, all);
    BOOST_TEST((all.ends_with("ST") || all.ends_with("ST\n")), all);
  }
}

BOOST_AUTO_TEST_CASE(a_file_in_utf_16_is_a_log_and_reads_as_utf_8) {
  const std::string text = "2026-11-21 02:12:09,123 INFO step=1 loss=2.5\nRuntimeError: CUDA error\n";
  for (const bool big : {false, true})
    for (const bool packed : {false, true}) {
      TempFolder folder;
      std::string bytes = big ? "\xfe\xff" : "\xff\xfe";
      for (const char c : text) bytes += big ? std::string{'\0', c} : std::string{c, '\0'};
      const std::string path = folder.write("err.log", packed ? zstd(bytes) : bytes);
      const SourceList list = list_sources({path});
      BOOST_REQUIRE_EQUAL(list.files.size(), 1u);
      BOOST_TEST((list.files[0].kind == FileKind::kLog));
      BOOST_TEST(is_stream(list.files[0]));
      auto reader = StreamReader::open(list.files[0]);
      BOOST_REQUIRE(reader.has_value());
      BOOST_TEST(reader->next()->bytes == text);
    }
}

BOOST_AUTO_TEST_CASE(the_end_of_a_cut_line_is_not_searched_for_without_end) {
  TempFolder folder;
  const std::string path = folder.write("sparse.log", "begin");
  std::filesystem::resize_file(path, uint64_t{1} << 40);
  std::ofstream(path, std::ios::app | std::ios::binary) << "after\nnext\n";
  SourceFile file = plain_file(path, (uint64_t{1} << 40) + 11);
  auto reader = StreamReader::open(file).value();
  for (uint64_t i = 0; i < 20; ++i) {
    const auto chunk = reader.next();
    BOOST_REQUIRE(chunk.has_value());
    BOOST_TEST(chunk->index == i);
    BOOST_TEST(chunk->range_bytes == limits::kChunkBytes);
    BOOST_TEST(chunk->bytes.empty() == (i > 0));
  }
  BOOST_TEST(reader.consumed() < uint64_t{256} << 20);
}

BOOST_AUTO_TEST_CASE(the_end_of_a_cut_line_is_found_behind_a_hole) {
  TempFolder folder;
  const std::string path = folder.write("sparse.log", "begin");
  const uint64_t size = uint64_t{1} << 40;
  std::filesystem::resize_file(path, size);
  std::ofstream(path, std::ios::app | std::ios::binary) << "after\nnext\n";
  const auto chunk = read_plain_chunk(plain_file(path, size + 11), 0).value();
  BOOST_TEST(chunk.cut);
  BOOST_TEST(chunk.bytes.ends_with("\0after\n"s));
}

BOOST_AUTO_TEST_CASE(a_huge_line_takes_no_more_memory_than_a_chunk) {
  const std::string zeros = zstd(std::string(limits::kChunkBytes * 4, 'z') + "\nend\n");
  auto reader = StreamReader::over(Decompressor::over(zeros, Compression::kZstd, "x"));
  uint64_t covered = 0;
  std::string all;
  while (auto chunk = reader.next()) {
    BOOST_TEST(chunk->bytes.size() <= limits::kChunkBytes + limits::kLineBytes + 1);
    covered += chunk->range_bytes;
    if (chunk->index > 0) all += chunk->bytes;
  }
  BOOST_TEST(all == "end\n");
  BOOST_TEST(covered == limits::kChunkBytes * 4 + 5);
}

BOOST_AUTO_TEST_CASE(an_empty_text_is_one_empty_last_chunk) {
  TempFolder folder;
  for (Compression compression : kAllCompressions) {
    const std::string bytes = compress("", compression);
    const auto got = read_stream(StreamReader::over(Decompressor::over(bytes, compression, "x")));
    BOOST_REQUIRE_EQUAL(got.size(), 1u);
    BOOST_TEST((got[0] == Seen{0, 0, 0, true, false, ""}));
  }
  const auto got = read_plain(plain_file(folder.write("e", ""), 0), {});
  BOOST_TEST((got[0] == Seen{0, 0, 0, true, false, ""}));
}

BOOST_AUTO_TEST_CASE(a_file_that_shrank_gives_what_is_there_and_one_problem) {
  TempFolder folder;
  const ChunkRule rule{8, 4};
  for (size_t left = 0; left < 40; ++left) {
    const SourceFile file = plain_file(folder.write("a", std::string(left, '\n')), 40);
    size_t problems = 0, lines = 0;
    for (uint64_t i = 0; i < 5; ++i) {
      const auto chunk = read_plain_chunk(file, i, {}, rule).value();
      lines += chunk.bytes.size();
      if (!chunk.problem) continue;
      ++problems;
      BOOST_TEST(chunk.problem->offset.value() == left);
      BOOST_TEST(chunk.problem->file == file.path);
    }
    BOOST_TEST(problems == 1u);
    BOOST_TEST(lines == left);
  }
}

BOOST_AUTO_TEST_CASE(a_file_that_grows_is_read_as_long_as_it_was_listed) {
  TempFolder folder;
  const SourceFile file = plain_file(folder.write("a", "one\ntwo\nthree\n"), 6);
  const auto chunk = read_plain_chunk(file, 0).value();
  BOOST_TEST(chunk.bytes == "one\ntw");
  BOOST_TEST(chunk.last);
  BOOST_TEST(!chunk.problem);
}

BOOST_AUTO_TEST_CASE(a_file_that_vanished_or_became_a_folder_is_an_error_that_names_it) {
  TempFolder folder;
  const std::string removed = folder.path("gone.log");
  BOOST_TEST(read_plain_chunk(plain_file(removed, 5), 0).error().text ==
             removed + ": no such file or directory");
  BOOST_TEST(StreamReader::open(plain_file(removed, 5)).error().text ==
             removed + ": no such file or directory");
  BOOST_TEST(read_plain_chunk(plain_file(folder.path(), 5), 0).error().text ==
             folder.path() + ": is a folder, not a file");
}

BOOST_AUTO_TEST_CASE(holes_are_passed_over_and_change_nothing) {
  TempFolder folder;
  const std::string path = folder.write("sparse.log", "begin\n");
  const uint64_t size = uint64_t{1} << 40;
  std::filesystem::resize_file(path, size);
  std::ofstream(path, std::ios::app | std::ios::binary) << "\nafter\n";
  const SourceFile file = plain_file(path, size + 7);
  BOOST_TEST(read_plain_chunk(file, 0).value().bytes.starts_with("begin\n"));
  const auto middle = read_plain_chunk(file, 1000).value();
  BOOST_TEST(middle.bytes.empty());
  BOOST_TEST(middle.range_bytes == limits::kChunkBytes);
  BOOST_TEST(!middle.last);
  BOOST_TEST(!middle.problem);
  const auto end = read_plain_chunk(file, size / limits::kChunkBytes).value();
  BOOST_TEST(end.bytes == "after\n");
  BOOST_TEST(end.offset == size + 1);
  BOOST_TEST(end.last);
}

BOOST_AUTO_TEST_CASE(a_recycled_buffer_leaves_no_trace) {
  TempFolder folder;
  const SourceFile longer = plain_file(folder.write("a", std::string(5000, 'a') + "\n"), 5001);
  const SourceFile other = plain_file(folder.write("b", "b\n"), 9);  // the file became shorter
  auto chunk = read_plain_chunk(longer, 0).value();
  chunk = read_plain_chunk(other, 0, std::move(chunk)).value();
  BOOST_TEST(chunk.bytes == "b\n");
  BOOST_TEST(chunk.problem.has_value());
  chunk = read_plain_chunk(longer, 0, std::move(chunk)).value();
  BOOST_TEST(chunk.bytes.size() == 5001u);
  BOOST_TEST(!chunk.problem);
}

BOOST_AUTO_TEST_CASE(carriage_returns_nuls_and_bytes_that_are_no_utf8_pass_unchanged) {
  const std::string text = "a\r\nb\0c\n\xff\xfe\n\r\r50%\r100%\n"s;
  for (Compression compression : kAllCompressions) {
    const std::string bytes = compress(text, compression);
    const auto got = read_stream(StreamReader::over(Decompressor::over(bytes, compression, "x")));
    BOOST_TEST(got[0].bytes == text);
  }
}

BOOST_AUTO_TEST_CASE(what_recognition_took_from_standard_input_comes_first) {
  SourceFile file;
  file.path = "-";
  BOOST_TEST(is_stream(file));
  file.path = "/proc/self/status";  // its size is reported as 0
  BOOST_TEST(is_stream(file));
  file.head = "taken\n";
  auto reader = StreamReader::open(file).value();
  BOOST_TEST(reader.next()->bytes.starts_with("taken\nName:"));
}

BOOST_AUTO_TEST_SUITE_END()
