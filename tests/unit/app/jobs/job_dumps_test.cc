#include "app/jobs/job_dumps.h"

#include <boost/test/unit_test.hpp>
#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <random>
#include <set>

#include "base/limits.h"
#include "core/detect/flight/condense.h"
#include "core/detect/flight/flight.h"
#include "core/wire/flight.h"
#include "ingest/flight_reader.h"
#include "live_feed.h"

using namespace culprit;
using namespace culprit::app;
using namespace std::string_literals;

namespace {

constexpr TimeNs kSecond = kNsPerSecond;

// A dump of a world of `world` ranks that have completed 7 operations; with `waits` the rank has enqueued one
// more.
std::string dump_text(uint32_t world, bool waits, TimeNs created) {
  std::string ranks;
  for (uint32_t r = 0; r < world; ++r) ranks += fmt::format("{}{}", r ? ", " : "", r);
  const int64_t last = waits ? 8 : 7;
  std::string entries;
  for (int64_t seq = 6; seq <= last; ++seq)
    entries += fmt::format(
        R"({}{{"pg_id":0,"process_group":["0","default_pg"],"collective_seq_id":{},"profiling_name":"nccl:all_reduce",)"
        R"("time_created_ns":{},"input_sizes":[[4]],"input_dtypes":["Float"],"state":"{}","retired":{},"is_p2p":false,)"
        R"("frames":[{{"name":"step","filename":"train.py","line":12}}]}})",
        seq > 6 ? "," : "", seq, created + seq, seq == 8 ? "scheduled" : "completed", seq != 8);
  return fmt::format(
      R"({{"version":"2.9","pg_config":{{"0":{{"name":"0","desc":"default_pg","ranks":"[{}]"}}}},"pg_status":{{"0":)"
      R"({{"last_enqueued_collective":"{}","last_completed_collective":"7"}}}},"entries":[{}]}})",
      ranks, last, entries);
}

StreamInfo info_of(StreamId id, uint32_t rank, const std::string& job = "j") {
  StreamInfo info;
  info.id = id;
  info.kind = OriginKind::kDump;
  info.job = job;
  info.path = fmt::format("/dumps/nccl_trace_rank_{}", rank);
  return info;
}

// Bytes that do not compress.
std::string noise(size_t bytes) {
  std::mt19937_64 random(7);
  std::string out(bytes, '\0');
  for (char& c : out) c = static_cast<char>(random());
  return out;
}

// Content of one file, which may be rewritten.
struct Writing {
  FilePlace place{1, 1, 0, 0, 0, 0, 0};
  uint64_t offset = 0;

  Piece piece(StreamId stream, std::string_view bytes, TimeNs now) {
    Piece out;
    out.stream = stream;
    out.offset = offset;
    out.bytes = bytes;
    out.time_ns = now;
    offset += bytes.size();
    place.offset += bytes.size();
    out.place = place;
    return out;
  }
  void write_again() { place.offset = 0; }
};

std::set<uint32_t> suspects_of(const std::string& json) {
  std::set<uint32_t> out;
  const auto report = nlohmann::json::parse(json);
  if (report["hang"].is_null()) return out;
  for (const auto& place : report["hang"]["suspects"]) out.insert(place["rank"].get<uint32_t>());
  return out;
}

// Four ranks with one file each; one rank waits for a peer that did not enter.
struct Job {
  LiveJobs live;
  Feed feed;
  StreamId log = 0;
  std::vector<Writing> files{4};

  explicit Job(const std::string& dumps_name = "j") : live(options()), feed(live) {
    log = feed.open(OriginKind::kFile, "j", "/logs/node-0/train.log");
    PieceBatch batch;
    for (uint32_t r = 0; r < 4; ++r) batch.opened.push_back(info_of(100 + r, r, dumps_name));
    live.ingest(batch, kStart);
  }
  static LiveOptions options() {
    LiveOptions out = live_options();
    out.roots.emplace_back("/dumps/");
    return out;
  }
  void steps(int64_t first, int64_t end) {
    for (int64_t s = first; s < end; ++s) feed.write(log, step_line(s), kStart + s * kSecond);
  }
  void dump(uint32_t stuck, TimeNs created, TimeNs now) {
    for (uint32_t r = 0; r < 4; ++r) {
      PieceBatch batch;
      files[r].write_again();
      batch.pieces.push_back(files[r].piece(100 + r, dump_text(4, r != stuck, created), now));
      live.ingest(batch, now);
    }
    live.tick(now);
  }
  std::string report(TimeNs now) { return report_of(live, "j", now, "{\"hang\":null}"); }
};

}  // namespace

