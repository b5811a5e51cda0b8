#include "runtime/sys/hash.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>

namespace pyplaypen::sys {
namespace {

// FIPS 180-4, examples of NIST's cryptographic standards programme.
constexpr char kOfNothing[] = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
constexpr char kOfAbc[] = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
constexpr char kOfAMillionA[] = "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0";

TEST(Sha256, KnownAnswers) {
  EXPECT_EQ(Sha256().hex(), kOfNothing);
  Sha256 abc;
  abc.update("abc");
  EXPECT_EQ(abc.hex(), kOfAbc);
  Sha256 million;
  for (int i = 0; i < 1000; ++i) million.update(std::string(1000, 'a'));
  EXPECT_EQ(million.hex(), kOfAMillionA);
}

TEST(Sha256, MoreMayFollowALook) {
  Sha256 hash;
  hash.update("ab");
  EXPECT_NE(hash.hex(), kOfAbc);
  hash.update("");
  hash.update("c");
  EXPECT_EQ(hash.hex(), kOfAbc);
  EXPECT_EQ(hash.hex(), kOfAbc);
}

TEST(Sha256, MovesItsState) {
  Sha256 hash;
  hash.update("a");
  Sha256 moved(std::move(hash));
  moved.update("bc");
  EXPECT_EQ(moved.hex(), kOfAbc);
}

}  // namespace
}  // namespace pyplaypen::sys
