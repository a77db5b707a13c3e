// The pattern of a fault's line, generalised from all its occurrences. Pure.
#pragma once

#include <memory>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace culprit::app {

// A template that matches every occurrence: parts that differ, and parts that vary by nature (numbers, paths,
// addresses), are holes. A number behind a word such as "code" or "errno" stays where all agree, since it
// tells faults apart. `names`, of hosts and of the job, are holes. Holes at both ends are left out. Empty:
// nothing is fixed.
std::string pattern_of(std::span<const std::string> occurrences, const std::set<std::string>& names);

// The line of a record that a rule matches: for a traceback its exception, the last line.
std::string message_of(const std::string& record);

// A mined template (holes "<*>") as a template of a rule, and as a line with a number for each hole.
std::string rule_template(std::string_view mined);
std::string sample_line(std::string_view mined);

// Words of at least three letters in lower case, without holes; of a rule's template or of a line.
std::set<std::string> words_of_text(std::string_view text);

// The share of the words of both that are in both.
double alike(const std::set<std::string>& a, const std::set<std::string>& b);

// The fixed words of a template in order, without holes and numbers: "retimer bank lost phase lock".
std::string spoken(std::string_view pattern);

// Whether the template matches somewhere in the message.
class Fires {
 public:
  explicit Fires(const std::string& pattern);
  ~Fires();
  Fires(Fires&&) noexcept;
  bool in(std::string_view message) const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace culprit::app
