#include "ops/halide/halide_backend.h"

#include <map>
#include <mutex>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "base/hash/hash.h"
#include "base/status_macros.h"
#include "ops/core/cpu_device.h"
#include "ops/core/registry.h"
#include "ops/halide/compiler_process.h"
#include "ops/halide/halide_code.h"
#include "ops/halide/problem.h"
#include "tuning/proto/canonical.h"
#include "tuning/schedule/rule.h"
#include "tuning/schedule/trace_source.h"

namespace optrail::ops {
namespace {

// This machine's in Halide's words. Without AMX, which code may not use before
// it has asked the system.
std::string TargetText() {
#if defined(__x86_64__)
  std::vector<std::string> features = {"x86-64-linux"};
  const auto add = [&](bool has, const char* name) {
    if (has) features.push_back(name);
  };
  __builtin_cpu_init();
  add(__builtin_cpu_supports("sse4.1"), "sse41");
  add(__builtin_cpu_supports("avx"), "avx");
  add(__builtin_cpu_supports("avx2"), "avx2");
  add(__builtin_cpu_supports("fma"), "fma-f16c");
  const bool avx512 =
      __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512cd");
  const bool skylake = avx512 && __builtin_cpu_supports("avx512vl") &&
                       __builtin_cpu_supports("avx512bw") &&
                       __builtin_cpu_supports("avx512dq");
  add(avx512, "avx512");
  add(skylake, "avx512_skylake");
  add(skylake && __builtin_cpu_supports("avx512ifma") &&
          __builtin_cpu_supports("avx512vbmi"),
      "avx512_cannonlake");
  return absl::StrJoin(features, "-");
#elif defined(__aarch64__)
  return "arm-64-linux";
#else
  return "";
#endif
}

// The config of backends and tests that know no traces.
bool IsDefault(const proto::Config& config) {
  return config.set_size() == 1 && config.set(0).knob() == "algorithm" &&
         config.set(0).variant() == "default";
}

class HalideBackend : public BackendFor<CpuDevice> {
 public:
  HalideBackend(std::string name, std::string op, std::string compiler,
                std::string version)
      : name_(std::move(name)),
        op_(std::move(op)),
        compiler_(std::move(compiler)),
        version_(std::move(version)) {
    absl::string_view scheduler = name_;
    if (absl::ConsumePrefix(&scheduler, "halide_")) {
      autoscheduler_ = std::string(scheduler);
      autoscheduler_[0] = static_cast<char>(autoscheduler_[0] - 'a' + 'A');
    }
  }

  std::string name() const override { return name_; }
  bool compiles() const override { return true; }
  std::string library() const override {
    return absl::StrCat("Halide ", version_);
  }

  absl::StatusOr<std::string> Id(const Target& target) const override {
    OPTRAIL_RETURN_IF_ERROR(optrail::halide::FindCompiler(compiler_).status());
    // Rules decide what a trace means.
    return Fingerprint(absl::StrJoin(
        {files().sources_hash, version_, TargetText(),
         autoscheduler_.empty() ? tuning::SketchRulesText() : autoscheduler_},
        "\n"));
  }

  absl::StatusOr<Recipe> Describe(
      const CompileRequest& request) const override {
    OPTRAIL_ASSIGN_OR_RETURN(std::string text, Problem(request.shape));
    if (!autoscheduler_.empty()) {
      if (request.config.set_size() != 1 || !request.config.set(0).has_int_()) {
        return absl::InvalidArgumentError(
            absl::StrCat("config ", tuning::CanonicalText(request.config),
                         ": expected parallelism=INTEGER"));
      }
      absl::StrAppend(&text, "autoscheduler ", autoscheduler_, " ",
                      request.config.set(0).int_(), "\n");
    } else if (IsDefault(request.config)) {
      absl::StrAppend(&text, kTrace, "default\n");
    } else {
      OPTRAIL_ASSIGN_OR_RETURN(const tuning::Trace trace,
                               tuning::TraceOf(request.config));
      absl::StrAppend(&text, kTrace, tuning::TraceText(trace), "\n");
    }
    Recipe recipe;
    recipe.compiler = absl::StrCat("Halide ", version_);
    recipe.options = {files().sources_hash};
    if (autoscheduler_.empty()) {
      recipe.options.push_back(tuning::SketchRulesText());
    }
    recipe.sources = {{"request", std::move(text)}};
    for (const EmbeddedFile& source : files().sources) {
      recipe.sources.push_back(source);
    }
    return recipe;
  }

