#!/usr/bin/env python3
"""The checker's own test: what it must find is done to a journal on purpose. Rows as tests/run reads them."""
import json
import random
import sys

from checker import compare, lines_of, runs_missing, stamped, unreported

LINES = [stamped("s1", n, f"step {n} loss 2.{n % 7}") for n in range(2000)]
JOURNAL = b"".join(LINES)


def joined(*parts) -> bytes:
    return b"".join(b"".join(LINES[a:b]) for a, b in parts)


def nothing_wrong() -> bool:
    return compare(JOURNAL, JOURNAL).exact()


def lost_in_the_middle() -> bool:
    found = compare(joined((0, 700), (900, 2000)), JOURNAL)
    return found.lost == len(joined((700, 900))) and not found.doubled and len(found.breaks) == 1


def lost_at_the_end() -> bool:
    found = compare(joined((0, 1990)), JOURNAL)
    return found.lost == len(joined((1990, 2000))) and len(found.breaks) == 1


def cut_within_lines() -> bool:
    evidence = JOURNAL[:50_001] + JOURNAL[61_007:]
    found = compare(evidence, JOURNAL)
    return found.lost == 11_006 and not found.altered


def fragment_between_two_losses() -> bool:
    found = compare(JOURNAL[:1000] + JOURNAL[1500:1600] + JOURNAL[2300:], JOURNAL)
    return found.lost == 1200 and len(found.breaks) == 2 and not found.altered and not found.doubled


def doubled() -> bool:
    found = compare(joined((0, 700), (500, 2000)), JOURNAL)
    return found.doubled == len(joined((500, 700))) and not found.lost and not found.altered


def altered() -> bool:
    evidence = bytearray(JOURNAL)
    evidence[70_000] ^= 1
    found = compare(bytes(evidence), JOURNAL)
    return found.altered > 0


def reordered() -> bool:
    found = compare(joined((0, 500), (600, 700), (500, 600), (700, 2000)), JOURNAL)
    return not found.exact()


def reported_and_unreported() -> bool:
    evidence = joined((0, 700), (900, 1500), (1600, 2000))
    found = compare(evidence, JOURNAL)
    first, second = found.breaks[0][0], found.breaks[1][0]
    room = second + found.breaks[0][1]
    return (len(unreported(found, [])) == 2 and len(unreported(found, [{"offset": first}])) == 1
            and not unreported(found, [{"offset": first}, {"offset": second}])
            and not unreported(found, [{"offset": first}, {"offset": room}]))


def numbers_of_one_source() -> bool:
    mixed = b"".join(stamped("b", n, "x") + (stamped("a", n, "y") if n % 10 else b"") for n in range(100))
    found = lines_of(mixed + stamped("a", 5, "y"), "a")
    return found.good == 91 and found.doubled == 1 and len(runs_missing(found.numbers, 100)) == 10


def lines_within_json() -> bool:
    rows = [json.dumps({"line": line.decode().rstrip("\n")}).encode() + b"\n" for line in LINES[:10]]
    found = lines_of(b"".join(rows[:4] + rows[7:]), "s1")
    return found.numbers == [0, 1, 2, 3, 7, 8, 9] and found.places[4] == len(b"".join(rows[:4]))


def many_random_cuts() -> bool:
    for seed in range(20):
        rng = random.Random(seed)
        cuts = sorted(rng.sample(range(1000, len(JOURNAL) - 1000, 500), 6))
        kept = ((0, cuts[0]), (cuts[1], cuts[2]), (cuts[3], cuts[4]), (cuts[5], len(JOURNAL)))
        evidence = b"".join(JOURNAL[a:b] for a, b in kept)
        found = compare(evidence, JOURNAL)
        lost = sum(cuts[i + 1] - cuts[i] for i in (0, 2, 4))
        if found.lost != lost or found.doubled or found.altered:
            return False
    return True


def main() -> int:
    tests = [value for name, value in list(globals().items())
             if callable(value) and getattr(value, "__module__", "") == "__main__" and name not in
             ("main", "joined")]
    failed = 0
    for test in tests:
        good = test()
        failed += not good
        print(f"{'ok  ' if good else 'FAIL'} checker: {test.__name__}{'' if good else ': it sees it wrong'}")
    print(f"{len(tests) - failed} passed, {failed} failed")
    return bool(failed)


if __name__ == "__main__":
    sys.exit(main())
