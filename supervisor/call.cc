#include "supervisor/call.h"

#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>

#include "runtime/policy/stage.h"
#include "runtime/sys/channel.h"
#include "runtime/sys/error.h"
#include "runtime/sys/remove_tree.h"
#include "runtime/wire/json_text.h"
#include "supervisor/artifacts.h"
#include "supervisor/way_out.h"

namespace pyplaypen {
namespace {

using supervisor::Phase;

// How many keepers, or spares, end under a call before it has a child. More is no accident.
constexpr int kMostLost = 3;

constexpr int kMaxValueDepth = 64;  // the child refuses values deeper than 50

double milliseconds(supervisor::Clock::duration duration) {
  return std::chrono::duration<double, std::milli>(duration).count();
}

// A file that is not there is the caller's mistake, to be thrown before there is a call.
sys::UniqueFd open_stdin_file(const StandardInput& source) {
  if (source.kind != StandardInput::Kind::kFile) return {};
  return sys::UniqueFd(sys::check(::open(source.text.c_str(), O_RDONLY | O_CLOEXEC), "open", source.text));
}

sys::UniqueFd make_stdin(const StandardInput& source) {
  switch (source.kind) {
    case StandardInput::Kind::kEmpty:
    case StandardInput::Kind::kFile:
      break;
    case StandardInput::Kind::kInherit:
      return sys::UniqueFd(sys::check(::fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 0), "fcntl", "stdin"));
    case StandardInput::Kind::kBytes: {
      sys::UniqueFd memory(sys::check(::memfd_create("stdin", MFD_CLOEXEC), "memfd_create"));
      std::string_view rest = source.text;
      while (!rest.empty())
        rest.remove_prefix(static_cast<size_t>(
            sys::check(::write(memory.get(), rest.data(), rest.size()), "write", "memfd")));
      sys::check(::lseek(memory.get(), 0, SEEK_SET), "lseek", "memfd");
      return memory;
    }
  }
  return {};
}

// What system calls say, with the way out.
std::string sentence_of(const std::exception& error) {
  const auto* of_the_system = dynamic_cast<const std::system_error*>(&error);
  return of_the_system == nullptr ? error.what() : supervisor::with_way_out(error.what(), of_the_system->code().value());
}

// Under a call's feet: then it could make no file.
bool is_removed(int directory) {
  struct stat info{};
  return ::fstat(directory, &info) != 0 || info.st_nlink == 0;
}

std::string set_up_failure(const wire::SpareReady& ready) {
  std::string why("the child could not be set up: stage ");
  why.append(policy::stage_name(*ready.failed_stage)).append(": ");
  return why + (ready.failure.empty() ? std::generic_category().message(ready.error_number) : ready.failure);
}

sys::UniqueFd open_directory(const std::filesystem::path& path) {
  const std::string name = path.empty() ? "." : path.string();
  return sys::UniqueFd(
      sys::check(::open(name.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC), "open", name));
}

}  // namespace

Call::Impl::Impl(supervisor::Pool& pool, wire::Request request, const Context& context,
                 supervisor::AuditSink audit)
    : pool_(pool),
      request_(std::move(request)),
      limits_(request_->limits),
      context_(context),
      audit_(std::move(audit)),
      stdin_(open_stdin_file(context.stdin_source)),
      state_(supervisor::Job::kCode, limits_, Clock::now()),
      report_reader_(limits_.result_frame_bytes),
      stdout_(limits_.stdout_bytes),
      stderr_(limits_.stderr_bytes),
      set_up_at_(state_.started()) {
  result.request_id = request_->request_id;
}

Call::Impl::Impl(supervisor::Pool& pool, wire::Launch launch, const ProcessOptions& options)
    : pool_(pool),
      launch_(std::move(launch)),
      limits_(launch_->limits),
      sink_(options.sink),
      directory_(open_directory(options.cwd)),
      stdin_(open_stdin_file(options.stdin_source)),
      state_(supervisor::Job::kCommand, limits_, Clock::now()),
      stdout_(limits_.stdout_bytes),
      stderr_(limits_.stderr_bytes),
      set_up_at_(state_.started()) {
  context_.stdin_source = options.stdin_source;
}

std::optional<int> Call::Impl::wait_status() const {
  if (!state_.reaped()) return std::nullopt;
  return state_.reaped()->wait_status;
}

Call::Impl::~Impl() {
  if (finished_) return;
  cancel();
  wait();
}