  absl::StatusOr<Artifact> Compile(const Recipe& recipe) const override {
    absl::string_view text = recipe.sources.at(0).contents;
    std::string request = RequestText("compile", text);
    const size_t at = text.find(kTrace);
    if (at != absl::string_view::npos) {
      const std::string problem(text.substr(0, at));
      const absl::string_view trace_text = absl::StripSuffix(
          absl::ClippedSubstr(text, at + sizeof kTrace - 1), "\n");
      OPTRAIL_ASSIGN_OR_RETURN(const tuning::Algorithm algorithm,
                               AlgorithmOf(problem));
      tuning::Decisions decisions = tuning::Decisions::Default();
      if (trace_text != "default") {
        OPTRAIL_ASSIGN_OR_RETURN(tuning::Trace trace,
                                 tuning::ParseTrace(trace_text));
        decisions = tuning::Decisions::Replay(std::move(trace));
      }
      OPTRAIL_ASSIGN_OR_RETURN(
          const tuning::Program program,
          tuning::Derive(algorithm, tuning::Machine(), decisions));
      request = RequestText("compile", problem, program.StepsText());
    }
    Artifact artifact;
    artifact.key = recipe.Key();
    absl::StatusOr<std::string> code =
        optrail::halide::AskCompiler(compiler_, request);
    if (!autoscheduler_.empty() && absl::IsInvalidArgument(code.status())) {
      // Nobody's fault but the autoscheduler's.
      return absl::UnimplementedError(code.status().message());
    }
    OPTRAIL_ASSIGN_OR_RETURN(artifact.bytes, std::move(code));
    artifact.facts["object_bytes"] =
        static_cast<int64_t>(artifact.bytes.size());
    return artifact;
  }

  // Compiled for each shape anew: a few around a vector stand for all.
  std::vector<std::pair<std::string, int64_t>> Blocks(
      const proto::Config&) const override {
    constexpr int64_t kLanes = 16;
    const OperatorEntry* const entry = Registry::Get().Find(op_);
    if (entry == nullptr) return {};
    return {{entry->op->dims().back(), kLanes}};
  }

  absl::StatusOr<std::shared_ptr<const tuning::ConfigSource>> Configs(
      const proto::Shape& shape, int threads) const override {
    if (!autoscheduler_.empty()) return nullptr;
    OPTRAIL_ASSIGN_OR_RETURN(const std::string problem, Problem(shape));
    OPTRAIL_ASSIGN_OR_RETURN(tuning::Algorithm algorithm, AlgorithmOf(problem));
    tuning::Machine machine;
    machine.threads = threads;
    return std::make_shared<const tuning::TraceSource>(std::move(algorithm),
                                                       machine);
  }

 protected:
  absl::StatusOr<std::unique_ptr<Invocation>> LoadOn(
      const Artifact& artifact, const proto::Shape& shape,
      const proto::Config& config, CpuDevice& device) const override {
    OPTRAIL_ASSIGN_OR_RETURN(const Operator* const op, Op());
    OPTRAIL_ASSIGN_OR_RETURN(const std::vector<OperandSpec> operands,
                             op->Operands(shape));
    auto invocation =
        LoadHalideCode(artifact.bytes, operands, device.threads());
    if (IsDefault(config) && absl::IsInvalidArgument(invocation.status())) {
      // Found when its bounds are asked for, before anything runs. A search
      // draws schedules that fit.
      return absl::UnimplementedError(
          absl::StrCat("the usual schedule does not fit this shape: ",
                       invocation.status().message()));
    }
    return invocation;
  }

 private:
  static constexpr char kTrace[] = "trace ";

  absl::StatusOr<const Operator*> Op() const {
    const OperatorEntry* const entry = Registry::Get().Find(op_);
    if (entry == nullptr) return Registry::Get().UnknownOperator(op_);
    return entry->op.get();
  }

  absl::StatusOr<std::string> Problem(const proto::Shape& shape) const {
    OPTRAIL_ASSIGN_OR_RETURN(const Operator* const op, Op());
    return ProblemText(*op, shape, TargetText());
  }

  absl::StatusOr<tuning::Algorithm> AlgorithmOf(
      const std::string& problem) const {
    const std::lock_guard<std::mutex> lock(mutex_);
    const auto found = algorithms_.find(problem);
    if (found != algorithms_.end()) return found->second;
    OPTRAIL_ASSIGN_OR_RETURN(const std::string text,
                             optrail::halide::AskCompiler(
                                 compiler_, RequestText("describe", problem)));
    OPTRAIL_ASSIGN_OR_RETURN(tuning::Algorithm algorithm,
                             tuning::ParseAlgorithm(text));
    algorithms_.emplace(problem, algorithm);
    return algorithm;
  }

  const std::string name_, op_, compiler_, version_;
  std::string autoscheduler_;  // empty: traces
  mutable std::mutex mutex_;
  mutable std::map<std::string, tuning::Algorithm> algorithms_;
};

}  // namespace

std::shared_ptr<Backend> MakeHalideBackend(std::string name, std::string op,
                                           std::string compiler,
                                           std::string version) {
  return std::make_shared<HalideBackend>(
      std::move(name), std::move(op), std::move(compiler), std::move(version));
}

}  // namespace optrail::ops
