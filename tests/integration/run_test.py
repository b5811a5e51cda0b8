#!/usr/bin/env python3
"""The command's `run` as a black box: exit codes, limits, teardown, streams, confinement.

  run_test.py --bin PYPLAYPEN [--ordinary-user] [unittest's own arguments]

--ordinary-user: as root, runs itself again as UID 1000.
"""
import argparse
import ctypes
import hashlib
import json
import os
import random
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

BIN = None
PYTHON = sys.executable
ROOT = os.geteuid() == 0
HANGS = 60  # s; nothing here takes more than a few
LANDLOCK_ABI = max(0, ctypes.CDLL(None, use_errno=True).syscall(444, None, ctypes.c_size_t(0), 1))


class Done:
    def __init__(self, code, out, err):
        self.code, self.out, self.err = code, out, err
        self.own_lines = [line for line in err.splitlines() if line.startswith(b"pyplaypen: ")]


class RunCase(unittest.TestCase):
    def setUp(self):
        self.dir = tempfile.mkdtemp(prefix="run-test-")
        os.chmod(self.dir, 0o777)
        self.tmp = os.path.join(self.dir, "tmp")
        self.home = os.path.join(self.dir, "home")
        for path in (self.tmp, self.home):
            os.mkdir(path)
            os.chmod(path, 0o1777)
        self.addCleanup(shutil.rmtree, self.dir, ignore_errors=True)

    def environment(self, env=None):
        return {"PATH": "/usr/bin:/bin", "TMPDIR": self.tmp, "PYPLAYPEN_QUIET": "1", **(env or {})}

    def command(self, argv, options):
        return [BIN, "run", *options, "--", *argv]

    def run_argv(self, *argv, options=(), env=None, stdin=b"", cwd=None, preexec=None):
        done = subprocess.run(self.command(argv, options), input=stdin, capture_output=True, env=self.environment(env),
                              cwd=cwd or self.home, timeout=HANGS, preexec_fn=preexec)
        self.assertEqual(os.listdir(self.tmp), [], "a private TMPDIR is left")
        return Done(done.returncode, done.stdout, done.stderr)

    def sh(self, script, **more):
        return self.run_argv("sh", "-c", script, **more)

    def python(self, script, *argv, **more):
        return self.run_argv(PYTHON, "-I", "-c", script, *argv, **more)

    def start(self, *argv, options=(), env=None, **more):
        process = subprocess.Popen(self.command(argv, options), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, env=self.environment(env), cwd=self.home, **more)
        self.addCleanup(process.stderr.close)
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.kill)
        return process

    def children_of(self, pid):
        try:
            with open(f"/proc/{pid}/task/{pid}/children") as file:
                return file.read().split()
        except OSError:
            return []

    def assert_own(self, done, *words):
        """Every line on stderr is ours, and says all of `words`."""
        self.assertEqual(done.own_lines, done.err.splitlines())
        for word in words:
            self.assertIn(word, done.err)