bool Call::Impl::advance() {
  if (finished_) return true;
  for (Phase before = state_.phase();;) {
    try {
      step(Clock::now());
    } catch (const std::exception& error) {
      // The system failed us in the middle of a call: the one place where that becomes a result.
      state_.on_internal(sentence_of(error));
      if (ending_) {
        keeper_ ? lose_keeper(sentence_of(error), Clock::now()) : state_.on_tree_gone(std::nullopt, Clock::now());
      }
    }
    if (state_.phase() == Phase::kDone) break;
    if (state_.phase() == before) {
      refresh_epoll();
      return false;
    }
    before = state_.phase();
  }
  finish();
  refresh_epoll();
  return true;
}

void Call::Impl::wait() {
  while (!advance()) {
    std::vector<pollfd> fds = interest();
    int timeout = -1;
    if (state_.phase() != Phase::kEnding)
      timeout = std::max(0, static_cast<int>(std::min(
                                1e9, std::ceil(milliseconds(state_.deadline() - Clock::now())))));
    sys::check(sys::retry_eintr([&] { return ::poll(fds.data(), fds.size(), timeout); }), "poll");
  }
}

void Call::Impl::cancel() {
  state_.on_cancel();
  advance();
}

void Call::Impl::step(Clock::time_point now) {
  state_.on_time(now);
  switch (state_.phase()) {
    case Phase::kQueued:
      if (!turn_) enter();
      if (turn_->event() < 0 || pool_.has_come(*turn_)) state_.on_slot(now);
      break;
    case Phase::kStarting:
      start(now);
      break;
    case Phase::kRunning:
      run(now);
      break;
    case Phase::kEnding:
      ending_ ? end(now) : begin_end(now);
      break;
    case Phase::kDone:
      break;
  }
}

void Call::Impl::enter() {
  if (!stdin_) stdin_ = make_stdin(context_.stdin_source);
  if (!stdin_ && launch_)
    stdin_.reset(sys::check(::open("/dev/null", O_RDONLY | O_CLOEXEC), "open", "/dev/null"));
  turn_ = pool_.enter();
}

void Call::Impl::start(Clock::time_point now) {
  for (;;) {
    if (!keeper_) keeper_ = pool_.take();
    if (!keeper_->has_spare()) keeper_->pump();
    // Nothing of the call has run yet: it may have another.
    const bool killed = keeper_->has_ended() && !launched_;
    const bool homeless = keeper_->has_spare() && is_removed(keeper_->work());
    if (!(killed || homeless) || ++keepers_lost_ == kMostLost) break;
    pool_.bury(std::move(keeper_));
  }
  if (keeper_->failure()) return state_.on_internal(*keeper_->failure());
  request_ ? start_code(now) : start_command(now);
}

void Call::Impl::start_code(Clock::time_point now) {
  if (!keeper_->has_spare()) {
    if (!keeper_->spawning()) keeper_->spawn(wire::WarmUp::kNo);
    return;
  }
  if (leader_has_ended()) return replace_spare();
  keeper_->limit(limits_);
  std::vector<int> fds;
  if (stdin_) fds.push_back(stdin_.get());
  shared_before_ = supervisor::shared_objects();
  if (!sys::send_all(keeper_->spare().channel.get(), wire::framed(*request_), fds)) return replace_spare();
  state_.on_request_sent(now);
}

// One that ended without a request: nothing of the code has run in it.
void Call::Impl::replace_spare() {
  wire::FrameReader reader;
  (void)sys::receive(keeper_->spare().channel.get(), reader.buffer(), nullptr, false);  // its last words
  const auto frame = reader.next();
  const auto ready = frame ? wire::message_in<wire::SpareReady>(*frame) : std::nullopt;
  if (ready && ready->failed_stage) return state_.on_set_up_failed(set_up_failure(*ready));
  if (++spares_lost_ == kMostLost)
    return state_.on_internal("the child ended before it was set up, " + std::to_string(kMostLost) + " times");
  keeper_->reap_soon();
  keeper_->spawn(wire::WarmUp::kNo);
}

