#!/usr/bin/env python3
"""Holds the layers: a folder includes itself and what the table below lists, nothing else.

  layering_test.py SOURCE_DIRECTORY

Scans the #include lines of every .h and .cc. A public header <pyplaypen/...> belongs to the layer
whose include/ folder holds it.
"""
import os
import re
import sys
import tempfile
import unittest

# folder -> (folders it may include besides itself, third-party code it may include)
LAYERS = {
    "runtime/sys": ([], ["libcrypto"]),
    "runtime/policy": (["runtime/sys"], []),
    "runtime/wire": (["runtime/sys", "runtime/policy"], ["nlohmann_json, in .cc only"]),
    "runtime/jail": (["runtime/sys", "runtime/policy"], []),
    "runtime/python": (["runtime/sys", "runtime/policy", "runtime/wire"], ["CPython"]),
    "zygote": (["runtime/sys", "runtime/policy", "runtime/wire", "runtime/jail", "runtime/python"], ["CPython"]),
    "supervisor": (["runtime/sys", "runtime/policy", "runtime/wire", "runtime/jail"], ["nlohmann_json"]),
    "cli": (["supervisor", "runtime/policy"], ["CLI11", "nlohmann_json, in .cc only"]),  # batch reads JSON lines
}
UNBOUND = ("tests", "bench", "examples")  # may include anything

THIRD_PARTY = [
    (re.compile(r"nlohmann/"), "nlohmann_json"),
    (re.compile(r"CLI/"), "CLI11"),
    (re.compile(r"openssl/"), "libcrypto"),
    (re.compile(r"(Python|structmember|frameobject|datetime|marshal)\.h$"), "CPython"),
]
# libc's and the kernel's. A new one is added here by whoever needs it first; anything else is third-party.
PLATFORM = re.compile(
    r"(sys|linux|asm|net|netinet|arpa|sanitizer)/[\w/]+\.h$|"
    r"(alloca|dirent|dlfcn|elf|endian|err|errno|execinfo|fcntl|features|fnmatch|ftw|glob|grp|inttypes|langinfo|"
    r"libgen|limits|link|locale|malloc|math|mntent|netdb|poll|pthread|pty|pwd|resolv|sched|semaphore|setjmp|"
    r"signal|spawn|stdarg|stddef|stdint|stdio|stdlib|string|strings|syslog|termios|time|ucontext|unistd|utime|"
    r"utmp|wait|wchar)\.h$"
)
STANDARD = re.compile(r"[a-z_]+$")  # <vector>, <string_view>
INCLUDE = re.compile(r'\s*#\s*include\s*([<"])([^>"]+)[>"]')


def sources(root):
    """Each (path below root, layer or None) of a .h or .cc."""
    for top in sorted({layer.split("/")[0] for layer in LAYERS} | {"runtime"}):
        for folder, folders, names in os.walk(os.path.join(root, top)):
            folders.sort()
            for name in sorted(names):
                if name.endswith((".h", ".cc")):
                    path = os.path.relpath(os.path.join(folder, name), root)
                    yield path, next((l for l in LAYERS if path.startswith(l + "/")), None)


def public_headers(root):
    """'pyplaypen/limits.h' -> layer."""
    found = {}
    for path, layer in sources(root):
        if layer and path.startswith(layer + "/include/"):
            found[path[len(layer) + len("/include/"):]] = layer
    return found


