// How much evidence proves that a place of a template holds a value. The numbers come from loghub's 2k
// samples and were checked by leaving each set out: tests/eval/loghub.py --leave-one-out.
#pragma once

#include <cstddef>

namespace culprit::logs {

struct MinerThresholds {
  // How many values prove a column variable, by the number of words that all rows share. Three words or more
  // are a sentence of their own ("session opened for user ?"): three values suffice. The less is shared, the
  // likelier are the rows different messages of one build ("? startup succeeded").
  size_t values_of_three = 3, values_of_two = 8, values_of_one = 24;
  // The first word usually names the event or its subject ("cupsd startup succeeded", "boot (command <*>)").
  size_t values_first = 16;
  // "alt<*>", "ee<*>": the varying part is a hole already, and the rest names a kind.
  size_t values_typed = 8;
  // Names with parts ("host.example.com", "a-b") are values far more often than words of a sentence.
  size_t values_qualified = 2;
  // A word behind an equals sign is a value by grammar: a second one proves it.
  size_t values_assigned = 2;
  // Values that prove a column open to any word, though some look like verbs or enumerators.
  size_t vocabulary = 16;
  // Templates of equal words are one from this many words on, whatever values and brackets stand between.
  size_t words_equal = 2;
  // Plain words that templates must share before the names and holes between them are compared.
  size_t words_gap = 3;
  // Words that must stand around a plain word which is taken for the value of another template's hole.
  size_t words_hole = 3;
};

}  // namespace culprit::logs
