#include "base/hash/hash.h"

#include "absl/strings/str_format.h"

namespace optrail {
namespace {

constexpr uint64_t kOffsetBasis = 0xcbf29ce484222325;
constexpr uint64_t kPrime = 0x100000001b3;

uint64_t Fnv1a(uint64_t hash, absl::string_view text) {
  for (const char c : text) {
    hash = (hash ^ static_cast<unsigned char>(c)) * kPrime;
  }
  return hash;
}

uint64_t Finalise(uint64_t hash) {
  hash = (hash ^ (hash >> 33)) * 0xff51afd7ed558ccd;
  hash = (hash ^ (hash >> 33)) * 0xc4ceb9fe1a85ec53;
  return hash ^ (hash >> 33);
}

}  // namespace

uint64_t StableHash(absl::string_view text) {
  return Finalise(Fnv1a(kOffsetBasis, text));
}

std::string Fingerprint(absl::string_view text) {
  return absl::StrFormat("%016x", StableHash(text));
}

}  // namespace optrail
