// Moves one stream of a target out of its pipe: into memory, or to a descriptor as it comes.
#pragma once

#include <poll.h>

#include <memory>
#include <string>
#include <string_view>

#include "runtime/sys/unique_fd.h"
#include "supervisor/output.h"

namespace pyplaypen::supervisor {

// Never blocks, so that a reader who stalls cannot hold up the clock of the call. While a destination
// takes no more, nothing is read, and the target waits. Destroy it after nothing polls it any more.
class OutputPump {
 public:
  // `source` is the read end of a pipe, of which only this side is made non-blocking. `destination` is
  // borrowed; -1: what comes is kept. Throws sys::Error.
  OutputPump(sys::UniqueFd source, Capture capture, int destination);

  // What to wait for before advance(); a descriptor of -1 when there is nothing.
  [[nodiscard]] pollfd interest() const;
  // Moves what can be moved now, at most one buffer of it. False when nothing could be. Throws
  // sys::Error for a pipe that cannot be read.
  bool advance();
  // Ended, and all of it delivered or given up.
  [[nodiscard]] bool done() const { return !source_ && pending_.empty(); }

  // errno of a destination that failed, EPIPE when its reader went away; from then on the target's
  // writes fail as if it wrote there itself. 0: none.
  [[nodiscard]] int delivery_error() const { return delivery_error_; }

  // The last byte was no newline.
  [[nodiscard]] bool mid_line() const { return mid_line_; }

  Output take() { return capture_.take(); }

 private:
  enum class Kind { kFile, kSocket, kBlockingPipe, kNonBlocking };

  void open_destination();
  bool read_some();
  void grow();
  bool write_some();
  ssize_t write_now(std::string_view bytes) const;
  void give_up(int error);

  sys::UniqueFd source_;
  Capture capture_;
  int destination_;
  Kind kind_ = Kind::kFile;
  sys::UniqueFd own_destination_;
  std::unique_ptr<char[]> buffer_;
  std::string_view pending_;  // of buffer_, or of capture_
  bool mid_line_ = false;
  bool grown_ = false;
  int delivery_error_ = 0;
};

}  // namespace pyplaypen::supervisor
