#include "store/bucket/object.h"

#include <fmt/format.h>

#include <boost/test/unit_test.hpp>

#include "../archive_fixture.h"
#include "store/bucket/merge.h"
#include "store/bucket/sha256.h"

using namespace culprit;
using namespace culprit::store;
using namespace culprit::store::testing;
using namespace culprit::store::bucket;

namespace {

// The bucket: objects in the order of their numbers.
struct Objects {
  std::vector<MadeObject> made;
  FramePlace at;
  std::map<uint64_t, uint64_t> reached;  // by epoch of the log

  // As a process does it: with `restart` each object is made by a new one.
  void put(Archive& archive, MemoryFiles& files, const std::string& folder, bool restart) {
    auto maker = std::make_unique<ObjectMaker>(files, folder);
    const auto segments = archive.evidence_segments();
    BOOST_REQUIRE(segments.has_value());
    for (;;) {
      if (restart) maker = std::make_unique<ObjectMaker>(files, folder);
      auto one = maker->make(*segments, at, {archive.epoch(), 1, made.size() + 1}, 9);
      BOOST_REQUIRE_MESSAGE(one.has_value(), (one ? "" : one.error().text));
      if (!*one) {
        BOOST_TEST((reached == archive.evidence_logs()));  // all that is committed
        return;
      }
      at = (*one)->to;
      for (const auto& [epoch, sequence] : (*one)->reached) {
        BOOST_TEST(sequence > reached[epoch]);
        reached[epoch] = sequence;
      }
      made.push_back(std::move(**one));
    }
  }

  ObjectIndex index(size_t n) const {
    const auto index = parse_index(std::string_view(made[n].bytes).substr(made[n].index_at));
    BOOST_REQUIRE_MESSAGE(index.has_value(), (index ? "" : index.error().text));
    return *index;
  }

  std::vector<HostStream> joined(std::vector<HostStream> local, const StoredQuery& query,
                                 const std::vector<UnreadObject>& unread = {}) const {
    std::vector<FoundObject> found;
    for (size_t n = 0; n < made.size(); ++n) {
      found.push_back({n, "of b", n + 1, index(n).logs});
      restrict_to(found.back().logs, query);
    }
    merge(local, found, unread);
    return local;
  }
};

class MemoryHandle final : public io::FileHandle {
 public:
  explicit MemoryHandle(std::string bytes) : bytes_(std::move(bytes)) {}
  Result<size_t> read_at(char* out, size_t size, uint64_t offset) override {
    return offset > bytes_.size() ? 0 : bytes_.copy(out, size, offset);
  }
  Result<io::FileStatus> status() override { return io::FileStatus{.size = bytes_.size()}; }
  Status append(std::string_view) override { return fail(ErrorCode::kDenied, "read only"); }
  Status truncate(uint64_t) override { return fail(ErrorCode::kDenied, "read only"); }
  Status sync() override { return {}; }

 private:
  std::string bytes_;
};

Given read_joined(io::Files& files, const std::string& folder, const StoredStream& stream,
                  const Objects& objects, std::optional<size_t> missing = {}) {
  Given given;
  EvidenceSink sink;
  sink.bytes = [&](std::string_view bytes) {
    given.bytes += bytes;
    return true;
  };
  sink.gap = [&](const EvidenceGap& gap) {
    given.gaps.push_back(gap);
    given.bytes.append(gap.in_range, '.');
  };
  EvidenceRange range{{stream}};
  range.open_object = [&](uint64_t n) -> Result<SegmentReader> {
    if (n == missing) return fail(ErrorCode::kNotFound, fmt::format("object {} is missing", n));
    const MadeObject& one = objects.made.at(n);
    return SegmentReader::open(std::make_unique<MemoryHandle>(one.bytes.substr(0, one.index_at)), n + 1);
  };
  const auto damage = EvidenceReader(files, folder).read(range, sink);
  BOOST_REQUIRE(damage.has_value());
  given.damage = *damage;
  return given;
}

void must_be_whole(const Given& given, StreamId id, uint64_t size) {
  BOOST_TEST((given.bytes == bytes_of(id, 0, size)));
  BOOST_TEST(given.gaps.empty());
}

}  // namespace

