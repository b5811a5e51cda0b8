#!/usr/bin/env python3
"""The command's namespaces as a black box: `run`, `exec` and `batch` with --unshare and its like.

  namespaces_test.py --build BUILD_DIRECTORY [--ordinary-user] [unittest's own arguments]

--ordinary-user: as root, runs itself again as UID 1000.
"""
import argparse
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import unittest

ROOT = os.geteuid() == 0
HANGS = 60  # s
NAMES = ("user", "mount", "pid", "net", "ipc", "uts", "cgroup")
FILES = {"user": "user", "mount": "mnt", "pid": "pid", "net": "net", "ipc": "ipc", "uts": "uts", "cgroup": "cgroup"}
BIN = DENY = None


def links(text=None):
    """Namespace -> what /proc/self/ns says of it."""
    if text is None:
        return {name: os.readlink(f"/proc/self/ns/{file}") for name, file in FILES.items()}
    return dict(zip(NAMES, text.split()))


SHOW_LINKS = "for n in " + " ".join(FILES.values()) + "; do readlink /proc/self/ns/$n; done"


def setUpModule():
    # What is refused there is isolate_test's.
    if not ROOT and subprocess.run(["unshare", "--user", "true"], stderr=subprocess.DEVNULL).returncode != 0:
        raise unittest.SkipTest("an ordinary user without user namespaces has none at all")


class Case(unittest.TestCase):
    def pyplaypen(self, *arguments, deny=None, env=None, stdin=b"", quiet=True, cwd="/"):
        prefix = [DENY, deny, "--"] if deny else []
        environment = {"PATH": "/usr/bin:/bin", **({"PYPLAYPEN_QUIET": "1"} if quiet else {}), **(env or {})}
        return subprocess.run([*prefix, BIN, *arguments], input=stdin, capture_output=True, env=environment,
                              timeout=HANGS, cwd=cwd)

    def sh(self, script, *options, **more):
        done = self.pyplaypen("run", *options, "--", "sh", "-c", script, **more)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout.decode()

    def assert_apart(self, options, expected):
        ours, theirs = links(), links(self.sh(SHOW_LINKS, *options))
        apart = {name for name in NAMES if ours[name] != theirs[name]}
        self.assertEqual(apart, set(expected) | (set() if ROOT or not expected else {"user"}), options)


