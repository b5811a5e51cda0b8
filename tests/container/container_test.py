#!/usr/bin/env python3
"""The image in the ways in which containers are run: what it says is enforced, and whether that is true.

  container_test.py --image NAME [unittest's own arguments]

Needs the docker command and an engine (DOCKER_HOST); scripts/container-test brings both. A deployment is a class with
the flags of `docker run`; what is said there decides what the attacks must not reach.
"""
import json
import os
import re
import signal
import subprocess
import sys
import time
import unittest

IMAGE = None
SECONDS = 120  # against hanging; nothing takes more than a few
ORDINARY = "10001"  # the image's own user
PIDS_CAP = 96
FORKS = 200  # more than any count and cap here
# Containers that share a user namespace share its UIDs, and so their counts: a Sandbox of the host's or of another
# container may have a few processes of the same number.
FOREIGN = 5

FORK_BOMB = f"""
import os, signal
made, error = 0, 0
for _ in range({FORKS}):
    try:
        pid = os.fork()
    except OSError as failure:
        error = failure.errno
        break
    if pid == 0:
        signal.pause()
        os._exit(0)
    made += 1
"""

# Outlives everything that asks politely: its own session, no parent, deaf, its output elsewhere.
DAEMONS = """
import os, signal, time
ready, told = os.pipe()
for _ in range(5):
    if os.fork() == 0:
        os.setsid()
        for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
            signal.signal(number, signal.SIG_IGN)
        if os.fork() == 0:
            os.write(told, b'x')
            for fd in (0, 1, 2):
                os.close(fd)
            while True:
                time.sleep(1000)
        os._exit(0)
    os.wait()
seen = b''
while len(seen) < 5:
    seen += os.read(ready, 5)
"""

# Three thousand orphans, a few at a time, where not even a hundred may be alive or unreaped.
ORPHANS = """
import os
def fork():
    while True:
        try:
            return os.fork()
        except BlockingIOError:  # those before are on their way
            pass
for _ in range(1000):
    pid = fork()
    if pid == 0:
        for _ in range(3):
            if fork() == 0:
                os._exit(0)
        os._exit(0)
    os.waitpid(pid, 0)
"""

# The two halves of a meeting: whoever of the two calls comes first waits for the other.
MEET = """
import socket, time
def serve(text):
    with socket.create_server(('127.0.0.1', 40123)) as server:
        peer, _ = server.accept()
        with peer:
            peer.sendall(text.encode() + b'\\n')
            peer.recv(1)  # until the other one has done what it wanted
def visit(done):
    while True:
        try:
            peer = socket.create_connection(('127.0.0.1', 40123))
            break
        except OSError:
            time.sleep(0.01)
    with peer:
        return done(peer.makefile().readline().strip())
"""


def docker(*arguments, check=False, **more):
    return subprocess.run(["docker", *arguments], capture_output=True, text=True, timeout=SECONDS, check=check, **more)


class Container:
    """One that waits, with an init for its zombies; commands are executed in it."""

    def __init__(self, *flags):
        started = docker("run", "--detach", "--init", "--network", "none", "--entrypoint", "sleep", *flags, IMAGE, "infinity")
        if started.returncode != 0:
            raise AssertionError(started.stderr)
        self.id = started.stdout.split()[-1]

    def remove(self):
        docker("rm", "--force", self.id, check=True)

    def run(self, *argv, input=None, env=()):
        variables = [word for pair in env for word in ("--env", pair)]
        return docker("exec", "--interactive", *variables, self.id, *argv, input=input)

    def python(self, code):
        done = self.run("python3", "-c", code)
        if done.returncode != 0:
            raise AssertionError(done.stderr)
        return json.loads(done.stdout)

    def exec(self, code, *options):
        """The result of `pyplaypen exec`, and what was said on stderr."""
        done = self.run("pyplaypen", "exec", *options, "-", input=code)
        if not done.stdout:
            raise AssertionError(f"exit {done.returncode}: {done.stderr}")
        return json.loads(done.stdout), done.stderr

    def batch(self, *codes):
        """Results in the order of the codes, which run at the same time."""
        done = self.run("pyplaypen", "batch", "--ordered", "-j", str(len(codes)),
                        input="".join(json.dumps({"code": code}) + "\n" for code in codes))
        return [json.loads(line) for line in done.stdout.splitlines()]

    def processes(self):
        """name -> count, of all that are alive but for those that are always there."""
        return self.python("""
import json, os
found = {}
for pid in filter(str.isdigit, os.listdir('/proc')):
    try:
        with open(f'/proc/{pid}/stat') as file:
            name, rest = file.read().split('(', 1)[1].rsplit(')', 1)
    except OSError:
        continue
    if int(pid) != os.getpid() and rest.split()[0] not in 'ZX' and name not in ('docker-init', 'tini', 'sleep'):
        found[name] = found.get(name, 0) + 1
print(json.dumps(found))""")

    def files_in_tmp(self):
        return self.python("import json, os; print(json.dumps(sorted(os.listdir('/tmp'))))")


