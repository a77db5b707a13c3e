// A user's side of copies: asks the daemon of this host, through its unix socket, for copies of checkpoints
// that it or another host stores. Blocking; one thread.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "model/copies.h"

namespace culprit::app {

class CopiesClient {
 public:
  // `socket`: a path. `from`: HOST:PORT of the agent whose copies are meant; empty: this host's. The error of
  // a refusal is the other side's sentence.
  // `patience_ns`: for each answer; the other host may have to be reached first, and its disk may be slow.
  static Result<CopiesClient> connect(const std::string& socket, const std::string& from,
                                      TimeNs patience_ns = 120 * kNsPerSecond);
  CopiesClient(CopiesClient&& other) noexcept;
  CopiesClient& operator=(CopiesClient&& other) noexcept;
  ~CopiesClient();

  // The host that answers.
  const std::string& host() const { return host_; }
  // What this host copies; only without `from`.
  Result<copies::Answer> ask();
  Result<std::vector<copies::Entry>> list();
  Result<copies::Manifest> get(const copies::Entry& entry);
  // After get(): the bytes of a file, in order. An error unless they have the manifest's digest.
  Status fetch(const copies::Manifest& manifest, uint32_t file,
               const std::function<Status(std::string_view)>& take);

 private:
  explicit CopiesClient(int socket) : socket_(socket) {}
  Status write(const copies::Message& message);
  Result<copies::Message> read();
  template <class T>
  Result<T> answer_to(const copies::Message& request);

  int socket_ = -1;
  std::string host_;
  copies::Splitter splitter_;
  uint64_t received_ = 0;  // bytes of data
};

struct RestoreOptions {
  std::string to;  // a folder, which is created
  // Called before each file; may be empty.
  std::function<void(const copies::File& file)> progress;
};
struct Restored {
  std::string path;                   // absolute: the checkpoint
  uint64_t files = 0, bytes = 0;      // written
  uint64_t present = 0;               // files that were there already, with the same bytes
  std::vector<std::string> pointers;  // files written that name the checkpoint
};
// Writes the copy that get() returned below the folder. A new folder appears under its name when it is whole;
// in an existing one each file appears when it is whole, and no file is replaced. Root's files get their
// recorded owner. An interrupted restore continues.
Result<Restored> restore_copy(CopiesClient& client, const copies::Manifest& manifest,
                              const RestoreOptions& options);

}  // namespace culprit::app