class Run(Case):
    def test_each_alone(self):
        for name in NAMES:
            self.assert_apart(["--unshare", name], [name])

    def test_all_are_all_but_cgroup(self):
        self.assert_apart(["--unshare", "all"], NAMES[:-1])
        self.assert_apart(["--unshare", "all,cgroup"], NAMES)
        self.assert_apart([], [])

    def test_root_inside_or_who_one_was(self):
        self.assertEqual(self.sh("id -u; id -g", "--unshare", "user"), "0\n0\n")
        me = "65534\n65534\n" if ROOT else "1000\n1000\n"
        self.assertEqual(self.sh("id -u; id -g", "--unshare", "user", "--map-self"), me)
        self.assertEqual(self.sh("id -u; id -g", "--unshare", "net"), me)
        outside = "65534" if ROOT else "1000"
        self.assertEqual(self.sh("set -- $(cat /proc/self/uid_map); echo $*", "--unshare", "user"), f"0 {outside} 1\n")

    def test_files_it_makes_belong_to_the_user_outside(self):
        with tempfile.TemporaryDirectory() as directory:
            os.chmod(directory, 0o777)
            self.sh(f"touch {directory}/file", "--unshare", "all")
            self.assertEqual(os.stat(f"{directory}/file").st_uid, 65534 if ROOT else 1000)

    def test_hostname(self):
        self.assertEqual(self.sh("cat /proc/sys/kernel/hostname", "--hostname", "box"), "box\n")
        self.assertNotEqual(socket.gethostname(), "box")
        self.assertEqual(self.pyplaypen("run", "--hostname", "x" * 65, "--", "true").returncode, 2)

    def test_mount_proc(self):
        self.assertEqual(self.sh("echo $$; ls -d /proc/[0-9]*", "--mount-proc").splitlines()[:3], ["2", "/proc/1", "/proc/2"])

    def test_no_network(self):
        start = time.monotonic()
        out = self.sh("""exec python3 -c "
import socket, errno
try: socket.create_connection(('192.0.2.1', 80))
except OSError as e: print(errno.errorcode[e.errno])
try: socket.getaddrinfo('example.com', 80)
except socket.gaierror: print('no name')
s = socket.create_server(('127.0.0.1', 0)); socket.create_connection(s.getsockname()); print('loopback')
" """, "--no-network")
        self.assertEqual(out.split("\n"), ["ENETUNREACH", "no name", "loopback", ""])
        self.assertLess(time.monotonic() - start, 4)

    def test_a_refused_one_is_skipped_with_a_note(self):
        for name in NAMES[1:]:
            done = self.pyplaypen("run", "--unshare", "all,cgroup", "--", "true", deny=name, quiet=False)
            self.assertEqual(done.returncode, 0)
            self.assertIn(f"pyplaypen: this system refuses the namespace {name}".encode(), done.stderr)
        done = self.pyplaypen("run", "--unshare", "net", "--", "sh", "-c", "echo $$ >&2; exit 7", deny="net")
        self.assertEqual((done.returncode, len(done.stderr.splitlines())), (7, 1))

    def test_strict_refuses(self):
        for name in NAMES:
            done = self.pyplaypen("run", "--unshare", "all,cgroup", "--strict", "--", "true", deny=name)
            self.assertEqual(done.returncode, 2)
            self.assertIn(name.encode(), done.stderr)

    def test_no_network_is_never_gone_without(self):
        done = self.pyplaypen("run", "--no-network", "--", "true", deny="net")
        self.assertEqual((done.returncode, done.stdout), (2, b""))
        self.assertIn(b"without a network", done.stderr)

    def test_an_unknown_name_is_a_usage_error(self):
        done = self.pyplaypen("run", "--unshare", "pid,bogus", "--", "true")
        self.assertEqual(done.returncode, 2)
        self.assertIn(b"bogus", done.stderr)

    def test_exit_codes_limits_and_teardown_as_without(self):
        for option in ("all", "net", "user", "pid"):
            options = ["--unshare", option]
            self.assertEqual(self.pyplaypen("run", *options, "--", "sh", "-c", "exit 9").returncode, 9)
            for number in (9, 15, 6):
                self.assertEqual(self.pyplaypen("run", *options, "--", "sh", "-c", f"kill -{number} $$").returncode, 128 + number)
            self.assertEqual(self.pyplaypen("run", *options, "--", "/no/such").returncode, 127)
            start = time.monotonic()
            done = self.pyplaypen("run", *options, "--limit", "wall_seconds=0.3", "--", "sh", "-c",
                                  "setsid sleep 1000 & sleep 1000")
            self.assertEqual(done.returncode, 124)
            self.assertEqual(self.sh("setsid sleep 1000 & echo done", *options), "done\n")
            self.assertLess(time.monotonic() - start, 10)
            done = self.pyplaypen("run", *options, "--limit", "cpu_seconds=1", "--", "sh", "-c", "while :; do :; done")
            self.assertEqual(done.returncode, 128 + 24)

    def test_a_signal_to_the_command_reaches_the_target(self):
        for option in ("all", "net"):
            process = subprocess.Popen([BIN, "run", "--stream", "--unshare", option, "--", "sh", "-c",
                                        "trap 'echo caught; exit 5' TERM; echo ready; while :; do sleep 0.05; done"],
                                       stdout=subprocess.PIPE, cwd="/", env={"PATH": "/usr/bin:/bin", "PYPLAYPEN_QUIET": "1"})
            self.assertEqual(process.stdout.readline(), b"ready\n")
            process.terminate()
            self.assertEqual(process.stdout.read(), b"caught\n")
            self.assertEqual(process.wait(HANGS), 5)
            process.stdout.close()

    def test_confine_writes_and_private_tmp_with_namespaces(self):
        with tempfile.TemporaryDirectory() as directory:
            os.chmod(directory, 0o755)
            script = "echo x > $TMPDIR/file && cat $TMPDIR/file; echo y 2>/dev/null > /var/tmp/namespaces-test || echo barred"
            self.assertEqual(self.sh(script, "--unshare", "all", "--confine-writes", cwd=directory), "x\nbarred\n")

    def test_process_count_is_per_call_for_everybody(self):
        script = "import os\nfor i in range(9):\n try: pid = os.fork()\n except OSError: print(i); break\n if not pid: os.pause() if hasattr(os, 'pause') else __import__('signal').pause()"
        done = self.pyplaypen("run", "--limit", "process_count=4", "--", "python3", "-c", script, env={"PYPLAYPEN_AUDIT": "1"})
        if not ROOT:
            self.assertEqual(done.stdout, b"3\n", done.stderr)
            self.assertIn(b'"process_count":"hard_per_call"', done.stderr)
        done = self.pyplaypen("run", "--unshare", "all", "--limit", "process_count=4", "--", "python3", "-c", script,
                              env={"PYPLAYPEN_AUDIT": "1"})
        self.assertEqual(done.stdout, b"3\n", done.stderr)
        self.assertIn(b'"process_count":"hard_per_call"', done.stderr)

    def test_a_count_that_cannot_be_kept_is_refused(self):
        if ROOT:
            self.skipTest("root gives the command a user of its own")
        done = self.pyplaypen("run", "--limit", "process_count=4", "--", "true", deny="user")
        self.assertIn(done.returncode, (0, 2))  # 0 where the container has a pids cap
        self.assertEqual(self.sh("id -u", "--limit", "process_count=4"), "1000\n")

    def test_the_audit_says_what_is_in_force(self):
        done = self.pyplaypen("run", "--unshare", "pid,net", "--", "true", env={"PYPLAYPEN_AUDIT": "1"})
        enforcement = json.loads(done.stderr.splitlines()[-1].removeprefix(b"pyplaypen: "))["enforcement"]
        self.assertEqual(enforcement["namespaces"], "pid,net" if ROOT else "user,pid,net")
        self.assertEqual(enforcement["network"], "none")