class Deployment:
    """What must hold in every one. `words`: those that are known beforehand."""

    flags = ()
    words = {}

    @classmethod
    def setUpClass(cls):
        cls.container = Container(*cls.flags)
        done = cls.container.run("pyplaypen", "enforcement", "--json")
        cls.said = json.loads(done.stdout)

    @classmethod
    def tearDownClass(cls):
        cls.container.remove()

    def value(self, code, *options):
        result, stderr = self.container.exec(code, *options)
        self.assertEqual(result["status"], "ok", (result, stderr))
        return result["return_value"]

    def assert_nothing_left(self):
        deadline = time.monotonic() + 30  # what is killed may be on its way out
        while (left := self.container.processes()) and time.monotonic() < deadline:
            time.sleep(0.05)
        self.assertEqual(left, {})
        self.assertEqual([name for name in self.container.files_in_tmp() if not name.startswith("pyplaypen-artifacts-")], [])

    def test_what_is_said(self):
        for key, word in self.words.items():
            with self.subTest(key):
                self.assertEqual(self.said[key], word)

    def test_process_count_of_code(self):
        word = self.said["process_count"]
        if word == "unsupported":  # and a number is not taken, see test_the_gate
            self.assertEqual(self.value(FORK_BOMB + "[made, error]"), [FORKS, 0])
            return self.assert_nothing_left()
        made, error = self.value(FORK_BOMB + "[made, error]", "--limit", "process_count=12")
        self.assertEqual(error, 11)  # EAGAIN
        if word == "hard_per_call":
            self.assertIn(made, range(12 - FOREIGN, 12))  # the call itself is the twelfth
        elif word == "container":
            self.assertLess(made, PIDS_CAP)
            self.assertGreater(made, 12)  # the cap counts, and the limit does not
        else:
            self.fail(f"process_count: {word}")
        self.assert_nothing_left()

    def test_counts_of_two_calls(self):
        if self.said["process_count"] != "hard_per_call":
            self.skipTest("no count of each call's own")
        both = self.container.batch(MEET + FORK_BOMB + "serve('go'); made", MEET + FORK_BOMB + "visit(lambda text: made)")
        for result in both:  # at the same time; of process_count=16 one is the call itself
            self.assertIn(result["return_value"], range(16 - FOREIGN, 16), both)
        self.assert_nothing_left()

    def test_process_count_of_a_command(self):
        word = self.said["process_count"]
        done = self.container.run("pyplaypen", "run", "--limit", "process_count=12", "--", "python3", "-c",
                                  FORK_BOMB + "print(made, error)", env=("PYPLAYPEN_AUDIT=1",))
        if word == "unsupported":
            self.assertEqual(done.returncode, 2, done.stderr)
            self.assertIn("process_count=12 cannot be enforced here", done.stderr)
            return
        record = json.loads(re.search(r"^pyplaypen: (\{.*)$", done.stderr, re.MULTILINE)[1])
        word = record["enforcement"]["process_count"]
        made, error = map(int, done.stdout.split())
        self.assertEqual(error, 11)
        if word in ("hard_per_call", "hard_per_user"):
            self.assertIn(made, range(12 - FOREIGN, 12))
        else:
            self.assertEqual(word, "container")
            self.assertLess(made, PIDS_CAP)
        self.assert_nothing_left()

    def test_the_gate(self):
        result, stderr = self.container.exec("1 + 1")
        self.assertEqual(result["return_value"], 2)
        gap = self.said["process_count"] == "unsupported"
        self.assertEqual("process_count cannot be enforced here" in stderr, gap, stderr)
        asked = self.container.run("pyplaypen", "exec", "--limit", "process_count=12", "1")
        self.assertEqual(asked.returncode, 2 if gap else 0, asked.stderr)

    def test_nothing_survives_code(self):
        for end in ("1", "os._exit(3)", "os.kill(os.getpid(), 9)", "while True: pass"):
            with self.subTest(end):
                self.container.exec(DAEMONS + end, "--limit", "wall_seconds=1")
                self.assert_nothing_left()

    def test_nothing_survives_a_command(self):
        for end in ("", "os.kill(os.getpid(), 9)", "time.sleep(1000)"):
            with self.subTest(end):
                self.container.run("pyplaypen", "run", "--limit", "wall_seconds=1", "--", "python3", "-c", DAEMONS + end)
                self.assert_nothing_left()

    def test_a_call_ends_nothing_but_itself(self):
        if self.said["signals"] not in ("hard", "hard_per_user"):
            self.skipTest("signals are not confined")
        victims = self.value("""
import os
reached = []
for pid in [1, os.getppid()] + [int(name) for name in os.listdir('/proc') if name.isdigit()]:
    if pid == os.getpid():
        continue
    try:
        os.kill(pid, 0)
        reached.append(pid)
    except (PermissionError, ProcessLookupError):
        pass
reached""")
        self.assertEqual(victims, [])
        killer, bystander = self.container.batch(
            MEET + "import os, signal\nserve('go')\nos.kill(-1, signal.SIGTERM)",
            MEET + "visit(lambda text: 'well')\n'well'")
        self.assertEqual(bystander["return_value"], "well", bystander)

    def test_the_calls_identity(self):
        uid, capabilities = self.value("""
import os
with open('/proc/self/status') as file:
    fields = dict(line.split(':', 1) for line in file)
os.getuid(), fields['CapEff'].strip()""")
        own = 0 if "0" in self.flags else int(ORDINARY)
        self.assertEqual(uid == own, self.said["user"] == "unchanged")
        self.assertEqual(int(capabilities, 16), 0)

    def test_another_calls_workspace(self):
        owner, reader = self.container.batch(
            MEET + "import os\nopen('secret', 'w').write('s3cret')\nserve(os.path.abspath('secret'))",
            MEET + """
def look(path):
    found = []
    for mode in 'r', 'a':
        try:
            with open(path, mode) as file:
                found.append(mode)
        except PermissionError:
            pass
    return found
visit(look)""")
        self.assertEqual(owner["status"], "ok", owner)
        self.assertEqual([artifact["path"] for artifact in owner["artifacts"]], ["secret"], owner)
        if self.said["user"] == "dropped":
            self.assertEqual(reader["return_value"], [])
        else:  # docs/threat-model.md says so
            self.assertEqual(reader["return_value"], ["r", "a"])
        self.assert_nothing_left()

    def test_what_was_left_by_hostile_code(self):
        result, _ = self.container.exec("""
import os
os.makedirs('a/b/c')
for path in 'a/b/c/file', 'a/file', 'other':
    with open(path, 'w') as file:
        file.write('x')
    os.chmod(path, 0)
os.makedirs('empty')
for path in 'a/b/c', 'a/b', 'a', 'empty', '.':
    os.chmod(path, 0)
os.mkdir(os.environ['TMPDIR'] + '/deep', 0)
os.chmod(os.environ['HOME'], 0)""")
        self.assertEqual(result["status"], "ok", result)
        self.assertEqual([artifact["path"] for artifact in result["artifacts"]], ["a/b/c/file", "a/file", "other"])
        self.assert_nothing_left()

    def test_confined_writes(self):
        # Where root's files are the user's own, only Landlock bars them.
        attempt = """
import os
done = []
for path in '/tmp/escaped', '/escaped', '/dev/shm/escaped', '/usr/local/bin/pyplaypen':
    try:
        with open(path, 'a') as file:
            done.append(path)
    except OSError:
        pass
with open('inside', 'w') as file:
    file.write('x')
done"""
        if self.said["filesystem_writes"] == "unsupported":
            asked = self.container.run("pyplaypen", "exec", "--confine-writes", "1")
            self.assertEqual(asked.returncode, 2, asked.stderr)
            return
        self.assertEqual(self.value(attempt, "--confine-writes"), [])
        run = self.container.run("sh", "-c", "mkdir -p /tmp/here && chmod 777 /tmp/here && cd /tmp/here && "
                                 "pyplaypen run --confine-writes -- python3 -c \"$1\"", "sh", attempt + "\nprint(done)")
        self.assertEqual(run.stdout, "[]\n", run.stderr)
        self.container.run("rm", "-r", "/tmp/here")
        self.assertIn("/tmp/escaped", self.value(attempt))  # so it is Landlock that bars it
        self.container.python("import json, os\n"
                              "for path in '/tmp/escaped', '/dev/shm/escaped', '/escaped':\n"
                              "  if os.path.exists(path): os.unlink(path)\n"
                              "print('null')")

    def test_objects_that_outlive_processes(self):
        if self.said["user"] != "dropped":
            self.skipTest("they belong to everything of this user")
        self.value("""
import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
IPC_CREAT = 0o1000
made = [libc.shmget(0x5eed, 4096, IPC_CREAT | 0), libc.semget(0x5eed, 1, IPC_CREAT | 0), libc.msgget(0x5eed, IPC_CREAT | 0)]
assert min(made) >= 0, (made, ctypes.get_errno())
with open('/dev/shm/kept', 'w') as file:
    file.write('x')
1""")
        self.assertEqual(self.container.python("""
import json, os
found = os.listdir('/dev/shm')
for kind in 'shm', 'sem', 'msg':
    with open('/proc/sysvipc/' + kind) as file:
        found += [kind + line for line in file.readlines()[1:]]
print(json.dumps(found))"""), [])

    def test_orphans_are_reaped(self):
        self.assertEqual(self.value(ORPHANS + "'through'"), "through")
        self.assert_nothing_left()


