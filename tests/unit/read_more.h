// Reads what a pipe has.
#pragma once

#include <string>
#include <string_view>

#include "runtime/sys/channel.h"

namespace pyplaypen::testing {

// One read, appended to `into`.
inline sys::Received read_more(int fd, std::string& into, size_t most = 65536) {
  std::string buffer(most, '\0');
  std::string_view bytes;
  const sys::Received got = sys::read_pipe(fd, buffer, bytes);
  if (got == sys::Received::kBytes) into.append(bytes);
  return got;
}

// To its end, or to where it would wait.
inline sys::Received read_rest(int fd, std::string& into) {
  sys::Received got = sys::Received::kBytes;
  while (got == sys::Received::kBytes) got = read_more(fd, into);
  return got;
}

}  // namespace pyplaypen::testing
