#include "zygote/server.h"

#include <Python.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <iterator>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "runtime/sys/channel.h"
#include "runtime/sys/error.h"
#include "runtime/sys/proc.h"
#include "runtime/sys/raw.h"
#include "runtime/sys/remove_tree.h"
#include "runtime/sys/tree.h"
#include "runtime/wire/codec.h"
#include "zygote/entrance.h"
#include "zygote/interpreter.h"
#include "zygote/keeper.h"

namespace pyplaypen::zygote {
namespace {

// How long keepers get to end their calls and remove their directories after the host has gone.
// Only a call in an uninterruptible sleep needs more than a few ms.
constexpr int kFarewellMilliseconds = 10'000;

class Server {
 public:
  explicit Server(sys::UniqueFd channel) : channel_(std::move(channel)) {
    sigset_t set;
    ::sigemptyset(&set);
    ::sigaddset(&set, SIGCHLD);
    sys::check(::sigprocmask(SIG_BLOCK, &set, nullptr), "sigprocmask");
    child_ended_.reset(
        sys::check(::signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK), "signalfd"));
    // The orphans of a keeper that was killed become ours, to be ended.
    sys::check(::prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0), "prctl", "PR_SET_CHILD_SUBREAPER");
    std::tie(keepers_watch_us_, we_live_) = sys::pipe_pair();
  }

  void run() {
    while (wait_for_event()) {
    }
    farewell();
  }

 private:
  bool wait_for_event() {
    std::array<pollfd, 3> events = {
        {{channel_.get(), POLLIN, 0}, {host_.get(), POLLIN, 0}, {child_ended_.get(), POLLIN, 0}}};
    sys::check(sys::retry_eintr([&] { return ::poll(events.data(), events.size(), -1); }), "poll");
    if (events[2].revents != 0) reap();
    if (events[1].revents != 0) return false;
    return events[0].revents == 0 || serve_supervisor();
  }

  bool serve_supervisor() {
    if (sys::receive(channel_.get(), reader_.buffer(), &fds_, false) == sys::Received::kEnd)
      return false;
    while (const auto frame = reader_.next()) {
      if (auto setup = wire::message_in<wire::Setup>(*frame)) {
        if (fds_.empty()) return false;
        setup_ = std::move(*setup);
        base_lock_ = std::move(fds_.front());
        fds_.clear();
        // A forked copy of the host may hold the channel open after the host's death; its pidfd may
        // not be fooled. Where pidfds are missing, the end of the channel has to do.
        host_.reset(sys::raw::pidfd_open(setup_.host_pid, 0));
      } else if (const auto who = wire::message_in<wire::StartPython>(*frame)) {
        const wire::Ready ready = start_python(setup_, who->uid, who->gid, interpreter_);
        warm_ = ready.failure.empty();
        if (!sys::send_all(channel_.get(), wire::framed(ready))) return false;
      } else if (const auto slot = wire::message_in<wire::OpenKeeper>(*frame)) {
        const size_t before_cgroup = slot->uid ? 2 : 1;
        if (fds_.size() < before_cgroup + slot->cgroup_entrances) {
          fds_.clear();  // we may not have that many; who waits for the keeper sees its channel end
          continue;
        }
        sys::UniqueFd channel = std::move(fds_[0]);
        sys::UniqueFd claim = slot->uid ? std::move(fds_[1]) : sys::UniqueFd();
        const auto cgroup = fds_.begin() + static_cast<std::ptrdiff_t>(before_cgroup);
        const auto end = cgroup + static_cast<std::ptrdiff_t>(slot->cgroup_entrances);
        std::vector<sys::UniqueFd> entrances(std::make_move_iterator(cgroup), std::make_move_iterator(end));
        fds_.erase(fds_.begin(), end);
        open_keeper(*slot, std::move(channel), std::move(claim), std::move(entrances));
      } else if (const auto closed = wire::message_in<wire::CloseKeeper>(*frame)) {
        close_keeper(closed->slot);
        if (!sys::send_all(channel_.get(), wire::framed(wire::Reaped{}))) return false;
      } else {
        return false;  // not our supervisor
      }
    }
    return reader_.error().empty();
  }

