#include "graph/runner/runner.h"

#include <map>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status_macros.h"
#include "graph/ir/ops.h"
#include "graph/runner/codegen.h"
#include "graph/runner/kernels.h"
#include "graph/runner/machine.h"
#include "graph/runner/merge_steps.h"
#include "graph/runner/precision.h"
#include "graph/runner/program_memory.h"
#include "ops/core/runnable.h"
#include "tuning/proto/canonical.h"

namespace optrail::graph {
namespace {

// A step with its kernel and the addresses of its operands.
struct ReadyStep {
  const Step* step = nullptr;
  std::shared_ptr<ops::Runnable> kernel;  // nullptr: the reference
  ops::Call call;
  int64_t number = 0;  // of a generated kernel
  std::vector<void*> addresses;
};

LoweringTarget TargetOf(const Machine& machine, KernelLoader& loader) {
  LoweringTarget target;
  target.printer = &machine.printer();
  target.operand_bytes = machine.operand_bytes();
  const bool on_cpu = machine.target().kind == optrail::proto::CPU;
  target.computes = [&loader, on_cpu](const std::string& op,
                                      const optrail::proto::Shape& shape) {
    // A missing kernel is an error there, not a reason for something slow.
    if (on_cpu && shape.data_types(0) == optrail::proto::F32) {
      return absl::OkStatus();
    }
    return loader.Computes(op, shape);
  };
  return target;
}

class DeviceRunner : public Runner {
 public:
  DeviceRunner(std::unique_ptr<Machine> machine, const RunnerOptions& options)
      : machine_(std::move(machine)),
        options_(options),
        loader_(*machine_, options.compile_cache, options.store,
                options.tuned) {}

  // Compiles nothing.
  absl::Status Translate(const Graph& graph) {
    OPTRAIL_RETURN_IF_ERROR(Rewrite(graph));
    OPTRAIL_ASSIGN_OR_RETURN(program_, Lower(graph_, target_));
    return absl::OkStatus();
  }

  const Program& program() const { return program_; }

  absl::Status Prepare(const Graph& graph) {
    OPTRAIL_RETURN_IF_ERROR(Translate(graph));
    order_ = OrderSteps(&program_);
    MergeSteps(machine_->printer(), &program_);
    OPTRAIL_ASSIGN_OR_RETURN(memory_,
                             ProgramMemory::Of(*machine_, graph_, program_));
    OPTRAIL_RETURN_IF_ERROR(LoadKernels());
    for (ReadyStep& ready : ready_) {
      if (!ready.step->prepared) continue;
      OPTRAIL_RETURN_IF_ERROR(Pack(ready));
      OPTRAIL_RETURN_IF_ERROR(RunReady(ready));
    }
    for (ReadyStep& ready : ready_) {
      if (ready.step->prepared) continue;
      OPTRAIL_RETURN_IF_ERROR(Pack(ready));
      calls_.push_back(&ready);
      steps_.push_back(Describe(*ready.step));
    }
    return Record();
  }

  absl::Status SetInputs(const std::vector<Array>& inputs) override {
    if (inputs.size() != graph_.inputs.size()) {
      return absl::InvalidArgumentError(absl::StrCat(
          inputs.size(), " inputs; the graph has ", graph_.inputs.size()));
    }
    for (size_t i = 0; i < inputs.size(); ++i) {
      const View& view = program_.inputs[i];
      if (!(inputs[i].type == view.type)) {
        return absl::InvalidArgumentError(absl::StrCat(
            "input \"", graph_.values[graph_.inputs[i]].name, "\" is ",
            TypeText(inputs[i].type), "; expected ", TypeText(view.type)));
      }
      const std::string bytes = inputs[i].Encode();
      OPTRAIL_RETURN_IF_ERROR(
          machine_->Write(memory_->Address(view), bytes.data(), bytes.size()));
    }
    return absl::OkStatus();
  }

