#include "runtime/wire/frame.h"

#include <gtest/gtest.h>

namespace pyplaypen::wire {
namespace {

TEST(FrameReader, GivesWhatWasEncodedWholeFramesOnly) {
  const std::string stream =
      encode_frame(FrameType::kRequest, "abc") + encode_frame(FrameType::kReap, "");
  FrameReader reader;
  std::vector<std::pair<FrameType, std::string>> seen;
  for (const char byte : stream) {
    reader.buffer().push_back(byte);
    while (const auto frame = reader.next()) seen.emplace_back(frame->type, std::string(frame->payload));
  }
  const std::vector<std::pair<FrameType, std::string>> expected = {{FrameType::kRequest, "abc"},
                                                                   {FrameType::kReap, ""}};
  EXPECT_EQ(seen, expected);
  EXPECT_TRUE(reader.empty());
  EXPECT_EQ(reader.error(), "");
}

TEST(FrameReader, ManySmallFramesDoNotGrowTheBuffer) {
  FrameReader reader;
  const std::string frame = encode_frame(FrameType::kReaped, std::string(100, 'x'));
  for (int i = 0; i < 10'000; ++i) {
    reader.buffer() += frame;
    ASSERT_TRUE(reader.next());
  }
  EXPECT_FALSE(reader.next());
  EXPECT_LT(reader.buffer().capacity(), 10 * frame.size());
}

TEST(FrameReader, RefusesAnotherBeginning) {
  FrameReader reader;
  reader.buffer() = "HTTP/1.1 200 OK\r\n";
  EXPECT_FALSE(reader.next());
  EXPECT_EQ(reader.error(), "the frame does not begin as a frame does");
  // For good, whatever follows.
  reader.buffer() = encode_frame(FrameType::kReap, "");
  EXPECT_FALSE(reader.next());
}

TEST(FrameReader, RefusesAnotherVersion) {
  FrameReader reader;
  reader.buffer() = encode_frame(FrameType::kReport, "x");
  reader.buffer()[4] = 9;
  EXPECT_FALSE(reader.next());
  EXPECT_EQ(reader.error(), "the frame is of version 9, not 1");
}

TEST(FrameReader, RefusesAnUnknownType) {
  for (const char type : {char{0}, char{99}}) {
    FrameReader reader;
    reader.buffer() = encode_frame(FrameType::kReport, "x");
    reader.buffer()[6] = type;
    EXPECT_FALSE(reader.next());
    EXPECT_EQ(reader.error(), "the frame has the unknown type " + std::to_string(type));
  }
}

TEST(FrameReader, TakesAFrameOfExactlyTheLimitAndNoByteMore) {
  constexpr size_t kLimit = 100;
  FrameReader at(kLimit);
  at.buffer() = encode_frame(FrameType::kReport, std::string(kLimit - kHeaderBytes, 'x'));
  EXPECT_TRUE(at.next());

  FrameReader above(kLimit);
  above.buffer() = encode_frame(FrameType::kReport, std::string(kLimit - kHeaderBytes + 1, 'x'));
  EXPECT_FALSE(above.next());
  EXPECT_EQ(above.error(), "the frame of 101 bytes is larger than 100");
}

TEST(FrameReader, AnAnnouncedGigabyteIsRefusedByItsHeader) {
  FrameReader reader(2'000'000);
  reader.buffer() = encode_frame(FrameType::kReport, "").substr(0, 8) + std::string("\xff\xff\xff\xff", 4);
  EXPECT_FALSE(reader.next());
  EXPECT_NE(reader.error(), "");
  EXPECT_EQ(reader.buffer().capacity(), std::string().capacity());
}

}  // namespace
}  // namespace pyplaypen::wire
