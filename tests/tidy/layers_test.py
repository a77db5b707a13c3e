#!/usr/bin/env python3
"""That layers.py finds what it is there for and nothing else: a table of texts with words of the offence."""
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
import layers

HEAD = "// What it is.\n#pragma once\n"
LONG_BODY = "{\n" + "  g();\n" * 70 + "}\n"
CASES = (
    ("daemon/model/a.h", HEAD + '#include "base/text.h"\n#include <string>\n', None),
    ("daemon/base/a.cc", '#include "model/report.h"\n', "base may not include model"),
    ("daemon/ingest/a.cc", '#include "store/spool.h"\n', "ingest may not include store"),
    ("daemon/sim/a.cc", '#include "ingest/text_reader.h"\n', "sim may not include ingest"),
    ("daemon/cli/a.cc", '#include "io/env.h"\n', "cli may not include io"),
    ("daemon/app/daemon/intake/a.cc", '#include "app/daemon/api/daemon_api.h"\n',
     "app/daemon/intake may not include"),
    ("daemon/app/daemon/api/a.cc", '#include "app/daemon/keep/recorder.h"\n', None),
    ("daemon/app/daemon/api/a.cc", '#include "app/daemon/daemon.h"\n', "app/daemon/api may not include"),
    ("daemon/main.cc", '#include "cli/verbs.h"\n', None),
    ("daemon/core/logs/a.cc", '#include "core/detect/logs/pool.h"\n',
     "core/logs may not include core/detect"),
    ("daemon/core/detect/a.cc", '#include "core/logs/job_log.h"\n', None),
    ("daemon/core/detect/a.cc", '#include "../logs/job_log.h"\n', "full path"),
    ("daemon/core/embed/a.cc", '#include "culprit/embed.h"\n', None),
    ("daemon/core/logs/a.cc", '#include "culprit/embed.h"\n', "only core/embed"),
    ("tests/unit/core/a.cc", '#include "../../bench/comm/job.h"\n', "no header of tests/bench"),
    ("tests/unit/core/a.cc", '#include "../../sim/job.h"\n', None),
    ("plugins/a/a.c", '#include "core/engine.h"\n', "against sdk alone"),
    ("daemon/io/env.cc", "#include <uv.h>\n", "uv.h belongs to"),
    ("daemon/io/uv/env.cc", "#include <uv.h>\n", None),
    ("daemon/app/client.cc", "#include <curl/curl.h>\n", "curl.h belongs to"),
    ("daemon/io/http/exchange.cc", "#include <curl/curl.h>\n", None),
    ("daemon/core/a.cc", "namespace culprit::core {\n}\n", None),
    ("daemon/core/alert/a.cc", "namespace culprit::alert {\n}\n", None),
    ("daemon/core/alert/a.cc", "namespace culprit::core {\n}\n", "namespace culprit::core in a folder of"),
    ("daemon/core/detect/logs/a.cc", "namespace culprit::detect {\n}\n", None),
    ("daemon/io/http/a.cc", "namespace culprit::io {\n}\n", None),
    ("daemon/io/http/a.cc", "namespace culprit::http {\n}\n", "namespace culprit::http in a folder of"),
    ("daemon/sim/a.cc", "namespace culprit::sim::spell {\n}\n", None),
    ("daemon/model/a.h", HEAD + "namespace culprit {\n}\n", None),
    ("daemon/model/peer.h", HEAD + "namespace culprit::peer {\n}\n", None),
    ("daemon/model/a.h", HEAD + "namespace culprit::peer {\n}\n", "namespace culprit::peer in a folder of"),
    ("daemon/main.cc", "namespace culprit::rules {\n}\n", None),
    ("daemon/core/a.cc", "#include <fstream>\n", "<fstream>"),
    ("daemon/model/a.cc", "void f() { auto t = std::chrono::system_clock::now(); }\n", "system_clock"),
    ("daemon/model/a.cc", '// reads no system_clock\nconst char* k = "system_clock";\n', None),
    ("daemon/app/a.cc", "namespace a {\nvoid f() " + LONG_BODY + "}\n", "function of 72 lines"),
    ("daemon/app/a.cc", "class A {\n  A(int x) : x_(x) " + LONG_BODY + "};\n", "function of 72 lines"),
    ("daemon/app/a.cc", "constexpr int k[] = " + LONG_BODY.replace("g();", "1,") + ";\n", None),
    ("daemon/app/a.cc", 'const char* k = "{";\nvoid f() {}\n' + "int x;\n" * 80, None),
    ("daemon/app/a.cc", "int x;\n" * 801, "file of"),
    ("daemon/app/a.cc", "// " + "x" * 108 + "\n", "line of 111 columns"),
    ("daemon/app/a.cc", 'auto k = R"(' + "x" * 120 + ')";\n', None),
    ("daemon/app/a.cc", "\tint x;\n", "tab"),
    ("daemon/app/a.cc", "// TO" "DO: later\n", "unfinished"),
    ("daemon/app/a.h", "// What it is.\n", "no #pragma once"),
    ("daemon/app/a.h", "#pragma once\n", "no opening comment"),
    ("tests/a.py", "def f():\n" + "    g()\n" * 70, "function of 71 lines"),
)


def main() -> int:
    wrong = 0
    for name, text, expected in CASES:
        found = [offence.what for offence in layers.check_text(Path(name), text)]
        right = (not found) if expected is None else len(found) == 1 and expected in found[0]
        if not right:
            wrong += 1
            print(f"FAIL {name}: {text[:60]!r}: expected {expected}, found {found}")
    print(f"{len(CASES) - wrong} of {len(CASES)} cases right")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
