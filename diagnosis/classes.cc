#include "diagnosis/classes.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/check.h"
#include "base/text/textproto.h"

namespace optrail::diagnosis {
namespace {

const ClassRule* ParentOf(const ClassRule& rule) {
  if (rule.parent().empty()) return nullptr;
  for (const ClassRule& other : ClassTable()) {
    if (other.name() == rule.parent()) return &other;
  }
  OPTRAIL_CHECK(false) << rule.name() << " has no parent " << rule.parent();
  return nullptr;
}

bool HoldsWithParents(const ClassRule& rule, const Numbers& numbers) {
  for (const ClassRule* at = &rule; at != nullptr; at = ParentOf(*at)) {
    if (!Holds(*at, numbers)) return false;
  }
  return true;
}

void AddLink(const ClassRule& rule, const Numbers& numbers,
             proto::DiagnosisCause* cause) {
  proto::DiagnosisLink& link = *cause->add_chain();
  link.set_class_name(rule.name());
  link.set_says(FillIn(rule.says(), numbers));
  for (const proto::ClassCondition& condition : rule.when()) {
    link.add_evidence(condition.number());
  }
}

// The level of the memory that the operands live in, between the symptom and
// its cause.
void AddMemoryLevel(const Numbers& numbers, proto::DiagnosisCause* cause) {
  for (const ClassRule& rule : ClassTable()) {
    if (rule.parent() == "memory" && !rule.is_cause() && Holds(rule, numbers)) {
      AddLink(rule, numbers, cause);
    }
  }
}

constexpr char kContention[] = "contention";

// Says whether the rule is about the machine and not about the kernel.
bool IsOfMachine(const ClassRule& rule) {
  return rule.name() == kContention || rule.name() == "throttling";
}

// The numbers at one end of their intervals. The intervals stay: noise at one
// end is still noise.
Numbers AtEnd(const Numbers& numbers, double Number::*end) {
  Numbers result = numbers;
  for (const proto::DiagnosisNumber& one : numbers.ToProto()) {
    const Number* const number = numbers.Find(one.name());
    if (number == nullptr || number->low >= number->high) continue;
    result.Set(one.name(), {number->*end, number->low, number->high},
               one.how());
  }
  return result;
}

}  // namespace

const google::protobuf::RepeatedPtrField<ClassRule>& ClassTable() {
  static const auto* const table = [] {
    constexpr char kText[] =
#include "diagnosis/classes_textproto.inc"
        ;
    auto parsed = ParseTextProto<proto::ClassTable>(kText, "classes.textproto");
    OPTRAIL_CHECK(parsed.ok()) << parsed.status();
    return new proto::ClassTable(std::move(parsed->message));
  }();
  return table->rule();
}

bool Holds(const ClassRule& rule, const Numbers& numbers) {
  return std::all_of(
      rule.when().begin(), rule.when().end(),
      [&](const proto::ClassCondition& condition) {
        const Number* const number = numbers.Find(condition.number());
        if (number == nullptr) return false;
        if (!condition.has_at_least()) {
          return number->value <= condition.at_most();
        }
        // The lower end of the interval of noise is near zero or below.
        const bool may_be_noise = number->low < number->high &&
                                  number->low < condition.at_least() / 2;
        return number->value >= condition.at_least() && !may_be_noise;
      });
}

std::string FillIn(absl::string_view text, const Numbers& numbers) {
  std::string filled;
  while (true) {
    const size_t open = text.find('{');
    absl::StrAppend(&filled, text.substr(0, open));
    if (open == absl::string_view::npos) return filled;
    const size_t close = text.find('}', open);
    OPTRAIL_CHECK(close != absl::string_view::npos) << text;
    absl::string_view name = text.substr(open + 1, close - open - 1);
    const bool is_share = !name.empty() && name.back() == '%';
    if (is_share) name.remove_suffix(1);
    if (const Number* const number = numbers.Find(name); number == nullptr) {
      absl::StrAppend(&filled, "?");
    } else if (is_share) {
      // A kernel that is slower without what should hold it up says that this
      // does not: no part of its time, and never more than all of it.
      absl::StrAppendFormat(&filled, "%.0f%%",
                            100 * std::clamp(number->value, 0.0, 1.0));
    } else {
      absl::StrAppend(&filled, NumberText(number->value));
    }
    text.remove_prefix(close + 1);
  }
}

// More is no noise.
constexpr double kMostReached = 1.02;

double ReachedShare(const Numbers& numbers) {
  double reached = 0;
  for (const char* name : {"roofline_share", "arithmetic_share"}) {
    const double share = numbers.ValueOr(name, 0);
    // A kernel faster than a ceiling shows that the ceiling is none: it was
    // read while others used the machine.
    if (share <= kMostReached) reached = std::max(reached, share);
  }
  return reached;
}

bool IsInconclusive(const Numbers& numbers) {
  return numbers.ValueOr("threads", 1) > 1 &&
         std::any_of(ClassTable().begin(), ClassTable().end(),
                     [&](const ClassRule& rule) {
                       return rule.name() == kContention &&
                              Holds(rule, numbers);
                     });
}

std::vector<proto::DiagnosisCause> Judge(const Numbers& numbers) {
  struct Ranked {
    proto::DiagnosisCause cause;
    double share = 0;     // what the machine causes comes first
    double evidence = 0;  // recoverable before the roofline bounds it
  };
  std::vector<Ranked> ranked;
  const double reached = ReachedShare(numbers);
  if (reached >= kHealthyShare) return {};
  const bool only_of_machine = IsInconclusive(numbers);
  for (const ClassRule& rule : ClassTable()) {
    if (!rule.is_cause() || !HoldsWithParents(rule, numbers)) continue;
    if (only_of_machine && !IsOfMachine(rule)) continue;
    const Number* const recoverable = numbers.Find(rule.recoverable());
    if (recoverable == nullptr || recoverable->value < kLeastRecoverable) {
      continue;
    }
    proto::DiagnosisCause cause;
    if (const ClassRule* const parent = ParentOf(rule); parent != nullptr) {
      AddLink(*parent, numbers, &cause);
      if (parent->name() == "memory") {
        AddMemoryLevel(numbers, &cause);
      }
    }
    AddLink(rule, numbers, &cause);
    // Nothing is faster than the roofline, whatever the cause.
    const double most = std::max(1 - reached, 0.0);
    cause.set_recoverable(std::clamp(recoverable->value, 0.0, most));
    if (recoverable->low < recoverable->high) {
      cause.set_low(std::clamp(recoverable->low, 0.0, most));
      cause.set_high(std::clamp(recoverable->high, 0.0, most));
    }
    const double share =
        rule.parent().empty() ? recoverable->value : cause.recoverable();
    ranked.push_back({std::move(cause), share, recoverable->value});
  }
  // Near the roofline several causes have all that is left: the evidence tells
  // which of them is larger, and not the order of the table.
  std::stable_sort(ranked.begin(), ranked.end(),
                   [](const Ranked& a, const Ranked& b) {
                     return std::make_pair(a.share, a.evidence) >
                            std::make_pair(b.share, b.evidence);
                   });
  std::vector<proto::DiagnosisCause> causes;
  causes.reserve(ranked.size());
  for (Ranked& one : ranked) causes.push_back(std::move(one.cause));
  return causes;
}

const ClassRule* LimitOf(const Numbers& numbers) {
  const ClassRule* limit = nullptr;
  for (const ClassRule& rule : ClassTable()) {
    if (!rule.is_cause() && HoldsWithParents(rule, numbers)) limit = &rule;
  }
  return limit;
}

std::vector<std::string> PossibleLimits(const Numbers& numbers) {
  const ClassRule* const limit = LimitOf(numbers);
  if (limit == nullptr) return {};
  std::vector<std::string> limits = {limit->name()};
  for (const auto end : {&Number::low, &Number::high}) {
    const ClassRule* const other = LimitOf(AtEnd(numbers, end));
    if (other != nullptr &&
        std::count(limits.begin(), limits.end(), other->name()) == 0) {
      limits.push_back(other->name());
    }
  }
  return limits;
}

}  // namespace optrail::diagnosis
