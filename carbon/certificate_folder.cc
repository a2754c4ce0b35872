#include "carbon/certificate_folder.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "base/file/file.h"
#include "base/hash/sha256.h"
#include "base/status_macros.h"
#include "base/text/json.h"
#include "carbon/certificate.h"
#include "nlohmann/json.hpp"
#include "tracker/history/history_files.h"
#include "tracker/history/record_store.h"

namespace optrail::carbon {
namespace {

using Json = nlohmann::json;

// 48 bits, as in the ids of records.
constexpr size_t kDigestLetters = 12;

// The runs of one certificate, by their ids.
struct Pair {
  std::string base, candidate;
};

absl::StatusOr<Pair> PairOf(const std::string& text, const std::string& path) {
  OPTRAIL_ASSIGN_OR_RETURN(const Json json, ParseJson(text, path));
  Pair pair;
  for (const auto& [field, id] :
       {std::pair{"base_run", &pair.base},
        std::pair{"candidate_run", &pair.candidate}}) {
    const Json* run = nullptr;
    if (json.is_object() && json.contains("inputs") &&
        json["inputs"].is_object() && json["inputs"].contains(field)) {
      run = &json["inputs"][field];
    }
    if (run == nullptr || !run->is_string()) {
      return absl::InvalidArgumentError(absl::StrCat(
          path, ": inputs/", field,
          " is missing, expected a certificate; next: repair or remove it"));
    }
    *id = run->get<std::string>();
  }
  return pair;
}

std::string WithDigest(absl::string_view stem, const std::string& json) {
  return absl::StrCat(stem, "_", Sha256Hex(json).substr(0, kDigestLetters),
                      ".json");
}

// Returns whether `bytes` are new there. AlreadyExists if others are.
absl::StatusOr<bool> PutNew(const std::string& path, const std::string& bytes) {
  const absl::Status written = WriteNewFileAtomically(path, bytes);
  if (!absl::IsAlreadyExists(written)) {
    if (!written.ok()) return written;
    return true;
  }
  const auto present = ReadRegularFile(path);
  if (present.ok() && *present == bytes) return false;
  return absl::AlreadyExistsError(absl::StrCat(
      path,
      ": it holds other bytes than those that its name tells; next: "
      "optrail carbon verify it, and move it out of the folder"));
}

// The names of the certificates in the folder.
absl::StatusOr<std::vector<std::string>> NamesIn(const std::string& folder) {
  std::vector<std::string> names;
  const auto files = ListDirectory(folder);
  if (absl::IsNotFound(files.status())) return names;
  if (!files.ok()) return files.status();
  for (const std::string& file : *files) {
    if (absl::EndsWith(file, ".json")) names.push_back(file);
  }
  return names;
}

}  // namespace

std::string CertificateFolder(const std::string& history_dir) {
  return JoinPath(history_dir, "certificates");
}

std::string PagePathOf(absl::string_view certificate_path) {
  return absl::StrCat(absl::StripSuffix(certificate_path, ".json"), ".html");
}

absl::StatusOr<std::string> KeepCertificate(const std::string& history_dir,
                                            const std::string& json) {
  OPTRAIL_ASSIGN_OR_RETURN(const Pair pair, PairOf(json, "certificate"));
  for (const std::string& id : {pair.base, pair.candidate}) {
    // They become a file's name.
    OPTRAIL_RETURN_IF_ERROR(tracker::PlaceOf(history_dir, "runs", id).status());
  }
  OPTRAIL_ASSIGN_OR_RETURN(const std::string page, CertificatePage(json));
  const std::string folder = CertificateFolder(history_dir);
  OPTRAIL_RETURN_IF_ERROR(CreateDirectories(folder));
  const std::string path = JoinPath(
      folder,
      WithDigest(absl::StrCat(pair.candidate, "_against_", pair.base), json));
  OPTRAIL_RETURN_IF_ERROR(PutNew(path, json).status());
  OPTRAIL_RETURN_IF_ERROR(WriteFileAtomically(PagePathOf(path), page));
  return path;
}

absl::StatusOr<std::vector<std::string>> CertifiedRuns(
    const std::string& history_dir) {
  std::vector<std::string> runs;
  const std::string folder = CertificateFolder(history_dir);
  OPTRAIL_ASSIGN_OR_RETURN(const std::vector<std::string> names,
                           NamesIn(folder));
  for (const std::string& name : names) {
    const std::string path = JoinPath(folder, name);
    OPTRAIL_ASSIGN_OR_RETURN(const std::string text, ReadRegularFile(path));
    OPTRAIL_ASSIGN_OR_RETURN(Pair pair, PairOf(text, path));
    runs.push_back(std::move(pair.base));
    runs.push_back(std::move(pair.candidate));
  }
  return runs;
}

absl::StatusOr<CopiedCertificates> CopyCertificates(const std::string& from,
                                                    const std::string& to) {
  CopiedCertificates report;
  const std::string source = CertificateFolder(from);
  OPTRAIL_ASSIGN_OR_RETURN(const std::vector<std::string> names,
                           NamesIn(source));
  if (tracker::IsStoreUrl(to)) {
    report.left_out = static_cast<int>(names.size());
    return report;
  }
  const std::string folder = CertificateFolder(to);
  if (!names.empty()) OPTRAIL_RETURN_IF_ERROR(CreateDirectories(folder));
  for (const std::string& name : names) {
    const std::string path = JoinPath(source, name);
    const auto json = ReadRegularFile(path);
    if (!json.ok()) {
      report.problems.push_back(std::string(json.status().message()));
      continue;
    }
    if (const auto pair = PairOf(*json, path); !pair.ok()) {
      report.problems.push_back(std::string(pair.status().message()));
      continue;
    }
    std::string target = JoinPath(folder, name);
    absl::StatusOr<bool> is_new = PutNew(target, *json);
    if (absl::IsAlreadyExists(is_new.status())) {
      target = WithDigest(absl::StripSuffix(target, ".json"), *json);
      is_new = PutNew(target, *json);
    }
    if (absl::IsAlreadyExists(is_new.status())) {
      report.problems.push_back(
          absl::StrCat(path, ": ", is_new.status().message()));
      continue;
    }
    OPTRAIL_RETURN_IF_ERROR(is_new.status());
    ++(*is_new ? report.copied : report.already_there);
    // A page says what its JSON says, so that of another history is not taken;
    // older formats may have none.
    if (const auto page = CertificatePage(*json); page.ok()) {
      OPTRAIL_RETURN_IF_ERROR(WriteFileAtomically(PagePathOf(target), *page));
    }
  }
  return report;
}

std::string CheckedCertificates::LeftOut() const {
  std::vector<std::string> parts;
  if (older > 0) {
    parts.push_back(
        absl::StrCat(older,
                     " of an older format left out; next: optrail carbon "
                     "certify BASE CANDIDATE"));
  }
  if (lacking > 0) {
    parts.push_back(absl::StrCat(lacking, " of runs that the history lacks"));
  }
  if (refused > 0) {
    parts.push_back(absl::StrCat(
        refused, " refused; next: optrail carbon verify ", first_refused));
  }
  return absl::StrJoin(parts, "; ");
}

absl::StatusOr<CheckedCertificates> CheckCertificates(
    const tracker::History& history) {
  CheckedCertificates checked;
  const std::string folder = CertificateFolder(history.dir());
  OPTRAIL_ASSIGN_OR_RETURN(const std::vector<std::string> names,
                           NamesIn(folder));
  for (const std::string& name : names) {
    const std::string path = JoinPath(folder, name);
    const auto json = ReadRegularFile(path);
    const absl::Status verified =
        json.ok() ? VerifyCertificate(*json, history, "") : json.status();
    if (json.ok() && absl::IsUnavailable(verified)) return verified;
    if (verified.ok()) {
      ++checked.verified;
    } else if (json.ok() && absl::IsNotFound(verified)) {
      ++checked.lacking;
    } else if (json.ok() && IsOfOlderFormat(*json)) {
      ++checked.older;
    } else {
      if (++checked.refused == 1) checked.first_refused = path;
    }
  }
  return checked;
}

}  // namespace optrail::carbon
