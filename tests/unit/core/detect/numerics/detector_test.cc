#include "core/detect/numerics/detector.h"

#include <algorithm>
#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>
#include <limits>

#include "job.h"

using namespace numbers;

namespace {

using Ranks = std::vector<uint32_t>;
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinite = std::numeric_limits<double>::infinity();

// The expected fault; an empty `kind`: none.
struct Case {
  std::string name;
  Change change;
  std::string kind;
  int64_t step = 0;
  Ranks ranks = {};
  int64_t slack = 0;  // allowed error of the date in steps
  Job job = {};
  bool before = false;  // changed before the reduction
};
std::ostream& operator<<(std::ostream& out, const Case& c) { return out << c.name; }

bool is(const Row& row, uint32_t rank, int64_t step) { return row.rank == rank && row.step == step; }
bool from(const Row& row, uint32_t rank, int64_t step) { return row.rank == rank && row.step >= step; }

void scale(Row& row, const std::string& name, double by) { row.values.at(name) *= by; }
void scale_local(Row& row, double by) {
  for (auto& [name, value] : row.values) {
    if (name.find('/') != std::string::npos || name == "grad_norm") value *= by;
  }
}

const std::vector<Case> kCases = {
    {"a sound job", {}, ""},
    {"a sound job of two", {}, "", 0, {}, 0, {.ranks = 2}},
    {"a sound job of one", {}, "", 0, {}, 0, {.ranks = 1}},
    {"a loss that is level and uneven, as of a tuning",
     [](Row& r) {
       std::minstd_rand random(static_cast<unsigned>(r.step * 64 + r.rank + 1));
       random.discard(3);
       r.values["loss"] = std::exp(std::normal_distribution<double>(0, 0.1)(random));
     },
     "",
     0,
     {},
     0,
     {.steps = 400}},
    {"parameters of one replica",
     [](Row& r) {
       if (from(r, 2, 60)) scale(r, "param_norm", 1.001);
     },
     "sdc",
     60,
     {2}},
    {"digests alone",
     [](Row& r) {
       if (from(r, 1, 55) && !r.digests.empty()) ++r.digests["param"];
     },
     "sdc",
     60,
     {1}},
    {"one rank's copy of the sum, once",
     [](Row& r) {
       if (is(r, 3, 50)) scale(r, "grad_norm_reduced", 1.5);
     },
     "sdc",
     50,
     {3}},
    {"a metric by another name that is always alike",
     [](Row& r) {
       r.values["weights_sum"] = 5 + static_cast<double>(r.step);
       if (from(r, 0, 70)) r.values["weights_sum"] += 1;
     },
     "sdc",
     70,
     {0}},
    {"a sum that is wrong alike everywhere",
     [](Row& r) {
       if (r.step == 61) scale(r, "grad_norm_reduced", 1.2);
     },
     "sdc",
     61,
     {}},
    {"a sum that overflows though its parts do not",
     [](Row& r) {
       if (r.step == 61) r.values["grad_norm_reduced"] = kInfinite;
     },
     "sdc",
     61,
     {}},
    {"a gradient that is not finite on one rank, once",
     [](Row& r) {
       if (is(r, 1, 44)) r.values["grad_norm"] = kNan;
     },
     "unknown",
     44,
     {1}},
    {"a loss that is NaN on one rank first, then on all",
     [](Row& r) {
       if (is(r, 1, 44)) r.values["loss"] = kNan;
       if (r.step >= 45) r.values["loss"] = r.values["param_norm"] = kNan;
     },
     "unknown",
     44,
     {1}},
    {"not finite on one rank alone, again and again",
     [](Row& r) {
       if (r.rank == 1 && r.step >= 40 && r.step % 15 == 0) r.values["grad_norm"] = kNan;
     },
     "sdc",
     45,
     {1}},
    {"a learning rate that leaps, and NaN one step later",
     [](Row& r) {
       if (r.step >= 60) scale(r, "lr", 1e7);
       if (r.step >= 61) r.values["loss"] = r.values["param_norm"] = r.values["grad_norm"] = kNan;
     },
     "optimizer",
     61,
     {},
     1},
    {"updates that replace the model",
     [](Row& r) {
       if (r.step >= 40) r.values["update_norm"] = 0.15 * r.values["param_norm"];
     },
     "optimizer",
     55,
     {}},
    {"other weights after an unannounced restart",
     [](Row& r) {
       if (r.step < 60) return;
       scale(r, "param_norm", 0.5), scale(r, "loss", 2), scale_local(r, 3);
     },
     "schedule",
     60,
     {},
     0,
     {},
     true},
    {"activations of one rank, in every step",
     [](Row& r) {
       if (from(r, 2, 60)) scale(r, "act_max/layer.1", 1.6);
     },
     "sdc",
     60,
     {2}},
    {"activations of one rank, in every third step",
     [](Row& r) {
       if (from(r, 2, 60) && r.step % 3 == 0) scale(r, "act_max/layer.1", 1.6);
     },
     "sdc",
     60,
     {2},
     3},
    {"gradients of one layer of one rank",
     [](Row& r) {
       if (from(r, 0, 50)) scale(r, "grad_norm/layer.0", 1.7);
     },
     "sdc",
     50,
     {0}},
    {"one odd sample",
     [](Row& r) {
       if (is(r, 2, 60)) scale(r, "loss", 1.5), scale_local(r, 2);
     },
     "",
     0,
     {},
     0,
     {},
     true},
    {"one odd activation",
     [](Row& r) {
       if (is(r, 2, 60)) scale(r, "act_max/layer.1", 1.18);
     },
     ""},
    {"one activation beyond all experience",
     [](Row& r) {
       if (is(r, 2, 60)) scale(r, "act_max/layer.1", 30);
     },
     "sdc",
     60,
     {2}},
    {"one gradient beyond all experience",
     [](Row& r) {
       if (is(r, 2, 60)) scale(r, "grad_norm/layer.1", 1e6), scale(r, "grad_norm", 1e5);
     },
     "sdc",
     60,
     {2},
     0,
     {},
     true},
    {"one activation that is too small",
     [](Row& r) {
       if (is(r, 2, 60)) scale(r, "act_max/layer.1", 0.1);
     },
     ""},
    {"other samples on one rank, for good",
     [](Row& r) {
       if (from(r, 1, 60)) scale(r, "loss", 1.4), scale_local(r, 1.5);
     },
     "data",
     60,
     {1},
     2,
     {},
     true},
    {"samples of one rank, a little harder for good",
     [](Row& r) {
       if (from(r, 1, 50)) scale(r, "loss", 1.09);
     },
     "data",
     50,
     {1},
     3},
    {"bad samples everywhere, once",
     [](Row& r) {
       if (r.step == 70) scale(r, "loss", 1.6);
     },
     "data",
     70,
     {}},
    {"bad samples everywhere, for good",
     [](Row& r) {
       if (r.step >= 70) scale(r, "loss", 1.3);
     },
     "data",
     70,
     {}},
    {"an optimiser that comes loose",
     [](Row& r) {
       if (r.step < 60) return;
       const double since = static_cast<double>(r.step - 60);
       scale(r, "act_max/layer.0", std::exp(since / 8));
       if (r.step >= 72) scale(r, "loss", std::exp((since - 12) / 10));
     },
     "optimizer",
     72,
     {},
     3},
    {"a rate that no warm-up precedes",
     [](Row& r) {
       if (r.step >= 3 && r.step < 12) r.values["loss"] = 6 + static_cast<double>(r.step);
     },
     "optimizer",
     3,
     {},
     1},
    {"a loss that is no number any more",
     [](Row& r) {
       if (r.step >= 60) r.values["loss"] = kNan;
     },
     "unknown",
     60,
     {}},
    {"gradients that overflow before the loss does",
     [](Row& r) {
       if (r.step >= 60) r.values["grad_norm"] = r.values["grad_norm_reduced"] = kInfinite;
       if (r.step >= 61) r.values["loss"] = kNan;
     },
     "unknown",
     60,
     {}},
    {"steps that are skipped until the scale of the loss fits",
     [](Row& r) {
       if (r.step >= 60 && r.step < 70) r.values["grad_norm"] = r.values["grad_norm_reduced"] = kInfinite;
     },
     ""},
    {"the only rank's numbers",
     [](Row& r) {
       if (r.step >= 60) r.values["loss"] = r.values["param_norm"] = kNan;
     },
     "unknown",
     60,
     {},
     0,
     {.ranks = 1}},
    {"a loss that only the last stage has",
     [](Row& r) {
       if (r.rank < 4) r.values["loss"] = kNan;
     },
     "",
     0,
     {},
     0,
     {.ranks = 8, .stages = 2}},
    {"a loss that only the last stage had",
     [](Row& r) {
       if (r.rank < 4 || r.step >= 60) r.values["loss"] = kNan;
     },
     "unknown",
     60,
     {},
     0,
     {.ranks = 8, .stages = 2}},
    {"another rate by plan",
     [](Row& r) {
       if (r.step >= 60) scale(r, "lr", 5), scale(r, "update_norm", 5);
     },
     "schedule",
     60,
     {}},
    {"larger batches by plan",
     [](Row& r) {
       if (r.step >= 60) scale(r, "tokens", 4), scale_local(r, 0.5), scale(r, "grad_norm_reduced", 0.5);
     },
     "schedule",
     60,
     {},
     0,
     {},
     true},
    {"harder text by plan",
     [](Row& r) {
       r.values["data_stage"] = r.step >= 60 ? 1 : 0;
       if (r.step >= 60) scale(r, "loss", 1.4);
     },
     "schedule",
     60,
     {}},
    {"a planned change that moves nothing", [](Row& r) { r.values["data_stage"] = r.step >= 60 ? 1 : 0; },
     ""},
    {"a restart with the moments lost",
     [](Row& r) {
       if (r.step < 60) return;
       r.time_ns += 900ll * 1'000'000'000;
       scale(r, "update_norm", 1 + 3 * std::exp(-static_cast<double>(r.step - 60) / 5));
     },
     "schedule",
     60,
     {}},
};

}  // namespace