class Root(Deployment, unittest.TestCase):
    flags = ("--user", "0")
    words = {"process_count": "hard_per_call", "user": "dropped", "container_resources": "unsupported"}


class RootWithACap(Deployment, unittest.TestCase):
    flags = ("--user", "0", "--pids-limit", str(PIDS_CAP))
    words = {"process_count": "hard_per_call", "user": "dropped", "container_resources": "container"}


class User(Deployment, unittest.TestCase):
    flags = ()
    words = {"process_count": "unsupported", "user": "unchanged", "container_resources": "unsupported"}


class UserWithACap(Deployment, unittest.TestCase):
    flags = ("--pids-limit", str(PIDS_CAP))
    words = {"process_count": "container", "user": "unchanged", "container_resources": "container"}


class UserWithNamespaces(Deployment, unittest.TestCase):
    # What bars user namespaces is the engine's own filter of system calls.
    flags = ("--security-opt", "seccomp=unconfined")
    words = {"process_count": "hard_per_call", "user": "unchanged"}


class ReadOnlyRoot(Deployment, unittest.TestCase):
    flags = ("--user", "0", "--read-only", "--tmpfs", "/tmp")
    words = {"process_count": "hard_per_call", "user": "dropped"}


class ReadOnlyUser(Deployment, unittest.TestCase):
    flags = ("--read-only", "--tmpfs", "/tmp", "--pids-limit", str(PIDS_CAP), "--cap-drop", "ALL",
             "--security-opt", "no-new-privileges")
    words = {"process_count": "container", "user": "unchanged"}


