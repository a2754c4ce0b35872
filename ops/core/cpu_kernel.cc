#include "ops/core/cpu_kernel.h"

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "tuning/proto/canonical.h"

namespace optrail::ops {
namespace {

class TemplateBackend : public BackendFor<CpuDevice> {
 public:
  explicit TemplateBackend(std::unique_ptr<const CpuKernel> kernel)
      : kernel_(std::move(kernel)) {}

  std::string name() const override { return "cpu"; }

  absl::StatusOr<std::string> Id(const Target& target) const override {
    return KernelId(files().sources_hash, files().compiler);
  }

  std::vector<std::vector<proto::DataType>> data_types() const override {
    return kernel_->data_types();
  }

  absl::StatusOr<Recipe> Describe(
      const CompileRequest& request) const override {
    Recipe recipe;
    OPTRAIL_ASSIGN_OR_RETURN(recipe.index,
                             kernel_->Instantiation(request.config));
    if (recipe.index < 0) {
      return absl::InvalidArgumentError(
          absl::StrCat("config ", tuning::CanonicalText(request.config),
                       " was not compiled: its compile_time knobs are none of "
                       "the instantiations"));
    }
    return recipe;
  }

  std::vector<std::pair<std::string, int64_t>> Blocks(
      const proto::Config& config) const override {
    return kernel_->Blocks(config);
  }

 protected:
  absl::StatusOr<std::unique_ptr<Invocation>> LoadOn(
      const Artifact& artifact, const proto::Shape& shape,
      const proto::Config& config, CpuDevice& device) const override {
    return kernel_->Prepare(shape, config, device);
  }

 private:
  const std::unique_ptr<const CpuKernel> kernel_;
};

}  // namespace

std::shared_ptr<Backend> MakeTemplateBackend(
    std::unique_ptr<const CpuKernel> kernel) {
  return std::make_shared<TemplateBackend>(std::move(kernel));
}

}  // namespace optrail::ops
