#include "tracker/convergence/failure_rule.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "tuning/proto/canonical.h"

namespace optrail::tracker {
namespace {

struct Example {
  double value = 0;
  bool fails = false;
};

double EntropyTerm(double count, double total) {
  return count <= 0 ? 0 : -count * std::log(count / total);
}

double Entropy(double a, double b) {
  return EntropyTerm(a, a + b) + EntropyTerm(b, a + b);
}

class RuleSearch {
 public:
  explicit RuleSearch(const std::vector<TrialPoint>& trials) {
    for (const TrialPoint& trial : trials) {
      const bool fails = IsAvoidable(trial.outcome);
      // Raced out means that it ran.
      const bool works =
          trial.cost.has_value() || trial.outcome == proto::CENSORED;
      if (!fails && !works) continue;
      (fails ? best_.failures : best_.working)++;
      points_.push_back({&trial, fails});
    }
  }

  absl::optional<FailureRule> Run() {
    if (best_.failures == 0 || best_.working == 0) return absl::nullopt;
    CollectKnobs();
    for (const auto& [knob, values] : labels_) TryLabels(knob, values);
    const int count = static_cast<int>(numbers_.size());
    for (int i = 0; i < count; ++i) {
      TryProduct({i});
      for (int j = i + 1; j < count; ++j) {
        TryProduct({i, j});
        for (int k = j + 1; k < count; ++k) TryProduct({i, j, k});
      }
    }
    if (best_.failing.empty() || 2 * best_.failures_covered < best_.failures ||
        5 * best_.working_refused > best_.working) {
      return absl::nullopt;
    }
    return best_;
  }

 private:
  struct Point {
    const TrialPoint* trial;
    bool fails;
  };
  struct NumberKnob {
    std::string name;
    std::vector<double> values;  // one per point
  };

  void CollectKnobs() {
    std::map<std::string, std::vector<double>> numbers;
    for (const Point& point : points_) {
      for (const proto::KnobValue& value : point.trial->config.set()) {
        if (value.has_int_()) {
          numbers[value.knob()].push_back(static_cast<double>(value.int_()));
        } else {
          labels_[value.knob()].push_back(
              {tuning::CanonicalText(value), value.has_variant()});
        }
      }
    }
    // A knob that some configs lack (the space changed) can't be judged.
    for (auto& [name, values] : numbers) {
      if (values.size() == points_.size()) {
        numbers_.push_back({name, std::move(values)});
      }
    }
    for (auto it = labels_.begin(); it != labels_.end();) {
      it = it->second.size() == points_.size() ? std::next(it)
                                               : labels_.erase(it);
    }
  }

  void Consider(int covered, int refused, int knobs, const std::string& failing,
                const std::string& constraint) {
    const double fails = best_.failures;
    const double works = best_.working;
    // Only rules that gather failures.
    if (covered * works <= refused * fails) return;
    const double gain = Entropy(fails, works) - Entropy(covered, refused) -
                        Entropy(fails - covered, works - refused);
    const double score = gain - .5 * (knobs - 1) * std::log(fails + works);
    if (score <= best_score_) return;
    best_score_ = score;
    best_.failures_covered = covered;
    best_.working_refused = refused;
    best_.failing = failing;
    best_.constraint = constraint;
  }

  void TryLabels(const std::string& knob,
                 const std::vector<std::pair<std::string, bool>>& values) {
    std::map<std::pair<std::string, bool>, std::pair<int, int>> counts;
    for (size_t i = 0; i < values.size(); ++i) {
      auto& count = counts[values[i]];
      (points_[i].fails ? count.first : count.second)++;
    }
    for (const auto& [value, count] : counts) {
      const std::string text =
          value.second ? absl::StrCat("'", value.first, "'") : value.first;
      Consider(count.first, count.second, 1, absl::StrCat(knob, " == ", text),
               absl::StrCat(knob, " != ", text));
    }
  }

  void TryProduct(const std::vector<int>& knobs) {
    std::vector<Example> examples(points_.size());
    for (size_t i = 0; i < points_.size(); ++i) {
      double product = 1;
      for (int knob : knobs) product *= numbers_[knob].values[i];
      examples[i] = {product, points_[i].fails};
    }
    std::sort(
        examples.begin(), examples.end(),
        [](const Example& a, const Example& b) { return a.value < b.value; });
    const std::string name =
        absl::StrJoin(knobs, " * ", [this](std::string* out, int knob) {
          out->append(numbers_[knob].name);
        });
    const auto number = [](double value) {
      return absl::StrCat(static_cast<int64_t>(value));
    };
    int failing_below = 0;
    int working_below = 0;
    for (size_t i = 0; i + 1 < examples.size(); ++i) {
      (examples[i].fails ? failing_below : working_below)++;
      if (examples[i].value == examples[i + 1].value) continue;
      const int count = static_cast<int>(knobs.size());
      const std::string below = number(examples[i].value);
      const std::string above = number(examples[i + 1].value);
      Consider(best_.failures - failing_below, best_.working - working_below,
               count, absl::StrCat(name, " >= ", above),
               absl::StrCat(name, " < ", above));
      Consider(failing_below, working_below, count,
               absl::StrCat(name, " <= ", below),
               absl::StrCat(name, " > ", below));
    }
  }

  std::vector<Point> points_;
  std::vector<NumberKnob> numbers_;
  // Per knob and point: the text, and whether it needs quotes.
  std::map<std::string, std::vector<std::pair<std::string, bool>>> labels_;
  FailureRule best_;
  double best_score_ = 0;
};

}  // namespace

bool IsAvoidable(proto::Outcome outcome) {
  switch (outcome) {
    case proto::OUTCOME_UNSPECIFIED:
    case proto::OK:
    case proto::CENSORED:
    case proto::CONTENDED:
      return false;
    default:
      return true;
  }
}

absl::optional<FailureRule> ExplainFailures(
    const std::vector<TrialPoint>& trials) {
  return RuleSearch(trials).Run();
}

}  // namespace optrail::tracker
