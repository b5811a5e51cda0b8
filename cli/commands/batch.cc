#include "cli/commands/batch.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <list>
#include <map>
#include <vector>

#include "cli/batch_request.h"
#include "cli/exit_codes.h"
#include "cli/message.h"
#include "cli/options.h"
#include "cli/sandbox_flags.h"

namespace pyplaypen::cli {
namespace {

using Clock = std::chrono::steady_clock;

constexpr size_t kMaxLine = size_t{64} << 20;
constexpr std::chrono::milliseconds kProgressEvery{500};
constexpr int kExitInterrupted = 128 + SIGINT;

struct BatchFlags {
  SandboxFlags sandbox;
  std::string file = "-";
  int jobs = 1;
  bool ordered = false;
};

// Lines of a descriptor, as they come.
class LineReader {
 public:
  explicit LineReader(int fd) : fd_(fd) {}

  int fd() const { return fd_; }
  bool at_end() const { return at_end_ && buffer_.size() == start_; }
  uint64_t number() const { return number_; }  // of the line that next() gave last
  int error() const { return error_; }         // errno, where the input ended by one; 0: it did not

  // One read; call when poll says that there is something.
  void fill() {
    searched_ -= std::min(searched_, start_);
    buffer_.erase(0, std::exchange(start_, 0));
    char chunk[65536];
    const ssize_t got = ::read(fd_, chunk, sizeof chunk);
    if (got > 0) {
      buffer_.append(chunk, static_cast<size_t>(got));
    } else if (got == 0 || (errno != EINTR && errno != EAGAIN)) {
      at_end_ = true;
      error_ = got == 0 ? 0 : errno;
    }
  }

  // False when no whole line is there yet. A line beyond kMaxLine comes cut: it is no JSON then.
  bool next(std::string& line) {
    const size_t end = buffer_.find('\n', std::max(start_, searched_));
    if (end == std::string::npos) {
      searched_ = buffer_.size();
      if (buffer_.size() - start_ > kMaxLine) {
        buffer_.resize(start_ + kMaxLine / 2);  // the rest of it goes as it comes
        searched_ = buffer_.size();
      }
      if (!at_end_ || start_ == buffer_.size()) return false;
    }
    line.assign(buffer_, start_, end == std::string::npos ? end : end - start_);
    start_ = end == std::string::npos ? buffer_.size() : end + 1;
    searched_ = 0;
    ++number_;
    return true;
  }

 private:
  int fd_;
  std::string buffer_;
  size_t start_ = 0;
  size_t searched_ = 0;
  uint64_t number_ = 0;
  bool at_end_ = false;
  int error_ = 0;
};

class Batch {
 public:
  Batch(const BatchFlags& flags, Sandbox& sandbox, const Context& context, const Limits& limits, int input,
        int signals)
      : flags_(flags),
        sandbox_(sandbox),
        context_(context),
        limits_(limits),
        lines_(input),
        signals_(signals),
        // With --ordered, answers wait for a slow one before them; this many at the most.
        most_waiting_(static_cast<size_t>(flags.jobs) * 16 + 64) {}

  int run() {
    while (!finished()) {
      start_calls();
      if (finished()) break;
      wait();
      collect();
      show_progress();
    }
    clear_progress();
    if (lines_.error() != 0) say("the input cannot be read: " + std::string(std::strerror(lines_.error())));
    summarize();
    if (write_failed_ || lines_.error() != 0) return kExitNotRun;
    return interrupted_ ? kExitInterrupted : kExitOk;
  }

 private:
  struct Running {
    uint64_t order;
    std::string id_json;
    Call call;
  };

  bool finished() const {
    return running_.empty() && (interrupted_ || write_failed_ || lines_.at_end());
  }

  bool may_start() const {
    return !interrupted_ && !write_failed_ && running_.size() < static_cast<size_t>(flags_.jobs) &&
           waiting_.size() < most_waiting_;
  }

  void start_calls() {
    std::string line;
    while (may_start() && lines_.next(line)) {
      if (line.find_first_not_of(" \t\r") == std::string::npos) continue;
      start_call(parse_batch_line(line, lines_.number(), context_, limits_));
    }
  }

  void start_call(BatchRequest request) {
    const uint64_t order = started_++;
    if (!request.refusal) {
      try {
        Call call = sandbox_.start(request.code, request.context, request.limits);
        running_.push_back({order, request.id_json, std::move(call)});
        return;
      } catch (const std::exception& error) {
        request.refusal.emplace();
        request.refusal->type = ErrorType::kInternal;
        request.refusal->message = error.what();
      }
    }
    Result result;
    result.error = std::move(request.refusal);
    answer(order, request.id_json, result);
  }

  void wait() {
    fds_.clear();
    fds_.push_back({signals_, POLLIN, 0});
    fds_.push_back({may_start() && !lines_.at_end() ? lines_.fd() : -1, POLLIN, 0});
    for (Running& running : running_) fds_.push_back({running.call.fd(), POLLIN, 0});
    const int timeout = ::isatty(STDERR_FILENO) ? static_cast<int>(kProgressEvery.count()) : -1;
    if (::poll(fds_.data(), fds_.size(), timeout) < 0 && errno != EINTR) throw std::runtime_error("poll failed");
    if ((fds_[0].revents & POLLIN) != 0) interrupt();
    if (fds_[1].revents != 0) lines_.fill();
  }