class RootWithoutCapabilities(Deployment, unittest.TestCase):
    flags = ("--user", "0", "--cap-drop", "ALL", "--security-opt", "no-new-privileges", "--pids-limit", str(PIDS_CAP))
    words = {"process_count": "container", "process_count_of_commands": "container", "user": "unchanged"}


NEEDED = ("CHOWN", "DAC_OVERRIDE", "FOWNER", "KILL", "SETGID", "SETUID")


def capabilities(*names):
    return ("--user", "0", "--cap-drop", "ALL", *(word for name in names for word in ("--cap-add", name)))


class RootWithWhatItNeeds(Deployment, unittest.TestCase):
    flags = capabilities(*NEEDED)
    words = {"process_count": "hard_per_call", "user": "dropped"}


class RootWithoutOne(unittest.TestCase):
    def test_each(self):
        for missing in NEEDED:
            flags = capabilities(*(name for name in NEEDED if name != missing))
            for command in ("exec", "1 + 1"), ("run", "--", "true"):
                with self.subTest(missing=missing, command=command[0]):
                    done = docker("run", "--rm", "--network", "none", *flags, IMAGE, *command)
                    if missing in ("SETUID", "SETGID"):  # then it is as any other user
                        self.assertEqual(done.returncode, 0, done.stderr)
                    else:
                        self.assertEqual(done.returncode, 125, done.stderr)
                        self.assertIn(f"CAP_{missing}", done.stderr)