  absl::StatusOr<std::unique_ptr<Feeder>> MakeFeeder(
      const FeederOptions& options) override {
    std::vector<FedInput> inputs;
    for (const View& view : program_.inputs) {
      inputs.push_back({memory_->Address(view), view.type.bytes()});
    }
    return machine_->MakeFeeder(std::move(inputs), options);
  }

  absl::Status Run() override {
    for (const Part& part : parts_) {
      if (part.recorded != nullptr) {
        OPTRAIL_RETURN_IF_ERROR(part.recorded->Run());
      } else {
        OPTRAIL_RETURN_IF_ERROR(RunCalls(part.begin, part.end));
      }
    }
    return absl::OkStatus();
  }

  absl::Status RunStep(int step) override { return RunReady(*calls_[step]); }

  absl::Status BringOutputs() override {
    for (const View& view : program_.outputs) {
      OPTRAIL_RETURN_IF_ERROR(memory_->OnHost(view, &brought_).status());
    }
    return absl::OkStatus();
  }
  absl::Status UseInThisThread() override {
    return machine_->UseInThisThread();
  }

  absl::StatusOr<std::vector<Array>> Outputs() override {
    std::vector<Array> outputs;
    for (const View& view : program_.outputs) {
      OPTRAIL_ASSIGN_OR_RETURN(Array output, memory_->Read(view));
      outputs.push_back(std::move(output));
    }
    return outputs;
  }

  const std::vector<RunnerStep>& steps() const override { return steps_; }
  const FusionReport& fusion() const override { return report_; }
  const MemoryPlan& plan() const override { return memory_->plan(); }
  int64_t constant_bytes() const override { return memory_->constant_bytes(); }
  int64_t unplanned_bytes() const override {
    return memory_->unplanned_bytes();
  }
  const OrderGain& order() const override { return order_; }
  const std::vector<MemoryBuffer>& arena_buffers() const override {
    return memory_->arena_buffers();
  }

 private:
  // Calls [begin, end), as one recording where the machine makes them.
  struct Part {
    size_t begin = 0, end = 0;
    std::unique_ptr<RecordedCalls> recorded;
  };

  absl::Status RunCalls(size_t begin, size_t end) {
    for (size_t c = begin; c < end; ++c) {
      OPTRAIL_RETURN_IF_ERROR(RunReady(*calls_[c]));
    }
    return absl::OkStatus();
  }

  // The reference runs on the host, and is no part of a recording.
  absl::Status Record() {
    for (size_t begin = 0; begin < calls_.size();) {
      const bool by_host = calls_[begin]->kernel == nullptr;
      size_t end = begin + 1;
      while (end < calls_.size() &&
             by_host == (calls_[end]->kernel == nullptr)) {
        ++end;
      }
      Part& part = parts_.emplace_back();
      part.begin = begin;
      part.end = end;
      if (!by_host) {
        OPTRAIL_ASSIGN_OR_RETURN(part.recorded, machine_->Record([&] {
          return RunCalls(begin, end);
        }));
      }
      begin = end;
    }
    return absl::OkStatus();
  }

  // --- The graph --------------------------------------------------------

  absl::Status Rewrite(const Graph& graph) {
    target_ = TargetOf(*machine_, loader_);
    OPTRAIL_ASSIGN_OR_RETURN(graph_, Simplify(graph));
    if (options_.fuse) {
      OPTRAIL_ASSIGN_OR_RETURN(graph_, Fuse(graph_, FusionRules(), &report_,
                                            [this](const FusionSite& site) {
                                              return Choose(site);
                                            }));
    }
    if (options_.type != proto::ELEMENT_F32) {
      OPTRAIL_ASSIGN_OR_RETURN(graph_, ConvertFloats(graph_, options_.type));
    }
    return absl::OkStatus();
  }

