// Evidence that a position of a template holds a value. The numbers come from loghub's 2k samples, and were
// cross-validated by leaving out each set: tests/eval/loghub.py --leave-one-out.
#pragma once

#include <cstddef>

namespace culprit::logs {

struct MinerThresholds {
  // Number of values that prove a variable column, by the number of words that all rows share. Three shared
  // words or more are a sentence ("session opened for user ?"): three values suffice. With fewer shared
  // words, rows are more likely different messages of equal structure ("? startup succeeded").
  size_t values_of_three = 3, values_of_two = 4, values_of_one = 24;
  // The first word usually names the event or its subject ("cupsd startup succeeded", "boot (command <*>)").
  size_t values_first = 16;
  // "alt<*>", "ee<*>": the varying part is already a hole, and the rest names a kind.
  size_t values_typed = 8;
  // Names with parts ("host.example.com", "a-b") are values far more often than words of a sentence.
  size_t values_qualified = 2;
  // A word after an equals sign is a value by grammar: a second value proves it.
  size_t values_assigned = 2;
  // The same if the key is the only shared word: the value may be a state.
  size_t values_assigned_one = 4;
  // "user<*>" and "root" in one column, among three shared words or more.
  size_t values_mixed = 2;
  // Number of values that prove a column variable even if some look like verbs or enumerators.
  size_t vocabulary = 16;
  // Number of equal words that make two forms one template, whatever values and brackets are between.
  size_t words_equal = 2;
  // Plain words that templates must share before the names and holes between are compared.
  size_t words_gap = 3;
  // Words required around a plain word that fills the hole of another template.
  size_t words_hole = 3;
};

}  // namespace culprit::logs
