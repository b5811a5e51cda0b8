// Starts a program as a confined child: a Plan made before the fork, then a table of steps in the child.
#pragma once

#include <signal.h>
#include <sys/types.h>

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "pyplaypen/privilege.h"
#include "runtime/policy/stage.h"
#include "runtime/sys/child.h"

namespace pyplaypen::jail {

// An argv with everything that execve needs laid out, so that the child has nothing to allocate.
// Move-only; the arrays stay where they are when it moves.
class Program {
 public:
  // A first argument without a slash is looked for along the PATH of `environment` ("NAME=value" each),
  // as man 3 execvp does. Throws std::invalid_argument for an empty argv or a NUL byte in a string.
  Program(std::vector<std::string> argv, std::vector<std::string> environment);
  Program(Program&&) noexcept = default;
  Program& operator=(Program&&) noexcept = default;

  // Tries the candidates in order; returns only with the errno to tell. A file that the kernel does not
  // know how to run (ENOEXEC: a script without #!) is given to /bin/sh, as shells, execvp and timeout do.
  // Runs in: the child.
  int execute() const noexcept;

 private:
  int execute_by_shell(const char* path) const noexcept;

  std::vector<std::string> argv_;
  std::vector<std::string> environment_;
  std::vector<std::string> candidates_;
  std::vector<char*> argv_pointers_;
  std::vector<char*> environment_pointers_;
  // /bin/sh, the path (filled in by the child that needs it), the arguments.
  std::unique_ptr<char*[]> shell_argv_;
};

struct Identity {
  uid_t uid;
  gid_t gid;
};

enum class Capabilities { kKept, kNone };  // what `identity` leaves has none anyway
enum class Others { kClosed, kKept };      // descriptors beyond stdio

// What the child does, decided before the fork. Descriptors are borrowed; those given as stdio are 3
// or higher, or stand in their place already.
struct Plan {
  int stdio[3] = {-1, -1, -1};       // become 0, 1, 2; -1: left as inherited
  int directory = -1;                // becomes the current directory; -1: left
  std::optional<Identity> identity;  // given up to when root; absent: UID and GIDs are kept
  // Inside a user namespace: the IDs as they are there. Given up to instead of `identity`, whose
  // "when root" means the host's.
  std::optional<Identity> identity_inside;
  Capabilities capabilities = Capabilities::kKept;
  int ruleset = -1;                  // from build_ruleset; -1: none
  Others descriptors = Others::kClosed;
  ResourceLimits limits;
  const Program* program = nullptr;  // null: there is no last step, the child goes on by itself
  std::optional<policy::Stage> fail_at;  // tests: this stage fails with EIO
};

// The step that failed, and its errno; 0: none did.
struct SetupReport {
  policy::Stage stage = policy::Stage::kSession;
  int error = 0;
};

using StepFunction = int (*)(const Plan&) noexcept;

struct Step {
  policy::Stage stage;
  StepFunction run;  // 0 or errno; async-signal-safe, no allocation
};

// The steps in the order of run_steps().
std::span<const Step> steps();

// Goes through the steps, the last of which is the execve: returns only when one of them fails, or
// when there is no program (error 0). Runs in: the child. A caller that forks by itself carries the
// report to its parent over a CLOEXEC pipe.
SetupReport run_steps(const Plan& plan) noexcept;

// Becomes `identity`, in all three UIDs and GIDs and without other groups. For a process in a user
// namespace that maps it, with the capabilities there; it keeps those. 0 or errno.
int take_identity_inside(const Identity& identity) noexcept;

// Closes every descriptor from `first` on, on kernels without close_range too. 0 or errno.
int close_descriptors_from(int first) noexcept;

struct Launch {
  sys::Child child;     // empty when a step failed: it is reaped already
  SetupReport failure;  // error 0: the program runs
};

// Starts the child with start_sharing_memory(), so that the report needs no pipe: the child leaves it
// in this process's memory. The program also dies when the calling thread does (its descendants do
// not: PR_SET_PDEATHSIG is not inherited). no_new_privs is always set: setuid programs such as sudo or
// ping gain no rights. Throws sys::Error when there is no child.
Launch launch(const Plan& plan, int exit_signal = SIGCHLD);

}  // namespace pyplaypen::jail
