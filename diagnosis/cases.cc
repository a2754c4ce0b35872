#include "diagnosis/cases.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "diagnosis/numbers.h"
#include "suites/workload/tasks.h"
#include "tracker/explain/calibration.h"

namespace optrail::diagnosis {
namespace {

constexpr size_t kMostSimilar = 3;
constexpr double kFarthest = 1.5;

std::string FirstCause(const proto::Diagnosis& diagnosis) {
  if (diagnosis.causes_size() == 0) return "";
  return diagnosis.causes(0).chain().rbegin()->class_name();
}

double SymptomDistance(const proto::Diagnosis& a, const proto::Diagnosis& b) {
  const Numbers known = Numbers::FromProto(b.numbers());
  double sum = 0;
  int count = 0;
  for (const proto::DiagnosisNumber& number : a.numbers()) {
    const Number* const other = known.Find(number.name());
    const bool comparable = absl::EndsWith(number.name(), "_gain") ||
                            absl::EndsWith(number.name(), "_share");
    if (!comparable || !number.has_value() || other == nullptr) continue;
    sum += std::fabs(std::clamp(number.value(), -1., 1.) -
                     std::clamp(other->value, -1., 1.));
    ++count;
  }
  return count == 0 ? 1 : sum / count;
}

double Distance(const proto::Diagnosis& a, const proto::Diagnosis& b) {
  double distance = SymptomDistance(a, b);
  distance += a.task().operator_name() != b.task().operator_name();
  distance += .5 * (a.task().hardware_id() != b.task().hardware_id());
  distance += FirstCause(a) != FirstCause(b);
  if (a.time_ns() > 0 && b.time_ns() > 0) {
    distance += std::fabs(std::log10(a.time_ns() / b.time_ns()));
  }
  return distance;
}

}  // namespace

std::vector<Similar> SimilarCases(const proto::Diagnosis& diagnosis,
                                  absl::Span<const proto::Diagnosis> earlier) {
  std::vector<Similar> similar;
  for (const proto::Diagnosis& other : earlier) {
    const double distance = Distance(diagnosis, other);
    if (distance <= kFarthest) similar.push_back({&other, distance});
  }
  std::stable_sort(similar.begin(), similar.end(),
                   [](const Similar& a, const Similar& b) {
                     return a.distance < b.distance;
                   });
  if (similar.size() > kMostSimilar) similar.resize(kMostSimilar);
  return similar;
}

std::string CitationOf(const proto::Diagnosis& earlier) {
  std::string text = absl::StrCat(earlier.diagnosis_id(), ": ",
                                  suites::ShortTaskText(earlier.task()), ": ",
                                  earlier.verdict());
  const proto::DiagnosisAdvice* best = nullptr;
  for (const proto::DiagnosisAdvice& advice : earlier.advice()) {
    if (!tracker::WasTried(advice)) continue;
    if (best == nullptr || advice.realised_gain() > best->realised_gain()) {
      best = &advice;
    }
  }
  if (best == nullptr) return absl::StrCat(text, "; no advice was tried");
  absl::StrAppendFormat(&text, "; %s: %.0f%% predicted, %.0f%% realised",
                        best->text(), 100 * best->predicted_gain(),
                        100 * best->realised_gain());
  return text;
}

}  // namespace optrail::diagnosis
