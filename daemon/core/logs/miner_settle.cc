#include "core/logs/miner_settle.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <unordered_map>
#include <utility>

namespace culprit::logs {
namespace {

// Larger groups are split by all frequent words of a column at once, which keeps the work linear.
constexpr size_t kSmallGroup = 128;
constexpr size_t kFrequent = 4;

struct Column {
  bool varies = false;
  bool passes = false;
  bool granted = false;     // literals and values of keys: values by grammar, however few words are around
  bool vocabulary = false;  // any word may occur: words that only look like verbs are values too
  size_t top = 0;           // rows with the most frequent word
  WordId word = 0;
};

class Settler {
 public:
  Settler(const std::vector<Word>& words, const MinerThresholds& thresholds, std::vector<Opening>& openings)
      : words_(words), thresholds_(thresholds), openings_(openings) {}

  void run(std::vector<FormRow> rows) {
    std::vector<std::vector<FormRow>> work;
    work.push_back(std::move(rows));
    while (!work.empty()) {
      const std::vector<FormRow> group = std::move(work.back());
      work.pop_back();
      if (group.size() > 1) decide(group, work);
    }
  }

 private:
  using Groups = std::vector<std::vector<FormRow>>;

  const Word& word(const FormRow& row, size_t column) const { return words_[(*row.words)[column]]; }

  // Counts the words of one column, by id; the buffer is reused.
  void count(const std::vector<FormRow>& rows, size_t column) {
    values_.clear();
    for (const FormRow& row : rows) values_.push_back((*row.words)[column]);
    std::sort(values_.begin(), values_.end());
  }

  Column judge(const std::vector<FormRow>& rows, size_t column, size_t anchors) {
    count(rows, column);
    Column out;
    if (values_.front() == values_.back()) return out;
    out.varies = true;
    size_t plain = 0, verbs = 0, typed = 0, qualified = 0, holes = 0;
    bool flags = true, assigned = true, literal = false;
    for (size_t i = 0, j = 0; i < values_.size(); i = j) {
      while (j < values_.size() && values_[j] == values_[i]) ++j;
      const Word& value = words_[values_[i]];
      if (j - i > out.top || (j - i == out.top && value.text < words_[out.word].text)) {
        out.top = j - i;
        out.word = values_[i];
      }
      flags = flags && (value.traits.value || value.traits.hole);
      assigned = assigned && (value.traits.assigned || value.traits.value || value.traits.hole);
      literal = literal || value.traits.value;
      if (value.traits.state) continue;
      if (value.traits.verb) {
        ++verbs;
        continue;
      }
      const bool label = value.traits.numbered || !value.traits.anchor;
      const bool name = value.traits.qualified || value.traits.value;
      ++(value.traits.hole ? holes : label ? typed : name ? qualified : plain);
    }
    bool settled = false;
    for (const FormRow& row : rows) settled |= row.settled && word(row, column).traits.hole;
    const size_t values = plain + typed + qualified + holes;
    const MinerThresholds& t = thresholds_;
    size_t needed = anchors >= 3 ? t.values_of_three : anchors == 2 ? t.values_of_two : t.values_of_one;
    if (plain == 0 && (typed == 0 || holes > 0) && anchors >= 2)
      needed = std::min(needed, t.values_qualified);
    if (typed > 0 && plain + qualified + holes == 0) needed = std::max(needed, t.values_typed);
    if (typed > 0 && plain > 0 && anchors >= 3) needed = std::min(needed, t.values_mixed);
    if (assigned && anchors >= 1)
      needed = std::min(needed, anchors >= 2 || literal ? t.values_assigned : t.values_assigned_one);
    if (flags) needed = 2;
    const bool first = column == 0 && !rows.front().bracketed;
    if (first) needed = std::max(needed, t.values_first);
    if (first && anchors < 2) needed = values + 1;  // "? = true" names a setting, not a value
    out.vocabulary = settled || (values >= t.vocabulary && values > 8 * verbs);
    out.granted = assigned && anchors >= 1;
    out.passes = values >= needed || (settled && values >= 2);
    return out;
  }