class ExitCodes(RunCase):
    def test_the_commands_own(self):
        for code in (0, 1, 2, 7, 124, 255):
            self.assertEqual(self.sh(f"exit {code}").code, code)

    def test_a_signal_is_128_more_and_named(self):
        for number, name in ((9, b"SIGKILL"), (11, b"SIGSEGV"), (15, b"SIGTERM"), (34, b"34")):
            done = self.sh(f"kill -{number} $$")
            self.assertEqual(done.code, 128 + number)
            self.assert_own(done, b"killed by signal", name)

    def test_timeout(self):
        done = self.run_argv("sleep", "1000", options=["--limit", "wall_seconds=0.3"])
        self.assertEqual(done.code, 124)
        self.assert_own(done, b"wall_seconds=0.3 exceeded")

    def test_not_found(self):
        for program in ("/no/such/program", "no-such-program"):
            done = self.run_argv(program)
            self.assertEqual(done.code, 127)
            self.assert_own(done, program.encode(), b"No such file")

    def test_not_executable(self):
        done = self.run_argv("/etc/passwd")
        self.assertEqual(done.code, 126)
        self.assert_own(done, b"/etc/passwd", b"Permission denied")

    def test_not_run_at_all(self):
        done = subprocess.run(self.command(["true"], []), env=self.environment({"TMPDIR": "/no/such/directory"}),
                              capture_output=True, timeout=HANGS)
        self.assertEqual(done.returncode, 125)
        self.assert_own(Done(125, b"", done.stderr), b"/no/such/directory")

    def test_usage(self):
        for arguments in ([], ["nope"], ["run"], ["run", "--"], ["run", "true"], ["run", "--bogus", "--", "true"],
                          ["run", "--limit", "--", "true"], ["run", "--limit", "bogus=1", "--", "true"],
                          ["run", "--limit", "wall_seconds=nan", "--", "true"],
                          ["run", "--limit", "memory_bytes=-1", "--", "true"],
                          ["run", "--limit", "cpu_seconds=1.5", "--", "true"],
                          ["run", "--limit", "open_files=1", "--", "true"],
                          ["run", "--child-uid", "x", "--", "true"]):
            done = subprocess.run([BIN, *arguments], env=self.environment(), capture_output=True, timeout=HANGS)
            self.assertEqual(done.returncode, 2, arguments)
            self.assertTrue(done.stderr)
            self.assert_own(Done(2, b"", done.stderr))

    def test_help_and_version(self):
        for arguments in (["--help"], ["--version"], ["run", "--help"]):
            done = subprocess.run([BIN, *arguments], env=self.environment(), capture_output=True, timeout=HANGS)
            self.assertEqual((done.returncode, done.stderr), (0, b""))
            self.assertIn(b"pyplaypen", done.stdout)


