// In place of pyplaypen-zygote: a zygote, with its keepers and their children, that is out of order in one
// way. In which, the name says under which it was started (peers_test links it under each). Only the first
// keeper of a zygote is; those after it serve every call with the value "fake".
#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "runtime/sys/channel.h"
#include "runtime/sys/error.h"
#include "runtime/sys/raw.h"
#include "runtime/wire/codec.h"

namespace pyplaypen {
namespace {

constexpr char kNoise[] = "this is no frame, whatever one looks for in it";

// One frame after the other, with what was attached.
class Peer {
 public:
  explicit Peer(int fd) : channel_(fd) {}

  std::optional<wire::Frame> next() {
    for (;;) {
      if (const auto frame = reader_.next()) return frame;
      if (!reader_.error().empty() ||
          sys::receive(channel_.get(), reader_.buffer(), &fds, true) == sys::Received::kEnd)
        return std::nullopt;
    }
  }
  void send(std::string_view bytes, const std::vector<int>& attached = {}) const {
    (void)sys::send_all(channel_.get(), bytes, attached);
  }
  template <typename Message>
  void tell(const Message& message, const std::vector<int>& attached = {}) const {
    send(wire::framed(message), attached);
  }
  void close() { channel_.reset(); }
  std::vector<sys::UniqueFd> fds;

 private:
  sys::UniqueFd channel_;
  wire::FrameReader reader_;
};

std::string with_version(std::string frame, char version) {
  frame[4] = version;
  return frame;
}

std::string with_type(std::string frame, char type) {
  frame[6] = type;
  return frame;
}

// Runs in: the call's process.
[[noreturn]] void be_child(const std::string& mode, sys::UniqueFd channel) {
  Peer host(channel.release());
  if (mode == "child_ends") ::_exit(3);
  if (mode == "child_noise") host.send(kNoise);
  if (mode == "child_reports_first") host.tell(wire::Report{});
  if (mode == "child_fails") host.tell(wire::SpareReady{policy::Stage::kLandlock, ENOSYS, ""});
  host.tell(wire::SpareReady{});
  if (!host.next()) ::_exit(0);
  if (mode == "child_is_set_up_twice") host.tell(wire::SpareReady{});
  if (mode == "child_answers_halfway") {
    const std::string frame = wire::framed(wire::Report{});
    host.send(std::string_view(frame).substr(0, frame.size() / 2));
    ::_exit(3);
  }
  wire::Report report;
  report.value_json = "\"fake\"";
  host.tell(report);
  while (host.next()) {
  }
  ::_exit(0);
}

// Runs in: the keeper. Leaves when its host does, its child killed.
class FakeKeeper {
 public:
  FakeKeeper(std::string mode, std::string base, int channel)
      : mode_(std::move(mode)), workspace_(std::move(base) + "/workspace"), host_(channel) {}

  void run() {
    if (mode_ == "keeper_ends") return;
    if (mode_ == "keeper_noise") host_.send(kNoise);
    if (mode_ == "keeper_other_version") host_.send(with_version(wire::framed(wire::KeeperReady{}), 7));
    if (mode_ == "keeper_unknown_type") host_.send(with_type(wire::framed(wire::KeeperReady{}), 77));
    if (mode_ == "keeper_wrong_type") host_.tell(wire::Ready{});
    if (mode_ == "keeper_malformed") host_.send(wire::encode_frame(wire::FrameType::kKeeperReady, "x"));
    if (mode_ == "keeper_reaped_unasked") host_.tell(wire::Reaped{});
    if (mode_ == "keeper_cannot") host_.tell(wire::KeeperReady{"mkdir(/fake): No space left on device", false, false, "", ENOSPC});
    wire::KeeperReady ready;
    ready.workspace = workspace_;
    host_.tell(ready);
    if (mode_ == "keeper_spawned_unasked") host_.tell(wire::Spawned{});
    while (const auto frame = host_.next()) {
      if (wire::message_in<wire::Spawn>(*frame)) {
        if (!spawn()) break;
      } else if (wire::message_in<wire::Reap>(*frame)) {
        if (!reap()) break;
      }
    }
    end_child();
  }

