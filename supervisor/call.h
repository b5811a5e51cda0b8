// Drives one call: connects its state machine to the slot's descriptors.
#pragma once

#include <poll.h>

#include <array>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "pyplaypen/sandbox.h"
#include "runtime/wire/frame.h"
#include "supervisor/call_state.h"
#include "supervisor/output.h"
#include "supervisor/pool.h"
#include "supervisor/shared_objects.h"

namespace pyplaypen {
namespace supervisor {

// Gets each result, the artifacts hashed, in the thread of the call. Empty: nobody listens.
using AuditSink = std::function<void(const Result&, const Limits&)>;

}  // namespace supervisor

struct Call::Impl {
  Impl(supervisor::Pool& pool, wire::Request request, const Context& context,
       supervisor::AuditSink audit);
  Impl(supervisor::Pool& pool, wire::Launch launch, const ProcessOptions& options);
  ~Impl();
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  bool advance();
  void wait();
  void cancel();
  int fd();

  Result result;
  int start_error = 0;         // of a command
  std::optional<int> wait_status() const;
  bool out_of_memory() const { return state_.out_of_memory(); }

 private:
  using Clock = supervisor::Clock;

  void step(Clock::time_point now);
  void enter();
  void start(Clock::time_point now);
  void run(Clock::time_point now);
  void read_channel(Clock::time_point now);
  void start_code(Clock::time_point now);
  void start_command(Clock::time_point now);
  void replace_spare();
  void take_in(OutputStream stream, std::string_view bytes);
  void drain(OutputStream stream, sys::UniqueFd& pipe);
  void drain_all(OutputStream stream, sys::UniqueFd& pipe);
  bool leader_has_ended() const;
  void begin_end(Clock::time_point now);
  void lose_keeper(const std::string& why, Clock::time_point now);
  void end(Clock::time_point now);
  void collect_artifacts();
  void finish();
  std::vector<pollfd> interest() const;
  void refresh_epoll();

  supervisor::Pool& pool_;
  std::optional<wire::Request> request_;  // one of these two
  std::optional<wire::Launch> launch_;
  Limits limits_;
  Context context_;
  std::function<void(OutputStream, std::string_view)> sink_;
  sys::UniqueFd directory_;  // of a command
  supervisor::AuditSink audit_;
  sys::UniqueFd stdin_;
  supervisor::CallState state_;
  std::shared_ptr<supervisor::Turn> turn_;
  std::unique_ptr<supervisor::Keeper> keeper_;
  wire::FrameReader report_reader_;
  supervisor::Capture stdout_;
  supervisor::Capture stderr_;
  std::array<char, 65536> chunk_;  // one full pipe (man 7 pipe)
  supervisor::SharedObjects shared_before_;
  bool launched_ = false;
  int keepers_lost_ = 0;
  int spares_lost_ = 0;
  bool ending_ = false;
  bool set_up_ = false;       // the child has said so
  bool channel_ended_ = false;
  Clock::time_point set_up_at_;
  // The spare's, once it is given up.
  bool may_have_files_ = false;
  sys::UniqueFd out_;
  sys::UniqueFd err_;
  std::string files_lost_;  // why; empty: they can be collected
  double collect_ms_ = 0;
  bool finished_ = false;

  sys::UniqueFd epoll_;
  sys::UniqueFd timer_;
  std::vector<int> watched_;
};

}  // namespace pyplaypen
