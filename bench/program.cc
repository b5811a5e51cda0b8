#include "bench/program.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <stdexcept>

#include "bench/item.h"
#include "runtime/sys/channel.h"

extern "C" char** environ;

namespace pyplaypen::bench {

pid_t start(const std::vector<std::string>& argv, int input, int output) {
  std::vector<char*> pointers;
  for (const std::string& argument : argv) pointers.push_back(const_cast<char*>(argument.c_str()));
  pointers.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  const auto give = [&](int fd, int as, int flags) {
    if (fd < 0) {
      ::posix_spawn_file_actions_addopen(&actions, as, "/dev/null", flags, 0);
    } else {
      ::posix_spawn_file_actions_adddup2(&actions, fd, as);
    }
  };
  give(input, STDIN_FILENO, O_RDONLY);
  give(output, STDOUT_FILENO, O_WRONLY);
  pid_t pid = 0;
  const int error = ::posix_spawnp(&pid, pointers[0], &actions, nullptr, pointers.data(), environ);
  ::posix_spawn_file_actions_destroy(&actions);
  if (error != 0) throw std::runtime_error(argv[0] + " cannot be started: " + std::strerror(error));
  return pid;
}

int wait_for(pid_t pid) {
  int status = 0;
  while (::waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  return WIFSIGNALED(status) ? -WTERMSIG(status) : WEXITSTATUS(status);
}

double run_time(const std::vector<std::string>& argv) {
  const auto begin = Clock::now();
  const int status = wait_for(start(argv));
  const double time = microseconds_since(begin);
  if (status != 0) throw std::runtime_error(argv[0] + " ended with status " + std::to_string(status));
  return time;
}

bool is_installed(const std::string& program) {
  const char* const path = std::getenv("PATH");
  std::string rest = path == nullptr ? "/usr/bin:/bin" : path;
  for (size_t begin = 0; begin <= rest.size();) {
    const size_t end = std::min(rest.find(':', begin), rest.size());
    if (::access((rest.substr(begin, end - begin) + "/" + program).c_str(), X_OK) == 0) return true;
    begin = end + 1;
  }
  return false;
}

Helper::Helper(const std::vector<std::string>& argv) {
  auto [their_input, our_output] = sys::pipe_pair();
  auto [our_input, their_output] = sys::pipe_pair();
  pid_ = start(argv, their_input.get(), their_output.get());
  to_.reset(::fdopen(our_output.release(), "w"));
  from_.reset(::fdopen(our_input.release(), "r"));
}

Helper::~Helper() {
  to_.reset();  // the end of its input is its end
  wait_for(pid_);
}

std::string Helper::ask(const std::string& line) {
  std::fprintf(to_.get(), "%s\n", line.c_str());
  std::fflush(to_.get());
  char answer[256];
  if (std::fgets(answer, sizeof answer, from_.get()) == nullptr)
    throw std::runtime_error("the helper has ended at '" + line + "'");
  return answer;
}

}  // namespace pyplaypen::bench