  void decide(const std::vector<FormRow>& rows, Groups& work) {
    const size_t width = rows.front().words->size();
    std::vector<Column> columns(width);
    size_t anchors = 0, varying = 0, guessed = 0;
    for (size_t c = 0; c < width; ++c) {
      count(rows, c);
      if (values_.front() == values_.back()) anchors += words_[values_.front()].traits.anchor;
    }
    bool all_pass = true;
    for (size_t c = 0; c < width; ++c) {
      columns[c] = judge(rows, c, anchors);
      varying += columns[c].varies;
      guessed += columns[c].varies && !columns[c].granted;
      all_pass = all_pass && (!columns[c].varies || columns[c].passes);
    }
    const bool enough = varying > 0 && anchors + 1 >= 2 * guessed;
    if (all_pass && enough) return join(rows, columns, work);
    split(rows, columns, enough, work);
  }

  static bool apart_from(const Column& column, const WordTraits& traits) {
    return traits.state || (traits.verb && !column.vocabulary);
  }

  void join(const std::vector<FormRow>& rows, const std::vector<Column>& columns, Groups& work) {
    // A row with a word of state in an open column has another meaning. Rows with equal states form a group
    // of their own.
    std::vector<uint32_t> joined;
    std::map<std::vector<std::string_view>, std::vector<FormRow>> apart;
    for (const FormRow& row : rows) {
      std::vector<std::string_view> states;
      for (size_t c = 0; c < columns.size(); ++c)
        if (columns[c].varies)
          states.push_back(apart_from(columns[c], word(row, c).traits) ? word(row, c).text
                                                                       : std::string_view{});
      if (std::any_of(states.begin(), states.end(), [](std::string_view s) { return !s.empty(); }))
        apart[states].push_back(row);
      else
        joined.push_back(row.cluster);
    }
    for (auto& [states, group] : apart)
      if (group.size() < rows.size()) work.push_back(std::move(group));
    if (joined.size() < 2) return;
    uint64_t open = 0;
    for (size_t c = 0; c < columns.size(); ++c) open |= uint64_t{columns[c].varies} << c;
    for (const uint32_t cluster : joined) openings_.push_back({cluster, open});
  }

  // Splits the rows by the most frequent word of the undecided columns: a word that a template shares is at
  // least as frequent as any of its values.
  void split(const std::vector<FormRow>& rows, const std::vector<Column>& columns, bool enough,
             Groups& work) {
    size_t best = columns.size();
    for (size_t c = 0; c < columns.size(); ++c) {
      if (!columns[c].varies || (enough && columns[c].passes)) continue;
      if (best == columns.size() || columns[c].top > columns[best].top) best = c;
    }
    if (best == columns.size() || columns[best].top < 2) return;
    const bool small = rows.size() <= kSmallGroup;
    std::unordered_map<WordId, std::vector<FormRow>> with;
    std::unordered_map<WordId, size_t> counts;
    for (const FormRow& row : rows) ++counts[(*row.words)[best]];
    const size_t least = small ? columns[best].top : std::min(columns[best].top, kFrequent);
    std::vector<FormRow> without;
    for (const FormRow& row : rows) {
      const WordId id = (*row.words)[best];
      if (small ? id == columns[best].word : counts[id] >= least)
        with[id].push_back(row);
      else
        without.push_back(row);
    }
    for (auto& [id, group] : with)
      if (group.size() > 1) work.push_back(std::move(group));
    if (without.size() > 1) work.push_back(std::move(without));
  }

  const std::vector<Word>& words_;
  const MinerThresholds& thresholds_;
  std::vector<Opening>& openings_;
  std::vector<WordId> values_;
};

}  // namespace

void find_openings(std::vector<FormRow> rows, const std::vector<Word>& words,
                   const MinerThresholds& thresholds, std::vector<Opening>& openings) {
  if (rows.size() < 2 || rows.front().words->empty() || rows.front().words->size() > kColumns) return;
  const size_t before = openings.size();
  Settler(words, thresholds, openings).run(std::move(rows));
  std::sort(openings.begin() + static_cast<std::ptrdiff_t>(before), openings.end(),
            [](const Opening& a, const Opening& b) { return a.cluster < b.cluster; });
}

}  // namespace culprit::logs
