#include "runtime/sys/channel.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <array>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "runtime/sys/error.h"
#include "runtime/sys/proc.h"

namespace pyplaypen::sys {
namespace {

bool is_cloexec(int fd) { return (::fcntl(fd, F_GETFD) & FD_CLOEXEC) != 0; }

bool same_file(int a, int b) {
  struct stat one;
  struct stat two;
  return ::fstat(a, &one) == 0 && ::fstat(b, &two) == 0 && one.st_ino == two.st_ino &&
         one.st_dev == two.st_dev;
}

TEST(Channel, DescriptorsAreBornCloexec) {
  const auto [a, b] = socket_pair();
  const auto [read_end, write_end] = pipe_pair();
  for (const UniqueFd* fd : {&a, &b, &read_end, &write_end}) EXPECT_TRUE(is_cloexec(fd->get()));
}

TEST(Channel, BytesArriveAppended) {
  const auto [a, b] = socket_pair();
  ASSERT_TRUE(send_all(a.get(), "hello"));
  std::string text = "> ";
  EXPECT_EQ(receive(b.get(), text, nullptr, true), Received::kBytes);
  EXPECT_EQ(text, "> hello");
  EXPECT_EQ(receive(b.get(), text, nullptr, false), Received::kWouldBlock);
  EXPECT_EQ(text, "> hello");
}

TEST(Channel, DescriptorsRideOnTheFirstByte) {
  const auto [a, b] = socket_pair();
  const auto [read_end, write_end] = pipe_pair();
  const std::array<int, 2> fds = {read_end.get(), write_end.get()};
  ASSERT_TRUE(send_all(a.get(), "x", fds));
  std::string text;
  std::vector<UniqueFd> received;
  EXPECT_EQ(receive(b.get(), text, &received, true), Received::kBytes);
  ASSERT_EQ(received.size(), 2U);
  EXPECT_TRUE(same_file(received[0].get(), read_end.get()));
  EXPECT_NE(received[0].get(), read_end.get());
  EXPECT_TRUE(is_cloexec(received[0].get()));
  ASSERT_EQ(::write(received[1].get(), "y", 1), 1);
  char byte = 0;
  EXPECT_EQ(::read(read_end.get(), &byte, 1), 1);
}

TEST(Channel, AsManyDescriptorsAsAMessageTakes) {
  const auto [a, b] = socket_pair();
  const std::vector<int> fds(kMaxFdsPerMessage, a.get());
  ASSERT_TRUE(send_all(a.get(), "x", fds));
  std::string text;
  std::vector<UniqueFd> received;
  receive(b.get(), text, &received, true);
  EXPECT_EQ(received.size(), kMaxFdsPerMessage);
}

TEST(Channel, DescriptorsNobodyAskedForAreClosed) {
  const auto [a, b] = socket_pair();
  const std::vector<int> before = open_fds();
  const std::array<int, 1> fds = {a.get()};
  ASSERT_TRUE(send_all(a.get(), "x", fds));
  std::string text;
  EXPECT_EQ(receive(b.get(), text, nullptr, true), Received::kBytes);
  EXPECT_EQ(open_fds(), before);
}

TEST(Channel, MoreThanTheBufferHolds) {
  const auto [a, b] = socket_pair();
  const std::string sent(5'000'000, 'x');
  std::thread sender([&, &a = a] { EXPECT_TRUE(send_all(a.get(), sent)); });
  std::string text;
  while (text.size() < sent.size())
    ASSERT_EQ(receive(b.get(), text, nullptr, true), Received::kBytes);
  sender.join();
  EXPECT_EQ(text, sent);
}

TEST(Channel, ANonBlockingSenderWaitsToo) {
  const auto [a, b] = socket_pair();
  set_nonblocking(a.get());
  const std::string sent(1'000'000, 'x');
  std::thread sender([&, &a = a] { EXPECT_TRUE(send_all(a.get(), sent)); });
  std::string text;
  while (text.size() < sent.size())
    ASSERT_EQ(receive(b.get(), text, nullptr, true), Received::kBytes);
  sender.join();
}

TEST(Channel, AGonePeerIsAnEndAndNoSignal) {
  auto [a, b] = socket_pair();
  b.reset();
  EXPECT_FALSE(send_all(a.get(), "x"));
  std::string text;
  EXPECT_EQ(receive(a.get(), text, nullptr, true), Received::kEnd);
}

TEST(Channel, APeerThatLeavesUnreadBytesIsAnEnd) {
  auto [a, b] = socket_pair();
  ASSERT_TRUE(send_all(a.get(), "never read"));
  b.reset();  // the kernel resets the connection
  std::string text;
  EXPECT_EQ(receive(a.get(), text, nullptr, true), Received::kEnd);
}

TEST(Channel, WhatIsNoSocketIsAnError) {
  const auto [read_end, write_end] = pipe_pair();
  std::string text;
  EXPECT_THROW(receive(read_end.get(), text, nullptr, true), Error);
  EXPECT_EQ(text, "");
  EXPECT_THROW(send_all(write_end.get(), "x"), Error);
}

TEST(ReadPipe, TakesNoMoreThanTheBufferHolds) {
  auto [read_end, write_end] = pipe_pair();
  set_nonblocking(read_end.get());
  std::array<char, 4> buffer;
  std::string_view bytes;
  EXPECT_EQ(read_pipe(read_end.get(), buffer, bytes), Received::kWouldBlock);
  ASSERT_EQ(::write(write_end.get(), "abcdef", 6), 6);
  EXPECT_EQ(read_pipe(read_end.get(), buffer, bytes), Received::kBytes);
  EXPECT_EQ(bytes, "abcd");
  write_end.reset();
  EXPECT_EQ(read_pipe(read_end.get(), buffer, bytes), Received::kBytes);
  EXPECT_EQ(bytes, "ef");
  EXPECT_EQ(read_pipe(read_end.get(), buffer, bytes), Received::kEnd);
}

}  // namespace
}  // namespace pyplaypen::sys
