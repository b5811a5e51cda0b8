#!/usr/bin/env python3
"""Holds README and docs to what the program says of itself and to the sources.

  docs_test.py SOURCE_DIRECTORY PYPLAYPEN [unittest's own arguments]

What is compared is looked for in tables: the first column's words in backticks are the names that a table is about.
"""
import json
import os
import re
import subprocess
import sys
import tempfile
import unittest

ROOT = None
BIN = None
SECONDS = 60  # nothing here takes more than one or two

# Options in examples that are other programs': cmake's, docker's.
FOREIGN_OPTIONS = {"--preset", "--build", "--install", "--prefix", "--pids-limit", "--user", "--cpus",
                   "--rm", "--network", "--memory", "--read-only", "--tmpfs", "--cap-drop", "--security-opt", "--init", "--scope"}


def read(path):
    with open(os.path.join(ROOT, path), encoding="utf-8") as file:
        return file.read()


def documents():
    """Path -> text of README and of every file in docs."""
    names = ["README.md"] + sorted("docs/" + name for name in os.listdir(os.path.join(ROOT, "docs")) if name.endswith(".md"))
    return {name: read(name) for name in names}


def pyplaypen(*arguments, audit=False, **more):
    environment = {**os.environ, "PYPLAYPEN_QUIET": "1", "PYPLAYPEN_AUDIT": "1" if audit else "0"}
    environment.pop("PYPLAYPEN_LIMITS", None)
    return subprocess.run([BIN, *arguments], capture_output=True, text=True, env=environment, timeout=SECONDS,
                          stdin=subprocess.DEVNULL, **more)


def options_in(text):
    return set(re.findall(r"(?<![\w-])--[a-z][a-z-]*", text))


def section(text, heading):
    """What stands below the heading that begins with `heading`, up to the next one of its level or above."""
    found = re.search(rf"^(#+) {re.escape(heading)}.*$", text, re.MULTILINE)
    if found is None:
        raise AssertionError(f"there is no heading '{heading}'")
    rest = text[found.end():]
    end = re.search(rf"^#{{1,{len(found[1])}}} ", rest, re.MULTILINE)
    return rest[:end.start()] if end else rest


def rows(text):
    """The cells of each row of the tables in text, without heads and rules."""
    found = []
    lines = text.splitlines()
    for i, line in enumerate(lines):
        is_head = i + 1 < len(lines) and re.match(r"\| *:?-", lines[i + 1])
        if line.startswith("|") and not is_head and not re.match(r"\| *:?-", line):
            found.append([cell.strip() for cell in re.split(r"(?<!\\)\|", line.strip().strip("|"))])
    return found


def names_in(text):
    """The words in backticks of the first columns, in order."""
    return [name for cells in rows(text) for name in re.findall(r"`([^`]+)`", cells[0])]


