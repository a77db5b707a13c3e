#include "ingest/decompress.h"

#include <boost/test/unit_test.hpp>
#include <random>

#include "base/limits.h"
#include "fixtures.h"

using namespace culprit;
using namespace culprit::ingest;
using namespace culprit::ingest::testing;

BOOST_AUTO_TEST_SUITE(decompress)

namespace {

struct Decoded {
  std::string text;
  std::optional<Problem> problem;
  uint64_t consumed = 0;
};

Decoded decode(std::string_view bytes, Compression compression, size_t piece = 1 << 20) {
  auto decompressor = Decompressor::over(bytes, compression, "x.log");
  Decoded decoded;
  for (;;) {
    const size_t before = decoded.text.size();
    decoded.text.resize(before + piece);
    const size_t n = decompressor.read(decoded.text.data() + before, piece);
    decoded.text.resize(before + n);
    if (n < piece) break;
  }
  decoded.problem = decompressor.problem();
  decoded.consumed = decompressor.consumed();
  return decoded;
}

std::string words(size_t size) {
  std::mt19937 random(5);
  std::string text;
  while (text.size() < size) text += "iteration " + std::to_string(random()) + " loss nan\n";
  return text;
}

constexpr Compression kCompressed[] = {Compression::kZstd, Compression::kGzip, Compression::kXz};

}  // namespace

