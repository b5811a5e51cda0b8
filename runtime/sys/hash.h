// SHA-256 of a stream, by libcrypto.
#pragma once

#include <memory>
#include <string>
#include <string_view>

namespace pyplaypen::sys {

// Not safe for use from two threads at once.
class Sha256 {
 public:
  Sha256();
  ~Sha256();
  Sha256(Sha256&&) noexcept;
  Sha256& operator=(Sha256&&) noexcept;

  void update(std::string_view bytes);
  // 64 lower-case hexadecimal digits of everything given so far; more may follow.
  [[nodiscard]] std::string hex() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace pyplaypen::sys
