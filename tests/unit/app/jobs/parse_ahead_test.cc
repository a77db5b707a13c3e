#include "app/jobs/parse_ahead.h"

#include <boost/test/unit_test.hpp>

#include "app/jobs/job_forwarder.h"
#include "live_feed.h"

using namespace culprit;
using namespace culprit::app;

namespace {

std::unique_ptr<logs::LineParser> make_parser() {
  return std::make_unique<logs::LineParser>(logs::ParseOptions{}, nullptr);
}

SourceInfo source_of(const std::string& host) {
  SourceInfo out;
  out.file = "a.log";
  out.host = host;
  return out;
}

TextChunk chunk_of(std::string_view bytes, uint64_t index) {
  return {3, index, index * 1000, bytes, bytes.size() + 1, index == 1};
}

std::string steps(int64_t first, int64_t count) {
  std::string out;
  for (int64_t s = first; s < first + count; ++s) out += step_line(s);
  return out;
}

// Batches of a queue: long pieces of files that begin one after the other. Pieces of the first are cut within
// lines, one has a gap, and the second host's name proves that of the first.
std::vector<std::shared_ptr<const PieceBatch>> queue() {
  std::vector<std::shared_ptr<const PieceBatch>> out;
  std::vector<uint64_t> offsets(3);
  for (int64_t round = 0; round < 8; ++round) {
    auto batch = std::make_shared<PieceBatch>();
    for (StreamId id = 0; id < offsets.size(); ++id) {
      if (round == id) {
        StreamInfo info;
        info.id = id;
        info.job = "j";
        info.path = fmt::format("/logs/gpu{}.log", id);
        batch->opened.push_back(info);
      }
      for (int64_t part = 0; part < 3 && round >= id; ++part) {
        Piece piece;
        piece.stream = id;
        piece.time_ns = kStart + round * kNsPerSecond;
        piece.bytes = steps(round * 10'000 + part * 1000, 1000);
        if (id == 1 && round == 5 && part == 1) piece.bytes += xid_line(kStart + 60'000 * kNsPerSecond);
        if (id == 0) piece.bytes.insert(0, "rest of a line\n").resize(piece.bytes.size() - 7);
        if (id == 2 && round == 4) piece.gap = Gap{10, 0, "the file was truncated before it was read"};
        piece.offset = offsets[id];
        offsets[id] += piece.bytes.size();
        batch->pieces.push_back(std::move(piece));
      }
    }
    out.push_back(std::move(batch));
  }
  return out;
}

std::string analysed(unsigned threads) {
  LiveOptions options = live_options();
  options.threads = threads;
  LiveJobs jobs(options);
  const auto batches = queue();
  std::string out;
  for (size_t i = 0; i < batches.size(); ++i) {
    const TimeNs now = kStart + static_cast<TimeNs>(i) * kNsPerSecond;
    if (i == 6) jobs.reload_rules(shipped());
    // The fourth batch comes alone.
    jobs.ingest(*batches[i], now, i != 2 && i + 1 < batches.size() ? batches[i + 1] : nullptr);
    jobs.tick(now);
    for (const LiveEvent& e : jobs.poll_events())
      out += fmt::format("{} {} {}\n", static_cast<int>(e.kind), e.time_ns, e.job);
  }
  out += fmt::format("{} lines\n", jobs.counts().lines);
  return out + without_ids(report_of(jobs, "j", kStart + 60 * kNsPerSecond));
}

std::string condensed(unsigned threads) {
  JobForwarderOptions options;
  options.host = "node-0";
  options.roots = {"/logs/"};
  options.rules = shipped();
  options.threads = threads;
  options.allocate = [next = StreamId{0}]() mutable { return next++; };
  options.draw_session = [] { return uint64_t{7}; };
  JobForwarder feed(options);
  std::string out;
  const auto flush = [&] {
    for (const PieceBatch& batch : feed.flush(1, kStart))
      for (const Piece& piece : batch.pieces) out += fmt::format("{} {}\n", piece.stream, piece.bytes);
  };
  const auto batches = queue();
  for (size_t i = 0; i < batches.size(); ++i)
    for (size_t taken = 0; taken < batches[i]->pieces.size(); flush())
      taken = feed.ingest(*batches[i], {taken, i, i + 1 < batches.size() ? batches[i + 1] : nullptr}, kStart);
  return out;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(parse_ahead)

BOOST_AUTO_TEST_CASE(a_text_parsed_ahead_becomes_the_batch_of_its_chunk) {
  const std::string text = steps(0, 2000);
  std::vector<ParseAhead::Text> texts;
  for (size_t i = 0; i < 10; ++i)
    texts.push_back({std::string_view(text).substr(i * text.size() / 10, text.size() / 10), source_of("n")});
  ParseAhead ahead;
  ahead.add(texts, make_parser);
  const auto own = make_parser();
  for (size_t i = 0; i < texts.size(); ++i) {
    const TextChunk chunk = chunk_of(texts[i].bytes, i);
    logs::LogBatch taken, parsed;
    own->parse(chunk, source_of("n"), parsed);
    if (!ahead.take(chunk, source_of("n"), *own, taken)) continue;  // the thread had not begun with it
    BOOST_TEST(taken.source == 3u);
    BOOST_TEST(taken.index == i);
    BOOST_TEST(taken.offset == i * 1000);
    BOOST_TEST(taken.last == (i == 1));
    BOOST_TEST(taken.range_bytes == parsed.range_bytes);
    BOOST_TEST((taken.text.data() == chunk.bytes.data()));
    BOOST_REQUIRE(taken.lines.size() == parsed.lines.size());
    for (size_t line = 0; line < parsed.lines.size(); ++line) {
      BOOST_TEST(taken.lines[line].time_ns == parsed.lines[line].time_ns);
      BOOST_TEST((taken.message(taken.lines[line]) == parsed.message(parsed.lines[line])));
    }
    BOOST_TEST((taken.writers == parsed.writers));
  }
}

BOOST_AUTO_TEST_CASE(a_text_is_taken_for_no_other_source) {
  const std::string text = steps(0, 100);
  ParseAhead ahead;
  ahead.add({{text, source_of("a")}}, make_parser);
  logs::LogBatch out;
  const auto own = make_parser();
  BOOST_TEST(!ahead.take(chunk_of(text, 0), source_of("b"), *own, out));
  BOOST_TEST(!ahead.take(chunk_of(text, 0), source_of("a"), *own, out), "it is dropped");
}

BOOST_AUTO_TEST_CASE(texts_that_are_not_taken_are_dropped) {
  auto text = std::make_unique<std::string>(steps(0, 1000));
  const std::string later = steps(0, 10);
  ParseAhead ahead;
  ahead.add({{*text, source_of("a")}, {later, source_of("a")}}, make_parser);
  ahead.keep_last(1);
  text.reset();
  logs::LogBatch out;
  const auto own = make_parser();
  ahead.take(chunk_of(later, 0), source_of("a"), *own, out);
  ahead.add({{later, source_of("a")}}, make_parser);
  ahead.release();
  BOOST_TEST(!ahead.take(chunk_of(later, 0), source_of("a"), *own, out));
}

BOOST_AUTO_TEST_CASE(a_queue_gives_the_same_events_and_report_on_two_threads) {
  const std::string expected = analysed(1);
  BOOST_TEST(expected.find("has fallen off the bus") != std::string::npos);
  BOOST_TEST((analysed(2) == expected));
}

BOOST_AUTO_TEST_CASE(a_queue_gives_the_same_blocks_on_two_threads) {
  const std::string expected = condensed(1);
  BOOST_TEST(expected.size() > 10'000u);
  BOOST_TEST((condensed(2) == expected));
}

BOOST_AUTO_TEST_SUITE_END()
