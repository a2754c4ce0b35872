#ifndef OPTRAIL_DIAGNOSIS_NUMBERS_H_
#define OPTRAIL_DIAGNOSIS_NUMBERS_H_

// Numbers holds what a diagnosis knows of one kernel: named numbers with their
// intervals, or why one could not be measured.
//
//   Numbers numbers;
//   numbers.Set("memory_gain", {.31, .28, .34}, "operands on one block");
//   numbers.SetUnsupported("huge_page_gain", "no huge pages here");
//   const Number* gain = numbers.Find("memory_gain");  // null: not known
//
// A gain is the share of the time that went when something was changed: .31
// means that a call took 31% less. A share is a part of the time or of a whole.
// Names and meanings: docs/method/diagnosis.md.

#include <map>
#include <string>

#include "absl/strings/string_view.h"
#include "google/protobuf/repeated_field.h"
#include "tracker/proto/diagnosis.pb.h"

namespace optrail::diagnosis {

struct Number {
  Number(double value) : value(value), low(value), high(value) {}  // NOLINT
  Number(double value, double low, double high)
      : value(value), low(low), high(high) {}

  double value, low, high;
};

// Three digits, and whole numbers from 1000 on: "0.431", "12.5", "4921".
std::string NumberText(double value);

class Numbers {
 public:
  void Set(absl::string_view name, Number number, absl::string_view how);
  void SetUnsupported(absl::string_view name, absl::string_view why);

  // Null: not known.
  const Number* Find(absl::string_view name) const;
  double ValueOr(absl::string_view name, double otherwise) const;
  // Why a number is not known; "" where nobody tried.
  std::string WhyUnknown(absl::string_view name) const;

  google::protobuf::RepeatedPtrField<proto::DiagnosisNumber> ToProto() const;
  static Numbers FromProto(
      const google::protobuf::RepeatedPtrField<proto::DiagnosisNumber>& protos);

 private:
  std::map<std::string, proto::DiagnosisNumber, std::less<>> protos_;
  std::map<std::string, Number, std::less<>> known_;
};

}  // namespace optrail::diagnosis

#endif  // OPTRAIL_DIAGNOSIS_NUMBERS_H_
