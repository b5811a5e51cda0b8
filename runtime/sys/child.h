// Owns one child process and its pidfd.
#pragma once

#include <signal.h>
#include <sys/resource.h>
#include <sys/types.h>

#include <cstddef>
#include <memory>
#include <optional>

#include "runtime/sys/unique_fd.h"

namespace pyplaypen::sys {

// How a child ended, as wait4 tells it.
struct ChildExit {
  int status = 0;  // for WIFEXITED and the like, man 2 wait
  rusage usage{};  // of the child and of what it waited for
};

// Kills and reaps the child when destroyed before wait() or try_wait() did. The pid is forgotten at
// the reap, so a reused pid is never hit; nobody else may wait for it. Move-only.
class Child {
 public:
  Child() = default;
  // Takes over an unreaped child; without a pidfd it cannot be polled for, all else works.
  Child(pid_t pid, UniqueFd pidfd) noexcept : pid_(pid), pidfd_(std::move(pidfd)) {}
  Child(Child&& other) noexcept
      : pid_(std::exchange(other.pid_, 0)), pidfd_(std::move(other.pidfd_)) {}
  Child& operator=(Child&& other) noexcept;
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;
  ~Child() { kill_and_reap(); }

  // 0 once reaped.
  [[nodiscard]] pid_t pid() const { return pid_; }
  // Readable when the child has ended; -1 where the kernel gave none.
  [[nodiscard]] int pidfd() const { return pidfd_.get(); }
  explicit operator bool() const { return pid_ != 0; }
  // Gives up the child, unreaped, to a caller that waits for it by other means.
  [[nodiscard]] pid_t release() noexcept {
    pidfd_.reset();
    return std::exchange(pid_, 0);
  }

  // False when there is nobody to take it.
  bool signal(int number) noexcept;
  // Empty while it runs. Throws Error.
  std::optional<ChildExit> try_wait();
  // Blocks. Throws Error.
  ChildExit wait();
  void kill_and_reap() noexcept;

 private:
  std::optional<ChildExit> wait_with(int options);

  pid_t pid_ = 0;
  UniqueFd pidfd_;
};

// Starts a child that shares this process's memory until it execs or exits; the calling thread
// stands still meanwhile (man 2 vfork; 55 us, a fork 215 us). `body` runs on a stack of its own of
// 64 KiB, with every signal blocked: it makes raw system calls only, changes no memory but what it
// was given, and sets its own signal mask. What it returns is its exit status. An `exit_signal` of 0
// keeps the child from the host's SIGCHLD and waitpid(-1). Throws Error when there is no child.
Child start_sharing_memory(int (*body)(void*), void* argument, int exit_signal = SIGCHLD);

// Memory for a child that shares ours: not the caller's own stack, on which a sanitizer marks the gaps
// between a function's variables. Takes no memory before it is used.
class Stack {
 public:
  explicit Stack(size_t size);
  Stack(const Stack&) = delete;
  Stack& operator=(const Stack&) = delete;
  ~Stack();
  [[nodiscard]] void* top() const { return static_cast<char*>(base_) + size_; }

 private:
  size_t size_;
  void* base_;
};

// A child that shares this process's memory and runs beside it, in namespaces of its own if so
// wanted. It has no thread-local storage of its own but that of the thread which started it: while
// either of the two uses any (errno, malloc, most of libc), the other one must not. Its descriptors are
// a copy, its signals all blocked. The host's SIGCHLD and waitpid(-1) never see it.
class SharingChild {
 public:
  SharingChild() = default;
  SharingChild(const SharingChild&) = delete;
  SharingChild& operator=(const SharingChild&) = delete;
  ~SharingChild() { kill_and_reap(); }

  // `flags`: CLONE_NEW*. 0 or errno: then there is none. What `body` returns is its exit status.
  int try_start(int (*body)(void*), void* argument, int flags, size_t stack_size = 65536);

  // 0 once reaped.
  [[nodiscard]] pid_t pid() const { return pid_; }
  // Blocks. Empty where there was none, or somebody else reaped it.
  std::optional<ChildExit> wait();
  void kill_and_reap() noexcept;
  // Waits no more and leaves it its stack: for a process that is about to exit.
  void abandon() noexcept;

 private:
  pid_t pid_ = 0;
  std::unique_ptr<Stack> stack_;
};

}  // namespace pyplaypen::sys