  // Not where only the reference computes what comes instead.
  absl::StatusOr<std::string> Choose(const FusionSite& site) {
    Graph fused = site.fused;
    if (options_.type != proto::ELEMENT_F32) {
      OPTRAIL_ASSIGN_OR_RETURN(fused, ConvertFloats(fused, options_.type));
    }
    OPTRAIL_ASSIGN_OR_RETURN(const Program program, Lower(fused, target_));
    for (const Step& step : program.steps) {
      if (step.kernel == "reference" && !step.prepared) {
        return absl::StrCat("no kernel for ", fused.nodes[step.node].op, " in ",
                            ElementTypeName(options_.type), " on ",
                            machine_->device().hardware().id());
      }
    }
    if (options_.choose != nullptr) return options_.choose(site);
    return std::string();
  }

  // --- Kernels ----------------------------------------------------------

  absl::Status LoadKernels() {
    std::map<GeneratedKernel, int64_t> numbers;
    std::vector<GeneratedKernel> kernels;
    std::vector<int> operands;
    std::vector<std::pair<std::string, optrail::proto::Shape>> wanted;
    for (const Step& step : program_.steps) {
      if (step.kernel == "generated") {
        if (numbers.emplace(step.code, kernels.size()).second) {
          kernels.push_back(step.code);
          operands.push_back(static_cast<int>(step.operands.size()));
        }
      } else if (step.kernel != "reference") {
        wanted.emplace_back(step.kernel, step.shape);
      }
    }
    OPTRAIL_RETURN_IF_ERROR(loader_.Compile(wanted));
    std::vector<LoadedKernel> generated;
    if (!kernels.empty()) {
      OPTRAIL_ASSIGN_OR_RETURN(generated,
                               loader_.LoadGenerated(kernels, operands));
    }
    ready_.reserve(program_.steps.size());
    for (const Step& step : program_.steps) {
      ready_.emplace_back();
      ReadyStep& ready = ready_.back();
      ready.step = &step;
      if (step.kernel == "generated") {
        ready.number = numbers.at(step.code);
        ready.kernel = generated[ready.number].runnable;
        if (machine_->takes_number()) ready.addresses.push_back(&ready.number);
      } else if (step.kernel != "reference") {
        absl::StatusOr<LoadedKernel> loaded =
            loader_.LoadOperator(step.kernel, step.shape);
        if (!loaded.ok()) {
          return absl::Status(
              loaded.status().code(),
              absl::StrCat("node \"", step.name, "\" (", step.kernel, " ",
                           tuning::CanonicalText(step.shape),
                           "): ", loaded.status().message()));
        }
        ready.kernel = loaded->runnable;
        configs_[&step] =
            absl::StrCat(loaded->config, " (", loaded->source, ")");
      }
      for (const View& view : step.operands) {
        ready.addresses.push_back(memory_->Address(view));
      }
    }
    return absl::OkStatus();
  }

  RunnerStep Describe(const Step& step) const {
    RunnerStep described{step.name, step.kernel, "",
                         static_cast<int>(step.nodes.size())};
    const auto config = configs_.find(&step);
    if (config != configs_.end()) {
      described.what =
          absl::StrCat(tuning::CanonicalText(step.shape), " ", config->second);
      return described;
    }
    std::vector<std::string> ops;
    for (const int node : step.nodes) ops.push_back(graph_.nodes[node].op);
    described.what = absl::StrJoin(ops, " ");
    if (!step.why.empty()) {
      absl::StrAppend(&described.what, " (", step.why, ")");
    }
    return described;
  }

  absl::Status Pack(ReadyStep& ready) {
    if (ready.kernel == nullptr) return absl::OkStatus();
    OPTRAIL_ASSIGN_OR_RETURN(ready.call,
                             ready.kernel->Prepare(ready.addresses));
    return absl::OkStatus();
  }

  absl::Status RunReady(ReadyStep& ready) {
    if (ready.kernel == nullptr) return RunByReference(*ready.step);
    const ops::Invocation& invocation = ready.kernel->invocation();
    if (ready.step->packs) {
      OPTRAIL_RETURN_IF_ERROR(invocation.Pack(ready.call));
    }
    return invocation.Run(ready.call);
  }

