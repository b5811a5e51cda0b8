#include "supervisor/output.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cerrno>
#include <string>

#include "runtime/sys/channel.h"
#include "runtime/sys/signals.h"
#include "supervisor/output_pump.h"
#include "tests/unit/read_more.h"

namespace pyplaypen::supervisor {
namespace {

constexpr char kHashOfAbc[] = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";

TEST(Capture, KeepsAllWithinTheLimit) {
  Capture capture(3);
  capture.add("ab");
  capture.add("c");
  const Output output = capture.take();
  EXPECT_EQ(output.bytes, "abc");
  EXPECT_EQ(output.total_bytes, 3U);
  EXPECT_FALSE(output.truncated);
  EXPECT_EQ(output.sha256, kHashOfAbc);
}

TEST(Capture, CutsAndMarksOnceAndHashesAll) {
  Capture capture(2);
  capture.add("a");
  capture.add("b");
  capture.add("c");
  EXPECT_TRUE(capture.truncated());
  capture.add("");
  const Output output = capture.take();
  EXPECT_EQ(output.bytes, "ab" + std::string(kTruncationMark));
  EXPECT_EQ(output.total_bytes, 3U);
  EXPECT_TRUE(output.truncated);
  EXPECT_EQ(output.sha256, kHashOfAbc);
}

TEST(Capture, NothingIsKeptUnderALimitOfNothing) {
  Capture capture(0, Hashing::kNone);
  EXPECT_EQ(capture.pass(""), "");
  EXPECT_EQ(capture.pass("x"), kTruncationMark);
  EXPECT_EQ(capture.pass("y"), "");
  EXPECT_EQ(capture.take().sha256, "");
}

TEST(Capture, TheMarkIsShortAndSaysTruncated) {
  EXPECT_LE(kTruncationMark.size(), 32U);
  EXPECT_NE(kTruncationMark.find("truncated"), std::string_view::npos);
}

void put(int fd, std::string_view bytes) {
  ASSERT_EQ(::write(fd, bytes.data(), bytes.size()), static_cast<ssize_t>(bytes.size()));
}

TEST(OutputPump, KeepsWithoutADestination) {
  auto [source, sink] = sys::pipe_pair();
  OutputPump pump(std::move(source), Capture(100), -1);
  EXPECT_FALSE(pump.advance()) << "nothing there, and it did not wait";
  put(sink.get(), "bytes");
  EXPECT_TRUE(pump.advance());
  EXPECT_FALSE(pump.done());
  EXPECT_TRUE(pump.mid_line());
  sink.reset();
  EXPECT_FALSE(pump.advance());
  EXPECT_TRUE(pump.done());
  EXPECT_EQ(pump.take().bytes, "bytes");
}

TEST(OutputPump, AStalledReaderIsNotWaitedFor) {
  auto [source, sink] = sys::pipe_pair();
  auto [reader, destination] = sys::pipe_pair();
  sys::set_nonblocking(sink.get());
  OutputPump pump(std::move(source), Capture(uint64_t{1} << 40, Hashing::kNone), destination.get());
  const std::string block(65536, 'x');
  uint64_t put_in = 0;
  for (int quiet = 0; quiet < 3;) {
    const ssize_t written = ::write(sink.get(), block.data(), block.size());
    if (written > 0) put_in += static_cast<uint64_t>(written);
    quiet = pump.advance() || written > 0 ? 0 : quiet + 1;
  }
  EXPECT_EQ(pump.interest().events, POLLOUT) << "it waits for the reader";
  // The descriptor that others share is as blocking as it was.
  EXPECT_EQ(::fcntl(destination.get(), F_GETFL) & O_NONBLOCK, 0);
  sink.reset();
  sys::set_nonblocking(reader.get());
  std::string got;
  while (!pump.done()) {
    testing::read_more(reader.get(), got);
    pump.advance();
  }
  testing::read_rest(reader.get(), got);
  EXPECT_EQ(got.size(), put_in);
}

TEST(OutputPump, AReaderWhoIsGoneEndsIt) {
  const sys::SignalFd no_sigpipe({SIGPIPE});
  auto [source, sink] = sys::pipe_pair();
  auto [reader, destination] = sys::pipe_pair();
  OutputPump pump(std::move(source), Capture(100), destination.get());
  reader.reset();
  put(sink.get(), "bytes");
  EXPECT_TRUE(pump.advance());
  EXPECT_EQ(pump.delivery_error(), EPIPE);
  EXPECT_TRUE(pump.done());
  EXPECT_EQ(::write(sink.get(), "x", 1), -1) << "the target is told as if it wrote there itself";
  EXPECT_EQ(errno, EPIPE);
  timespec now{};
  sigset_t pipe;
  sigemptyset(&pipe);
  sigaddset(&pipe, SIGPIPE);
  while (::sigtimedwait(&pipe, nullptr, &now) > 0) {
  }
}

TEST(OutputPump, AFullDiskIsTold) {
  auto [source, sink] = sys::pipe_pair();
  const sys::UniqueFd full(::open("/dev/full", O_WRONLY | O_CLOEXEC));
  OutputPump pump(std::move(source), Capture(100), full.get());
  put(sink.get(), "bytes");
  EXPECT_TRUE(pump.advance());
  EXPECT_EQ(pump.delivery_error(), ENOSPC);
}

}  // namespace
}  // namespace pyplaypen::supervisor