BOOST_AUTO_TEST_SUITE(live_dumps)

BOOST_AUTO_TEST_CASE(a_dump_counts_once_it_is_whole) {
  const std::string text = dump_text(4, true, kStart);
  for (const size_t cut : {size_t{1}, text.size() / 2, text.rfind(']'), text.size() - 1}) {
    DumpReading all;
    JobDumps dumps(all);
    Writing file;
    const StreamInfo info = info_of(1, 3);
    dumps.ingest(info, file.piece(1, text.substr(0, cut), kStart), kStart);
    dumps.settle(kStart + 5 * kSecond);
    BOOST_TEST((dumps.take_whole().empty() && dumps.take_problems().empty()), cut);
    BOOST_TEST((dumps.pending(1) && all.held == cut));
    dumps.ingest(info, file.piece(1, text.substr(cut), kStart + 6 * kSecond), kStart + 6 * kSecond);
    dumps.settle(kStart + 7 * kSecond);
    const auto whole = dumps.take_whole();
    BOOST_REQUIRE(whole.size() == 1u);
    BOOST_TEST((whole[0].rank == 3u && whole[0].ops.size() == 3u));
    BOOST_TEST((!dumps.pending(1) && all.held == 0u));
    // Reported once, however often it is checked.
    dumps.settle(kStart + 100 * kSecond);
    BOOST_TEST((dumps.take_whole().empty() && dumps.take_problems().empty()));
  }
}

BOOST_AUTO_TEST_CASE(a_dump_that_is_written_again_counts_again) {
  DumpReading all;
  JobDumps dumps(all);
  Writing file;
  for (const bool waits : {true, false}) {
    file.write_again();
    dumps.ingest(info_of(1, 0), file.piece(1, dump_text(4, waits, kStart), kStart), kStart);
    const auto whole = dumps.take_whole();
    BOOST_REQUIRE(whole.size() == 1u);
    BOOST_TEST(whole[0].ops.size() == (waits ? 3u : 2u));
  }
}

BOOST_AUTO_TEST_CASE(what_is_cut_or_hostile_is_a_problem_and_never_a_dump) {
  const std::string text = dump_text(4, true, kStart);
  struct Case {
    std::string bytes, reported;
  };
  const std::vector<Case> cases = {{text.substr(0, text.size() / 2), "passed over: "},
                                   {"\x80\x02"
                                    "cos\nsystem\n(S'true'\ntR."s,
                                    "passed over: "},
                                   {"not a dump at all.", "passed over: "},
                                   {"{\"version\":1}", "is no Flight Recorder dump"}};
  for (const Case& c : cases) {
    DumpReading all;
    JobDumps dumps(all);
    Writing file;
    dumps.ingest(info_of(1, 0), file.piece(1, c.bytes, kStart), kStart);
    for (int s = 1; s < 200; ++s) dumps.settle(kStart + s * kSecond);
    BOOST_TEST(dumps.take_whole().empty());
    const auto problems = dumps.take_problems();
    BOOST_REQUIRE(problems.size() == 1u);
    BOOST_TEST(problems[0].file == "/dumps/nccl_trace_rank_0");
    BOOST_TEST(problems[0].what.find(c.reported) != std::string::npos, problems[0].what);
    BOOST_TEST((all.held == 0u && !dumps.pending(1)));
  }
}

BOOST_AUTO_TEST_CASE(dumps_that_are_being_written_take_bounded_memory) {
  DumpReading all;
  {
    JobDumps dumps(all);
    std::vector<Writing> files(4);
    const std::string part = noise(limits::kLiveDumpsPacked / 8);
    for (int i = 0; i < 4; ++i)
      for (StreamId s = 0; s < 4; ++s) {
        dumps.ingest(info_of(s, s), files[s].piece(s, part, kStart), kStart);
        BOOST_TEST(all.held <= limits::kLiveDumpsPacked);
      }
    BOOST_TEST(!dumps.take_problems().empty());
  }
  BOOST_TEST(all.held == 0u);
}

