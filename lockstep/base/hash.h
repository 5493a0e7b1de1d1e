// SHA-256 (FIPS 180-4), computed by OpenSSL.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

namespace lockstep {

// A hash of the bytes given to update(), in pieces of any size. One thread.
class Sha256 {
 public:
  Sha256();
  ~Sha256();
  Sha256(Sha256&&) noexcept;
  Sha256& operator=(Sha256&&) noexcept;

  void update(const void* data, size_t bytes);
  void update(std::string_view text) { update(text.data(), text.size()); }
  std::string hex();  // 64 lower-case hexadecimal digits; ends the hash, no update() may follow

 private:
  struct Context;
  std::unique_ptr<Context> context_;
};

std::string sha256_hex(std::string_view bytes);

}  // namespace lockstep
