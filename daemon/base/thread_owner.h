// Which thread an object belongs to, for assertions: the first thread that asks, until release().
// An object that several threads use one after the other calls release() where it is handed over.
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
