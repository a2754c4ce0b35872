#include "diagnosis/report.h"

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "base/text/units.h"
#include "base/text/utf8.h"
#include "diagnosis/classes.h"
#include "diagnosis/numbers.h"
#include "nlohmann/json.hpp"
#include "suites/workload/tasks.h"
#include "tracker/explain/calibration.h"
#include "tuning/proto/canonical.h"

namespace optrail::diagnosis {
namespace {

using Json = nlohmann::ordered_json;

std::string Percent(double share) {
  return absl::StrFormat("%.0f%%", 100 * share);
}

std::string GainText(double gain, bool has_interval, double low, double high) {
  std::string text = Percent(gain);
  if (has_interval) {
    absl::StrAppend(&text, " (", Percent(low), " to ", Percent(high), ")");
  }
  return text;
}

// "memory_gain .31 (.28 to .34): operands in one small block"
std::string EvidenceText(const proto::DiagnosisNumber& number) {
  std::string text =
      absl::StrCat(number.name(), " ", NumberText(number.value()));
  if (number.has_low()) {
    absl::StrAppend(&text, " (", NumberText(number.low()), " to ",
                    NumberText(number.high()), ")");
  }
  return absl::StrCat(text, ": ", number.how());
}

const proto::DiagnosisNumber* Find(const proto::Diagnosis& diagnosis,
                                   const std::string& name) {
  for (const proto::DiagnosisNumber& number : diagnosis.numbers()) {
    if (number.name() == name && number.has_value()) return &number;
  }
  return nullptr;
}

void AppendCause(const proto::Diagnosis& diagnosis,
                 const proto::DiagnosisCause& cause, const char* bullet,
                 std::string* text) {
  std::string indent;
  for (const proto::DiagnosisLink& link : cause.chain()) {
    absl::StrAppend(text, indent, bullet, link.class_name(), ": ", link.says(),
                    "\n");
    indent += "  ";
    for (const std::string& name : link.evidence()) {
      if (const auto* const number = Find(diagnosis, name)) {
        absl::StrAppend(text, indent, "  evidence: ", EvidenceText(*number),
                        "\n");
      }
    }
  }
  absl::StrAppend(
      text, indent, "  recoverable: ",
      GainText(cause.recoverable(), cause.has_low(), cause.low(), cause.high()),
      " of the time\n");
}

void AppendAdvice(const proto::DiagnosisAdvice& advice, const char* bullet,
                  std::string* text) {
  absl::StrAppend(text, bullet, advice.text(), "\n    predicted gain ",
                  GainText(advice.predicted_gain(), advice.has_predicted_low(),
                           advice.predicted_low(), advice.predicted_high()),
                  ", ", advice.confidence(), "; costs ", advice.cost(), "\n");
  if (tracker::WasTried(advice)) {
    absl::StrAppend(text, "    realised gain ",
                    GainText(advice.realised_gain(), advice.has_realised_low(),
                             advice.realised_low(), advice.realised_high()),
                    ": ", advice.outcome(), "\n");
  } else if (!advice.outcome().empty()) {
    absl::StrAppend(text, "    ", advice.outcome(), "\n");
  }
}

// In a few words: what the knobs become is in the advice itself.
std::string InShort(const proto::DiagnosisAdvice& advice) {
  switch (advice.kind()) {
    case proto::TUNE_KNOBS:
      return absl::StrCat("tune ", absl::StrJoin(advice.knobs(), ", "));
    case proto::USE_THREADS:
      return absl::StrCat(advice.threads(), " threads");
    case proto::USE_BACKEND:
      return absl::StrCat("backend ", advice.backend().empty()
                                          ? "of the device"
                                          : advice.backend());
    case proto::CHANGE_CODE:
      return "change the code";
    case proto::CHANGE_SURROUNDINGS:
      return "change a setting";
    default:
      return advice.text();
  }
}

// The first cause, or why there is none.
std::string CauseInShort(const proto::Diagnosis& diagnosis) {
  if (diagnosis.causes_size() > 0) {
    return diagnosis.causes(0).chain().rbegin()->class_name();
  }
  const Numbers numbers = Numbers::FromProto(diagnosis.numbers());
  if (ReachedShare(numbers) >= kHealthyShare) return "none: near the roofline";
  const ClassRule* const limit = LimitOf(numbers);
  return limit == nullptr ? "not found"
                          : absl::StrCat("not found (", limit->name(), ")");
}

Json JsonOf(const proto::DiagnosisCause& cause) {
  Json chain = Json::array();
  for (const proto::DiagnosisLink& link : cause.chain()) {
    chain.push_back(
        {{"class", link.class_name()},
         {"says", link.says()},
         {"evidence", std::vector<std::string>(link.evidence().begin(),
                                               link.evidence().end())}});
  }
  return {{"chain", std::move(chain)}, {"recoverable", cause.recoverable()}};
}

Json JsonOf(const proto::DiagnosisAdvice& advice) {
  Json json = {{"kind", tracker::AdviceKindText(advice.kind())},
               {"text", advice.text()},
               {"class", advice.class_name()},
               {"predicted_gain", advice.predicted_gain()},
               {"confidence", advice.confidence()},
               {"cost", advice.cost()}};
  json["realised_gain"] =
      tracker::WasTried(advice) ? Json(advice.realised_gain()) : Json(nullptr);
  json["outcome"] = advice.outcome();
  return json;
}

Json JsonOf(const proto::Diagnosis& diagnosis) {
  Json numbers = Json::array();
  for (const proto::DiagnosisNumber& number : diagnosis.numbers()) {
    const auto optional = [](bool has, double value) {
      return has ? Json(value) : Json(nullptr);
    };
    numbers.push_back({{"name", number.name()},
                       {"value", optional(number.has_value(), number.value())},
                       {"low", optional(number.has_low(), number.low())},
                       {"high", optional(number.has_high(), number.high())},
                       {"how", number.how()},
                       {"unsupported", number.unsupported()}});
  }
  Json causes = Json::array(), advice = Json::array();
  const std::vector<std::string> limits =
      PossibleLimits(Numbers::FromProto(diagnosis.numbers()));
  for (const auto& cause : diagnosis.causes()) causes.push_back(JsonOf(cause));
  for (const auto& one : diagnosis.advice()) advice.push_back(JsonOf(one));
  return {{"diagnosis", diagnosis.diagnosis_id()},
          {"task", suites::ShortTaskText(diagnosis.task())},
          {"config", tuning::CanonicalText(diagnosis.config())},
          {"time_ns", diagnosis.time_ns()},
          {"workload_share", diagnosis.has_workload_share()
                                 ? Json(diagnosis.workload_share())
                                 : Json(nullptr)},
          {"roofline_share", diagnosis.has_roofline_share()
                                 ? Json(diagnosis.roofline_share())
                                 : Json(nullptr)},
          {"verdict", diagnosis.verdict()},
          {"limited_by", limits.empty() ? Json(nullptr) : Json(limits[0])},
          {"or_limited_by", limits.empty()
                                ? Json::array()
                                : Json(std::vector<std::string>(
                                      limits.begin() + 1, limits.end()))},
          {"causes", std::move(causes)},
          {"advice", std::move(advice)},
          {"numbers", std::move(numbers)},
          {"similar", std::vector<std::string>(diagnosis.similar().begin(),
                                               diagnosis.similar().end())},
          {"elapsed_seconds", diagnosis.elapsed_seconds()}};
}

}  // namespace

std::string DiagnosisText(const proto::Diagnosis& diagnosis, bool markdown,
                          bool with_unknown) {
  const char* const bullet = markdown ? "- " : "";
  std::string text = absl::StrCat(
      markdown ? "### " : "", suites::ShortTaskText(diagnosis.task()), "\n",
      markdown ? "\n" : "  ", diagnosis.verdict(), "\n", markdown ? "\n" : "",
      "  ", FormatDurationNs(diagnosis.time_ns()), " a call");
  if (diagnosis.has_roofline_share()) {
    absl::StrAppend(&text, ", ", Percent(diagnosis.roofline_share()),
                    " of the roofline");
  }
  if (diagnosis.has_workload_share()) {
    absl::StrAppend(&text, ", ", Percent(diagnosis.workload_share()),
                    " of the workload");
  }
  absl::StrAppend(&text, "\n");
  const auto title = [&](const char* name) {
    absl::StrAppend(&text, markdown ? "\n**" : "", name,
                    markdown ? "**\n\n" : ":\n");
  };
  if (diagnosis.causes_size() > 0) title("causes");
  for (const proto::DiagnosisCause& cause : diagnosis.causes()) {
    AppendCause(diagnosis, cause, markdown ? "- " : "- ", &text);
  }
  if (diagnosis.advice_size() > 0) title("advice");
  for (const proto::DiagnosisAdvice& advice : diagnosis.advice()) {
    AppendAdvice(advice, "- ", &text);
  }
  if (diagnosis.similar_size() > 0) title("similar cases");
  for (const std::string& similar : diagnosis.similar()) {
    absl::StrAppend(&text, "- ", similar, "\n");
  }
  const std::string unknown = with_unknown ? UnknownText({diagnosis}) : "";
  if (!unknown.empty()) {
    absl::StrAppend(&text, bullet, "not known: ", unknown, "\n");
  }
  return markdown ? text : SanitiseText(text);
}

std::string UnknownText(absl::Span<const proto::Diagnosis> diagnoses) {
  struct Unknown {
    std::string why;  // the first task's reason
    size_t tasks = 0;
  };
  std::map<std::string, Unknown> unknown;
  for (const proto::Diagnosis& diagnosis : diagnoses) {
    for (const proto::DiagnosisNumber& number : diagnosis.numbers()) {
      if (!number.has_value()) {
        Unknown& one = unknown[number.name()];
        if (one.tasks++ == 0) one.why = number.unsupported();
      }
    }
  }
  const auto append = [&](std::string* out, const auto& one) {
    const auto& [name, number] = one;
    absl::StrAppend(out, name, " (");
    if (diagnoses.size() > 1) {
      absl::StrAppend(out, "of ", number.tasks, " of ", diagnoses.size(),
                      " tasks: ");
    }
    absl::StrAppend(out, number.why, ")");
  };
  return absl::StrJoin(unknown, ", ", append);
}

Table SummaryOf(absl::Span<const proto::Diagnosis> diagnoses) {
  Table table({{"task"},
               {"a call", Align::kRight, "time_ns"},
               {"of ceiling", Align::kRight, "roofline_share"},
               {"cause"},
               {"advice"},
               {"predicted", Align::kRight, "predicted_gain"},
               {"realised", Align::kRight, "realised_gain"}});
  const auto share = [](bool has, double value) {
    return has ? Cell::Number(value, Percent(value)) : Cell::None();
  };
  for (const proto::Diagnosis& one : diagnoses) {
    const bool advised = one.advice_size() > 0;
    const proto::DiagnosisAdvice advice =
        advised ? one.advice(0) : proto::DiagnosisAdvice();
    table.AddRow({suites::ShortTaskText(one.task()),
                  Cell::Number(one.time_ns(), FormatDurationNs(one.time_ns())),
                  share(one.has_roofline_share(), one.roofline_share()),
                  CauseInShort(one),
                  advised ? Cell(InShort(advice)) : Cell::None(),
                  share(advised, advice.predicted_gain()),
                  share(tracker::WasTried(advice), advice.realised_gain())});
  }
  return table;
}

std::string DiagnosesJson(absl::Span<const proto::Diagnosis> diagnoses) {
  Json json = Json::array();
  for (const proto::Diagnosis& diagnosis : diagnoses) {
    json.push_back(JsonOf(diagnosis));
  }
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace optrail::diagnosis
