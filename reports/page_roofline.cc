#include "reports/page_roofline.h"

#include <string>
#include <utility>

#include "tracker/explain/calibration.h"
#include "tuning/proto/canonical.h"

namespace optrail::reports {
namespace {

// [value, low, high]; the ends are null where there is no interval.
template <typename Message>
Json Interval(double value, const Message& of) {
  return {Rounded(value), of.has_low() ? Rounded(of.low()) : Json(nullptr),
          of.has_high() ? Rounded(of.high()) : Json(nullptr)};
}

Json LinkJson(const proto::Diagnosis& diagnosis,
              const proto::DiagnosisLink& link) {
  Json evidence = Json::array();
  for (const std::string& name : link.evidence()) {
    for (const proto::DiagnosisNumber& number : diagnosis.numbers()) {
      if (number.name() != name || !number.has_value()) continue;
      evidence.push_back(
          {name, Interval(number.value(), number), number.how()});
    }
  }
  return {link.class_name(), link.says(), std::move(evidence)};
}

Json AdviceJson(const proto::DiagnosisAdvice& advice) {
  return {
      {"text", advice.text()},
      {"predicted", Rounded(advice.predicted_gain())},
      {"confidence", advice.confidence()},
      {"realised", tracker::WasTried(advice) ? Rounded(advice.realised_gain())
                                             : Json(nullptr)},
      {"outcome", advice.outcome()}};
}

}  // namespace

Json PageRooflineJson(const RooflineView& view) {
  Json charts = ListOf(view.charts, [](const RooflineChart& chart) -> Json {
    Json levels = Json::array();
    for (const auto& level : chart.ceilings.levels) {
      levels.push_back({level.name, Rounded(level.bytes_per_s)});
    }
    Json points = ListOf(chart.points, [](const RooflinePoint& point) -> Json {
      return {point.default_series,
              point.tuned_series,
              Rounded(point.flop_per_byte),
              Rounded(point.default_flop_per_s),
              Rounded(point.tuned_flop_per_s),
              point.limit,
              point.diagnosis};
    });
    return {{"h", chart.hardware},
            {"threads", chart.threads},
            {"of", chart.flop_of},
            {"peak", Rounded(chart.ceilings.flop_per_s)},
            {"levels", std::move(levels)},
            {"points", std::move(points)},
            {"more", chart.left_out}};
  });
  Json not_placed = ListOf(view.not_placed, [](const NotPlaced& each) -> Json {
    return {each.why, each.series, each.example};
  });
  return {{"charts", std::move(charts)}, {"missing", std::move(not_placed)}};
}

Json PageDiagnosisJson(const proto::Diagnosis& diagnosis) {
  const proto::Task& task = diagnosis.task();
  Json causes = ListOf(
      diagnosis.causes(), [&](const proto::DiagnosisCause& cause) -> Json {
        return {Interval(cause.recoverable(), cause),
                ListOf(cause.chain(), [&](const proto::DiagnosisLink& link) {
                  return LinkJson(diagnosis, link);
                })};
      });
  Json unknown = Json::array();
  for (const proto::DiagnosisNumber& number : diagnosis.numbers()) {
    if (!number.has_value()) {
      unknown.push_back({number.name(), number.unsupported()});
    }
  }
  return {
      {"id", diagnosis.diagnosis_id()},
      {"at", diagnosis.created_unix_ns() / 1000000000},
      {"task", tuning::TaskText(task)},
      {"hardware", task.hardware_id()},
      {"config", tuning::CanonicalText(diagnosis.config())},
      {"time", Rounded(diagnosis.time_ns())},
      {"f", diagnosis.has_roofline_share() ? Rounded(diagnosis.roofline_share())
                                           : Json(nullptr)},
      {"verdict", diagnosis.verdict()},
      {"causes", std::move(causes)},
      {"advice", ListOf(diagnosis.advice(), AdviceJson)},
      {"unknown", std::move(unknown)}};
}

Json PageCalibrationJson(const std::vector<proto::Diagnosis>& diagnoses) {
  return Json::parse(tracker::CalibrationTable(diagnoses).ToJson());
}

}  // namespace optrail::reports
