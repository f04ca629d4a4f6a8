#!/usr/bin/env python3
"""The snippet check must fail where a page is wrong, and say where."""

import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

CHECK = Path(__file__).with_name("check_snippets.py")
LIBRARY, COMMAND = sys.argv[1:3]

# a page, what the complaint must say (None: no complaint)
PAGES = [
    ("text\n```cpp\nint one = 1;\nassert(one == 1);\n```\n", None),
    ("```cpp file\nint two() { return 2; }\n```\n```cpp\nassert(two() == 2);\n```\n", None),
    ("```cpp norun\nstd::abort();\n```\n", None),
    ("```cpp\nint main() { return 0; }\n```\n", None),
    ("```sh run\nholdfast --version\n```\n", None),
    ("```sh\nno-such-command\n```\n", None),
    ("text\n```cpp\n\nundeclared();\n```\n", "page.md:4:"),
    ("```cpp\nassert(!client.try_acquire(\"a\"));\n```\n", "exit status"),
    ("```cpp\nint main() { return 3; }\n```\n", "exit status 3"),
    ("text\n```sh run\nfalse\n```\n", "page.md:3: exit status 1"),
    ("```cpp\nint open;\n", "has no end"),
]


class SnippetCheck(unittest.TestCase):
    def test_pages(self):
        for text, complaint in PAGES:
            with self.subTest(text=text), tempfile.TemporaryDirectory() as folder:
                page = Path(folder, "page.md")
                page.write_text(text)
                result = subprocess.run(
                    [sys.executable, CHECK, "--library", LIBRARY, "--command", COMMAND, page],
                    stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
                self.assertEqual(result.returncode, 1 if complaint else 0, result.stdout)
                self.assertIn(complaint or "", result.stdout)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
