// pyplaypen-bare-fork: the floor. The zygote's own warm interpreter, and nothing of the machinery around
// it: fork, confine, evaluate 1 + 1, answer, exit, reap. One line in, one line out:
//   one           -> "ANSWER_US REAPED_US FAULTS"  from before the fork; page faults of the child
//   rate N MS     -> calls per second of N processes that fork side by side, unconfined, for MS ms
#include <Python.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <new>
#include <string>

#include "bench/item.h"
#include "pyplaypen/privilege.h"
#include "runtime/jail/landlock.h"
#include "runtime/sys/channel.h"
#include "runtime/sys/error.h"
#include "runtime/sys/raw.h"
#include "runtime/sys/remove_tree.h"
#include "zygote/interpreter.h"

namespace pyplaypen::bench {
namespace {

// Beyond those that a Sandbox takes by default.
constexpr uid_t kUid = 165'536;
constexpr gid_t kGid = 65'534;
constexpr int kAnswerFd = 3;

// The steps of a call of execute with the default limits. Runs in: child.
bool confine(int answer, int null_device, int ruleset) {
  ResourceLimits limits;
  limits.cpu_seconds = 25;
  limits.memory_bytes = uint64_t{2} << 30;
  limits.process_count = 16;
  limits.open_files = 256;
  limits.file_bytes = uint64_t{50} << 20;
  if (::setsid() < 0 || ::dup2(null_device, 0) < 0 || ::dup2(null_device, 1) < 0 || ::dup2(null_device, 2) < 0)
    return false;
  if (drop_root_privileges(kUid, kGid) != 0 || ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return false;
  if (ruleset >= 0 && jail::restrict_self(ruleset) != 0) return false;
  if (answer != kAnswerFd && ::dup2(answer, kAnswerFd) < 0) return false;
  return sys::raw::close_range(kAnswerFd + 1, ~0U, 0) == 0 && apply_resource_limits(limits) == 0;
}

// Runs in: child, after PyOS_AfterFork_Child. The answer's bytes; empty: it failed.
std::string evaluate() {
  PyObject* const names = PyModule_GetDict(PyImport_AddModule("__main__"));
  PyObject* const code = Py_CompileString("1 + 1", "<bench>", Py_eval_input);
  PyObject* const value = code == nullptr ? nullptr : PyEval_EvalCode(code, names, names);
  PyObject* const text = value == nullptr ? nullptr : PyObject_Str(value);
  const char* const bytes = text == nullptr ? nullptr : PyUnicode_AsUTF8(text);
  return bytes == nullptr ? "" : bytes;
}

struct Once {
  double answer_us;
  double reaped_us;
  long faults;
};

Once fork_once(int null_device, int ruleset) {
  auto [read_end, write_end] = sys::pipe_pair();
  const auto begin = Clock::now();
  PyOS_BeforeFork();
  const pid_t pid = ::fork();
  if (pid == 0) {
    if (!confine(write_end.get(), null_device, ruleset)) ::_exit(1);
    PyOS_AfterFork_Child();
    const std::string answer = evaluate();
    (void)!::write(kAnswerFd, answer.data(), answer.size());  // a missing answer tells
    ::_exit(0);
  }
  PyOS_AfterFork_Parent();
  sys::check(pid, "fork");
  write_end.reset();
  char answer[16];
  const ssize_t got = ::read(read_end.get(), answer, sizeof answer);
  Once once{};
  once.answer_us = microseconds_since(begin);
  rusage usage{};
  int status = 0;
  sys::check(::wait4(pid, &status, 0, &usage), "wait4");
  once.reaped_us = microseconds_since(begin);
  once.faults = usage.ru_minflt;
  if (got != 1 || answer[0] != '2') throw std::runtime_error("the child did not answer 2");
  return once;
}

void fork_evaluate_and_reap() {
  PyOS_BeforeFork();
  const pid_t pid = ::fork();
  if (pid == 0) {
    PyOS_AfterFork_Child();
    ::_exit(evaluate() == "2" ? 0 : 1);
  }
  PyOS_AfterFork_Parent();
  sys::check(pid, "fork");
  int status = 0;
  sys::check(::waitpid(pid, &status, 0), "waitpid");
  if (status != 0) throw std::runtime_error("the child did not evaluate to 2");
}

double rate(int processes, int milliseconds) {
  void* const memory =
      ::mmap(nullptr, sizeof(std::atomic<long>), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) sys::throw_errno("mmap");
  auto* const count = new (memory) std::atomic<long>(0);
  const auto begin = Clock::now();
  const auto end = begin + std::chrono::milliseconds(milliseconds);
  for (int i = 0; i < processes; ++i) {
    PyOS_BeforeFork();
    const pid_t pid = ::fork();
    if (pid == 0) {
      PyOS_AfterFork_Child();
      while (Clock::now() < end) {
        fork_evaluate_and_reap();
        ++*count;
      }
      ::_exit(0);
    }
    PyOS_AfterFork_Parent();
    sys::check(pid, "fork");
  }
  while (::waitpid(-1, nullptr, 0) > 0) {
  }
  const double seconds = microseconds_since(begin) / 1e6;
  const double calls = static_cast<double>(count->load());
  ::munmap(memory, sizeof(std::atomic<long>));
  return calls / seconds;
}

void start_interpreter(zygote::Interpreter& interpreter, int argc, char** argv) {
  std::string base = "/tmp/pyplaypen-bare-fork.XXXXXX";
  if (::mkdtemp(base.data()) == nullptr) sys::throw_errno("mkdtemp", base);
  sys::check(::chmod(base.c_str(), 0711), "chmod", base);
  wire::Setup setup;
  setup.base_directory = base;
  setup.environment = {{"PATH", "/usr/local/bin:/usr/bin:/bin"}, {"OPENBLAS_NUM_THREADS", "1"},
                       {"OMP_NUM_THREADS", "1"}, {"NUMEXPR_NUM_THREADS", "1"}, {"NUMEXPR_MAX_THREADS", "1"}};
  for (int i = 1; i < argc; ++i) setup.preload.emplace_back(argv[i]);
  std::optional<uid_t> uid;
  std::optional<gid_t> gid;
  if (::geteuid() == 0) {
    uid = kUid;
    gid = kGid;
  }
  const wire::Ready ready = zygote::start_python(setup, uid, gid, interpreter);
  sys::remove_tree(AT_FDCWD, base);
  if (!ready.failure.empty()) throw std::runtime_error(ready.failure);
}

int serve(int argc, char** argv) {
  // The interpreter takes the standard streams.
  const sys::UniqueFd input(sys::check(::fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 10), "fcntl"));
  const sys::UniqueFd output(sys::check(::fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 10), "fcntl"));
  const sys::UniqueFd null(sys::check(::open("/dev/null", O_RDWR | O_CLOEXEC), "open", "/dev/null"));
  zygote::Interpreter interpreter;
  start_interpreter(interpreter, argc, argv);
  const sys::UniqueFd ruleset = jail::build_signal_scope(landlock_abi(), false);
  std::FILE* const lines = ::fdopen(input.get(), "r");
  char line[64];
  while (std::fgets(line, sizeof line, lines) != nullptr) {
    int processes = 0;
    int milliseconds = 0;
    if (std::sscanf(line, "rate %d %d", &processes, &milliseconds) == 2) {
      ::dprintf(output.get(), "%.1f\n", rate(processes, milliseconds));
    } else {
      const Once once = fork_once(null.get(), ruleset.get());
      ::dprintf(output.get(), "%.1f %.1f %ld\n", once.answer_us, once.reaped_us, once.faults);
    }
  }
  return 0;
}

}  // namespace
}  // namespace pyplaypen::bench

int main(int argc, char** argv) {
  const int error_stream = ::fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 10);
  try {
    return pyplaypen::bench::serve(argc, argv);
  } catch (const std::exception& error) {
    ::dprintf(error_stream, "pyplaypen-bare-fork: %s\n", error.what());
    return 1;
  }
}