BOOST_AUTO_TEST_CASE(every_format_gives_its_text_in_pieces_of_any_size) {
  const std::string text = words(300'000);
  for (Compression compression : kAllCompressions) {
    const std::string bytes = compress(text, compression);
    for (size_t piece : {1u, 7u, 4096u, 1u << 20}) {
      const Decoded decoded = decode(bytes, compression, piece);
      BOOST_TEST((decoded.text == text));
      BOOST_TEST(!decoded.problem);
      BOOST_TEST(decoded.consumed == bytes.size());
    }
  }
}

BOOST_AUTO_TEST_CASE(parts_that_follow_one_another_are_one_text) {
  for (Compression compression : kCompressed) {
    const std::string bytes =
        compress("one\n", compression) + compress("", compression) + compress("two\n", compression);
    const Decoded decoded = decode(bytes, compression);
    BOOST_TEST(decoded.text == "one\ntwo\n");
    BOOST_TEST(!decoded.problem);
  }
}

BOOST_AUTO_TEST_CASE(skippable_frames_and_padding_are_skipped) {
  const std::string skippable("\x53\x2a\x4d\x18\x05\0\0\0hello", 13);
  const Decoded skipped = decode(skippable + zstd("a\n") + skippable + zstd("b\n"), Compression::kZstd);
  BOOST_TEST(skipped.text == "a\nb\n");
  BOOST_TEST(!skipped.problem);
  const Decoded padded = decode(gzip("a\n") + std::string(1000, '\0'), Compression::kGzip);
  BOOST_TEST(padded.text == "a\n");
  BOOST_TEST(!padded.problem);
  const Decoded xz_padded = decode(xz("a\n") + std::string(8, '\0') + xz("b\n"), Compression::kXz);
  BOOST_TEST(xz_padded.text == "a\nb\n");
  BOOST_TEST(!xz_padded.problem);
}

BOOST_AUTO_TEST_CASE(cut_data_gives_its_sound_beginning_and_tells_where_it_ends) {
  const std::string text = words(1'000'000);
  for (Compression compression : kCompressed) {
    const std::string bytes = compress(text, compression);
    for (double share : {.1, .5, .9, .999}) {
      const auto size = static_cast<size_t>(static_cast<double>(bytes.size()) * share);
      const Decoded decoded = decode(std::string_view(bytes).substr(0, size), compression);
      BOOST_TEST(text.starts_with(decoded.text));
      // zstd returns whole blocks of 128 KiB.
      BOOST_TEST(static_cast<double>(decoded.text.size()) + (160 << 10) >= share * 1e6);
      BOOST_REQUIRE(decoded.problem);
      BOOST_TEST(decoded.problem->file == "x.log");
      BOOST_TEST(decoded.problem->offset.value() == size);
      BOOST_TEST(decoded.problem->what.find("cut off") != std::string::npos);
    }
  }
}

BOOST_AUTO_TEST_CASE(damage_gives_what_stands_before_it_and_tells_where_it_is) {
  const std::string text = words(2'000'000);
  for (Compression compression : kCompressed) {
    std::string bytes = compress(text, compression);
    const size_t at = bytes.size() * 3 / 4;
    for (size_t i = at; i < at + 64; ++i) bytes[i] = static_cast<char>(~bytes[i]);
    const Decoded decoded = decode(bytes, compression);
    BOOST_REQUIRE(decoded.problem);
    BOOST_TEST(decoded.problem->what.starts_with("damaged "));
    const std::string_view sound = std::string_view(text).substr(0, 1'000'000);
    BOOST_TEST(decoded.text.starts_with(sound));
    BOOST_TEST(decoded.problem->offset.value() + (200 << 10) >= at);
  }
}

BOOST_AUTO_TEST_CASE(garbage_behind_the_last_part_is_reported_and_costs_nothing) {
  for (Compression compression : kCompressed) {
    const std::string bytes = compress("sound\n", compression);
    const Decoded decoded = decode(bytes + "some garbage follows", compression);
    BOOST_TEST(decoded.text == "sound\n");
    BOOST_REQUIRE(decoded.problem);
    BOOST_TEST(decoded.problem->offset.value() >= bytes.size());
  }
}

BOOST_AUTO_TEST_CASE(a_bomb_is_stopped_by_its_ratio) {
  // Twenty frames of 64 MiB of zeros, a few KB each; above the free size the ratio is checked.
  const std::string frame = zstd(std::string(64 << 20, '\0'));
  std::string bytes;
  for (int i = 0; i < 20; ++i) bytes += frame;
  auto decompressor = Decompressor::over(bytes, Compression::kZstd, "bomb");
  std::vector<char> out(1 << 20);
  uint64_t total = 0;
  while (const size_t n = decompressor.read(out.data(), out.size())) total += n;
  BOOST_REQUIRE(decompressor.problem());
  BOOST_TEST(decompressor.problem()->what.find("expands more than") != std::string::npos);
  BOOST_TEST(total < (200u << 20));
}

BOOST_AUTO_TEST_CASE(a_window_beyond_the_limit_is_refused) {
  // The header of a frame with a window of 2 GiB, then a last raw block of one byte.
  const std::string frame("\x28\xb5\x2f\xfd\x00\xa8\x09\x00\x00x", 10);
  const Decoded decoded = decode(frame, Compression::kZstd);
  BOOST_TEST(decoded.text.empty());
  BOOST_REQUIRE(decoded.problem);
  BOOST_TEST(decoded.problem->what.find("too much memory") != std::string::npos);
  // The same with 128 MiB is allowed: 2^(10 + 17).
  const std::string allowed("\x28\xb5\x2f\xfd\x00\x88\x09\x00\x00x", 10);
  BOOST_TEST(decode(allowed, Compression::kZstd).text == "x");
}

BOOST_AUTO_TEST_CASE(a_small_file_is_read_whole_or_not_at_all) {
  TempFolder folder;
  const std::string text = words(100'000);
  for (Compression compression : kAllCompressions) {
    SourceFile file;
    file.path = folder.write("job.toml", compress(text, compression));
    file.compression = compression;
    BOOST_TEST((read_small_file(file, text.size()).value() == text));
    BOOST_TEST(read_small_file(file, text.size() - 1).error().text ==
               file.path + ": is larger than " + std::to_string(text.size() - 1) + " bytes");
    if (compression == Compression::kNone) continue;
    folder.write("job.toml", compress(text, compression).substr(0, 5000));
    BOOST_TEST(read_small_file(file, text.size()).error().text.starts_with(file.path + ": the "));
  }
  SourceFile missing;
  missing.path = folder.path("missing");
  BOOST_TEST((read_small_file(missing, 10).error().code == ErrorCode::kNotFound));
}

BOOST_AUTO_TEST_SUITE_END()
