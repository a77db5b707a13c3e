// For assertions: the thread that owns an object. The first thread that calls here() owns it until release().
// An object passed between threads calls release() at the hand-over.
#pragma once

namespace culprit {

class ThreadOwner {
 public:
  // Whether the calling thread owns the object; the first caller becomes the owner.
  bool here() const {
    static thread_local char mark;
    if (!owner_) owner_ = &mark;
    return owner_ == &mark;
  }
  void release() { owner_ = nullptr; }

 private:
  mutable const void* owner_ = nullptr;
};

}  // namespace culprit
