#include "carbon/certified_saving.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/string_view.h"
#include "carbon/energy_of.h"
#include "tracker/compare/compare.h"
#include "tracker/series/series_key.h"
#include "tuning/proto/meter_window.h"
#include "tuning/session/objective.h"

namespace optrail::carbon {
namespace {

using Json = nlohmann::json;
using tracker::Verdict;

// Told counts what the judge says of the benchmarks.
struct Told {
  int better = 0, worse = 0, unchanged = 0, unknown = 0;
  std::string reason;  // of the first one that it cannot tell
};

Told Ask(const proto::Run& base, const proto::Run& candidate,
         const CertifiedWork& work) {
  Told told;
  tracker::CompareOptions options;
  options.threshold =
      [&](absl::string_view,
          absl::string_view metric) -> absl::optional<tracker::Threshold> {
    if (metric == tuning::kTimeMetric || metric == tuning::kJoules) {
      return options.effects;
    }
    return absl::nullopt;
  };
  const auto compared = tracker::Compare({&base}, {&candidate}, options);
  if (!compared.ok()) {
    told.unknown = static_cast<int>(work.candidate.size());
    told.reason = std::string(compared.status().message());
    return told;
  }
  for (const CountedCall& call : work.candidate) {
    // Joules, where they were metered, are what is certified.
    const tracker::Row* found = nullptr;
    for (const tracker::Row& row : compared->rows) {
      if (tracker::CanonicalText(row.key) != call.benchmark) continue;
      if (found == nullptr || row.metric == tuning::kJoules) found = &row;
    }
    const Verdict verdict =
        found == nullptr ? Verdict::kCannotTell : found->verdict;
    if (verdict == Verdict::kFaster) {
      ++told.better;
    } else if (verdict == Verdict::kSlower ||
               verdict == Verdict::kSlowerInMostSamples) {
      ++told.worse;
    } else if (verdict == Verdict::kUnchanged) {
      ++told.unchanged;
    } else {
      ++told.unknown;
      if (told.reason.empty()) {
        told.reason =
            found == nullptr
                ? absl::StrCat(call.benchmark,
                               " is not the same benchmark in both runs")
                : found->reason;
      }
    }
  }
  return told;
}

std::string PercentText(double fraction) {
  return absl::StrFormat("%.1f%% %s", std::abs(100 * fraction),
                         fraction >= 0 ? "less" : "more");
}

}  // namespace

Json SavingOf(const proto::Run& base, const proto::Run& candidate,
              const CertifiedWork& work, const Json& certificate) {
  const bool same_hardware = base.hardware().id() == candidate.hardware().id();
  double relative =
      std::hypot(certificate.at("base").at("scatter").get<double>(),
                 certificate.at("candidate").at("scatter").get<double>());
  if (!same_hardware) {
    relative = std::hypot(relative, kMeterUncertainty, kMeterUncertainty);
  }
  const double ratio = 1 - certificate.at("saved_fraction").get<double>();
  const double low = 1 - ratio * (1 + relative);
  const double high = 1 - ratio * std::max(1 - relative, 0.0);
  Json saving = {{"low", low}, {"high", high}, {"reason", ""}};
  if (!same_hardware) {
    saving["verdict"] = low > 0    ? kEmitsLess
                        : high < 0 ? kEmitsMore
                                   : kCannotTell;
    saving["reason"] = absl::StrCat(
        "different hardware: ", base.hardware().id(), " and ",
        candidate.hardware().id(), ", whose meters may differ by 5% each");
    return saving;
  }
  const Told told = Ask(base, candidate, work);
  if (low > 0 && told.better > 0) {
    saving["verdict"] = kEmitsLess;
  } else if (high < 0 && told.worse > 0) {
    saving["verdict"] = kEmitsMore;
  } else if (told.unknown > 0) {
    saving["verdict"] = kCannotTell;
    saving["reason"] = told.reason;
  } else {
    saving["verdict"] = kUnchanged;
  }
  return saving;
}

std::string SavingText(const Json& certificate) {
  const double saved = certificate.at("saved_fraction").get<double>();
  const std::string unit = certificate.at("functional_unit").get<std::string>();
  const std::string per =
      absl::StrCat("per unit of work (", unit, ") than the base");
  const Json* const saving =
      certificate.contains("saving") ? &certificate.at("saving") : nullptr;
  if (saving == nullptr) {
    return absl::StrCat("The candidate emits ", PercentText(saved), " ", per,
                        ". This certificate is of an older format, which does "
                        "not say whether that is more than noise.");
  }
  const std::string interval =
      absl::StrCat("95%: ", PercentText(saving->at("low").get<double>()),
                   " to ", PercentText(saving->at("high").get<double>()));
  const std::string verdict = saving->at("verdict").get<std::string>();
  const std::string reason = saving->at("reason").get<std::string>();
  const std::string because =
      reason.empty() ? "." : absl::StrCat("; ", reason, ".");
  if (verdict == kUnchanged) {
    return absl::StrCat("No difference is shown. The candidate was read at ",
                        PercentText(saved), " ", per, " (", interval, ")",
                        because);
  }
  if (verdict == kCannotTell) {
    return absl::StrCat(
        "Can't tell whether the candidate emits less. It was "
        "read at ",
        PercentText(saved), " ", per, " (", interval, ")", because);
  }
  return absl::StrCat("The candidate emits ", PercentText(saved), " ", per,
                      " (", interval, ")", because);
}

}  // namespace optrail::carbon