 private:
  bool spawn() {
    if (mode_ == "spawn_ends") return false;
    if (mode_ == "spawn_noise") host_.send(kNoise);
    wire::Spawned spawned;
    if (mode_ == "spawn_fails") {
      spawned.error_number = EAGAIN;
      spawned.failure = "fork: Resource temporarily unavailable";
      host_.tell(spawned);
      return true;
    }
    auto [ours, theirs] = sys::socket_pair();
    auto [out_read, out_write] = sys::pipe_pair();
    auto [err_read, err_write] = sys::pipe_pair();
    sys::set_nonblocking(out_read.get());
    sys::set_nonblocking(err_read.get());
    child_ = sys::check(::fork(), "fork");
    if (child_ == 0) {
      ours.reset();
      host_.close();
      be_child(mode_, std::move(theirs));
    }
    const sys::UniqueFd pidfd(sys::raw::pidfd_open(child_, 0));
    std::filesystem::create_directory(workspace_);
    const sys::UniqueFd workspace(::open(workspace_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    spawned.pid = child_;
    spawned.with_pidfd = static_cast<bool>(pidfd);
    spawned.with_workspace = true;
    std::vector<int> fds = {ours.get(), out_read.get(), err_read.get()};
    if (pidfd) fds.push_back(pidfd.get());
    fds.push_back(workspace.get());
    if (mode_ == "spawned_without_descriptors") fds.clear();
    if (mode_ == "spawned_with_one_too_few") fds.pop_back();
    if (mode_ == "spawned_with_too_many") fds.insert(fds.end(), 5, ours.get());
    if (mode_ == "spawned_halfway") {
      const std::string frame = wire::framed(spawned);
      host_.send(std::string_view(frame).substr(0, 9), fds);
      return false;
    }
    host_.tell(spawned, fds);
    return true;
  }

  bool reap() {
    end_child();
    if (mode_ == "reap_ends") return false;
    if (mode_ == "reap_noise") host_.send(kNoise);
    if (mode_ == "reap_answers_other") host_.tell(wire::Ready{});
    if (mode_ == "reap_spawns") host_.tell(wire::Spawned{});
    if (mode_ == "reap_halfway") {
      host_.send(wire::framed(wire::Reaped{}).substr(0, 10));
      return false;
    }
    host_.tell(wire::Reaped{});
    return true;
  }

  void end_child() {
    if (child_ == 0) return;
    ::kill(child_, SIGKILL);
    ::waitpid(child_, nullptr, 0);
    child_ = 0;
  }

  std::string mode_;
  std::string workspace_;
  Peer host_;
  pid_t child_ = 0;
};

void start_python(const std::string& mode, const Peer& host) {
  wire::Ready ready;
  ready.python_version = "3.0.0";
  if (mode == "zygote_ends") ::_exit(0);
  if (mode == "zygote_noise") host.send(kNoise);
  if (mode == "zygote_other_version") host.send(with_version(wire::framed(ready), 7));
  if (mode == "zygote_other_type") host.tell(wire::Reaped{});
  if (mode == "zygote_malformed") host.send(wire::encode_frame(wire::FrameType::kReady, "x"));
  if (mode == "zygote_halfway") {
    host.send(wire::framed(ready).substr(0, 14));
    ::_exit(0);
  }
  host.tell(ready);
}

void serve(const std::string& mode) {
  if (mode == "zygote_ends_at_once") return;
  Peer host(3);
  std::map<uint32_t, pid_t> keepers;
  std::string base;
  bool first = true;
  while (const auto frame = host.next()) {
    if (const auto setup = wire::message_in<wire::Setup>(*frame)) {
      base = setup->base_directory;
    } else if (wire::message_in<wire::StartPython>(*frame)) {
      start_python(mode, host);
    } else if (const auto slot = wire::message_in<wire::OpenKeeper>(*frame)) {
      const int channel = host.fds.front().release();
      host.fds.clear();
      const pid_t keeper = sys::check(::fork(), "fork");
      if (keeper == 0) {
        ::close(3);
        FakeKeeper(first ? mode : "good", base, channel).run();
        ::_exit(0);
      }
      ::close(channel);
      first = false;
      keepers[slot->slot] = keeper;
    } else if (const auto closed = wire::message_in<wire::CloseKeeper>(*frame)) {
      // Its child reads the end of the call's channel, which the host gives up after this.
      ::kill(keepers[closed->slot], SIGTERM);
      ::waitpid(keepers[closed->slot], nullptr, 0);
      host.tell(wire::Reaped{});
    }
    host.fds.clear();
  }
  for (const auto& [slot, keeper] : keepers) ::waitpid(keeper, nullptr, 0);
}

}  // namespace
}  // namespace pyplaypen

int main() {
  pyplaypen::serve(std::filesystem::read_symlink("/proc/self/exe").filename());
  return 0;
}
