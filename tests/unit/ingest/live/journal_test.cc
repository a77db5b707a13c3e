#include "ingest/live/journal.h"

#include <fmt/format.h>

#include <boost/test/unit_test.hpp>
#include <map>

#include "base/limits.h"
#include "base/text.h"

namespace culprit::ingest {
namespace {

constexpr const char* kId = "0dc1c2ee46a344f7995904de0d1e9368";
constexpr TimeNs kNow = 1'796'105'900 * kNsPerSecond;

std::string cursor(uint64_t sequence, const std::string& id = kId) {
  return fmt::format("s={};i={:x};b=eed11fcf3e37470cbd3e1ea5282be7ed;m=407cf0d5;t={:x};x={:x}", id, sequence,
                     1'796'105'826'308'243 + sequence, 77 * sequence);
}

// `more`: fields with their comma.
std::string entry(uint64_t sequence, const std::string& more, const std::string& id = kId) {
  return fmt::format(R"({{"__CURSOR":"{}","__REALTIME_TIMESTAMP":"{}"{}}})", cursor(sequence, id),
                     1'796'105'826'308'243 + sequence, more) +
         "\n";
}

std::string service(uint64_t sequence, const std::string& message,
                    const std::string& unit = "nvidia.service") {
  return entry(sequence, fmt::format(R"(,"_TRANSPORT":"stdout","_UID":"0","_PID":"12","_SYSTEMD_UNIT":"{}",)"
                                     R"("SYSLOG_IDENTIFIER":"nv-fabricmanager","MESSAGE":"{}")",
                                     unit, message));
}

// A journal, and a daemon that stores what it reads.
struct JournalHost {
  std::map<StreamId, StreamState> states;
  std::string evidence;
  std::vector<Gap> gaps;
  StreamId next_id = 3;
  JournalOptions options;
  std::unique_ptr<JournalLog> log;

  void start() {
    std::vector<StreamState> known;
    for (const auto& [id, state] : states) known.push_back(state);
    options.allocate = [this] { return next_id++; };
    log = std::make_unique<JournalLog>(options, known);
    log->restarted();
  }
  PieceBatch add(std::string_view bytes, bool stored = true) {
    if (!log) start();
    PieceBatch batch = log->add(bytes, kNow);
    if (!stored) return batch;
    for (const StreamInfo& info : batch.opened) states[info.id].info = info;
    for (const Piece& piece : batch.pieces) {
      StreamState& state = states[piece.stream];
      BOOST_REQUIRE_EQUAL(piece.offset, state.size);
      BOOST_REQUIRE(piece.place.has_value());
      if (piece.gap) gaps.push_back(*piece.gap);
      evidence += piece.bytes;
      state.size += piece.bytes.size();
      state.place = piece.place;
    }
    return batch;
  }
  std::vector<std::string> messages() {
    std::vector<std::string> out;
    JournalParser parser;
    for (const std::string_view line : split(evidence, '\n'))
      if (const auto one = parser.parse(line)) out.push_back(one->message);
    return out;
  }
};

using Messages = std::vector<std::string>;

JournalEntry parsed(const std::string& line) {
  JournalParser parser;
  auto out = parser.parse(trim(line));
  BOOST_REQUIRE_MESSAGE(out.has_value(), line);
  return *out;
}

BOOST_AUTO_TEST_CASE(the_cursor_of_a_place_is_that_of_its_entry) {
  const auto place = parse_cursor(cursor(0x1f));
  BOOST_REQUIRE(place.has_value());
  BOOST_TEST(place->sequence == 0x1fu);
  BOOST_TEST((JournalPlace::from(place->stored()) == *place));
  BOOST_TEST(cursor_of(*place) ==
             fmt::format("s={};i=1f;t={:x};x={:x}", kId, 1'796'105'826'308'243 + 0x1f, 77 * 0x1f));
  BOOST_TEST((*parse_cursor(cursor_of(*place)) == *place));
  for (const char* broken :
       {"", "s=12;i=1;t=1;x=1", "i=1;t=1;x=1", "s=0dc1c2ee46a344f7995904de0d1e9368;i=;t=1;x=1",
        "s=0dc1c2ee46a344f7995904de0d1e9368;i=g;t=1;x=1", "x"})
    BOOST_TEST(!parse_cursor(broken).has_value(), broken);
}

BOOST_AUTO_TEST_CASE(entries_become_lines_of_evidence_with_the_fields_that_matter) {
  JournalHost host;
  host.add(entry(5, R"(,"_TRANSPORT":"stdout","_UID":"0","_PID":"12","_HOSTNAME":"n1","_COMM":"nv-fab",)"
                    R"("_SYSTEMD_UNIT":"nvidia.service","SYSLOG_IDENTIFIER":"fm","PRIORITY":"3",)"
                    R"("_BOOT_ID":"eed1","MESSAGE":"a \"quoted\" text")"));
  BOOST_TEST(
      host.evidence ==
      fmt::format(R"({{"__CURSOR":"{}","__REALTIME_TIMESTAMP":"1796105826308248","_TRANSPORT":"stdout",)"
                  R"("_HOSTNAME":"n1","_SYSTEMD_UNIT":"nvidia.service","_COMM":"nv-fab","_PID":"12",)"
                  R"("_UID":"0","SYSLOG_IDENTIFIER":"fm","PRIORITY":"3",)"
                  R"("MESSAGE":"a \"quoted\" text"}})",
                  cursor(5)) +
          "\n");
  BOOST_TEST((host.states[3].info.kind == OriginKind::kJournal));
  BOOST_TEST(host.states[3].info.path == "journal/system");
  BOOST_TEST(host.states[3].info.job.empty());
}

// systemd 239 writes blanks; a field of no text is a list of bytes, one that occurs twice a list.
BOOST_AUTO_TEST_CASE(all_forms_of_a_message_are_read) {
  const auto message = [](const std::string& json) {
    return parsed(entry(1, ",\"MESSAGE\" : " + json)).message;
  };
  BOOST_TEST(message("\"plain\"") == "plain");
  BOOST_TEST(message("[ 104, 105, 255 ]") == "hi\xff");
  BOOST_TEST(message(R"([ "first", "second" ])") == "first");
  BOOST_TEST(message("[ [ 104, 105 ], \"second\" ]") == "hi");
  BOOST_TEST(message("null") == "");
  BOOST_TEST(message("[]") == "");
  BOOST_TEST(message("[[[1]]]") == "");
  BOOST_TEST(message("[ 300 ]") == "");
}

BOOST_AUTO_TEST_CASE(only_the_transport_makes_an_entry_the_kernels) {
  const auto writer = [](const std::string& fields) { return parsed(entry(1, "," + fields)).writer; };
  const char* const xid = R"("MESSAGE":"NVRM: Xid (PCI:0000:9b:00): 79")";
  const auto with = [&](const std::string& fields) { return writer(fields + "," + xid); };
  BOOST_TEST((with(R"("_TRANSPORT":"kernel","SYSLOG_FACILITY":"0","SYSLOG_IDENTIFIER":"kernel")") ==
              JournalWriter::kKernel));
  // A program wrote to /dev/kmsg; a user called the journal; a session of root; a container; an audit record.
  for (const char* forged :
       {R"("_TRANSPORT":"kernel","SYSLOG_FACILITY":"1","SYSLOG_IDENTIFIER":"kernel")",
        R"("_TRANSPORT":"kernel","SYSLOG_IDENTIFIER":"kernel")",
        R"("_TRANSPORT":"journal","SYSLOG_FACILITY":"0","SYSLOG_IDENTIFIER":"kernel","_UID":"1000",)"
        R"("_SYSTEMD_UNIT":"slurmd.service")",
        R"("_TRANSPORT":"syslog","SYSLOG_IDENTIFIER":"kernel","_UID":"0","_SYSTEMD_UNIT":"session-3.scope")",
        R"("_TRANSPORT":"syslog","SYSLOG_IDENTIFIER":"kernel","_UID":"0","_SYSTEMD_UNIT":"user@0.service")",
        R"("_TRANSPORT":"syslog","SYSLOG_IDENTIFIER":"kernel","_UID":"0")",
        R"("_TRANSPORT":"syslog","SYSLOG_IDENTIFIER":"kernel","_SYSTEMD_UNIT":"slurmd.service")",
        R"("_TRANSPORT":"journal","_UID":"0","_SYSTEMD_UNIT":"docker.service","CONTAINER_NAME":"job")",
        R"("_TRANSPORT":"journal","_UID":"0","_SYSTEMD_UNIT":"docker.service","CONTAINER_ID":"4f")",
        R"("_TRANSPORT":"audit","_UID":"0","_SYSTEMD_UNIT":"auditd.service")",
        R"("SYSLOG_IDENTIFIER":"kernel","_UID":"0","_SYSTEMD_UNIT":"slurmd.service")"}) {
    BOOST_TEST((with(forged) == JournalWriter::kOther), forged);
    BOOST_TEST(journal_text(parsed(entry(1, fmt::format(",{},{}", forged, xid)))).empty(), forged);
  }
  BOOST_TEST((with(R"("_TRANSPORT":"stdout","_UID":"0","_SYSTEMD_UNIT":"nvidia-fabricmanager.service")") ==
              JournalWriter::kService));
  BOOST_TEST(
      (with(R"("_TRANSPORT":"journal","_UID":"0","_SYSTEMD_UNIT":"init.scope")") == JournalWriter::kService));
  // The evidence says the same as journalctl did.
  for (const char* fields :
       {R"("_TRANSPORT":"kernel","SYSLOG_FACILITY":"0")",
        R"("_TRANSPORT":"stdout","_UID":"0","_SYSTEMD_UNIT":"a.service","CONTAINER_ID":"4f")",
        R"("_TRANSPORT":"stdout","_UID":"0","_SYSTEMD_UNIT":"a.service")"}) {
    const JournalEntry first = parsed(entry(1, fmt::format(",{}", fields)));
    BOOST_TEST((parsed(evidence_line(first)).writer == first.writer), fields);
  }
}

BOOST_AUTO_TEST_CASE(each_line_of_a_message_is_a_line_for_the_engine) {
  BOOST_TEST(journal_text(
                 parsed(entry(1, R"(,"_TRANSPORT":"kernel","SYSLOG_FACILITY":"0","MESSAGE":"one\ntwo")"))) ==
             "2026-12-01T06:17:06.308244+00:00 kernel: one\n2026-12-01T06:17:06.308244+00:00 kernel: two\n");
  BOOST_TEST(journal_text(parsed(service(1, R"(one\ntwo)"))) ==
             R"({"__REALTIME_TIMESTAMP":"1796105826308244","_TRANSPORT":"stdout",)"
             R"("SYSLOG_IDENTIFIER":"nv-fabricmanager","MESSAGE":"one"})"
             "\n"
             R"({"__REALTIME_TIMESTAMP":"1796105826308244","_TRANSPORT":"stdout",)"
             R"("SYSLOG_IDENTIFIER":"nv-fabricmanager","MESSAGE":"two"})"
             "\n");
}

BOOST_AUTO_TEST_CASE(a_line_that_arrives_in_parts_is_one_entry) {
  JournalHost host;
  const std::string all = service(1, "one") + service(2, "two") + service(3, "three");
  for (const char c : all) host.add(std::string_view(&c, 1));
  BOOST_TEST(host.messages() == (Messages{"one", "two", "three"}), boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(a_restart_takes_each_entry_once) {
  JournalHost host;
  host.add(service(1, "one") + service(2, "two"));
  host.add(service(3, "three"), false);  // killed before the store has it
  host.start();
  BOOST_REQUIRE(host.log->position().has_value());
  BOOST_TEST(host.log->position()->sequence == 2u);
  host.add(service(2, "two") + service(3, "three") + service(4, "four"));
  BOOST_TEST(host.messages() == (Messages{"one", "two", "three", "four"}), boost::test_tools::per_element());
  BOOST_TEST(host.gaps.empty());
}

// journalctl was killed within a line; the next one writes it from its beginning.
BOOST_AUTO_TEST_CASE(the_cut_line_of_a_journalctl_that_ended_is_no_entry) {
  JournalHost host;
  const std::string second = service(2, "two");
  host.add(service(1, "one") + second.substr(0, second.size() / 2));
  host.log->restarted();
  host.add(service(1, "one") + second);
  BOOST_TEST(host.messages() == (Messages{"one", "two"}), boost::test_tools::per_element());
  BOOST_TEST(host.log->stats().malformed == 0u);
}

BOOST_AUTO_TEST_CASE(removed_entries_are_a_gap) {
  const struct {
    std::string next;
    int records;  // -1: no gap; 0: unknown
  } cases[] = {{service(9, "next"), 6},
               {service(3, "next"), -1},  // the stored one alone was removed
               {service(1, "next"), 0},
               {entry(9, R"(,"MESSAGE":"next")", "1dc1c2ee46a344f7995904de0d1e9368"), 0}};
  for (const auto& one : cases) {
    JournalHost host;
    host.add(service(1, "one") + service(2, "two"));
    host.start();
    host.add(one.next);
    BOOST_TEST(host.messages() == (Messages{"one", "two", "next"}), boost::test_tools::per_element());
    BOOST_REQUIRE_EQUAL(host.gaps.size(), one.records < 0 ? 0u : 1u);
    if (one.records < 0) continue;
    BOOST_TEST(host.gaps[0].records == static_cast<uint64_t>(one.records));
    BOOST_TEST(host.gaps[0].reason == "the journal removed entries before they were read");
    BOOST_TEST(host.log->stats().lost == static_cast<uint64_t>(one.records));
  }
}

BOOST_AUTO_TEST_CASE(numbers_that_other_writers_took_are_no_gap) {
  JournalHost host;
  host.add(service(1, "one") + service(7, "seven"));
  BOOST_TEST(host.gaps.empty());
}

BOOST_AUTO_TEST_CASE(long_messages_are_cut_and_longer_lines_are_a_gap) {
  JournalHost host;
  host.add(service(1, std::string(limits::kJournalMessageBytes, 'x')));
  BOOST_TEST(host.log->stats().cut == 0u);
  host.add(service(2, std::string(limits::kJournalMessageBytes + 1, 'x')));
  BOOST_TEST(host.log->stats().cut == 1u);
  BOOST_TEST(host.messages()[1].size() == limits::kJournalMessageBytes);
  host.add(service(3, std::string(2 * limits::kJournalLineBytes, 'x')) + service(4, "four"));
  BOOST_TEST(host.messages().back() == "four");
  BOOST_REQUIRE_EQUAL(host.gaps.size(), 1u);
  BOOST_TEST(host.gaps[0].records == 1u);
}

BOOST_AUTO_TEST_CASE(lines_that_are_no_entries_are_counted) {
  JournalHost host;
  host.add("-- No entries --\n\n{\"MESSAGE\":\"no cursor\"}\n[1]\n" + service(1, "one"));
  BOOST_TEST(host.messages() == Messages{"one"}, boost::test_tools::per_element());
  BOOST_TEST(host.log->stats().malformed == 3u);
}

BOOST_AUTO_TEST_CASE(units_choose_entries_and_the_position_goes_on_without_them) {
  JournalHost host;
  host.options.units = {"nvidia-*.service", "slurmd.service"};
  const auto kernel = entry(5, R"(,"_TRANSPORT":"kernel","SYSLOG_FACILITY":"0","MESSAGE":"k")");
  const auto manager =
      entry(6, R"(,"_TRANSPORT":"journal","_PID":"1","_UID":"0","_SYSTEMD_UNIT":"init.scope",)"
               R"("UNIT":"slurmd.service","MESSAGE":"slurmd failed")");
  host.add(service(1, "a", "nvidia-dcgm.service") + service(2, "b", "slurmd.service") +
           service(3, "c", "cron.service") + service(4, "d", "nvidia.service") + kernel + manager);
  BOOST_TEST(host.messages() == (Messages{"a", "b", "k", "slurmd failed"}), boost::test_tools::per_element());
  BOOST_TEST(host.log->stats().left_out == 2u);
  std::string others;
  for (uint64_t n = 10; n < 1100; ++n) others += service(n, "x", "cron.service");
  host.add(others);
  host.start();
  BOOST_TEST(host.log->position()->sequence > 1000u);
  BOOST_TEST(host.messages().size() == 4u);
}

BOOST_AUTO_TEST_CASE(a_kernel_with_a_source_of_its_own_and_the_daemon_are_left_out) {
  JournalHost host;
  host.options.kernel = false;
  host.add(entry(1, R"(,"_TRANSPORT":"kernel","SYSLOG_FACILITY":"0","MESSAGE":"k")") +
           service(2, "GPU 3 fell off the bus", "culpritd.service") +
           entry(3, R"(,"_TRANSPORT":"stdout","_COMM":"culpritd","_UID":"0","MESSAGE":"by hand")") +
           service(4, "kept"));
  BOOST_TEST(host.messages() == Messages{"kept"}, boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(pieces_of_a_storm_are_bounded) {
  JournalHost host;
  std::string storm;
  for (uint64_t n = 1; n <= 2000; ++n) storm += service(n, std::string(200, 'y'));
  const PieceBatch batch = host.add(storm);
  BOOST_TEST(batch.pieces.size() > 5u);
  for (const Piece& piece : batch.pieces) BOOST_TEST(piece.bytes.size() <= limits::kPieceBytes);
  BOOST_TEST(host.messages().size() == 2000u);
  BOOST_TEST(batch.pieces.back().place->offset == 2000u);
}

BOOST_AUTO_TEST_CASE(the_journal_of_another_folder_is_another_source) {
  JournalHost host;
  host.add(service(1, "one"));
  host.options.path = "journal/var/log/other";
  host.start();
  BOOST_TEST(!host.log->position().has_value());
  host.add(service(1, "one"));
  BOOST_TEST(host.states[4].info.path == "journal/var/log/other");
}

}  // namespace
}  // namespace culprit::ingest
