// Random numbers of the kernel, for names and keys that must not be guessed, and for numbers that differ
// between starts. Not for core, whose results depend on its inputs alone. Any thread. May wait while the
// machine boots.
#pragma once

#include <cstddef>
#include <cstdint>

namespace culprit {

// Fills all bytes. False, with errno: the kernel gives this process none.
[[nodiscard]] bool fill_random(void* out, size_t size);
// Never 0. Ends the program if the kernel gives none.
uint64_t random_number();
// From -1 up to 1, to spread waiting times.
double random_share();

}  // namespace culprit
