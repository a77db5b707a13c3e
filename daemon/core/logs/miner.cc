// Forms stay separate until settle() joins them. The shapes with open columns that it finds then catch
// further forms at once. So the result depends on the set of forms, not on their order. No similarity
// threshold is needed while few forms are known.
#include "core/logs/miner.h"

#include <algorithm>
#include <deque>
#include <map>
#include <unordered_map>
#include <utility>

#include "base/check.h"
#include "base/hash.h"
#include "base/limits.h"
#include "core/logs/mask.h"
#include "core/logs/mask_token.h"
#include "core/logs/miner_pieces.h"
#include "core/logs/miner_settle.h"
#include "core/logs/miner_words.h"

namespace culprit::logs {
namespace {

// Number of live forms that triggers a settle(); doubled each time, so that the total work stays linear.
constexpr size_t kFirstSettle = 8192;
// Limit of all ids, against an adversary whose forms settle() joins again and again.
constexpr size_t kIds = 4 * limits::kTemplates;
// Limit of stored text. The forms of a real job have a few MB. Without this limit, long forms could need
// kTemplates times kMessageBytes.
constexpr size_t kTextBytes = 24 << 20;
// Limit of different words in all forms, some hundred bytes each. A real job has some ten thousand.
constexpr size_t kWordsMax = 400'000;
// Limit of column sets per shape that are compared with a new form.
constexpr size_t kPatterns = 16;
// Rounds of one settle(): columns opened in one round are evidence in the next.
constexpr int kRounds = 4;
// Catch-alls are separate by number of words, up to this number.
constexpr size_t kFoldLengths = 64;

struct Cluster {
  std::string text;
  uint64_t name = 0;
  uint64_t count = 0;
  uint64_t shape = 0;
  ClusterId parent = 0;
  bool settled = false;  // some of its holes come from joining
  bool fold = false;     // a catch-all
  std::vector<WordId> words;
  uint64_t spoken = 0;  // hash of the words without holes, or of the text if it has too few words
};

// "(<*>)", "[<*>, <*>]": whether the hole is in an optional part.
bool in_brackets(std::string_view text, std::string_view hole) {
  const auto at = static_cast<size_t>(hole.data() - text.data());
  const size_t open = at == 0 ? text.npos : text.find_last_of("()[]{}", at - 1);
  return open != text.npos && (text[open] == '(' || text[open] == '[' || text[open] == '{');
}

// "(root) run <*>": the first word is a value more often than an event's name. A hole is no bracket.
bool begins_in_brackets(std::string_view text) {
  return !text.empty() && std::string_view("([{\"'").find(text[0]) != text.npos;
}

struct Pattern {
  uint64_t open = 0;                                 // bit set of columns
  std::unordered_map<uint64_t, ClusterId> by_words;  // hash of the other columns
};

}  // namespace

struct Miner::Impl {
  MinerThresholds thresholds;
  std::vector<Cluster> clusters;
  std::unordered_map<uint64_t, ClusterId> forms;                // by hash of the form
  std::unordered_map<uint64_t, std::vector<Pattern>> patterns;  // by shape
  std::map<size_t, ClusterId> folds;                            // by number of words
  std::deque<std::string> texts;                                // of words
  std::unordered_map<std::string_view, WordId> word_ids[3];     // by place
  std::vector<Word> words;
  size_t live = 0;
  size_t text_bytes = 0;
  size_t next_settle = kFirstSettle;
  uint64_t folded = 0;
  Pieces pieces;

  WordId intern(std::string_view text, Place place) {
    auto& ids = word_ids[static_cast<size_t>(place)];
    const auto found = ids.find(text);
    if (found != ids.end()) return found->second;
    const std::string& retained = texts.emplace_back(text);
    const auto id = static_cast<WordId>(words.size());
    words.push_back({retained, traits_of(retained, place)});
    ids.emplace(retained, id);
    return id;
  }

  ClusterId root(ClusterId id) const {
    while (clusters[id].parent != id) id = clusters[id].parent;
    return id;
  }

  ClusterId create(std::string_view text) {
    const auto id = static_cast<ClusterId>(clusters.size());
    Cluster& cluster = clusters.emplace_back();
    cluster.text = text;
    cluster.name = hash64(text);
    cluster.parent = id;
    ++live;
    return id;
  }

