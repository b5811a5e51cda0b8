// Whole calls of execute: the real zygote on the real kernel.
#include <fcntl.h>
#include <poll.h>
#include <sys/msg.h>
#include <sys/resource.h>
#include <sys/sem.h>
#include <sys/shm.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <functional>

#include "tests/integration/sandbox_fixture.h"

namespace pyplaypen {
namespace {

class Execute : public SandboxTest {};

TEST_F(Execute, GivesTheLastExpression) {
  const Result result = run("x = 6\nx * 7  # a comment");
  ASSERT_TRUE(result.ok()) << result.error->message;
  EXPECT_EQ(result.return_value, "42");
  EXPECT_EQ(result.request_id.size(), 32U);
}

TEST_F(Execute, KeepsBothStreamsApartCountsAndHashesThem) {
  const Result result = run("import sys\nprint('out')\nprint('err', file=sys.stderr)");
  EXPECT_EQ(result.stdout_output.bytes, "out\n");
  EXPECT_EQ(result.stderr_output.bytes, "err\n");
  EXPECT_EQ(result.stdout_output.total_bytes, 4U);
  // printf 'out\n' | sha256sum
  EXPECT_EQ(result.stdout_output.sha256, "54034ac5c6e9ea95734ec2b729fd6d62abf64af34a9f9ce5d466cb788191a73d");
  EXPECT_FALSE(result.stdout_output.truncated);
}

// ---- Each error type, by its real reason. ----

TEST_F(Execute, SyntaxNamesTheLine) {
  const Result result = run("x = 1\ny = = 2");
  EXPECT_EQ(type_of(result), "syntax");
  EXPECT_EQ(result.error->line, 2);
}

TEST_F(Execute, RuntimeShowsTheUsersLine) {
  const Result result = run("def f():\n    return 1/0  # here\nf()");
  EXPECT_EQ(type_of(result), "runtime");
  EXPECT_EQ(result.error->message, "ZeroDivisionError: division by zero");
  EXPECT_NE(result.error->traceback.find("return 1/0  # here"), std::string::npos);
  EXPECT_EQ(result.error->line, 2);
}

TEST_F(Execute, SerializationNamesTheTypeAndShowsTheValue) {
  const Result result = run("class A:\n  def __repr__(self): return '<A!>'\nA()");
  EXPECT_EQ(type_of(result), "serialization");
  EXPECT_EQ(result.error->value_type, "A");
  EXPECT_EQ(result.error->value_repr, "<A!>");
}

TEST_F(Execute, TimeoutKeepsWhatWasPrinted) {
  Limits limits;
  limits.wall_seconds = 0.3;
  const Result result = run("print('here')\nimport time\ntime.sleep(60)", limits);
  EXPECT_EQ(type_of(result), "timeout");
  EXPECT_EQ(result.error->message, "wall_seconds=0.3 exceeded");
  EXPECT_EQ(result.stdout_output.bytes, "here\n");
}

TEST_F(Execute, CpuLimitAlsoOfAFraction) {
  Limits limits;
  limits.cpu_seconds = 0.3;
  const Result result = run("while True: pass", limits);
  EXPECT_EQ(type_of(result), "cpu_limit");
  EXPECT_EQ(result.error->message, "cpu_seconds=0.3 exceeded");
  EXPECT_LT(result.usage.cpu_ms, 1000);
  EXPECT_EQ(type_of("sum(range(100000))", limits), "ok");
}

TEST_F(Execute, CpuLimitAlsoWhereItsSignalIsIgnored) {
  Limits limits;
  limits.cpu_seconds = 1;
  EXPECT_EQ(type_of("import signal\nsignal.signal(signal.SIGXCPU, signal.SIG_IGN)\nwhile True: pass", limits),
            "cpu_limit");
}

TEST_F(Execute, MemoryJustBelowAndJustAbove) {
  Limits limits;
  limits.memory_bytes = 256 << 20;
  EXPECT_EQ(type_of("len(bytearray(200 << 20))", limits), "ok");
  EXPECT_EQ(type_of("len(bytearray(257 << 20))", limits), "memory_limit");
}

TEST_F(Execute, MemoryLimitAlsoAsAThreadThatCannotStart) {
  Limits limits;
  limits.memory_bytes = 64 << 20;
  limits.process_count = 512;
  const Result result = run(
      "import threading\ne = threading.Event()\n"
      "for _ in range(300):\n  threading.Thread(target=e.wait, daemon=True).start()",
      limits);
  EXPECT_EQ(type_of(result), "memory_limit") << (result.ok() ? "" : result.error->message);
}

TEST_F(Execute, ProcessesJustBelowAndJustAbove) {
  if (!counts_processes()) GTEST_SKIP() << "no count of processes a call";
  Limits limits;
  limits.process_count = 4;
  const std::string start = "import subprocess\nps = [subprocess.Popen(['sleep', '30']) for _ in range(";
  const std::string rest = ")]\nlen(ps)";
  EXPECT_EQ(type_of(start + "3" + rest, limits), "ok");  // the call itself is the fourth
  EXPECT_EQ(type_of(start + "4" + rest, limits), "process_limit");
}

TEST_F(Execute, OpenFilesJustBelowAndJustAbove) {
  Limits limits;
  limits.open_files = 32;
  // 0, 1, 2 are open; opening is all that this does.
  EXPECT_EQ(type_of("fs = [open('/dev/null') for _ in range(28)]\nNone", limits), "ok");
  EXPECT_EQ(type_of("fs = [open('/dev/null') for _ in range(30)]\nNone", limits), "open_files_limit");
}

TEST_F(Execute, FileBytesJustAtAndJustAbove) {
  Limits limits;
  limits.file_bytes = 1000;
  const Result at = run("open('f', 'wb').write(b'x' * 1000)", limits);
  ASSERT_TRUE(at.ok()) << at.error->message;
  std::filesystem::remove_all(at.artifact_root);
  EXPECT_EQ(type_of("import os\nfd = os.open('f', os.O_CREAT | os.O_WRONLY)\nos.write(fd, b'x' * 1001)", limits),
            "artifact_limit");
  const Result cut = run("import errno\ntry:\n  f = open('f', 'wb', buffering=0)\n  f.write(b'x' * 1001)\n"
                         "  f.write(b'x')\nexcept OSError as e: print(errno.errorcode[e.errno])", limits);
  EXPECT_EQ(type_of(cut), "artifact_limit");
  EXPECT_EQ(cut.stdout_output.bytes, "EFBIG\n");
}

TEST_F(Execute, ArtifactCountAndBytesJustAtAndJustAbove) {
  Limits limits;
  limits.artifact_count = 2;
  limits.artifact_bytes = 10;
  const auto leave = [&](const std::string& code) {
    Result result = run(code, limits);
    if (result.ok()) std::filesystem::remove_all(result.artifact_root);
    return type_of(result);
  };
  EXPECT_EQ(leave("for n in 'ab': open(n, 'w').write('12345')"), "ok");
  EXPECT_EQ(leave("for n in 'abc': open(n, 'w').write('1')"), "artifact_limit");
  EXPECT_EQ(leave("for n in 'ab': open(n, 'w').write('123456')"), "artifact_limit");
}

TEST_F(Execute, ReturnValueJustAtAndJustAbove) {
  Limits limits;
  limits.return_value_bytes = 12;
  EXPECT_EQ(run("'x' * 10", limits).return_value, "\"xxxxxxxxxx\"");
  EXPECT_EQ(type_of("'x' * 11", limits), "return_limit");
}

TEST_F(Execute, AFrameBeyondItsLimitIsProtocol) {
  Limits limits;
  limits.result_frame_bytes = 1000;
  limits.return_value_bytes = 1'000'000;
  EXPECT_EQ(type_of("'x' * 500", limits), "ok");
  EXPECT_EQ(type_of("'x' * 2000", limits), "protocol");
}

TEST_F(Execute, StdoutJustAtAndJustAboveItsLimit) {
  Limits limits;
  limits.stdout_bytes = 10;
  EXPECT_EQ(run("print('x' * 9)", limits).stdout_output.bytes, "xxxxxxxxx\n");
  const Result above = run("print('x' * 10)", limits);
  EXPECT_EQ(above.stdout_output.bytes, "xxxxxxxxxx\n[truncated]\n");
  EXPECT_EQ(above.stdout_output.total_bytes, 11U);
  EXPECT_TRUE(above.stdout_output.truncated);
  EXPECT_TRUE(above.ok());
}

TEST_F(Execute, CrashNamesTheSignalAndKeepsTheOutput) {
  const Result result = run("print('so far')\nimport ctypes\nctypes.string_at(0)");
  EXPECT_EQ(type_of(result), "crash");
  EXPECT_NE(result.error->message.find("SIGSEGV"), std::string::npos);
  EXPECT_EQ(result.stdout_output.bytes, "so far\n");
  EXPECT_EQ(type_of("import os\nos.kill(os.getpid(), 9)"), "crash");
  EXPECT_EQ(type_of("import os\nos.abort()"), "crash");
}

TEST_F(Execute, AStackOverflowIsNamedAsTheCause) {
  const Result result = run("import sys\nsys.setrecursionlimit(10**6)\nclass A:\n  def __getattr__(self, n): return getattr(self, n + 'x')\nA().y");
  if (type_of(result) != "crash") GTEST_SKIP() << "this interpreter recurses without C stack: " << type_of(result);
  EXPECT_NE(result.error->message.find("stack overflow"), std::string::npos) << result.error->message;
}

TEST_F(Execute, LimitsAtTheEdgeOfTheirTypeAreNoLimits) {
  Limits limits;
  limits.file_bytes = UINT64_MAX;
  limits.memory_bytes = UINT64_MAX;
  limits.artifact_bytes = UINT64_MAX;
  const Result result = run("open('f', 'w').write('kept')", limits);
  ASSERT_TRUE(result.ok()) << result.error->message;
  ASSERT_EQ(result.artifacts.size(), 1U);
  EXPECT_EQ(result.artifacts[0].bytes, 4U);
  std::filesystem::remove_all(result.artifact_root);
}

TEST_F(Execute, FewDescriptorsForUsAreNoFailureOfTheCode) {
  // Of all processes that start from here: a host with a low hard limit.
  const pid_t host = ::fork();
  if (host == 0) {
    const rlimit few{256, 256};
    if (::setrlimit(RLIMIT_NOFILE, &few) != 0) ::_exit(2);
    Sandbox sandbox(quiet_options());
    ::_exit(sandbox.execute("6 * 7").return_value == "42" ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(host, &status, 0), host);
  EXPECT_EQ(status, 0);
}

TEST_F(Execute, HowACallEndedIsItsOwnEndNotTheOneBefore) {
  for (int i = 0; i < 8; ++i) {
    EXPECT_EQ(type_of("1"), "ok");
    EXPECT_EQ(type_of("import os\nos.kill(os.getpid(), 9)"), "crash");
  }
}

TEST_F(Execute, AnExitBehindOurBackIsProtocol) {
  const Result result = run("import os\nprint('x')\nos._exit(3)");
  EXPECT_EQ(type_of(result), "protocol");
  EXPECT_EQ(result.error->exit_code, 3);
  EXPECT_EQ(result.stdout_output.bytes, "x\n");
}

TEST_F(Execute, CodeThatClosesItsChannelRunsToItsOwnEnd) {
  const Result closed = run("import os, time\nos.closerange(3, 2000)\ntime.sleep(0.05)\nprint('to the end')\n1");
  EXPECT_EQ(type_of(closed), "protocol") << closed.error->message;
  EXPECT_EQ(closed.error->exit_code, 1);
  EXPECT_EQ(closed.stdout_output.bytes, "to the end\n");
  const Result replaced = run("import os\nos.execv('/bin/sh', ['sh', '-c', 'sleep 0.05; echo other; exit 7'])");
  EXPECT_EQ(type_of(replaced), "protocol") << replaced.error->message;
  EXPECT_EQ(replaced.error->exit_code, 7);
  EXPECT_EQ(replaced.stdout_output.bytes, "other\n");
  Limits limits;
  limits.wall_seconds = 0.2;
  EXPECT_EQ(type_of("import os\nos.closerange(0, 2000)\nwhile True: pass", limits), "timeout");
}

TEST_F(Execute, BusyWhenNoSlotComesInTime) {
  Limits longer;
  longer.wall_seconds = 20;
  Call first = sandbox_->start("import time\ntime.sleep(20)", {}, longer);
  Call second = sandbox_->start("import time\ntime.sleep(20)", {}, longer);
  Limits limits;
  limits.wall_seconds = 0.2;
  EXPECT_EQ(type_of("1", limits), "busy");
}

TEST_F(Execute, CancelledByTheCaller) {
  Call call = sandbox_->start("import time\ntime.sleep(20)");
  ASSERT_FALSE(call.advance());
  call.cancel();
  call.wait();
  EXPECT_EQ(type_of(call.result()), "cancelled");
}

TEST_F(Execute, APollableCallAnnouncesItsEnd) {
  Call call = sandbox_->start("1 + 1");
  for (;;) {
    pollfd ready{call.fd(), POLLIN, 0};
    ASSERT_EQ(::poll(&ready, 1, 10'000), 1);
    if (call.advance()) break;
  }
  EXPECT_EQ(call.result().return_value, "2");
}

TEST_F(Execute, APollableCallAnnouncesItsDeadline) {
  Limits limits;
  limits.wall_seconds = 0.2;
  Call call = sandbox_->start("import time\ntime.sleep(30)", {}, limits);
  for (;;) {
    pollfd ready{call.fd(), POLLIN, 0};
    ASSERT_EQ(::poll(&ready, 1, 10'000), 1);
    if (call.advance()) break;
  }
  EXPECT_EQ(type_of(call.result()), "timeout");
}

TEST_F(Execute, DestroyingACallEndsIt) {
  const auto started = std::chrono::steady_clock::now();
  { Call call = sandbox_->start("import time\ntime.sleep(30)"); }
  EXPECT_LT(std::chrono::steady_clock::now() - started, std::chrono::seconds(20));
  EXPECT_EQ(run("1").return_value, "1");
}

// ---- Context. ----

TEST_F(Execute, TheContextsEnvironmentIsTheWholeOfIt) {
  Context context;
  context.environment = Environment{{"A", "1"}, {"HOME", "/nowhere"}};
  const Result result = sandbox_->execute(
      "import os\n[os.environ['A'], os.environ['HOME'], 'PATH' in os.environ, os.path.isdir(os.environ['TMPDIR'])]",
      context);
  EXPECT_EQ(result.return_value, R"(["1","/nowhere",false,true])");
}

TEST_F(Execute, StandardInputAsBytesAndAsAFile) {
  Context context;
  context.stdin_source = {StandardInput::Kind::kBytes, "one\ntwo\n"};
  EXPECT_EQ(sandbox_->execute("[input(), input()]", context).return_value, R"(["one","two"])");
  EXPECT_EQ(sandbox_->execute("input()").error->message, "EOFError: EOF when reading a line");
}

TEST_F(Execute, BadContextsAreRefusedWithASentence) {
  Context context;
  context.request_id = "../x";
  EXPECT_THROW(sandbox_->execute("1", context), Refused);
  context.request_id.clear();
  context.extra_json = "{";
  EXPECT_THROW(sandbox_->execute("1", context), Refused);
  context.extra_json = "{}";
  context.environment = Environment{{"A=B", "x"}};
  EXPECT_THROW(sandbox_->execute("1", context), Refused);
  Limits limits;
  limits.open_files = 1;
  EXPECT_THROW(sandbox_->execute("1", {}, limits), LimitError);
}

TEST_F(Execute, ArtifactsMoveToWhereTheyAreWanted) {
  const auto root = std::filesystem::temp_directory_path() / ("pyplaypen-test-root-" + std::to_string(::getpid()));
  Context context;
  context.artifact_root = root;
  context.request_id = "my-call";
  const Result result = sandbox_->execute(
      "import os\nos.mkdir('d')\nopen('d/data.csv', 'w').write('a,b')\nos.path.abspath('d/data.csv')", context);
  ASSERT_TRUE(result.ok()) << result.error->message;
  EXPECT_EQ(result.artifact_root, (root / "my-call").string());
  ASSERT_EQ(result.artifacts.size(), 1U);
  EXPECT_EQ(result.artifacts[0].path, "d/data.csv");
  EXPECT_EQ(result.artifacts[0].mime_type, "text/csv");
  EXPECT_EQ(result.return_value, "\"d/data.csv\"");
  std::ifstream file(root / "my-call" / "d" / "data.csv");
  std::string text;
  EXPECT_TRUE(std::getline(file, text));
  EXPECT_EQ(text, "a,b");
  struct stat info{};
  ASSERT_EQ(::stat((root / "my-call/d/data.csv").c_str(), &info), 0);
  EXPECT_EQ(info.st_uid, ::geteuid());
  std::filesystem::remove_all(root);
}

// ---- Extension. ----

class Extension : public testing::Test {
 protected:
  void SetUp() override {
    directory_ = std::filesystem::temp_directory_path() / ("pyplaypen-test-ext-" + std::to_string(::getpid()));
    std::filesystem::create_directory(directory_);
    std::filesystem::permissions(directory_, std::filesystem::perms(0755));
    std::ofstream(directory_ / "ext_for_test.py") << "def good(ctx): return {'n': ctx['extra']['n']}\n"
                                                     "def bad(ctx): return 5\n"
                                                     "def fails(ctx): raise ValueError('no')\n";
    options_ = quiet_options();
    options_.extra_environment["PYTHONPATH"] = directory_.string();
  }
  void TearDown() override { std::filesystem::remove_all(directory_); }

  std::filesystem::path directory_;
  SandboxOptions options_;
};

TEST_F(Extension, AProviderGivesNamesFromItsContext) {
  options_.globals_provider = "ext_for_test:good";
  options_.self_check = SelfCheck::kNo;  // its context has no "n"
  Sandbox sandbox(options_);
  Context context;
  context.extra_json = R"({"n": 5})";
  EXPECT_EQ(sandbox.execute("n + 1", context).return_value, "6");
}

TEST_F(Extension, WhatDoesNotImportOrFailsIsFoundAtConstruction) {
  for (const char* provider : {"no_such_module_x:build", "ext_for_test:missing", "ext_for_test:bad", "ext_for_test:fails"}) {
    options_.globals_provider = provider;
    EXPECT_THROW(Sandbox{options_}, ExtensionError) << provider;
  }
  options_.globals_provider.clear();
  options_.preload = {"no_such_module_x"};
  EXPECT_THROW(Sandbox{options_}, ExtensionError);
}

// What a preloaded module registered runs once in the child that a call is, and as ever when the code forks.
TEST_F(Extension, AtForkHooksOfAPreloadedModule) {
  std::ofstream(directory_ / "forks_for_test.py")
      << "import os\n"
         "seen = []\n"
         "def tell(text): return lambda: seen.append(text)\n"
         "os.register_at_fork(before=tell('before 1'), after_in_parent=tell('parent 1'), after_in_child=tell('child 1'))\n"
         "os.register_at_fork(before=tell('before 2'), after_in_child=tell('child 2'))\n"
         "errors = []\n"
         "for wrong in ({}, {'before': 1}, {'after': tell('')}):\n"
         "    try: os.register_at_fork(**wrong)\n"
         "    except TypeError: errors.append(len(errors))\n";
  options_.preload = {"forks_for_test"};
  for (const int spares : {0, 2}) {
    options_.spares = spares;
    Sandbox sandbox(options_);
    const Result result = sandbox.execute(
        "import forks_for_test as f, os\n"
        "own = f.seen[:]\n"
        "f.seen.clear()\n"
        "r, w = os.pipe()\n"
        "pid = os.fork()\n"
        "if pid == 0:\n"
        "    os.write(w, ','.join(f.seen).encode())\n"
        "    os._exit(0)\n"
        "os.waitpid(pid, 0)\n"
        "[f.errors, own, f.seen, os.read(r, 100).decode()]\n");
    EXPECT_EQ(result.return_value,
              R"([[0,1,2],["child 1","child 2"],["before 2","before 1","parent 1"],)"
              R"("before 2,before 1,child 1,child 2"])")
        << spares;
  }
}

TEST_F(Extension, WithoutTheSelfCheckItIsTheCallsError) {
  options_.globals_provider = "ext_for_test:bad";
  options_.self_check = SelfCheck::kNo;
  Sandbox sandbox(options_);
  const Result result = sandbox.execute("1");
  ASSERT_TRUE(result.error);
  EXPECT_EQ(result.error->type, ErrorType::kExtension);
}

// ---- Nothing is left, nothing is shared. ----

TEST_F(Execute, NothingOfACallIsSeenByTheNext) {
  for (int i = 0; i < 6; ++i) {
    const Result result = run(
        "import os, sys, tempfile\n"
        "seen = ['marker' in globals(), 'MARK' in os.environ, '/marker' in sys.path,\n"
        "        os.path.exists(os.path.join(tempfile.gettempdir(), 'mark')), os.listdir('.'),\n"
        "        os.listdir(os.environ['HOME']), os.path.exists('/dev/shm/pyplaypen-test-mark')]\n"
        "marker = 1\nos.environ['MARK'] = '1'\nsys.path.append('/marker')\n"
        "open(os.path.join(tempfile.gettempdir(), 'mark'), 'w').close()\n"
        "open(os.path.join(os.environ['HOME'], '.cache'), 'w').close()\n"
        "os.mkdir('.left')\n"
        "seen");
    ASSERT_TRUE(result.ok()) << result.error->message;
    EXPECT_EQ(result.return_value, "[false,false,false,false,[],[],false]");
  }
}

// As root: each slot's user is its own, and so are the user's objects.
TEST_F(Execute, SharedObjectsAreGoneWhenTheCallHasReturned) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root: elsewhere they are not told from those of others";
  const std::pair<const char*, std::function<int(int)>> kinds[] = {
      {"c.shmget(0, 4096, 0o1600)", [](int id) { shmid_ds info{}; return ::shmctl(id, IPC_STAT, &info); }},
      {"c.semget(0, 1, 0o1600)", [](int id) { return ::semctl(id, 0, GETVAL); }},
      {"c.msgget(0, 0o1600)", [](int id) { msqid_ds info{}; return ::msgctl(id, IPC_STAT, &info); }}};
  for (int round = 0; round < 5; ++round) {
    for (const auto& [make, look] : kinds) {
      const Result result = run(std::string("import ctypes; c = ctypes.CDLL(None)\n") + make);
      ASSERT_TRUE(result.ok()) << result.error->message;
      const int id = std::stoi(result.return_value);
      ASSERT_GE(id, 0) << make;
      EXPECT_EQ(look(id), -1) << make;
    }
    ASSERT_TRUE(run("open('/dev/shm/pyplaypen-test-object', 'w').close()").ok());
    EXPECT_FALSE(std::filesystem::exists("/dev/shm/pyplaypen-test-object"));
  }
}

TEST_F(Execute, RandomStateIsTheCallsOwn) {
  const std::string code = "import random, uuid, secrets\n[random.random(), uuid.uuid4().hex, secrets.token_hex(8)]";
  EXPECT_NE(run(code).return_value, run(code).return_value);
}

TEST_F(Execute, TheCallCannotSignalItsKeeperOrItsSiblings) {
  Call sibling = sandbox_->start("import time\ntime.sleep(1)\n'fine'");
  const Result result = run("import os\ntry:\n  os.kill(os.getppid(), 9)\nexcept PermissionError: print('denied')\n"
                            "try:\n  os.kill(-1, 9)\nexcept OSError as e: print(type(e).__name__)\n1");
  EXPECT_EQ(result.return_value, "1");
  EXPECT_EQ(result.stdout_output.bytes.substr(0, 7), "denied\n");
  sibling.wait();
  EXPECT_EQ(sibling.result().return_value, "\"fine\"");
}

TEST_F(Execute, DaemonsDoNotOutliveTheCall) {
  const std::string mark = "987654." + std::to_string(::getpid());
  const Result result = run(
      "import subprocess, os, signal\n"
      "signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
      "subprocess.Popen(['setsid', 'sleep', '" + mark + "'])\n"
      "subprocess.Popen(['sh', '-c', '(setsid sleep " + mark + " &); exit 0']).wait()\n"
      "p = subprocess.Popen(['sleep', '" + mark + "'])\nos.kill(p.pid, signal.SIGSTOP)\n1");
  EXPECT_EQ(result.return_value, "1") << (result.ok() ? "" : result.error->message);
  for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
    std::ifstream file(entry.path() / "cmdline");
    std::string line;
    std::getline(file, line);
    EXPECT_EQ(line.find(mark), std::string::npos) << entry.path();
  }
}

TEST_F(Execute, StandardStreamsCanBeOpenedAnew) {
  const Result result = run(
      "import subprocess\n"
      "with open('/dev/stdout', 'w') as f: f.write('a')\n"
      "with open('/dev/stderr', 'w') as f: f.write('b')\n"
      "subprocess.run('echo c > /dev/stdout; echo d | tee /dev/stderr', shell=True).returncode");
  EXPECT_EQ(result.return_value, "0") << (result.ok() ? "" : result.error->message);
  EXPECT_EQ(result.stdout_output.bytes, "ac\nd\n");
  EXPECT_EQ(result.stderr_output.bytes, "bd\n");
}

TEST_F(Execute, OutputAfterTheAnswerOfAForkedCopyIsNoAnswer) {
  const Result result = run("import os, time\nif os.fork() == 0:\n  time.sleep(20)\n42");
  EXPECT_EQ(result.return_value, "42");
}

}  // namespace
}  // namespace pyplaypen
