#include "runtime/wire/frame.h"

#include <bit>
#include <cstring>

#include "runtime/sys/invariant.h"

namespace pyplaypen::wire {
namespace {

static_assert(std::endian::native == std::endian::little,
              "the frames are little-endian, as x86-64 and aarch64 are");

template <typename Number>
Number number_at(std::string_view bytes, size_t at) {
  Number value;
  std::memcpy(&value, bytes.data() + at, sizeof value);
  return value;
}

template <typename Number>
void append_number(std::string& to, Number value) {
  char bytes[sizeof value];
  std::memcpy(bytes, &value, sizeof value);
  to.append(bytes, sizeof bytes);
}

}  // namespace

std::string encode_frame(FrameType type, std::string_view payload) {
  PYPLAYPEN_INVARIANT(payload.size() <= UINT32_MAX);
  std::string frame;
  frame.reserve(kHeaderBytes + payload.size());
  append_number(frame, kMagic);
  append_number(frame, kVersion);
  append_number(frame, static_cast<uint16_t>(type));
  append_number(frame, static_cast<uint32_t>(payload.size()));
  frame.append(payload);
  return frame;
}

std::optional<Frame> FrameReader::next() {
  if (!error_.empty()) return std::nullopt;
  if (consumed_ == buffer_.size()) {
    buffer_.clear();
    consumed_ = 0;
  } else if (consumed_ > buffer_.size() / 2) {
    buffer_.erase(0, consumed_);
    consumed_ = 0;
  }
  const std::string_view rest = std::string_view(buffer_).substr(consumed_);
  if (rest.size() < kHeaderBytes) return std::nullopt;
  const auto fail = [&](std::string sentence) -> std::optional<Frame> {
    error_ = std::move(sentence);
    buffer_.clear();
    buffer_.shrink_to_fit();
    consumed_ = 0;
    return std::nullopt;
  };
  if (number_at<uint32_t>(rest, 0) != kMagic) return fail("the frame does not begin as a frame does");
  if (const auto version = number_at<uint16_t>(rest, 4); version != kVersion)
    return fail("the frame is of version " + std::to_string(version) + ", not " +
                std::to_string(kVersion));
  const auto type = number_at<uint16_t>(rest, 6);
  if (type == 0 || type > static_cast<uint16_t>(kLastFrameType))
    return fail("the frame has the unknown type " + std::to_string(type));
  const size_t length = number_at<uint32_t>(rest, 8);
  if (length + kHeaderBytes > max_frame_)
    return fail("the frame of " + std::to_string(length + kHeaderBytes) + " bytes is larger than " +
                std::to_string(max_frame_));
  if (rest.size() < kHeaderBytes + length) return std::nullopt;
  consumed_ += kHeaderBytes + length;
  return Frame{static_cast<FrameType>(type), rest.substr(kHeaderBytes, length)};
}

}  // namespace pyplaypen::wire
