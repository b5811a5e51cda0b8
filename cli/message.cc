#include "cli/message.h"

#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <string>

namespace pyplaypen::cli {

void say(std::string_view text) {
  std::string lines;
  while (!text.empty()) {
    const size_t end = text.find('\n');
    lines.append("pyplaypen: ").append(text.substr(0, end)).append("\n");
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  }
  (void)write_all(STDERR_FILENO, lines);  // there is nowhere else to say that it failed
}

bool write_all(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(fd, bytes.data(), bytes.size());
    if (written >= 0) {
      bytes.remove_prefix(static_cast<size_t>(written));
    } else if (errno == EAGAIN) {  // somebody we share it with made it non-blocking
      pollfd room{fd, POLLOUT, 0};
      (void)::poll(&room, 1, -1);
    } else if (errno != EINTR) {
      return false;
    }
  }
  return true;
}

}  // namespace pyplaypen::cli
