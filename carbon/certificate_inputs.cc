#include "carbon/certificate_inputs.h"

#include <cmath>
#include <string>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "carbon/energy_of.h"

namespace optrail::carbon {
namespace {

using Json = nlohmann::json;

}  // namespace

nlohmann::json InputsJson(const CertificateInputs& inputs) {
  Json intervals = Json::array();
  for (const GridInterval& interval : inputs.intensity) {
    intervals.push_back(
        Json::array({TimeText(interval.start_unix_s),
                     TimeText(interval.end_unix_s), interval.value}));
  }
  return {
      {"base_run", inputs.base},
      {"candidate_run", inputs.candidate},
      {"filter", inputs.filter},
      {"issued", TimeText(inputs.issued_unix_s)},
      {"zone", inputs.zone},
      {"intensity",
       {{"unit", "gCO2e/kWh"},
        {"kind", inputs.intensity_kind},
        {"source", inputs.intensity_source},
        {"file_sha256", inputs.intensity_sha256},
        {"uncertainty", inputs.intensity_uncertainty},
        {"intervals", intervals}}},
      {"embodied",
       {{"grams", inputs.embodied_grams},
        {"lifetime_hours", inputs.embodied_hours},
        {"source", inputs.embodied_source},
        {"uncertainty", inputs.embodied_uncertainty}}},
      {"pue", inputs.pue},
      {"energy",
       {{"meter_uncertainty", kMeterUncertainty},
        {"model_uncertainty", kModelUncertainty}}},
      {"power_model",
       {{"idle_watts_per_core", inputs.model.idle_watts_per_core},
        {"busy_watts_per_core", inputs.model.busy_watts_per_core},
        {"device_watts", inputs.model.device_watts}}},
  };
}

CertificateInputs InputsOf(const nlohmann::json& json) {
  CertificateInputs inputs;
  inputs.base = json.at("base_run").get<std::string>();
  inputs.candidate = json.at("candidate_run").get<std::string>();
  inputs.filter = json.at("filter").get<std::string>();
  const auto time_of = [](const Json& text) {
    const auto time = ParseTime(text.get<std::string>());
    return time.ok() ? *time : 0;
  };
  inputs.issued_unix_s = time_of(json.at("issued"));
  inputs.zone = json.at("zone").get<std::string>();
  const Json& intensity = json.at("intensity");
  inputs.intensity_kind = intensity.at("kind").get<std::string>();
  inputs.intensity_source = intensity.at("source").get<std::string>();
  inputs.intensity_sha256 = intensity.at("file_sha256").get<std::string>();
  inputs.intensity_uncertainty = intensity.at("uncertainty").get<double>();
  for (const Json& interval : intensity.at("intervals")) {
    inputs.intensity.push_back({time_of(interval.at(0)),
                                time_of(interval.at(1)),
                                interval.at(2).get<double>()});
  }
  const Json& embodied = json.at("embodied");
  inputs.embodied_grams = embodied.at("grams").get<double>();
  inputs.embodied_hours = embodied.at("lifetime_hours").get<double>();
  inputs.embodied_source = embodied.at("source").get<std::string>();
  inputs.embodied_uncertainty = embodied.at("uncertainty").get<double>();
  inputs.pue = json.at("pue").get<double>();
  const Json& model = json.at("power_model");
  inputs.model.idle_watts_per_core =
      model.at("idle_watts_per_core").get<double>();
  inputs.model.busy_watts_per_core =
      model.at("busy_watts_per_core").get<double>();
  inputs.model.device_watts = model.at("device_watts").get<double>();
  return inputs;
}

absl::Status CheckInputs(const CertificateInputs& inputs) {
  const auto check = [](bool holds, absl::string_view field, double value,
                        absl::string_view expected) {
    if (holds && std::isfinite(value)) return absl::OkStatus();
    return absl::InvalidArgumentError(absl::StrCat(
        "certificate: ", field, " is ", value, ", expected ", expected));
  };
  OPTRAIL_RETURN_IF_ERROR(check(inputs.pue >= 1 && inputs.pue <= 10, "pue",
                                inputs.pue, "a ratio from 1 to 10"));
  OPTRAIL_RETURN_IF_ERROR(check(inputs.embodied_grams >= 0, "embodied grams",
                                inputs.embodied_grams, "at least 0"));
  OPTRAIL_RETURN_IF_ERROR(
      check(inputs.embodied_grams == 0 || inputs.embodied_hours > 0,
            "embodied lifetime_hours", inputs.embodied_hours, "above 0"));
  for (const double fraction :
       {inputs.intensity_uncertainty, inputs.embodied_uncertainty}) {
    OPTRAIL_RETURN_IF_ERROR(check(fraction >= 0 && fraction <= 1, "uncertainty",
                                  fraction, "a fraction from 0 to 1"));
  }
  if (inputs.intensity_kind != "average" &&
      inputs.intensity_kind != "marginal" &&
      inputs.intensity_kind != kMadeUpKind) {
    return absl::InvalidArgumentError(absl::StrCat(
        "certificate: the kind of intensity is \"", inputs.intensity_kind,
        "\", expected average or marginal, or ", kMadeUpKind));
  }
  if (inputs.intensity.empty()) {
    return absl::InvalidArgumentError(
        "certificate: there are no intervals of intensity");
  }
  for (const GridInterval& interval : inputs.intensity) {
    OPTRAIL_RETURN_IF_ERROR(check(
        interval.value >= 0 && interval.start_unix_s < interval.end_unix_s,
        "intensity", interval.value, "a value from 0 on, and a time"));
  }
  return absl::OkStatus();
}

}  // namespace optrail::carbon
