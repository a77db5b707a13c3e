// Redacts private data in a site's logs: user names, home folders, tokens, passwords and e-mail addresses.
// Also IP addresses and full host names unless configured otherwise. Equal names get equal replacements
// ("[user-2]", "host-3.example"), so events can still be followed. Redaction is incomplete: unknown forms
// remain, and the manifest says so.
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
  std::vector<std::string> names = {};  // user names and other words that are removed at every occurrence
  bool keep_all = false;
};

class Redactor {
 public:
  explicit Redactor(const RedactOptions& options);
  ~Redactor();
  Redactor(const Redactor&) = delete;

  void learn(std::string_view line);
  // A host of the report: its short name is redacted too, except names that match words of sentences.
  void learn_host(std::string_view name);
  // The redacted line without its line break. Call in the order of a source's lines, since a private key
  // spans lines.
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