  void open_keeper(const wire::OpenKeeper& slot, sys::UniqueFd channel, sys::UniqueFd claim,
                   std::vector<sys::UniqueFd> cgroup) {
    Entrance entrance(setup_, slot);
    if (warm_) PyOS_BeforeFork();
    const pid_t pid = ::fork();
    const int error = errno;
    if (pid == 0) {
      if (warm_) PyOS_AfterFork_Child();
      become_keeper();
      KeeperPlan plan{setup_, slot, std::move(channel), std::move(claim), std::move(cgroup),
                      std::move(keepers_watch_us_), warm_ ? &interpreter_ : nullptr, {}, {}, {}, {}};
      keep(plan, entrance);
    }
    if (warm_) PyOS_AfterFork_Parent();
    if (pid < 0) {
      wire::KeeperReady failed;
      failed.failure = sys::Error(error, "fork").what();
      failed.error_number = error;
      (void)sys::send_all(channel.get(), wire::framed(failed));  // its end tells as much
      return;
    }
    keepers_.emplace(entrance.let_in(pid), slot.slot);
  }

  // Runs in: keeper. Nothing of the zygote's own stays open there.
  void become_keeper() {
    channel_.reset();
    host_.reset();
    child_ended_.reset();
    we_live_.reset();
    base_lock_.reset();
    fds_.clear();
  }

  void reap() {
    signalfd_siginfo ignored;
    while (::read(child_ended_.get(), &ignored, sizeof ignored) > 0) {
    }
    for (;;) {
      int status = 0;
      const pid_t pid = ::waitpid(-1, &status, WNOHANG | __WALL);
      if (pid <= 0) return;
      if (keepers_.erase(pid) > 0) end_orphans();
    }
  }

  // It may be dead, dying or out of order. What it had becomes ours with its death, and only then.
  void close_keeper(uint32_t slot) {
    const auto keeper = std::ranges::find(keepers_, slot, &std::pair<const pid_t, uint32_t>::second);
    if (keeper != keepers_.end()) {
      ::kill(keeper->first, SIGKILL);
      (void)sys::retry_eintr([&] { return ::waitpid(keeper->first, nullptr, __WALL); });
      keepers_.erase(keeper);
    }
    end_orphans();
  }

  // What a keeper that was killed has left behind: our children that are not keepers, to the last. They
  // may be a call's, forking as fast as they die.
  void end_orphans() {
    std::vector<pid_t> keepers;
    for (const auto& [pid, slot] : keepers_) keepers.push_back(pid);
    sys::end_others(keepers);
  }

  void farewell() {
    we_live_.reset();  // every keeper sees the end of it
    while (!keepers_.empty()) {
      pollfd ended{child_ended_.get(), POLLIN, 0};
      if (::poll(&ended, 1, kFarewellMilliseconds) <= 0) break;
      reap();
    }
    for (const auto& [pid, slot] : keepers_) ::kill(pid, SIGKILL);
    keepers_.clear();
    end_orphans();
    if (!setup_.base_directory.empty()) sys::remove_tree(AT_FDCWD, setup_.base_directory);
  }

  sys::UniqueFd channel_;
  sys::UniqueFd host_;
  sys::UniqueFd child_ended_;
  sys::UniqueFd keepers_watch_us_;
  sys::UniqueFd we_live_;
  wire::FrameReader reader_;
  std::vector<sys::UniqueFd> fds_;
  wire::Setup setup_;
  sys::UniqueFd base_lock_;
  Interpreter interpreter_;
  bool warm_ = false;
  std::map<pid_t, uint32_t> keepers_;  // and their slots
};

}  // namespace

int serve(sys::UniqueFd channel) {
  try {
    Server(std::move(channel)).run();
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "pyplaypen-zygote: %s\n", error.what());
    return 1;
  }
}

}  // namespace pyplaypen::zygote
