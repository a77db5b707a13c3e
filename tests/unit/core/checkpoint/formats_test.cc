// Every format against every kind of damage: the state, and the file that is named, must be exact.
#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>

#include "core/checkpoint/series.h"
#include "writers.h"

using namespace culprit;
using namespace culprit::checkpoint;
using namespace culprit::checkpoint::writers;
namespace data_sets = boost::unit_test::data;

namespace {

using Files = std::map<std::string, std::string>;

struct Form {
  const char* name;
  Format format;
  std::string first, second;  // names of two checkpoints, the older first
  bool is_file;
  Files (*write)(const std::string& name);
  std::vector<std::string> cut;  // files whose every cut is seen at first sight
  std::string bytes;             // a file whose flipped bit is seen
  bool has_checksum;             // at first sight; else once it was seen
  std::string shard;             // a file that must not be missing
  std::string pointer, pointer_text;
};

Files one(const std::string& name, std::string bytes) { return {{name, std::move(bytes)}}; }
template <Files (*Make)()>
Files folder(const std::string& name) {
  Files out;
  for (auto& [path, bytes] : Make()) out[name + "/" + path] = bytes;
  return out;
}

Files dcp_of_two() { return dcp(); }
Files megatron_of_four() { return megatron_ranks(); }
Files deepspeed_of_four() { return deepspeed(); }
Files trainer_at_some_step() {
  Files out = trainer(0);
  out["trainer_state.json"] = "{}";
  return out;
}

template <std::string (*Make)()>
Files file(const std::string& name) {
  return one(name, Make());
}
std::string plain_zip() { return torch_zip(); }
std::string header_zip() { return torch_zip(1, 300, {false, true}); }
std::string unsummed_zip() { return torch_zip(1, 300, {true, false}); }
std::string legacy() { return torch_legacy(); }
std::string weights() { return safetensors(); }

Form of_file(const char* name, Format format, const std::string& stem, const std::string& end,
             Files (*write)(const std::string&), bool has_checksum) {
  return {name, format, stem + "100" + end, stem + "200" + end, true, write, {""}, "", has_checksum, "",
          "",   ""};
}
Form of_folder(const char* name, Format format, const std::string& stem, Files (*write)(const std::string&),
               std::vector<std::string> cut, const std::string& bytes, bool has_checksum,
               const std::string& shard) {
  return {name,           format, stem + "100", stem + "200", false, write,
          std::move(cut), bytes,  has_checksum, shard,        "",    ""};
}
Form pointed(Form form, const std::string& pointer, const std::string& text) {
  form.pointer = pointer;
  form.pointer_text = text;
  return form;
}

std::vector<Form> make_forms() {
  const std::string optimizer = "/bf16_zero_pp_rank_3_mp_rank_00_optim_states.pt";
  const std::string iteration = "latest_checkpointed_iteration.txt";
  return {
      of_file("torch", Format::kTorch, "model_", ".pt", file<plain_zip>, true),
      of_file("torch, sizes in the headers", Format::kTorch, "model_", ".pt", file<header_zip>, true),
      of_file("torch, no checksums", Format::kTorch, "model_", ".pt", file<unsummed_zip>, false),
      of_file("torch legacy", Format::kTorch, "model_", ".pth", file<legacy>, false),
      of_folder("dcp", Format::kDcp, "step-", folder<dcp_of_two>,
                {"/__0_0.distcp", "/__1_0.distcp", "/.metadata"}, "/__1_0.distcp", true, "/__0_0.distcp"),
      of_file("safetensors", Format::kSafetensors, "w_", ".safetensors", file<weights>, false),
      of_folder("safetensors, shards", Format::kSafetensors, "step_", folder<sharded_safetensors>,
                {"/model-00001-of-00002.safetensors", "/model.safetensors.index.json"},
                "/model-00002-of-00002.safetensors", false, "/model-00002-of-00002.safetensors"),
      pointed(of_folder("megatron", Format::kMegatron, "iter_0000", folder<megatron_dist>,
                        {"/__0_0.distcp", "/common.pt", "/.metadata", "/metadata.json"}, "/common.pt", true,
                        "/common.pt"),
              iteration, "200"),
      pointed(of_folder("megatron, ranks", Format::kMegatron, "iter_0000", folder<megatron_of_four>,
                        {"/mp_rank_02/model_optim_rng.pt"}, "/mp_rank_01/model_optim_rng.pt", true,
                        "/mp_rank_03/model_optim_rng.pt"),
              iteration, "200\n"),
      pointed(of_folder("deepspeed", Format::kDeepSpeed, "global_step", folder<deepspeed_of_four>,
                        {optimizer, "/mp_rank_00_model_states.pt"}, optimizer, true, optimizer),
              "latest", "global_step200"),
      of_folder("trainer", Format::kTrainer, "checkpoint-", folder<trainer_at_some_step>,
                {"/optimizer.pt", "/model.safetensors", "/trainer_state.json"}, "/model.safetensors", false,
                "/optimizer.pt"),
      of_file("lightning", Format::kLightning, "epoch=0-step=", ".ckpt", file<plain_zip>, true),
      of_folder("nemo", Format::kLightning, "model--step=", folder<nemo>, {"/weights/__0_0.distcp"},
                "/weights/__1_0.distcp", true, "/weights/common.pt"),
      of_folder("orbax", Format::kOrbax, "", folder<orbax>,
                {"/default/manifest.ocdbt", "/_CHECKPOINT_METADATA"}, "/default/d/0f1e2d", false,
                "/default/manifest.ocdbt"),
      of_folder("torchsnapshot", Format::kTorchSnapshot, "step_", folder<snapshot>,
                {"/0/model/w", "/batched/x", "/.snapshot_metadata"}, "/0/model/w", false, "/batched/x"),
  };
}

const std::vector<Form>& forms() {
  static const std::vector<Form> kForms = make_forms();
  return kForms;
}

std::ostream& operator<<(std::ostream& out, const Form& form) { return out << form.name; }

struct Case {
  explicit Case(const Form& of) : form(of) {
    for (const std::string& name : {form.first, form.second})
      for (auto& [path, bytes] : form.write(name)) disk.put(path, bytes);
    if (!form.pointer.empty()) disk.put(form.pointer, form.pointer_text);
    options.now = kLater;
    options.bytes = true;
  }
  // Both checkpoints, the older first.
  std::vector<Judged> look() {
    const Tree tree = disk.tree();
    const auto series = find_series(tree, "run");
    BOOST_REQUIRE_EQUAL(series.size(), 1);
    std::vector<Judged> out;
    for (const Found& found : series[0].checkpoints)
      out.push_back({found, check(found, tree, disk, options)});
    compared = compare(out, tree, options);
    pointers = read_pointers(tree, disk, series[0]);
    return out;
  }
  std::string newest(const std::string& file) const { return form.second + file; }
  // Nothing else than this is wrong with the newer one, and nothing with the older one.
  void expect(const std::vector<Judged>& both, State state, const std::string& file) {
    BOOST_REQUIRE_EQUAL(both.size(), 2);
    BOOST_TEST(to_string(both[0].checked.state) == "whole");
    BOOST_TEST(to_string(both[1].checked.state) == to_string(state));
    BOOST_REQUIRE(!both[1].checked.problems.empty());
    const auto& problems = both[1].checked.problems;
    BOOST_TEST(
        std::any_of(problems.begin(), problems.end(), [&](const Problem& p) { return p.file == file; }));
  }
  void remember() {
    for (const Judged& judged : look())
      for (const auto& [file, digest] : judged.checked.digests) known[file] = digest;
    options.known = &known;
  }

