#include "base/hash.h"

#include <algorithm>

#include "absl/strings/ascii.h"
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

uint64_t CombineHash(uint64_t hash, absl::string_view part) {
  const std::string length = absl::StrFormat("%d:", part.size());
  return Finalise(Fnv1a(Fnv1a(hash ^ kOffsetBasis, length), part));
}

std::string Fingerprint(absl::string_view text) {
  return absl::StrFormat("%016x", StableHash(text));
}

bool IsFingerprint(absl::string_view text) {
  return text.size() == 16 && std::all_of(text.begin(), text.end(), [](char c) {
           return absl::ascii_isdigit(static_cast<unsigned char>(c)) ||
                  (c >= 'a' && c <= 'f');
         });
}

}  // namespace optrail
