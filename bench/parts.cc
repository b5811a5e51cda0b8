#include "bench/parts.h"

#include <stdexcept>
#include <string>

#include "pyplaypen/limits.h"
#include "runtime/sys/hash.h"
#include "runtime/wire/codec.h"
#include "runtime/wire/json_text.h"

namespace pyplaypen::bench {
namespace {

// A clock is too coarse for one alone; a sample is the mean of these.
constexpr int kAtOnce = 20;

template <typename Work>
Item part(const Mode& mode, const std::string& name, Work work) {
  return {"part/" + name, Unit::kMicroseconds, mode.scaled(50, 10), [work] {
            const auto begin = Clock::now();
            for (int i = 0; i < kAtOnce; ++i) work();
            return microseconds_since(begin) / kAtOnce;
          }};
}

std::string list_of_numbers(size_t bytes) {
  std::string text = "[0";
  for (int i = 1; text.size() < bytes; ++i) text += ", " + std::to_string(i * 7);
  return text + "]";
}

void check(bool holds) {
  if (!holds) throw std::runtime_error("a part gave a wrong result");
}

}  // namespace

void add_parts(Plan& plan, const Mode& mode) {
  wire::Request request;
  request.request_id = "0123456789abcdef0123456789abcdef";
  request.code = "1+1";
  request.extra_json = "{}";
  wire::Report report;
  report.value_json = "2";
  plan.items.push_back(part(mode, "check_limits", [] { check_limits(Limits()); }));
  plan.items.push_back(part(mode, "request_encode", [request] { check(!wire::framed(request).empty()); }));
  plan.items.push_back(part(mode, "request_decode", [payload = wire::encode(request)] {
    check(wire::decode<wire::Request>(payload).has_value());
  }));
  plan.items.push_back(part(mode, "report_decode", [payload = wire::encode(report)] {
    check(wire::decode<wire::Report>(payload).has_value());
  }));
  constexpr size_t kText = 100'000;
  plan.items.push_back(part(mode, "json_check_100kB", [text = list_of_numbers(kText)] {
    check(!wire::json_error(text, 64));
  }));
  plan.items.push_back(part(mode, "sha256_100kB", [text = std::string(kText, 'x')] {
    sys::Sha256 hash;
    hash.update(text);
    check(hash.hex().size() == 64);
  }));
}

}  // namespace pyplaypen::bench