void Call::Impl::start_command(Clock::time_point now) {
  if (!launched_) {
    keeper_->limit(limits_);
    const std::array fds = {stdin_.get(), directory_.get()};
    keeper_->launch(*launch_, fds);
    launched_ = true;
  } else if (const auto failure = keeper_->take_launch_failure()) {
    start_error = failure->error_number;
    std::string why = failure->failure;
    if (failure->stage == policy::Stage::kExec) {
      why = "cannot run '" + launch_->argv[0] + "': " + std::generic_category().message(start_error);
    } else if (failure->stage) {
      why = "setting up the command failed at stage '" + std::string(policy::stage_name(*failure->stage)) +
            "': " + std::generic_category().message(start_error);
    }
    state_.on_internal(why);
  } else if (keeper_->has_spare()) {
    state_.on_request_sent(now);
  }
}

void Call::Impl::run(Clock::time_point now) {
  // First whether it has ended, then what it said: what it said before its end is then complete.
  const bool ended = leader_has_ended();
  supervisor::Spare& spare = keeper_->spare();
  drain(OutputStream::kStdout, spare.out);
  drain(OutputStream::kStderr, spare.err);
  if (request_ && !channel_ended_) read_channel(now);
  keeper_->pump();
  if (keeper_->failure() && !state_.has_verdict()) state_.on_internal(*keeper_->failure());
  if (!ended && !keeper_->leader_ended()) return;
  // No code has run in one that never was set up: it is not the code's doing.
  if (request_ && !set_up_) state_.on_internal("the child ended before it was set up");
  state_.on_leader_silent();
}

void Call::Impl::read_channel(Clock::time_point now) {
  while (state_.phase() == Phase::kRunning) {
    // Descriptors that a hostile child attaches are closed by the kernel: no place for them is given.
    const sys::Received received =
        sys::receive(keeper_->spare().channel.get(), report_reader_.buffer(), nullptr, false);
    while (const auto frame = report_reader_.next()) {
      if (!set_up_) {
        const auto ready = wire::message_in<wire::SpareReady>(*frame);
        if (!ready) return state_.on_bad_frame("the first frame is not that of a child set up");
        if (ready->failed_stage) return state_.on_set_up_failed(set_up_failure(*ready));
        set_up_ = true;
        set_up_at_ = now;
        continue;
      }
      auto report = wire::message_in<wire::Report>(*frame);
      if (!report) return state_.on_bad_frame("the result's frame is malformed");
      if (const auto wrong = wire::json_error(report->value_json, kMaxValueDepth))
        return state_.on_bad_frame("the value is not JSON: " + *wrong);
      if (report->value_json.size() > limits_.return_value_bytes &&
          report->status == wire::ReportStatus::kOk)
        return state_.on_bad_frame("the value is larger than its limit");
      state_.on_report(*report, now);
      return;
    }
    if (!report_reader_.error().empty()) return state_.on_bad_frame(report_reader_.error());
    if (received == sys::Received::kEnd) {
      if (report_reader_.buffer() == std::string_view(&wire::kStackOverflowHint, 1))
        state_.on_stack_overflow_hint();
      // It is dying, or its code closed the channel or replaced it by another program: then it ends in
      // its own way, which tells the verdict. Killed now, it would seem to have crashed.
      channel_ended_ = true;
      return;
    }
    if (received == sys::Received::kWouldBlock) return;
  }
}

void Call::Impl::take_in(OutputStream stream, std::string_view bytes) {
  supervisor::Capture& capture = stream == OutputStream::kStdout ? stdout_ : stderr_;
  if (sink_) {
    const uint64_t limit = stream == OutputStream::kStdout ? limits_.stdout_bytes : limits_.stderr_bytes;
    const uint64_t before = capture.total();
    if (before < limit) sink_(stream, bytes.substr(0, std::min<uint64_t>(bytes.size(), limit - before)));
  }
  capture.add(bytes);
}

void Call::Impl::drain(OutputStream stream, sys::UniqueFd& pipe) {
  // Bounded for one turn, so that a flood cannot keep us from looking at the clock.
  constexpr int kReadsInOneTurn = 16;
  for (int i = 0; pipe && i < kReadsInOneTurn; ++i) {
    std::string_view bytes;
    const sys::Received received = sys::read_pipe(pipe.get(), chunk_, bytes);
    if (received == sys::Received::kWouldBlock) return;
    if (received == sys::Received::kEnd) return pipe.reset();
    take_in(stream, bytes);
  }
}

void Call::Impl::drain_all(OutputStream stream, sys::UniqueFd& pipe) {
  std::string_view bytes;
  while (pipe && sys::read_pipe(pipe.get(), chunk_, bytes) == sys::Received::kBytes)
    take_in(stream, bytes);
}

