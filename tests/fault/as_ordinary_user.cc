// Runs a command without root's rights, where it has them:
//
//   as_ordinary_user COMMAND [ARGUMENT]...
//
// Exit status 77 where that user may not go to the command, 125 when it fails otherwise; else the command's
// own.
#include <grp.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

int main(int argc, char** argv) {
  constexpr int kFailed = 125;
  constexpr int kSkipped = 77;
  constexpr uid_t kUser = 54321;  // nobody's: nothing else of the machine belongs to it
  if (argc < 2) {
    std::fprintf(stderr, "usage: as_ordinary_user COMMAND [ARGUMENT]...\n");
    return kFailed;
  }
  if (::geteuid() == 0 && (::setgroups(0, nullptr) != 0 || ::setresgid(kUser, kUser, kUser) != 0 ||
                           ::setresuid(kUser, kUser, kUser) != 0)) {
    std::fprintf(stderr, "as_ordinary_user: %s\n", std::strerror(errno));
    return kFailed;
  }
  if (::access(argv[1], X_OK) != 0 && errno == EACCES) {
    std::printf("skipped: an ordinary user may not go where %s lies\n", argv[1]);
    return kSkipped;
  }
  ::execvp(argv[1], argv + 1);
  std::fprintf(stderr, "as_ordinary_user: %s: %s\n", argv[1], std::strerror(errno));
  return kFailed;
}