BOOST_DATA_TEST_CASE(tells_causes_apart, kCases) {
  const NumericFindings t = findings_of(rows(sample.job, sample.change, sample.before));
  if (sample.kind.empty()) {
    BOOST_TEST(t.faults.empty());
    return;
  }
  BOOST_TEST_REQUIRE(t.faults.size() == 1);
  const NumericFault& fault = t.faults[0];
  BOOST_TEST(to_string(fault.kind) == sample.kind);
  BOOST_TEST(fault.ranks == sample.ranks, boost::test_tools::per_element());
  BOOST_TEST(std::abs(fault.step - sample.step) <= sample.slack);
  BOOST_TEST(fault.detected_at >= fault.step);
  BOOST_TEST(!fault.metrics.empty());
  BOOST_TEST(!fault.mitigation.empty());
  BOOST_TEST(fault.confidence > 0.5);
  BOOST_TEST_REQUIRE(t.findings.size() == 1);
  BOOST_TEST((t.findings[0].detector == DetectorKind::kNumerics));
  BOOST_TEST(t.findings[0].by_no_device == (sample.kind != "sdc"));
}

BOOST_AUTO_TEST_CASE(what_a_replicas_own_numbers_show_is_one_fault_with_its_difference) {
  const NumericFindings t = findings_of(rows({}, [](Row& r) {
    if (!from(r, 2, 60)) return;
    scale(r, "act_max/layer.0", 1e4);
    scale(r, "param_norm", 1.001);
  }));
  BOOST_TEST_REQUIRE(t.faults.size() == 1);
  BOOST_TEST(t.faults[0].confidence >= 0.8);
  BOOST_TEST(t.faults[0].metrics.size() == 2);
  BOOST_TEST(t.findings[0].title.find("replica of rank 2 differs") != std::string::npos, t.findings[0].title);
}

