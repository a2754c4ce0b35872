#include "suites/graph/measured_fusion.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "base/hash/hash.h"
#include "base/status_macros.h"
#include "base/text/units.h"
#include "graph/reference/reference.h"
#include "ops/core/cpu_device.h"
#include "suites/graph/call_timer.h"
#include "suites/graph/paired_timing.h"

namespace optrail::suites {
namespace {

// Both round, each in its own order.
constexpr double kTolerance = 1e-4;

// One side of a site, with its clock.
struct Side {
  std::unique_ptr<graph::Runner> runner;
  std::unique_ptr<CallTimer> timer;
  std::vector<graph::Array> outputs;

  absl::Status Make(const graph::Graph& graph, ops::Device& device,
                    graph::RunnerOptions options) {
    options.fuse = false;
    OPTRAIL_ASSIGN_OR_RETURN(runner,
                             graph::Runner::Create(graph, device, options));
    OPTRAIL_RETURN_IF_ERROR(
        runner->SetInputs(graph::SeededInputs(graph, /*seed=*/1)));
    OPTRAIL_RETURN_IF_ERROR(runner->Run());
    OPTRAIL_ASSIGN_OR_RETURN(outputs, runner->Outputs());
    OPTRAIL_ASSIGN_OR_RETURN(
        timer,
        CallTimer::Create(
            [runner = runner.get()](const ops::Call&) { return runner->Run(); },
            device));
    return absl::OkStatus();
  }
};

// The gain of fused over unfused is 1 - e^-r where unfused takes e^r times as
// long.
void FillProof(const PairedTimes& times, optrail::proto::Proof& proof) {
  const auto gain = [](double log_ratio) { return 1 - std::exp(-log_ratio); };
  proof.set_gain(gain(times.evidence.log_ratio));
  proof.set_gain_low(gain(times.evidence.low));
  proof.set_gain_high(gain(times.evidence.high));
  proof.set_confidence(.95);
  proof.set_rounds(times.evidence.rounds);
  proof.set_claimed(times.evidence.low > 0);
}

std::string GainText(const proto::Proof& proof) {
  return absl::StrFormat("%+.1f%% (%+.1f to %+.1f%%, %d rounds)",
                         100 * proof.gain(), 100 * proof.gain_low(),
                         100 * proof.gain_high(), proof.rounds());
}

}  // namespace

absl::StatusOr<std::unique_ptr<MeasuredFusion>> MeasuredFusion::Create(
    const std::string& folder, ops::Device& device,
    const graph::RunnerOptions& options) {
  OPTRAIL_ASSIGN_OR_RETURN(
      graph::FusionDecisions decisions,
      graph::FusionDecisions::Load(folder, device.hardware().id()));
  return std::unique_ptr<MeasuredFusion>(
      new MeasuredFusion(std::move(decisions), device, options));
}

graph::FusionChooser MeasuredFusion::chooser() {
  return [this](const graph::FusionSite& site) -> absl::StatusOr<std::string> {
    absl::StatusOr<std::string> why = Choose(site);
    if (why.ok()) return why;
    return absl::Status(why.status().code(),
                        absl::StrCat("measuring rule \"", site.rule, "\" at ",
                                     site.text, ": ", why.status().message()));
  };
}

std::string MeasuredFusion::NameOf(const graph::FusionSite& site) const {
  return options_.type == optrail::proto::ELEMENT_F32
             ? site.text
             : absl::StrCat(site.text, " in bf16");
}

int MeasuredFusion::threads() const {
  const auto* const cpu = dynamic_cast<const ops::CpuDevice*>(&device_);
  return cpu == nullptr ? 0 : cpu->threads();
}

absl::StatusOr<std::string> MeasuredFusion::Choose(
    const graph::FusionSite& site) {
  auto asked =
      std::find_if(asked_.begin(), asked_.end(), [&](const Asked& other) {
        return other.decision.rule() == site.rule &&
               other.decision.site() == NameOf(site);
      });
  if (asked == asked_.end()) {
    OPTRAIL_ASSIGN_OR_RETURN(const std::string kernels, KernelsOf(site));
    const proto::FusionDecision* known =
        decisions_.Find(site.rule, NameOf(site), threads());
    Asked first;
    first.again = known != nullptr && known->kernels() != kernels;
    if (known == nullptr || first.again) {
      OPTRAIL_ASSIGN_OR_RETURN(first.decision, Measure(site));
      first.decision.set_kernels(kernels);
      decisions_.Add(first.decision);
      is_new_ = true;
    } else {
      first.decision = *known;
    }
    asked_.push_back(std::move(first));
    asked = asked_.end() - 1;
  }
  ++asked->places;
  const proto::FusionDecision& decision = asked->decision;
  if (decision.fused()) return "";
  if (!decision.problem().empty()) return decision.problem();
  return absl::StrCat("unfused is faster: ", GainText(decision.proof()));
}

absl::StatusOr<std::string> MeasuredFusion::KernelsOf(
    const graph::FusionSite& site) const {
  std::string kernels;
  for (const graph::Graph* side : {&site.unfused, &site.fused}) {
    OPTRAIL_ASSIGN_OR_RETURN(const std::string text,
                             graph::KernelsText(*side, device_, options_));
    absl::StrAppend(&kernels, text, "\n");
  }
  return Fingerprint(kernels);
}

absl::StatusOr<proto::FusionDecision> MeasuredFusion::Measure(
    const graph::FusionSite& site) {
  proto::FusionDecision decision;
  decision.set_rule(site.rule);
  decision.set_site(NameOf(site));
  decision.set_threads(threads());
  decision.set_date(
      absl::FormatTime("%Y-%m-%d", absl::Now(), absl::UTCTimeZone()));
  Side unfused, fused;
  OPTRAIL_RETURN_IF_ERROR(unfused.Make(site.unfused, device_, options_));
  OPTRAIL_RETURN_IF_ERROR(fused.Make(site.fused, device_, options_));
  const double tolerance =
      kTolerance *
      (options_.type == optrail::proto::ELEMENT_F32 ? 1 : kWiderInBf16);
  for (size_t i = 0; i < unfused.outputs.size(); ++i) {
    const graph::Difference difference =
        graph::Compare(fused.outputs[i], unfused.outputs[i]);
    if (difference.problem.empty() && difference.relative <= tolerance) {
      continue;
    }
    decision.set_problem(absl::StrCat(
        "the result differs by ", absl::StrFormat("%.2g", difference.relative),
        " of the largest value ", difference.problem));
    return decision;
  }
  PairedTimingOptions options;
  options.one_thread = threads() == 1;
  options.most = absl::Seconds(3);
  OPTRAIL_ASSIGN_OR_RETURN(
      const PairedTimes times,
      TimePairs(unfused.timer->get(), fused.timer->get(), options));
  decision.set_unfused_ns(times.first_ns);
  decision.set_fused_ns(times.second_ns);
  decision.set_fused(times.evidence.high >= 0);
  FillProof(times, *decision.mutable_proof());
  return decision;
}

absl::Status MeasuredFusion::Save() {
  return is_new_ ? decisions_.Save() : absl::OkStatus();
}

Table MeasuredFusion::Rows() const {
  Table table({{"rule"},
               {"places", Align::kRight},
               {"unfused", Align::kRight, "unfused_ns"},
               {"fused", Align::kRight, "fused_ns"},
               {"gain"},
               {"decision"},
               {"site", Align::kLeft, "site", Clip::kMay}});
  const auto time = [](double ns) {
    return ns == 0 ? Cell::None() : Cell::Number(ns, FormatDurationNs(ns));
  };
  for (const Asked& asked : asked_) {
    const proto::FusionDecision& decision = asked.decision;
    table.AddRow({decision.rule(), Cell::Integer(asked.places),
                  time(decision.unfused_ns()), time(decision.fused_ns()),
                  decision.problem().empty() ? GainText(decision.proof())
                                             : decision.problem(),
                  absl::StrCat(decision.fused() ? "fused" : "not fused",
                               asked.again ? ", measured again" : ""),
                  decision.site()});
  }
  return table;
}

}  // namespace optrail::suites
