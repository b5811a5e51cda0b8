#include "zygote/keeper.h"

#include <Python.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <vector>

#include "runtime/jail/cgroup.h"
#include "runtime/jail/landlock.h"
#include "runtime/jail/launch.h"
#include "runtime/jail/mounts.h"
#include "runtime/policy/features.h"
#include "runtime/python/call_state.h"
#include "runtime/sys/channel.h"
#include "runtime/sys/error.h"
#include "runtime/sys/proc.h"
#include "runtime/sys/raw.h"
#include "runtime/sys/tree.h"
#include "runtime/wire/codec.h"
#include "zygote/child.h"
#include "zygote/leftovers.h"
#include "zygote/oom_order.h"
#include "zygote/place.h"

namespace pyplaypen::zygote {
namespace {

uint64_t microseconds(const timeval& time) {
  return static_cast<uint64_t>(time.tv_sec) * 1'000'000 + static_cast<uint64_t>(time.tv_usec);
}

bool in_user_namespace(const KeeperPlan& plan) { return plan.namespaces.contains(Namespace::kUser); }

// As this process sees it.
std::optional<Owner> owner_of(const KeeperPlan& plan) {
  const wire::OpenKeeper& slot = plan.slot;
  if (!slot.uid) return std::nullopt;
  if (in_user_namespace(plan) && plan.setup.unshare.map_root) return Owner{0, 0};
  return Owner{*slot.uid, slot.gid.value_or(*slot.uid)};
}

// The ends that a call writes to are made its user's, so that it can open /dev/stdout anew.
void give_pipes(const std::optional<Owner>& owner, const sys::UniqueFd& out, const sys::UniqueFd& err) {
  if (!owner) return;
  for (const sys::UniqueFd* pipe : {&out, &err})
    sys::check(::fchown(pipe->get(), owner->uid, owner->gid), "fchown", "pipe");
}

class Keeper {
 public:
  explicit Keeper(const KeeperPlan& plan)
      : plan_(plan),
        place_(plan_.setup.base_directory, std::to_string(plan_.slot.slot), owner_of(plan_)) {
    null_device_.reset(sys::check(::open("/dev/null", O_RDWR | O_CLOEXEC), "open", "/dev/null"));
    become_reaper();
    enter_own_domain();
    // As pid 1, kill(-1) reaches what is in our namespace.
    if (plan_.namespaces.contains(Namespace::kPid)) reach_ = sys::KillAll::kReachesDescendantsOnly;
    child_ruleset_ = child_ruleset({});
    private_environment_ = {{"HOME", place_.home()},
                            {"TMPDIR", place_.tmp()},
                            {"XDG_CACHE_HOME", place_.home()},
                            {"MPLCONFIGDIR", place_.home()},
                            {"MPLBACKEND", "Agg"},
                            {"USER", "sandbox"},
                            {"LOGNAME", "sandbox"}};
    if (plan_.interpreter != nullptr) {
      wire::Environment environment = plan_.setup.environment;
      for (const auto& [name, value] : private_environment_) environment.emplace(name, value);
      if (!python::apply_environment(plan_.interpreter->captured, environment))
        sys::throw_errno("setenv");
      mapped_bytes_ = sys::mapped_bytes();
    }
  }

  void run() {
    wire::KeeperReady ready;
    ready.scoped = reach_ == sys::KillAll::kReachesDescendantsOnly;
    ready.user_namespace = in_user_namespace(plan_);
    ready.workspace = place_.work();
    send(wire::framed(ready));
    while (wait_for_event()) {
    }
    sys::end_tree(leader_, reach_);
    remove_leftovers();
    // Where only the zygote has died, the supervisor may be collecting what a call left; the slot's next
    // keeper takes the directories over.
    if (supervisor_is_gone_) place_.remove();
  }

 private:
  // Orphans of the calls become our children; their ends are read from a descriptor.
  void become_reaper() {
    ::setsid();
    sys::check(::prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0), "prctl", "PR_SET_CHILD_SUBREAPER");
    // Calls of the same user may neither trace us nor read our memory.
    ::prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
    sigset_t set;
    ::sigemptyset(&set);
    ::sigaddset(&set, SIGCHLD);
    sys::check(::sigprocmask(SIG_BLOCK, &set, nullptr), "sigprocmask");
    child_ended_.reset(
        sys::check(::signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK), "signalfd"));
  }

