#ifndef OPTRAIL_CARBON_SIGNATURE_H_
#define OPTRAIL_CARBON_SIGNATURE_H_

// Ed25519 (RFC 8032), by OpenSSL: signatures over the SHA-256 of a certificate.
//
//   const std::string digest = Sha256Hex(bytes);
//   OPTRAIL_ASSIGN_OR_RETURN(const Signature signature,
//                            Sign(digest, private_key_pem));
//   OPTRAIL_RETURN_IF_ERROR(CheckSignature(digest, signature));
//
// Keys are PEM, as `openssl genpkey -algorithm ed25519` writes them.

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace optrail::carbon {

struct Signature {
  std::string public_key;  // 32 bytes in hexadecimal
  std::string value;       // 64 bytes in hexadecimal
};

// InvalidArgument where the key is no Ed25519 private key.
absl::StatusOr<Signature> Sign(absl::string_view message,
                               const std::string& private_key_pem);
// DataLoss if the signature is not that of the message by that key.
absl::Status CheckSignature(absl::string_view message,
                            const Signature& signature);
// The key that Signature::public_key has, of a public or private key in PEM.
absl::StatusOr<std::string> PublicKeyOf(const std::string& pem);

}  // namespace optrail::carbon

#endif  // OPTRAIL_CARBON_SIGNATURE_H_
