#include "ingest/pickle.h"
#include "base/limits.h"

#include <boost/test/unit_test.hpp>

using namespace culprit;
using namespace culprit::ingest;
using namespace std::string_literals;

BOOST_AUTO_TEST_SUITE(pickle)

namespace {

using Kind = DataTree::Kind;

std::string show(const DataTree& tree, DataTree::Ref at) {
  switch (tree.kind(at)) {
    case Kind::kNull:
      return "None";
    case Kind::kBool:
      return tree.truth(at) ? "True" : "False";
    case Kind::kText:
      return "'" + std::string(tree.text(at)) + "'";
    case Kind::kInt:
      return std::to_string(*tree.integer(at));
    case Kind::kReal:
      return "real";
    default:
      break;
  }
  std::string out = tree.kind(at) == Kind::kList ? "[" : "{";
  for (const auto member : tree.members(at)) out += show(tree, member) + " ";
  return out + (tree.kind(at) == Kind::kList ? "]" : "}");
}

std::string shown(const std::string& bytes) {
  const auto read = read_pickle(bytes);
  if (!read) return read.error().text;
  std::string out = read->root ? show(read->tree, *read->root) : "nothing";
  return read->problem.empty() ? out : out + " | " + read->problem;
}

std::string little(uint64_t n, size_t width) {
  std::string out;
  for (size_t i = 0; i < width; ++i) out += static_cast<char>(n >> (8 * i));
  return out;
}

}  // namespace

BOOST_AUTO_TEST_CASE(data_of_every_protocol_is_read) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"(dp0\nVkey\np1\nI01\nsVn\nL-12L\ns."s, "{'key' True 'n' -12 }"},
      {"(lp0\nI7\naF1.5\naNaS'it'\na."s, "[7 real None 'it' ]"},
      {"(I1\nI2\nt."s, "[1 2 ]"},
      {"\x80\x02}q\x00(X\x01\x00\x00\x00"s + "aq\x01K\x05X\x01\x00\x00\x00"s + "bM\x34\x12u."s,
       "{'a' 5 'b' 4660 }"},
      {"\x80\x02]q\x00(J\xff\xff\xff\xff\x88\x89N\x86q\x01h\x01"s + "e."s,
       "[-1 True [False None ] [False None ] ]"},
      {"\x80\x02\x8a\x02\x00\x80."s, "-32768"},
      {"\x80\x02\x8a\x00."s, "0"},
      {"\x80\x02\x8a\x09\x01\x01\x01\x01\x01\x01\x01\x01\x01."s, "None"},
      {"\x80\x02G\x3f\xf8\x00\x00\x00\x00\x00\x00."s, "real"},
      {"\x80\x04\x95\x0a\x00\x00\x00\x00\x00\x00\x00}\x94\x8c\x01k\x94\x8c\x01v\x94s."s, "{'k' 'v' }"},
      {"\x80\x05)\x85\x94h\x00\x86."s, "[[[] ] [[] ] ]"},
      {"\x80\x05\x8d"s + little(2, 8) + "ab.", "'ab'"},
      {"\x80\x02(K\x01K\x02\x31K\x03\x32\x30."s, "3"},  // POP_MARK, DUP, POP
  };
  for (const auto& [bytes, expected] : cases) BOOST_TEST(shown(bytes) == expected);
}

BOOST_AUTO_TEST_CASE(every_opcode_that_is_no_data_is_refused_by_its_name) {
  const std::vector<std::pair<std::string, std::string>> cases = {{"cos\nsystem\n", "GLOBAL"},
                                                                  {"\x93", "STACK_GLOBAL"},
                                                                  {"R", "REDUCE"},
                                                                  {"b", "BUILD"},
                                                                  {"ios\nsystem\n", "INST"},
                                                                  {"o", "OBJ"},
                                                                  {"\x81", "NEWOBJ"},
                                                                  {"\x92", "NEWOBJ_EX"},
                                                                  {"\x82\x01", "EXT1"},
                                                                  {"\x83", "EXT2"},
                                                                  {"\x84", "EXT4"},
                                                                  {"Pid\n", "PERSID"},
                                                                  {"Q", "BINPERSID"},
                                                                  {"\x97", "NEXT_BUFFER"},
                                                                  {"\x8f", "EMPTY_SET"},
                                                                  {"\x90", "ADDITEMS"},
                                                                  {"\x91", "FROZENSET"},
                                                                  {"\x98", "READONLY_BUFFER"}};
  for (const auto& [opcode, name] : cases) {
    const auto read = read_pickle("\x80\x02N"s + opcode + ".");
    BOOST_REQUIRE(!read);
    BOOST_TEST(read.error().text == "is refused: opcode " + name + " at byte 3 is none of plain data");
  }
}