class LimitsHold(RunCase):
    """Each just below and just above."""

    def test_file_bytes(self):
        script = "cd $TMPDIR && head -c %d /dev/zero > file; echo $?; stat -c %%s file"
        for size, told in ((1000, b"0\n1000\n"), (1001, b"1\n1000\n")):
            self.assertEqual(self.sh(script % size, options=["--limit", "file_bytes=1000"]).out, told)

    def test_open_files(self):
        script = "import os\nfor _ in range(%d): os.dup(0)"
        # 0, 1 and 2 are among the 20.
        self.assertEqual(self.python(script % 17, options=["--limit", "open_files=20"]).code, 0)
        above = self.python(script % 18, options=["--limit", "open_files=20"])
        self.assertEqual(above.code, 1)
        self.assertIn(b"Too many open files", above.err)

    def test_memory_bytes(self):
        script = "bytearray(%d << 20)"
        self.assertEqual(self.python(script % 100, options=["--limit", "memory_bytes=300_000_000"]).code, 0)
        above = self.python(script % 300, options=["--limit", "memory_bytes=300_000_000"])
        self.assertEqual(above.code, 1)
        self.assertIn(b"MemoryError", above.err)

    def test_cpu_seconds(self):
        spin = "import time\nwhile time.process_time() < %s: pass"
        self.assertEqual(self.python(spin % 0.5, options=["--limit", "cpu_seconds=1"]).code, 0)
        above = self.python(spin % 20, options=["--limit", "cpu_seconds=1"])
        self.assertEqual(above.code, 128 + signal.SIGXCPU)
        self.assert_own(above, b"cpu_seconds=1 exceeded")

    def test_cpu_seconds_of_a_command_that_ignores_the_signal(self):
        done = self.python("import signal\nsignal.signal(signal.SIGXCPU, signal.SIG_IGN)\nwhile 1: pass",
                           options=["--limit", "cpu_seconds=1"])
        self.assertEqual(done.code, 128 + signal.SIGXCPU)
        self.assert_own(done, b"cpu_seconds=1 exceeded")

    def test_a_kill_is_no_cpu_limit(self):
        done = self.sh("kill -9 $$", options=["--limit", "cpu_seconds=1"])
        self.assertEqual(done.code, 137)
        self.assertNotIn(b"cpu_seconds", done.err)

    def test_stdout_and_stderr_bytes(self):
        for stream, other in ((1, 2), (2, 1)):
            name = ("stdout", "stderr")[stream - 1]
            for size, cut in ((1000, False), (1001, True)):
                done = self.sh(f"head -c {size} /dev/zero >&{stream}; echo kept >&{other}",
                               options=["--limit", f"{name}_bytes=1000"])
                seen, rest = (done.out, done.err) if stream == 1 else (done.err, done.out)
                self.assertEqual(done.code, 0, "never killed")
                self.assertEqual(seen[:1000], bytes(1000))
                self.assertEqual(b"truncated" in seen, cut)
                self.assertLessEqual(len(seen), 1032)
                self.assertEqual(rest, b"kept\n")

    @unittest.skipUnless(ROOT, "needs root")
    def test_process_count(self):
        uid = str(random.randrange(200_000, 2_000_000_000))
        script = ("import os, time\nfor i in range(%d):\n  if os.fork() == 0: time.sleep(1000)\n")
        options = ["--limit", "process_count=5", "--child-uid", uid]
        self.assertEqual(self.python(script % 4, options=options).code, 0)
        above = self.python(script % 5, options=options)
        self.assertEqual(above.code, 1)
        self.assertIn(b"BlockingIOError", above.err)

    @unittest.skipIf(ROOT, "needs an ordinary user")
    def test_process_count_that_cannot_be_kept_is_refused(self):
        done = self.run_argv("true", options=["--limit", "process_count=4"])
        if done.code == 0:
            self.skipTest("a pids cap is set here")
        self.assertEqual(done.code, 2)
        self.assert_own(done, b"process_count=4", b"--pids-limit")
        by_default = self.run_argv("true", env={"PYPLAYPEN_QUIET": ""})
        self.assertEqual(by_default.code, 0)
        self.assert_own(by_default, b"process_count")
        self.assertEqual(len(by_default.own_lines), 1)

    def test_the_environment_sets_defaults_and_a_flag_wins(self):
        env = {"PYPLAYPEN_LIMITS": "open_files=40,stdout_bytes=3"}
        self.assertEqual(self.sh("ulimit -n", env=env).out[:3], b"40\n")
        self.assertEqual(self.sh("ulimit -n", env=env, options=["--limit", "open_files=50"]).out[:3], b"50\n")
        wrong = self.run_argv("true", env={"PYPLAYPEN_LIMITS": "open_files=x"})
        self.assertEqual(wrong.code, 2)
        self.assert_own(wrong, b"PYPLAYPEN_LIMITS", b"open_files")

    def test_what_was_inherited_stays_and_is_not_exceeded(self):
        def lower():
            resource.setrlimit(resource.RLIMIT_NOFILE, (100, 100))

        self.assertEqual(self.sh("ulimit -n", preexec=lower).out, b"100\n")
        above = self.run_argv("true", options=["--limit", "open_files=101"], preexec=lower)
        self.assertEqual(above.code, 2)
        self.assert_own(above, b"open_files=101", b"100")

    def test_core_dumps_are_off(self):
        self.assertEqual(self.sh("ulimit -c").out, b"0\n")

    def test_a_command_within_a_command(self):
        with open(BIN, "rb") as program:
            if b"__asan_init" in program.read():
                self.skipTest("needs a command without sanitizers: their shadow memory is beyond memory_bytes")
        # The inner one runs as another user, who need not be able to enter where it was built.
        copy = shutil.copy(BIN, os.path.join(self.home, "pyplaypen"))
        inner = [copy, "run", "--", "sh", "-c", "echo $TMPDIR; exit 5"]
        done = self.run_argv(copy, "run", "--", *inner)
        self.assertEqual(done.code, 5, done.err)
        self.assertTrue(done.out.startswith(self.tmp.encode()))


