#include "diagnosis/numbers.h"

#include <cmath>

#include "absl/strings/str_format.h"

namespace optrail::diagnosis {

std::string NumberText(double value) {
  // %.3g prints a number that it rounds to 1000 as 1e+03.
  return std::fabs(value) < 999.5 ? absl::StrFormat("%.3g", value)
                                  : absl::StrFormat("%.0f", value);
}

void Numbers::Set(absl::string_view name, Number number,
                  absl::string_view how) {
  if (!std::isfinite(number.value)) {
    SetUnsupported(name, "it is not a finite number");
    return;
  }
  proto::DiagnosisNumber& stored = protos_[std::string(name)];
  stored.Clear();
  stored.set_name(std::string(name));
  stored.set_value(number.value);
  if (number.low < number.high && std::isfinite(number.low) &&
      std::isfinite(number.high)) {
    stored.set_low(number.low);
    stored.set_high(number.high);
  }
  stored.set_how(std::string(how));
  known_.insert_or_assign(std::string(name), number);
}

void Numbers::SetUnsupported(absl::string_view name, absl::string_view why) {
  proto::DiagnosisNumber& stored = protos_[std::string(name)];
  stored.Clear();
  stored.set_name(std::string(name));
  stored.set_unsupported(std::string(why));
  known_.erase(std::string(name));
}

const Number* Numbers::Find(absl::string_view name) const {
  const auto found = known_.find(name);
  return found == known_.end() ? nullptr : &found->second;
}

double Numbers::ValueOr(absl::string_view name, double otherwise) const {
  const Number* const found = Find(name);
  return found == nullptr ? otherwise : found->value;
}

std::string Numbers::WhyUnknown(absl::string_view name) const {
  const auto found = protos_.find(name);
  return found == protos_.end() ? "" : found->second.unsupported();
}

google::protobuf::RepeatedPtrField<proto::DiagnosisNumber> Numbers::ToProto()
    const {
  google::protobuf::RepeatedPtrField<proto::DiagnosisNumber> protos;
  for (const auto& [name, number] : protos_) *protos.Add() = number;
  return protos;
}

Numbers Numbers::FromProto(
    const google::protobuf::RepeatedPtrField<proto::DiagnosisNumber>& protos) {
  Numbers numbers;
  for (const proto::DiagnosisNumber& stored : protos) {
    if (!stored.has_value()) {
      numbers.SetUnsupported(stored.name(), stored.unsupported());
    } else if (stored.has_low() && stored.has_high()) {
      numbers.Set(stored.name(), {stored.value(), stored.low(), stored.high()},
                  stored.how());
    } else {
      numbers.Set(stored.name(), stored.value(), stored.how());
    }
  }
  return numbers;
}

}  // namespace optrail::diagnosis
