// pyplaypen-zygote: started by the library with its channel as descriptor 3 and an empty environment.
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>

#include "runtime/sys/huge_text.h"
#include "zygote/oom_order.h"
#include "zygote/server.h"

int main() {
  constexpr int kChannelFd = 3;
  struct stat info{};
  if (::fstat(kChannelFd, &info) != 0 || !S_ISSOCK(info.st_mode)) {
    std::fputs("pyplaypen-zygote: started by libpyplaypen, not by hand; see pyplaypen --help\n", stderr);
    return 2;
  }
  // A soft limit is for programs that use select(); many slots need many descriptors.
  rlimit files{};
  if (::getrlimit(RLIMIT_NOFILE, &files) == 0) {
    files.rlim_cur = files.rlim_max;
    (void)::setrlimit(RLIMIT_NOFILE, &files);  // the soft one has to do then
  }
  pyplaypen::zygote::come_after_calls();
  (void)pyplaypen::sys::put_text_on_huge_pages();  // or not, and be slower
  if (::setsid() < 0 || ::chdir("/") != 0) return 1;
  return pyplaypen::zygote::serve(pyplaypen::sys::UniqueFd(kChannelFd));
}
