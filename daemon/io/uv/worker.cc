#include <pthread.h>

#include <condition_variable>
#include <csignal>
#include <deque>
#include <system_error>
#include <thread>
#include <utility>

#include "io/system_error.h"
#include "io/uv/loop.h"

namespace culprit::io {
namespace {

struct Task {
  std::function<void()> work, done;
  Mailbox::Wake wake = Mailbox::Wake::kNow;
};

// Shared by the owner and the thread: either may end first.
struct Queue {
  std::mutex mutex;
  std::condition_variable wake;
  std::deque<Task> tasks;  // the first one is running
  bool ends = false;
  bool listening = true;  // loop thread only: the owner expects `done`
  std::shared_ptr<Mailbox> mailbox;
};

// The loop handles signals; here they would only interrupt blocking calls.
void block_signals() {
  sigset_t all;
  sigfillset(&all);
  pthread_sigmask(SIG_BLOCK, &all, nullptr);
}

void run(const std::shared_ptr<Queue>& queue, const std::string& name) {
  block_signals();
  pthread_setname_np(pthread_self(), name.substr(0, 15).c_str());  // the kernel's limit
  std::unique_lock lock(queue->mutex);
  for (;;) {
    queue->wake.wait(lock, [&] { return queue->ends || !queue->tasks.empty(); });
    if (queue->ends) return;
    std::function<void()> work = std::move(queue->tasks.front().work);
    lock.unlock();
    work();
    work = nullptr;  // destroys the closure before `done` runs
    lock.lock();
    if (queue->tasks.empty()) continue;  // abandoned
    std::function<void()> done = std::move(queue->tasks.front().done);
    const Mailbox::Wake wake = queue->tasks.front().wake;
    queue->tasks.pop_front();
    if (!done) continue;
    lock.unlock();
    auto call = [queue, done = std::move(done)] {
      if (queue->listening) done();
    };
    queue->mailbox->post(std::move(call), wake);
    lock.lock();
  }
}

class ThreadWorker final : public Worker {
 public:
  explicit ThreadWorker(Loop& loop) { queue_->mailbox = loop.mailbox; }
  // Returns an errno: EAGAIN at a limit of tasks or memory.
  int begin(const std::string& name) {
    try {
      thread_ = std::thread([queue = queue_, name] { run(queue, name); });
    } catch (const std::system_error& error) {
      return error.code().value();
    }
    return 0;
  }
  ~ThreadWorker() override {
    end();
    if (thread_.joinable()) thread_.join();
  }

  void submit(std::function<void()> work, std::function<void()> done) override {
    add({std::move(work), std::move(done), Mailbox::Wake::kNow});
  }
  void submit_calmly(std::function<void()> work, std::function<void()> done) override {
    add({std::move(work), std::move(done), Mailbox::Wake::kLater});
  }
  size_t queued() const override {
    const std::lock_guard lock(queue_->mutex);
    return queue_->tasks.size();
  }
  void abandon() override {
    end();
    if (thread_.joinable()) thread_.detach();
  }

 private:
  void add(Task task) {
    {
      const std::lock_guard lock(queue_->mutex);
      if (queue_->ends) return;
      queue_->tasks.push_back(std::move(task));
    }
    queue_->wake.notify_one();  // the thread finds the mutex free
  }
  void end() {
    std::deque<Task> dropped;  // destroyed without the lock, on the loop
    const std::lock_guard lock(queue_->mutex);
    queue_->ends = true;
    queue_->listening = false;
    dropped.swap(queue_->tasks);
    queue_->wake.notify_one();
  }

  const std::shared_ptr<Queue> queue_ = std::make_shared<Queue>();
  std::thread thread_;
};

}  // namespace

Result<std::unique_ptr<Worker>> make_worker(Loop& loop, const std::string& name) {
  auto worker = std::make_unique<ThreadWorker>(loop);
  if (const int error = worker->begin(name); error != 0)
    return tl::unexpected(system_error("a thread for " + name, error));
  return worker;
}

}  // namespace culprit::io
