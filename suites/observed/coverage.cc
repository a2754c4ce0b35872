// How much of what programs call the store covers.

#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/exit_code.h"
#include "base/status_macros.h"
#include "base/text/units.h"
#include "base/text/utf8.h"
#include "ops/core/registry.h"
#include "ops/core/tuned_kernel.h"
#include "suites/observed/observed.h"
#include "suites/tune/task_store.h"
#include "suites/workload/tasks.h"
#include "tuning/proto/canonical.h"
#include "tuning/store/tuned_entry.h"

namespace optrail::suites {
namespace {

// How a lookup ends today, best first.
enum Answer {
  kExact,
  kUnverified,  // exact, but the kernel has changed since
  kBucket,
  kOtherShape,
  kOtherHardware,
  kDefault,
  kUnknown,  // an operator or shape that is not built in here
};
constexpr int kAnswers = 7;
constexpr const char* kAnswerNames[kAnswers] = {
    "exact",          "exact, unverified", "bucket",           "other shape",
    "other hardware", "default",           "not built in here"};

absl::StatusOr<ops::KernelQuestion> QuestionOf(const tuning::ObservedKey& key) {
  ops::KernelQuestion question;
  question.operator_name = key.op;
  OPTRAIL_ASSIGN_OR_RETURN(question.shape, tuning::ParseShape(key.shape));
  OPTRAIL_ASSIGN_OR_RETURN(question.device_kind,
                           tuning::ParseDevice(key.device));
  OPTRAIL_ASSIGN_OR_RETURN(question.cache_mode,
                           tuning::ParseCacheMode(key.cache_mode));
  question.backend = key.backend;
  question.threads = key.threads;
  return question;
}

Answer AnswerOf(const tuning::ObservedKey& key, const proto::Hardware& hardware,
                const tuning::TunedConfigStore& store) {
  const absl::StatusOr<ops::KernelQuestion> question = QuestionOf(key);
  if (!question.ok()) return kUnknown;
  const auto kernel = ops::ChooseKernel(*question, hardware, &store);
  if (!kernel.ok()) return kUnknown;
  const tuning::LookupResult& found = kernel->found;
  if (found.source == tuning::LookupSource::kBucket) return kBucket;
  if (found.config == nullptr) return kDefault;
  if (found.source == tuning::LookupSource::kExact) {
    return found.unverified ? kUnverified : kExact;
  }
  return found.hardware_id == hardware.id() ? kOtherShape : kOtherHardware;
}

struct Share {
  int shapes = 0;
  int64_t calls = 0;
  double ns = 0;
};

// The gains of tuning so far, by operator.
class Gains {
 public:
  Gains(const tuning::TunedConfigStore& store, const std::string& hardware_id) {
    for (const proto::TunedConfigs& file : store.Contents()) {
      if (file.hardware_id() != hardware_id) continue;
      for (const proto::TunedConfig& tuned : file.tuned()) {
        const double gain = tuning::SpeedUpOverDefault(tuned);
        if (gain <= 0 || !tuned.backend().empty()) continue;
        Sum& sum = sums_[file.operator_name()];
        sum.logs += std::log(gain);
        ++sum.count;
      }
    }
  }

  // The geometric mean of the operator's entries; 0 where there are none.
  double Of(const std::string& op) const {
    const auto found = sums_.find(op);
    return found == sums_.end()
               ? 0
               : std::exp(found->second.logs / found->second.count);
  }

 private:
  struct Sum {
    double logs = 0;
    int count = 0;
  };
  std::map<std::string, Sum> sums_;
};

Table SharesTable(const Share (&shares)[kAnswers], const Share& all) {
  Table table({{"config"},
               {"shapes", Align::kRight},
               {"calls", Align::kRight},
               {"share of calls", Align::kRight},
               {"time", Align::kRight, "time_ns"},
               {"share of time", Align::kRight}});
  for (int i = 0; i < kAnswers; ++i) {
    const Share& share = shares[i];
    if (share.shapes == 0) continue;
    const double of_calls =
        static_cast<double>(share.calls) / static_cast<double>(all.calls);
    const double of_time = all.ns > 0 ? share.ns / all.ns : 0;
    table.AddRow({kAnswerNames[i], Cell::Integer(share.shapes),
                  Cell::Number(static_cast<double>(share.calls),
                               FormatCount(share.calls)),
                  Cell::Number(of_calls, FormatPercent(of_calls)),
                  all.ns > 0
                      ? Cell::Number(share.ns, FormatDurationNs(share.ns))
                      : Cell::None(),
                  all.ns > 0 ? Cell::Number(of_time, FormatPercent(of_time))
                             : Cell::None()});
  }
  return table;
}

// What tuning is expected to save of the time of calls with the default.
struct Expected {
  double default_ns = 0, saved_ns = 0;
  int64_t default_calls = 0;
  int known = 0, unknown = 0;  // shapes
  double logs = 0;             // of gains, by calls

