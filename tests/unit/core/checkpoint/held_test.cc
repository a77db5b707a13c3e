// The readers of checkpoints hold at most limits::kHeldPerByte for each byte that they read.
#include <fmt/format.h>

#include <boost/test/unit_test.hpp>

#include "base/heap_account.h"
#include "base/limits.h"
#include "writers.h"

using namespace culprit;
using namespace culprit::checkpoint;
using namespace culprit::checkpoint::writers;

BOOST_AUTO_TEST_SUITE(checkpoint_held)

namespace {

constexpr size_t kBytes = 4 << 20;

std::string times(std::string_view part, size_t bytes = kBytes) {
  std::string out;
  while (out.size() < bytes) out += part;
  return out;
}

// `part` with each number from 0 on.
template <class Part>
std::string numbered(const Part& part, size_t bytes = kBytes) {
  std::string out;
  for (size_t i = 0; out.size() < bytes; ++i) out += part(i);
  return out;
}

struct Looked {
  Checked checked;
  uint64_t held = 0;  // at most
};

Looked look(Disk& disk) {
  CheckOptions options;
  options.bytes = true;
  options.now = kLater;
  const Tree tree = disk.tree();
  const auto series = find_series(tree, "x");
  HeapAccount account;
  Looked out;
  const HeapScope counted(&account);
  out.checked = check(series.at(0).checkpoints.at(0), tree, disk, options);
  out.held = account.drain_peak();
  return out;
}

std::string legacy(const std::string& object) {
  return "\x80\x02\x8a\nl\xfc\x9c\x46\xf9 j\xa8P\x19."s + "\x80\x02M\xe9\x03."s + "\x80\x02}q\x00."s + object;
}

std::string safetensors_of(const std::string& header) {
  std::string out;
  put<uint64_t>(out, header.size());
  return out + header;
}

}  // namespace

BOOST_AUTO_TEST_CASE(hostile_files_are_refused_within_the_budget) {
  const std::string index = "step_1/.metadata", torch = "model_1.pt", weights = "w_1.safetensors";
  const std::string shards = "step_1/model.safetensors.index.json", snapshot = "snap_1/.snapshot_metadata";
  const struct {
    const char* name;
    std::string path, text;
  } kFiles[] = {
      {"nones", index, "\x80\x02(" + times("N") + "t."},
      {"empty lists", index, "\x80\x02(" + times("]") + "t."},
      {"tuples of one", index, "\x80\x02(" + times("N\x85") + "t."},
      {"tuples in tuples", index, "\x80\x02N" + times("\x85") + "."},
      {"remembered values", index, "\x80\x04N" + times("\x94") + "."},
      {"copies", index, "\x80\x02(N" + times("2") + "t."},
      {"names of values", index,
       "\x80\x02N" + numbered([](size_t i) { return fmt::format("p{}\n", 2 * i + 7); }) + "."},
      {"classes", index,
       "\x80\x02(" + numbered([](size_t i) { return fmt::format("ctorch\nf{}\n", i); }) + "t."},
      {"lists that grow", index, "\x80\x02]q\x00"s + times("h\x00Nah\x00Na]0"s) + "."},
      {"an object of old files", torch, legacy("\x80\x02(" + times("]") + "t.")},
      {"storages", torch,
       legacy("\x80\x02(" + numbered([](size_t i) {
                return "(" + text("storage") + "ca\nb\n" + text(std::to_string(i)) + "NK\x01tQ0";
              }) +
              "t.")},
      {"tensors", weights, safetensors_of("{" + times(R"("":{"data_offsets":[0,0]},)") + R"("a":1})")},
      {"brackets", weights, safetensors_of("{\"a\":" + times("["))},
      {"a text", weights, safetensors_of("{\"a\":\"" + times("x") + "\"}")},
      {"files of weights", shards, R"({"weight_map":{)" + numbered([](size_t i) {
                                     return fmt::format(R"("":"{}",)", i);
                                   }) + R"("a":"b"}})"},
      {"places", snapshot,
       "manifest:\n" + numbered([](size_t i) { return fmt::format("location: {}\n", i); })},
      {"records", torch,
       [] {
         std::vector<std::pair<std::string, std::string>> records{{"a/data.pkl", "\x80\x02N."s},
                                                                  {"a/version", "3\n"s}};
         for (size_t i = 0; i < 60'000; ++i) records.emplace_back(std::to_string(i), "x");
         return zip(records);
       }()},
  };
  for (const auto& file : kFiles) {
    Disk disk;
    disk.put(file.path, file.text);
    const Looked got = look(disk);
    BOOST_TEST(got.held <= file.text.size() * limits::kHeldPerByte + limits::kHeldFree,
               file.name << ": " << got.held << " for " << file.text.size());
    BOOST_TEST_MESSAGE(file.name << ": "
                                 << static_cast<double>(got.held) / static_cast<double>(file.text.size())
                                 << " bytes a byte, "
                                 << (got.checked.problems.empty() ? "whole" : got.checked.problems[0].text));
  }
}

BOOST_AUTO_TEST_CASE(what_exceeds_the_budget_is_said) {
  Disk disk;
  disk.put("step_1/.metadata", "\x80\x02(" + times("]") + "t.");
  const Checked got = look(disk).checked;
  BOOST_TEST(to_string(got.state) == "unread");
  BOOST_REQUIRE(!got.problems.empty());
  BOOST_TEST(got.problems[0].file == "step_1/.metadata");
  BOOST_TEST(got.problems[0].text == "takes more memory than its size allows");
}

// As torch writes it: with ten remembered values for each piece.
BOOST_AUTO_TEST_CASE(an_honest_index_needs_less_than_its_budget) {
  std::string pieces;
  std::string shard;
  const std::string piece = torch_zip(7, 30);
  constexpr size_t kPieces = 20'000;
  for (size_t i = 0; i < kPieces; ++i) {
    pieces += "ctorch.distributed.checkpoint.metadata\nMetadataIndex\n\x94)\x81\x94}\x94("s + text("fqn") +
              "\x94" + text(fmt::format("model.layers.{}.weight", i)) + "\x94" + text("offset") +
              "\x94"
              "ctorch\nSize\n\x94K\x00\x85\x94\x85\x94R\x94"s +
              text("index") + "\x94K\x00ub"s;
    pieces += "ctorch.distributed.checkpoint.filesystem\n_StorageInfo\n\x94)\x81\x94}\x94("s +
              text("relative_path") + "\x94" + text("__0_0.distcp") + "\x94" + text("offset") + "\x94" +
              number(static_cast<uint32_t>(i * piece.size())) + text("length") + "\x94" +
              number(static_cast<uint32_t>(piece.size())) + "ub";
    shard += piece;
  }
  Disk disk;
  disk.put("step_1/.metadata",
           "\x80\x04"
           "ctorch.distributed.checkpoint.metadata\nMetadata\n)\x81}("s +
               text("storage_data") + "}(" + pieces + "uub.");
  disk.put("step_1/__0_0.distcp", shard);
  const Looked got = look(disk);
  BOOST_TEST(to_string(got.checked.state) == "whole");
  if (!got.checked.problems.empty()) BOOST_TEST(got.checked.problems[0].text == "");
  const size_t bytes = disk.files["step_1/.metadata"].bytes.size();
  BOOST_TEST_MESSAGE("honest: " << static_cast<double>(got.held) / static_cast<double>(bytes));
  BOOST_TEST(got.held < bytes * 6);
}

BOOST_AUTO_TEST_SUITE_END()
