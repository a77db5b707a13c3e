// A form cut into pieces for mining: words (which may be holes) and the punctuation that holds them. Forms of
// the same punctuation have the same shape; only they are compared, word by word. Used by the miner alone;
// pure.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace culprit::logs {

// The kind of a word by its place.
enum class Place : uint8_t {
  kText,
  kAssigned,  // "name=root": the value of a key
  kValue,     // a value, whatever it says: "force=false", "(null)", "www.example.com:<*>"
};

// A quoted stretch of a few words is one word: a value such as tag="View Lock" has as many words as it likes.
struct Pieces {
  uint64_t shape = 0;                   // hash of punctuation, spaces and the places of words
  std::vector<std::string_view> words;  // into the form
  std::vector<Place> places;            // by word
};

// Cuts `form` into `pieces`, whose memory is used again.
void cut_pieces(std::string_view form, Pieces& pieces);

// What a word can be taken for.
struct WordTraits {
  bool hole = false;       // "<*>"
  bool typed = false;      // has a hole in it: "rank<*>"
  bool numbered = false;   // of one part with a number: "rank<*>" tells a kind, "x_y<*>" is a name
  bool qualified = false;  // parts joined by full stops, dashes, an at: a name of something
  bool anchor = false;     // letters enough to tell what is spoken of
  bool state = false;      // tells trouble, or that there is no value: never one that may vanish in a hole
  bool assigned = false;   // the value of a key
  bool value = false;      // by its place a value, whatever it says
  bool verb = false;  // tells a state or an action: no value either, unless many words stand at its place
};
WordTraits traits_of(std::string_view word, Place place);

}  // namespace culprit::logs
