#ifndef OPTRAIL_BASE_HASH_CRC32C_H_
#define OPTRAIL_BASE_HASH_CRC32C_H_

// CRC-32C (Castagnoli), the checksum of iSCSI (RFC 3720, appendix B.4), ext4
// and many record formats. It detects accidents, not attacks.

#include <cstdint>

#include "absl/strings/string_view.h"

namespace optrail {

// The checksum of all that came before (`crc`, 0 at the start) and `data`.
// Uses the processor's instruction where there is one.
uint32_t ExtendCrc32c(uint32_t crc, absl::string_view data);

inline uint32_t Crc32c(absl::string_view data) { return ExtendCrc32c(0, data); }

// The same from a table; for tests and machines without the instruction.
uint32_t ExtendCrc32cPortable(uint32_t crc, absl::string_view data);

}  // namespace optrail

#endif  // OPTRAIL_BASE_HASH_CRC32C_H_
