#ifndef OPTRAIL_CARBON_CERTIFICATE_H_
#define OPTRAIL_CARBON_CERTIFICATE_H_

// A certificate says what two runs emit per unit of work, SCI (Software Carbon
// Intensity, ISO/IEC 21031): (E x I + M) / R, without offsets, and what each
// number rests on. It can be checked: everything but its inputs is computed
// again from the history, and the bytes of the records are those of then.
//
//   CertificateInputs inputs;
//   inputs.base = "20260101T...-...";
//   OPTRAIL_ASSIGN_OR_RETURN(const std::string json,
//                            MakeCertificate(inputs, history));
//   OPTRAIL_RETURN_IF_ERROR(VerifyCertificate(json, history, ""));
//
// E is the energy of a unit, metered or labelled estimated, I the intensity of
// the grid, M the share of what making the hardware emitted, R the unit of
// carbon/certified_work.h. docs/method/carbon.md has the formulas and what a
// check does not show: a certificate without a signature may have been forged
// together with its history.

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "carbon/grid.h"
#include "carbon/power_model.h"
#include "tracker/history/history.h"

namespace optrail::carbon {

// CertificateInputs has what a certificate cannot find in the history.
struct CertificateInputs {
  std::string base, candidate;  // run ids
  std::string filter;           // benchmarks, a regular expression; "": all

  std::string zone;
  std::string intensity_kind;    // average or marginal
  std::string intensity_source;  // where the file comes from
  std::string intensity_sha256;  // of the file
  std::vector<GridInterval> intensity;
  double intensity_uncertainty = .1;  // half of a 95% interval, as a fraction

  // Making the hardware emitted this; a run carries its share by time.
  double embodied_grams = 0;
  double embodied_hours = 0;
  std::string embodied_source;
  double embodied_uncertainty = .3;

  double pue = 1;  // power of the building over that of its machines
  int64_t issued_unix_s = 0;
  PowerModel model;  // where nothing was metered
};

// JSON with sorted keys. OutOfRange, with the reason, where nobody knows what a
// benchmark emits: it failed in either run, or its energy is not known.
// FailedPrecondition where the runs have no benchmark in common;
// InvalidArgument where nothing takes the model's device_watts; errors of the
// history are its own.
absl::StatusOr<std::string> MakeCertificate(const CertificateInputs& inputs,
                                            const tracker::History& history);

// The names of the benchmarks, of those that the filter matches, that a
// certificate leaves out because one of the runs lacks or skipped them.
absl::StatusOr<std::vector<std::string>> LeftOut(
    const CertificateInputs& inputs, const tracker::History& history);

// The same with a signature by a private key in PEM.
absl::StatusOr<std::string> SignCertificate(absl::string_view json,
                                            const std::string& private_key_pem);

// DataLoss, naming what does not follow, unless all of it is as MakeCertificate
// would make it from this history today, to the byte; NotFound where the
// history lacks a run of it, so that only digest and signature are checked;
// Unavailable where the history can't be reached. Certificates of the formats
// before that of today are checked as those formats were.
// `public_key_pem`: it has to be signed by this key; "": a signature that is
// there has to be right.
absl::Status VerifyCertificate(absl::string_view json,
                               const tracker::History& history,
                               const std::string& public_key_pem);

// Returns whether the certificate says that an older Optrail wrote it, in a
// format so old that VerifyCertificate does not check but refuses.
bool IsOfOlderFormat(absl::string_view json);

// Reads what a certificate says of the saving: the headline of its page, and
// whether the runs tell. InvalidArgument if it is none.
struct CertificateHeadline {
  std::string text;
  bool can_tell = true;
  bool made_up = false;
};
absl::StatusOr<CertificateHeadline> HeadlineOf(absl::string_view json);

// For people: one HTML file without scripts, which prints.
absl::StatusOr<std::string> CertificatePage(absl::string_view json);

}  // namespace optrail::carbon

#endif  // OPTRAIL_CARBON_CERTIFICATE_H_
