#include "core/logs/values.h"

#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>
#include <cmath>
#include <ostream>

using namespace culprit::logs;

namespace {

enum class Is { kAbsent, kFinite, kLost };

struct Line {
  std::string text;
  Is loss = Is::kAbsent, norm = Is::kAbsent;
  bool skipped = false;
};
std::ostream& operator<<(std::ostream& out, const Line& line) { return out << line.text; }
std::ostream& operator<<(std::ostream& out, Is is) { return out << static_cast<int>(is); }

Is state(const std::optional<double>& value) {
  return !value ? Is::kAbsent : std::isfinite(*value) ? Is::kFinite : Is::kLost;
}

const std::vector<Line> kLines = {
    {"iter 200: loss nan, time 123.45ms, mfu 12.3%", Is::kLost},
    {"step 250: train loss 2.1, val loss nan", Is::kFinite},
    {"iteration 200/ 5000 | learning rate: 6.0E-05 | lm loss: 2.6E+00 | loss scale: 1.0 | grad norm: nan |",
     Is::kFinite, Is::kLost},
    {"iteration 200/ 5000 | loss scale: 1.0 | grad norm: 0.0 | number of nan iterations:   1 |", Is::kLost,
     Is::kFinite},
    {"{'loss': nan, 'grad_norm': inf, 'learning_rate': 5e-05, 'epoch': 0.02}", Is::kLost, Is::kLost},
    {"{'loss': '2.31', 'grad_norm': '0.7'}", Is::kFinite, Is::kFinite},
    {"Epoch 0:  10%|#  | 100/1000 [00:10<01:30, 10.0it/s, v_num=0, train_loss=nan.0]", Is::kLost},
    {"1875/1875 [====] - 4s 2ms/step - loss: nan - accuracy: 0.09 - val_loss: 0.3", Is::kLost},
    {"epoch: 1 step: 100, loss is nan", Is::kLost},
    {"epoch 001: 100 / 1000 loss=nan, nll_loss=nan, ppl=nan, gnorm=nan, loss_scale=1", Is::kLost, Is::kLost},
    {"\x1b[31mstep: 10  \x1b[32mloss: 12.3  \x1b[33mgrad_norm:  inf\x1b[39m", Is::kFinite, Is::kLost},
    {"loss: tensor(nan, device='cuda:0')", Is::kLost},
    {"step 4 Loss=-nan lr=0.1", Is::kLost},
    {"[0/5] Loss_D: nan Loss_G: nan", Is::kLost},
    {"[0/5] Loss_D: 0.5 Loss_G: nan", Is::kAbsent},
    {"OVERFLOW! Rank 0 Skipping step. Attempted loss scale: 2, reducing to 1", Is::kAbsent, Is::kAbsent,
     true},
    {"iteration 9 | lm loss: 2.6E+00 | loss scale: 8.0 | number of skipped iterations:   1 |", Is::kFinite,
     Is::kAbsent, true},
    // Evaluations, single terms and other words.
    {"validation loss at iteration 1000 | lm loss value: nan | lm loss PPL: nan |"},
    {"{'eval_loss': nan, 'eval_runtime': 1.2}"},
    {"[eval] step 100 loss nan"},
    {"Test set: Average loss: nan, Accuracy: 10/10000"},
    {"z_loss: nan, loss: 2.1", Is::kFinite},
    {"aux loss: nan"},
    {"nan_loss_check: True"},
    {"param norm: nan | grad norm: 3.1", Is::kAbsent, Is::kFinite},
};

}  // namespace

BOOST_DATA_TEST_CASE(reads_the_trainings_own_numbers, kLines) {
  const LineValues values = values_of(sample.text);
  BOOST_TEST(state(values.loss) == sample.loss);
  BOOST_TEST(state(values.norm) == sample.norm);
  BOOST_TEST(values.skipped == sample.skipped);
}

BOOST_AUTO_TEST_CASE(reads_the_loss_scale_after_the_line_and_the_rate) {
  BOOST_TEST(values_of("OVERFLOW! Skipping step. Attempted loss scale: 2, reducing to 1").scale.value() == 1);
  BOOST_TEST(values_of("loss: 2.0 learning_rate: 6e-5").rate.value() == 6e-5);
}