  const Form& form;
  Disk disk;
  CheckOptions options;
  Digests known;
  std::vector<Finding> compared;
  std::vector<Pointer> pointers;
};

}  // namespace

BOOST_AUTO_TEST_SUITE(checkpoint_formats)

BOOST_DATA_TEST_CASE(a_whole_checkpoint_is_whole, data_sets::make(forms()), form) {
  Case test(form);
  const auto both = test.look();
  BOOST_REQUIRE_EQUAL(both.size(), 2);
  for (const Judged& judged : both) {
    BOOST_TEST(to_string(judged.found.format) == to_string(form.format));
    BOOST_TEST(to_string(judged.checked.state) == "whole");
    for (const Problem& p : judged.checked.problems) BOOST_TEST_MESSAGE(p.file << " " << p.text);
  }
  BOOST_TEST(*both[0].found.step == 100);
  BOOST_TEST(*both[1].found.step == 200);
  BOOST_TEST(judge(both, test.pointers, {}, test.compared).empty());
  BOOST_TEST(newest_whole(both) == &both[1]);
}

BOOST_DATA_TEST_CASE(a_cut_at_64_places_is_torn, data_sets::make(forms()), form) {
  for (const std::string& file : form.cut)
    for (size_t place = 0; place < 64; ++place) {
      Case test(form);
      std::string& bytes = test.disk.files[test.newest(file)].bytes;
      bytes.resize(bytes.size() * place / 64);
      const auto both = test.look();
      BOOST_TEST_CONTEXT(file << " cut at " << place << "/64") {
        const bool json = file.ends_with(".json") || file.ends_with("METADATA");
        const State state = both[1].checked.state;
        BOOST_TEST((state == State::kTorn || (json && state == State::kDamaged)));
        test.expect(both, state, test.newest(file));
        BOOST_TEST(newest_whole(both) == &both[0]);
      }
    }
}

