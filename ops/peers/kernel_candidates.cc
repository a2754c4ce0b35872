#include "ops/peers/kernel_candidates.h"

#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "google/protobuf/text_format.h"
#include "tuning/proto/canonical.h"
#include "tuning/proto/store.pb.h"
#include "tuning/space/space.h"

namespace optrail::ops {
namespace {

constexpr uint64_t kSeed = 1;

// `base` with the knobs that `text` gives.
absl::StatusOr<proto::Config> Override(const proto::Config& base,
                                       const std::string& text) {
  OPTRAIL_ASSIGN_OR_RETURN(const proto::Config given,
                           tuning::ParseConfig(text));
  proto::Config config = base;
  for (const proto::KnobValue& value : given.set()) {
    bool known = false;
    for (proto::KnobValue& knob : *config.mutable_set()) {
      if (knob.knob() != value.knob()) continue;
      knob = value;
      known = true;
    }
    if (!known) {
      return absl::InvalidArgumentError(
          absl::StrCat("config \"", text, "\": unknown knob \"", value.knob(),
                       "\"; the knobs are ", tuning::CanonicalText(base)));
    }
  }
  return config;
}

}  // namespace

absl::StatusOr<std::unique_ptr<KernelCandidates>> KernelCandidates::Create(
    absl::string_view op, absl::string_view shape_text, Device& device) {
  const OperatorEntry* entry = Registry::Get().Find(op);
  if (entry == nullptr) return Registry::Get().UnknownOperator(op);
  OPTRAIL_ASSIGN_OR_RETURN(proto::Shape shape, tuning::ParseShape(shape_text));
  OPTRAIL_RETURN_IF_ERROR(CheckShape(*entry->op, shape));
  std::unique_ptr<KernelCandidates> candidates(
      new KernelCandidates(entry, std::move(shape), device));
  OPTRAIL_ASSIGN_OR_RETURN(
      candidates->operands_,
      CheckedOperands::Create(*entry->op, candidates->shape_, device));
  OPTRAIL_RETURN_IF_ERROR(candidates->operands_->Fill(kSeed));
  return candidates;
}

absl::StatusOr<std::vector<Candidate>> KernelCandidates::Make(
    const std::vector<std::string>& configs) {
  OPTRAIL_ASSIGN_OR_RETURN(
      const tuning::Space space,
      tuning::Space::Parse(entry_->space.contents, entry_->space.path));
  tuning::BindOptions options;
  options.threads = device_.threads();
  OPTRAIL_ASSIGN_OR_RETURN(const std::unique_ptr<tuning::BoundSpace> bound,
                           space.Bind(shape_, device_.hardware(), options));

  std::vector<Candidate> candidates;
  auto add = [&](const std::string& name,
                 const std::string& overrides) -> absl::Status {
    OPTRAIL_ASSIGN_OR_RETURN(const proto::Config config,
                             Override(bound->default_config(), overrides));
    OPTRAIL_RETURN_IF_ERROR(bound->Validate(config));
    OPTRAIL_ASSIGN_OR_RETURN(Candidate candidate, Prepare(name, config));
    candidates.push_back(std::move(candidate));
    return absl::OkStatus();
  };
  OPTRAIL_RETURN_IF_ERROR(add("optrail, default config", ""));
  const std::string tuned = TunedConfigText();
  if (!tuned.empty()) {
    OPTRAIL_RETURN_IF_ERROR(add("optrail, tuned config", tuned));
  }
  for (size_t i = 0; i < configs.size(); ++i) {
    OPTRAIL_RETURN_IF_ERROR(
        add(absl::StrCat("optrail, config ", i + 1), configs[i]));
  }
  return candidates;
}

absl::StatusOr<Candidate> KernelCandidates::Prepare(
    const std::string& name, const proto::Config& config) {
  const auto kernel = entry_->kernels.find(device_.kind());
  if (kernel == entry_->kernels.end()) {
    return absl::UnimplementedError("no kernel for this device");
  }
  OPTRAIL_ASSIGN_OR_RETURN(
      std::unique_ptr<Invocation> prepared,
      kernel->second.kernel->Prepare(shape_, config, device_));
  OPTRAIL_RETURN_IF_ERROR(operands_->Arm());
  prepared->Run(operands_->addresses());
  OPTRAIL_RETURN_IF_ERROR(operands_->Verify().status());

  std::shared_ptr<Invocation> invocation = std::move(prepared);
  return Candidate{name, [this, invocation](int64_t calls) {
                     return ElapsedNs(device_.threads(), calls, [&] {
                       invocation->Run(operands_->addresses());
                     });
                   }};
}

std::string KernelCandidates::TunedConfigText() const {
  for (const EmbeddedFile& file : entry_->tuned) {
    proto::TunedConfigs tuned;
    if (!google::protobuf::TextFormat::ParseFromString(file.contents, &tuned) ||
        tuned.hardware_id() != device_.hardware().id()) {
      continue;
    }
    for (const proto::TunedConfig& entry : tuned.tuned()) {
      if (entry.shape() == tuning::CanonicalText(shape_) &&
          entry.threads() == device_.threads()) {
        return entry.config();
      }
    }
  }
  return "";
}

}  // namespace optrail::ops