class WithACgroup(unittest.TestCase):
    """Where the engine leaves cgroups writable, and where it does not."""

    # In directories of the test's own, which are gone afterwards unless something was left in them.
    WITH_GROUPS = """
import os, subprocess, sys
tops = ['/sys/fs/cgroup'] if os.path.exists('/sys/fs/cgroup/cgroup.controllers') else ['/sys/fs/cgroup/memory', '/sys/fs/cgroup/pids']
groups = [top + '/pyplaypen-container-test' for top in tops] if sys.argv[1] == 'made' else tops
try:
    if sys.argv[1] == 'made':
        for group in groups:
            os.mkdir(group)
    options = [word for group in groups for word in ('--cgroup', group)]
    code = subprocess.run(['pyplaypen', sys.argv[2], *options, *sys.argv[3:]]).returncode
finally:
    if sys.argv[1] == 'made':
        for group in groups:
            os.rmdir(group)
sys.exit(code)
"""

    def pyplaypen(self, flags, which, *arguments):
        return docker("run", "--rm", "--network", "none", *flags, "--entrypoint", "python3", IMAGE, "-c", self.WITH_GROUPS, which,
                      *arguments)

    def test_a_call_is_limited_as_a_whole(self):
        flags = ("--user", "0", "--volume", "/sys/fs/cgroup:/sys/fs/cgroup:rw")
        said = self.pyplaypen(flags, "made", "enforcement", "--json")
        words = json.loads(said.stdout or "{}")
        if words.get("memory_bytes") != "hard_per_call":
            self.skipTest(f"this engine's cgroups cannot be used from within: {said.stderr}")
        self.assertEqual([words["process_count"], words["process_count_of_commands"]], ["hard_per_call"] * 2)
        # Each takes less than memory_bytes, all of them more; whoever is killed is told of in its wait status.
        done = self.pyplaypen(flags, "made", "exec", "--limit", "memory_bytes=100_000_000", """
import os, signal
for _ in range(4):
    if os.fork() == 0:
        kept = bytearray(60_000_000)
        signal.pause()
os.waitstatus_to_exitcode(os.wait()[1])""")
        self.assertEqual(json.loads(done.stdout)["return_value"], -signal.SIGKILL, (done.stdout, done.stderr))

    def test_one_that_may_not_be_written(self):
        for flags in ((), ("--user", "0")):
            done = self.pyplaypen(flags, "top", "exec", "1 + 1")
            self.assertIn("the cgroup that was given cannot be used", done.stderr)
            self.assertEqual(json.loads(done.stdout)["return_value"], 2)
            self.assertEqual(self.pyplaypen(flags, "top", "exec", "--strict", "1 + 1").returncode, 125)