def complaint(path, layer, target, public):
    """What is wrong with `path`, of `layer`, including `target`; None when nothing is."""
    is_public = path.startswith(layer + "/include/")
    allowed, third_party = LAYERS[layer]
    owner = public.get(target) or next((l for l in LAYERS if target.startswith(l + "/")), None)
    if owner:
        if owner != layer and owner not in allowed:
            return f"{layer} may not include {owner}"
        if is_public and target not in public:
            return "a public header may include public headers only"
        return None
    if target.startswith("pyplaypen/"):
        return "no layer's include/ folder holds this header"
    if target.startswith(tuple(u + "/" for u in UNBOUND)):
        return f"{layer} may not include tests or benchmarks"
    if STANDARD.match(target) or PLATFORM.match(target):
        return None
    name = next((name for pattern, name in THIRD_PARTY if pattern.match(target)), None)
    if name is None:
        return "neither the platform's nor a known dependency (if it is libc's: add it to PLATFORM)"
    if is_public and target != "nlohmann/json_fwd.hpp":
        return f"a public header may not include {name}"
    if name in third_party or (f"{name}, in .cc only" in third_party and path.endswith(".cc")):
        return None
    return f"{layer} may not include {name}" + (" in a header" if f"{name}, in .cc only" in third_party else "")


def violations(root):
    found = []
    public = public_headers(root)
    for path, layer in sources(root):
        if layer is None:
            found.append(f"{path}:1: this folder is in no layer")
            continue
        with open(os.path.join(root, path), encoding="utf-8") as file:
            for number, line in enumerate(file, 1):
                if match := INCLUDE.match(line):
                    if wrong := complaint(path, layer, match[2], public):
                        found.append(f"{path}:{number}: #include of {match[2]}: {wrong}")
    return found


def violations_of(files):
    """The same for a made-up tree: path -> text."""
    with tempfile.TemporaryDirectory() as root:
        for path, text in files.items():
            os.makedirs(os.path.dirname(os.path.join(root, path)), exist_ok=True)
            with open(os.path.join(root, path), "w", encoding="utf-8") as file:
                file.write(text)
        return violations(root)


class Layering(unittest.TestCase):
    root = None

    def test_every_include_keeps_to_the_layers(self):
        found = violations(self.root)
        if found:
            self.fail("\n" + "\n".join(found))

    def test_there_is_something_to_scan(self):
        self.assertGreater(sum(1 for _ in sources(self.root)), 20)
        self.assertIn("pyplaypen/limits.h", public_headers(self.root))

    def test_what_must_not_be_included_is_found(self):
        cases = {
            "runtime/sys/a.cc": '#include "runtime/policy/b.h"\n',
            "runtime/policy/a.h": "#include <vector>\n\n  #  include <pyplaypen/sandbox.h>\n",
            "runtime/wire/a.h": "#include <nlohmann/json.hpp>\n",
            "runtime/jail/a.cc": "#include <Python.h>\n",
            "zygote/a.cc": '#include "supervisor/b.h"\n',
            "supervisor/include/pyplaypen/sandbox.h": '#include "runtime/sys/unique_fd.h"\n',
            "supervisor/a.cc": "#include <CLI/CLI.hpp>\n",
            "cli/a.cc": "#include <boost/asio.hpp>\n",
            "cli/b.cc": '#include "tests/unit/temp_tree.h"\n',
            "runtime/other/a.cc": "#include <vector>\n",
        }
        found = violations_of(cases)
        self.assertEqual(sorted(line.split(":")[0] for line in found), sorted(cases), found)
        self.assertTrue(any(line.startswith("runtime/policy/a.h:3: ") for line in found), found)

    def test_what_may_be_included_is_not(self):
        cases = {
            "runtime/sys/a.cc": '#include "runtime/sys/a.h"\n#include <sys/stat.h>\n#include <openssl/sha.h>\n',
            "runtime/policy/include/pyplaypen/limits.h": "#include <span>\n",
            "runtime/wire/a.cc": "#include <nlohmann/json.hpp>\n#include <pyplaypen/limits.h>\n",
            "supervisor/include/pyplaypen/sandbox.h": "#include <pyplaypen/limits.h>\n",
            "zygote/a.cc": '#include <Python.h>\n#include "runtime/python/a.h"\n',
            "cli/a.cc": "#include <CLI/CLI.hpp>\n#include <pyplaypen/sandbox.h>\n",
        }
        self.assertEqual(violations_of(cases), [])


if __name__ == "__main__":
    Layering.root = sys.argv.pop(1)
    unittest.main()
