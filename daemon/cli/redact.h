// Redacts private data in a site's logs: user names, home folders, tokens, passwords and e-mail addresses.
// Also IP addresses and full host names unless they are to be kept. Equal names get equal replacements
// ("[user-2]", "host-3.example"), so events can still be followed. Redaction is incomplete: unknown forms
// pass, and the manifest says so.
//
// Two passes: learn() every line, then apply() every line. So a name learned from the last line is redacted
// in the first. Belongs to one thread.
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
  // A host of the report: it goes also where its name is short. Names that match words of sentences stay.
  void learn_host(std::string_view name);
  // The redacted line without its end. Call in the order of the lines of a source: a private key spans lines.
  std::string apply(std::string_view line);
  // Call between two sources.
  void next_source();
  // Number of redactions by kind: user, secret, e-mail, account, host, ip and so on.
  const std::map<std::string, uint64_t>& counts() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace culprit::cli