BOOST_DATA_TEST_CASE(a_cut_is_seen_by_the_headers_alone, data_sets::make(forms()), form) {
  Case test(form);
  std::string& bytes = test.disk.files[test.newest(form.cut[0])].bytes;
  bytes.resize(bytes.size() - 1);
  test.options.bytes = false;
  test.expect(test.look(), State::kTorn, test.newest(form.cut[0]));
}

BOOST_DATA_TEST_CASE(a_flipped_bit_is_damaged, data_sets::make(forms()), form) {
  for (const size_t bit : {3u, 1700u}) {
    Case test(form);
    if (!form.has_checksum) test.remember();
    std::string& bytes = test.disk.files[test.newest(form.bytes)].bytes;
    // In the data: bytes between the records of a zip have no checksum.
    const size_t at = bytes.starts_with("PK") ? 300 + bit % 64 : bytes.size() - 1 - bit / 8;
    bytes[at] = static_cast<char>(bytes[at] ^ (1 << bit % 8));
    test.expect(test.look(), State::kDamaged, test.newest(form.bytes));
  }
}

BOOST_DATA_TEST_CASE(a_missing_shard_is_torn, data_sets::make(forms()), form) {
  if (form.shard.empty()) return;  // a single file
  Case test(form);
  test.disk.files.erase(test.newest(form.shard));
  test.expect(test.look(), State::kTorn, test.newest(form.shard));
}

BOOST_DATA_TEST_CASE(what_changed_within_a_minute_is_being_written, data_sets::make(forms()), form) {
  Case test(form);
  std::string& bytes = test.disk.files[test.newest(form.cut[0])].bytes;
  bytes.resize(bytes.size() / 2);
  test.disk.files[test.newest(form.cut[0])].modified_ns = kLater - 59 * kNsPerSecond;
  BOOST_TEST(to_string(test.look()[1].checked.state) == "writing");
  test.options.settled = true;  // the job has ended
  BOOST_TEST(to_string(test.look()[1].checked.state) == "torn");
  test.options.settled = false;
  test.options.now += 2 * kNsPerSecond;
  BOOST_TEST(to_string(test.look()[1].checked.state) == "torn");
}

BOOST_DATA_TEST_CASE(a_pointer_ahead_is_an_alarm, data_sets::make(forms()), form) {
  Case test(form);
  if (form.pointer.empty()) {
    test.disk.files["latest"].target = form.second;
    test.disk.files["latest"].modified_ns = kWritten;
  }
  std::string& bytes = test.disk.files[test.newest(form.cut[0])].bytes;
  bytes.resize(bytes.size() / 2);
  const auto torn = test.look();
  const auto findings = judge(torn, test.pointers, {}, test.compared);
  BOOST_REQUIRE_EQUAL(findings.size(), 1);
  BOOST_TEST(to_string(findings[0].remark) == "pointer-ahead");
  BOOST_TEST(findings[0].alarm);
  const auto plan = plan_fall_back(torn, test.pointers);
  BOOST_REQUIRE(plan.has_value());
  BOOST_TEST(plan->to == form.first);
  BOOST_TEST(plan->aside == std::vector<std::string>{form.second});
  BOOST_REQUIRE_EQUAL(plan->rewrite.size(), 1);
  const std::string text = plan->rewrite[0].second;
  BOOST_TEST((text == form.first || text == "100" || text == "100\n"));
}

BOOST_DATA_TEST_CASE(a_changed_size_is_seen_by_memory, data_sets::make(forms()), form) {
  if (form.is_file) return;
  Case test(form);
  test.remember();
  std::string& bytes = test.disk.files[test.newest(form.bytes)].bytes;
  bytes.resize(bytes.size() - 5);
  test.expect(test.look(), State::kTorn, test.newest(form.bytes));
}

BOOST_AUTO_TEST_SUITE_END()
