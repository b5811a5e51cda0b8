#include "bench/floors.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdlib>
#include <memory>
#include <optional>
#include <stdexcept>
#include <thread>

#include "bench/program.h"
#include "runtime/sys/channel.h"
#include "runtime/sys/error.h"

namespace pyplaypen::bench {
namespace {

// A process that sends back each byte.
class Echo {
 public:
  Echo() {
    auto [ours, theirs] = sys::socket_pair();
    const pid_t pid = sys::check(::fork(), "fork");
    if (pid == 0) {
      ours.reset();
      char byte = 0;
      while (::read(theirs.get(), &byte, 1) == 1 && ::write(theirs.get(), &byte, 1) == 1) {
      }
      ::_exit(0);
    }
    pid_ = pid;
    socket_ = std::move(ours);
  }
  ~Echo() {
    socket_.reset();
    wait_for(pid_);
  }
  Echo(const Echo&) = delete;
  Echo& operator=(const Echo&) = delete;

  // On a core each, where there are two: left alone, the kernel runs both on one or not, as it likes.
  double round_trip_between_cores() {
    cpu_set_t before;
    CPU_ZERO(&before);
    sys::check(::sched_getaffinity(0, sizeof before, &before), "sched_getaffinity");
    pin(pid_, 1);
    pin(0, 0);
    round_trip();
    const double time = round_trip();
    ::sched_setaffinity(0, sizeof before, &before);
    ::sched_setaffinity(pid_, sizeof before, &before);
    return time;
  }

  double round_trip() {
    char byte = 'x';
    const auto begin = Clock::now();
    if (::write(socket_.get(), &byte, 1) != 1 || ::read(socket_.get(), &byte, 1) != 1)
      throw std::runtime_error("the echoing process has ended");
    return microseconds_since(begin);
  }

 private:
  static void pin(pid_t pid, int core) {
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(core, &one);
    ::sched_setaffinity(pid, sizeof one, &one);  // a machine with one core: both stay where they are
  }