class Teardown(RunCase):
    """Nothing is left, as root and not, with Landlock's scopes and without."""

    def setUp(self):
        super().setUp()
        self.marker = f"1000.{random.randrange(10**12)}"
        self.addCleanup(self.kill_survivors)

    def survivors(self):
        found = []
        for pid in filter(str.isdigit, os.listdir("/proc")):
            try:
                with open(f"/proc/{pid}/cmdline", "rb") as file:
                    words = file.read().split(b"\0")
            except OSError:
                continue
            if self.marker.encode() in words and int(pid) != os.getpid():
                found.append(int(pid))
        return found

    def name_of(self, pid):
        try:
            with open(f"/proc/{pid}/comm") as file:
                return file.read().strip()
        except OSError:
            return ""

    def eventually(self, condition):
        deadline = time.monotonic() + HANGS
        while not condition():
            self.assertLess(time.monotonic(), deadline)
            time.sleep(0.01)

    def kill_survivors(self):
        for pid in self.survivors():
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass

    def ends(self, script, code=0, options=()):
        done = self.sh(script.replace("SLEEP", f"sleep {self.marker}"), options=options)
        self.assertEqual(done.code, code, done.err)
        self.assertEqual(self.survivors(), [])
        return done

    def test_a_background_child_that_holds_the_pipe(self):
        self.assertEqual(self.ends("SLEEP & echo hi").out, b"hi\n")

    def test_a_daemon_in_its_own_session(self):
        self.ends("setsid SLEEP & exit 3", code=3)

    def test_a_double_fork(self):
        self.ends("(setsid SLEEP >/dev/null 2>&1 &); exit 0")

    def test_a_daemon_at_the_timeout(self):
        self.ends("setsid sh -c 'SLEEP & SLEEP' & SLEEP", code=124, options=["--limit", "wall_seconds=0.5"])

    def test_a_stopped_child_and_a_stopped_leader(self):
        self.ends("SLEEP & kill -STOP $!")
        self.ends("SLEEP & kill -STOP $$", code=124, options=["--limit", "wall_seconds=0.5"])

    def test_an_ignorer_of_signals(self):
        self.ends("trap '' TERM INT HUP; SLEEP & SLEEP", code=124, options=["--limit", "wall_seconds=0.5"])

    def test_processes_that_fork_all_the_time(self):
        # A parent ends when its child runs: 20 alive, and as many that are not reaped yet.
        script = ("import os, sys, time\n"
                  "for _ in range(20):\n"
                  "  if os.fork() == 0:\n"
                  "    end = time.monotonic() + 20\n"
                  "    os.setsid()\n"
                  "    while time.monotonic() < end:\n"
                  "      if os.fork() != 0: os._exit(0)\n"
                  "    os._exit(0)\n")
        done = self.python(script, self.marker, options=["--limit", "process_count=200"] if ROOT else [])
        self.assertEqual(done.code, 0, done.err)
        self.assertEqual(self.survivors(), [])

    def test_a_killed_leader(self):
        self.ends("setsid SLEEP & kill -9 $$", code=137)

    @unittest.skipUnless(LANDLOCK_ABI >= 6, "needs Landlock ABI 6")
    def test_when_pyplaypen_itself_is_killed(self):
        bystander = subprocess.Popen(["sleep", self.marker + "1"])
        self.addCleanup(bystander.wait)
        self.addCleanup(bystander.kill)
        process = self.start("sh", "-c", f"(setsid sleep {self.marker} >/dev/null 2>&1 &); touch $TMPDIR/left; echo ready; "
                             f"sleep {self.marker}", options=["--stream"])
        self.assertEqual(process.stdout.readline(), b"ready\n")
        self.eventually(lambda: any(self.name_of(pid) == "pyplaypen-guard" for pid in self.children_of(process.pid)))
        self.eventually(lambda: len(self.survivors()) == 2)
        process.kill()
        process.wait()
        self.eventually(lambda: not self.survivors() and not os.listdir(self.tmp))
        self.assertIsNone(bystander.poll())

    def test_a_guard_ends_with_the_command(self):
        process = subprocess.Popen(self.command(["sh", "-c", "read line; exit 7"], ["--stdin"]), stdin=subprocess.PIPE,
                                   env=self.environment(), cwd=self.home)
        if LANDLOCK_ABI >= 6:
            self.eventually(lambda: any(self.name_of(pid) == "pyplaypen-guard" for pid in self.children_of(process.pid)))
        guards = self.children_of(process.pid)
        process.communicate(b"go\n")
        self.assertEqual(process.returncode, 7)
        self.assertEqual([pid for pid in guards if os.path.exists(f"/proc/{pid}")], [])

    def test_the_commands_of_others_live_on(self):
        bystander = subprocess.Popen(["sleep", self.marker])
        self.addCleanup(bystander.wait)
        self.addCleanup(bystander.kill)
        self.assertEqual(self.sh("setsid sleep 1000 & exit 0").code, 0)
        self.assertIsNone(bystander.poll())

    def test_children_of_the_shell_that_became_us(self):
        script = f'sleep {self.marker} 2>/dev/null & exec "$0" run -- sh -c "sleep 1000 & exit 4"'
        done = subprocess.run(["sh", "-c", script, BIN], env=self.environment(), cwd=self.home, timeout=HANGS,
                              stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        self.assertEqual(done.returncode, 4, done.stderr)
        self.assertEqual(len(self.survivors()), 1)

    def test_an_inherited_ignored_sigchld(self):
        done = self.sh("exit 6", preexec=lambda: signal.signal(signal.SIGCHLD, signal.SIG_IGN))
        self.assertEqual(done.code, 6)

    def test_the_private_tmpdir_goes_whatever_is_in_it(self):
        self.ends("cd $TMPDIR && mkdir -p a/b/c && touch a/b/c/f && ln -s / link && mkfifo p && chmod 000 a/b a")


class Signals(RunCase):
    def test_each_is_passed_on(self):
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT):
            process = self.start("sh", "-c", "trap 'echo got; exit 9' INT TERM HUP QUIT; echo ready; while :; do sleep 0.01; done",
                                 options=["--stream"])
            self.assertEqual(process.stdout.readline(), b"ready\n")
            process.send_signal(number)
            self.assertEqual(process.stdout.read(), b"got\n")
            self.assertEqual(process.wait(HANGS), 9)

    def test_its_end_is_the_exit_code(self):
        process = self.start("sh", "-c", "echo ready; exec sleep 1000", options=["--stream"])
        process.stdout.readline()
        process.send_signal(signal.SIGTERM)
        self.assertEqual(process.wait(HANGS), 143)

    def test_nohup_is_respected(self):
        process = self.start("sh", "-c", "echo ready; read line; echo $line", options=["--stream"],
                             preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN))
        self.assertEqual(process.stdout.readline(), b"ready\n")
        process.send_signal(signal.SIGHUP)
        self.assertEqual(process.stdout.read(), b"\n")
        self.assertEqual(process.wait(HANGS), 0)

    @unittest.skipUnless(LANDLOCK_ABI >= 6, "needs Landlock ABI 6")
    def test_the_command_cannot_signal_its_supervisor(self):
        done = self.sh("kill -TERM $PPID 2>/dev/null && echo sent || echo denied")
        self.assertEqual((done.code, done.out), (0, b"denied\n"))


