#include "carbon/certificate_folder.h"

#include <algorithm>
#include <memory>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "base/file/file.h"
#include "base/hash/sha256.h"
#include "base/status_macros.h"
#include "base/text/json.h"
#include "base/text/quote.h"
#include "carbon/certificate.h"
#include "nlohmann/json.hpp"
#include "tracker/history/documents.h"
#include "tracker/history/history_files.h"
#include "tracker/history/record_store.h"
#include "tracker/history/store_url.h"

namespace optrail::carbon {
namespace {

using Json = nlohmann::json;

// 48 bits, as in the ids of records.
constexpr size_t kDigestLetters = 12;
constexpr char kFolder[] = "certificates";

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
          path, ": inputs/", field, " is missing, expected a certificate"));
    }
    *id = run->get<std::string>();
  }
  return pair;
}

std::string WithDigest(absl::string_view stem, const std::string& json) {
  return absl::StrCat(stem, "_", Sha256Hex(json).substr(0, kDigestLetters),
                      ".json");
}

absl::StatusOr<std::unique_ptr<tracker::Documents>> Open(
    const std::string& history) {
  return tracker::OpenDocuments(history, kFolder);
}

// Returns whether `bytes` are new there. AlreadyExists if others are.
absl::StatusOr<bool> PutNew(const tracker::Documents& documents,
                            const std::string& name, const std::string& bytes) {
  const absl::Status written = documents.Put(name, bytes);
  if (!absl::IsAlreadyExists(written)) {
    if (!written.ok()) return written;
    return true;
  }
  OPTRAIL_ASSIGN_OR_RETURN(const std::string present, documents.Read(name));
  if (present == bytes) return false;
  return absl::AlreadyExistsError(absl::StrCat(
      documents.PlaceOf(name),
      ": it holds other bytes than those that its name tells; next: "
      "optrail carbon verify it, and ",
      documents.HowToRemove(name)));
}

// Does what PairOf does, and says how somebody removes a document that cannot
// be read.
absl::StatusOr<Pair> PairIn(const tracker::Documents& documents,
                            const std::string& name, const std::string& text) {
  absl::StatusOr<Pair> pair = PairOf(text, documents.PlaceOf(name));
  if (pair.ok()) return pair;
  return absl::Status(pair.status().code(),
                      absl::StrCat(pair.status().message(),
                                   "; next: repair it"
                                   " from a copy, or ",
                                   documents.HowToRemove(name)));
}

// The names of the certificates.
absl::StatusOr<std::vector<std::string>> NamesIn(
    const tracker::Documents& documents) {
  OPTRAIL_ASSIGN_OR_RETURN(std::vector<std::string> names, documents.List());
  names.erase(std::remove_if(names.begin(), names.end(),
                             [](const std::string& name) {
                               return !absl::EndsWith(name, ".json");
                             }),
              names.end());
  return names;
}

// A page says what its JSON says, so that of another history is not taken;
// older formats may have none.
absl::Status WritePage(const std::string& history, const std::string& place,
                       const std::string& json) {
  if (tracker::IsStoreUrl(history)) return absl::OkStatus();
  const auto page = CertificatePage(json);
  if (!page.ok()) return absl::OkStatus();
  return WriteFileAtomically(PagePathOf(place), *page);
}

}  // namespace

std::string CertificateFolder(const std::string& history) {
  return JoinPath(history, kFolder);
}

std::string PagePathOf(absl::string_view certificate_path) {
  return absl::StrCat(absl::StripSuffix(certificate_path, ".json"), ".html");
}

absl::StatusOr<std::string> KeepCertificate(const std::string& history,
                                            const std::string& json) {
  OPTRAIL_ASSIGN_OR_RETURN(const Pair pair, PairOf(json, "certificate"));
  for (const std::string& id : {pair.base, pair.candidate}) {
    // They become a file's name.
    OPTRAIL_RETURN_IF_ERROR(tracker::PlaceOf(history, "runs", id).status());
  }
  OPTRAIL_RETURN_IF_ERROR(CertificatePage(json).status());
  OPTRAIL_ASSIGN_OR_RETURN(const auto documents, Open(history));
  const std::string name =
      WithDigest(absl::StrCat(pair.candidate, "_against_", pair.base), json);
  OPTRAIL_RETURN_IF_ERROR(PutNew(*documents, name, json).status());
  const std::string place = documents->PlaceOf(name);
  OPTRAIL_RETURN_IF_ERROR(WritePage(history, place, json));
  return place;
}

