// Other programs, started and waited for as a shell does it.
#pragma once

#include <sys/types.h>

#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "runtime/sys/unique_fd.h"

namespace pyplaypen::bench {

// By posix_spawn, whose price does not grow with this process. `input` and `output` become 0 and 1; -1:
// /dev/null. Throws std::runtime_error.
pid_t start(const std::vector<std::string>& argv, int input = -1, int output = -1);

// Its exit status; minus the signal that ended it.
int wait_for(pid_t pid);

// From the start to the reap, us. Throws std::runtime_error unless it exits with 0.
double run_time(const std::vector<std::string>& argv);

bool is_installed(const std::string& program);  // along PATH

// A program that answers each line with a line.
class Helper {
 public:
  explicit Helper(const std::vector<std::string>& argv);
  ~Helper();
  Helper(const Helper&) = delete;
  Helper& operator=(const Helper&) = delete;

  // Throws std::runtime_error when it has ended.
  std::string ask(const std::string& line);

 private:
  struct CloseFile {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };
  pid_t pid_ = -1;
  std::unique_ptr<std::FILE, CloseFile> to_;
  std::unique_ptr<std::FILE, CloseFile> from_;
};

}  // namespace pyplaypen::bench