class Streams(RunCase):
    def test_bytes_are_not_mangled(self):
        data = bytes(range(256)) * 20
        script = "import sys\nsys.stdout.buffer.write(bytes(range(256)) * 20)\nsys.stderr.buffer.write(bytes(range(256)))"
        for options in ([], ["--stream"]):
            done = self.python(script, options=options)
            self.assertEqual((done.out, done.err), (data, bytes(range(256))))

    def test_merged_in_order(self):
        for options in (["--merge-output"], ["--merge-output", "--stream"]):
            done = self.sh("echo a; echo b >&2; echo c; echo d >&2", options=options)
            self.assertEqual((done.out, done.err), (b"a\nb\nc\nd\n", b""))

    def test_stdin_is_empty_unless_passed(self):
        self.assertEqual(self.run_argv("cat", stdin=b"text").out, b"")
        data = os.urandom(3_000_000)
        done = self.run_argv("sha256sum", stdin=data, options=["--stdin"])
        self.assertEqual(done.out.split()[0].decode(), hashlib.sha256(data).hexdigest())

    def test_a_program_on_stdin_is_refused_and_passed(self):
        for argv in ([PYTHON], [PYTHON, "-"], ["sh", "-s"]):
            done = self.run_argv(*argv, stdin=b"exit 3")
            self.assertEqual(done.code, 2)
            self.assert_own(done, b"stdin")
        self.assertEqual(self.run_argv("sh", stdin=b"exit 3", options=["--stdin"]).code, 3)

    def test_streamed_as_it_comes_and_whole(self):
        path = os.path.join(self.home, "fifo")
        os.mkfifo(path)
        os.chmod(path, 0o666)
        process = self.start("sh", "-c", "echo first; read line < $0; head -c 5000000 /dev/zero", path, options=["--stream"])
        self.assertEqual(process.stdout.readline(), b"first\n")
        with open(path, "w") as fifo:
            fifo.write("go\n")
        self.assertEqual(process.stdout.read(), bytes(5_000_000))
        self.assertEqual(process.wait(HANGS), 0)

    def test_a_limit_that_was_given_bounds_the_stream(self):
        done = self.sh("head -c 5000 /dev/zero", options=["--stream", "--limit", "stdout_bytes=1000"])
        self.assertEqual(done.out[:1000], bytes(1000))
        self.assertIn(b"truncated", done.out)
        self.assertLessEqual(len(done.out), 1032)

    def test_a_stalled_reader_does_not_stop_the_clock(self):
        process = self.start("cat", "/dev/zero", options=["--stream", "--limit", "wall_seconds=0.5"])
        process.stdout.read(1)
        # The command waits for its reader, but what it ran is gone.
        deadline = time.monotonic() + HANGS
        while self.children_of(process.pid) and time.monotonic() < deadline:
            time.sleep(0.02)
        self.assertEqual(self.children_of(process.pid), [])
        process.stdout.close()
        self.assertEqual(process.wait(HANGS), 124)
        self.assertIn(b"wall_seconds=0.5 exceeded", process.stderr.read())

    def test_a_reader_who_leaves_ends_it_as_a_pipe_would(self):
        process = self.start("yes", options=["--stream"])
        process.stdout.read(10)
        process.stdout.close()
        self.assertEqual(process.wait(HANGS), 128 + signal.SIGPIPE)

    def test_a_full_disk_is_told(self):
        with open("/dev/full", "w") as full:
            for options in ([], ["--stream"]):
                done = subprocess.run(self.command(["echo", "text"], options), stdout=full, stderr=subprocess.PIPE,
                                      env=self.environment(), cwd=self.home, timeout=HANGS, stdin=subprocess.DEVNULL)
                self.assertEqual(done.returncode, 125)
                self.assertIn(b"No space left", done.stderr)

    def test_our_lines_start_as_lines(self):
        done = self.sh("printf 'no newline' >&2; kill -9 $$")
        self.assertEqual(done.err.splitlines()[0], b"no newline")
        self.assertEqual(len(done.own_lines), 1)

    def test_dev_stdout_can_be_opened(self):
        done = self.sh("echo a > /dev/stdout; echo b > /dev/stderr")
        self.assertEqual((done.code, done.out, done.err), (0, b"a\n", b"b\n"))

    def test_everything_after_the_separator_is_the_commands(self):
        done = self.python("import sys; print(sys.argv[1:])", "--", "-k", "--limit", "x")
        self.assertEqual(done.out, b"['--', '-k', '--limit', 'x']\n")


