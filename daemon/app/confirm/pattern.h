// The pattern of a fault's line, generalised from all its occurrences. Pure.
#pragma once

#include <memory>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace culprit::app {

// A template that matches every occurrence. Parts that differ, or that vary by nature (numbers, paths,
// addresses), become holes; so do `names`, of hosts and of the job. A number after a word such as "code" or
// "errno" remains if all occurrences have it, since it distinguishes faults. Holes at both ends are left out.
// Empty: nothing is fixed.
std::string pattern_of(std::span<const std::string> occurrences, const std::set<std::string>& names);

// The line of a record that a rule matches: for a traceback, its last line with the exception.
std::string message_of(const std::string& record);

// A mined template (holes "<*>"): as a rule's template, and as a line with a number for each hole.
std::string rule_template(std::string_view mined);
std::string sample_line(std::string_view mined);

// Words of at least three letters in lower case, without holes, from a rule's template or a line.
std::set<std::string> words_of_text(std::string_view text);

// Common words of both sets as a share of all their words.
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