  void Add(const ObservedShape& shape, double gain) {
    if (gain <= 0) {
      ++unknown;
      return;
    }
    ++known;
    default_calls += shape.calls;
    logs += static_cast<double>(shape.calls) * std::log(gain);
    default_ns += shape.TotalNs();
    saved_ns += shape.TotalNs() * (1 - 1 / gain);
  }

  std::string Text(double all_ns) const {
    if (known == 0) {
      return "nobody knows what tuning would bring: nothing is tuned yet from "
             "which it could be estimated";
    }
    const double gain = std::exp(logs / static_cast<double>(default_calls));
    return absl::StrCat(
        absl::StrFormat(
            "tuning is expected to bring %.2fx for %d %s the default", gain,
            known, known == 1 ? "shape that runs" : "shapes that run"),
        all_ns > 0 ? absl::StrCat(", ", FormatPercent(saved_ns / all_ns),
                                  " of all timed calls' time")
                   : "",
        unknown == 0 ? ""
                     : absl::StrCat("; ", unknown,
                                    " more of operators without tuned shapes"),
        " (estimated: the mean gain of what is tuned)");
  }
};

}  // namespace

absl::StatusOr<int> RunCoverage(const CoverageCommand& command,
                                std::ostream& out, std::ostream& notes) {
  const proto::Hardware& hardware = command.context.hardware;
  OPTRAIL_ASSIGN_OR_RETURN(
      const std::vector<ObservedShape> shapes,
      ReadObservedShapes(command.files, command.op_regex, &notes));
  std::vector<TaskEntry> entries;
  for (const ops::OperatorEntry* entry : ops::Registry::Get().List()) {
    entries.emplace_back().entry = entry;
  }
  OPTRAIL_ASSIGN_OR_RETURN(const tuning::TunedConfigStore store,
                           LoadStore(command.context, entries));
  const Gains gains(store, hardware.id());
  Share shares[kAnswers], all;
  Expected expected;
  std::map<std::string, int64_t> elsewhere;
  for (const ObservedShape& shape : shapes) {
    if (!shape.key.op.empty() && shape.key.hardware_id != hardware.id()) {
      elsewhere[shape.key.hardware_id] += shape.calls;
      continue;
    }
    const Answer answer = AnswerOf(shape.key, hardware, store);
    for (Share* const share : {&shares[answer], &all}) {
      ++share->shapes;
      share->calls += shape.calls;
      share->ns += shape.TotalNs();
    }
    if (answer == kDefault) expected.Add(shape, gains.Of(shape.key.op));
  }
  for (const auto& [id, calls] : elsewhere) {
    notes << "left out: " << FormatCount(calls) << " calls on "
          << SanitiseText(id) << "\n";
  }
  if (all.shapes == 0) {
    notes << "no call was made on " << hardware.id()
          << "; next: run coverage where the program runs, or give --device\n";
    return ToInt(ExitCode::kNotEnoughData);
  }
  out << SharesTable(shares, all).Format(command.format, TerminalWidth());
  if (shares[kDefault].shapes > 0) {
    notes << expected.Text(all.ns) << "\n";
  }
  if (shares[kUnverified].shapes > 0) {
    notes << "next: optrail tune --retune for " << shares[kUnverified].shapes
          << (shares[kUnverified].shapes == 1 ? " shape" : " shapes")
          << " whose kernel has changed\n";
  }
  return 0;
}

}  // namespace optrail::suites