BOOST_AUTO_TEST_CASE(a_dump_is_named_while_it_is_read_and_one_in_which_memory_ran_out_is_left_out) {
  const std::string text = dump_text(4, true, kStart);
  DumpReading all;
  std::vector<std::string> read;
  all.reading = [&](std::string_view path) { read.emplace_back(path); };
  all.left_out = [](std::string_view path) { return path.ends_with("_1"); };
  JobDumps dumps(all);
  Writing first, second;
  dumps.ingest(info_of(1, 0), first.piece(1, text, kStart), kStart);
  dumps.ingest(info_of(2, 1), second.piece(2, text, kStart), kStart);
  BOOST_TEST(read == (std::vector<std::string>{"/dumps/nccl_trace_rank_0", ""}),
             boost::test_tools::per_element());
  BOOST_TEST(dumps.take_whole().size() == 1u);
  const auto problems = dumps.take_problems();
  BOOST_REQUIRE(problems.size() == 1u);
  BOOST_TEST(problems[0].file == "/dumps/nccl_trace_rank_1");
  BOOST_TEST(problems[0].what.find("ran out of memory") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(dumps_are_kept_compressed_and_one_at_a_time_is_read) {
  std::string text = dump_text(4, true, kStart);
  text.resize(text.size() - 2);  // the end of the list and of the dump
  while (text.size() < (4u << 20)) text += R"(,{"frames":[{"name":"step","filename":"train.py","line":12}]})";
  DumpReading all;
  JobDumps dumps(all);
  std::vector<Writing> files(4);
  for (StreamId s = 0; s < 4; ++s) dumps.ingest(info_of(s, s), files[s].piece(s, text, kStart), kStart);
  BOOST_TEST(all.held < (1u << 20));
  for (StreamId s = 0; s < 4; ++s) dumps.ingest(info_of(s, s), files[s].piece(s, "]}", kStart), kStart);
  size_t whole = dumps.take_whole().size();
  while (dumps.settle(kStart + 2 * kSecond)) {
    const size_t more = dumps.take_whole().size();
    BOOST_TEST(more == 1u);
    whole += more;
  }
  BOOST_TEST(whole == 4u);
  BOOST_TEST(all.held == 0u);
}

BOOST_AUTO_TEST_CASE(a_file_that_is_read_from_its_middle_on_says_nothing) {
  const std::string text = dump_text(4, true, kStart);
  DumpReading all;
  JobDumps dumps(all);
  Writing file;
  file.place.offset = 10;  // the beginning is no longer stored
  dumps.ingest(info_of(1, 0), file.piece(1, text, kStart), kStart);
  dumps.settle(kStart + 100 * kSecond);
  BOOST_TEST((dumps.take_whole().empty() && all.held == 0u));
  // A dump with a missing part gives no result either.
  file = {};
  dumps.ingest(info_of(2, 1), file.piece(2, text.substr(0, 20), kStart), kStart);
  file.place.offset += 5;
  Piece rest = file.piece(2, text.substr(25), kStart);
  rest.gap = Gap{5, 0, "lost"};
  dumps.ingest(info_of(2, 1), rest, kStart);
  dumps.settle(kStart + 100 * kSecond);
  BOOST_TEST((dumps.take_whole().empty() && all.held == 0u));
}

BOOST_AUTO_TEST_CASE(the_live_report_names_the_rank_that_no_one_waits_with) {
  Job job;
  job.steps(0, 20);
  job.dump(2, kStart + 20 * kSecond, kStart + 40 * kSecond);
  const std::string reported = job.report(kStart + 41 * kSecond);
  BOOST_TEST((suspects_of(reported) == std::set<uint32_t>{2}), reported);
  BOOST_TEST(nlohmann::json::parse(reported)["verdict"]["symptom"] == "hang");
}

BOOST_AUTO_TEST_CASE(what_the_clock_and_the_dumps_see_is_one_hang) {
  Job job;
  job.steps(0, 20);
  const TimeNs later = kStart + 200 * kSecond;
  job.live.tick(later);
  const auto before = nlohmann::json::parse(job.report(later));
  BOOST_REQUIRE(before["diagnoses"].size() == 1u);
  BOOST_TEST(before["diagnoses"][0]["detector"] == "silence");
  job.dump(2, kStart + 20 * kSecond, later);
  const auto after = nlohmann::json::parse(job.report(later + 3600 * kSecond));
  BOOST_REQUIRE(after["diagnoses"].size() == 1u);
  BOOST_TEST(after["diagnoses"][0]["detector"] == "comm");
  BOOST_TEST(after["diagnoses"][0]["iteration"] == 19);
  BOOST_TEST(after["hang"]["since_ns"] == before["hang"]["since_ns"]);
}

BOOST_AUTO_TEST_CASE(dumps_of_a_stop_that_is_over_say_nothing) {
  Job job;
  job.steps(0, 20);
  job.dump(2, kStart + 20 * kSecond, kStart + 40 * kSecond);
  BOOST_TEST(!suspects_of(job.report(kStart + 41 * kSecond)).empty());
  job.steps(100, 130);
  const std::string after = job.report(kStart + 150 * kSecond);
  BOOST_TEST(nlohmann::json::parse(after)["hang"].is_null(), after);
  BOOST_TEST(after.find("the job went on after them") != std::string::npos);
  // The next dump gives one.
  job.dump(1, kStart + 131 * kSecond, kStart + 400 * kSecond);
  BOOST_TEST((suspects_of(job.report(kStart + 5000 * kSecond)) == std::set<uint32_t>{1}));
}

BOOST_AUTO_TEST_CASE(dumps_that_name_no_job_are_of_the_only_one_that_runs) {
  Job job("");
  job.steps(0, 20);
  job.dump(2, kStart + 20 * kSecond, kStart + 40 * kSecond);
  BOOST_TEST((suspects_of(job.report(kStart + 41 * kSecond)) == std::set<uint32_t>{2}));
  BOOST_TEST(job.live.jobs().size() == 1u);
}

BOOST_AUTO_TEST_CASE(condensed_dumps_of_real_hangs_say_the_same) {
  const char* data = std::getenv("CULPRIT_DATA");
  if (!data) {
    BOOST_TEST_MESSAGE("CULPRIT_DATA is not set: passed over");
    return;
  }
  const std::vector<std::pair<std::string, std::set<uint32_t>>> cases = {{"gpu_error_1st", {12, 14}},
                                                                         {"lock_gil_1st", {9, 14}}};
  for (const auto& [name, stuck] : cases) {
    std::vector<FlightDump> whole, sent;
    size_t read_bytes = 0, sent_bytes = 0;
    for (const auto& entry : std::filesystem::directory_iterator(data + "/flight-recorder/"s + name)) {
      std::ifstream in(entry.path(), std::ios::binary);
      const std::string bytes{std::istreambuf_iterator<char>(in), {}};
      auto read = ingest::parse_flight(bytes, entry.path().string());
      BOOST_REQUIRE(read);
      const auto packed = wire::pack_flight(flight::condense(read->dump));
      BOOST_REQUIRE(packed);
      PackedReader reader(*packed);
      size_t room = wire::kFlightRanksOfBlock;
      sent.push_back(wire::unpack_flight(reader, room));
      BOOST_TEST((reader.ok() && reader.done()));
      read_bytes += bytes.size();
      sent_bytes += packed->size();
      whole.push_back(std::move(read->dump));
    }
    const auto a = flight::analyse_flight(whole, {}), b = flight::analyse_flight(sent, {});
    BOOST_REQUIRE((a.waits && b.waits && a.claims.size() == b.claims.size()));
    std::set<uint32_t> named;
    for (size_t i = 0; i < a.claims.size(); ++i) {
      BOOST_TEST((a.claims[i].ranks == b.claims[i].ranks));
      BOOST_TEST((a.claims[i].as->why == b.claims[i].as->why));
      named.insert(b.claims[i].ranks.begin(), b.claims[i].ranks.end());
    }
    BOOST_TEST((named == stuck));
    BOOST_TEST(a.since_ns == b.since_ns);
    BOOST_TEST_MESSAGE(fmt::format("{}: {} bytes of {}", name, sent_bytes, read_bytes));
    BOOST_TEST(2 * sent_bytes < read_bytes);
  }
}

BOOST_AUTO_TEST_SUITE_END()
