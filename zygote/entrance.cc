#include "zygote/entrance.h"

#include <Python.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include <tuple>

#include "runtime/jail/namespaces.h"
#include "runtime/policy/features.h"
#include "runtime/sys/channel.h"
#include "runtime/sys/error.h"

namespace pyplaypen::zygote {
namespace {

// The user of the slot's calls comes first. Root keeps its own place beside it: the keeper makes and
// removes their directories. Calls have no capability with which to become root there.
jail::IdMaps maps_of(const wire::Unshare& unshare, const wire::OpenKeeper& slot) {
  const MapTo to = unshare.map_root ? MapTo::kRoot : MapTo::kSelf;
  if (!slot.uid) return jail::make_maps(to, ::geteuid(), ::getegid());
  const uint32_t gid = slot.gid.value_or(*slot.uid);
  jail::IdMaps maps = jail::make_maps(to, *slot.uid, gid);
  maps.add({unshare.map_root ? *slot.uid : 0, 0}, {unshare.map_root ? gid : 0, 0});
  if (unshare.command_uid && unshare.command_gid)
    maps.add({*unshare.command_uid, *unshare.command_uid}, {*unshare.command_gid, *unshare.command_gid});
  return maps;
}

}  // namespace

Entrance::Entrance(const wire::Setup& setup, const wire::OpenKeeper& slot)
    : setup_(setup), slot_(slot), asked_(Namespaces::from_bits(setup.unshare.namespaces)), wanted_(asked_) {
  // In one of its own, RLIMIT_NPROC counts the slot alone.
  if (!slot.uid && policy::features().user_namespace) wanted_.insert(Namespace::kUser);
  if (wanted_.empty()) return;
  std::tie(from_keeper_, to_zygote_) = sys::pipe_pair();
  std::tie(from_zygote_, to_keeper_) = sys::pipe_pair();
}

Namespaces Entrance::enter(bool warm) {
  if (wanted_.empty()) return {};
  from_keeper_.reset();
  to_keeper_.reset();
  char byte = 1;
  if (::unshare(jail::clone_flags(wanted_)) != 0) {
    if (!asked_.empty()) sys::throw_errno("unshare", to_string(wanted_));
    return {};
  }
  if (wanted_.contains(Namespace::kUser)) {
    sys::check(::write(to_zygote_.get(), &byte, 1), "write", "zygote");
    if (::read(from_zygote_.get(), &byte, 1) != 1 || byte != 1)
      throw sys::Error(EPERM, "write", "uid_map or gid_map of a slot");
  }
  if (wanted_.contains(Namespace::kPid)) fork_again(warm);
  jail::Inside inside;
  inside.namespaces = wanted_;
  inside.hostname = setup_.unshare.hostname;
  inside.proc = setup_.unshare.mount_proc ? ProcMount::kRequired : ProcMount::kNever;
  inside.strictness = Strictness::kStrict;  // the supervisor has tried it
  if (const jail::Settled settled = jail::settle(inside); settled.error != 0)
    throw sys::Error(settled.error, "setting up namespaces", settled.at);
  return wanted_;
}

void Entrance::fork_again(bool warm) {
  if (warm) PyOS_BeforeFork();
  const pid_t keeper = ::fork();
  if (keeper == 0) {
    if (warm) PyOS_AfterFork_Child();
    to_zygote_.reset();
    return;
  }
  if (keeper < 0) sys::throw_errno("fork");
  const bool told = ::write(to_zygote_.get(), &keeper, sizeof keeper) == sizeof keeper;
  ::_exit(told ? 0 : 1);
}

pid_t Entrance::let_in(pid_t first) {
  if (wanted_.empty()) return first;
  to_zygote_.reset();
  from_zygote_.reset();
  char byte = 0;
  if (wanted_.contains(Namespace::kUser)) {
    if (sys::retry_eintr([&] { return ::read(from_keeper_.get(), &byte, 1); }) != 1) return first;
    byte = jail::write_maps(first, maps_of(setup_.unshare, slot_)) == 0 ? 1 : 0;
    (void)!::write(to_keeper_.get(), &byte, 1);  // a keeper that is gone shows elsewhere
  }
  pid_t keeper = 0;
  if (!wanted_.contains(Namespace::kPid) ||
      sys::retry_eintr([&] { return ::read(from_keeper_.get(), &keeper, sizeof keeper); }) != sizeof keeper)
    return first;
  (void)sys::retry_eintr([&] { return ::waitpid(first, nullptr, 0); });
  return keeper;
}

}  // namespace pyplaypen::zygote
