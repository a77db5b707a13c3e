#include "core/logs/miner_words.h"

#include <algorithm>
#include <map>
#include <unordered_map>
#include <utility>

#include "base/hash.h"
#include "core/logs/mask_token.h"

namespace culprit::logs {
namespace {

// Names with parts, numbered names and truth values are values wherever they vary, unless they name a state.
bool is_name(const WordTraits& traits) {
  return (traits.qualified || traits.typed || traits.value || traits.assigned) && !traits.state &&
         !traits.verb;
}

struct Spoken {
  uint32_t cluster = 0;
  std::vector<WordId> words;  // without holes
  std::vector<uint8_t> at;    // positions of these words among all words
  uint64_t holes = 0;         // bit i: a hole before words[i]; the last bit: a hole at the end
};

Spoken spoken_of(const SpokenRow& row, const std::vector<Word>& words) {
  Spoken out{row.cluster, {}, {}, 0};
  for (size_t i = 0; i < row.words->size(); ++i) {
    const WordId id = (*row.words)[i];
    if (words[id].traits.hole) {
      out.holes |= uint64_t{1} << std::min<size_t>(out.words.size(), 63);
      continue;
    }
    out.words.push_back(id);
    out.at.push_back(static_cast<uint8_t>(i));
  }
  return out;
}

// Polynomial hashes of a sequence of words: of all words, and in constant time of all but one.
class SequenceHash {
 public:
  explicit SequenceHash(const std::vector<WordId>& words) : head_(words.size() + 1), tail_(words.size() + 1) {
    uint64_t power = 1;
    for (size_t i = 0; i < words.size(); ++i, power *= kBase) {
      powers_.push_back(power);
      head_[i + 1] = head_[i] + power * mix64(1, words[i]);
    }
    for (size_t i = words.size(); i-- > 0;) tail_[i] = mix64(1, words[i]) + kBase * tail_[i + 1];
  }

  uint64_t all() const { return tail_[0]; }
  uint64_t without(size_t i) const { return head_[i] + powers_[i] * tail_[i + 1]; }

 private:
  static constexpr uint64_t kBase = 0x9e3779b97f4a7c15;
  std::vector<uint64_t> head_, tail_, powers_;
};

using Openings = std::map<uint32_t, uint64_t>;  // columns by cluster

// Finds plain words in the position of a hole of another template with otherwise equal words.
class HoleFinder {
 public:
  HoleFinder(const std::vector<Spoken>& rows, const std::vector<Word>& words, size_t words_around)
      : words_(words), words_around_(words_around) {
    for (const Spoken& row : rows) holes_[SequenceHash(row.words).all()] |= row.holes;
  }

  uint64_t columns(const Spoken& row) const {
    size_t anchors = 0;
    for (const WordId id : row.words) anchors += words_[id].traits.anchor;
    if (anchors <= words_around_) return 0;
    const SequenceHash hash(row.words);
    uint64_t open = 0;
    for (size_t i = 0; i < row.words.size(); ++i)
      if (may_be_value(row, i) && has_hole(hash.without(i), i)) open |= uint64_t{1} << row.at[i];
    return open;
  }

 private:
  bool may_be_value(const Spoken& row, size_t i) const {
    const WordTraits& traits = words_[row.words[i]].traits;
    // A word next to a hole did not replace a hole.
    return traits.anchor && !traits.state && !traits.verb && (row.holes >> i & 3) == 0;
  }

  bool has_hole(uint64_t sequence, size_t i) const {
    const auto found = holes_.find(sequence);
    return found != holes_.end() && (found->second >> i & 1) != 0;
  }

  const std::vector<Word>& words_;
  const size_t words_around_;
  std::unordered_map<uint64_t, uint64_t> holes_;  // by SequenceHash::all()
};

// Compares templates of equal plain words: the names and holes between two plain words are a value if they
// vary.
class GapFinder {
 public:
  GapFinder(const std::vector<Word>& words, size_t words_shared)
      : words_(words), words_shared_(words_shared) {}

  void find(const std::vector<Spoken>& rows, Openings& open) const {
    std::unordered_map<uint64_t, std::vector<const Spoken*>> groups;
    for (const Spoken& row : rows)
      if (const uint64_t key = plain_hash(row)) groups[key].push_back(&row);
    for (const auto& [key, group] : groups)
      if (group.size() > 1) compare(group, open);
  }

 private:
  struct Gap {
    uint64_t first = 0;
    bool varies = false;
    bool value = false;  // some row has more than a kind there
    bool empty = false;  // some row has an empty gap
  };

  // A numbered name is a kind ("eth<*>"); other names and bare numbers are values.
  bool value(WordId id) const { return !words_[id].traits.numbered; }
  bool name(WordId id) const { return is_name(words_[id].traits); }

