#include "supervisor/zygote_process.h"

#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <vector>

#include "pyplaypen/error.h"
#include "runtime/sys/channel.h"
#include "runtime/sys/error.h"
#include "runtime/sys/raw.h"

namespace pyplaypen::supervisor {
namespace {

constexpr int kChannelFd = 3;
// The zygote gives its keepers 10 s; see zygote/server.cc.
constexpr int kFarewellMilliseconds = 12'000;
constexpr size_t kStackBytes = 64 * 1024;

// What the two children below need; nothing is allocated in them, they share our memory.
struct Launch {
  const char* executable;
  int channel;
  int null_device;
  sigset_t no_signals;
  int error = 0;
  char* inner_stack_top;
};

void close_from(unsigned first) {
  if (sys::raw::close_range(first, ~0U, 0) == 0) return;
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  for (rlim_t fd = first; fd < limit.rlim_cur; ++fd) ::close(static_cast<int>(fd));
}

// Runs in: the zygote's process, before exec, in our memory while we wait.
int exec_zygote(void* argument) {
  Launch& launch = *static_cast<Launch*>(argument);
  struct sigaction by_default{};
  by_default.sa_handler = SIG_DFL;
  for (int signal = 1; signal < NSIG; ++signal) ::sigaction(signal, &by_default, nullptr);
  // The channel may have any number, 0 to 3 among them.
  const int channel = ::fcntl(launch.channel, F_DUPFD, kChannelFd + 1);
  const int null_device = ::fcntl(launch.null_device, F_DUPFD, kChannelFd + 1);
  if (channel < 0 || null_device < 0 || ::dup2(null_device, 0) < 0 || ::dup2(null_device, 1) < 0 ||
      ::dup2(null_device, 2) < 0 || ::dup2(channel, kChannelFd) < 0) {
    launch.error = errno;
    ::_exit(127);
  }
  close_from(kChannelFd + 1);
  ::sigprocmask(SIG_SETMASK, &launch.no_signals, nullptr);
  char name[] = "pyplaypen-zygote";
  char* const argv[] = {name, nullptr};
  char* const envp[] = {nullptr};
  ::execve(launch.executable, argv, envp);
  launch.error = errno;
  ::_exit(127);
}

// Runs in: a child of ours that only has this child. It leaves at once, so that the zygote is nobody's
// but init's: exec gives a process SIGCHLD as its exit signal back (man 2 execve), whatever clone said,
// and a host that waits for its own children must not find ours.
int start_zygote_and_leave(void* argument) {
  Launch& launch = *static_cast<Launch*>(argument);
  const int pid =
      ::clone(exec_zygote, launch.inner_stack_top, CLONE_VM | CLONE_VFORK | SIGCHLD, argument);
  if (pid < 0) launch.error = errno;
  ::_exit(0);
}

class Stacks {
 public:
  Stacks() {
    memory_ = ::mmap(nullptr, 2 * kStackBytes, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
    if (memory_ == MAP_FAILED) sys::throw_errno("mmap");
  }
  ~Stacks() { ::munmap(memory_, 2 * kStackBytes); }
  Stacks(const Stacks&) = delete;
  Stacks& operator=(const Stacks&) = delete;
  char* top(int which) const { return static_cast<char*>(memory_) + (which + 1) * kStackBytes; }

 private:
  void* memory_;
};

void launch_zygote(const char* executable, int channel) {
  const Stacks stacks;
  const sys::UniqueFd null(sys::check(::open("/dev/null", O_RDWR | O_CLOEXEC), "open", "/dev/null"));
  Launch launch{executable, channel, null.get(), {}, 0, stacks.top(1)};
  ::sigemptyset(&launch.no_signals);
  // A handler of the host must not run in a child that shares its memory.
  sigset_t all;
  sigset_t before;
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  const int pid = ::clone(start_zygote_and_leave, stacks.top(0), CLONE_VM | CLONE_VFORK, &launch);
  const int error = pid < 0 ? errno : 0;
  if (pid >= 0) (void)sys::retry_eintr([&] { return ::waitpid(pid, nullptr, __WCLONE); });
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (error != 0) throw sys::Error(error, "clone");
  if (launch.error != 0) throw sys::Error(launch.error, "execve", executable);
}

}  // namespace

std::filesystem::path find_zygote(const std::filesystem::path& wanted) {
  if (!wanted.empty()) return std::filesystem::absolute(wanted);
  std::vector<std::filesystem::path> places;
  std::error_code ignored;
  const auto self = std::filesystem::read_symlink("/proc/self/exe", ignored);
  if (!self.empty())
    places.push_back(self.parent_path().parent_path() / "libexec/pyplaypen/pyplaypen-zygote");
  places.emplace_back(PYPLAYPEN_INSTALLED_ZYGOTE);
  places.emplace_back(PYPLAYPEN_BUILT_ZYGOTE);
  for (const auto& place : places)
    if (::access(place.c_str(), X_OK) == 0) return place;
  std::string sentence = "the executable pyplaypen-zygote is not installed; looked for";
  for (const auto& place : places) sentence += " " + place.string();
  throw Refused(sentence);
}

ZygoteProcess::ZygoteProcess(const std::filesystem::path& executable, const wire::Setup& setup,
                             int base_directory) {
  auto [ours, theirs] = sys::socket_pair();
  channel_ = std::move(ours);
  host_pid_ = ::getpid();
  launch_zygote(executable.c_str(), theirs.get());
  theirs.reset();
  set_up(setup, base_directory);
}

void ZygoteProcess::set_up(const wire::Setup& setup, int base_directory) {
  const std::array fds = {base_directory};
  if (!sys::send_all(channel_.get(), wire::framed(setup), fds))
    throw Refused("the zygote ended before it was set up");
}

ZygoteProcess::~ZygoteProcess() {
  // Our half only: a forked copy of the host that destroys its copy of this must end nothing.
  if (::getpid() != host_pid_) return;
  ::shutdown(channel_.get(), SHUT_WR);
  pollfd ended{channel_.get(), POLLIN, 0};
  while (sys::retry_eintr([&] { return ::poll(&ended, 1, kFarewellMilliseconds); }) > 0) {
    std::string ignored;
    if (sys::receive(channel_.get(), ignored, nullptr, false) == sys::Received::kEnd) return;
  }
}

template <typename Message>
std::optional<Message> ZygoteProcess::receive() {
  for (;;) {
    if (const auto frame = reader_.next()) return wire::message_in<Message>(*frame);
    if (!reader_.error().empty() ||
        sys::receive(channel_.get(), reader_.buffer(), nullptr, true) == sys::Received::kEnd)
      return std::nullopt;
  }
}

wire::Ready ZygoteProcess::start_python(const wire::StartPython& as) {
  std::optional<wire::Ready> ready;
  if (sys::send_all(channel_.get(), wire::framed(as))) ready = receive<wire::Ready>();
  if (!ready) throw Refused("the zygote ended while it started Python; a preloaded module may have ended it");
  if (ready->failure.empty()) return *ready;
  if (ready->extension_failed) throw ExtensionError(ready->failure);
  throw Refused(ready->failure);
}

sys::UniqueFd ZygoteProcess::open_keeper(const wire::OpenKeeper& slot, sys::UniqueFd claim,
                                         const std::vector<int>& entrances) {
  auto [ours, theirs] = sys::socket_pair();
  std::vector<int> fds = {theirs.get()};
  if (claim) fds.push_back(claim.get());
  fds.insert(fds.end(), entrances.begin(), entrances.end());
  if (!sys::send_all(channel_.get(), wire::framed(slot), fds)) throw sys::Error(EPIPE, "sendmsg", "zygote");
  return std::move(ours);
}

bool ZygoteProcess::alive() {
  pollfd state{channel_.get(), POLLIN, 0};
  return ::poll(&state, 1, 0) == 0;  // it never speaks unasked: readable means its end
}

bool ZygoteProcess::close_keeper(uint32_t slot) {
  return sys::send_all(channel_.get(), wire::framed(wire::CloseKeeper{slot})) &&
         receive<wire::Reaped>().has_value();
}

}  // namespace pyplaypen::supervisor