class Confinement(RunCase):
    def confined(self, script, **more):
        return self.sh(script, options=["--confine-writes"], **more)

    @unittest.skipUnless(LANDLOCK_ABI == 0, "needs a kernel without Landlock")
    def test_refused_without_landlock(self):
        done = self.confined("true")
        self.assertEqual(done.code, 2)
        self.assert_own(done, b"Landlock")

    @unittest.skipUnless(LANDLOCK_ABI > 0, "needs Landlock")
    def test_writes_stay_in_the_directory_and_tmpdir(self):
        outside = os.path.join(self.dir, "outside")
        with open(outside, "w") as file:
            file.write("content")
        os.chmod(outside, 0o666)
        done = self.confined(f"echo x > in && echo y > $TMPDIR/in && echo z > /dev/null && cat in $TMPDIR/in {outside}; "
                             f"for f in {outside} {self.dir}/new {self.tmp}/new; do (echo z > $f) 2>/dev/null && echo wrote $f; done; "
                             f"rm -f {outside} 2>/dev/null; test -e {outside}")
        self.assertEqual((done.code, done.out), (0, b"x\ny\ncontent"))

    @unittest.skipUnless(LANDLOCK_ABI >= 2, "needs Landlock ABI 2")
    def test_files_move_within_the_write_set(self):
        self.assertEqual(self.confined("mkdir a b && echo x > a/f && mv a/f b/f && mv b/f $TMPDIR/f && cat $TMPDIR/f").out, b"x\n")

    def test_no_new_privs_always(self):
        self.assertEqual(self.sh("grep NoNewPrivs /proc/self/status").out.split(), [b"NoNewPrivs:", b"1"])


