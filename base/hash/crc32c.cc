#include "base/hash/crc32c.h"

#include <array>
#include <cstddef>
#include <cstring>

namespace optrail {
namespace {

// The reflected Castagnoli polynomial.
constexpr uint32_t kPolynomial = 0x82f63b78;

constexpr std::array<uint32_t, 256> MakeTable() {
  std::array<uint32_t, 256> table{};
  for (uint32_t i = 0; i < 256; ++i) {
    uint32_t crc = i;
    for (int bit = 0; bit < 8; ++bit) {
      crc = (crc >> 1) ^ ((crc & 1) ? kPolynomial : 0);
    }
    table[i] = crc;
  }
  return table;
}

constexpr std::array<uint32_t, 256> kTable = MakeTable();

#if defined(__x86_64__) && defined(__GNUC__)
__attribute__((target("sse4.2"))) uint32_t ExtendCrc32cSse42(
    uint32_t crc, absl::string_view data) {
  uint64_t state = ~crc;
  const char* p = data.data();
  size_t n = data.size();
  for (; n >= 8; n -= 8, p += 8) {
    uint64_t word;
    std::memcpy(&word, p, 8);
    state = __builtin_ia32_crc32di(state, word);
  }
  uint32_t tail = static_cast<uint32_t>(state);
  for (; n > 0; --n, ++p) {
    tail = __builtin_ia32_crc32qi(tail, static_cast<unsigned char>(*p));
  }
  return ~tail;
}
#endif

}  // namespace

uint32_t ExtendCrc32cPortable(uint32_t crc, absl::string_view data) {
  crc = ~crc;
  for (const char c : data) {
    crc = kTable[(crc ^ static_cast<unsigned char>(c)) & 0xff] ^ (crc >> 8);
  }
  return ~crc;
}

uint32_t ExtendCrc32c(uint32_t crc, absl::string_view data) {
#if defined(__x86_64__) && defined(__GNUC__)
  static const bool has_instruction = __builtin_cpu_supports("sse4.2");
  if (has_instruction) return ExtendCrc32cSse42(crc, data);
#endif
  return ExtendCrc32cPortable(crc, data);
}

}  // namespace optrail