class Exec(Case):
    """The same for Python code, whose namespaces are those of a warm slot."""

    def python(self, code, *options, status="ok", **more):
        done = self.pyplaypen("exec", *options, code, **more)
        self.assertTrue(done.stdout, done.stderr)
        result = json.loads(done.stdout)
        self.assertEqual(result["status"], status, result["error"])
        return result["return_value"] if status == "ok" else result["error"]

    LINKS = "import os\n[os.readlink('/proc/self/ns/' + n) for n in %r]" % list(FILES.values())

    def assert_apart(self, options, expected):
        ours, theirs = links(), dict(zip(NAMES, self.python(self.LINKS, *options)))
        apart = {name for name in NAMES if ours[name] != theirs[name]}
        # Somebody who is not root is in a user namespace anyway, where processes are counted.
        self.assertEqual(apart, set(expected) | (set() if ROOT else {"user"}), options)

    def test_each_alone_and_all_together(self):
        for name in NAMES:
            self.assert_apart(["--unshare", name], [name])
        self.assert_apart(["--unshare", "all"], NAMES[:-1])
        self.assert_apart(["--unshare", "all,cgroup"], NAMES)

    def test_root_inside_or_who_one_was(self):
        code = "import os, subprocess\n[os.getuid(), os.getgid(), int(subprocess.check_output(['id', '-u']))]"
        self.assertEqual(self.python(code, "--unshare", "user"), [0, 0, 0])
        uid = self.python("import os\nos.getuid()")
        self.assertEqual(self.python(code, "--unshare", "user", "--map-self")[::2], [uid, uid])
        self.assertEqual(self.python(code, "--unshare", "all", "--map-self")[::2], [uid, uid])

    def test_no_capabilities_inside(self):
        code = "import subprocess\nsubprocess.check_output(['grep', 'Cap[PE]', '/proc/self/status'], text=True)"
        for options in (["--unshare", "all"], ["--unshare", "user"], ["--no-network"]):
            lines = self.python(code, *options).split("\n")
            self.assertTrue(all(line.endswith("0000000000000000") for line in lines if line), lines)

    def test_hostname(self):
        self.assertEqual(self.python("import socket\nsocket.gethostname()", "--hostname", "box"), "box")

    def test_process_ids_agree(self):
        code = """
import os, subprocess
child = subprocess.Popen(['sleep', '100'])
seen = sorted(int(n) for n in os.listdir('/proc') if n.isdigit())
status = dict(line.split(':\\t') for line in open(f'/proc/{child.pid}/status').read().split('\\n') if ':\\t' in line)
[os.getpid() == int(os.readlink('/proc/self')), int(status['PPid']) == os.getpid(), os.getpid() in seen, child.pid in seen, os.getppid(), 1 in seen, len(seen)]"""
        self.assertEqual(self.python(code, "--unshare", "all"), [True, True, True, True, 1, True, 3])
        self.assertEqual(self.python(code, "--mount-proc"), [True, True, True, True, 1, True, 3])

    def test_no_network(self):
        start = time.monotonic()
        code = """
import errno, socket
told = []
try: socket.create_connection(('192.0.2.1', 80))
except OSError as e: told.append(errno.errorcode[e.errno])
try: socket.getaddrinfo('example.com', 80)
except socket.gaierror: told.append('no name')
server = socket.create_server(('127.0.0.1', 0)); socket.create_connection(server.getsockname())
told"""
        for options in (["--no-network"], ["--unshare", "all"]):
            self.assertEqual(self.python(code, *options), ["ENETUNREACH", "no name"])
        self.assertLess(time.monotonic() - start, 6)

    def test_refused_ones(self):
        for name in NAMES[1:]:
            done = self.pyplaypen("exec", "--unshare", "all,cgroup", "1", deny=name, quiet=False)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertIn(f"this system refuses the namespace {name}".encode(), done.stderr)
            done = self.pyplaypen("exec", "--unshare", "all,cgroup", "--strict", "1", deny=name)
            self.assertNotIn(done.returncode, (0, 1))
            self.assertIn(name.encode(), done.stderr)
        self.assertNotIn(self.pyplaypen("exec", "--no-network", "1", deny="net").returncode, (0, 1))

    def test_signals_and_limits_as_without(self):
        for options in ([], ["--unshare", "all"], ["--unshare", "pid"], ["--unshare", "net"]):
            error = self.python("import os, signal\nos.kill(os.getpid(), signal.SIGKILL)", *options, status="error")
            self.assertEqual(error["type"], "crash")
            self.assertEqual(self.python("while True: pass", *options, "--limit", "cpu_seconds=0.5", status="error")["type"], "cpu_limit")
            self.assertEqual(self.python("while True: pass", *options, "--limit", "wall_seconds=0.5", status="error")["type"], "timeout")
            self.assertEqual(self.python("import ctypes\nctypes.string_at(0)", *options, status="error")["type"], "crash")
            self.assertEqual(self.python("x = bytearray(1 << 34)", *options, status="error")["type"], "memory_limit")
            fork = "import os, signal\nfor i in range(9):\n  if not os.fork(): signal.pause()"
            self.assertEqual(self.python(fork, *options, "--limit", "process_count=4", status="error")["type"], "process_limit")
            self.assertEqual(self.python("import multiprocessing as m\nwith m.get_context('spawn').Pool(2) as p: r = p.map(abs, [-1, -2])\nr", *options), [1, 2])

    def test_orphans_are_reaped_while_the_code_runs(self):
        code = """
import os, time
r, w = os.pipe()
if not os.fork():
    if not os.fork():
        os.write(w, str(os.getpid()).encode())
        while os.getppid() != 1: time.sleep(0.001)
        os._exit(0)
    os._exit(0)
os.wait()
pid = int(os.read(r, 20))
end = time.time() + 10
while time.time() < end:
    try: os.kill(pid, 0)
    except ProcessLookupError: break
    time.sleep(0.001)
else: raise SystemExit('a zombie stays')"""
        self.python(code, "--unshare", "all")
        self.python(code, "--unshare", "pid")

    def test_daemons_end_with_their_call(self):
        code = """
import os, time
if not os.fork():
    os.setsid()
    if os.fork(): os._exit(0)
    while True: time.sleep(1)
os.wait()
0"""
        for options in (["--unshare", "all"], ["--unshare", "pid"], ["--unshare", "net"], ["--unshare", "user"]):
            self.python(code, *options)

    def test_batch_shares_nothing_from_call_to_call(self):
        lines = [{"code": "import socket\ns = socket.create_server(('127.0.0.1', 9999)); open('/dev/shm/left', 'w').write('x')\n"
                          "import ctypes; c = ctypes.CDLL(None); c.shmget(77, 4096, 0o1600), c.mq_open(b'/left', 0o100, 0o600, None) >= 0"},
                 {"code": "import ctypes, os; c = ctypes.CDLL(None); c.shmget(77, 4096, 0), c.mq_open(b'/left', 0), os.listdir('/dev/shm')"}] * 3
        done = self.pyplaypen("batch", "-j", "1", "--ordered", "--unshare", "all", stdin="\n".join(map(json.dumps, lines)).encode())
        values = [json.loads(line) for line in done.stdout.splitlines()]
        self.assertEqual([v["status"] for v in values], ["ok"] * 6, [v["error"] for v in values])
        for value in values[1::2]:
            self.assertEqual(value["return_value"], [-1, -1, []])
        self.assertFalse(os.path.exists("/dev/shm/left"))

    def test_the_enforcement_says_so(self):
        done = self.pyplaypen("exec", "--unshare", "all", "1", env={"PYPLAYPEN_AUDIT": "1"})
        record = json.loads(done.stderr.splitlines()[-1].removeprefix(b"pyplaypen: "))
        self.assertEqual(record["enforcement"]["namespaces"], "user,mount,pid,net,ipc,uts")
        self.assertEqual(record["enforcement"]["network"], "none")
        done = self.pyplaypen("exec", "1", env={"PYPLAYPEN_AUDIT": "1"})
        record = json.loads(done.stderr.splitlines()[-1].removeprefix(b"pyplaypen: "))
        self.assertEqual((record["enforcement"]["namespaces"], record["enforcement"]["network"]), ("none", "host"))


