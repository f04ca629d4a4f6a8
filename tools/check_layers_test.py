#!/usr/bin/env python3
"""A layer check that lets everything pass would go unnoticed: each rule is broken once here."""

import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

CHECK = Path(__file__).with_name("check_layers.py")

# file, its text, what the complaint must say
REFUSED = [
    ("src/base/a.h", "#include <holdfast/error.h>", "base may not include values"),
    ("src/base/a.h", '#include "core/lock_record.h"', "base may not include core"),
    ("src/base/a.h", "#include <boost/asio.hpp>", "base may not include this"),
    ("src/core/a.h", '#include "engine/engine.h"', "core may not include engine"),
    ("src/core/a.h", "#include <holdfast/client.h>", "core may not include api"),
    ("src/core/a.h", "#include <thread>", "core is pure"),
    ("src/core/a.cc", "#include <unistd.h>", "core is pure"),
    ("src/core/a.cc", "auto t = std::chrono::steady_clock::now();", "time is passed in"),
    ("src/core/a.cc", "auto t = base::BootClock::now();", "time is passed in"),
    ("src/engine/a.h", '#include "engines/sqlite/sqlite_engine.h"', "engine may not include engines"),
    ("src/engines/sqlite/a.h", '#include "client/service.h"', "engines may not include client"),
    ("src/engines/sqlite/a.h", '#include "engines/memory/a.h"', "may not know the engine memory"),
    ("src/engines/redis/a.h", '#include "engines/redlock/a.h"', "may not know the engine redlock"),
    ("src/engines/sqlite/sqlite_engine.cc", "#include <sqlite3.h>", "only sqlite_session"),
    ("src/engines/memory/a.cc", "std::this_thread::sleep_for(1s);", "time is passed in"),
    ("src/client/a.h", '#include "engines/memory/a.h"', "client may not include engines"),
    ("src/client/a.h", '#include "outbox.h"', "write the path from src/"),
    ("src/helpers/a.h", "", "belongs to no layer"),
    ("include/holdfast/a.h", '#include "base/time.h"', "api may not include base"),
    ("include/holdfast/a.h", "#include <boost/asio/post.hpp>", "api may not include this"),
    ("apps/holdfast/a.cc", '#include "base/time.h"', "apps may not include base"),
    ("apps/proof/a.cc", '#include "core/lock_record.h"', "proof may not include core"),
    ("examples/a.cc", '#include "proof/a.h"', "examples may not include proof"),
    ("examples/a.cc", '#include "client/service.h"', "examples may not include client"),
]

ACCEPTED = [
    ("src/base/a.cc", '#include <sys/random.h>\n#include <ctime>\n#include "base/a.h"'),
    ("src/core/a.h", '#include <holdfast/options.h>\n#include <vector>\n#include "base/ids.h"'),
    ("src/core/a.cc", "// steady_clock::now() is not for us"),
    ("src/engines/sqlite/sqlite_session.h", "#include <sqlite3.h>"),
    ("src/engines/sqlite/a.cc", "base::sleep_for(1ms); auto t = base::BootClock::now();"),
    ("src/engines/redlock/a.h", '#include "engines/redis/redis_session.h"'),
    ("src/engines/all.cc", '#include "engines/memory/a.h"\n#include "engines/sqlite/a.h"'),
    ("src/client/a.cc", "#include <holdfast/client.h>\n#include <boost/asio/post.hpp>"),
    ("include/holdfast/asio.h", "#include <boost/asio/post.hpp>"),
    ("apps/holdfast/a.cc", '#include <CLI/CLI.hpp>\n#include "a.cc"'),
    ("apps/proof/a.cc", '#include "base/time.h"\n#include "proof/a.h"'),
    ("apps/holdfast/b.cc", '#include "proof/a.h"'),
    ("tests/unit/a.cc", '#include "core/lock_record.h"'),
]


def check(file, text):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, file)
        path.parent.mkdir(parents=True)
        path.write_text(text + "\n")
        return subprocess.run([sys.executable, CHECK, folder], capture_output=True, text=True,
                              check=False)


class LayerCheck(unittest.TestCase):
    def test_refuses_each_kind_of_violation(self):
        for file, text, complaint in REFUSED:
            with self.subTest(file=file, text=text):
                result = check(file, text)
                self.assertEqual(result.returncode, 1, result.stderr)
                self.assertIn(complaint, result.stderr)

    def test_accepts_what_points_downwards(self):
        for file, text in ACCEPTED:
            with self.subTest(file=file, text=text):
                result = check(file, text)
                self.assertEqual((result.returncode, result.stderr), (0, ""))


if __name__ == "__main__":
    unittest.main()
