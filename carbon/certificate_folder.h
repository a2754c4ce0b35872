#ifndef OPTRAIL_CARBON_CERTIFICATE_FOLDER_H_
#define OPTRAIL_CARBON_CERTIFICATE_FOLDER_H_

// A history keeps its certificates beside its records, so that `history thin`
// leaves their runs whole: as files in its folder certificates/, or in the
// table of documents of PostgreSQL (tracker/history/documents.h).
//
//   OPTRAIL_ASSIGN_OR_RETURN(const std::string place,
//                            KeepCertificate(history, json));
//   OPTRAIL_ASSIGN_OR_RETURN(policy.keep_ids, CertifiedRuns(history));
//
// `history` is the name of one, a folder or a URL with its password if it has
// one. A certificate never changes after it was written: its name holds a
// digest of its bytes, so another one of the same two runs stands beside it.
// Names without a digest are those that an older Optrail wrote; they are read
// alike. Pages lie beside the files; PostgreSQL keeps none.

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "tracker/history/history.h"

namespace optrail::carbon {

std::string CertificateFolder(const std::string& history);

// The name of the page beside a certificate: c.html for c.json.
std::string PagePathOf(absl::string_view certificate_path);

// Writes the certificate, CANDIDATE_against_BASE_DIGEST.json, and its page, and
// returns the place of the JSON, a path or a URL without its password. If the
// same bytes are there, they stay. AlreadyExists, and nothing changes, if the
// file of that name was changed.
absl::StatusOr<std::string> KeepCertificate(const std::string& history,
                                            const std::string& json);

// Reads the certificate that KeepCertificate put into PostgreSQL, by its place,
// whoever's URL that begins with; any other `place` is a path.
absl::StatusOr<std::string> ReadCertificate(const std::string& history,
                                            const std::string& place);

// The runs of all certificates that the history keeps. An unreadable one is an
// error, which says how to remove it.
absl::StatusOr<std::vector<std::string>> CertifiedRuns(
    const std::string& history);

// CopiedCertificates says what CopyCertificates did.
struct CopiedCertificates {
  int copied = 0;
  int already_there = 0;
  std::vector<std::string> problems;  // not copied: path and reason
};
// Copies, byte for byte, what `to` lacks of the certificates of `from`, and
// makes their pages anew. A certificate whose name
// is taken by another one gets a name with its digest, so that both stay. A
// file that is no certificate is not copied: it would stop `history thin`.
// Unavailable if a database went away.
absl::StatusOr<CopiedCertificates> CopyCertificates(const std::string& from,
                                                    const std::string& to);

// CheckedCertificates counts those that the history keeps by what
// VerifyCertificate says of them.
struct CheckedCertificates {
  int verified = 0;
  int older = 0;              // of a format that is not checked any more
  int lacking = 0;            // of runs that the history lacks
  int refused = 0;            // others, and files that cannot be read
  std::string first_refused;  // its place

  // Says how many `verified` leaves out, and the next step; "" if it has all.
  std::string LeftOut() const;
};
// `name`: that of `history`, with its password if it has one. Unavailable if a
// database went away.
absl::StatusOr<CheckedCertificates> CheckCertificates(
    const tracker::History& history, const std::string& name);

}  // namespace optrail::carbon

#endif  // OPTRAIL_CARBON_CERTIFICATE_FOLDER_H_
