#include "zygote/leftovers.h"

#include <fcntl.h>
#include <sys/ipc.h>
#include <sys/msg.h>
#include <sys/sem.h>
#include <sys/shm.h>
#include <sys/stat.h>
#include <unistd.h>

#include <optional>
#include <string>
#include <vector>

#include "runtime/sys/child.h"
#include "runtime/sys/directory.h"
#include "runtime/sys/raw.h"
#include "runtime/sys/remove_tree.h"
#include "runtime/sys/unique_fd.h"

namespace pyplaypen::zygote {
namespace {

void remove_files(int directory, std::optional<uid_t> owner) {
  std::vector<std::string> names;
  sys::DirectoryReader reader(directory);
  while (const auto entry = reader.next()) {
    struct stat info{};
    const std::string name(entry->name);
    if (::fstatat(directory, name.c_str(), &info, AT_SYMLINK_NOFOLLOW) == 0 && (!owner || info.st_uid == *owner))
      names.push_back(name);
  }
  for (const std::string& name : names) sys::remove_tree(directory, name);
}

void remove_files(const char* path, std::optional<uid_t> owner) {
  const sys::UniqueFd directory(::open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (directory) remove_files(directory.get(), owner);
}

bool is_of(const ipc_perm& object, std::optional<uid_t> owner) {
  return !owner || object.uid == *owner || object.cuid == *owner;
}

// man 2 semctl leaves its definition to the caller.
union SemaphoreArgument {
  int value;
  semid_ds* buffer;
  seminfo* info;
};

// The *_INFO calls return the highest index in use, the *_STAT_ANY calls the identifier behind an index,
// whatever the object's mode (Linux 4.17). Each of these three is false when an object stays.
bool remove_shared_memory(std::optional<uid_t> owner) {
  shm_info info{};
  const int highest = ::shmctl(0, SHM_INFO, reinterpret_cast<shmid_ds*>(&info));
  bool all = true;
  for (int i = 0; i <= highest && info.used_ids > 0; ++i) {
    shmid_ds object{};
    const int id = ::shmctl(i, SHM_STAT_ANY, &object);
    if (id >= 0 && is_of(object.shm_perm, owner))
      all = ::shmctl(id, IPC_RMID, nullptr) == 0 && all;
  }
  return all;
}

bool remove_semaphores(std::optional<uid_t> owner) {
  seminfo info{};
  SemaphoreArgument argument{};
  argument.info = &info;
  const int highest = ::semctl(0, 0, SEM_INFO, argument);
  bool all = true;
  for (int i = 0; i <= highest && info.semusz > 0; ++i) {
    semid_ds object{};
    argument.buffer = &object;
    const int id = ::semctl(i, 0, SEM_STAT_ANY, argument);
    if (id >= 0 && is_of(object.sem_perm, owner))
      all = ::semctl(id, 0, IPC_RMID) == 0 && all;
  }
  return all;
}

bool remove_queues(std::optional<uid_t> owner) {
  msginfo info{};
  const int highest = ::msgctl(0, MSG_INFO, reinterpret_cast<msqid_ds*>(&info));
  bool all = true;
  for (int i = 0; i <= highest && info.msgpool > 0; ++i) {
    msqid_ds object{};
    const int id = ::msgctl(i, MSG_STAT_ANY, &object);
    if (id >= 0 && is_of(object.msg_perm, owner))
      all = ::msgctl(id, IPC_RMID, nullptr) == 0 && all;
  }
  return all;
}

bool remove_system_v_objects(std::optional<uid_t> owner) {
  const bool memory = remove_shared_memory(owner);
  const bool semaphores = remove_semaphores(owner);
  return remove_queues(owner) && memory && semaphores;
}

// Root may do it with CAP_SYS_ADMIN only, which containers do not give; the owner may always. Runs in: a
// child that shares our memory, so that nothing of our own identity changes.
int remove_as_owner(void* argument) {
  const uid_t owner = *static_cast<const uid_t*>(argument);
  constexpr auto kUnchanged = static_cast<uid_t>(-1);
  if (sys::raw::setresuid(kUnchanged, owner, kUnchanged) != 0) return 1;
  return remove_system_v_objects(owner) ? 0 : 1;
}

}  // namespace

void remove_ipc_objects(uid_t owner) {
  remove_files("/dev/shm", owner);
  remove_files("/dev/mqueue", owner);
  if (!remove_system_v_objects(owner)) (void)sys::start_sharing_memory(remove_as_owner, &owner).wait();
}

void remove_all_shared_files() { remove_files("/dev/shm", std::nullopt); }

void remove_all_ipc_objects(int message_queues) {
  const sys::UniqueFd directory(::openat(message_queues, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (directory) remove_files(directory.get(), std::nullopt);  // reading moved the one that was given
  (void)remove_system_v_objects(std::nullopt);  // as its own namespace's root: nothing bars it
}

}  // namespace pyplaypen::zygote
