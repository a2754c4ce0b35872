#include "cli/store_numerics.h"

#include <cstdio>
#include <iostream>
#include <string>

#include "absl/flags/flag.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "absl/types/optional.h"
#include "base/exit_code.h"
#include "base/text/quote.h"
#include "base/text/utf8.h"
#include "cli/flags.h"
#include "suites/worker/run_context.h"
#include "tuning/proto/canonical.h"

namespace optrail::cli {
namespace {

// Returns the flags of `optrail tune` for the objective of an entry, whose key
// is "joules", "cost_0.25_per_kwh_0_per_hour" or "time:min,error:min<=0.01".
std::string ObjectiveFlags(const std::string& key) {
  std::vector<std::string> objectives, weights;
  std::string prices;
  for (absl::string_view part : absl::StrSplit(key, ',')) {
    std::string name(part), limit;
    for (const absl::string_view direction : {":min", ":max"}) {
      const size_t at = part.find(direction);
      if (at == absl::string_view::npos) continue;
      name = std::string(part.substr(0, at));
      limit = std::string(part.substr(at + direction.size()));
    }
    if (absl::StartsWith(limit, "@")) {
      const size_t end = limit.find_first_of("<>");
      weights.push_back(
          limit.substr(1, end == std::string::npos ? end : end - 1));
      limit = end == std::string::npos ? "" : limit.substr(end);
    }
    double per_kwh = 0, per_hour = 0;
    if (std::sscanf(name.c_str(), "cost_%lf_per_kwh_%lf_per_hour", &per_kwh,
                    &per_hour) == 2) {
      name = "cost";
      if (per_kwh > 0) absl::StrAppend(&prices, " --price_per_kwh=", per_kwh);
      if (per_hour > 0)
        absl::StrAppend(&prices, " --price_per_hour=", per_hour);
    }
    objectives.push_back(name + limit);
  }
  std::string flags = absl::StrCat(
      " --objective=", QuoteForShell(absl::StrJoin(objectives, ",")), prices);
  if (!weights.empty()) {
    absl::StrAppend(&flags, " --weights=", absl::StrJoin(weights, ","));
  }
  return flags;
}

// The id of this machine's hardware with a device of the kind; "" if it can't
// be told.
std::string HardwareHere(proto::DeviceKind kind) {
  std::string note;
  const auto context =
      suites::PlanRunContext(kind, /*history=*/"", /*store=*/"", &note);
  return context.ok() ? context->hardware.id() : "";
}

// Returns the command that finds a config with the bits of the default for an
// entry. The hardware stands before it if the entry is not of this machine.
std::string RetuneInClass(const tuning::StoreDifference& difference) {
  const proto::TunedConfig& entry = difference.overlay;
  std::string text =
      absl::StrCat("optrail tune --op=", difference.operator_name,
                   " --shape=", QuoteForShell(entry.shape()));
  if (entry.threads() != 1) {
    absl::StrAppend(&text, " --threads=", entry.threads());
  }
  if (difference.device_kind != proto::CPU) {
    absl::StrAppend(&text,
                    " --device=", tuning::DeviceName(difference.device_kind));
  }
  if (!entry.backend().empty()) {
    absl::StrAppend(&text, " --backend=", entry.backend());
  }
  if (entry.cache_mode() == proto::COLD)
    absl::StrAppend(&text, " --cache=cold");
  if (entry.launch_mode() != proto::LAUNCH_MODE_UNSPECIFIED) {
    absl::StrAppend(&text,
                    " --launch=", tuning::LaunchModeName(entry.launch_mode()));
  }
  if (!entry.objective().empty()) {
    absl::StrAppend(&text, ObjectiveFlags(entry.objective()));
  }
  if (const std::string store = absl::GetFlag(FLAGS_store); !store.empty()) {
    absl::StrAppend(&text, " --store=", QuoteForShell(store));
  }
  absl::StrAppend(&text, " --retune --numerics=class-of-default");
  return HardwareHere(difference.device_kind) == difference.hardware_id
             ? text
             : absl::StrCat("on ", difference.hardware_id, ": ", text);
}

}  // namespace

int JudgeNumerics(const std::vector<const tuning::StoreDifference*>& tuned) {
  constexpr size_t kMostCommands = 5;
  int changed = 0, unknown = 0;
  std::vector<std::string> next;
  for (const tuning::StoreDifference* difference : tuned) {
    const absl::optional<bool> changes = tuning::ChangesNumerics(*difference);
    if (changes.has_value() && !*changes) continue;
    changed += changes.has_value();
    unknown += !changes.has_value();
    if (next.size() < kMostCommands) next.push_back(RetuneInClass(*difference));
  }
  if (next.empty()) return 0;
  std::vector<std::string> texts;
  if (changed > 0) {
    texts.push_back(absl::StrCat(
        changed, changed == 1 ? " config changes" : " configs change",
        " the bits of results"));
  }
  if (unknown > 0) {
    texts.push_back(absl::StrCat("of ", unknown,
                                 unknown == 1 ? " config" : " configs",
                                 " nobody knows whether it does"));
  }
  std::cerr << absl::StrJoin(texts, ", ") << "; next:\n";
  for (const std::string& command : next) {
    std::cerr << "  " << SanitiseText(command) << "\n";
  }
  if (const int more = changed + unknown - static_cast<int>(next.size());
      more > 0) {
    std::cerr << "  and so on, for " << more << " more\n";
  }
  return ToInt(changed > 0 ? ExitCode::kCheckFailed : ExitCode::kNotEnoughData);
}

}  // namespace optrail::cli