absl::StatusOr<std::string> ReadCertificate(const std::string& history,
                                            const std::string& place) {
  if (!tracker::IsStoreUrl(place)) return ReadRegularFile(place);
  const std::string name = place.substr(place.rfind('/') + 1);
  if (tracker::IsStoreUrl(history)) {
    // Each user has another URL of one database, so names alone are compared:
    // they hold a digest.
    OPTRAIL_ASSIGN_OR_RETURN(const auto documents, Open(history));
    absl::StatusOr<std::string> json = documents->Read(name);
    if (!absl::IsNotFound(json.status()) || documents->PlaceOf(name) == place) {
      return json;
    }
  }
  return absl::InvalidArgumentError(absl::StrCat(
      tracker::ShownUrl(place), ": expected a certificate of the history ",
      tracker::ShownUrl(history), "; next: --history=",
      QuoteForShell(tracker::ShownUrl(
          place.substr(0, place.rfind(absl::StrCat("/", kFolder)))))));
}

absl::StatusOr<std::vector<std::string>> CertifiedRuns(
    const std::string& history) {
  std::vector<std::string> runs;
  OPTRAIL_ASSIGN_OR_RETURN(const auto documents, Open(history));
  OPTRAIL_ASSIGN_OR_RETURN(const std::vector<std::string> names,
                           NamesIn(*documents));
  for (const std::string& name : names) {
    OPTRAIL_ASSIGN_OR_RETURN(const std::string text, documents->Read(name));
    OPTRAIL_ASSIGN_OR_RETURN(Pair pair, PairIn(*documents, name, text));
    runs.push_back(std::move(pair.base));
    runs.push_back(std::move(pair.candidate));
  }
  return runs;
}

absl::StatusOr<CopiedCertificates> CopyCertificates(const std::string& from,
                                                    const std::string& to) {
  CopiedCertificates report;
  OPTRAIL_ASSIGN_OR_RETURN(const auto source, Open(from));
  OPTRAIL_ASSIGN_OR_RETURN(const std::vector<std::string> names,
                           NamesIn(*source));
  if (names.empty()) return report;
  OPTRAIL_ASSIGN_OR_RETURN(const auto target, Open(to));
  for (const std::string& name : names) {
    const std::string place = source->PlaceOf(name);
    const auto json = source->Read(name);
    if (absl::IsUnavailable(json.status())) return json.status();
    if (!json.ok()) {
      report.problems.push_back(std::string(json.status().message()));
      continue;
    }
    if (const auto pair = PairIn(*source, name, *json); !pair.ok()) {
      report.problems.push_back(std::string(pair.status().message()));
      continue;
    }
    std::string name_there = name;
    absl::StatusOr<bool> is_new = PutNew(*target, name_there, *json);
    if (absl::IsAlreadyExists(is_new.status())) {
      name_there = WithDigest(absl::StripSuffix(name, ".json"), *json);
      is_new = PutNew(*target, name_there, *json);
    }
    if (absl::IsAlreadyExists(is_new.status())) {
      report.problems.push_back(
          absl::StrCat(place, ": ", is_new.status().message()));
      continue;
    }
    OPTRAIL_RETURN_IF_ERROR(is_new.status());
    ++(*is_new ? report.copied : report.already_there);
    OPTRAIL_RETURN_IF_ERROR(WritePage(to, target->PlaceOf(name_there), *json));
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
    const tracker::History& history, const std::string& name_of_history) {
  CheckedCertificates checked;
  OPTRAIL_ASSIGN_OR_RETURN(const auto documents, Open(name_of_history));
  OPTRAIL_ASSIGN_OR_RETURN(const std::vector<std::string> names,
                           NamesIn(*documents));
  for (const std::string& name : names) {
    const auto json = documents->Read(name);
    const absl::Status verified =
        json.ok() ? VerifyCertificate(*json, history, "") : json.status();
    if (absl::IsUnavailable(verified)) return verified;
    if (verified.ok()) {
      ++checked.verified;
    } else if (json.ok() && absl::IsNotFound(verified)) {
      ++checked.lacking;
    } else if (json.ok() && IsOfOlderFormat(*json)) {
      ++checked.older;
    } else {
      if (++checked.refused == 1)
        checked.first_refused = documents->PlaceOf(name);
    }
  }
  return checked;
}

}  // namespace optrail::carbon
