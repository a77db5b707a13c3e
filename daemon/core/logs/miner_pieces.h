// Cuts a form for mining into words (which may be holes) and the punctuation between. Forms of equal
// punctuation have equal shape; only such forms are compared, word by word. Only for the miner; pure.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace culprit::logs {

// The class of a word by its position.
enum class Place : uint8_t {
  kText,
  kAssigned,  // "name=root": the value of a key; "user root"
  kValue,     // a value by its position: "force=false", "(null)", "www.example.com:<*>"
};

// A quoted stretch of a few words is one word: a value such as tag="View Lock" has any number of words.
struct Pieces {
  uint64_t shape = 0;                   // hash of punctuation, spaces and the classes of words
  std::vector<std::string_view> words;  // views into the form
  std::vector<Place> places;            // by word
};

// Cuts `form` into `pieces`, and reuses the memory.
void cut_pieces(std::string_view form, Pieces& pieces);

// Properties of a word.
struct WordTraits {
  bool hole = false;       // "<*>"
  bool typed = false;      // contains a hole: "rank<*>"
  bool numbered = false;   // one part with a number: "rank<*>" is a kind, "x_y<*>" a name
  bool qualified = false;  // parts joined by full stops, dashes, "@", "#" or "$": a name
  bool anchor = false;     // enough letters to name a subject
  bool state = false;      // reports trouble, or the absence of a value: never becomes a hole
  bool assigned = false;   // the value of a key
  bool value = false;      // a value by its position
  bool verb = false;       // a state or an action: becomes a hole only in a column of many words
};
WordTraits traits_of(std::string_view word, Place place);

}  // namespace culprit::logs
