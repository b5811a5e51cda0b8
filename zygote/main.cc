// pyplaypen-zygote: started by the library with its channel as descriptor 3 and an empty environment.
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>

#include "zygote/server.h"

int main() {
  constexpr int kChannelFd = 3;
  struct stat info{};
  if (::fstat(kChannelFd, &info) != 0 || !S_ISSOCK(info.st_mode)) {
    std::fputs("pyplaypen-zygote: started by libpyplaypen, not by hand; see pyplaypen --help\n", stderr);
    return 2;
  }
  if (::setsid() < 0 || ::chdir("/") != 0) return 1;
  return pyplaypen::zygote::serve(pyplaypen::sys::UniqueFd(kChannelFd));
}
