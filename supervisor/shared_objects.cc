#include "supervisor/shared_objects.h"

#include <sys/ipc.h>
#include <sys/msg.h>
#include <sys/sem.h>
#include <sys/shm.h>
#include <sys/stat.h>

#include <atomic>
#include <ctime>

namespace pyplaypen::supervisor {
namespace {

constexpr int64_t kNanoseconds = 1'000'000'000;

// A time that is not over yet (clocks go by ticks, in which more may follow) tells nothing.
int64_t files_changed() {
  static std::atomic<int64_t> unequal{-1};
  struct stat info{};
  timespec now{};
  if (::stat("/dev/shm", &info) != 0 || ::clock_gettime(CLOCK_REALTIME_COARSE, &now) != 0) return --unequal;
  const int64_t changed = info.st_ctim.tv_sec * kNanoseconds + info.st_ctim.tv_nsec;
  return changed < now.tv_sec * kNanoseconds + now.tv_nsec ? changed : --unequal;
}

}  // namespace

// man 2 shmctl, semctl, msgctl: the *_INFO calls count what there is. A kernel or a filter without them
// has no such objects either.
SharedObjects shared_objects() {
  SharedObjects objects;
  objects.files_changed = files_changed();
  shm_info segments{};
  if (::shmctl(0, SHM_INFO, reinterpret_cast<shmid_ds*>(&segments)) >= 0) objects.segments = segments.used_ids;
  seminfo sets{};
  if (::semctl(0, 0, SEM_INFO, &sets) >= 0) objects.semaphore_sets = sets.semusz;
  msginfo queues{};
  if (::msgctl(0, MSG_INFO, reinterpret_cast<msqid_ds*>(&queues)) >= 0) objects.message_queues = queues.msgpool;
  return objects;
}

}  // namespace pyplaypen::supervisor
