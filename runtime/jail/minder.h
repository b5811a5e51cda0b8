// One process between the caller and what it isolates: made inside the namespaces, parent and reaper
// of everything in there, and the end of all of it.
#pragma once

#include <sys/resource.h>
#include <sys/types.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "pyplaypen/namespaces.h"
#include "runtime/jail/launch.h"
#include "runtime/jail/namespaces.h"
#include "runtime/sys/child.h"
#include "runtime/sys/unique_fd.h"

namespace pyplaypen::jail {

struct MinderPlan {
  Inside inside;
  IdMaps maps;  // with kUser
  // A process of the caller's copied by fork(3), as it stands, runs this once all steps of `payload`
  // have been gone through; what it returns is its exit status. Absent: payload.program is executed.
  // memory_bytes is then counted on top of what the caller has mapped.
  std::function<int()> callable;
  Plan payload;
  std::vector<int> not_for_callable;  // descriptors that the copy closes
  // From build_signal_scope: keeps the minder's own signals off everybody else. -1: none; then, and
  // without a pid namespace, its descendants are looked up in /proc.
  int signal_scope = -1;
};

// How an escaped exception of the callable is told.
struct Escaped {
  int error_number = 0;  // of a std::system_error
  std::string message;
};

struct MinderEnd {
  std::optional<int> status;        // man 2 wait; of the payload. Absent: it was killed with its tree
  rusage usage{};                   // of the payload and what it waited for
  rusage all{};                     // of everything that was started
  SetupReport failure;              // of a callable's steps; error 0: none
  std::optional<Escaped> escaped;
};

class Minder {
 public:
  // Starts the minder and the payload; with a failure() there is neither. Throws sys::Error.
  explicit Minder(const MinderPlan& plan);
  // Kills whatever is left, and waits for that.
  ~Minder();
  Minder(const Minder&) = delete;
  Minder& operator=(const Minder&) = delete;

  // These namespaces together are not to be had (the errno is failure's).
  [[nodiscard]] bool refused() const;
  // The step that failed; kNamespaces: one of its parts, see failed_at(). error 0: it runs.
  [[nodiscard]] SetupReport failure() const;
  [[nodiscard]] std::string failed_at() const;
  [[nodiscard]] Gaps gaps() const;

  // Readable once the payload has ended and nothing of its tree is alive, or soon will be: wait() then.
  [[nodiscard]] int fd() const { return control_.get(); }
  // Sends it to the payload's process group, or to the payload alone where it has left that.
  void pass_on(int signal);
  // Has the tree killed. Does not wait.
  void stop();
  // Blocks until nothing is alive.
  MinderEnd wait();
  // The same, but the minder itself may still be on its way out: to tear down its namespaces takes as
  // long as a small program runs. Leaves its memory behind: for a process that is about to exit.
  MinderEnd leave();

  struct Shared;

 private:
  void refuse(int error, const char* what);
  MinderEnd end() const;

  std::unique_ptr<Shared> shared_;
  sys::UniqueFd control_;
  sys::SharingChild child_;
};

}  // namespace pyplaypen::jail
