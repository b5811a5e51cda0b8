#!/usr/bin/env python3
"""The command's `exec` and `batch` as a black box: what they read and where they write.

  exec_test.py --bin PYPLAYPEN [unittest's own arguments]
"""
import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import unittest

BIN = None
HANGS = 60  # s; nothing here takes more than a few


class Case(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory(prefix="exec-test-")
        self.addCleanup(scratch.cleanup)
        self.dir = scratch.name
        os.chmod(self.dir, 0o755)

    def pyplaypen(self, *arguments, stdin=b"", closed=(), stdout=subprocess.PIPE, preexec=None):
        def prepare():
            for fd in closed:
                os.close(fd)
            if preexec:
                preexec()

        done = subprocess.run([BIN, *arguments], input=stdin, stdout=stdout, stderr=subprocess.PIPE, timeout=HANGS,
                              env={"PATH": "/usr/bin:/bin", "PYPLAYPEN_QUIET": "1"}, cwd="/", preexec_fn=prepare)
        for line in done.stderr.splitlines():
            # The rest: AddressSanitizer's remark, in a command that is built with it, on the stack on which a
            # zygote is started.
            self.assertTrue(line.startswith((b"pyplaypen: ", b"==", b"False positive error reports", b"For details see ")), line)
        return done

    def rows(self, lines, *options):
        done = self.pyplaypen("batch", "--ordered", *options, "-", stdin=b"\n".join(lines) + b"\n")
        self.assertEqual(done.returncode, 0, done.stderr)
        return [json.loads(line) for line in done.stdout.splitlines()]


class Input(Case):
    def test_code_that_cannot_be_read_is_not_empty_code(self):
        for argument in (("--file", self.dir), ("--file", "/no/such/file")):
            done = self.pyplaypen("exec", *argument)
            self.assertEqual((done.returncode, done.stdout), (2, b""), argument)
            self.assertIn(argument[1].encode(), done.stderr)
        for argument in (("-",), ("--file", "-")):
            done = self.pyplaypen("exec", *argument, closed=[0])
            self.assertEqual((done.returncode, done.stdout), (2, b""), argument)
            self.assertIn(b"standard input", done.stderr)

    def test_requests_that_cannot_be_read_are_not_none(self):
        done = self.pyplaypen("batch", self.dir)
        self.assertEqual((done.returncode, done.stdout), (125, b""))
        self.assertIn(b"Is a directory", done.stderr)
        self.assertEqual(self.pyplaypen("batch", closed=[0]).returncode, 125)

    def test_a_line_nested_too_deep_is_a_bad_line(self):
        def nested(levels):
            return b'{"code": "1", "extra": ' + b"[" * levels + b"]" * levels + b"}"

        deep = 100_000
        lines = [nested(50), nested(deep), b"[" * deep, b'{"id": ' + b"[" * deep + b"]" * deep + b', "code": "1"}',
                 b'{"code": "2"}']
        rows = self.rows(lines)
        self.assertEqual([row["return_value"] for row in rows], [1, None, None, None, 2])
        for row in rows[1:4]:
            self.assertEqual(row["error"]["type"], "protocol")
            self.assertIn(f"line {row['id']}: nested deeper", row["error"]["message"])


class Output(Case):
    def test_a_closed_stdout_is_told(self):
        for command in (("exec", "1"), ("batch",), ("run", "--", "echo"), ("run", "--stream", "--", "echo")):
            done = self.pyplaypen(*command, stdin=b'{"code": "1"}\n', closed=[1], stdout=None)
            self.assertEqual(done.returncode, 125, command)
            self.assertIn(b"cannot be written" if command[0] != "run" else b"could not be written", done.stderr)

    def test_a_full_device_is_told(self):
        with open("/dev/full", "wb") as full:
            for command in (("exec", "1"), ("batch",)):
                done = self.pyplaypen(*command, stdin=b'{"code": "1"}\n', stdout=full)
                self.assertEqual(done.returncode, 125, command)

    def test_closed_descriptors_are_nobody_elses(self):
        done = subprocess.run(["sh", "-c", 'exec "$0" exec "print(1)" <&- 2>&-', BIN], stdout=subprocess.PIPE, timeout=HANGS)
        self.assertEqual(done.returncode, 0)
        self.assertEqual(json.loads(done.stdout)["stdout"], "1\n")


class Inherited(Case):
    def test_a_default_is_lowered_to_what_was_inherited(self):
        def lower():
            resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))
            resource.setrlimit(resource.RLIMIT_CPU, (20, 20))

        self.assertEqual(self.pyplaypen("exec", "1", preexec=lower).returncode, 0)
        for limit, most in (("file_bytes=100000", b"up to 99999"), ("cpu_seconds=20", b"up to 19")):
            done = self.pyplaypen("exec", "--limit", limit, "1", preexec=lower)
            self.assertEqual(done.returncode, 2)
            self.assertIn(most, done.stderr)


def main():
    global BIN
    parser = argparse.ArgumentParser()
    parser.add_argument("--bin", required=True)
    args, rest = parser.parse_known_args()
    BIN = os.path.abspath(args.bin)
    unittest.main(argv=[sys.argv[0], *rest])


if __name__ == "__main__":
    main()
