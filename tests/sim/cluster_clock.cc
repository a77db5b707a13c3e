#include "cluster_clock.h"

#include <ucontext.h>

#include <algorithm>

#include "base/check.h"

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/common_interface_defs.h>
#endif

namespace culprit::sim {
namespace {

constexpr size_t kStackBytes = 512 << 10;  // touched as far as it is used

}  // namespace

// A task with a stack of its own. The sanitizer must know each change of stacks.
struct VirtualClock::Task {
  std::unique_ptr<char[]> stack{new char[kStackBytes]};
  ucontext_t context{}, caller{};
  std::function<void()> body;
  bool over = false;
  const void* caller_stack = nullptr;
  size_t caller_bytes = 0;
  void* fake = nullptr;         // of the task
  void* caller_fake = nullptr;  // of the caller
};

VirtualClock::VirtualClock() = default;

VirtualClock::~VirtualClock() { end_tasks(); }

void VirtualClock::at(TimeNs when, std::function<void()> what) {
  events_.push({when, ++number_, nullptr, std::make_shared<std::function<void()>>(std::move(what))});
}

void VirtualClock::run_body(unsigned high, unsigned low) {
  auto* const self = reinterpret_cast<VirtualClock*>(uintptr_t{high} << 32 | low);
  Task* const task = self->running_;
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_finish_switch_fiber(nullptr, &task->caller_stack, &task->caller_bytes);
#endif
  task->body();
  task->body = {};
  task->over = true;
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_start_switch_fiber(nullptr, task->caller_stack, task->caller_bytes);
#endif
  setcontext(&task->caller);
}

void VirtualClock::start(std::function<void()> body) {
  if (ending_) return;
  if (idle_.empty()) idle_.push_back(std::make_unique<Task>());
  tasks_.push_back(std::move(idle_.back()));
  idle_.pop_back();
  Task* const task = tasks_.back().get();
  task->body = std::move(body);
  task->over = false;
  prepare(*task);
  events_.push({now_, ++number_, task, nullptr});
}

// getcontext() may return twice to a compiler: nothing with a destructor is around it.
void VirtualClock::prepare(Task& of) {
  Task* const task = &of;
  CULPRIT_CHECK(getcontext(&task->context) == 0);
  task->context.uc_stack.ss_sp = task->stack.get();
  task->context.uc_stack.ss_size = kStackBytes;
  task->context.uc_link = nullptr;
  const auto self = reinterpret_cast<uintptr_t>(this);
  makecontext(&task->context, reinterpret_cast<void (*)()>(run_body), 2, static_cast<unsigned>(self >> 32),
              static_cast<unsigned>(self));
}

void VirtualClock::enter(Task* task) {
  running_ = task;
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_start_switch_fiber(&task->caller_fake, task->stack.get(), kStackBytes);
#endif
  swapcontext(&task->caller, &task->context);
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_finish_switch_fiber(task->caller_fake, nullptr, nullptr);
#endif
  running_ = nullptr;
  if (!task->over) return;
  const auto at = std::ranges::find(tasks_, task, &std::unique_ptr<Task>::get);
  idle_.push_back(std::move(*at));
  tasks_.erase(at);
}

void VirtualClock::leave() {
  Task* const task = running_;
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_start_switch_fiber(&task->fake, task->caller_stack, task->caller_bytes);
#endif
  swapcontext(&task->context, &task->caller);
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_finish_switch_fiber(task->fake, &task->caller_stack, &task->caller_bytes);
#endif
}

void VirtualClock::sleep(TimeNs span) {
  CULPRIT_CHECK(running_ != nullptr);
  if (ending_) return;
  events_.push({now_ + std::max<TimeNs>(0, span), ++number_, running_, nullptr});
  leave();
}

bool VirtualClock::step() {
  if (events_.empty()) return false;
  const Event event = events_.top();
  events_.pop();
  now_ = std::max(now_, event.when);
  if (event.wakes != nullptr)
    enter(event.wakes);
  else if (!ending_)
    (*event.what)();
  return true;
}

void VirtualClock::end_tasks() {
  ending_ = true;
  while (step()) {
  }
  CULPRIT_CHECK(tasks_.empty());
}

}  // namespace culprit::sim