  void interrupt() {
    signalfd_siginfo ignored;
    (void)!::read(signals_, &ignored, sizeof ignored);
    interrupted_ = true;
    for (Running& running : running_) running.call.cancel();
  }

  void collect() {
    for (auto at = running_.begin(); at != running_.end();) {
      if (!at->call.advance()) {
        ++at;
        continue;
      }
      answer(at->order, at->id_json, at->call.result());
      at = running_.erase(at);
    }
  }

  void answer(uint64_t order, const std::string& id_json, const Result& result) {
    ++done_;
    if (!result.ok()) ++errors_;
    std::string line = "{\"id\":" + id_json + "," + to_json(result).substr(1) + "\n";
    if (!flags_.ordered) return write(line);
    waiting_.emplace(order, std::move(line));
    while (!waiting_.empty() && waiting_.begin()->first == written_) {
      write(waiting_.begin()->second);
      waiting_.erase(waiting_.begin());
      ++written_;
    }
  }

  void write(std::string_view text) {
    if (write_failed_ || write_all(STDOUT_FILENO, text)) return;
    write_failed_ = true;
    say(std::string("results cannot be written: ") + std::strerror(errno));
    for (Running& running : running_) running.call.cancel();
  }

  double rate() const {
    const double seconds = std::chrono::duration<double>(Clock::now() - began_).count();
    return seconds > 0 ? static_cast<double>(done_) / seconds : 0;
  }

  void show_progress() {
    if (!::isatty(STDERR_FILENO) || Clock::now() < next_progress_) return;
    next_progress_ = Clock::now() + kProgressEvery;
    std::fprintf(stderr, "\rpyplaypen: %llu of %llu done, %.0f/s, %llu errors \033[K",
                 static_cast<unsigned long long>(done_), static_cast<unsigned long long>(started_), rate(),
                 static_cast<unsigned long long>(errors_));
    shown_ = true;
  }

  void clear_progress() const {
    if (shown_) std::fputs("\r\033[K", stderr);
  }

  void summarize() const {
    if (switched_on("PYPLAYPEN_QUIET")) return;
    const double seconds = std::chrono::duration<double>(Clock::now() - began_).count();
    char text[160];
    std::snprintf(text, sizeof text, "%llu done, %llu ok, %llu errors, %.2f s, %.0f/s%s",
                  static_cast<unsigned long long>(done_), static_cast<unsigned long long>(done_ - errors_),
                  static_cast<unsigned long long>(errors_), seconds, rate(), interrupted_ ? ", interrupted" : "");
    say(text);
  }

  const BatchFlags& flags_;
  Sandbox& sandbox_;
  const Context& context_;
  const Limits& limits_;
  LineReader lines_;
  int signals_;
  size_t most_waiting_;
  std::list<Running> running_;
  std::map<uint64_t, std::string> waiting_;
  std::vector<pollfd> fds_;
  bool interrupted_ = false;
  bool write_failed_ = false;
  bool shown_ = false;
  uint64_t started_ = 0;
  uint64_t done_ = 0;
  uint64_t errors_ = 0;
  uint64_t written_ = 0;
  Clock::time_point began_ = Clock::now();
  Clock::time_point next_progress_ = began_;
};

int interrupt_descriptor() {
  sigset_t set;
  ::sigemptyset(&set);
  ::sigaddset(&set, SIGINT);
  ::sigaddset(&set, SIGTERM);
  ::sigprocmask(SIG_BLOCK, &set, nullptr);
  return ::signalfd(-1, &set, SFD_CLOEXEC);
}

int run_batch(const BatchFlags& flags) {
  SandboxOptions options;
  Context context;
  Limits limits;
  int input = STDIN_FILENO;
  try {
    options = sandbox_options(flags.sandbox, flags.jobs);
    context = context_from(flags.sandbox);
    limits = limits_from(flags.sandbox, options);
    if (flags.file != "-") {
      input = ::open(flags.file.c_str(), O_RDONLY | O_CLOEXEC);
      if (input < 0) throw Refused(flags.file + " cannot be read: " + std::strerror(errno));
    }
  } catch (const std::exception& error) {
    say(error.what());
    return kExitUsage;
  }
  try {
    const int signals = interrupt_descriptor();
    Sandbox sandbox(options);
    return Batch(flags, sandbox, context, limits, input, signals).run();
  } catch (const std::exception& error) {
    say(error.what());
    return kExitNotRun;
  }
}

}  // namespace

int batch_command(std::span<char* const> arguments) {
  BatchFlags flags;
  CLI::App app("Evaluates many pieces of code: JSON lines in, results as JSON lines out.\n"
               "A line: {\"id\"?, \"code\", \"limits\"?, \"env\"?, \"extra\"?, \"artifact_root\"?}",
               "pyplaypen batch");
  app.footer("Exit status: 0 every line got an answer, 2 usage or a limit refused, 125 not run, 130 interrupted.");
  app.add_option("FILE", flags.file, "requests, one JSON object a line; - for standard input");
  app.add_option("-j,--jobs", flags.jobs, "calls at a time")->check(CLI::Range(1, 1024));
  app.add_flag("--ordered", flags.ordered, "answer in the order of the input");
  app.add_option("--spares", flags.sandbox.spares, "children kept ready (default: as many as jobs)");
  add_sandbox_flags(app, flags.sandbox);
  if (const auto exit = parse_or_tell(app, arguments)) return *exit;
  return run_batch(flags);
}

}  // namespace pyplaypen::cli
