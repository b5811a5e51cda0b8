// Our own lines on stderr, and bytes on either stream.
#pragma once

#include <string_view>

namespace pyplaypen::cli {

// Writes "pyplaypen: text" to stderr, each line of text as a line of its own, so that they can be told
// from the command's own output.
void say(std::string_view text);

// All of `bytes`, as they are. False when the reader is gone or the write fails: errno.
bool write_all(int fd, std::string_view bytes);

}  // namespace pyplaypen::cli
