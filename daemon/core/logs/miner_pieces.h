// A form cut into pieces for mining: words (which may be holes) and the punctuation that holds them. Forms of
// the same punctuation have the same shape; only they are compared, word by word. Used by the miner alone;
// pure.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace culprit::logs {

struct Pieces {
  uint64_t shape = 0;                   // hash of punctuation, spaces and the places of words
  std::vector<std::string_view> words;  // into the form
};

// Cuts `form` into `pieces`, whose memory is used again.
void cut_pieces(std::string_view form, Pieces& pieces);

// What a word can be taken for.
struct WordTraits {
  bool hole = false;       // "<*>"
  bool typed = false;      // has a hole in it: "rank<*>"
  bool qualified = false;  // parts joined by full stops, dashes, an at: a name of something
  bool anchor = false;     // letters enough to tell what is spoken of
  bool state = false;      // tells trouble, or that there is no value: never one that may vanish in a hole
  bool verb = false;  // tells a state or an action: no value either, unless many words stand at its place
};
WordTraits traits_of(std::string_view word);

}  // namespace culprit::logs
