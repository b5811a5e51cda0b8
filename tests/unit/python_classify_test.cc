// classify(): which limit an exception is the sign of.
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include "runtime/python/classify.h"
#include "runtime/sys/proc.h"
#include "tests/unit/python_call.h"

namespace pyplaypen::python {
namespace {

using Status = wire::ReportStatus;

Status status(const std::string& code, const CallOptions& options = {}) {
  return call(code, options).report.status;
}

CallOptions with_memory(uint64_t bytes) {
  CallOptions options;
  options.limits.memory_bytes = bytes;
  options.before = [bytes] {
    const uint64_t all = sys::mapped_bytes() + bytes;
    const rlimit limit = {all, all};
    ::setrlimit(RLIMIT_AS, &limit);
  };
  return options;
}

TEST(PythonClassify, Memory) {
  const CallOptions options = with_memory(64 << 20);
  const Outcome outcome = call("x = 1\nlen(bytearray(2 << 30))", options);
  EXPECT_EQ(outcome.report.status, Status::kMemoryLimit);
  EXPECT_EQ(outcome.report.message, "memory_bytes (67108864) is used up: MemoryError");
  EXPECT_EQ(outcome.report.line.value_or(0), 2);
  EXPECT_NE(outcome.report.traceback.find("len(bytearray(2 << 30))"), std::string::npos);
  EXPECT_EQ(status("l = []\nwhile 1: l.append(bytearray(1 << 16))", options), Status::kMemoryLimit);
  EXPECT_EQ(status("l = []\nwhile 1: l.append(str(len(l)) * 3)", options), Status::kMemoryLimit);
  EXPECT_EQ(status("def f():\n    l = []\n    while 1: l = [l]\nf()", options),
            Status::kMemoryLimit);
  EXPECT_EQ(value("l = []\ntry:\n    while 1: l.append(bytearray(1 << 20))\n"
                  "except MemoryError: l = None\n'survived'",
                  options),
            "\"survived\"");
  EXPECT_EQ(status("import mmap\nmmap.mmap(-1, 1 << 33)", options), Status::kMemoryLimit);
  EXPECT_EQ(status("raise MemoryError"), Status::kMemoryLimit);
  EXPECT_EQ(status("raise ImportError('x.so: failed to map segment from shared object')"),
            Status::kMemoryLimit);
  EXPECT_EQ(status("raise ImportError('libx.so: cannot allocate memory in static TLS block')"),
            Status::kMemoryLimit);
  EXPECT_EQ(status("raise OSError('x: Cannot allocate memory')"), Status::kMemoryLimit);
  EXPECT_EQ(status("raise ValueError('Cannot allocate memory')"), Status::kRuntime);
  EXPECT_EQ(
      status("import threading, time\nwhile 1: threading.Thread(target=time.sleep, args=(1,), "
             "daemon=True).start()",
             options),
      Status::kMemoryLimit);
}

TEST(PythonClassify, Wrapped) {
  const std::string memory = "try:\n    raise MemoryError\nexcept MemoryError as e:\n    ";
  EXPECT_EQ(status(memory + "raise ValueError('x') from e"), Status::kMemoryLimit);
  EXPECT_EQ(status(memory + "raise ImportError('x')"), Status::kMemoryLimit);
  EXPECT_EQ(status(memory + "raise RuntimeError('x')"), Status::kMemoryLimit);
  EXPECT_EQ(status(memory + "raise ValueError('x')"), Status::kRuntime);
  EXPECT_EQ(status(memory + "raise ImportError('x') from None"), Status::kRuntime);
  EXPECT_EQ(status("raise ExceptionGroup('g', [MemoryError(), OSError(12, 'x')])"),
            Status::kMemoryLimit);
  EXPECT_EQ(status("raise ExceptionGroup('g', [MemoryError(), ValueError()])"), Status::kRuntime);
}

TEST(PythonClassify, OpenFiles) {
  CallOptions options;
  options.limits.open_files = 16;
  options.before = [] {
    const rlimit limit = {16, 16};
    ::setrlimit(RLIMIT_NOFILE, &limit);
  };
  const Outcome outcome =
      call("import tempfile\n[tempfile.TemporaryFile() for _ in range(64)]\nNone", options);
  EXPECT_EQ(outcome.report.status, Status::kOpenFilesLimit) << outcome.report.message;
  EXPECT_EQ(outcome.report.message,
            "open_files (16) is used up: OSError: [Errno 24] Too many open files: "
            "'/tmp/" +
                outcome.report.message.substr(outcome.report.message.rfind('/') + 1));
  EXPECT_EQ(status("import os\nfds = [os.dup(0) for _ in range(64)]", options),
            Status::kOpenFilesLimit);
  EXPECT_EQ(status("import os, socket\ntry:\n    while 1: os.dup(0)\nexcept OSError: pass\n"
                   "import curses",
                   options),
            Status::kOpenFilesLimit);
}

CallOptions with_processes(rlim_t count) {
  CallOptions options;
  options.limits.process_count = count;
  options.before = [count] {
    // Root is exempt from RLIMIT_NPROC.
    if (::setresgid(61234, 61234, 61234) != 0 || ::setresuid(61234, 61234, 61234) != 0) ::_exit(96);
    const rlimit limit = {count, count};
    ::setrlimit(RLIMIT_NPROC, &limit);
  };
  return options;
}

TEST(PythonClassify, Processes) {
  if (::getuid() != 0) GTEST_SKIP() << "needs a UID of its own";
  const CallOptions options = with_processes(4);
  const Outcome outcome = call(
      "import subprocess\nps = [subprocess.Popen(['sleep', '0.2']) for _ in range(20)]\nlen(ps)",
      options);
  EXPECT_EQ(outcome.report.status, Status::kProcessLimit) << outcome.report.message;
  EXPECT_EQ(outcome.report.message.find("process_count (4) is used up: BlockingIOError"), 0U);
  EXPECT_EQ(status("import os, time\nfor _ in range(20):\n    if os.fork() == 0: time.sleep(.2); "
                   "os._exit(0)",
                   options),
            Status::kProcessLimit);
  EXPECT_EQ(
      status("import threading, time\nfor _ in range(20): threading.Thread(target=time.sleep, "
             "args=(.2,)).start()",
             options),
      Status::kProcessLimit);
  EXPECT_EQ(
      status("import os\nfor _ in range(20): os.posix_spawn('/bin/sleep', ['sleep', '.2'], {})",
             options),
      Status::kProcessLimit);
}

TEST(PythonClassify, OrdinaryEagainIsRuntime) {
  EXPECT_EQ(status("import socket\na, b = socket.socketpair()\na.setblocking(False)\na.recv(1)"),
            Status::kRuntime);
  EXPECT_EQ(status("import os\nr, w = os.pipe()\nos.set_blocking(r, False)\nos.read(r, 1)"),
            Status::kRuntime);
  EXPECT_EQ(
      status(
          "import os\nif 0: os.fork()\nr, w = os.pipe()\nos.set_blocking(r, False)\nos.read(r, 1)"),
      Status::kRuntime);
  EXPECT_EQ(status("open('/no/such')"), Status::kRuntime);
  EXPECT_EQ(status("class E(OSError):\n    errno = property(lambda s: 1/0)\nraise E"),
            Status::kRuntime);
}

// The probe is a child of the call: it must neither stay nor be seen by the code's own wait.
TEST(PythonClassify, ProbeLeavesNoProcess) {
  const Outcome outcome = call(
      "import os, signal, atexit\nseen = []\nsignal.signal(signal.SIGCHLD, lambda *a: "
      "print('SIGCHLD'))\n"
      "def at_end():\n"
      "    try: print(os.waitpid(-1, os.WNOHANG))\n    except ChildProcessError: print('none')\n"
      "atexit.register(at_end)\nraise RuntimeError(\"can't start new thread\")");
  EXPECT_EQ(outcome.out, "none\n");
}

}  // namespace
}  // namespace pyplaypen::python