  pid_t pid_ = -1;
  sys::UniqueFd socket_;
};

void add_ping_pong(Plan& plan, const Mode& mode) {
  const auto echo = std::make_shared<Echo>();
  plan.items.push_back({"floor/ping_pong", Unit::kMicroseconds, mode.scaled(2000, 500),
                        [echo] { return echo->round_trip(); }});
  plan.items.push_back({"floor/ping_pong_two_cores", Unit::kMicroseconds, mode.scaled(200, 50),
                        [echo] { return echo->round_trip_between_cores(); }});
  plan.items.push_back({"floor/ping_pong_after_pause", Unit::kMicroseconds, mode.scaled(40, 15), [echo] {
                          std::this_thread::sleep_for(kPause);
                          return echo->round_trip();
                        }});
}

void add_bare_fork(Plan& plan, const Mode& mode) {
  struct Bare {
    Helper helper{std::vector<std::string>{PYPLAYPEN_BENCH_BARE_FORK}};
    double reaped_us = 0;
    double faults = 0;
  };
  const auto bare = std::make_shared<Bare>();
  plan.items.push_back({"floor/bare_fork_answer", Unit::kMicroseconds, mode.scaled(40, 15), [bare] {
                          std::this_thread::sleep_for(kPause);
                          double answer_us = 0;
                          const std::string line = bare->helper.ask("one");
                          if (std::sscanf(line.c_str(), "%lf %lf %lf", &answer_us, &bare->reaped_us,
                                          &bare->faults) != 3)
                            throw std::runtime_error("pyplaypen-bare-fork said: " + line);
                          return answer_us;
                        }});
  plan.items.push_back({"floor/bare_fork_reaped", Unit::kMicroseconds, mode.scaled(40, 15), [bare] {
                          std::this_thread::sleep_for(kPause);
                          const std::string line = bare->helper.ask("one");
                          if (std::sscanf(line.c_str(), "%*f %lf", &bare->reaped_us) != 1)
                            throw std::runtime_error("pyplaypen-bare-fork said: " + line);
                          return bare->reaped_us;
                        }});
  for (const int processes : {1, 2}) {
    const std::string line = "rate " + std::to_string(processes) + " " + std::to_string(mode.scaled(500, 200));
    plan.items.push_back({"floor/bare_fork_rate/" + std::to_string(processes), Unit::kPerSecond, 1,
                          [bare, line] { return std::atof(bare->helper.ask(line).c_str()); }});
  }
}

// `cat FILE | cat > /dev/null`
double cat_rate(int megabytes) {
  const sys::UniqueFd file(sys::check(::memfd_create("zeros", 0), "memfd_create"));
  sys::check(::ftruncate(file.get(), off_t{megabytes} << 20), "ftruncate");
  auto [read_end, write_end] = sys::pipe_pair();
  const auto begin = Clock::now();
  const pid_t writer = start({"cat"}, file.get(), write_end.get());
  const pid_t reader = start({"cat"}, read_end.get());
  read_end.reset();
  write_end.reset();
  if (wait_for(writer) != 0 || wait_for(reader) != 0) throw std::runtime_error("cat failed");
  return megabytes / microseconds_since(begin) * 1e6;
}

void add_json(Plan& plan, const Mode& mode) {
  const auto python = std::make_shared<Helper>(std::vector<std::string>{
      PYPLAYPEN_BENCH_PYTHON, "-c",
      "import json, sys, time\n"
      "make = eval('lambda: ' + sys.argv[1])\n"
      "for line in sys.stdin:\n"
      "    begin = time.perf_counter_ns()\n"
      "    json.loads(json.dumps(make()))\n"
      "    print((time.perf_counter_ns() - begin) / 1000, flush=True)\n",
      kMegabyteList});
  plan.items.push_back({"floor/json_1mb", Unit::kMicroseconds, mode.scaled(5, 2),
                        [python] { return std::atof(python->ask("again").c_str()); }});
}

// The Python package that does the same job, where it is installed.
void add_peer(Plan& plan, const Mode& mode) {
  try {
    run_time({PYPLAYPEN_BENCH_PYTHON, "-c", "import os; os.close(2); import pyplaypen_sandbox"});
  } catch (const std::exception&) {
    plan.skipped["peer/execute"] = "no Python package pyplaypen_sandbox";
    return;
  }
  const auto python = std::make_shared<Helper>(std::vector<std::string>{
      PYPLAYPEN_BENCH_PYTHON, "-c",
      "import asyncio, sys, time\n"
      "from pyplaypen_sandbox import Sandbox\n"
      "async def main():\n"
      "    sandbox = Sandbox(max_concurrency=1)\n"
      "    for line in sys.stdin:\n"
      "        begin = time.perf_counter_ns()\n"
      "        result = await sandbox.execute('1 + 1')\n"
      "        print((time.perf_counter_ns() - begin) / 1000, flush=True)\n"
      "asyncio.run(main())\n"});
  plan.items.push_back({"peer/execute", Unit::kMicroseconds, mode.scaled(3, 1),
                        [python] { return std::atof(python->ask("again").c_str()); }});
}

void add_command(Plan& plan, const Mode& mode, const std::string& name, const std::vector<std::string>& argv) {
  if (!is_installed(argv[0]) && argv[0].find('/') == std::string::npos) {
    plan.skipped[name] = argv[0] + " is not installed";
    return;
  }
  plan.items.push_back({name, Unit::kMicroseconds, mode.scaled(20, 6), [argv] { return run_time(argv); }});
}

}  // namespace

void add_floors(Plan& plan, const Mode& mode) {
  add_ping_pong(plan, mode);
  add_bare_fork(plan, mode);
  const int megabytes = mode.scaled(1024, 256);
  plan.items.push_back({"floor/cat", Unit::kMegabytesPerSecond, 1, [megabytes] { return cat_rate(megabytes); }});
  add_json(plan, mode);
  add_peer(plan, mode);
  plan.items.push_back({"floor/python_c", Unit::kMicroseconds, mode.scaled(4, 2),
                        [] { return run_time({PYPLAYPEN_BENCH_PYTHON, "-c", "1 + 1"}); }});
}

void add_commands(Plan& plan, const Mode& mode) {
  const std::string pyplaypen = PYPLAYPEN_BENCH_COMMAND;
  add_command(plan, mode, "run/bare", {"/bin/true"});
  add_command(plan, mode, "run/timeout", {"timeout", "5", "/bin/true"});
  add_command(plan, mode, "run/pyplaypen", {pyplaypen, "run", "--", "/bin/true"});
  add_command(plan, mode, "run/pyplaypen_confine_writes", {pyplaypen, "run", "--confine-writes", "--", "/bin/true"});
  add_command(plan, mode, "run/pyplaypen_unshare_all", {pyplaypen, "run", "--unshare", "all", "--", "/bin/true"});
  add_command(plan, mode, "run/bwrap", {"bwrap", "--ro-bind", "/", "/", "/bin/true"});
  add_command(plan, mode, "run/bwrap_unshare_all", {"bwrap", "--ro-bind", "/", "/", "--unshare-all", "/bin/true"});
  add_command(plan, mode, "run/nsjail", {"nsjail", "-Q", "-Mo", "--chroot", "/", "--", "/bin/true"});
  add_command(plan, mode, "run/firejail", {"firejail", "--quiet", "--noprofile", "/bin/true"});
}

}  // namespace pyplaypen::bench