BOOST_AUTO_TEST_CASE(objects_have_each_byte_of_the_archive_once_also_after_restarts) {
  for (const bool restart : {false, true}) {
    TempFolder folder;
    MemoryFiles files, none;
    Host a("a"), b("b");
    auto archive = open_archive(files, archive_options(folder));
    Objects objects;
    for (int round = 0; round < 6; ++round) {
      for (Host* host : {&a, &b}) {
        host->write(20, 700);
        BOOST_TEST(host->send_and_commit(*archive));
      }
      objects.put(*archive, files, folder.path(), restart);
    }
    BOOST_TEST(objects.made.size() >= 6u);
    const auto streams = objects.joined({}, {.job = "j1"});
    BOOST_REQUIRE(streams.size() == 4u);
    for (const HostStream& one : streams) {
      BOOST_TEST(one.stored.state.info.job == "j1");
      const Host& host = one.host == "a" ? a : b;
      const StreamId id = one.stored.state.info.id;
      must_be_whole(read_joined(none, "/none", one.stored, objects), id, host.sizes.at(id));
    }
    const auto own = stored_of(*archive, a);
    for (const HostStream& one : objects.joined(own, {.host = "a", .job = "j1"}))
      for (const Extent& extent : one.stored.extents) BOOST_TEST(!extent.is_object);
  }
}

BOOST_AUTO_TEST_CASE(frames_of_one_log_are_together_and_each_block_has_its_sum) {
  TempFolder folder;
  MemoryFiles files;
  Host a("a"), b("b");
  auto archive = open_archive(files, archive_options(folder, 1 << 20));
  for (int round = 0; round < 4; ++round)
    for (Host* host : {&a, &b}) {
      host->write(4, 700);
      BOOST_TEST(host->send_and_commit(*archive));
    }
  Objects objects;
  objects.put(*archive, files, folder.path(), false);
  BOOST_REQUIRE(objects.made.size() == 1u);
  const ObjectIndex index = objects.index(0);
  BOOST_REQUIRE(index.logs.size() == 2u);
  const auto bounds = [](const ObjectLog& log) {
    uint64_t first = UINT64_MAX, last = 0;
    for (const ObjectStream& one : log.streams) {
      first = std::min(first, one.extent.first_at);
      last = std::max(last, one.extent.last_at);
    }
    return std::pair(first, last);
  };
  BOOST_TEST(bounds(index.logs[0]).second < bounds(index.logs[1]).first);
  const std::string& bytes = objects.made[0].bytes;
  BOOST_TEST(index.blocks.sums == sha256(std::string_view(bytes).substr(0, objects.made[0].index_at)));
  const std::string& part = bytes.substr(objects.made[0].index_at);
  for (size_t at = 0; at < part.size(); at += 7) {
    std::string bent = part;
    bent[at] = static_cast<char>(bent[at] ^ 1);
    BOOST_TEST(!parse_index(bent).has_value());
  }
}

