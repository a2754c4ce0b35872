#include "carbon/certificate.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "base/hash/sha256.h"
#include "base/status_macros.h"
#include "base/text/json.h"
#include "carbon/certificate_inputs.h"
#include "carbon/certified_saving.h"
#include "carbon/certified_work.h"
#include "carbon/energy_of.h"
#include "carbon/signature.h"
#include "nlohmann/json.hpp"
#include "re2/re2.h"
#include "tracker/history/history_files.h"
#include "tracker/proto/made_up.h"
#include "tracker/series/series_key.h"
#include "tuning/proto/canonical.h"

namespace optrail::carbon {
namespace {

using Json = nlohmann::json;

constexpr absl::string_view kFormatName = "optrail-carbon-certificate/";
// Says what the saving is known to be, and what is made up.
constexpr int kFormat = 5;
// Says which side had changes that its commit lacks; still checked, too.
constexpr int kUncommittedFormat = 4;
// The ones before, which are still checked: silent about that, of workloads
// since each layer counts once, and of other runs.
constexpr int kSilentWorkloadFormat = 3;
constexpr int kSilentFormat = 2;
constexpr absl::string_view kRunOf = "a run of ";  // functional unit
constexpr char kMethod[] =
    "SCI (ISO/IEC 21031): (E x I + M) / R, without offsets";
constexpr double kJoulesPerKwh = 3.6e6;
constexpr double kSecondsPerHour = 3600;

int SilentFormatOf(absl::string_view functional_unit) {
  return absl::StartsWith(functional_unit, kRunOf) ? kSilentWorkloadFormat
                                                   : kSilentFormat;
}

double MeanIntensity(const std::vector<GridInterval>& intervals) {
  double sum = 0, seconds = 0;
  for (const GridInterval& interval : intervals) {
    const auto length =
        static_cast<double>(interval.end_unix_s - interval.start_unix_s);
    sum += interval.value * length;
    seconds += length;
  }
  return sum / seconds;
}

// A run as it lies in the history.
struct Evidence {
  proto::Run run;
  std::string sha256;
};

absl::StatusOr<Evidence> ReadEvidence(const tracker::History& history,
                                      const std::string& id) {
  Evidence evidence;
  OPTRAIL_ASSIGN_OR_RETURN(evidence.run, history.ReadRun(id));
  OPTRAIL_ASSIGN_OR_RETURN(const std::string path,
                           tracker::PlaceOf(history.dir(), "runs", id));
  OPTRAIL_ASSIGN_OR_RETURN(const std::string bytes, history.store().Read(path));
  evidence.sha256 = Sha256Hex(bytes);
  return evidence;
}

// A benchmark that failed in one of the runs emits nobody knows what: without
// it, the certificate would be of less work than it seems.
absl::Status CheckNoneFailed(const proto::Run& run, const RE2& filter) {
  for (const proto::BenchmarkResult& result : run.results()) {
    const std::string name = tracker::CanonicalText(result.key());
    if (result.outcome() == proto::OK ||
        result.outcome() == proto::UNSUPPORTED ||
        !RE2::PartialMatch(name, filter)) {
      continue;
    }
    return absl::OutOfRangeError(absl::StrCat(
        "run ", run.run_id(), ": ", name,
        tuning::IsFailure(result.outcome()) ? " failed ("
                                            : " has no certain measurement (",
        tuning::OutcomeName(result.outcome()),
        result.detail().empty() ? "" : ": ", result.detail(),
        "), so nobody knows what it emits; next: measure again and certify "
        "runs in which it works, or name the benchmarks to certify, such as "
        "--filter='^(BM_a|BM_b)$'"));
  }
  return absl::OkStatus();
}

// Returns whether the model's watts of a device are in a side's energy.
bool TakesWatts(const proto::Run& run, const std::vector<CountedCall>& work,
                const PowerModel& model) {
  return std::any_of(work.begin(), work.end(), [&](const CountedCall& call) {
    return EnergyOfCall(*call.result, run.hardware(), model).of_device_watts;
  });
}

// A model answers for a processor by its cores and its time alone: it cannot
// tell two of them apart, so that a saving would be time, dressed as carbon.
absl::Status CheckHardware(const proto::Run& base, const proto::Run& candidate,
                           const CertifiedWork& work, const PowerModel& model) {
  if (base.hardware().id() == candidate.hardware().id()) {
    return absl::OkStatus();
  }
  const auto is_estimated = [&](const proto::Run& run,
                                const std::vector<CountedCall>& calls) {
    return std::any_of(calls.begin(), calls.end(), [&](const CountedCall& one) {
      return EnergyOfCall(*one.result, run.hardware(), model).estimated;
    });
  };
  if (!is_estimated(base, work.base) &&
      !is_estimated(candidate, work.candidate)) {
    return absl::OkStatus();
  }
  return absl::OutOfRangeError(absl::StrCat(
      "run ", base.run_id(), " is of ", base.hardware().id(), ", run ",
      candidate.run_id(), " of ", candidate.hardware().id(),
      ", and the power model cannot tell different hardware apart; next: "
      "certify runs of one machine, or optrail bench --objective=joules "
      "--record on both"));
}

// E, M and SCI of one side.
absl::StatusOr<Json> Side(const Evidence& evidence,
                          const std::vector<CountedCall>& work,
                          const CertificateInputs& inputs, int format) {
  const double intensity = MeanIntensity(inputs.intensity);
  Json benchmarks = Json::array();
  // Processes scatter on their own; one meter or model errs the same way in all
  // that it tells.
  double joules = 0, variance = 0, common = 0, seconds = 0, scatter = 0;
  bool estimated = false;
  for (const CountedCall& call : work) {
    const Energy energy =
        EnergyOfCall(*call.result, evidence.run.hardware(), inputs.model);
    if (!energy.known) {
      return absl::OutOfRangeError(absl::StrCat(
          "run ", evidence.run.run_id(), ": the energy of ", call.benchmark,
          " is not known: it was not metered, and the power model does not "
          "know ",
          evidence.run.hardware().id(),
          "; next: optrail bench --objective=joules --record, or --watts"));
    }
    const double of_all = call.calls * energy.joules;
    joules += of_all;
    if (energy.estimated) {
      common += of_all * energy.uncertainty;
    } else {
      common += of_all * kMeterUncertainty;
      variance += std::pow(of_all * energy.uncertainty, 2);
    }
    scatter += std::pow(of_all * energy.scatter, 2);
    seconds += call.calls * energy.seconds;
    estimated |= energy.estimated;
    Json benchmark = {
        {"benchmark", call.benchmark},      {"calls_per_unit", call.calls},
        {"joules_per_call", energy.joules}, {"uncertainty", energy.uncertainty},
        {"estimated", energy.estimated},    {"method", energy.basis},
        {"time_ns", energy.seconds * 1e9}};
    if (!call.layer.empty()) {
      benchmark["layer"] = call.layer;
      benchmark["variant"] = call.variant;
    }
    benchmarks.push_back(std::move(benchmark));
  }
  const double kwh = joules / kJoulesPerKwh * inputs.pue;
  const double operational = kwh * intensity;
  const double embodied = inputs.embodied_grams == 0
                              ? 0
                              : inputs.embodied_grams * seconds /
                                    (inputs.embodied_hours * kSecondsPerHour);
  const double operational_uncertainty = std::hypot(
      joules > 0 ? std::sqrt(variance) / joules : 0,
      joules > 0 ? common / joules : 0, inputs.intensity_uncertainty);
  const double sci = operational + embodied;
  const double half = std::hypot(operational * operational_uncertainty,
                                 embodied * inputs.embodied_uncertainty);
  Json side = {
      {"run", evidence.run.run_id()},
      {"record_sha256", evidence.sha256},
      {"started", TimeText(evidence.run.started_unix_ns() / 1'000'000'000)},
      {"commit", evidence.run.commit().id()},
      {"hardware", evidence.run.hardware().id()},
      {"benchmarks", benchmarks},
      {"energy_estimated", estimated},
      {"joules_per_unit", joules},
      {"seconds_per_unit", seconds},
      {"E_kwh", kwh},
      {"I_gco2e_per_kwh", intensity},
      {"M_gco2e", embodied},
      {"sci_gco2e_per_unit", sci},
      {"sci_low", std::max(sci - half, 0.0)},
      {"sci_high", sci + half},
  };
  if (format >= kUncommittedFormat && evidence.run.commit().dirty()) {
    side["uncommitted_changes"] = true;
  }
  if (format >= kFormat) {
    side["scatter"] = joules > 0 ? std::sqrt(scatter) / joules : 0;
    if (evidence.run.source() == tracker::kMadeUpSource) {
      side["made_up"] = true;
    }
  }
  return side;
}

absl::Status CheckFilter(const RE2& filter) {
  if (filter.ok() && filter.pattern().size() <= 1000) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "--filter=", filter.pattern(), ": expected a regular expression (RE2)"));
}

// Without digest and signature. `format`: kFormat, or a smaller one for a
// certificate that was issued in a silent one. What is new is held to more than
// what was issued before.
absl::StatusOr<Json> Compute(const CertificateInputs& inputs,
                             const tracker::History& history, int format,
                             bool is_new) {
  OPTRAIL_RETURN_IF_ERROR(CheckInputs(inputs));
  const RE2 filter(inputs.filter, RE2::Quiet);
  OPTRAIL_RETURN_IF_ERROR(CheckFilter(filter));
  OPTRAIL_ASSIGN_OR_RETURN(const Evidence base,
                           ReadEvidence(history, inputs.base));
  OPTRAIL_ASSIGN_OR_RETURN(const Evidence candidate,
                           ReadEvidence(history, inputs.candidate));
  OPTRAIL_ASSIGN_OR_RETURN(const CertifiedWork work,
                           CertifiedWorkOf(base.run, candidate.run, filter));
  if (work.base.empty()) {
    return absl::FailedPreconditionError(absl::StrCat(
        "runs ", inputs.base, " and ", inputs.candidate,
        " have no benchmark in common that matches \"", inputs.filter, "\""));
  }
  if (is_new) {
    for (const proto::Run* run : {&base.run, &candidate.run}) {
      OPTRAIL_RETURN_IF_ERROR(CheckNoneFailed(*run, filter));
    }
  }
  if (is_new) {
    OPTRAIL_RETURN_IF_ERROR(
        CheckHardware(base.run, candidate.run, work, inputs.model));
  }
  if (format < kUncommittedFormat) format = SilentFormatOf(work.unit);
  Json json = {{"format", absl::StrCat(kFormatName, format)},
               {"method", kMethod}};
  json["inputs"] = InputsJson(inputs);
  OPTRAIL_ASSIGN_OR_RETURN(json["base"], Side(base, work.base, inputs, format));
  OPTRAIL_ASSIGN_OR_RETURN(json["candidate"],
                           Side(candidate, work.candidate, inputs, format));
  if (is_new) {
    OPTRAIL_RETURN_IF_ERROR(CheckWattsAreTaken(
        inputs.model,
        TakesWatts(base.run, work.base, inputs.model) ||
            TakesWatts(candidate.run, work.candidate, inputs.model)));
  }
  json["functional_unit"] = work.unit;
  const double before = json["base"]["sci_gco2e_per_unit"];
  const double after = json["candidate"]["sci_gco2e_per_unit"];
  json["saved_fraction"] = before > 0 ? 1 - after / before : 0;
  json["estimated"] = json["base"]["energy_estimated"].get<bool>() ||
                      json["candidate"]["energy_estimated"].get<bool>();
  if (format >= kFormat) {
    json["saving"] = SavingOf(base.run, candidate.run, work, json);
    json["made_up"] = inputs.intensity_kind == kMadeUpKind ||
                      json["base"].contains("made_up") ||
                      json["candidate"].contains("made_up");
  }
  return json;
}

std::string Text(const Json& json) {
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

std::string DigestOf(Json json) {
  json.erase("digest");
  json.erase("signature");
  return Sha256Hex(Text(json));
}

// The first place where two values differ, as a path.
std::string Difference(const Json& given, const Json& follows,
                       const std::string& path) {
  if (given == follows) return "";
  if (given.is_object() && follows.is_object()) {
    for (const auto& [key, value] : follows.items()) {
      if (!given.contains(key)) return absl::StrCat(path, "/", key);
      const std::string inner =
          Difference(given[key], value, absl::StrCat(path, "/", key));
      if (!inner.empty()) return inner;
    }
    for (const auto& [key, value] : given.items()) {
      if (!follows.contains(key)) return absl::StrCat(path, "/", key);
    }
  }
  if (given.is_array() && follows.is_array() &&
      given.size() == follows.size()) {
    for (size_t i = 0; i < given.size(); ++i) {
      const std::string inner =
          Difference(given[i], follows[i], absl::StrCat(path, "/", i));
      if (!inner.empty()) return inner;
    }
  }
  return path;
}

absl::Status CheckSigned(const Json& json, const std::string& public_key_pem) {
  if (!json.contains("signature")) {
    if (public_key_pem.empty()) return absl::OkStatus();
    return absl::DataLossError(
        "certificate: it has no signature, and --key asks for one");
  }
  const Json& stored = json.at("signature");
  Signature signature;
  signature.public_key = stored.at("public_key").get<std::string>();
  signature.value = stored.at("value").get<std::string>();
  if (stored.size() != 3 || stored.at("algorithm") != "Ed25519") {
    return absl::DataLossError("certificate: its signature is no Ed25519");
  }
  if (!public_key_pem.empty()) {
    OPTRAIL_ASSIGN_OR_RETURN(const std::string expected,
                             PublicKeyOf(public_key_pem));
    if (expected != signature.public_key) {
      return absl::DataLossError(absl::StrCat("certificate: it was signed by ",
                                              signature.public_key,
                                              ", expected ", expected));
    }
  }
  return CheckSignature(json.at("digest").get<std::string>(), signature);
}

// The number in a certificate's "format"; 0 if it is no format of ours.
int FormatOf(const Json& json) {
  if (!json.is_object() || !json.contains("format")) return 0;
  const auto* format = json["format"].get_ptr<const std::string*>();
  if (format == nullptr) return 0;
  absl::string_view digits = *format;
  int number = 0;
  if (!absl::ConsumePrefix(&digits, kFormatName) ||
      !absl::SimpleAtoi(digits, &number) || absl::StrCat(number) != digits) {
    return 0;
  }
  return number;
}

// The oldest format that a certificate of this functional unit may have.
int OldestFormat(const Json& json) {
  const Json* const unit = json.is_object() && json.contains("functional_unit")
                               ? &json["functional_unit"]
                               : nullptr;
  return unit != nullptr && unit->is_string()
             ? SilentFormatOf(unit->get<std::string>())
             : kSilentFormat;
}

bool IsOlder(int format, const Json& json) {
  return format > 0 && format < OldestFormat(json);
}

// "BASE CANDIDATE", by their ids where the certificate has such.
std::string RunsToCertify(const Json& json) {
  std::string runs;
  for (const auto& [field, fallback] :
       {std::pair{"base_run", "BASE"},
        std::pair{"candidate_run", "CANDIDATE"}}) {
    const Json::json_pointer place(absl::StrCat("/inputs/", field));
    const std::string* id = nullptr;
    if (json.contains(place)) id = json[place].get_ptr<const std::string*>();
    absl::StrAppend(&runs, " ",
                    id != nullptr && tracker::IsRecordId(*id) ? *id : fallback);
  }
  return runs.substr(1);
}

absl::Status CheckFormat(const Json& json) {
  const int format = FormatOf(json);
  const int oldest = OldestFormat(json);
  if (format == kFormat || format == kUncommittedFormat || format == oldest) {
    return absl::OkStatus();
  }
  if (IsOlder(format, json)) {
    return absl::DataLossError(absl::StrCat(
        "certificate: an older Optrail wrote it, in format ", format,
        ", and this one checks formats ", oldest, ", ", kUncommittedFormat,
        " and ", kFormat, " only; next: optrail carbon certify ",
        RunsToCertify(json)));
  }
  if (format > kFormat) {
    return absl::DataLossError(
        absl::StrCat("certificate: a newer Optrail wrote it, in format ",
                     format, ", and this one checks formats up to ", kFormat,
                     "; next: update this one"));
  }
  return absl::DataLossError(
      absl::StrCat("certificate: format is ", ShortJson(json.at("format")),
                   ", expected \"", kFormatName, kFormat, "\""));
}

// The certificate by itself, where no history can tell: NotFound unless it is
// not even what its own digest and signature say.
absl::Status CheckAlone(absl::string_view text, const Json& json,
                        const std::string& public_key_pem,
                        const absl::Status& lacking) {
  if (json.at("digest") != DigestOf(json) || text != Text(json)) {
    return absl::DataLossError("certificate: its bytes were changed");
  }
  OPTRAIL_RETURN_IF_ERROR(CheckSigned(json, public_key_pem));
  return absl::NotFoundError(absl::StrCat(
      "the history lacks a run that it is made of, so nobody can tell: ",
      lacking.message(),
      "; next: --history with the one that it was made from"));
}

absl::Status Verify(absl::string_view text, const Json& json,
                    const tracker::History& history,
                    const std::string& public_key_pem) {
  OPTRAIL_RETURN_IF_ERROR(CheckFormat(json));
  absl::StatusOr<Json> computed =
      Compute(InputsOf(json.at("inputs")), history, FormatOf(json),
              /*is_new=*/false);
  if (absl::IsNotFound(computed.status())) {
    return CheckAlone(text, json, public_key_pem, computed.status());
  }
  OPTRAIL_RETURN_IF_ERROR(computed.status());
  Json follows = *std::move(computed);
  follows["digest"] = DigestOf(follows);
  if (json.contains("signature")) follows["signature"] = json["signature"];
  const std::string where = Difference(json, follows, "");
  if (!where.empty()) {
    return absl::DataLossError(
        absl::StrCat("certificate: ", where,
                     " does not follow from its inputs and this history"));
  }
  // Also what a JSON reader takes for the same.
  if (text != Text(follows)) {
    return absl::DataLossError("certificate: its bytes were changed");
  }
  return CheckSigned(json, public_key_pem);
}

}  // namespace

absl::StatusOr<std::string> MakeCertificate(const CertificateInputs& inputs,
                                            const tracker::History& history) {
  OPTRAIL_ASSIGN_OR_RETURN(Json json,
                           Compute(inputs, history, kFormat, /*is_new=*/true));
  json["digest"] = DigestOf(json);
  return Text(json);
}

absl::StatusOr<std::vector<std::string>> LeftOut(
    const CertificateInputs& inputs, const tracker::History& history) {
  const RE2 filter(inputs.filter, RE2::Quiet);
  OPTRAIL_RETURN_IF_ERROR(CheckFilter(filter));
  OPTRAIL_ASSIGN_OR_RETURN(const proto::Run base, history.ReadRun(inputs.base));
  OPTRAIL_ASSIGN_OR_RETURN(const proto::Run candidate,
                           history.ReadRun(inputs.candidate));
  OPTRAIL_ASSIGN_OR_RETURN(const CertifiedWork work,
                           CertifiedWorkOf(base, candidate, filter));
  return work.left_out;
}

absl::StatusOr<std::string> SignCertificate(
    absl::string_view json, const std::string& private_key_pem) {
  OPTRAIL_ASSIGN_OR_RETURN(Json parsed, ParseJson(json, "certificate"));
  const std::string digest = parsed["digest"];
  OPTRAIL_ASSIGN_OR_RETURN(const Signature signature,
                           Sign(digest, private_key_pem));
  parsed["signature"] = {{"algorithm", "Ed25519"},
                         {"public_key", signature.public_key},
                         {"value", signature.value}};
  return Text(parsed);
}

absl::Status VerifyCertificate(absl::string_view json,
                               const tracker::History& history,
                               const std::string& public_key_pem) {
  const absl::StatusOr<Json> parsed = ParseJson(json, "certificate");
  if (!parsed.ok()) return absl::DataLossError(parsed.status().message());
  try {
    const absl::Status verified =
        Verify(json, *parsed, history, public_key_pem);
    if (verified.ok() || absl::IsDataLoss(verified) ||
        absl::IsNotFound(verified) || absl::IsUnavailable(verified)) {
      return verified;
    }
    return absl::DataLossError(
        absl::StrCat("certificate: ", verified.message()));
  } catch (const Json::exception& error) {
    return absl::DataLossError(
        absl::StrCat("certificate: none that `optrail carbon certify` writes: ",
                     JsonReason(error)));
  }
}

bool IsOfOlderFormat(absl::string_view json) {
  const absl::StatusOr<Json> parsed = ParseJson(json, "certificate");
  return parsed.ok() && IsOlder(FormatOf(*parsed), *parsed);
}

}  // namespace optrail::carbon
