#include "tracker/explain/calibration.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_format.h"
#include "base/stats/statistics.h"
#include "tracker/convergence/findings.h"

namespace optrail::tracker {
namespace {

// Advice about a search by its finding, since all of it is one more search.
std::string CalibrationName(const proto::DiagnosisAdvice& advice) {
  return ParseFindingKind(advice.class_name()).has_value()
             ? advice.class_name()
             : AdviceKindText(advice.kind());
}

std::string Percent(double share) {
  return absl::StrFormat("%.1f%%", 100 * share);
}

}  // namespace

bool WasTried(const proto::DiagnosisAdvice& advice) {
  constexpr char kSearchOfNothing[] = "0 trials found nothing";
  return advice.has_realised_gain() &&
         !absl::StartsWith(advice.outcome(), kSearchOfNothing);
}

std::string AdviceKindText(proto::AdviceKind kind) {
  return absl::AsciiStrToLower(proto::AdviceKind_Name(kind));
}

Table CalibrationTable(absl::Span<const proto::Diagnosis> diagnoses) {
  struct Kind {
    std::vector<double> predicted, realised, errors;
    int kept = 0;
    int given = 0;
  };
  std::map<std::string, Kind> kinds;
  for (const proto::Diagnosis& diagnosis : diagnoses) {
    for (int i = 0; i < diagnosis.advice_size(); ++i) {
      const proto::DiagnosisAdvice& advice = diagnosis.advice(i);
      std::vector<std::string> names = {CalibrationName(advice), "(all)"};
      if (i == 0) names.push_back("(first)");
      for (const std::string& name : names) {
        Kind& kind = kinds[name];
        ++kind.given;
        // Advice without a prediction has none that could be wrong.
        if (!WasTried(advice) || advice.predicted_gain() <= 0) continue;
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

}  // namespace optrail::tracker
