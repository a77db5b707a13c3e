#!/usr/bin/env python3
"""Writes the plugin header of a later minor version: grow.py HEADER OUT. Structs that cross the border most
get a member at their end, as the next release would add it."""
import re
import sys
from pathlib import Path

GROWN = ("culprit_host", "culprit_detector", "culprit_event", "culprit_detector_finding",
         "culprit_description")
MEMBER = "  uint64_t grown; /* since the later version */\n"


def main() -> int:
    text = Path(sys.argv[1]).read_text(encoding="utf-8")
    for name in GROWN:
        # The definition ends with "};" or "} name;" at the beginning of a line.
        text, count = re.subn(rf"(struct {name} \{{\n(?:.*\n)*?)(\}}(?: {name})?;\n)", rf"\1{MEMBER}\2", text,
                              count=1)
        text, sizes = re.subn(rf"(CULPRIT_ASSERT_SIZE\({name}, )(\d+)\)",
                              lambda found: f"{found[1]}{int(found[2]) + 8})", text)
        if count != 1 or sizes != 1:
            print(f"grow.py: {name} is not found as it was", file=sys.stderr)
            return 1
    text, count = re.subn(r"#define CULPRIT_ABI_MINOR (\d+)\n",
                          lambda found: f"#define CULPRIT_ABI_MINOR {int(found[1]) + 1}\n"
                                        "#define CULPRIT_TEST_GROWN 1\n", text)
    if count != 1:
        print("grow.py: the minor version is not found", file=sys.stderr)
        return 1
    Path(sys.argv[2]).write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
