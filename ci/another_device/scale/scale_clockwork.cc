// Scaling by gears. Their program is cut when it is asked for: Compile() writes
// it, in a process of its own, and Load() reads what was cut, maybe by another.

#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "clockwork/clockwork.h"
#include "ops/core/backend.h"
#include "ops/core/registry.h"

namespace optrail::ops {
namespace {

int64_t KnobOf(const proto::Config& config, absl::string_view name) {
  for (const proto::KnobValue& value : config.set()) {
    if (value.knob() == name) return value.int_();
  }
  return 0;
}

class Gears : public Invocation {
 public:
  Gears(int64_t n, int64_t teeth, int64_t gears, clockwork::Clockwork& device)
      : n_(n), teeth_(teeth), gears_(gears), device_(device) {}

  absl::Status Run(const Call& call) const override {
    const auto* x = static_cast<const float*>(call.operands[0]);
    auto* y = static_cast<float*>(call.operands[1]);
    for (int64_t i = 0; i < n_; ++i) y[i] = 2 * x[i];
    // Sixteen teeth on two gears are fastest: finer ones slip, and more gears
    // drag. Coarse teeth on one gear are slow and easy on the spring.
    const double n = static_cast<double>(n_);
    const double slip = teeth_ > 16 ? 3 : 1;
    const double drag = gears_ > 2 ? 2.5 : 1;
    const double ticks = n / static_cast<double>(teeth_ * gears_) * slip * drag;
    const double joules = n * 1e-6 * static_cast<double>(teeth_ * gears_);
    device_.Turn(ticks, joules);
    return absl::OkStatus();
  }

 private:
  const int64_t n_, teeth_, gears_;
  clockwork::Clockwork& device_;
};

class ScaleClockwork : public BackendFor<clockwork::Clockwork> {
 public:
  std::string name() const override { return "own"; }
  bool compiles() const override { return true; }
  absl::StatusOr<std::string> Id(const Target& target) const override {
    return KernelId(files().sources_hash, files().compiler);
  }

  absl::StatusOr<Recipe> Describe(
      const CompileRequest& request) const override {
    Recipe recipe;
    recipe.compiler = "gear cutter 1";
    recipe.options = {absl::StrCat("--for=", request.target.hardware.id())};
    recipe.sources = {
        {"scale.gears",
         absl::StrCat("teeth=", KnobOf(request.config, "teeth"))}};
    return recipe;
  }

  absl::StatusOr<Artifact> Compile(const Recipe& recipe) const override {
    const std::string& source = recipe.sources[0].contents;
    if (const char* broken = std::getenv("CLOCKWORK_BROKEN_CUTTER");
        broken != nullptr && source == absl::StrCat("teeth=", broken)) {
      return absl::InternalError("the cutter is broken");
    }
    Artifact artifact;
    artifact.key = recipe.Key();
    artifact.bytes = absl::StrCat("gears cut: ", source);
    artifact.facts["brass_grams"] = 12;
    return artifact;
  }

 protected:
  absl::StatusOr<std::unique_ptr<Invocation>> LoadOn(
      const Artifact& artifact, const proto::Shape& shape,
      const proto::Config& config,
      clockwork::Clockwork& device) const override {
    absl::string_view text = artifact.bytes;
    int64_t teeth = 0;
    if (!absl::ConsumePrefix(&text, "gears cut: teeth=") ||
        !absl::SimpleAtoi(text, &teeth) || teeth != KnobOf(config, "teeth")) {
      return absl::InternalError("these gears are another config's");
    }
    return std::make_unique<Gears>(shape.dims(0).value(), teeth,
                                   KnobOf(config, "gears"), device);
  }
};

OPTRAIL_REGISTER_BACKEND("scale", ScaleClockwork)

}  // namespace
}  // namespace optrail::ops
