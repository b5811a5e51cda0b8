// The numbers that the command exits with, as README and --help give them.
#pragma once

namespace pyplaypen::cli {

inline constexpr int kExitOk = 0;
inline constexpr int kExitErrorResult = 1;   // exec: the code did not end well
inline constexpr int kExitUsage = 2;         // a usage error, or a limit refused
inline constexpr int kExitTimeout = 124;     // run: wall_seconds exceeded
inline constexpr int kExitNotRun = 125;      // the sandbox could not run it at all
inline constexpr int kExitNotExecutable = 126;  // run: found, but it cannot be executed
inline constexpr int kExitNotFound = 127;    // run: no such program
inline constexpr int kExitSignalBase = 128;  // run: this plus the signal that ended the command

}  // namespace pyplaypen::cli
