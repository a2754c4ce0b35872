#include "diagnosis/cases.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/statistics.h"
#include "diagnosis/numbers.h"
#include "suites/workload/tasks.h"
#include "tracker/convergence/findings.h"

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

// Advice about a search by its finding, since all of it is one more search.
std::string CalibrationName(const proto::DiagnosisAdvice& advice) {
  return tracker::ParseFindingKind(advice.class_name()).has_value()
             ? advice.class_name()
             : AdviceKindText(advice.kind());
}

std::string Percent(double share) {
  return absl::StrFormat("%.1f%%", 100 * share);
}

}  // namespace

std::string AdviceKindText(proto::AdviceKind kind) {
  return absl::AsciiStrToLower(proto::AdviceKind_Name(kind));
}

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
    if (!advice.has_realised_gain()) continue;
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

Table CalibrationTable(absl::Span<const proto::Diagnosis> diagnoses) {
  struct Kind {
    std::vector<double> predicted, realised, errors;
    int kept = 0;
    int given = 0;
  };
  std::map<std::string, Kind> kinds;
  for (const proto::Diagnosis& diagnosis : diagnoses) {
    for (const proto::DiagnosisAdvice& advice : diagnosis.advice()) {
      for (const std::string& name :
           {CalibrationName(advice), std::string("(all)")}) {
        Kind& kind = kinds[name];
        ++kind.given;
        // Advice without a prediction has none that could be wrong.
        if (!advice.has_realised_gain() || advice.predicted_gain() <= 0) {
          continue;
        }
        const double predicted = advice.predicted_gain();
        const double realised = advice.realised_gain();
        kind.predicted.push_back(predicted);
        kind.realised.push_back(realised);
        kind.errors.push_back(std::fabs(realised - predicted) /
                              std::max(predicted, 1e-3));
        kind.kept += realised >= predicted / 2;
      }
    }
  }
  Table table({{"advice"},
               {"given", Align::kRight},
               {"tried", Align::kRight},
               {"predicted", Align::kRight, "median_predicted_gain"},
               {"realised", Align::kRight, "median_realised_gain"},
               {"error", Align::kRight, "median_relative_error"},
               {"half or more", Align::kRight, "half_or_more_share"}});
  for (const auto& [name, kind] : kinds) {
    const auto tried = static_cast<int64_t>(kind.realised.size());
    if (tried == 0) {
      table.AddRow({name, Cell::Integer(kind.given), Cell::Integer(0),
                    Cell::None(), Cell::None(), Cell::None(), Cell::None()});
      continue;
    }
    const auto percent = [](double share) {
      return Cell::Number(share, Percent(share));
    };
    table.AddRow({name, Cell::Integer(kind.given), Cell::Integer(tried),
                  percent(Median(kind.predicted)),
                  percent(Median(kind.realised)), percent(Median(kind.errors)),
                  percent(kind.kept / static_cast<double>(tried))});
  }
  return table;
}

}  // namespace optrail::diagnosis
