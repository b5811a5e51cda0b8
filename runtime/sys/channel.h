// Bytes and descriptors over a connected AF_UNIX stream socket.
#pragma once

#include <chrono>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/sys/unique_fd.h"

namespace pyplaypen::sys {

// Both ends CLOEXEC. Throws Error.
std::pair<UniqueFd, UniqueFd> socket_pair();
std::pair<UniqueFd, UniqueFd> pipe_pair();  // {read end, write end}

// At most this many descriptors ride on one message; the kernel takes 253 (SCM_MAX_FD).
inline constexpr size_t kMaxFdsPerMessage = 16;

// Sends all of `bytes`, with `fds` on the first byte. Blocks while the peer's buffer is full. False
// when the peer is gone; throws Error for anything else. Never raises SIGPIPE.
bool send_all(int socket, std::string_view bytes, std::span<const int> fds = {});

enum class Received {
  kBytes,
  kFdsLost,  // bytes, but this process may not have as many descriptors as came with them
  kWouldBlock,
  kEnd,
};

// One recvmsg into `into`, appended; received descriptors are appended to `fds`, or closed by the
// kernel where `fds` is null. A reset connection is an end like any other.
Received receive(int socket, std::string& into, std::vector<UniqueFd>* fds, bool wait);

// One read of a non-blocking pipe into `buffer`; `bytes` is what was read.
Received read_pipe(int fd, std::span<char> buffer, std::string_view& bytes);

void set_nonblocking(int fd);

}  // namespace pyplaypen::sys
