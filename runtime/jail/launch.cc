#include "runtime/jail/launch.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <stdexcept>
#include <string_view>

#include "runtime/jail/landlock.h"
#include "runtime/sys/raw.h"

namespace pyplaypen::jail {
namespace {

using policy::Stage;

constexpr char kShell[] = "/bin/sh";
constexpr std::string_view kDefaultPath = "/bin:/usr/bin";  // confstr(_CS_PATH)

std::vector<std::string> find_candidates(const std::string& name,
                                         const std::vector<std::string>& environment) {
  if (name.empty() || name.find('/') != std::string::npos) return {name};
  constexpr std::string_view kVariable = "PATH=";
  std::string_view path = kDefaultPath;
  const auto entry = std::ranges::find_if(
      environment, [&](const std::string& text) { return text.starts_with(kVariable); });
  if (entry != environment.end()) path = std::string_view(*entry).substr(kVariable.size());
  std::vector<std::string> candidates;
  while (true) {
    const size_t colon = path.find(':');
    const std::string_view directory = path.substr(0, colon);
    candidates.push_back(directory.empty() ? "./" + name : std::string(directory) + "/" + name);
    if (colon == std::string_view::npos) return candidates;
    path.remove_prefix(colon + 1);
  }
}

std::vector<char*> pointers_to(std::vector<std::string>& strings) {
  std::vector<char*> pointers;
  pointers.reserve(strings.size() + 1);
  for (std::string& text : strings) pointers.push_back(text.data());
  pointers.push_back(nullptr);
  return pointers;
}

void refuse_nul(const std::vector<std::string>& strings) {
  for (const std::string& text : strings)
    if (text.find('\0') != std::string::npos)
      throw std::invalid_argument("an argument or environment entry holds a NUL byte");
}

int start_session(const Plan&) noexcept { return ::setsid() < 0 ? errno : 0; }

int set_stdio(const Plan& plan) noexcept {
  for (int fd = 0; fd < 3; ++fd) {
    const int from = plan.stdio[fd];
    if (from < 0) continue;
    // dup2 onto itself would leave the CLOEXEC flag.
    if (from == fd ? ::fcntl(fd, F_SETFD, 0) < 0 : ::dup2(from, fd) < 0) return errno;
  }
  return 0;
}

int change_directory(const Plan& plan) noexcept {
  return plan.directory >= 0 && ::fchdir(plan.directory) != 0 ? errno : 0;
}

int drop_identity(const Plan& plan) noexcept {
  int error = 0;
  if (plan.identity_inside) {
    error = take_identity_inside(*plan.identity_inside);
  } else if (plan.identity) {
    error = drop_root_privileges(plan.identity->uid, plan.identity->gid);
  }
  if (error == 0 && plan.capabilities == Capabilities::kNone && sys::raw::capset_none() != 0) error = errno;
  return error;
}

int set_no_new_privs(const Plan&) noexcept {
  return ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ? errno : 0;
}

int enter_domain(const Plan& plan) noexcept {
  return plan.ruleset >= 0 ? restrict_self(plan.ruleset) : 0;
}

// A kernel's linux_dirent64, man 2 getdents.
constexpr size_t kRecordLengthAt = 16;
constexpr size_t kNameAt = 19;

int close_up_to_limit(int first) noexcept {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return errno;
  for (rlim_t fd = static_cast<rlim_t>(first); fd < limit.rlim_max; ++fd)
    ::close(static_cast<int>(fd));
  return 0;
}

// Walks /proc/self/fd, where it is mounted, with a buffer on the stack.
int close_from_without_close_range(int first) noexcept {
  const int listing = ::open("/proc/self/fd", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (listing < 0) return close_up_to_limit(first);
  alignas(8) char buffer[2048];
  ssize_t got = 0;
  while ((got = sys::raw::getdents64(listing, buffer, sizeof buffer)) > 0) {
    for (ssize_t at = 0; at < got;) {
      unsigned short length = 0;
      std::memcpy(&length, buffer + at + kRecordLengthAt, sizeof length);
      int fd = 0;
      for (const char* c = buffer + at + kNameAt; *c >= '0' && *c <= '9'; ++c)
        fd = fd * 10 + (*c - '0');
      if (fd >= first && fd != listing) ::close(fd);
      at += length;
    }
  }
  const int error = got < 0 ? errno : 0;
  ::close(listing);
  return error;
}

int close_descriptors(const Plan& plan) noexcept {
  return plan.descriptors == Others::kKept ? 0 : close_descriptors_from(3);
}

int reset_signals(const Plan&) noexcept {
  // Ignored dispositions survive an exec; handlers do not. 32 and 33 are libc's own.
  for (int number = 1; number < NSIG; ++number) {
    if (number == SIGKILL || number == SIGSTOP || number == 32 || number == 33) continue;
    struct sigaction action{};
    // A write beyond file_bytes is then told as EFBIG, which a program can report.
    action.sa_handler = number == SIGXFSZ ? SIG_IGN : SIG_DFL;
    if (::sigaction(number, &action, nullptr) != 0) return errno;
  }
  // Here, since a change of UID clears it.
  if (::prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) != 0) return errno;
  sigset_t none;
  sigemptyset(&none);
  return ::sigprocmask(SIG_SETMASK, &none, nullptr) != 0 ? errno : 0;
}

int apply_limits(const Plan& plan) noexcept { return apply_resource_limits(plan.limits); }

int execute_program(const Plan& plan) noexcept {
  return plan.program != nullptr ? plan.program->execute() : 0;
}

constexpr Step kSteps[] = {
    {Stage::kSession, start_session},
    {Stage::kStdio, set_stdio},
    // While still root, so that a directory which only root may enter can be the current one.
    {Stage::kDirectory, change_directory},
    // Stage::kNamespaces is not one of the child's: its parent, the minder, was made inside them.
    {Stage::kIdentity, drop_identity},
    {Stage::kNoNewPrivs, set_no_new_privs},
    // After no_new_privs, without which a process that is not root may not restrict itself.
    {Stage::kLandlock, enter_domain},
    // After the last step that needs a descriptor from the plan.
    {Stage::kDescriptors, close_descriptors},
    {Stage::kSignals, reset_signals},
    // Last: the steps above must not run into them.
    {Stage::kLimits, apply_limits},
    {Stage::kExec, execute_program},
};

bool exists(const char* path) noexcept {
  struct stat found{};
  return ::stat(path, &found) == 0;
}

struct Start {
  const Plan* plan;
  SetupReport report;
};

int child_main(void* argument) {
  auto* const start = static_cast<Start*>(argument);
  start->report = run_steps(*start->plan);
  return 125;
}

}  // namespace

Program::Program(std::vector<std::string> argv, std::vector<std::string> environment)
    : argv_(std::move(argv)), environment_(std::move(environment)) {
  if (argv_.empty()) throw std::invalid_argument("no program given");
  refuse_nul(argv_);
  refuse_nul(environment_);
  candidates_ = find_candidates(argv_[0], environment_);
  argv_pointers_ = pointers_to(argv_);
  environment_pointers_ = pointers_to(environment_);
  shell_argv_ = std::make_unique<char*[]>(argv_pointers_.size() + 1);
  std::copy(argv_pointers_.begin() + 1, argv_pointers_.end(), shell_argv_.get() + 2);
}

int Program::execute_by_shell(const char* path) const noexcept {
  // execve takes char* for the sake of old C; it changes none of them.
  shell_argv_[0] = const_cast<char*>(kShell);
  shell_argv_[1] = const_cast<char*>(path);
  ::execve(kShell, shell_argv_.get(), environment_pointers_.data());
  return errno;
}

int Program::execute() const noexcept {
  bool denied = false;
  int last = ENOENT;
  for (const std::string& path : candidates_) {
    ::execve(path.c_str(), argv_pointers_.data(), environment_pointers_.data());
    last = errno;
    if (last == ENOEXEC) return execute_by_shell(path.c_str());
    if (last == EACCES) {
      // A PATH entry that may not be entered holds no program for this user.
      denied = denied || candidates_.size() == 1 || exists(path.c_str());
      continue;
    }
    // What a PATH entry may be like without ending the search, as in execvp.
    if (last != ENOENT && last != ENOTDIR && last != ESTALE && last != ENODEV && last != ETIMEDOUT)
      return last;
  }
  if (denied) return EACCES;
  return candidates_.size() == 1 ? last : ENOENT;
}

std::span<const Step> steps() { return kSteps; }

SetupReport run_steps(const Plan& plan) noexcept {
  for (const Step& step : kSteps) {
    const int error = plan.fail_at == step.stage ? EIO : step.run(plan);
    if (error != 0) return {step.stage, error};
  }
  return {Stage::kExec, 0};  // there was no program
}

int take_identity_inside(const Identity& identity) noexcept {
  if (sys::raw::setgroups(0, nullptr) != 0) return errno;
  if (sys::raw::setresgid(identity.gid, identity.gid, identity.gid) != 0) return errno;
  return sys::raw::setresuid(identity.uid, identity.uid, identity.uid) == 0 ? 0 : errno;
}

int close_descriptors_from(int first) noexcept {
  if (sys::raw::close_range(static_cast<unsigned>(first), ~0U, 0) == 0) return 0;
  return errno == ENOSYS || errno == EPERM ? close_from_without_close_range(first) : errno;
}

Launch launch(const Plan& plan, int exit_signal) {
  Start start{&plan, {}};
  // While the child runs under another UID on our memory, nobody of that UID may trace it: a change of
  // UID makes the memory undumpable (man 2 ptrace, PTRACE_MODE_ATTACH).
  sys::Child child = sys::start_sharing_memory(child_main, &start, exit_signal);
  if (start.report.error != 0) child.wait();
  return {std::move(child), start.report};
}

}  // namespace pyplaypen::jail