BOOST_AUTO_TEST_CASE(names_the_last_step_with_equal_digests) {
  const NumericFindings t = findings_of(rows({}, [](Row& r) {
    if (from(r, 2, 64)) scale(r, "param_norm", 2);
  }));
  BOOST_TEST_REQUIRE(t.faults.size() == 1);
  BOOST_TEST(t.faults[0].mitigation.find("step 60") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(of_two_replicas_names_no_rank) {
  const NumericFindings t = findings_of(rows({.ranks = 2}, [](Row& r) {
    if (from(r, 1, 60)) scale(r, "param_norm", 2);
  }));
  BOOST_TEST_REQUIRE(t.faults.size() == 1);
  BOOST_TEST((t.faults[0].kind == NumericClass::kSdc));
  BOOST_TEST(t.faults[0].ranks.empty());
  BOOST_TEST_REQUIRE(t.findings[0].subjects.size() == 2);
  BOOST_TEST(t.findings[0].subjects[0].strength < 0.5);
}

BOOST_AUTO_TEST_CASE(a_replica_that_is_copied_back_may_go_astray_again) {
  const NumericFindings t = findings_of(rows({}, [](Row& r) {
    if (r.rank == 2 && ((r.step >= 40 && r.step < 50) || r.step >= 80)) scale(r, "param_norm", 2);
    if (r.rank == 2 && r.step == 40) r.digests["param"] = 1;
    if (r.rank == 2 && r.step >= 80 && !r.digests.empty()) r.digests["param"] = 1;
  }));
  BOOST_TEST_REQUIRE(t.faults.size() == 2);
  BOOST_TEST(t.faults[0].step == 40);
  BOOST_TEST(t.faults[1].step == 80);
}

BOOST_AUTO_TEST_CASE(tells_by_the_steps_own_rows_alone) {
  // Causal: after a cut at any step, the faults with earlier dates are the same.
  const Rows all = rows({}, [](Row& r) {
    if (from(r, 2, 60)) scale(r, "act_max/layer.1", 1.6);
  });
  const NumericFindings whole = findings_of(all);
  BOOST_TEST_REQUIRE(whole.faults.size() == 1);
  for (const int64_t end : {whole.faults[0].detected_at, whole.faults[0].detected_at + 1}) {
    Rows cut;
    std::copy_if(all.begin(), all.end(), std::back_inserter(cut), [&](const Row& r) { return r.step < end; });
    BOOST_TEST(findings_of(cut).faults.size() == (end > whole.faults[0].detected_at ? 1 : 0));
  }
}

BOOST_AUTO_TEST_CASE(ranks_may_come_in_any_order) {
  Rows all = rows({}, [](Row& r) {
    if (from(r, 2, 60)) scale(r, "param_norm", 2);
  });
  // Some ranks run three steps ahead of others, and the last rank arrives first.
  const auto place = [](const Row& row) { return row.step + 3 * (row.rank % 2); };
  std::stable_sort(all.begin(), all.end(), [&](const Row& a, const Row& b) {
    return place(a) != place(b) ? place(a) < place(b) : a.rank > b.rank;
  });
  const NumericFindings t = findings_of(all);
  BOOST_TEST_REQUIRE(t.faults.size() == 1);
  BOOST_TEST(t.faults[0].step == 60);
  BOOST_TEST(t.faults[0].ranks == Ranks{2}, boost::test_tools::per_element());
  BOOST_TEST(t.problems.empty());
}

BOOST_AUTO_TEST_CASE(asking_changes_nothing) {
  const Rows all = rows({}, [](Row& r) {
    if (from(r, 2, 60)) scale(r, "act_max/layer.1", 1.6);
  });
  Detector detector;
  for (const Row& row : all) {
    row.give(detector);
    (void)detector.findings();
  }
  const NumericFindings often = detector.findings(), once = findings_of(all);
  BOOST_TEST_REQUIRE(often.faults.size() == once.faults.size());
  BOOST_TEST(often.faults[0].detected_at == once.faults[0].detected_at);
}

// Ranks that report one reduced loss are one witness, however many they are.
BOOST_AUTO_TEST_CASE(noise_of_a_loss_that_all_ranks_share_is_no_alarm) {
  size_t alarms = 0;
  for (unsigned seed = 1; seed <= 30; ++seed) {
    std::minstd_rand random(seed);
    std::normal_distribution<double> normal;
    std::map<int64_t, double> noise;
    const Rows all = rows({.ranks = 8, .steps = 60, .seed = seed}, [&](Row& row) {
      const auto [at, fresh] = noise.try_emplace(row.step, 0.0);
      if (fresh) at->second = normal(random);
      row.values["loss"] = 2.3 * std::exp(0.012 * at->second);
    });
    alarms += findings_of(all).faults.size();
  }
  BOOST_TEST(alarms <= 1u);
}

BOOST_AUTO_TEST_CASE(a_missing_rank_holds_nothing_up) {
  Detector detector;
  Rows all = rows({.ranks = 8}, [](Row& r) {
    if (from(r, 2, 60)) scale(r, "param_norm", 2);
  });
  for (const Row& row : all) {
    if (row.rank == 5 && row.step >= 30) continue;
    if (row.rank == 6 && row.step % 7 == 3) continue;
    row.give(detector);
  }
  const NumericFindings t = detector.findings();
  BOOST_TEST_REQUIRE(t.faults.size() == 1);
  BOOST_TEST(t.faults[0].ranks == Ranks{2}, boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(metrics_may_appear_late_and_in_parts) {
  Detector detector;
  for (const Row& row : rows({}, [](Row& r) {
         if (from(r, 1, 80)) scale(r, "act_max/layer.1", 1.6);
       })) {
    Row rest = row;
    Row part = row;
    part.values.clear();
    part.digests.clear();
    if (row.step >= 30) part.values["act_max/layer.1"] = row.values.at("act_max/layer.1");
    rest.values.erase("act_max/layer.1");
    rest.give(detector);
    part.give(detector);
  }
  const NumericFindings t = detector.findings();
  BOOST_TEST_REQUIRE(t.faults.size() == 1);
  BOOST_TEST(t.faults[0].step == 80);
  BOOST_TEST(t.problems.empty());
}

BOOST_AUTO_TEST_CASE(stages_of_a_pipeline_are_compared_within) {
  const Job job{.ranks = 8, .stages = 2};
  BOOST_TEST(findings_of(rows(job)).faults.empty());
  const NumericFindings t = findings_of(rows(job, [](Row& r) {
    if (from(r, 6, 60)) scale(r, "param_norm", 2);
  }));
  BOOST_TEST_REQUIRE(t.faults.size() == 1);
  BOOST_TEST(t.faults[0].ranks == Ranks{6}, boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(parts_of_a_tensor_are_found_by_what_they_hold) {
  // Two shares of each tensor, on ranks 0 2 4 6 and 1 3 5 7: the same layers, different parameters.
  const auto parts = [](Row& r) {
    if (r.rank % 2 == 1) r.values["param_norm"] += 3, r.digests.clear();
  };
  BOOST_TEST(findings_of(rows({.ranks = 8}, [&](Row& r) { parts(r), r.digests.clear(); })).faults.empty());
  const NumericFindings t = findings_of(rows({.ranks = 8}, [&](Row& r) {
    parts(r);
    r.digests.clear();
    if (from(r, 3, 60)) r.values["param_norm"] += 1;
  }));
  BOOST_TEST_REQUIRE(t.faults.size() == 1);
  BOOST_TEST(t.faults[0].ranks == Ranks{3}, boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(shards_have_nothing_to_be_equal) {
  const NumericFindings t = findings_of(rows({}, [](Row& r) {
    r.values["param_norm"] += r.rank;
    r.digests.clear();
    if (r.step % 10 == 0) r.digests["param"] = 1000 + r.rank + static_cast<uint64_t>(r.step) * 10;
  }));
  BOOST_TEST(t.faults.empty());
}

BOOST_AUTO_TEST_CASE(the_layout_says_who_are_peers) {
  numerics::Layout layout;
  for (uint32_t rank = 0; rank < 4; ++rank) layout.peers[rank] = rank % 2;
  Detector detector(layout);
  for (const Row& row : rows({}, [](Row& r) { r.values["param_norm"] += r.rank % 2, r.digests.clear(); })) {
    row.give(detector);
  }
  BOOST_TEST(detector.findings().faults.empty());
}

BOOST_AUTO_TEST_CASE(a_rollback_begins_again_and_doubles_nothing) {
  const Change wrong = [](Row& r) {
    if (from(r, 2, 60)) scale(r, "param_norm", 2);
  };
  Detector detector;
  for (const Row& row : rows({.steps = 70}, wrong)) row.give(detector);
  for (Row row : rows({.steps = 60, .first = 40})) {
    row.time_ns += 1'000'000'000'000;
    row.give(detector);
  }
  const NumericFindings t = detector.findings();
  BOOST_TEST_REQUIRE(t.faults.size() == 1);
  BOOST_TEST(t.faults[0].step == 60);
  BOOST_TEST(t.problems.empty());
  BOOST_TEST(std::is_sorted(t.curves.steps.begin(), t.curves.steps.end()));
}

BOOST_AUTO_TEST_CASE(what_comes_again_is_reported_and_changes_nothing) {
  Detector detector;
  for (const Row& row : rows({})) {
    row.give(detector);
    if (row.step == 50) row.give(detector);
  }
  for (const Row& row : rows({.steps = 3})) row.give(detector);
  const NumericFindings t = detector.findings();
  BOOST_TEST(t.faults.empty());
  BOOST_TEST_REQUIRE(t.problems.size() == 1);
  BOOST_TEST(t.problems[0].find("12 records") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(two_senders_with_one_number_are_reported) {
  Detector detector;
  const Rows other = rows({.seed = 9});
  size_t i = 0;
  for (const Row& row : rows({})) {
    row.give(detector);
    if (row.rank == 1) other[i].give(detector);
    ++i;
  }
  const NumericFindings t = detector.findings();
  BOOST_TEST_REQUIRE(!t.problems.empty());
  BOOST_TEST(t.problems[0].find("rank 1") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(a_flood_of_names_is_bounded_and_reported) {
  Detector detector;
  for (int64_t step = 0; step < 3; ++step) {
    Row row{.rank = 0, .step = step, .time_ns = step + 1, .values = {}, .digests = {}};
    for (int i = 0; i < 5000; ++i) row.values["m" + std::to_string(i + 5000 * step)] = i;
    row.give(detector);
  }
  const NumericFindings t = detector.findings();
  BOOST_TEST_REQUIRE(t.problems.size() == 1);
  BOOST_TEST(t.problems[0].find("2048") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(curves_are_thinned_and_the_odd_rank_stands_out) {
  const NumericFindings t = findings_of(rows({.steps = 1500}, [](Row& r) {
    if (from(r, 2, 900)) scale(r, "param_norm", 2);
  }));
  BOOST_TEST(t.curves.steps.size() <= 512);
  BOOST_TEST(t.curves.steps.size() >= 256);
  BOOST_TEST_REQUIRE(t.curves.rows.size() == 4);
  BOOST_TEST(t.curves.rows[2].odd.back() == 1);
  BOOST_TEST(t.curves.rows[1].odd.back() < 1);
  for (const auto& curve : t.curves.curves) BOOST_TEST(curve.median.size() == t.curves.steps.size());
}

BOOST_AUTO_TEST_CASE(the_first_step_of_a_long_job_keeps_its_values) {
  const NumericFindings t = findings_of(rows({.steps = 1500}));
  BOOST_TEST_REQUIRE(t.curves.steps.front() == 0);
  for (const auto& curve : t.curves.curves) BOOST_TEST(!std::isnan(curve.median.front()), curve.metric);
  for (const auto& row : t.curves.rows) BOOST_TEST(!std::isnan(row.odd.front()), row.rank);
}

BOOST_AUTO_TEST_CASE(steps_may_number_samples_or_tokens) {
  constexpr int64_t kBatch = 4'000'000'000;  // more than 32 bits hold
  Rows all = rows({}, [](Row& r) {
    if (from(r, 2, 60)) scale(r, "act_max/layer.1", 1.6);
  });
  const NumericFindings by_one = findings_of(all);
  for (Row& row : all) row.step *= kBatch;
  const NumericFindings t = findings_of(all);
  BOOST_TEST_REQUIRE((by_one.faults.size() == 1 && t.faults.size() == 1));
  BOOST_TEST(t.faults[0].ranks == by_one.faults[0].ranks, boost::test_tools::per_element());
  BOOST_TEST(t.faults[0].step == by_one.faults[0].step * kBatch);
  BOOST_TEST(t.faults[0].detected_at == by_one.faults[0].detected_at * kBatch);
}

BOOST_AUTO_TEST_CASE(all_that_differs_is_counted_and_some_of_it_named) {
  const NumericFindings t = findings_of(rows({}, [](Row& r) {
    for (int i = 0; i < 40; ++i) r.values["sum/" + std::to_string(i)] = static_cast<double>(100 * i + r.step);
    if (!from(r, 1, 60)) return;
    for (int i = 0; i < 40; ++i) scale(r, "sum/" + std::to_string(i), 2);
  }));
  BOOST_TEST_REQUIRE(t.faults.size() == 1);
  BOOST_TEST(t.faults[0].metrics.size() == 16);
  BOOST_TEST(t.findings[0].why.at(0).find(" and 39 more are no longer equal") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(curves_say_where_a_number_is_not_finite) {
  const NumericFindings t = findings_of(rows({}, [](Row& r) {
    if (is(r, 1, 40) || from(r, r.rank, 90)) r.values["loss"] = kNan;
  }));
  for (const auto& curve : t.curves.curves) {
    std::vector<uint32_t> expected;
    if (curve.metric == "loss") expected = {40, 90, 91, 92, 93, 94, 95, 96, 97, 98, 99};
    BOOST_TEST(curve.not_finite == expected, boost::test_tools::per_element());
    BOOST_TEST((std::isnan(curve.median[40]) == false), curve.metric);
  }
}