  // With a signal scope, kill(-1) reaches the calls, which inherit the domain, and nothing else.
  void enter_own_domain() {
    const sys::UniqueFd ruleset =
        jail::build_signal_scope(policy::features().landlock_abi, handles_files());
    if (!ruleset) return;
    sys::check(::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), "prctl", "PR_SET_NO_NEW_PRIVS");
    if (const int error = jail::restrict_self(ruleset.get()); error != 0)
      throw sys::Error(error, "landlock_restrict_self");
    reach_ = sys::KillAll::kReachesDescendantsOnly;
  }

  bool handles_files() const {
    const wire::Landlock& asked = plan_.setup.landlock;
    return plan_.setup.confine_writes || asked.read_paths || asked.write_paths || asked.execute_paths;
  }

  // What a call may leave where processes cannot: our namespace's objects, or our user's.
  void remove_leftovers() {
    if (plan_.own_shm) remove_all_shared_files();
    if (plan_.namespaces.contains(Namespace::kIpc)) remove_all_ipc_objects(plan_.message_queues.get());
    if (const auto owner = owner_of(plan_)) remove_ipc_objects(owner->uid);
  }

  // A second domain, inside ours, for each call: it cannot signal or trace its keeper either.
  sys::UniqueFd child_ruleset(const std::vector<std::string>& more_write_paths) const {
    LandlockRuleset child;
    const wire::Landlock& asked = plan_.setup.landlock;
    child.read_paths = asked.read_paths;
    child.write_paths = asked.write_paths;
    child.execute_paths = asked.execute_paths;
    child.bind_tcp_ports = asked.bind_tcp_ports;
    child.connect_tcp_ports = asked.connect_tcp_ports;
    if (child.read_paths) child.read_paths->push_back(place_.path());
    if (plan_.setup.confine_writes && !child.write_paths) child.write_paths.emplace();
    if (child.write_paths) {
      child.write_paths->insert(child.write_paths->end(), {place_.path(), "/dev/null"});
      child.write_paths->insert(child.write_paths->end(), more_write_paths.begin(), more_write_paths.end());
    }
    child.scope_signals = child.scope_abstract_sockets = true;
    child.missing = LandlockMissing::kLeaveOut;  // of the scopes; the supervisor has refused the rest
    return jail::build_ruleset(child, policy::features().landlock_abi);
  }

  // False when the supervisor or the zygote is gone.
  bool wait_for_event() {
    std::array<pollfd, 3> events = {{{plan_.channel.get(), POLLIN, 0},
                                     {plan_.zygote_alive.get(), POLLIN, 0},
                                     {child_ended_.get(), POLLIN, 0}}};
    const bool idle_work = place_.has_trash() && leader_ready_;
    const int ready = sys::retry_eintr(
        [&] { return ::poll(events.data(), events.size(), idle_work ? 0 : -1); });
    sys::check(ready, "poll");
    if (ready == 0) {
      place_.empty_trash([&] { return ::poll(events.data(), events.size(), 0) > 0; });
      return true;
    }
    if (events[1].revents != 0) {
      supervisor_is_gone_ = (events[0].revents & POLLHUP) != 0;
      return false;
    }
    if (events[2].revents != 0) {
      signalfd_siginfo ignored;
      while (::read(child_ended_.get(), &ignored, sizeof ignored) > 0) {
      }
      sys::reap_orphans(leader_);
      tell_of_leader();
    }
    if (events[0].revents == 0 || serve()) return true;
    supervisor_is_gone_ = true;
    return false;
  }

  void tell_of_leader() {
    siginfo_t info{};
    if (leader_ == 0 || leader_has_pidfd_ ||
        ::waitid(P_PID, static_cast<id_t>(leader_), &info, WEXITED | WNOHANG | WNOWAIT) != 0 ||
        info.si_pid != leader_)
      return;
    leader_has_pidfd_ = true;  // once
    send(wire::framed(wire::LeaderEnded{}));
  }

  bool serve() {
    if (sys::receive(plan_.channel.get(), reader_.buffer(), &fds_, false) == sys::Received::kEnd)
      return false;
    while (const auto frame = reader_.next()) {
      if (const auto spawn = wire::message_in<wire::Spawn>(*frame)) {
        spawn_child(*spawn);
      } else if (const auto launch = wire::message_in<wire::Launch>(*frame)) {
        launch_command(*launch);
      } else if (wire::message_in<wire::Reap>(*frame)) {
        reap();
      } else {
        return false;  // not our supervisor
      }
    }
    return reader_.error().empty();
  }

  void spawn_child(const wire::Spawn& spawn) {
    wire::Spawned spawned;
    try {
      place_.prepare();
      auto [ours, theirs] = sys::socket_pair();
      auto [out_read, out_write] = sys::pipe_pair();
      auto [err_read, err_write] = sys::pipe_pair();
      give_pipes(owner_of(plan_), out_write, err_write);
      ChildPlan child;
      child.channel = theirs.get();
      child.null_device = null_device_.get();
      child.stdout_pipe = out_write.get();
      child.stderr_pipe = err_write.get();
      child.work = place_.work_fd();
      child.ruleset = child_ruleset_.get();
      child.drop_to = owner_of(plan_);
      child.in_user_namespace = in_user_namespace(plan_);
      child.count_keeper = child.in_user_namespace && !plan_.slot.uid;
      child.mapped_bytes = mapped_bytes_;
      child.interpreter = plan_.interpreter;
      child.warm_up = spawn.warm_up;
      child.place = &place_;
      child.private_environment = &private_environment_;

      PyOS_BeforeFork();
      oom_order_.first();
      const pid_t pid = ::fork();
      const int fork_error = errno;
      if (pid == 0) {
        ::close(plan_.channel.get());  // first: with a copy here, our death would not show there
        run_child(child);
      }
      oom_order_.not_first();
      PyOS_AfterFork_Parent();
      if (pid < 0) throw sys::Error(fork_error, "fork");
      leader_ = pid;
      leader_ready_ = true;
      announce(pid, ours, out_read, err_read);
    } catch (const sys::Error& error) {
      spawned.error_number = error.code().value();
      spawned.failure = error.what();
      send(wire::framed(spawned));
    }
  }

  void launch_command(const wire::Launch& message) {
    wire::Spawned failed;
    try {
      if (fds_.size() < 2) throw sys::Error(EINVAL, "launch");
      const sys::UniqueFd input = std::move(fds_[0]);
      const sys::UniqueFd directory = std::move(fds_[1]);
      fds_.erase(fds_.begin(), fds_.begin() + 2);
      place_.prepare();
      auto [out_read, out_write] = sys::pipe_pair();
      auto [err_read, err_write] = sys::pipe_pair();
      wire::Environment environment = message.environment;
      for (const auto& [name, value] : private_environment_) environment.emplace(name, value);
      std::vector<std::string> entries;
      for (const auto& [name, value] : environment) entries.push_back(name + "=" + value);
      const jail::Program program(message.argv, std::move(entries));
      sys::UniqueFd own_ruleset;
      if (plan_.setup.confine_writes || plan_.setup.landlock.write_paths) own_ruleset = child_ruleset(message.write_paths);

      jail::Plan plan;
      plan.stdio[0] = input.get();
      plan.stdio[1] = out_write.get();
      plan.stdio[2] = message.merge_output ? out_write.get() : err_write.get();
      plan.directory = directory.get();
      std::optional<jail::Identity> identity;
      if (message.uid && message.gid) {
        identity = jail::Identity{*message.uid, *message.gid};
        place_.hand_over({*message.uid, *message.gid});
        give_pipes(Owner{*message.uid, *message.gid}, out_write, err_write);
      }
      if (in_user_namespace(plan_)) {
        const auto owner = owner_of(plan_);
        if (!identity && owner) identity = jail::Identity{owner->uid, owner->gid};
        plan.identity_inside = identity;
        plan.capabilities = jail::Capabilities::kNone;  // our namespaces outlive the call
      } else {
        plan.identity = identity;
      }
      plan.ruleset = own_ruleset ? own_ruleset.get() : child_ruleset_.get();
      plan.limits = command_limits(message.limits);
      plan.program = &program;
      oom_order_.first();
      jail::Launch launched = jail::launch(plan);
      oom_order_.not_first();
      if (launched.failure.error != 0) {
        failed.stage = launched.failure.stage;
        failed.error_number = launched.failure.error;
        return send(wire::framed(failed));
      }
      leader_ = launched.child.release();
      leader_ready_ = true;
      announce(leader_, sys::UniqueFd(), out_read, err_read);
    } catch (const sys::Error& error) {
      failed.error_number = error.code().value();
      failed.failure = error.what();
      send(wire::framed(failed));
    } catch (const std::exception& error) {
      failed.error_number = EINVAL;
      failed.failure = error.what();
      send(wire::framed(failed));
    }
  }

  ResourceLimits command_limits(const Limits& limits) const {
    ResourceLimits resource;
    resource.cpu_seconds = static_cast<uint64_t>(limits.cpu_seconds);
    resource.memory_bytes = limits.memory_bytes;
    if (plan_.slot.uid || in_user_namespace(plan_))
      resource.process_count = add_to_limit(limits.process_count, plan_.slot.uid ? 0 : 1);
    resource.open_files = limits.open_files;
    resource.file_bytes = add_to_limit(limits.file_bytes, 1);
    return resource;
  }

  void announce(pid_t pid, const sys::UniqueFd& channel, const sys::UniqueFd& out,
                const sys::UniqueFd& err) {
    sys::set_nonblocking(out.get());
    sys::set_nonblocking(err.get());
    wire::Spawned spawned;
    std::vector<int> fds = {out.get(), err.get()};
    if (channel) fds.insert(fds.begin(), channel.get());
    const auto attach = [&fds](const sys::UniqueFd& fd) {
      if (fd) fds.push_back(fd.get());
      return static_cast<bool>(fd);
    };
    const sys::UniqueFd pidfd(sys::raw::pidfd_open(pid, 0));
    spawned.with_pidfd = leader_has_pidfd_ = attach(pidfd);
    const bool is_first = !own_children_;
    if (is_first) own_children_.reset(open_proc("thread-self/children"));  // may be missing
    spawned.pid = plan_.namespaces.contains(Namespace::kPid) ? only_child(own_children_.get()) : pid;
    const std::string number = std::to_string(spawned.pid);
    const sys::UniqueFd tasks(open_proc(number + "/task", O_DIRECTORY));
    const sys::UniqueFd children(
        tasks ? ::openat(tasks.get(), (number + "/children").c_str(), O_RDONLY | O_CLOEXEC) : -1);
    spawned.with_tasks = children && attach(tasks) && attach(children);
    spawned.with_children = is_first && attach(own_children_);
    sys::UniqueFd work;
    if (announced_work_ != place_.work_number()) work = place_.open_work();
    spawned.with_workspace = attach(work);
    announced_work_ = place_.work_number();
    if (!sys::send_all(plan_.channel.get(), wire::framed(spawned), fds)) leader_ready_ = false;
  }

  // Of the supervisor's /proc: one of our own shows other PIDs.
  int open_proc(const std::string& path, int flags = 0) const {
    return ::openat(plan_.proc.get(), path.c_str(), O_RDONLY | O_CLOEXEC | flags);
  }

  // The PID of our only child as the supervisor sees it; where that cannot be told, ours, for which
  // there is no such folder: then nobody looks at its files.
  static pid_t only_child(int children) {
    char text[32] = {};
    const ssize_t got = children < 0 ? -1 : ::pread(children, text, sizeof text - 1, 0);
    const long pid = got > 0 ? std::strtol(text, nullptr, 10) : 0;
    return pid > 0 ? static_cast<pid_t>(pid) : ::getpid();
  }

  void reap() {
    const sys::TreeEnd end = sys::end_tree(leader_, reach_);
    leader_ = 0;
    leader_ready_ = false;
    remove_leftovers();
    wire::Reaped reaped;
    reaped.wait_status = end.leader_status;
    reaped.cpu_microseconds =
        microseconds(end.leader_usage.ru_utime) + microseconds(end.leader_usage.ru_stime);
    reaped.max_rss_bytes = static_cast<uint64_t>(end.leader_usage.ru_maxrss) * 1024;
    reaped.processes = end.processes;
    send(wire::framed(reaped));
  }

  void send(const std::string& frame) {
    // A supervisor that is gone shows as the end of the channel in the next poll.
    (void)sys::send_all(plan_.channel.get(), frame);
  }

  const KeeperPlan& plan_;
  OomOrder oom_order_;  // before we stop being dumpable
  Place place_;
  sys::UniqueFd null_device_;
  sys::UniqueFd own_children_;
  unsigned long announced_work_ = 0;  // Place::work_number(): the first one is 1
  sys::UniqueFd child_ended_;
  sys::UniqueFd child_ruleset_;
  sys::KillAll reach_ = sys::KillAll::kReachesOthers;
  wire::Environment private_environment_;
  uint64_t mapped_bytes_ = 0;
  wire::FrameReader reader_;
  std::vector<sys::UniqueFd> fds_;
  pid_t leader_ = 0;
  bool leader_ready_ = false;
  bool leader_has_pidfd_ = true;
  bool supervisor_is_gone_ = false;
};

}  // namespace

