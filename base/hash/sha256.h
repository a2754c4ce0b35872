#ifndef OPTRAIL_BASE_HASH_SHA256_H_
#define OPTRAIL_BASE_HASH_SHA256_H_

// SHA-256, where two things must be known to be equal whoever made them:
//
//   const std::string digest = Sha256Hex(bytes);
//
// Ids and caches take base/hash/hash.h, which is quicker.

#include <string>

#include "absl/strings/string_view.h"

namespace optrail {

// 64 lower-case hexadecimal digits.
std::string Sha256Hex(absl::string_view bytes);

}  // namespace optrail

#endif  // OPTRAIL_BASE_HASH_SHA256_H_