class AsTheFirstProcess(unittest.TestCase):
    """pyplaypen itself is pid 1, as the image is run."""

    def run_image(self, *arguments, flags=(), input=None):
        return docker("run", "--rm", "--interactive", "--network", "none", *flags, IMAGE, *arguments, input=input)

    def test_orphans_of_a_command(self):
        for user in ("0", ORDINARY):
            with self.subTest(user=user):
                done = self.run_image("run", "--", "python3", "-c", ORPHANS + "print('through')",
                                      flags=("--user", user, "--pids-limit", str(PIDS_CAP)))
                self.assertEqual((done.returncode, done.stdout), (0, "through\n"), done.stderr)

    def test_orphans_of_code(self):
        for user in ("0", ORDINARY):
            with self.subTest(user=user):
                lines = "".join(json.dumps({"code": ORPHANS + "'through'"}) + "\n" for _ in range(3))
                done = self.run_image("batch", "-j", "2", flags=("--user", user, "--pids-limit", str(PIDS_CAP)), input=lines)
                self.assertEqual([json.loads(line)["return_value"] for line in done.stdout.splitlines()], ["through"] * 3,
                                 (done.stdout, done.stderr))

    def test_zygotes_that_are_killed(self):
        # Each is an orphan from its start, so pid 1's to reap; and so are its keepers. More of them than the cap.
        killer = """
import os, signal, sys
for order in sys.stdin:
    for pid in filter(str.isdigit, os.listdir('/proc')):
        try:
            with open(f'/proc/{pid}/comm') as file:
                if file.read().startswith('pyplaypen-zygot'):
                    os.kill(int(pid), signal.SIGKILL)
        except OSError:
            pass
    print('done', flush=True)
"""

        def start(*arguments):
            process = subprocess.Popen(["docker", *arguments], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

            def end():
                process.kill()
                process.wait()
                process.stdin.close()
                process.stdout.close()

            self.addCleanup(end)
            return process

        def ask(process, line):
            process.stdin.write(line + "\n")
            process.stdin.flush()
            return process.stdout.readline()

        container = f"pyplaypen-test-{os.getpid()}"
        self.addCleanup(docker, "rm", "--force", container)
        batch = start("run", "--rm", "--interactive", "--name", container, "--network", "none",
                      "--pids-limit", str(PIDS_CAP), "--user", "0", "--env", "PYPLAYPEN_QUIET=1", IMAGE, "batch")
        ask(batch, json.dumps({"code": "1"}))  # then the container is there
        killing = start("exec", "--interactive", container, "python3", "-c", killer)
        served = 0
        for _ in range(2 * PIDS_CAP):
            self.assertEqual(ask(killing, "kill"), "done\n")
            answer = json.loads(ask(batch, json.dumps({"code": "6 * 7"})))
            if answer["status"] == "error":  # it was under way
                self.assertEqual(answer["error"]["type"], "internal", answer)
                continue
            self.assertEqual(answer["return_value"], 42)
            served += 1
            if served == PIDS_CAP // 2:  # each has been three processes at the least
                break
        self.assertEqual(served, PIDS_CAP // 2)
        batch.stdin.close()
        self.assertEqual(batch.wait(SECONDS), 0)

    def test_stopping(self):
        # A signal without a handler does not reach pid 1, so that the engine's patience would run out.
        for arguments in (("exec", "--limit", f"wall_seconds={2 * SECONDS}", "import time; time.sleep(1000)"),
                          ("run", "--limit", f"wall_seconds={2 * SECONDS}", "--", "sleep", "1000"), ("batch",)):
            with self.subTest(arguments[0]):
                started = docker("run", "--detach", "--interactive", "--network", "none", IMAGE, *arguments, check=True)
                container = started.stdout.split()[-1]
                self.addCleanup(docker, "rm", "--force", container)
                docker("stop", "--time", str(SECONDS // 2), container, check=True)
                code = int(docker("inspect", "--format", "{{.State.ExitCode}}", container, check=True).stdout)
                self.assertNotEqual(code, 128 + signal.SIGKILL)


if __name__ == "__main__":
    at = sys.argv.index("--image")
    IMAGE = sys.argv[at + 1]
    del sys.argv[at:at + 2]
    unittest.main()
