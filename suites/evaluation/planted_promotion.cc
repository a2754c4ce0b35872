// Plants a config that wins alone and loses end to end, and lets `store
// promote` judge it: of ops/testing/faulty one that computes less than the
// default but takes its neighbour's data out of the cache. A size is looked for
// at which it is 2 to 12% faster where a workload calls nothing else. Then each
// call is followed by one of a neighbour, whose operands fill most of a core's
// cache.
//
//   ./bazelw run //suites/evaluation:planted_promotion
//
// Exit code 0: it was promoted alone and refused beside its neighbour; 1: it
// was not refused; 3: no such size was found, or the time was too short to
// tell.

#include <cstdint>
#include <iostream>
#include <sstream>
#include <string>
#include <utility>

#include "absl/flags/flag.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/time/time.h"
#include "base/file.h"
#include "base/status_macros.h"
#include "re2/re2.h"
#include "suites/evaluation/evaluation.h"
#include "suites/tune/promotion.h"
#include "tuning/store/store_files.h"

ABSL_FLAG(std::string, state, "/tmp/optrail-promotion", "folder for all of it");
ABSL_FLAG(absl::Duration, time, absl::Seconds(6), "Time of each judgement.");
ABSL_FLAG(std::string, neighbour,
          "embedding_bag rows=9000,cols=16,bags=64,lookups=64/f32",
          "Operator and shape of the other layer.");

namespace optrail::suites {
namespace {

constexpr char kConfig[] = "behaviour=evict,work=1";
constexpr double kLeastGain = 1.02, kMostGain = 1.12;  // alone, old over new
constexpr int kMostSizes = 16;
constexpr double kStep = 1.07;

struct Judgement {
  int code = 0;      // of the command
  double ratio = 0;  // old over new
};

// Judges the config for `n` elements in a workload that has `other_layers`,
// too.
absl::StatusOr<Judgement> Judge(PromotionCommand command, int64_t n,
                                const std::string& other_layers) {
  OPTRAIL_RETURN_IF_ERROR(WriteFileAtomically(
      command.selection.workload,
      absl::StrCat("name: \"planted\" layer { operator_name: \"faulty\" shape: "
                   "\"n=",
                   n, "/f32\" count: 8 } ", other_layers)));
  proto::TunedConfig tuned;
  tuned.set_config(kConfig);
  tuned.set_shape(absl::StrCat("n=", n, "/f32"));
  tuned.set_threads(1);
  tuned.set_cache_mode(proto::HOT);
  OPTRAIL_RETURN_IF_ERROR(tuning::WriteOverlay(command.context.store, "faulty",
                                               command.context.hardware.id(),
                                               proto::CPU, tuned));
  std::ostringstream table;
  Judgement judgement;
  OPTRAIL_ASSIGN_OR_RETURN(judgement.code,
                           RunPromotion(command, table, std::cerr));
  std::cout << table.str() << std::flush;
  RE2::PartialMatch(table.str(), "([0-9.]+)x \\(", &judgement.ratio);
  return judgement;
}

absl::StatusOr<PromotionCommand> CommandIn(const std::string& folder) {
  PromotionCommand command;
  OPTRAIL_ASSIGN_OR_RETURN(command.context, ContextIn(folder, proto::CPU));
  OPTRAIL_RETURN_IF_ERROR(CreateDirectories(JoinPath(folder, "kernels")));
  OPTRAIL_RETURN_IF_ERROR(WriteFileAtomically(JoinPath(folder, "kernels/BUILD"),
                                              "operator(name = \"faulty\")\n"));
  OPTRAIL_ASSIGN_OR_RETURN(command.folders,
                           tuning::OperatorFolders::Find(folder));
  command.selection.workload = JoinPath(folder, "planted.textproto");
  command.selection.with_test_only = true;
  command.time = absl::GetFlag(FLAGS_time);
  command.dry_run = true;
  return command;
}

absl::StatusOr<ExitCode> Run() {
  OPTRAIL_ASSIGN_OR_RETURN(const PromotionCommand command,
                           CommandIn(absl::GetFlag(FLAGS_state)));
  const std::pair<std::string, std::string> other =
      absl::StrSplit(absl::GetFlag(FLAGS_neighbour), absl::MaxSplits(' ', 1));
  const std::string neighbour =
      absl::StrCat("layer { operator_name: \"", other.first, "\" shape: \"",
                   other.second, "\" count: 8 }");
  double n = 1 << 15;
  for (int i = 0; i < kMostSizes; ++i) {
    OPTRAIL_ASSIGN_OR_RETURN(
        const Judgement alone,
        Judge(command, static_cast<int64_t>(n), /*other_layers=*/""));
    if (alone.code != 0 || alone.ratio < kLeastGain) {
      n *= kStep;
    } else if (alone.ratio > kMostGain) {
      n /= kStep;
    } else {
      OPTRAIL_ASSIGN_OR_RETURN(
          const Judgement together,
          Judge(command, static_cast<int64_t>(n), neighbour));
      return together.code == 0   ? ExitCode::kCheckFailed
             : together.code == 1 ? ExitCode::kOk
                                  : ExitCode::kNotEnoughData;
    }
  }
  std::cout
      << "no size was found at which the config wins alone by so little\n";
  return ExitCode::kNotEnoughData;
}

}  // namespace
}  // namespace optrail::suites

int main(int argc, char** argv) {
  return optrail::suites::EvaluationMain(argc, argv, optrail::suites::Run);
}
