// Several collectors as one, for the command line: --server A,B,C. Each has its own jobs and hosts, and
// answers for itself; the answers become one here. Blocks; a thread per collector while a question is open.
#pragma once

#include <string>
#include <vector>

#include "app/client.h"
#include "base/status.h"

namespace culprit::app {

// The servers that options name, in their order; one without a comma. CULPRIT_SERVER counts where the option
// is empty.
std::vector<std::string> servers_of(const ClientOptions& options);

class Cells {
 public:
  // An error if a name is not a server's, or more than kCellsMost are named.
  static Result<Cells> make(const ClientOptions& options);

  struct Answer {
    std::string server;
    Result<std::string> body;
  };
  // The answers to a GET, in the order of the servers. Of several, each has only kAnswerMs: one that is away
  // must not delay the others.
  std::vector<Answer> get(const std::string& path);
  bool are_several() const { return clients_.size() > 1; }
  std::vector<Client>& clients() { return clients_; }

  static constexpr size_t kCellsMost = 64;
  static constexpr long kAnswerMs = 20'000;

 private:
  std::vector<Client> clients_;
};

}  // namespace culprit::app