def main():
    global BIN, DENY
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", required=True)
    parser.add_argument("--ordinary-user", action="store_true")
    args, rest = parser.parse_known_args()
    build = os.path.abspath(args.build)
    if args.ordinary_user and ROOT:
        # All of it may lie where that user may not go.
        place = tempfile.mkdtemp(prefix="namespaces-test-")
        try:
            os.chmod(place, 0o755)
            for part in ("bin/pyplaypen", "libexec/pyplaypen/pyplaypen-zygote", "tests/deny_namespaces"):
                os.makedirs(os.path.dirname(f"{place}/{part}"), exist_ok=True)
                shutil.copy(f"{build}/{part}", f"{place}/{part}")
            shutil.copytree(f"{build}/share", f"{place}/share")
            script = shutil.copy(os.path.abspath(__file__), place)
            subprocess.run(["chmod", "-R", "a+rX", place], check=True)
            sys.exit(subprocess.run(["setpriv", "--reuid", "1000", "--regid", "1000", "--clear-groups", sys.executable,
                                     script, "--build", place, *rest], cwd="/").returncode)
        finally:
            shutil.rmtree(place)
    BIN, DENY = f"{build}/bin/pyplaypen", f"{build}/tests/deny_namespaces"
    unittest.main(argv=[sys.argv[0], *rest])


if __name__ == "__main__":
    main()
