#include "core/logs/drops.h"

#include <fmt/format.h>

#include <string_view>

namespace culprit::logs {
namespace {

constexpr std::string_view kSentences[] = {
    "{} lines have forms beyond those that are kept: they count as one template",
    "{} lines found no room among the templates: they are counted by their length alone",
    "the text of {} first lines of templates is not kept: their evidence has no text",
    "the places of {} lines are not kept: the lists of places are incomplete",
    "{} lines are counted for the job, but not for who wrote them: their templates are not compared between "
    "hosts",
    "{} lines are of writers beyond the limit: they belong to no host",
    "{} lines that match rules are counted, but not kept: of these rules the first and last lines are, and "
    "those "
    "of each writer",
    "{} lines count something beyond what is followed",
    "{} lines count for a writer whose progress is not followed",
    "the iterations of {} writers are not compared: there is too much of them",
    "{} unusual iterations are not kept",
    "{} quoted samples are not remembered: their lines may count as the program's own",
};
static_assert(std::size(kSentences) == static_cast<size_t>(Drop::kCount));

}  // namespace

Drops& Drops::operator+=(const Drops& other) {
  for (size_t i = 0; i < counts_.size(); ++i) counts_[i] += other.counts_[i];
  return *this;
}

std::vector<std::string> Drops::sentences() const {
  std::vector<std::string> out;
  for (size_t i = 0; i < counts_.size(); ++i)
    if (counts_[i] > 0) out.push_back(fmt::format(fmt::runtime(kSentences[i]), counts_[i]));
  return out;
}

}  // namespace culprit::logs
