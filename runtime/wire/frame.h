// The frames that all channels carry: a fixed header, then a payload of the announced length.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace pyplaypen::wire {

enum class FrameType : uint16_t {
  kSetup = 1,
  kStartPython,
  kReady,
  kOpenKeeper,
  kKeeperReady,
  kSpawn,
  kLaunch,
  kSpawned,
  kLeaderEnded,
  kSpareReady,
  kRequest,
  kReport,
  kReap,
  kReaped,
  kCloseKeeper,
};
inline constexpr FrameType kLastFrameType = FrameType::kCloseKeeper;

inline constexpr uint32_t kMagic = 0x4e505950;  // "PYPN", little-endian
inline constexpr uint16_t kVersion = 1;
inline constexpr size_t kHeaderBytes = 12;      // magic 4, version 2, type 2, payload length 4
// Between our own processes; a report has the request's result_frame_bytes instead.
inline constexpr size_t kMaxTrustedFrame = size_t{1} << 30;

struct Frame {
  FrameType type;
  std::string_view payload;  // into the reader's buffer: valid until its next change
};

std::string encode_frame(FrameType type, std::string_view payload);

// Cuts frames out of a byte stream. Holds no more than `max_frame` bytes (header included) and what
// one read adds, whatever the peer announces.
class FrameReader {
 public:
  explicit FrameReader(size_t max_frame = kMaxTrustedFrame) : max_frame_(max_frame) {}

  // Where the next bytes of the stream are to be appended.
  std::string& buffer() { return buffer_; }

  // The next whole frame, or nothing yet. A broken stream gives nothing for good: see error().
  std::optional<Frame> next();

  // One sentence once the stream is broken; empty before.
  const std::string& error() const { return error_; }

  bool empty() const { return consumed_ == buffer_.size(); }

 private:
  size_t max_frame_;
  std::string buffer_;
  size_t consumed_ = 0;
  std::string error_;
};

}  // namespace pyplaypen::wire
