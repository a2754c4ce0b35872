// Plants a config that wins alone and loses end to end, and lets `store
// promote` judge it: of ops/testing/faulty one that computes less than the
// checked-in one, but reads a table of half a core's L2 cache. How much is
// computed is chosen so that the config is 1.12 to 1.35 times as fast where a
// workload calls nothing else. Then each call is followed by one of a neighbour
// (embedding_bag): first one with a small table, then one whose table takes
// half of that cache, too. With that, the two tables evict one another; the
// checked-in config leaves the neighbour's in the cache.
//
//   ./bazelw run //suites/evaluation:planted_promotion
//
// Exit code 0: it was promoted alone and beside the small neighbour, and
// refused beside the large one; 1: it was not; 3: no such size was found, or
// the time was too short to tell.

#include <algorithm>
#include <cstdint>
#include <iostream>
#include <sstream>
#include <string>

#include "absl/flags/flag.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "base/file/file.h"
#include "base/status_macros.h"
#include "re2/re2.h"
#include "suites/evaluation/evaluation.h"
#include "suites/tune/promotion.h"
#include "tuning/store/store_files.h"
#include "tuning/store/tuned_text.h"

ABSL_FLAG(std::string, state, "/tmp/optrail-promotion", "folder for all of it");
ABSL_FLAG(absl::Duration, time, absl::Seconds(15), "Time of each judgement.");

namespace optrail::suites {
namespace {

constexpr char kOldConfig[] = "behaviour=ok,work=16";
constexpr char kNewConfig[] = "behaviour=evict,work=1";
// The new config is so much faster alone, old over new.
constexpr double kLeastGain = 1.12, kGain = 1.2, kMostGain = 1.35;
constexpr int kMostSizes = 12;
constexpr int64_t kLineBytes = 64;

struct Judgement {
  int code = 0;      // of the command
  double ratio = 0;  // old over new
};

// A call reads nearly all rows of its table, a cache line each: with two
// lookups for each row, 1 - e^-2 of them.
std::string Neighbour(int64_t table_bytes) {
  const int64_t rows = table_bytes / kLineBytes;
  constexpr int64_t kLookups = 64;
  return absl::StrCat(
      "layer { operator_name: \"embedding_bag\" shape: \"rows=", rows,
      ",cols=16,bags=", std::max<int64_t>(1, 2 * rows / kLookups),
      ",lookups=", kLookups, "/f32\" count: 8 }");
}

proto::TunedConfig EntryOf(const char* config, int64_t n) {
  proto::TunedConfig tuned;
  tuned.set_config(config);
  tuned.set_shape(absl::StrCat("n=", n, "/f32"));
  tuned.set_threads(1);
  tuned.set_cache_mode(proto::HOT);
  return tuned;
}

// Judges the new config for `n` elements in a workload that has `other_layer`,
// too.
absl::StatusOr<Judgement> Judge(const PromotionCommand& command,
                                const std::string& tree, int64_t n,
                                const std::string& other_layer) {
  OPTRAIL_RETURN_IF_ERROR(WriteFileAtomically(
      command.selection.workload,
      absl::StrCat("name: \"planted\" layer { operator_name: \"faulty\" shape: "
                   "\"n=",
                   n, "/f32\" count: 8 } ", other_layer)));
  const std::string& hardware = command.context.hardware.id();
  proto::TunedConfigs checked_in;
  checked_in.set_operator_name("faulty");
  checked_in.set_hardware_id(hardware);
  checked_in.set_device_kind(proto::CPU);
  *checked_in.add_tuned() = EntryOf(kOldConfig, n);
  OPTRAIL_RETURN_IF_ERROR(
      WriteFileAtomically(JoinPath(tree, hardware + ".textproto"),
                          tuning::FormatTunedConfigs(checked_in)));
  OPTRAIL_RETURN_IF_ERROR(tuning::WriteOverlay(command.context.store, "faulty",
                                               hardware, proto::CPU,
                                               EntryOf(kNewConfig, n)));
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
  OPTRAIL_RETURN_IF_ERROR(CreateDirectories(JoinPath(folder, "kernels/tuned")));
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
  const std::string folder = absl::GetFlag(FLAGS_state);
  const std::string tree = JoinPath(folder, "kernels/tuned");
  OPTRAIL_ASSIGN_OR_RETURN(const PromotionCommand command, CommandIn(folder));
  const int64_t l2_bytes = command.context.hardware.l2_bytes();
  if (l2_bytes == 0) {
    std::cout << "the machine does not say how large its L2 cache is\n";
    return ExitCode::kNotEnoughData;
  }
  std::cout << "L2 cache of a core: " << l2_bytes << " bytes\n";
  // The operands of the first size take an eighth of the cache.
  auto n = static_cast<double>(l2_bytes) / 64;
  for (int i = 0; i < kMostSizes; ++i) {
    const auto size = static_cast<int64_t>(n);
    std::cout << "alone:\n";
    OPTRAIL_ASSIGN_OR_RETURN(const Judgement alone,
                             Judge(command, tree, size, /*other_layer=*/""));
    if (alone.ratio < kLeastGain || alone.ratio > kMostGain) {
      // The old config's time is proportional to n; most of the new one's is
      // that of the table.
      n *= std::clamp(kGain / std::max(alone.ratio, .1), .5, 2.);
      continue;
    }
    std::cout << "beside a small table:\n";
    OPTRAIL_ASSIGN_OR_RETURN(
        const Judgement small,
        Judge(command, tree, size, Neighbour(l2_bytes / 64)));
    std::cout << "beside a table of half the L2 cache:\n";
    OPTRAIL_ASSIGN_OR_RETURN(
        const Judgement large,
        Judge(command, tree, size, Neighbour(l2_bytes / 2)));
    if (alone.code == 3 || small.code == 3 || large.code == 3) {
      return ExitCode::kNotEnoughData;
    }
    return alone.code == 0 && small.code == 0 && large.code == 1
               ? ExitCode::kOk
               : ExitCode::kCheckFailed;
  }
  std::cout << "no size was found at which the config wins alone\n";
  return ExitCode::kNotEnoughData;
}

}  // namespace
}  // namespace optrail::suites

int main(int argc, char** argv) {
  return optrail::suites::EvaluationMain(argc, argv, optrail::suites::Run);
}