bool Call::Impl::leader_has_ended() const {
  const supervisor::Spare& spare = keeper_->spare();
  if (!spare.pidfd) return false;  // then its keeper tells
  pollfd ended{spare.pidfd.get(), POLLIN, 0};
  return ::poll(&ended, 1, 0) > 0;
}

void Call::Impl::begin_end(Clock::time_point now) {
  ending_ = true;
  if (!keeper_) return state_.on_tree_gone(std::nullopt, now);
  if (keeper_->failure()) return lose_keeper(*keeper_->failure(), now);
  if (!keeper_->has_spare()) {
    if (!launched_) return state_.on_tree_gone(std::nullopt, now);  // its spare is for another
    keeper_->reap();  // a command may have started meanwhile
    return;
  }
  supervisor::Spare& spare = keeper_->spare();
  const bool alone = state_.report() && keeper_->kill_leader_and_see_it_alone();
  // What has been made meanwhile is for the keeper to look through, and then waited for.
  const bool nothing_left = alone && sys::is_empty_directory(keeper_->work()) &&
                            supervisor::shared_objects() == shared_before_;
  if (nothing_left) {
    // No death is waited for: what is on its way out can neither fork nor write any more.
    drain_all(OutputStream::kStdout, spare.out);
    drain_all(OutputStream::kStderr, spare.err);
    keeper_->reap_soon();  // with what finish() gives the keeper to do next
    (void)keeper_->ran_out_of_memory();  // one of its children, perhaps; the next call has no part in it
    return state_.on_tree_gone(std::nullopt, now);
  }
  may_have_files_ = true;
  out_ = std::move(spare.out);
  err_ = std::move(spare.err);
  keeper_->reap();
}

// And with it the slot, which is another's from here on: what the call left there cannot be looked at.
void Call::Impl::lose_keeper(const std::string& why, Clock::time_point now) {
  state_.on_internal(why);
  files_lost_ = why;
  pool_.bury(std::move(keeper_));
  state_.on_tree_gone(std::nullopt, now);
}

void Call::Impl::end(Clock::time_point now) {
  drain(OutputStream::kStdout, out_);
  drain(OutputStream::kStderr, err_);
  keeper_->pump();
  if (keeper_->failure()) return lose_keeper(*keeper_->failure(), now);
  const auto reaped = keeper_->take_reaped();
  if (!reaped) return;
  // Nobody can write any more: what is in the pipes is all there will ever be.
  drain_all(OutputStream::kStdout, out_);
  drain_all(OutputStream::kStderr, err_);
  if (keeper_->ran_out_of_memory()) state_.on_out_of_memory();
  state_.on_tree_gone(reaped, now);
}

void Call::Impl::collect_artifacts() {
  if (!request_ || !result.ok() || (!may_have_files_ && files_lost_.empty())) return;
  const auto started = Clock::now();
  const auto fail = [&](ErrorType type, std::string message) {
    result.error = supervisor::make_error(type, std::move(message));
    result.return_value = "null";
  };
  if (!files_lost_.empty()) return fail(ErrorType::kInternal, files_lost_ + " before what the call left was looked at");
  const int work = keeper_->work();
  supervisor::Collected collected = supervisor::collect(work, limits_);
  if (!collected.breach.empty()) return fail(ErrorType::kArtifactLimit, collected.breach);
  for (const supervisor::Skipped& skipped : collected.skipped)
    result.skipped.push_back(skipped.path);
  if (collected.skipped_beyond > 0)
    result.skipped.push_back("... and " + std::to_string(collected.skipped_beyond) + " more");
  if (!collected.artifacts.empty()) {
    if (audit_) supervisor::hash_artifacts(work, collected);
    const supervisor::Kept kept =
        context_.artifact_root.empty()
            ? supervisor::keep_under(work, collected, pool_.temp_directory(), result.request_id)
            : supervisor::move_to(work, collected, context_.artifact_root.string(),
                                  result.request_id);
    if (!kept.problem.empty()) return fail(ErrorType::kInternal, kept.problem);
    result.artifact_root = kept.root;
    // A returned string that is exactly the path of an artifact is that artifact's path.
    const std::string inside = keeper_->ready().workspace + "/";
    for (const Artifact& artifact : collected.artifacts)
      if (result.return_value == wire::json_quote(inside + artifact.path))
        result.return_value = wire::json_quote(artifact.path);
    result.artifacts = std::move(collected.artifacts);
  }
  collect_ms_ = milliseconds(Clock::now() - started);
}

