#include "respond/checkpoint/copy_store.h"

#include <sys/stat.h>

#include <boost/test/unit_test.hpp>
#include <cerrno>
#include <filesystem>
#include <fstream>

#include "../../io/failing_files.h"

namespace culprit::respond::checkpoint {
namespace {

namespace fs = std::filesystem;

constexpr TimeNs kNow = 1'000;

struct StoreFixture {
  StoreFixture() {
    folder = fs::temp_directory_path() / ("copy_store." + std::to_string(::getpid()));
    fs::remove_all(folder);
    options.folder = folder.string();
    options.max_bytes = 10'000;
  }
  ~StoreFixture() { fs::remove_all(folder); }

  std::unique_ptr<CopyStore> open() {
    auto store = CopyStore::open(files, options);
    return store ? std::move(*store) : nullptr;
  }

  fs::path folder;
  io::testing::FailingFiles files;
  CopyStoreOptions options;
};

copies::Manifest offered(int64_t step, std::vector<std::string> contents, const std::string& series = "run") {
  copies::Manifest m;
  m.root = "/ckpt";
  m.path = series + "/step-" + std::to_string(step);
  m.format = "torch";
  m.step = step;
  for (size_t i = 0; i < contents.size(); ++i)
    m.files.push_back({m.path + "/" + std::to_string(i), contents[i].size(), step, 0600, 1000, 1000, {}});
  return m;
}

// Sends what is missing, in parts of three bytes.
Status store_all(CopyStore& store, const copies::Manifest& m, const std::vector<std::string>& contents) {
  auto copy = store.receive("node-1", m, kNow);
  if (!copy) return tl::unexpected(copy.error());
  if (!*copy) return {};
  const auto have = (*copy)->have();
  for (uint32_t i = 0; i < contents.size(); ++i) {
    if (const auto ready = (*copy)->catch_up(i); !ready || !*ready)
      return fail(ErrorCode::kInvalid, "what is there takes several pieces");
    for (uint64_t at = have[i]; at < contents[i].size(); at += 3)
      if (Status done = (*copy)->append({i, at, contents[i].substr(at, 3)}); !done) return done;
    const auto equal = (*copy)->end_file({i, sha256(contents[i])});
    if (!equal) return tl::unexpected(equal.error());
    if (!*equal) return fail(ErrorCode::kInvalid, "not equal");
  }
  return (*copy)->commit(kNow);
}

std::string content_of(const CopyStore& store, const CopyStore::Copy& copy, size_t file) {
  auto handle = store.open_file(copy, file);
  std::string out(1000, '\0');
  const auto n = handle ? (*handle)->read_at(out.data(), out.size(), 0) : Result<size_t>(0);
  out.resize(n ? *n : 0);
  return out;
}

const std::vector<std::string> kOld = {"old weights", ""}, kNew = {"new weights!", "state"};

BOOST_AUTO_TEST_SUITE(copy_store)

BOOST_FIXTURE_TEST_CASE(a_copy_is_served_only_when_it_is_complete, StoreFixture) {
  auto store = open();
  BOOST_REQUIRE(store);
  const copies::Manifest m = offered(1, kOld);
  {
    auto copy = store->receive("node-1", m, kNow);
    BOOST_REQUIRE(copy);
    BOOST_REQUIRE((*copy)->append({0, 0, "old "}));
    BOOST_TEST(!(*copy)->commit(1));
    BOOST_TEST(store->copies().empty());
    BOOST_TEST(!store->receive("node-1", m, kNow).has_value());  // another connection sends it
  }
  store = open();
  BOOST_TEST(store->copies().empty());
  auto copy = store->receive("node-1", m, kNow);
  BOOST_REQUIRE(copy);
  BOOST_TEST((*copy)->have() == (std::vector<uint64_t>{4, 0}), boost::test_tools::per_element());
  copy->reset();
  BOOST_REQUIRE(store_all(*store, m, kOld));
  BOOST_REQUIRE(store->copies().size() == 1);
  BOOST_TEST(content_of(*store, *store->copies()[0], 0) == kOld[0]);
  BOOST_TEST((*store->receive("node-1", m, kNow) == nullptr));
}

BOOST_FIXTURE_TEST_CASE(wrong_bytes_are_discarded, StoreFixture) {
  auto store = open();
  const copies::Manifest m = offered(1, kOld);
  auto copy = store->receive("node-1", m, kNow);
  BOOST_REQUIRE((*copy)->append({0, 0, "bad weights"}));
  const auto equal = (*copy)->end_file({0, sha256(kOld[0])});
  BOOST_TEST((equal && !*equal));
  BOOST_TEST((*copy)->have()[0] == 0u);
  BOOST_TEST(!(*copy)->append({0, 5, "x"}));  // a hole
  BOOST_TEST(!(*copy)->append({7, 0, "x"}));  // no such file
  BOOST_TEST(!(*copy)->append({1, 0, "x"}));  // longer than offered
  BOOST_TEST(!(*copy)->end_file({0, sha256("")}).has_value());
}

BOOST_FIXTURE_TEST_CASE(what_an_earlier_process_stored_is_hashed_piece_by_piece, StoreFixture) {
  options.max_bytes = 1 << 30;
  const std::vector<std::string> contents{std::string(200 << 20, 'w') + "!"};
  const copies::Manifest m = offered(1, contents);
  {
    auto store = open();
    auto copy = store->receive("node-1", m, kNow);
    for (uint64_t at = 0; at + 1 < contents[0].size(); at += 50 << 20)
      BOOST_REQUIRE((*copy)->append({0, at, contents[0].substr(at, 50 << 20)}));
  }
  auto store = open();
  auto copy = store->receive("node-1", m, kNow);
  BOOST_REQUIRE((*copy)->have()[0] == 200u << 20);
  BOOST_TEST(!(*copy)->append({0, 200u << 20, "!"}));  // not hashed yet
  int pieces = 1;
  for (; !*(*copy)->catch_up(0); ++pieces) BOOST_REQUIRE(pieces < 100);
  BOOST_TEST(pieces == 4);
  BOOST_TEST(*(*copy)->catch_up(7));  // no such file: append says so
  BOOST_REQUIRE((*copy)->append({0, 200u << 20, "!"}));
  BOOST_TEST(*(*copy)->end_file({0, sha256(contents[0])}));
}

BOOST_FIXTURE_TEST_CASE(a_damaged_copy_is_counted_and_not_served, StoreFixture) {
  const struct {
    const char* what;
    const char* ending;
  } cases[] = {{"its manifest", ".copy"}, {"a file", ".0"}};
  for (const auto& c : cases) {
    fs::remove_all(folder);
    BOOST_REQUIRE(store_all(*open(), offered(1, kOld), kOld));
    for (const auto& entry : fs::recursive_directory_iterator(folder))
      if (entry.path().extension() == c.ending) fs::resize_file(entry.path(), 5);
    const auto store = open();
    BOOST_TEST(store->counters().damaged == 1u, c.what);
    BOOST_TEST(store->copies().empty(), c.what);
  }
}

BOOST_FIXTURE_TEST_CASE(an_older_copy_leaves_only_after_a_newer_one_is_complete, StoreFixture) {
  auto store = open();
  BOOST_REQUIRE(store_all(*store, offered(1, kOld), kOld));
  {
    auto copy = store->receive("node-1", offered(2, kNew), kNow);
    BOOST_REQUIRE((*copy)->append({0, 0, "new"}));
    BOOST_TEST(store->copies().size() == 1u);
  }
  BOOST_REQUIRE(store_all(*store, offered(2, kNew), kNew));
  BOOST_REQUIRE(store->copies().size() == 1u);
  BOOST_TEST(store->copies()[0]->entry.step == 2);
  // An earlier step after a roll-back is the newest nevertheless.
  BOOST_REQUIRE(store_all(*store, offered(1, kOld), kOld));
  BOOST_TEST(store->copies()[0]->entry.step == 1);
  // Another series has its own.
  BOOST_REQUIRE(store_all(*store, offered(1, kOld, "other"), kOld));
  BOOST_TEST(store->copies().size() == 2u);
}

BOOST_FIXTURE_TEST_CASE(a_full_store_refuses_and_keeps_the_newest_of_each_series, StoreFixture) {
  options.max_bytes = 30;
  auto store = open();
  BOOST_REQUIRE(store_all(*store, offered(1, kOld), kOld));
  BOOST_REQUIRE(store_all(*store, offered(1, kNew, "other"), kNew));
  const auto refused = store->receive("node-1", offered(2, kNew), kNow);
  BOOST_TEST((!refused && refused.error().code == ErrorCode::kLimit));
  BOOST_TEST(store->copies().size() == 2u);
  BOOST_TEST(store->counters().refused_full == 1u);
  options.max_bytes = 1'000;
  options.min_free = uint64_t{1} << 60;
  store = open();
  const auto no_disk = store->receive("node-1", offered(2, kNew), kNow);
  BOOST_TEST((!no_disk && no_disk.error().code == ErrorCode::kLimit));
}

// A kill between any two calls: the calls from there on fail for good, and a new process opens the folder.
BOOST_FIXTURE_TEST_CASE(after_a_crash_at_any_call_the_newest_complete_copy_is_whole, StoreFixture) {
  for (uint64_t nth = 1;; ++nth) {
    fs::remove_all(folder);
    files.heal();
    auto store = open();
    BOOST_REQUIRE(store_all(*store, offered(1, kOld), kOld));
    const uint64_t before = files.calls();
    files.fail(nth, EIO, true);
    const Status stored = store_all(*store, offered(2, kNew), kNew);
    const bool reached = files.calls() >= before + nth;
    store.reset();
    files.heal();
    store = open();
    BOOST_TEST_CONTEXT("call " << nth) {
      BOOST_REQUIRE(store);
      const auto found = store->copies();
      BOOST_REQUIRE(!found.empty());
      for (const CopyStore::Copy* copy : found) {
        const auto& want = copy->entry.step == 1 ? kOld : kNew;
        for (size_t i = 0; i < want.size(); ++i) BOOST_TEST(content_of(*store, *copy, i) == want[i]);
      }
      if (stored) BOOST_TEST(found[0]->entry.step == 2);
      BOOST_TEST(store_all(*store, offered(2, kNew), kNew).has_value());
      BOOST_TEST(store->copies()[0]->entry.step == 2);
    }
    if (!reached) break;
  }
}

BOOST_FIXTURE_TEST_CASE(a_damaged_manifest_is_not_served, StoreFixture) {
  auto store = open();
  BOOST_REQUIRE(store_all(*store, offered(1, kOld), kOld));
  const std::string path = (folder / "node-1" / (id_of(offered(1, kOld)) + ".copy")).string();
  std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
  file.seekp(30);
  file.put('X');
  file.close();
  BOOST_TEST(open()->copies().empty());
}

BOOST_FIXTURE_TEST_CASE(a_store_that_others_can_read_is_refused, StoreFixture) {
  BOOST_REQUIRE(open());
  ::chmod(folder.c_str(), 0755);
  BOOST_TEST(!open());
}

BOOST_FIXTURE_TEST_CASE(an_old_copy_leaves_only_when_room_is_needed, StoreFixture) {
  options.max_age_ns = 500;
  options.max_bytes = 20;
  auto store = open();
  BOOST_REQUIRE(store_all(*store, offered(1, kOld), kOld));
  BOOST_TEST(!store->receive("node-2", offered(1, kNew), kNow + 500).has_value());
  BOOST_TEST(store->copies().size() == 1u);
  BOOST_TEST(store->receive("node-2", offered(1, kNew), kNow + 501).has_value());
  BOOST_TEST(store->copies().empty());
}

BOOST_FIXTURE_TEST_CASE(an_interrupted_copy_gives_way, StoreFixture) {
  options.max_bytes = 20;
  auto store = open();
  { BOOST_REQUIRE(store->receive("node-1", offered(1, kOld), kNow)); }  // reserves all, and sends nothing
  BOOST_TEST(store_all(*store, offered(1, kNew, "other"), kNew).has_value());
  BOOST_TEST(store->counters().partial == 0u);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace culprit::respond::checkpoint