  uint64_t plain_hash(const Spoken& row) const {
    uint64_t hash = 1;
    size_t anchors = 0;
    for (const WordId id : row.words) {
      if (name(id)) continue;
      anchors += words_[id].traits.anchor;
      hash = mix64(hash, id);
    }
    return anchors < words_shared_ ? 0 : hash;
  }

  struct Content {
    uint64_t hash = 0;  // 0: empty
    bool hole = false, typed = false, value = false;
  };

  std::vector<Content> contents(const Spoken& row) const {
    std::vector<Content> out(1);
    for (size_t i = 0; i <= row.words.size(); ++i) {
      if (row.holes >> std::min<size_t>(i, 63) & 1) {
        out.back().hash = mix64(out.back().hash, 1);
        out.back().hole = true;
      }
      if (i == row.words.size()) break;
      if (name(row.words[i])) {
        out.back().hash = mix64(out.back().hash, row.words[i] + uint64_t{2});
        (value(row.words[i]) ? out.back().value : out.back().typed) = true;
      } else {
        out.emplace_back();
      }
    }
    return out;
  }

  void compare(const std::vector<const Spoken*>& group, Openings& open) const {
    std::vector<Gap> gaps;
    for (const Spoken* row : group) {
      const std::vector<Content> now = contents(*row);
      gaps.resize(now.size());
      for (size_t g = 0; g < now.size(); ++g) {
        if (row == group.front()) gaps[g].first = now[g].hash;
        gaps[g].varies |= now[g].hash != gaps[g].first;
        gaps[g].value |= now[g].value || (now[g].hole && !now[g].typed);
        gaps[g].empty |= now[g].hash == 0;
      }
    }
    for (const Spoken* row : group) {
      size_t gap = 0;
      for (size_t i = 0; i < row->words.size(); ++i) {
        if (!name(row->words[i]))
          ++gap;
        else if (gaps[gap].varies && gaps[gap].value && !gaps[gap].empty)
          open[row->cluster] |= uint64_t{1} << row->at[i];
      }
    }
  }

  const std::vector<Word>& words_;
  const size_t words_shared_;
};

}  // namespace

void find_spoken_openings(const std::vector<SpokenRow>& rows, const std::vector<Word>& words,
                          const MinerThresholds& thresholds, std::vector<Opening>& openings) {
  std::vector<Spoken> all;
  for (const SpokenRow& row : rows) all.push_back(spoken_of(row, words));
  Openings open;
  const HoleFinder holes(all, words, thresholds.words_hole);
  for (const Spoken& row : all)
    if (const uint64_t columns = holes.columns(row)) open[row.cluster] |= columns;
  GapFinder(words, thresholds.words_gap).find(all, open);
  for (const auto& [cluster, columns] : open) openings.push_back({cluster, columns});
}

uint64_t singular_hash(std::string_view word) {
  const auto ends = [&](std::string_view end) { return word.ends_with(end); };
  if (word.size() < 4 || !ends("s") || ends("ss") || ends("us") || ends("is")) return hash64(word);
  if (ends("ies")) return hash64(std::string(word.substr(0, word.size() - 3)) + "y");
  const bool es = ends("sses") || ends("xes") || ends("shes") || ends("tches");
  return hash64(word.substr(0, word.size() - (es ? 2 : 1)));
}

std::string union_text(const std::vector<std::string_view>& texts) {
  std::vector<std::string> gaps;
  std::vector<std::string_view> spoken;
  Pieces pieces;
  const auto longer = [](std::string_view a, std::string_view b) {
    return std::make_pair(a.size(), a) > std::make_pair(b.size(), b);
  };
  for (const std::string_view text : texts) {
    cut_pieces(text, pieces);
    size_t done = 0, gap = 0;
    const auto keep = [&](size_t end) {
      const std::string_view between = text.substr(done, end - done);
      if (gap == gaps.size()) gaps.emplace_back(between);
      std::string& retained = gaps[gap++];
      if (longer(between, retained)) retained = between;
    };
    for (const std::string_view word : pieces.words) {
      if (word == kHole) continue;
      const auto at = static_cast<size_t>(word.data() - text.data());
      keep(at);
      done = at + word.size();
      if (gap > spoken.size())
        spoken.push_back(word);
      else if (longer(word, spoken[gap - 1]))
        spoken[gap - 1] = word;
    }
    keep(text.size());
  }
  std::string out;
  for (size_t i = 0; i < spoken.size(); ++i) out.append(gaps[i]).append(spoken[i]);
  return out + gaps[spoken.size()];
}

}  // namespace culprit::logs