  absl::Status RunByReference(const Step& step) {
    const Node& node = graph_.nodes[step.node];
    std::vector<Array> arrays;
    const size_t reads = step.operands.size() - step.results;
    for (size_t i = 0; i < reads; ++i) {
      OPTRAIL_ASSIGN_OR_RETURN(Array array, memory_->Read(step.operands[i]));
      arrays.push_back(std::move(array));
    }
    ArrayList inputs;
    size_t next = 0;
    for (const int input : node.inputs) {
      inputs.push_back(input < 0 ? nullptr : &arrays[next++]);
    }
    std::vector<TensorType> types;
    for (const int output : node.outputs) types.push_back(graph_.type(output));
    OPTRAIL_ASSIGN_OR_RETURN(const std::vector<Array> results,
                             FindOp(node.op)->evaluate(node, inputs, types));
    for (size_t i = 0; i < results.size(); ++i) {
      const std::string bytes = results[i].Encode();
      OPTRAIL_RETURN_IF_ERROR(
          machine_->Write(memory_->Address(step.operands[reads + i]),
                          bytes.data(), bytes.size()));
    }
    return absl::OkStatus();
  }

  const std::unique_ptr<Machine> machine_;
  const RunnerOptions options_;
  KernelLoader loader_;
  LoweringTarget target_;
  Graph graph_;
  FusionReport report_;
  Program program_;
  std::unique_ptr<ProgramMemory> memory_;
  OrderGain order_;
  std::vector<char> brought_;
  std::vector<ReadyStep> ready_;
  std::vector<ReadyStep*> calls_;
  std::vector<Part> parts_;
  std::vector<RunnerStep> steps_;
  std::map<const Step*, std::string> configs_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Runner>> Runner::Create(
    Graph graph, ops::Device& device, const RunnerOptions& options) {
  OPTRAIL_ASSIGN_OR_RETURN(std::unique_ptr<Machine> machine,
                           Machine::Of(device));
  auto runner = std::make_unique<DeviceRunner>(std::move(machine), options);
  OPTRAIL_RETURN_IF_ERROR(runner->Prepare(graph));
  return runner;
}

absl::StatusOr<Program> ProgramOn(const Graph& graph, ops::Device& device,
                                  const RunnerOptions& options) {
  OPTRAIL_ASSIGN_OR_RETURN(std::unique_ptr<Machine> machine,
                           Machine::Of(device));
  DeviceRunner runner(std::move(machine), options);
  OPTRAIL_RETURN_IF_ERROR(runner.Translate(graph));
  return runner.program();
}

absl::StatusOr<std::string> KernelsText(const Graph& graph, ops::Device& device,
                                        const RunnerOptions& options) {
  OPTRAIL_ASSIGN_OR_RETURN(Graph simple, Simplify(graph));
  if (options.type != proto::ELEMENT_F32) {
    OPTRAIL_ASSIGN_OR_RETURN(simple, ConvertFloats(simple, options.type));
  }
  OPTRAIL_ASSIGN_OR_RETURN(const std::unique_ptr<Machine> machine,
                           Machine::Of(device));
  KernelLoader loader(*machine, options.compile_cache, options.store,
                      options.tuned);
  OPTRAIL_ASSIGN_OR_RETURN(const Program program,
                           Lower(simple, TargetOf(*machine, loader)));
  std::string text;
  std::vector<GeneratedKernel> kernels;
  std::vector<int> operands;
  for (const Step& step : program.steps) {
    if (step.kernel == "generated") {
      kernels.push_back(step.code);
      operands.push_back(static_cast<int>(step.operands.size()));
    } else if (step.kernel != "reference") {
      OPTRAIL_ASSIGN_OR_RETURN(const KernelChoice choice,
                               loader.Choose(step.kernel, step.shape));
      absl::StrAppend(&text, choice.text, "\n");
    }
  }
  return absl::StrCat(text, machine->printer().File(kernels, operands));
}

}  // namespace optrail::graph