  void describe(Cluster& cluster) {
    cut_pieces(cluster.text, pieces);
    cluster.shape = pieces.shape;
    cluster.words.clear();
    cluster.spoken = 0;
    size_t anchors = 0;
    bool hole = false;
    for (size_t i = 0; i < pieces.words.size(); ++i) {
      const WordId id = intern(pieces.words[i], pieces.places[i]);
      cluster.words.push_back(id);
      if (words[id].traits.hole) {
        if (!in_brackets(cluster.text, pieces.words[i])) hole = true;
        continue;
      }
      if (std::exchange(hole, false)) cluster.spoken = mix64(cluster.spoken, 1);
      anchors += words[id].traits.anchor;
      const bool counted = i > 0 && pieces.words[i - 1] == kHole;  // "1 file", "2 files"
      cluster.spoken =
          mix64(cluster.spoken, counted ? singular_hash(pieces.words[i]) : hash64(pieces.words[i]));
    }
    if (hole) cluster.spoken = mix64(cluster.spoken, 1);
    if (anchors < thresholds.words_equal || pieces.words.size() > kColumns) cluster.spoken = ~cluster.name;
  }

  static uint64_t row_hash(const Pieces& row, uint64_t open) {
    uint64_t hash = open;
    for (size_t c = 0; c < row.words.size(); ++c)
      if (!(open >> c & 1)) hash = mix64(hash, hash64(row.words[c]));
    return hash;
  }

  // The template that settle() opened for forms like `pieces`; null: none.
  const ClusterId* find_pattern() const {
    const auto found = patterns.find(pieces.shape);
    if (found == patterns.end() || pieces.words.size() > kColumns) return nullptr;
    for (const Pattern& pattern : found->second) {
      const auto hit = pattern.by_words.find(row_hash(pieces, pattern.open));
      if (hit == pattern.by_words.end()) continue;
      bool state = false;
      for (size_t c = 0; c < pieces.words.size(); ++c)
        if (pattern.open >> c & 1) state |= traits_of(pieces.words[c], pieces.places[c]).state;
      if (!state) return &hit->second;
    }
    return nullptr;
  }

  ClusterId fold(uint64_t count) {
    folded += count;
    const size_t length = std::min(pieces.words.size(), kFoldLengths);
    const auto found = folds.find(length);
    if (found != folds.end()) return found->second;
    // This punctuation occurs in no form, so the name differs from all real templates.
    const ClusterId id = create("<*> (" + std::to_string(length) + " words, folded)");
    clusters[id].fold = true;
    folds.emplace(length, id);
    return id;
  }

  ClusterId place(std::string_view form, uint64_t count) {
    const uint64_t hash = hash64(form);
    const auto known = forms.find(hash);
    if (known != forms.end()) return known->second;
    cut_pieces(form, pieces);
    if (const ClusterId* found = find_pattern()) return *found;
    if (live >= next_settle && live < limits::kTemplates) {
      settle();
      next_settle = 2 * std::max(live, kFirstSettle / 2);
      return place(form, count);
    }
    const bool full = live >= limits::kTemplates || clusters.size() >= kIds || words.size() >= kWordsMax ||
                      text_bytes + form.size() > kTextBytes;
    if (full) return fold(count);
    text_bytes += form.size();
    const ClusterId id = create(form);
    forms.emplace(hash, id);
    describe(clusters[id]);
    return id;
  }

  void absorb(ClusterId into, ClusterId from) {
    Cluster& lost = clusters[from];
    clusters[into].count += lost.count;
    lost.parent = into;
    lost.count = 0;
    lost.text = {};
    lost.words = {};
    --live;
  }

  void remember(uint64_t open, ClusterId id) {
    cut_pieces(clusters[id].text, pieces);
    std::vector<Pattern>& list = patterns[pieces.shape];
    auto at = std::find_if(list.begin(), list.end(), [&](const Pattern& p) { return p.open == open; });
    if (at == list.end()) {
      if (list.size() >= kPatterns) return;
      at = list.insert(list.end(), Pattern{open, {}});
    }
    at->by_words.insert_or_assign(row_hash(pieces, open), id);
  }

  // The text of `cluster` with open columns as holes; adjacent holes are joined as in a mask.
  std::string opened(const Cluster& cluster, uint64_t open) {
    cut_pieces(cluster.text, pieces);
    std::string text;
    size_t done = 0;
    for (size_t c = 0; c < pieces.words.size() && c < kColumns; ++c) {
      if (!(open >> c & 1)) continue;
      const auto at = static_cast<size_t>(pieces.words[c].data() - cluster.text.data());
      text.append(cluster.text, done, at - done);
      text += kHole;
      done = at + pieces.words[c].size();
    }
    text.append(cluster.text, done);
    return form_text(text);
  }