def anchors(text):
    """Of each heading, as GitHub makes them."""
    without_code = re.sub(r"^```.*?^```", "", text, flags=re.MULTILINE | re.DOTALL)
    headings = re.findall(r"^#+ (.*)$", without_code, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def shape(value):
    """The keys of a JSON value, at every level; of a list those of its first item."""
    if isinstance(value, dict):
        return {key: shape(item) for key, item in value.items()}
    if isinstance(value, list):
        return [shape(item) for item in value[:1]]
    return None


def keys_in(value):
    if isinstance(value, dict):
        return set(value) | {key for item in value.values() for key in keys_in(item)}
    if isinstance(value, list):
        return {key for item in value for key in keys_in(item)}
    return set()


def snake(enumerator):
    """kOpenFilesLimit -> open_files_limit."""
    return re.sub(r"(?<!^)(?=[A-Z])", "_", enumerator[1:]).lower()


def enumerators(text, name):
    body = re.search(rf"enum class {name}\b[^{{]*\{{(.*?)\}}", text, re.DOTALL)[1]
    return re.findall(r"\bk[A-Z]\w*", re.sub(r"//.*", "", body))


def header_limits():
    """name -> default, from the struct."""
    body = re.search(r"struct Limits \{(.*?)\};", read("runtime/policy/include/pyplaypen/limits.h"), re.DOTALL)[1]
    limits = {}
    for name, text in re.findall(r"^ *(?:double|uint64_t) (\w+) = ([^;]+);", body, re.MULTILINE):
        plain = text.replace("uint64_t", "").replace("{", "(").replace("}", ")").replace("'", "")
        if not re.fullmatch(r"[\d.()*<>+ ]+", plain):
            raise AssertionError(f"the default of {name} is '{text}', which this test cannot read")
        limits[name] = eval(plain)  # digits and operators only, see above
    return limits


def codec_fields():
    """Message -> the names of its fields in the order of the bytes."""
    return {message: re.findall(r"\bm\.(\w+)", body)
            for message, body in re.findall(r"members\(Is<(\w+)> auto&(?: m)?\) \{(.*?)\}\n", read("runtime/wire/codec.cc"),
                                            re.DOTALL)}


def audit_record(*arguments):
    done = pyplaypen(*arguments, audit=True)
    lines = [line for line in done.stderr.splitlines() if line.startswith("pyplaypen: {")]
    if len(lines) != 1:
        raise AssertionError(f"{len(lines)} audit records: {done.stderr}")
    return json.loads(lines[0][len("pyplaypen: "):])


class Commands(unittest.TestCase):
    def help_of(self, *command):
        done = pyplaypen(*command, "--help")
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def commands(self):
        found = re.findall(r"^  (\w+) +\w", self.help_of(), re.MULTILINE)
        self.assertIn("exec", found)
        return found

    def options_of(self, command):
        return options_in(self.help_of(command)) - {"--help"}

    def test_the_readme_has_a_section_for_each_command(self):
        for command in self.commands():
            section(read("README.md"), f"{command}: ")

    def test_the_readmes_options_are_the_helps(self):
        readme = read("README.md")
        table = {command: {option for cells in rows(section(readme, f"{command}: ")) for option in options_in(cells[0])}
                 for command in self.commands()}
        # The README gives batch's by their difference from exec's.
        table["batch"] |= table["exec"] - {"--file", "--pretty"}
        table["enforcement"] = options_in(section(readme, "enforcement: "))
        for command in self.commands():
            self.assertEqual(table[command], self.options_of(command), command)

    def test_no_document_names_an_option_that_does_not_exist(self):
        known = {"--help", "--version"} | FOREIGN_OPTIONS | options_in(read("scripts/bench"))
        for command in self.commands():
            known |= self.options_of(command)
        for path, text in documents().items():
            self.assertEqual(options_in(text) - known, set(), path)

    def test_exit_codes(self):
        header = read("cli/exit_codes.h")
        codes = {int(number) for name, number in re.findall(r"int (kExit\w+) = (\d+);", header)} - {128}
        self.assertGreaterEqual(len(codes), 7)
        expected = {str(code) for code in codes} | {"128 + N", "130"}
        written = {cells[0] for cells in rows(section(read("docs/results.md"), "Exit codes"))}
        self.assertEqual(written, expected)
        summary = section(read("README.md"), "Environment variables, exit codes")
        for code in expected:
            self.assertRegex(summary, rf"\b{re.escape(code)}\b")


class LimitsAndErrors(unittest.TestCase):
    def test_limits_and_their_defaults(self):
        written = {}
        for cells in rows(read("docs/limits.md")):
            if re.fullmatch(r"`\w+`", cells[0]) and re.fullmatch(r"`[\d_.]+`", cells[1]):
                written[cells[0].strip("`")] = float(cells[1].strip("`").replace("_", ""))
        limits = header_limits()
        self.assertEqual(len(limits), 12)
        self.assertEqual(written, limits)
        self.assertEqual(list(written), list(limits))  # the order of the struct is that of the wire

    def test_the_program_has_the_same_limits(self):
        self.assertEqual(audit_record("exec", "1")["limits"], header_limits())

    def test_the_readme_names_every_limit(self):
        self.assertEqual(set(names_in(section(read("README.md"), "Limits"))), set(header_limits()))

    def test_every_limit_is_explained(self):
        text = section(read("docs/limits.md"), "What each one does")
        explained = [name for bold in re.findall(r"^\*\*(`.*?`)\*\*", text, re.MULTILINE)
                     for name in re.findall(r"`(\w+)`", bold)]
        self.assertEqual(explained, list(header_limits()))

    def test_error_types(self):
        types = [snake(name) for name in enumerators(read("supervisor/include/pyplaypen/result.h"), "ErrorType")]
        self.assertIn("open_files_limit", types)
        self.assertEqual(names_in(section(read("docs/results.md"), "Error types")), types)


class Results(unittest.TestCase):
    def test_the_readmes_result_has_a_real_ones_keys(self):
        example = json.loads(re.search(r"```json\n(.*?)```", read("README.md"), re.DOTALL)[1])
        with tempfile.TemporaryDirectory() as kept:
            done = pyplaypen("exec", "--limit", "wall_seconds=30", "--stdin-file",
                             os.path.join(ROOT, "examples/data/planets.csv"), "--artifact-root", kept, "--file",
                             os.path.join(ROOT, "examples/planets.py"))
        real = json.loads(done.stdout)
        self.assertEqual(shape(example), shape(real))
        self.assertEqual(list(example), list(real))
        self.assertEqual(example["return_value"], real["return_value"])

    def test_every_key_is_explained(self):
        keys = set(re.findall(r'\.put\("(\w+)"', read("supervisor/result_json.cc")))
        self.assertIn("request_id", keys)
        text = read("docs/results.md")
        unexplained = {key for key in keys if not re.search(rf'`{key}`|"{key}"', text)}
        self.assertEqual(unexplained, set())

    def test_audit_records(self):
        text = read("docs/audit.md")
        for heading, arguments in (("execute", ["exec", "open('f', 'w').close()"]), ("run", ["run", "--", "true"])):
            record = audit_record(*arguments)
            if heading == "execute":
                self.addCleanup(self.remove_artifacts, record["request_id"])
            part = section(text, heading)
            self.assertTrue(set(record) <= set(names_in(part)), set(record) - set(names_in(part)))
            self.assertIn(f'`"{record["event"]}"`', part)
            self.assertIn(f'`"{record["policy_version"]}"`', part)
            inner = keys_in({key: value for key, value in record.items() if key not in ("limits", "enforcement")})
            unexplained = {key for key in inner if not re.search(rf'[`"]{key}[`"]', part)}
            self.assertEqual(unexplained, set())

    @staticmethod
    def remove_artifacts(request_id):
        folder = os.path.join(os.environ.get("TMPDIR") or "/tmp", "pyplaypen-artifacts-" + request_id)
        os.unlink(os.path.join(folder, "f"))
        os.rmdir(folder)


class Enforcement(unittest.TestCase):
    def test_every_key_and_word(self):
        printed = json.loads(pyplaypen("enforcement", "--json").stdout)
        text = read("docs/enforcement.md")
        table = {name: set(re.findall(r"`(\w+)`", cells[2]))
                 for cells in rows(section(text, "The keys")) for name in re.findall(r"`(\w+)`", cells[0])}
        self.assertEqual(set(table), set(printed))
        for key, word in printed.items():
            self.assertIn(word, table[key], key)
        words = set(names_in(section(text, "The words")))
        self.assertEqual(set().union(*table.values()), words)

    def test_every_word_of_the_sources(self):
        words = set(names_in(section(read("docs/enforcement.md"), "The words")))
        for path in ("supervisor/enforcement.cc", "supervisor/direct_policy.cc"):
            source = read(path)
            used = set(re.findall(r'"((?:hard|container|available|unsupported|dropped|unchanged)\w*)"', source))
            self.assertEqual(used - words - {"container_resources"}, set(), path)

    def test_runs_own_map(self):
        printed = audit_record("run", "--", "true")["enforcement"]
        self.assertEqual(set(re.findall(r"`(\w+)`", section(read("docs/enforcement.md"), "run"))) & set(printed),
                         set(printed))


class Protocol(unittest.TestCase):
    def messages(self):
        """Message -> (type, field names), as written."""
        text = read("docs/protocol.md")
        return {name: (int(number), names_in(section(text, f"{name}, type {number}")))
                for name, number in re.findall(r"^### (\w+), type (\d+)$", text, re.MULTILINE)}

    def test_types(self):
        numbers = {name[1:]: number for number, name in enumerate(enumerators(read("runtime/wire/frame.h"), "FrameType"), 1)}
        self.assertIn("Setup", numbers)
        self.assertEqual({name: number for name, (number, _) in self.messages().items()}, numbers)

    def test_fields(self):
        fields = codec_fields()
        self.assertEqual(fields.pop("Limits"), list(header_limits()))
        text = section(read("docs/protocol.md"), "Setup, type 1")
        for part in ("Unshare", "Landlock"):  # of Setup, told of in its rows
            for name in fields.pop(part):
                self.assertIn(f"`{name}`", text)
        self.assertEqual({name: names for name, (_, names) in self.messages().items()}, fields)

    def test_report_statuses(self):
        statuses = [snake(name) for name in enumerators(read("runtime/wire/messages.h"), "ReportStatus")]
        written = ", ".join(f"{number} {name}" for number, name in enumerate(statuses))
        self.assertIn(written, read("docs/protocol.md"))

    def test_header(self):
        header = read("runtime/wire/frame.h")
        text = section(read("docs/protocol.md"), "A frame")
        self.assertIn(re.search(r"kMagic = (0x\w+);", header)[1], text)
        self.assertIn(f"the version, {re.search(r'kVersion = (.+);', header)[1]} ", text)
        self.assertIn(f"1 to {len(enumerators(header, 'FrameType'))} ", text)
        self.assertIn(f"Version {re.search(r'kVersion = (.+);', header)[1]}.", read("docs/protocol.md"))

    def test_stages(self):
        names = re.findall(r'"(\w+)"', re.search(r"kNames = \{(.*?)\};", read("runtime/policy/stage.cc"), re.DOTALL)[1])
        self.assertEqual(names_in(section(read("docs/design.md"), "The stages of a child")), names)


class Links(unittest.TestCase):
    def test_relative_links_and_anchors(self):
        broken = []
        for path, text in {**documents(), "CONTRIBUTING.md": read("CONTRIBUTING.md")}.items():
            links = re.findall(r"\]\(([^)\s]+)\)", re.sub(r"^```.*?^```", "", text, flags=re.MULTILINE | re.DOTALL))
            for link in links:
                if re.match(r"[a-z]+:", link):
                    continue
                name, _, anchor = link.partition("#")
                target = os.path.normpath(os.path.join(os.path.dirname(path), name)) if name else path
                if not os.path.exists(os.path.join(ROOT, target)):
                    broken.append(f"{path}: {link}: no such file")
                elif anchor and anchor not in anchors(read(target)):
                    broken.append(f"{path}: {link}: no such heading")
        self.assertEqual(broken, [])

    def test_documents_that_sources_name(self):
        missing = []
        for top in ("cli", "runtime", "supervisor", "zygote", "tests", "bench", "scripts"):
            for folder, _, names in os.walk(os.path.join(ROOT, top)):
                for name in names:
                    path = os.path.join(folder, name)
                    with open(path, encoding="utf-8", errors="replace") as file:
                        for document in re.findall(r"\bdocs/\w[\w-]*\.md\b", file.read()):
                            if not os.path.exists(os.path.join(ROOT, document)):
                                missing.append(f"{os.path.relpath(path, ROOT)}: {document}")
        self.assertEqual(missing, [])

    def test_source_files_that_documents_name(self):
        missing = []
        for path, text in documents().items():
            for name in re.findall(r"`((?:cli|runtime|supervisor|zygote|tests|scripts|examples|share|docs)/[\w./-]+)`", text):
                if not os.path.exists(os.path.join(ROOT, name)):
                    missing.append(f"{path}: {name}")
        self.assertEqual(missing, [])


class TheTestsOwnTools(unittest.TestCase):
    def test_sections_end_at_the_next_heading_of_their_level(self):
        text = "# a\nx\n## b\ny\n### c\nz\n## d\nw\n"
        self.assertEqual(section(text, "b"), "\ny\n### c\nz\n")
        with self.assertRaises(AssertionError):
            section(text, "e")

    def test_rows_are_without_heads_and_rules(self):
        self.assertEqual(rows("| h | i |\n| --- | --- |\n| `a`, `b` | c |\ntext\n"), [["`a`, `b`", "c"]])
        self.assertEqual(names_in("| h |\n| - |\n| `a`, `b` |\n"), ["a", "b"])

    def test_options(self):
        self.assertEqual(options_in("`-j N`, `--jobs N` and --no-such; a -- b, x--y"), {"--jobs", "--no-such"})

    def test_anchors(self):
        self.assertEqual(anchors("## What is hostile\n### Setup, type 1\n```\n# no\n```\n"),
                         {"what-is-hostile", "setup-type-1"})

    def test_names(self):
        self.assertEqual(snake("kOpenFilesLimit"), "open_files_limit")
        self.assertEqual(shape({"a": [{"b": 1}, {"c": 2}]}), {"a": [{"b": None}]})


if __name__ == "__main__":
    ROOT = os.path.abspath(sys.argv.pop(1))
    BIN = os.path.abspath(sys.argv.pop(1))
    unittest.main()
