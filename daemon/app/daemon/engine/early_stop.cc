#include "app/daemon/engine/early_stop.h"

#include <atomic>

namespace culprit::app {
namespace {

std::atomic<bool> stop_asked{false};  // global, since a signal handler cannot access anything else

void on_signal(int) { stop_asked = true; }

}  // namespace

EarlyStop::EarlyStop() {
  stop_asked = false;
  struct sigaction action = {};
  action.sa_handler = on_signal;
  sigaction(SIGTERM, &action, &term_);
  sigaction(SIGINT, &action, &interrupt_);
}

EarlyStop::~EarlyStop() {
  sigaction(SIGTERM, &term_, nullptr);
  sigaction(SIGINT, &interrupt_, nullptr);
}

bool EarlyStop::asked() { return stop_asked; }

}  // namespace culprit::app