// A host's log goes to A, then to B, then to A again: each has a gap where the other has the bytes.
BOOST_AUTO_TEST_CASE(what_one_member_lacks_comes_from_the_objects_of_another) {
  TempFolder folder_a, folder_b;
  MemoryFiles files_a, files_b;
  Host host("a");
  auto a = open_archive(files_a, archive_options(folder_a, 1 << 20));
  auto b = open_archive(files_b, archive_options(folder_b, 1 << 20));
  const auto send = [&](Archive& to, uint64_t from) {  // as a forwarder: frames before are elsewhere
    const auto at = to.begin(host.origin, 1);
    BOOST_REQUIRE(at.has_value());
    if (from > at->value_or(0)) must(to.skip(host.origin.epoch, {at->value_or(0) + 1, from, 1, "elsewhere"}));
    for (const VerbatimFrame& frame : host.frames(from)) must(to.append(frame.bytes, 1));
    BOOST_REQUIRE(to.commit(1).has_value());
  };
  host.write(2);  // frames that declare sources go to both
  send(*a, 0);
  send(*b, 0);
  host.write(4);
  send(*a, 2);
  host.write(6);
  send(*b, 6);
  host.write(6);
  send(*a, 12);
  Objects of_b;
  of_b.put(*b, files_b, folder_b.path(), false);
  const StoredQuery query{.host = "a", .job = "j1"};
  for (const HostStream& one : of_b.joined(stored_of(*a, host), query)) {
    const StreamId id = one.stored.state.info.id;
    must_be_whole(read_joined(files_a, folder_a.path(), one.stored, of_b), id, host.sizes.at(id));
    // Without the object: a gap that names it, and the rest.
    const Given less = read_joined(files_a, folder_a.path(), one.stored, of_b, 0);
    BOOST_REQUIRE(less.gaps.size() == 1u);
    BOOST_TEST(less.gaps[0].gap.reason == "object 0 is missing");
    BOOST_TEST(less.gaps[0].offset == 1500u);
    BOOST_TEST(less.gaps[0].in_range == 1500u);
    BOOST_TEST((less.bytes.substr(3000) == bytes_of(id, 3000, host.sizes.at(id))));
  }
  // No object: the reason of before, with what could not be looked at.
  const Objects none;
  for (const HostStream& one : none.joined(stored_of(*a, host), query, {{"", 0, "the bucket is away"}})) {
    const Given given = read_joined(files_a, folder_a.path(), one.stored, none);
    BOOST_REQUIRE(given.gaps.size() == 1u);
    BOOST_TEST(given.gaps[0].gap.reason == "elsewhere; the bucket is away");
  }
}

BOOST_AUTO_TEST_CASE(a_source_that_may_go_on_in_an_unread_object_ends_with_a_gap) {
  TempFolder folder;
  MemoryFiles files, none;
  Host host("a");
  auto archive = open_archive(files, archive_options(folder));
  Objects objects;
  host.write(2);
  BOOST_TEST(host.send_and_commit(*archive));
  objects.put(*archive, files, folder.path(), false);
  const auto gaps = [&](const UnreadObject& unread) {
    const auto streams = objects.joined({}, {.host = "a", .job = "j1"}, {unread});
    return read_joined(none, "/none", streams.front().stored, objects).gaps;
  };
  BOOST_TEST(gaps({"of b", 1, "before"}).empty());
  BOOST_TEST(gaps({"of c", 9, "another's"}).empty());
  const auto behind = gaps({"of b", 2, "the next is missing"});
  BOOST_REQUIRE(behind.size() == 1u);
  BOOST_TEST(behind[0].gap.reason == "the next is missing");
  BOOST_TEST(behind[0].offset == 500u);
}

BOOST_AUTO_TEST_CASE(a_segment_that_went_before_it_was_put_is_counted) {
  TempFolder folder;
  MemoryFiles files;
  Host host("a");
  auto archive = open_archive(files, archive_options(folder));
  host.write(1);
  BOOST_TEST(host.send_and_commit(*archive));
  Objects objects;
  objects.put(*archive, files, folder.path(), false);
  host.write(200, 700);
  BOOST_TEST(host.send_and_commit(*archive));
  archive->set_retention(64 << 10, 0);
  must(archive->retain({}, 2));
  BOOST_TEST(archive->stats().dropped_segments > 0u);
  objects.put(*archive, files, folder.path(), false);
  uint64_t lost = 0;
  for (const MadeObject& one : objects.made) lost += one.lost_segments;
  BOOST_TEST(lost == 1u);
}
