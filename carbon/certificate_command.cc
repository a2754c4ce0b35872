// `optrail carbon certify` and `optrail carbon verify`: see carbon_command.h.

#include <iostream>
#include <ostream>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/file/file.h"
#include "base/hash/sha256.h"
#include "base/status_macros.h"
#include "base/text/prose.h"
#include "base/text/table.h"
#include "carbon/carbon_command.h"
#include "carbon/certificate_folder.h"
#include "carbon/command_parts.h"
#include "carbon/grid.h"
#include "carbon/signature.h"
#include "tracker/history/record_store.h"

namespace optrail::carbon {
namespace {

// Writes the JSON, and the page beside it, and says where they are. The JSON
// goes alone into a stream; "-" is `out`.
absl::Status WriteCertificate(const std::string& path, const std::string& json,
                              const std::string& page, std::ostream& out) {
  if (path == "-") {
    out << json;
    return absl::OkStatus();
  }
  OPTRAIL_RETURN_IF_ERROR(WriteOutput(path, json));
  if (IsStream(path)) return absl::OkStatus();
  OPTRAIL_RETURN_IF_ERROR(WriteOutput(PagePathOf(path), page));
  out << path << "\n" << PagePathOf(path) << "\n";
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<ExitCode> RunCarbonCertify(const CarbonCertifyCommand& command,
                                          std::ostream& out) {
  OPTRAIL_RETURN_IF_ERROR(CheckGrid(command.grid));
  OPTRAIL_ASSIGN_OR_RETURN(const tracker::History history,
                           tracker::OpenHistory(command.common));
  CertificateInputs inputs = command.inputs;
  OPTRAIL_ASSIGN_OR_RETURN(const tracker::RunInfo base,
                           history.FindRun(inputs.base));
  OPTRAIL_ASSIGN_OR_RETURN(const tracker::RunInfo candidate,
                           history.FindRun(inputs.candidate));
  if (base.id() == candidate.id()) {
    return absl::InvalidArgumentError(
        absl::StrCat("BASE and CANDIDATE are one run, ", base.id(),
                     "; next: optrail log runs"));
  }
  if (absl::EndsWith(command.out, ".html") ||
      absl::EndsWith(command.out, ".pdf")) {
    return absl::InvalidArgumentError(
        absl::StrCat("--out=", command.out,
                     ": expected a name for the JSON, such as c.json; the page "
                     "goes beside it, as c.html, and prints"));
  }
  inputs.base = base.id();
  inputs.candidate = candidate.id();
  inputs.issued_unix_s = tracker::NowUnixNs(command.common) / kNsPerS;
  OPTRAIL_ASSIGN_OR_RETURN(const std::string csv,
                           ReadRegularFile(command.grid.intensity));
  OPTRAIL_ASSIGN_OR_RETURN(
      const Grid grid, ParseIntensity(csv, FileName(command.grid.intensity)));
  inputs.zone = command.grid.zone;
  inputs.intensity_kind = grid.kind;
  inputs.intensity_sha256 = Sha256Hex(csv);
  if (inputs.intensity_source.empty()) inputs.intensity_source = grid.path;
  for (const tracker::RunInfo* info : {&base, &candidate}) {
    if (!info->header.commit().dirty()) continue;
    std::cerr << "note: run " << info->id() << " is of "
              << tracker::CommitText(info->header.commit())
              << ", with changes that the commit lacks; the certificate says "
                 "so\n";
  }
  // Both sides at the hours of the candidate: what differs is the work.
  const int64_t phase_s = grid.HourPhaseS(inputs.zone);
  const auto hour_of = [&](int64_t unix_ns) {
    return (unix_ns / kNsPerS - phase_s) / kHourS * kHourS + phase_s;
  };
  const proto::Run& run = candidate.header;
  OPTRAIL_ASSIGN_OR_RETURN(
      inputs.intensity,
      grid.Between(inputs.zone, hour_of(run.started_unix_ns()),
                   hour_of(run.started_unix_ns() + run.elapsed_ns()) + kHourS));
  absl::StatusOr<std::string> made = MakeCertificate(inputs, history);
  if (absl::IsOutOfRange(made.status())) {
    // The standard output may be where the JSON is expected.
    std::cerr << "can't tell: " << EscapeForTerminal(made.status().message())
              << "\n";
    return ExitCode::kNotEnoughData;
  }
  OPTRAIL_ASSIGN_OR_RETURN(std::string json, std::move(made));
  OPTRAIL_ASSIGN_OR_RETURN(const std::vector<std::string> left_out,
                           LeftOut(inputs, history));
  if (!left_out.empty()) {
    constexpr size_t kNamed = 3;
    std::cerr << "note: left out, since one of the runs lacks or skipped "
              << (left_out.size() == 1 ? "it: " : "them: ")
              << EscapeForTerminal(JoinFirst(left_out, kNamed)) << "\n";
  }
  if (!command.key.empty()) {
    OPTRAIL_ASSIGN_OR_RETURN(const std::string key,
                             ReadRegularFile(command.key));
    OPTRAIL_ASSIGN_OR_RETURN(json, SignCertificate(json, key));
  }
  OPTRAIL_ASSIGN_OR_RETURN(const std::string page, CertificatePage(json));
  OPTRAIL_ASSIGN_OR_RETURN(const CertificateHeadline headline,
                           HeadlineOf(json));
  std::cerr << EscapeForTerminal(headline.text) << "\n";
  if (headline.made_up) {
    std::cerr << "note: made-up data: the runs or the intensity were not "
                 "measured; the certificate says so\n";
  }
  const ExitCode code =
      headline.can_tell ? ExitCode::kOk : ExitCode::kNotEnoughData;
  if (!command.out.empty()) {
    OPTRAIL_RETURN_IF_ERROR(WriteCertificate(command.out, json, page, out));
  }
  // The history keeps it in any case, so that its runs stay whole.
  absl::StatusOr<std::string> keeping =
      KeepCertificate(command.common.history, json);
  if (!command.out.empty() && absl::IsPermissionDenied(keeping.status())) {
    // Who may only read a history has what was asked for, in a file.
    std::cerr << "note: the history does not keep it, so that `history thin` "
                 "may take what it follows from: "
              << EscapeForTerminal(keeping.status().message()) << "\n";
    return ExitCode::kOk;
  }
  OPTRAIL_ASSIGN_OR_RETURN(const std::string kept, std::move(keeping));
  // Paths on the standard output would end up within the JSON.
  const bool is_piped = command.out == "-" || IsStream(command.out);
  std::ostream& places = is_piped ? std::cerr : out;
  places << kept << "\n";
  if (!tracker::IsStoreUrl(kept)) places << PagePathOf(kept) << "\n";
  return code;
}

absl::StatusOr<ExitCode> RunCarbonVerify(const CarbonVerifyCommand& command,
                                         std::ostream& out) {
  OPTRAIL_ASSIGN_OR_RETURN(
      const std::string json,
      ReadCertificate(command.common.history, command.certificate));
  OPTRAIL_ASSIGN_OR_RETURN(const tracker::History history,
                           tracker::OpenHistory(command.common));
  // Nothing is refused for want of a history to recompute it from.
  OPTRAIL_RETURN_IF_ERROR(tracker::CheckHistoryFolder(history.dir()));
  std::string key;
  if (!command.key.empty()) {
    OPTRAIL_ASSIGN_OR_RETURN(key, ReadRegularFile(command.key));
    OPTRAIL_RETURN_IF_ERROR(PublicKeyOf(key).status());
  }
  const absl::Status verified = VerifyCertificate(json, history, key);
  if (absl::IsUnavailable(verified)) return verified;
  if (absl::IsNotFound(verified)) {
    out << "can't tell: " << EscapeForTerminal(verified.message()) << "\n";
    return ExitCode::kNotEnoughData;
  }
  if (!verified.ok()) {
    out << "refused: " << EscapeForTerminal(verified.message()) << "\n";
    return ExitCode::kCheckFailed;
  }
  out << "verified: every number follows from " << history.dir()
      << (key.empty() ? "" : ", signed by that key") << "\n";
  return ExitCode::kOk;
}

}  // namespace optrail::carbon
