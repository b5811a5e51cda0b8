// Messages <-> payload bytes. Fields stand in the order of the struct: numbers little-endian, a text
// as its length (4 bytes) and its bytes, an optional as a byte 0 or 1 and the value. Decoding checks
// every length against what is there and refuses leftovers.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "runtime/wire/frame.h"
#include "runtime/wire/messages.h"

namespace pyplaypen::wire {

std::string encode(const Request& message);
std::string encode(const Report& message);
std::string encode(const Setup& message);
std::string encode(const StartPython& message);
std::string encode(const Ready& message);
std::string encode(const OpenKeeper& message);
std::string encode(const CloseKeeper& message);
std::string encode(const KeeperReady& message);
std::string encode(const Spawn& message);
std::string encode(const Launch& message);
std::string encode(const Spawned& message);
std::string encode(const LeaderEnded& message);
std::string encode(const SpareReady& message);
std::string encode(const Reap& message);
std::string encode(const Reaped& message);

// The payload as a message, or nothing when it is not one. Allocates no more than
// a small multiple of the payload.
template <typename Message>
std::optional<Message> decode(std::string_view payload);

template <typename Message>
struct FrameTypeOf;
template <> struct FrameTypeOf<Request> { static constexpr FrameType value = FrameType::kRequest; };
template <> struct FrameTypeOf<Report> { static constexpr FrameType value = FrameType::kReport; };
template <> struct FrameTypeOf<Setup> { static constexpr FrameType value = FrameType::kSetup; };
template <> struct FrameTypeOf<StartPython> { static constexpr FrameType value = FrameType::kStartPython; };
template <> struct FrameTypeOf<Ready> { static constexpr FrameType value = FrameType::kReady; };
template <> struct FrameTypeOf<OpenKeeper> { static constexpr FrameType value = FrameType::kOpenKeeper; };
template <> struct FrameTypeOf<CloseKeeper> { static constexpr FrameType value = FrameType::kCloseKeeper; };
template <> struct FrameTypeOf<KeeperReady> { static constexpr FrameType value = FrameType::kKeeperReady; };
template <> struct FrameTypeOf<Spawn> { static constexpr FrameType value = FrameType::kSpawn; };
template <> struct FrameTypeOf<Launch> { static constexpr FrameType value = FrameType::kLaunch; };
template <> struct FrameTypeOf<Spawned> { static constexpr FrameType value = FrameType::kSpawned; };
template <> struct FrameTypeOf<LeaderEnded> { static constexpr FrameType value = FrameType::kLeaderEnded; };
template <> struct FrameTypeOf<SpareReady> { static constexpr FrameType value = FrameType::kSpareReady; };
template <> struct FrameTypeOf<Reap> { static constexpr FrameType value = FrameType::kReap; };
template <> struct FrameTypeOf<Reaped> { static constexpr FrameType value = FrameType::kReaped; };

// A whole frame with the message in it.
template <typename Message>
std::string framed(const Message& message) {
  return encode_frame(FrameTypeOf<Message>::value, encode(message));
}

// The message of a frame, or nothing when the frame is of another type or does not decode.
template <typename Message>
std::optional<Message> message_in(const Frame& frame) {
  if (frame.type != FrameTypeOf<Message>::value) return std::nullopt;
  return decode<Message>(frame.payload);
}

}  // namespace pyplaypen::wire
