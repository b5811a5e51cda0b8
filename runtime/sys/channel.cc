#include "runtime/sys/channel.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>

#include <cstring>

#include "runtime/sys/error.h"
#include "runtime/sys/invariant.h"

namespace pyplaypen::sys {
namespace {

constexpr size_t kReadSize = 65536;

union ControlBuffer {
  char bytes[CMSG_SPACE(kMaxFdsPerMessage * sizeof(int))];
  cmsghdr alignment;
};

void take_fds(msghdr& message, std::vector<UniqueFd>& into) {
  for (cmsghdr* c = CMSG_FIRSTHDR(&message); c != nullptr; c = CMSG_NXTHDR(&message, c)) {
    if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS) continue;
    const size_t count = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (size_t i = 0; i < count; ++i) {
      int fd = -1;
      std::memcpy(&fd, CMSG_DATA(c) + i * sizeof(int), sizeof fd);
      into.emplace_back(fd);
    }
  }
}

}  // namespace

std::pair<UniqueFd, UniqueFd> socket_pair() {
  int fds[2];
  check(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), "socketpair");
  return {UniqueFd(fds[0]), UniqueFd(fds[1])};
}

std::pair<UniqueFd, UniqueFd> pipe_pair() {
  int fds[2];
  check(::pipe2(fds, O_CLOEXEC), "pipe2");
  return {UniqueFd(fds[0]), UniqueFd(fds[1])};
}

bool send_all(int socket, std::string_view bytes, std::span<const int> fds) {
  PYPLAYPEN_INVARIANT(fds.size() <= kMaxFdsPerMessage && !bytes.empty());
  ControlBuffer control = {};
  iovec part{};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  if (!fds.empty()) {
    message.msg_control = control.bytes;
    message.msg_controllen = CMSG_SPACE(fds.size_bytes());
    cmsghdr* const c = CMSG_FIRSTHDR(&message);
    c->cmsg_level = SOL_SOCKET;
    c->cmsg_type = SCM_RIGHTS;
    c->cmsg_len = CMSG_LEN(fds.size_bytes());
    std::memcpy(CMSG_DATA(c), fds.data(), fds.size_bytes());
  }
  while (!bytes.empty()) {
    part = {const_cast<char*>(bytes.data()), bytes.size()};
    const ssize_t sent = ::sendmsg(socket, &message, MSG_NOSIGNAL);
    if (sent >= 0) {
      bytes.remove_prefix(static_cast<size_t>(sent));
      message.msg_control = nullptr;
      message.msg_controllen = 0;
    } else if (errno == EPIPE || errno == ECONNRESET) {
      return false;
    } else if (errno == EAGAIN) {
      pollfd writable{socket, POLLOUT, 0};
      if (retry_eintr([&] { return ::poll(&writable, 1, -1); }) < 0) throw_errno("poll");
    } else if (errno != EINTR) {
      throw_errno("sendmsg");
    }
  }
  return true;
}

Received receive(int socket, std::string& into, std::vector<UniqueFd>* fds, bool wait) {
  char buffer[kReadSize];
  iovec part{buffer, sizeof buffer};
  ControlBuffer control;
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  if (fds != nullptr) {
    message.msg_control = control.bytes;
    message.msg_controllen = sizeof control.bytes;
  }
  const ssize_t got = retry_eintr(
      [&] { return ::recvmsg(socket, &message, MSG_CMSG_CLOEXEC | (wait ? 0 : MSG_DONTWAIT)); });
  if (got > 0) {
    into.append(buffer, static_cast<size_t>(got));
    if (fds == nullptr) return Received::kBytes;
    take_fds(message, *fds);
    return (message.msg_flags & MSG_CTRUNC) != 0 ? Received::kFdsLost : Received::kBytes;
  }
  if (got == 0 || errno == ECONNRESET) return Received::kEnd;
  if (errno == EAGAIN) return Received::kWouldBlock;
  throw_errno("recvmsg");
}

Received read_pipe(int fd, std::span<char> buffer, std::string_view& bytes) {
  const ssize_t got = retry_eintr([&] { return ::read(fd, buffer.data(), buffer.size()); });
  if (got > 0) {
    bytes = {buffer.data(), static_cast<size_t>(got)};
    return Received::kBytes;
  }
  if (got == 0) return Received::kEnd;
  if (errno == EAGAIN) return Received::kWouldBlock;
  throw_errno("read", "pipe");
}

void set_nonblocking(int fd) {
  const int flags = check(::fcntl(fd, F_GETFL), "fcntl", "F_GETFL");
  check(::fcntl(fd, F_SETFL, flags | O_NONBLOCK), "fcntl", "F_SETFL");
}

}  // namespace pyplaypen::sys