  void rename(Cluster& cluster, std::string text) {
    cluster.text = std::move(text);
    cluster.name = hash64(cluster.text);
    describe(cluster);
  }

  void apply(const Opening& opening) {
    remember(opening.columns, opening.cluster);
    Cluster& cluster = clusters[opening.cluster];
    rename(cluster, opened(cluster, opening.columns));
    cluster.settled = true;
  }

  void join_clusters(ClusterId into, const std::vector<ClusterId>& others) {
    std::vector<std::string_view> versions{clusters[into].text};
    for (const ClusterId id : others) versions.push_back(clusters[id].text);
    std::string text = union_text(versions);
    for (const ClusterId id : others) {
      clusters[into].settled |= clusters[id].settled;
      absorb(into, id);
    }
    if (text != clusters[into].text) rename(clusters[into], std::move(text));
  }

  // Joins templates of equal words, whatever is between them: values, brackets, nothing.
  bool join_equal_words() {
    std::unordered_map<uint64_t, ClusterId> by_words;
    std::map<ClusterId, std::vector<ClusterId>> joins;
    for (ClusterId id = 0; id < clusters.size(); ++id) {
      if (clusters[id].parent != id || clusters[id].fold) continue;
      const auto [at, fresh] = by_words.try_emplace(clusters[id].spoken, id);
      if (!fresh) joins[at->second].push_back(id);
    }
    for (const auto& [into, others] : joins) join_clusters(into, others);
    return !joins.empty();
  }

  bool open_columns() {
    std::map<uint64_t, std::vector<FormRow>> shapes;
    for (ClusterId id = 0; id < clusters.size(); ++id) {
      const Cluster& c = clusters[id];
      if (c.parent == id && !c.fold)
        shapes[c.shape].push_back({id, c.settled, begins_in_brackets(c.text), &c.words});
    }
    std::vector<Opening> openings;
    for (auto& [shape, rows] : shapes) find_openings(std::move(rows), words, thresholds, openings);
    for (const Opening& opening : openings) apply(opening);
    return join_equal_words() || !openings.empty();
  }

  bool open_gaps() {
    std::vector<SpokenRow> rows;
    for (ClusterId id = 0; id < clusters.size(); ++id) {
      const Cluster& c = clusters[id];
      if (c.parent == id && !c.fold && c.words.size() <= kColumns) rows.push_back({id, &c.words});
    }
    std::vector<Opening> openings;
    find_spoken_openings(rows, words, thresholds, openings);
    for (const Opening& opening : openings) apply(opening);
    return join_equal_words() || !openings.empty();
  }

  void settle() {
    for (int round = 0; round < kRounds; ++round) {
      const bool columns = open_columns(), gaps = open_gaps();
      if (!columns && !gaps) break;
    }
    for (ClusterId id = 0; id < clusters.size(); ++id) clusters[id].parent = root(id);
  }
};

Miner::Miner() : Miner(MinerThresholds{}) {}
Miner::Miner(const MinerThresholds& thresholds) : impl_(std::make_unique<Impl>()) {
  impl_->thresholds = thresholds;
}
Miner::~Miner() = default;
Miner::Miner(Miner&&) noexcept = default;
Miner& Miner::operator=(Miner&&) noexcept = default;

ClusterId Miner::add(std::string_view form, uint64_t count) {
  const ClusterId id = impl_->place(form, count);
  impl_->clusters[impl_->root(id)].count += count;
  return id;
}

void Miner::settle() { impl_->settle(); }

ClusterId Miner::resolve(ClusterId id) const {
  CULPRIT_CHECK(id < impl_->clusters.size());
  return impl_->root(id);
}

const std::string& Miner::text(ClusterId id) const { return impl_->clusters[resolve(id)].text; }
uint64_t Miner::name(ClusterId id) const { return impl_->clusters[resolve(id)].name; }
uint64_t Miner::count(ClusterId id) const { return impl_->clusters[resolve(id)].count; }

std::vector<ClusterId> Miner::clusters() const {
  std::vector<ClusterId> out;
  for (ClusterId id = 0; id < impl_->clusters.size(); ++id)
    if (impl_->clusters[id].parent == id) out.push_back(id);
  return out;
}

size_t Miner::size() const { return impl_->clusters.size(); }
uint64_t Miner::folded() const { return impl_->folded; }

}  // namespace culprit::logs
