#include "app/offline/pipeline.h"

#include <unistd.h>
#include <zlib.h>

#include <boost/test/unit_test.hpp>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <new>

#include "ingest/source_list.h"

using namespace culprit;
using namespace culprit::app;

namespace {

// A folder of plain and compressed logs of several chunks each, removed at the end.
struct Logs {
  std::filesystem::path folder =
      std::filesystem::temp_directory_path() / ("pipeline_test." + std::to_string(getpid()));
  std::vector<LogFile> files;

  Logs() {
    std::filesystem::create_directory(folder);
    for (const char* name : {"a.log.gz", "b.log", "c.log.gz", "d.log.gz", "e.log"}) write(name);
  }
  ~Logs() { std::filesystem::remove_all(folder); }

  void write(const std::string& name) {
    const size_t lines = name[0] == 'd' ? 3 : 120'000;
    std::string text;
    for (size_t i = 0; i < lines; ++i)
      text += "[rank" + std::to_string(i % 7) + "]: step " + std::to_string(i) + " of " + name +
              " took so and so many milliseconds, as steps of this size do here\n";
    LogFile file;
    file.file.path = folder / name;
    file.info.file = name;
    if (name.ends_with(".gz")) {
      gzFile out = gzopen(file.file.path.c_str(), "wb1");
      gzwrite(out, text.data(), static_cast<unsigned>(text.size()));
      gzclose(out);
      file.file.compression = ingest::Compression::kGzip;
    } else {
      std::ofstream(file.file.path) << text;
    }
    file.file.size = std::filesystem::file_size(file.file.path);
    files.push_back(std::move(file));
  }
};

struct Seen {
  SourceId source;
  uint64_t index;
  size_t lines;
  std::string last;
  bool operator==(const Seen&) const = default;
};

std::vector<Seen> read(const Logs& logs, unsigned threads) {
  std::vector<Seen> seen;
  std::mutex one_at_a_time;
  const TakeBatch take = [&](logs::LogBatch& batch) {
    BOOST_REQUIRE(one_at_a_time.try_lock());
    seen.push_back(
        {batch.source, batch.index, batch.lines.size(), std::string(batch.message(batch.lines.back()))});
    one_at_a_time.unlock();
  };
  ReadProgress progress;
  PipelineOptions options;
  options.threads = threads;
  BOOST_TEST(parse_logs(logs.files, options, take, progress).empty());
  return seen;
}

}  // namespace

BOOST_AUTO_TEST_CASE(batches_come_in_order_and_are_the_same_for_every_number_of_threads) {
  const Logs logs;
  const std::vector<Seen> alone = read(logs, 1);
  BOOST_TEST(alone.size() > 10);
  for (size_t i = 1; i < alone.size(); ++i)
    BOOST_TEST((alone[i].source > alone[i - 1].source || alone[i].index == alone[i - 1].index + 1));
  size_t lines = 0;
  for (const Seen& s : alone) lines += s.lines;
  BOOST_TEST(lines == 4 * 120'000 + 3);
  for (unsigned threads : {2u, 3u, 8u})
    for (int round = 0; round < 5; ++round) BOOST_TEST((read(logs, threads) == alone));
}

BOOST_AUTO_TEST_CASE(a_damaged_stream_gives_what_is_sound_and_the_others_go_on) {
  Logs logs;
  std::filesystem::resize_file(logs.files[0].file.path, logs.files[0].file.size / 2);
  for (unsigned threads : {1u, 4u}) {
    ReadProgress progress;
    uint64_t sources = 0;
    const TakeBatch take = [&](logs::LogBatch& batch) { sources |= uint64_t{1} << batch.source; };
    PipelineOptions options;
    options.threads = threads;
    BOOST_TEST(parse_logs(logs.files, options, take, progress).size() == 1);
    BOOST_TEST(sources == 0b11111);
  }
}

BOOST_AUTO_TEST_CASE(what_the_taker_throws_ends_all_threads_and_comes_out) {
  const Logs logs;
  for (unsigned threads : {1u, 2u, 8u}) {
    ReadProgress progress;
    PipelineOptions options;
    options.threads = threads;
    size_t taken = 0;
    const TakeBatch take = [&taken](logs::LogBatch&) {
      if (++taken == 3) throw std::bad_alloc();
    };
    BOOST_CHECK_THROW((void)parse_logs(logs.files, options, take, progress), std::bad_alloc);
    BOOST_TEST(taken == 3u);
  }
}
