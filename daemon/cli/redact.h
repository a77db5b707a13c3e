// Blacks out what a stranger must not learn from a site's logs: names of users, home folders, tokens,
// passwords and keys, e-mail addresses, and, unless they are to be kept, addresses of network devices, serial
// numbers, IP addresses and full names of hosts. The same text becomes the same word each time ("[user-2]",
// "host-3.example"), and an address or a serial number keeps its form ("02:00:00:00:00:01"), so that what
// happened can still be followed. What looks like nothing known passes, and the manifest says so.
//
// These stay, since a diagnosis needs them and they name no person and no site: UUIDs of GPUs and of runs,
// PCI addresses, Xid lines, hashes of commits, NCCL's ids of communicators.
//
// Two passes: learn() every line, then apply() every line; a name that is told in the last line is then
// blacked out in the first. Belongs to one thread.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace culprit::cli {

struct RedactOptions {
  bool keep_ips = false, keep_hosts = false, keep_hardware = false;
  std::vector<std::string> names = {};  // of users, and other words that must go, whatever stands around them
  bool keep_all = false;
};

class Redactor {
 public:
  explicit Redactor(const RedactOptions& options);
  ~Redactor();
  Redactor(const Redactor&) = delete;

  void learn(std::string_view line);
  // The line without its end. Lines of one source come in order: a private key is blacked out over lines.
  std::string apply(std::string_view line);
  // Between two sources.
  void next_source();
  // Times that something was blacked out, by its kind: user, secret, e-mail, host, ip,
  // hardware-address, serial-number.
  const std::map<std::string, uint64_t>& counts() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace culprit::cli
