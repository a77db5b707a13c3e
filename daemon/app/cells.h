// Several collectors as one, for the command line: --server A,B,C. Each has its own jobs and hosts, and
// answers for itself; the answers become one here. One collector of a cluster ([cluster]) leads to the
// others. Blocks; a thread per collector while a question is open.
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
  // The same; of one server that is a member of a cluster also the other members that it knows. Those that
  // cannot be asked are in left_out(). A server that does not answer this is the only one.
  static Result<Cells> make_with_members(const ClientOptions& options);
  // Sentences.
  const std::vector<std::string>& left_out() const { return left_out_; }

  struct Answer {
    std::string server;
    Result<std::string> body;
  };
  // The answers to a GET, in the order of the servers. Of several, each has only kReachMs to answer at all
  // and kAnswerMs for the answer: one that is away must not delay the others.
  std::vector<Answer> get(const std::string& path);
  bool are_several() const { return clients_.size() > 1; }
  std::vector<Client>& clients() { return clients_; }

  static constexpr size_t kCellsMost = 64;
  static constexpr long kAnswerMs = 20'000;
  static constexpr long kReachMs = 3'000;

 private:
  std::vector<Client> clients_;
  std::vector<std::string> left_out_;
};

// A member of a cluster, as GET /v1/cluster of another one names it.
struct OtherMember {
  std::string name, http;  // http empty: it names no address
};
// Without the member that answers; none if the text is something else. Pure.
std::vector<OtherMember> other_members(const std::string& cluster);
// Why a client of `server` does not ask this member; empty: it does. A token is not sent in clear, unless it
// is to `server` too. Pure.
std::string why_not_asked(const std::string& server, const OtherMember& member);

}  // namespace culprit::app
