// What a call's process may send: bytes into frames, frames into messages.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "runtime/sys/invariant.h"
#include "runtime/wire/codec.h"

namespace {

constexpr size_t kMaxFrame = 4096;
constexpr size_t kMaxRead = 256;

using namespace pyplaypen::wire;

// What decodes is what its own encoding says; what does not decode is refused without a trace.
template <typename Message>
void check(const Frame& frame) {
  if (const auto message = decode<Message>(frame.payload)) {
    const std::string again = encode(*message);
    const auto back = decode<Message>(again);
    // By their bytes: a limit may be NaN, which equals nothing.
    PYPLAYPEN_INVARIANT(back && encode(*back) == again);
  }
}

}  // namespace

// The first byte says in reads of which size the rest arrives.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const size_t step = 1 + data[0] % kMaxRead;
  std::string_view rest(reinterpret_cast<const char*>(data) + 1, size - 1);
  FrameReader reader(kMaxFrame);
  while (!rest.empty()) {
    const std::string_view read = rest.substr(0, step);
    rest.remove_prefix(read.size());
    reader.buffer() += read;
    while (const auto frame = reader.next()) {
      PYPLAYPEN_INVARIANT(frame->payload.size() + kHeaderBytes <= kMaxFrame);
      check<Request>(*frame);
      check<Report>(*frame);
      check<Setup>(*frame);
      check<Launch>(*frame);
      check<Spawned>(*frame);
      check<SpareReady>(*frame);
      check<KeeperReady>(*frame);
      check<CloseKeeper>(*frame);
      check<Reaped>(*frame);
    }
    // No growth beyond a frame and a read, whatever was announced (a string grows by doubling).
    PYPLAYPEN_INVARIANT(reader.buffer().capacity() <= 2 * (kMaxFrame + kMaxRead));
    if (!reader.error().empty()) break;
  }
  return 0;
}