void Call::Impl::finish() {
  finished_ = true;
  result.stdout_output = stdout_.take();
  result.stderr_output = stderr_.take();
  result.error = state_.error();
  if (result.ok() && state_.report()) result.return_value = state_.report()->value_json;
  try {
    collect_artifacts();
  } catch (const std::exception& error) {
    result.error = supervisor::make_error(ErrorType::kInternal, sentence_of(error));
    result.return_value = "null";
    result.artifacts.clear();
  }
  if (keeper_) pool_.give_back(std::move(keeper_));
  if (turn_) pool_.leave(turn_);

  const auto now = Clock::now();
  result.usage.wall_ms = milliseconds(now - state_.started());
  result.usage.queue_ms = milliseconds(state_.sent_at() - state_.started());
  if (state_.reaped()) {
    result.usage.cpu_ms = static_cast<double>(state_.reaped()->cpu_microseconds) / 1000;
    result.usage.max_rss_bytes = state_.reaped()->max_rss_bytes;
  } else if (state_.report()) {
    result.usage.cpu_ms = static_cast<double>(state_.report()->cpu_microseconds) / 1000;
    result.usage.max_rss_bytes = state_.report()->max_rss_bytes;
  }
  result.stages.queue_ms = milliseconds(state_.slot_at() - state_.started());
  result.stages.dispatch_ms = milliseconds(state_.sent_at() - state_.slot_at());
  result.stages.confine_ms = std::max(0.0, milliseconds(set_up_at_ - state_.sent_at()));
  result.stages.evaluate_ms =
      std::max(0.0, milliseconds(state_.verdict_at() - std::max(state_.sent_at(), set_up_at_)));
  result.stages.collect_ms = collect_ms_;
  result.stages.teardown_ms = milliseconds(state_.ended() - state_.verdict_at());
  if (audit_) audit_(result, limits_);
}

std::vector<pollfd> Call::Impl::interest() const {
  std::vector<pollfd> fds;
  const auto add = [&](int fd) {
    if (fd >= 0) fds.push_back({fd, POLLIN, 0});
  };
  switch (state_.phase()) {
    case Phase::kQueued:
      if (turn_) add(turn_->event());
      break;
    case Phase::kStarting:
      if (keeper_) add(keeper_->channel());
      break;
    case Phase::kRunning: {
      const supervisor::Spare& spare = keeper_->spare();
      if (!channel_ended_) add(spare.channel.get());
      for (const int fd : {spare.out.get(), spare.err.get(), spare.pidfd.get()}) add(fd);
      add(keeper_->channel());
      break;
    }
    case Phase::kEnding:
      if (keeper_) add(keeper_->channel());
      add(out_.get());
      add(err_.get());
      break;
    case Phase::kDone:
      break;
  }
  return fds;
}

int Call::Impl::fd() {
  if (!epoll_) {
    epoll_.reset(sys::check(::epoll_create1(EPOLL_CLOEXEC), "epoll_create1"));
    timer_.reset(sys::check(::timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK),
                            "timerfd_create"));
    refresh_epoll();
  }
  return epoll_.get();
}

void Call::Impl::refresh_epoll() {
  if (!epoll_) return;
  for (const int fd : watched_) ::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, fd, nullptr);  // may be closed
  watched_.clear();
  const auto watch = [&](int fd) {
    epoll_event event{};
    event.events = EPOLLIN;
    sys::check(::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event), "epoll_ctl");
    watched_.push_back(fd);
  };
  for (const pollfd& fd : interest()) watch(fd.fd);
  // steady_clock is CLOCK_MONOTONIC, as the timer. A call that has ended is ready at once.
  const auto since_boot = finished_ ? std::chrono::nanoseconds(1)
                                    : std::chrono::nanoseconds(state_.deadline().time_since_epoch());
  if (finished_ || state_.phase() != Phase::kEnding) {
    itimerspec when{};
    when.it_value.tv_sec = since_boot.count() / 1'000'000'000;
    when.it_value.tv_nsec = since_boot.count() % 1'000'000'000;
    sys::check(::timerfd_settime(timer_.get(), TFD_TIMER_ABSTIME, &when, nullptr), "timerfd_settime");
    watch(timer_.get());
  }
}

}  // namespace pyplaypen