BOOST_AUTO_TEST_CASE(what_stands_before_a_cut_is_kept) {
  const std::string whole = "\x80\x02}(X\x01\x00\x00\x00"s + "a](K\x01K\x02K\x03"s + "eu."s;
  for (size_t cut = 0; cut < whole.size(); ++cut) {
    const auto read = read_pickle(whole.substr(0, cut));
    BOOST_REQUIRE(read);
    BOOST_TEST(!read->problem.empty());
    BOOST_TEST(read->offset <= cut);
  }
  BOOST_TEST(shown(whole.substr(0, whole.size() - 4)) == "{'a' [1 2 ] } | is cut off");
}

BOOST_AUTO_TEST_CASE(hostile_bytes_end_in_a_sentence) {
  const std::string huge = "\xff\xff\xff\xff\xff\xff\xff\x7f"s;
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"", "is cut off"},
      {"\x80\x07N.", "protocol 7"},
      {"\x80\x05\x8d"s + huge + "abc.", "is cut off"},
      {"\x80\x02X\xff\xff\xff\xff"s + "abc.", "is cut off"},
      {"\x80\x02\x8b\xff\xff\xff\x7f."s, "is cut off"},
      {"\x80\x02"s + std::string(limits::kNesting + 1, '(') + ".", "nested too deeply"},
      {"\x80\x02h\x05."s, "asks for a value"},
      {"\x80\x02.", "a value is missing"},
      {"\x80\x02"
       "e.",
       "a mark is missing"},
      {"\x80\x02N(K\x01"
       "e.",
       "without their list"},
      {"\x80\x02}(K\x01u.", "a key has no value"},
      {"\x80\x02(0.", "a value is missing"},
      {"\x80\x02q\x01.", "a value is missing"},
      {"Ix\n.", "a number is none"},
      {"Vnever ends", "is cut off"},
      {"\x80\x02\xfe.", "no opcode 0xfe"},
  };
  for (const auto& [bytes, expected] : cases) {
    const auto read = read_pickle(bytes);
    BOOST_REQUIRE(read);
    BOOST_TEST(read->problem.find(expected) != std::string::npos, read->problem << " for " << expected);
  }
}

BOOST_AUTO_TEST_CASE(a_list_that_is_its_own_member_and_growth_without_bytes_are_bounded) {
  const auto cycle = read_pickle("\x80\x02]q\x00h\x00"s + "a."s);
  BOOST_REQUIRE(cycle && cycle->root);
  BOOST_TEST(cycle->tree.members(*cycle->root).size() == 1u);
  BOOST_TEST(cycle->tree.members(*cycle->root)[0] == *cycle->root);
  // Each list has the previous one twice: 2^30 values if they were expanded.
  std::string laughs = "\x80\x02]q\x00"s;
  for (int i = 0; i < 30; ++i) laughs += "](h\x00h\x00"s + "eq\x00"s;
  const auto read = read_pickle(laughs + ".");
  BOOST_REQUIRE(read && read->root);
  BOOST_TEST(read->problem.empty());
}

BOOST_AUTO_TEST_CASE(nesting_beyond_31_is_refused_however_it_is_written) {
  const auto times = [](std::string_view part, size_t n) {
    std::string out;
    for (size_t i = 0; i < n; ++i) out += part;
    return out;
  };
  for (const size_t depth : {limits::kNesting, limits::kNesting + 1, size_t{100'000}}) {
    const bool sound = depth <= limits::kNesting;
    std::string lists = "\x80\x02]q\x01"s;  // each has the one before
    for (size_t i = 1; i < depth; ++i) lists += "]h\x01"s + "aq\x01";
    for (const std::string& bytes : {"\x80\x02N" + times("\x85", depth) + ".", lists + "."}) {
      const auto read = read_pickle(bytes);
      BOOST_REQUIRE(read);
      BOOST_TEST(read->problem == (sound ? "" : "is nested too deeply"), read->problem << " at " << depth);
    }
    const std::string open = times("[", depth);
    for (const std::string& text :
         {open + times("]", depth), open, times("{\"a\":", depth) + "1" + times("}", depth)}) {
      const ReadTree read = read_json_tree(text);
      BOOST_TEST((read.problem == "is nested too deeply") == !sound, read.problem << " at " << depth);
    }
  }
}

BOOST_AUTO_TEST_CASE(json_is_read_as_far_as_it_is_sound) {
  const std::string whole = R"({"a": [1, -2, "x"], "b": {"c": null, "d": true, "e": 1.5}})";
  const ReadTree read = read_json_tree(whole);
  BOOST_REQUIRE(read.root);
  BOOST_TEST(read.problem.empty());
  BOOST_TEST(show(read.tree, *read.root) == "{'a' [1 -2 'x' ] 'b' {'c' None 'd' True 'e' real } }");
  for (size_t cut = 1; cut < whole.size(); ++cut) {
    const ReadTree part = read_json_tree(whole.substr(0, cut));
    BOOST_TEST((part.root && !part.problem.empty()));
  }
  BOOST_TEST(!read_json_tree(std::string(3000, '[')).problem.empty());
  BOOST_TEST(!read_json_tree("").root);
}

BOOST_AUTO_TEST_SUITE_END()
