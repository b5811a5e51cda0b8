#include "supervisor/way_out.h"

#include <cerrno>
#include <utility>

namespace pyplaypen::supervisor {
namespace {

const char* way_out(int error_number) {
  switch (error_number) {
    case EMFILE:
      return "this process may have no more files open: raise RLIMIT_NOFILE (ulimit -n), or lower "
             "max_concurrency and spares";
    case ENFILE:
      return "the system has no room for more open files: raise fs.file-max, or end something else";
    case EAGAIN:
      return "no more processes may be started here: raise RLIMIT_NPROC (ulimit -u) or the container's limit "
             "on processes, or lower max_concurrency and spares";
    case ENOMEM:
      return "free some memory, or raise the limit on it (ulimit -v, the container's)";
    case ENOSPC:
    case EDQUOT:
      return "free some space there, or name another directory in TMPDIR";
    default:
      return nullptr;
  }
}

std::string joined(std::string sentence, const char* way) {
  return way == nullptr ? std::move(sentence) : sentence + "; " + way;
}

}  // namespace

std::string with_way_out(std::string sentence, int error_number) {
  return joined(std::move(sentence), way_out(error_number));
}

std::string with_way_out_of_tmpdir(std::string sentence, int error_number) {
  switch (error_number) {
    case ENOENT:
    case ENOTDIR:
    case EACCES:
    case EPERM:
    case EROFS:
      return joined(std::move(sentence), "calls run below TMPDIR (else /tmp), which must be there and writable");
    default:
      return with_way_out(std::move(sentence), error_number);
  }
}

}  // namespace pyplaypen::supervisor
