#include "core/checkpoint/object_pickle.h"

#include <boost/test/unit_test.hpp>

#include "writers.h"

using namespace culprit;
using namespace culprit::checkpoint;
using namespace culprit::checkpoint::writers;

namespace {

Checked check_dcp(const std::string& index, const std::string& shard) {
  Disk disk;
  disk.put("step_1/.metadata", index);
  disk.put("step_1/__0_0.distcp", shard);
  CheckOptions options;
  options.bytes = true;
  options.now = kLater;
  const Tree tree = disk.tree();
  return check(find_series(tree, "x")[0].checkpoints[0], tree, disk, options);
}

}  // namespace

BOOST_AUTO_TEST_SUITE(checkpoint_pickle)

BOOST_AUTO_TEST_CASE(an_index_that_names_anything_else_is_refused) {
  const std::string shard = torch_zip();
  BOOST_TEST(to_string(check_dcp(dcp_index({{"__0_0.distcp", {shard}}}), shard).state) == "whole");
  const std::vector<std::pair<std::string, std::string>> calls = {
      {"cposix\nsystem\n(" + text("touch /tmp/owned") + "tR0", "posix.system"},
      {"cbuiltins\neval\n(" + text("1") + "tR0", "builtins.eval"},
      {"ctorch\nload\n0", "torch.load"},
      {"c__builtin__\nexec\n0", "__builtin__.exec"},
      {"\x8c\x02os\x8c\x05popen\x93"s + "0", "os.popen"},
  };
  for (const auto& [code, name] : calls) {
    std::string index = dcp_index({{"__0_0.distcp", {shard}}});
    index.insert(2, code);
    const Checked seen = check_dcp(index, shard);
    BOOST_TEST(to_string(seen.state) == "unread");
    BOOST_TEST(seen.problems.at(0).text ==
               "is refused: its pickle names " + name + ", which no such index has");
  }
}

BOOST_AUTO_TEST_CASE(an_index_cannot_name_a_file_outside_its_folder) {
  const std::string shard = torch_zip();
  for (const char* name : {"../../etc/passwd", "/etc/passwd", "a/../../b"}) {
    const Checked seen = check_dcp(dcp_index({{name, {shard}}}), shard);
    BOOST_TEST(to_string(seen.state) == "unread");
    BOOST_TEST(seen.problems.at(0).text == "is refused: it names a file outside the folder");
  }
}

BOOST_AUTO_TEST_CASE(overlapping_pieces_and_records_are_damaged) {
  const std::string shard = torch_zip();
  std::string index = dcp_index({{"__0_0.distcp", {shard, shard}}});
  const size_t at = index.rfind(text("offset")) + text("offset").size() + 1;
  index[at] = 1, index[at + 1] = 0;
  BOOST_TEST(to_string(check_dcp(index, shard + shard).state) == "damaged");
}

BOOST_AUTO_TEST_CASE(damage_of_a_pickle_is_an_error) {
  class Any : public PickleVisitor {
   public:
    bool allowed(std::string_view) override { return true; }
    void on_fields(std::string_view, std::span<const PickleValue>) override {}
    void on_reference(std::span<const PickleValue>) override {}
  } any;
  for (const std::string& bytes : std::vector<std::string>{
           "."s,     "R."s,     "b."s,        "Q."s,    "(e."s,          "u."s,    "t."s,
           "a."s,    "h\x05."s, "\x80\x09."s, "((("s,   "K\x01K\x02s."s, "\x81."s, "cos\nsystem"s,
           "\xff."s, "o."s,     "(o."s,       "]((e."s, "\x93."s,        "I\n."s,  "1."s}) {
    const auto read = read_objects(bytes, any);
    BOOST_TEST(!read.has_value(), bytes);
  }
  // Containers that grow after others, and one that holds itself.
  BOOST_TEST(read_objects("]q\x00}K\x01h\x00sh\x00(K\x05K\x06"s + "e0."s, any).has_value());
  BOOST_TEST(read_objects("]q\x00h\x00"s + "ah\x00h\x00"s + "a."s, any).has_value());
  BOOST_TEST(read_objects("\x80\x04\x95\x05\x00\x00\x00\x00\x00\x00\x00)\x94h\x00\x86."s, any).has_value());
}

BOOST_AUTO_TEST_SUITE_END()
