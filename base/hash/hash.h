#ifndef OPTRAIL_BASE_HASH_HASH_H_
#define OPTRAIL_BASE_HASH_HASH_H_

// Hashes of text that stay what they are: ids of spaces, configs and kernels in
// stored data are made of them, so the function must never change.
//
//   const std::string id = Fingerprint(space.CanonicalText());   // 16 digits
//
// Hash canonical text, never serialised protobufs, whose bytes are not stable.
// They tell different texts apart by accident-proof odds (a collision among a
// million texts: 3 in 10^8), not against somebody who wants one to collide.

#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"

namespace optrail {

// 64-bit FNV-1a (Fowler, Noll, Vo) with the finaliser of MurmurHash3 (fmix64)
// on top, which spreads the last bytes over all bits.
uint64_t StableHash(absl::string_view text);

// StableHash in 16 lower-case hexadecimal digits.
std::string Fingerprint(absl::string_view text);

}  // namespace optrail

#endif  // OPTRAIL_BASE_HASH_HASH_H_
