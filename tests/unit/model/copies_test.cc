#include "model/copies.h"

#include <boost/test/unit_test.hpp>

namespace culprit::copies {
namespace {

Manifest checkpoint_of_two_files() {
  Manifest m;
  m.root = "/ckpt";
  m.path = "run/step-1";
  m.format = "torch";
  m.step = 1;
  m.files = {{"run/step-1/a", 4, 5, 0640, 1000, 1000, {}}, {"run/step-1/b/c", 0, 6, 0600, 1000, 1000, {}}};
  m.pointers = {{"run/latest", "step-1\n"}};
  return m;
}

std::optional<Message> read_back(const Message& message) {
  Splitter splitter;
  splitter.allow(kMessageBytes);
  splitter.add(encode(message));
  auto out = splitter.next();
  return out ? *out : std::nullopt;
}

BOOST_AUTO_TEST_SUITE(copy_messages)

BOOST_AUTO_TEST_CASE(every_message_is_read_as_it_was_written) {
  const Message all[] = {Hello{1, "node-1", 7, "b:1"},
                         Welcome{1, "node-2"},
                         Refused{true, "no room"},
                         Offer{checkpoint_of_two_files()},
                         Accepted{false, {4, 0}},
                         Data{1, 9, "abc"},
                         FileEnd{1, Digest{3}},
                         FileStored{1, true},
                         Ack{7},
                         Commit{},
                         Stored{},
                         List{},
                         Listing{{{"id", "node-1", "/ckpt", "a", "torch", 3, 4, 5, 6, 7, 8}}},
                         Get{"node-1", "id"},
                         Found{checkpoint_of_two_files()},
                         Fetch{2},
                         Ask{},
                         Answer{{"b:1"}, {{"/ckpt", "a", "b:1", "copied", 9}}},
                         Reading{3}};
  for (const Message& message : all) BOOST_TEST_CONTEXT(name_of(message)) {
      const auto again = read_back(message);
      BOOST_REQUIRE(again);
      BOOST_TEST((*again == message));
    }
}

BOOST_AUTO_TEST_CASE(a_manifest_that_leads_out_of_its_folder_is_refused) {
  for (const char* path :
       {"", "/etc/passwd", "../a", "a/../b", "a/..", "./a", "a//b", "a/", "a\nb", "a\x1b"}) {
    Manifest m = checkpoint_of_two_files();
    m.files[0].path = path;
    BOOST_TEST(!manifest_from(to_bytes(m)), path);
    BOOST_TEST(!is_safe_path(path), path);
  }
  for (const char* root : {"", "ckpt", "/a/../b", "/a//b"}) {
    Manifest m = checkpoint_of_two_files();
    m.root = root;
    BOOST_TEST(!manifest_from(to_bytes(m)), root);
  }
  BOOST_TEST(is_safe_path("..a/b..c/..."));
  BOOST_TEST(!is_safe_path(std::string(256, 'a')));
}

BOOST_AUTO_TEST_CASE(a_manifest_has_limits) {
  Manifest twice = checkpoint_of_two_files();
  twice.files[1].path = twice.files[0].path;
  BOOST_TEST(!manifest_from(to_bytes(twice)));
  Manifest huge = checkpoint_of_two_files();
  huge.files[0].size = kFileBytes + 1;
  BOOST_TEST(!manifest_from(to_bytes(huge)));
  Manifest many = checkpoint_of_two_files();
  many.files.clear();
  for (size_t i = 0; i < kFiles; ++i)
    many.files.push_back({"run/step-1/" + std::to_string(i), kFileBytes, 0, 0600, 0, 0, {}});
  BOOST_TEST(!manifest_from(to_bytes(many)));  // more than any disk
  for (File& file : many.files) file.size = 1;
  BOOST_TEST(to_bytes(many).size() < kMessageBytes);
  BOOST_TEST(manifest_from(to_bytes(many)).has_value());
  Manifest setuid = checkpoint_of_two_files();
  setuid.files[0].mode = 04755;
  BOOST_TEST(!manifest_from(to_bytes(setuid)));
  BOOST_TEST(!manifest_from(""));
}

BOOST_AUTO_TEST_CASE(the_owner_is_known_where_all_files_are_of_one_user) {
  Manifest m = checkpoint_of_two_files();
  BOOST_TEST((owner_of(m) == 1000u));
  m.files[1].uid = 0;
  BOOST_TEST(!owner_of(m));
  BOOST_TEST(series_of(m) == "/ckpt/run");
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace culprit::copies
