// A backend whose compiler misbehaves on request. What it makes is right, and
// takes as long as `work` says; or says itself that it came to nothing.

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <memory>
#include <string>
#include <thread>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "base/process/subprocess.h"
#include "ops/core/backend.h"
#include "ops/core/registry.h"

namespace optrail::ops {
namespace {

[[noreturn]] void AllocateWithoutEnd() {
  constexpr size_t kPieceBytes = size_t{16} << 20;
  while (true) {
    auto* const piece = static_cast<volatile char*>(std::malloc(kPieceBytes));
    if (piece == nullptr) std::abort();
    for (size_t i = 0; i < kPieceBytes; i += 4096) piece[i] = 1;
  }
}

class CompiledInvocation : public Invocation {
 public:
  CompiledInvocation(int64_t n, int64_t work, bool fails)
      : n_(n), work_(work), fails_(fails) {}

  absl::Status Run(const Call& call) const override {
    if (fails_) return absl::InvalidArgumentError("an assertion of the code");
    const auto* const x = static_cast<const float*>(call.operands[0]);
    auto* const y = static_cast<volatile float*>(call.operands[1]);
    for (int64_t turn = 0; turn < work_; ++turn) {
      for (int64_t i = 0; i < n_; ++i) y[i] = 2 * x[i];
    }
    return absl::OkStatus();
  }

 private:
  const int64_t n_, work_;
  const bool fails_;
};

std::string VariantOf(const proto::Config& config) {
  for (const proto::KnobValue& value : config.set()) {
    if (value.knob() == "compile") return value.variant();
  }
  return "";
}

int64_t WorkOf(const proto::Config& config) {
  for (const proto::KnobValue& value : config.set()) {
    if (value.knob() == "work") return value.int_();
  }
  return 0;
}

class FaultyCompiled : public Backend {
 public:
  std::string name() const override { return "compiled"; }
  bool compiles() const override { return true; }
  proto::DeviceKind kind() const override { return proto::CPU; }

  absl::StatusOr<std::string> Id(const Target&) const override {
    return files().sources_hash;
  }

  absl::StatusOr<Recipe> Describe(
      const CompileRequest& request) const override {
    Recipe recipe;
    recipe.compiler = "faulty 1";
    recipe.options = {VariantOf(request.config),
                      absl::StrCat(WorkOf(request.config))};
    recipe.sources = {{"faulty.txt", "y = 2 * x"}};
    return recipe;
  }

  absl::StatusOr<Artifact> Compile(const Recipe& recipe) const override {
    const std::string& how = recipe.options[0];
    if (how == "refuse") {
      return absl::InternalError("faulty.txt:1: this is no program");
    }
    if (how == "crash") {
      std::signal(SIGSEGV, SIG_DFL);
      std::raise(SIGSEGV);
    }
    if (how == "hang") {
      while (true) std::this_thread::sleep_for(std::chrono::hours(1));
    }
    if (how == "allocate") AllocateWithoutEnd();
    // Starts a process as a compiler driver does.
    if (how == "hang_child") (void)RunCommand({"sleep", "36000"});
    if (how == "allocate_child") {
      (void)RunCommand(
          {"/bin/sh", "-c", "x=0123456789abcdef; while :; do x=$x$x; done"});
    }
    Artifact artifact;
    artifact.key = recipe.Key();
    artifact.bytes = recipe.options[1];
    int64_t work = 0;
    (void)absl::SimpleAtoi(artifact.bytes, &work);
    artifact.facts["registers"] = 16 * work;
    return artifact;
  }

  absl::StatusOr<std::unique_ptr<Invocation>> Load(
      const Artifact& artifact, const proto::Shape& shape,
      const proto::Config& config, Device& device) const override {
    int64_t work = 0;
    if (!absl::SimpleAtoi(artifact.bytes, &work)) {
      return absl::InternalError("not what the compiler made");
    }
    return std::make_unique<CompiledInvocation>(
        shape.dims(0).value(), work, VariantOf(config) == "no_result");
  }
};

OPTRAIL_REGISTER_BACKEND("faulty", FaultyCompiled)

}  // namespace
}  // namespace optrail::ops
