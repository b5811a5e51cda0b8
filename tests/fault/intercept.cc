#include "tests/fault/intercept.h"

#include <gtest/gtest.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdio>
#include <fstream>

#include "runtime/sys/channel.h"
#include "runtime/sys/error.h"
#include "runtime/sys/raw.h"
#include "runtime/sys/unique_fd.h"
#include "tests/integration/processes.h"
#include "tests/unit/own_process.h"

namespace pyplaypen::testing {
namespace {

constexpr unsigned kHangs = 120;  // s
constexpr char kZygoteName[] = "pyplaypen-zygot";  // as much as the kernel keeps of it

// The listener of a filter that hands over `numbers`; every other call passes.
int install(const std::vector<long>& numbers) {
  std::vector<sock_filter> filter = {
      {BPF_LD | BPF_W | BPF_ABS, 0, 0, static_cast<unsigned>(offsetof(seccomp_data, nr))}};
  for (const long number : numbers) {
    filter.push_back({BPF_JMP | BPF_JEQ | BPF_K, 0, 1, static_cast<unsigned>(number)});
    filter.push_back({BPF_RET | BPF_K, 0, 0, SECCOMP_RET_USER_NOTIF});
  }
  filter.push_back({BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ALLOW});
  const sock_fprog program{static_cast<unsigned short>(filter.size()), filter.data()};
  if (::geteuid() != 0 && ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return -1;
  return static_cast<int>(
      ::syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_NEW_LISTENER, &program));
}

bool is_of_a_zygote(pid_t pid) { return status_field(pid, "Name") == kZygoteName; }

Role role_of(pid_t pid) {
  int depth = 0;
  for (; depth < 4 && is_of_a_zygote(pid); ++depth) {
    const std::string parent = status_field(pid, "PPid");
    if (parent.empty()) break;
    pid = std::stoi(parent);
  }
  return depth == 1 ? Role::kZygote : depth == 2 ? Role::kKeeper : depth == 3 ? Role::kChild : Role::kOther;
}

void answer(int listener, const seccomp_notif& request, const Verdict& verdict) {
  seccomp_notif_resp response{};
  response.id = request.id;
  if (verdict.kind == Verdict::Kind::kKill) {
    // It waits for us, so that its PID is still its own.
    ::kill(static_cast<pid_t>(request.pid), SIGKILL);
    return;
  }
  if (verdict.kind == Verdict::Kind::kFail) {
    response.error = -verdict.error;
  } else {
    response.flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE;
  }
  (void)::ioctl(listener, SECCOMP_IOCTL_NOTIF_SEND, &response);  // who has died meanwhile needs no answer
}

void judge_one(int listener, const std::function<Verdict(const Intercepted&)>& judge) {
  seccomp_notif request{};
  if (::ioctl(listener, SECCOMP_IOCTL_NOTIF_RECV, &request) != 0) return;
  Intercepted call;
  call.pid = static_cast<pid_t>(request.pid);
  call.role = role_of(call.pid);
  call.number = request.data.nr;
  for (int i = 0; i < 6; ++i) call.arguments[i] = request.data.args[i];
  answer(listener, request, judge(call));
}

}  // namespace

std::string cannot_intercept() {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(install({SYS_getppid}) >= 0 ? 0 : 1);
  int status = 1;
  (void)::waitpid(child, &status, 0);
  return status == 0 ? "" : "needs seccomp's user notification";
}

void intercept(const std::vector<long>& numbers, const std::function<Verdict(const Intercepted&)>& judge,
               const std::function<void()>& body) {
  std::fflush(nullptr);
  auto [ours, theirs] = sys::socket_pair();
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    ours.reset();
    ::alarm(kHangs);
    // The listener is handed over by number: sending it could be one of the calls that wait for us.
    const int listener = install(numbers);
    char go = 0;
    if (::write(theirs.get(), &listener, sizeof listener) != sizeof listener || ::read(theirs.get(), &go, 1) != 1)
      ::_exit(2);
    ::close(listener);
    run_and_exit(body);
  }
  theirs.reset();
  const sys::UniqueFd ended(sys::check(sys::raw::pidfd_open(child, 0), "pidfd_open"));
  int number = -1;
  ASSERT_EQ(::read(ours.get(), &number, sizeof number), static_cast<ssize_t>(sizeof number));
  const sys::UniqueFd listener(static_cast<int>(::syscall(SYS_pidfd_getfd, ended.get(), number, 0)));
  ASSERT_TRUE(listener) << "pidfd_getfd";
  ASSERT_EQ(::write(ours.get(), "g", 1), 1);
  // What outlives the child (its zygote, on its way out) is served until nobody has the filter any more.
  int status = 0;
  pollfd fds[] = {{listener.get(), POLLIN, 0}, {ended.get(), POLLIN, 0}};
  while ((fds[0].revents & POLLHUP) == 0) {
    ASSERT_GE(sys::retry_eintr([&] { return ::poll(fds, 2, -1); }), 0);
    if ((fds[0].revents & POLLIN) != 0) judge_one(listener.get(), judge);
    if (fds[1].revents == 0) continue;
    ASSERT_EQ(::waitpid(child, &status, 0), child);  // as a zombie it would have it still
    fds[1].fd = -1;
  }
  if (fds[1].fd >= 0) {
    ASSERT_EQ(::waitpid(child, &status, 0), child);
  }
  EXPECT_EQ(status, 0) << "wait status of the process under intercept";
}

}  // namespace pyplaypen::testing
