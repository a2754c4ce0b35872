#include "carbon/signature.h"

#include <openssl/bio.h>
#include <openssl/evp.h>
#include <openssl/pem.h>

#include <memory>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "base/status_macros.h"

namespace optrail::carbon {
namespace {

using Key = std::unique_ptr<EVP_PKEY, decltype(&EVP_PKEY_free)>;
using Bio = std::unique_ptr<BIO, decltype(&BIO_free)>;
using Context = std::unique_ptr<EVP_MD_CTX, decltype(&EVP_MD_CTX_free)>;

constexpr size_t kKeyBytes = 32, kSignatureBytes = 64;

// A key that has a passphrase is refused: nobody is asked for one.
int NoPassphrase(char*, int, int, void*) { return -1; }

Bio Open(const std::string& pem) {
  return Bio(BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size())),
             BIO_free);
}

absl::Status NoKey(absl::string_view kind) {
  return absl::InvalidArgumentError(
      absl::StrCat("no Ed25519 ", kind,
                   " key without a passphrase, expected PEM; next: openssl "
                   "genpkey -algorithm ed25519 -out key.pem"));
}

bool IsEd25519(const Key& key) {
  return key != nullptr && EVP_PKEY_id(key.get()) == EVP_PKEY_ED25519;
}

Key PrivateKey(const std::string& pem) {
  const Bio bio = Open(pem);
  return Key(PEM_read_bio_PrivateKey(bio.get(), nullptr, NoPassphrase, nullptr),
             EVP_PKEY_free);
}

absl::StatusOr<std::string> RawPublic(const Key& key) {
  unsigned char raw[kKeyBytes];
  size_t size = sizeof(raw);
  if (EVP_PKEY_get_raw_public_key(key.get(), raw, &size) != 1 ||
      size != kKeyBytes) {
    return NoKey("public");
  }
  return absl::BytesToHexString(
      absl::string_view(reinterpret_cast<char*>(raw), size));
}

// HexStringToBytes takes anything for a digit. Of two spellings of a signature
// one was changed, so only lower case is one.
absl::StatusOr<std::string> FromHex(const std::string& hex, size_t bytes) {
  bool plain = hex.size() == 2 * bytes;
  for (const char c : hex) {
    plain &= absl::ascii_isdigit(c) || (c >= 'a' && c <= 'f');
  }
  if (!plain) {
    return absl::DataLossError(absl::StrCat("a key or signature is no ",
                                            2 * bytes,
                                            " lower-case hexadecimal digits"));
  }
  return absl::HexStringToBytes(hex);
}

const unsigned char* Bytes(absl::string_view text) {
  return reinterpret_cast<const unsigned char*>(text.data());
}

}  // namespace

absl::StatusOr<Signature> Sign(absl::string_view message,
                               const std::string& private_key_pem) {
  const Key key = PrivateKey(private_key_pem);
  if (!IsEd25519(key)) return NoKey("private");
  Signature signature;
  OPTRAIL_ASSIGN_OR_RETURN(signature.public_key, RawPublic(key));
  const Context context(EVP_MD_CTX_new(), EVP_MD_CTX_free);
  unsigned char value[kSignatureBytes];
  size_t size = sizeof(value);
  if (EVP_DigestSignInit(context.get(), nullptr, nullptr, nullptr, key.get()) !=
          1 ||
      EVP_DigestSign(context.get(), value, &size, Bytes(message),
                     message.size()) != 1) {
    return absl::InternalError("OpenSSL does not sign");
  }
  signature.value = absl::BytesToHexString(
      absl::string_view(reinterpret_cast<char*>(value), size));
  return signature;
}

absl::Status CheckSignature(absl::string_view message,
                            const Signature& signature) {
  OPTRAIL_ASSIGN_OR_RETURN(const std::string raw,
                           FromHex(signature.public_key, kKeyBytes));
  OPTRAIL_ASSIGN_OR_RETURN(const std::string value,
                           FromHex(signature.value, kSignatureBytes));
  const Key key(EVP_PKEY_new_raw_public_key(EVP_PKEY_ED25519, nullptr,
                                            Bytes(raw), raw.size()),
                EVP_PKEY_free);
  const Context context(EVP_MD_CTX_new(), EVP_MD_CTX_free);
  if (key == nullptr ||
      EVP_DigestVerifyInit(context.get(), nullptr, nullptr, nullptr,
                           key.get()) != 1 ||
      EVP_DigestVerify(context.get(), Bytes(value), value.size(),
                       Bytes(message), message.size()) != 1) {
    return absl::DataLossError("the signature is not that of this certificate");
  }
  return absl::OkStatus();
}

absl::StatusOr<std::string> PublicKeyOf(const std::string& pem) {
  const Bio bio = Open(pem);
  Key key(PEM_read_bio_PUBKEY(bio.get(), nullptr, NoPassphrase, nullptr),
          EVP_PKEY_free);
  if (!IsEd25519(key)) key = PrivateKey(pem);
  if (!IsEd25519(key)) return NoKey("public");
  return RawPublic(key);
}

}  // namespace optrail::carbon