@unittest.skipUnless(ROOT, "needs root")
class AsRoot(RunCase):
    def test_another_user_without_rights(self):
        out = self.sh("id -u; id -g; id -G; grep CapEff /proc/self/status").out
        self.assertEqual(out.split(), [b"65534", b"65534", b"65534", b"CapEff:", b"0000000000000000"])
        self.assertEqual(self.sh("id -u", options=["--child-uid", "1234"]).out, b"1234\n")
        self.assertEqual(self.sh("id -u", options=["--child-uid", "0"]).out, b"0\n")

    def test_the_private_tmpdir_is_its_own(self):
        self.assertEqual(self.sh("stat -c '%u %g %a' $TMPDIR; touch $TMPDIR/f").out, b"65534 65534 700\n")

    def test_a_directory_it_may_not_write_is_told_once(self):
        os.chmod(self.home, 0o755)
        done = self.run_argv("true", env={"PYPLAYPEN_QUIET": ""})
        self.assertEqual(done.code, 0)
        self.assert_own(done, self.home.encode(), b"65534")
        self.assertEqual(len(done.own_lines), 1)
        self.assertEqual(self.run_argv("true").err, b"")
        os.chmod(self.home, 0o777)
        self.assertEqual(self.run_argv("true", env={"PYPLAYPEN_QUIET": ""}).err, b"")


class Audit(RunCase):
    def record(self, *argv, **more):
        done = self.run_argv(*argv, **more, env={"PYPLAYPEN_AUDIT": "1"})
        return done, json.loads(done.own_lines[-1].removeprefix(b"pyplaypen: "))

    def test_one_record_a_call(self):
        done, record = self.record("sh", "-c", "echo out; exit 3", options=["--limit", "stdout_bytes=2"])
        self.assertEqual(len(done.own_lines), 1)
        self.assertEqual((record["event"], record["status"], record["returncode"], record["signal"]),
                         ("process_execution", "ok", 3, None))
        self.assertEqual(record["stdout"], {"bytes": 4, "truncated": True, "sha256": hashlib.sha256(b"out\n").hexdigest()})
        self.assertEqual(record["limits"]["stdout_bytes"], 2)
        self.assertIn("process_count", record["enforcement"])
        self.assertEqual(set(record["usage"]), {"wall_ms", "cpu_ms", "max_rss_bytes"})

    def test_of_a_signal_a_timeout_and_a_missing_program(self):
        self.assertEqual(self.record("sh", "-c", "kill -9 $$")[1]["signal"], 9)
        self.assertEqual(self.record("sleep", "1000", options=["--limit", "wall_seconds=0.1"])[1]["status"], "timeout")
        self.assertEqual(self.record("/no/such")[1]["status"], "internal")


def main():
    global BIN
    parser = argparse.ArgumentParser()
    parser.add_argument("--bin", required=True)
    parser.add_argument("--ordinary-user", action="store_true")
    args, rest = parser.parse_known_args()
    BIN = os.path.abspath(args.bin)
    if args.ordinary_user and ROOT:
        # Both may lie where that user may not go.
        place = tempfile.mkdtemp(prefix="run-test-bin-")
        try:
            os.chmod(place, 0o755)
            files = [shutil.copy(path, place) for path in (os.path.abspath(__file__), BIN)]
            for path in files:
                os.chmod(path, 0o755)
            os.chdir("/")
            sys.exit(subprocess.run(["setpriv", "--reuid", "1000", "--regid", "1000", "--clear-groups", PYTHON, files[0],
                                     "--bin", files[1], *rest]).returncode)
        finally:
            shutil.rmtree(place)
    unittest.main(argv=[sys.argv[0], *rest])


if __name__ == "__main__":
    main()