void keep(KeeperPlan& plan, Entrance& entrance) {
  try {
    // First of all, so that everything of the slot is in it; what was touched before stays the zygote's.
    for (const sys::UniqueFd& way_in : plan.cgroup)
      if (const int error = jail::enter_cgroup(way_in.get())) throw sys::Error(error, "write", "cgroup.procs");
    plan.cgroup.clear();
    plan.proc.reset(::open("/proc", O_PATH | O_DIRECTORY | O_CLOEXEC));  // without it, the slow end serves
    plan.namespaces = entrance.enter(plan.interpreter != nullptr);
    // Shared, it would hold what calls of our own user leave there.
    if (plan.namespaces.contains(Namespace::kMount)) plan.own_shm = jail::mount_own_shm() == 0;
    // Without a mount namespace it cannot be had, and queues stay until the slot ends.
    if (plan.namespaces.contains(Namespace::kIpc)) plan.message_queues.reset(jail::open_message_queues());
    Keeper(plan).run();
  } catch (const std::exception& error) {
    wire::KeeperReady failed;
    failed.failure = error.what();
    if (const auto* of_the_system = dynamic_cast<const sys::Error*>(&error))
      failed.error_number = of_the_system->code().value();
    (void)sys::send_all(plan.channel.get(), wire::framed(failed));  // its end tells as much
    ::_exit(1);
  }
  ::_exit(0);
}

}  // namespace pyplaypen::zygote
