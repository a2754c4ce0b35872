#ifndef OPTRAIL_CARBON_CERTIFICATE_INPUTS_H_
#define OPTRAIL_CARBON_CERTIFICATE_INPUTS_H_

// The inputs of a certificate (certificate.h) as its member "inputs", which a
// check reads back:
//
//   json["inputs"] = InputsJson(inputs);
//   const CertificateInputs read = InputsOf(json.at("inputs"));

#include "absl/status/status.h"
#include "carbon/certificate.h"
#include "nlohmann/json.hpp"

namespace optrail::carbon {

nlohmann::json InputsJson(const CertificateInputs& inputs);

// Throws what nlohmann throws for a field that is missing or of another type;
// the caller catches it.
CertificateInputs InputsOf(const nlohmann::json& json);

// InvalidArgument for a number that is out of its range, and without intervals
// of intensity.
absl::Status CheckInputs(const CertificateInputs& inputs);

}  // namespace optrail::carbon

#endif  // OPTRAIL_CARBON_CERTIFICATE_INPUTS_H_
