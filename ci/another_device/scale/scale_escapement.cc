// Scaling by an escapement: another backend, with nothing to choose and nothing
// to compile, that takes twice what the gears' default takes.

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "clockwork/clockwork.h"
#include "ops/core/backend.h"
#include "ops/core/registry.h"

namespace optrail::ops {
namespace {

class Escapement : public Invocation {
 public:
  Escapement(int64_t n, clockwork::Clockwork& device)
      : n_(n), device_(device) {}
  absl::Status Run(const Call& call) const override {
    const auto* x = static_cast<const float*>(call.operands[0]);
    auto* y = static_cast<float*>(call.operands[1]);
    for (int64_t i = 0; i < n_; ++i) y[i] = x[i] + x[i];
    device_.Turn(static_cast<double>(n_) / 2, 1);
    return absl::OkStatus();
  }

 private:
  const int64_t n_;
  clockwork::Clockwork& device_;
};

class ScaleEscapement : public BackendFor<clockwork::Clockwork> {
 public:
  std::string name() const override { return "escapement"; }
  absl::StatusOr<std::string> Id(const Target& target) const override {
    return KernelId(files().sources_hash, files().compiler);
  }
  absl::StatusOr<Recipe> Describe(const CompileRequest&) const override {
    return Recipe();
  }

 protected:
  absl::StatusOr<std::unique_ptr<Invocation>> LoadOn(
      const Artifact& artifact, const proto::Shape& shape,
      const proto::Config& config,
      clockwork::Clockwork& device) const override {
    return std::make_unique<Escapement>(shape.dims(0).value(), device);
  }
};

OPTRAIL_REGISTER_BACKEND("scale", ScaleEscapement)

}  // namespace
}  // namespace optrail::ops
